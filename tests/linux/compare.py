#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the guest's TLB maintenance with that of Linux kernels, count by
count (expected.py), by the programs linux_counts and ipi_counts.

  compare.py SHOOTDOWN [--part arm64|ipi|hints|sizes] [--like 6.1,6.12,7.2]
             [--variant plain,kpti,norange] [--cpus 2,4,8] [--modes U,T,I]
             [--pages N] [--calls N] [--share N] [--document FILE]
             [--jobs N] [--keep FOLDER]

Prints what differs and one line of sums. Exit status 0 when all are equal, 1
when something differs, 2 when something could not be counted. --document also
writes docs/LINUX.md; give it all kernels, variants and CPUs then.

--jobs runs so many guests at a time (default 1), each on one host CPU. --keep
writes each guest's output to a file there, and takes it from there next time if
VMM, kernel and programs are the same: what was broken off goes on where it was,
and one part after the other may be counted before --document.

Part sizes is of the sizes in which Linux was measured, divided by --share (10).
Runs are deterministic (--engine vtime): the same counts each time.
"""
import argparse
import math
import pathlib
import sys

sys.dont_write_bytecode = True  # nothing of ours lies about in the sources
import counted
import expected
import sizes
from counted import Sums, counts_of, parse_cases, run_guest

KINDS = ("VALE", "RVALE", "VAE", "RVAE", "ASIDE", "ISHST", "ISH")
VARIANTS = {"plain": "", "kpti": "kpti=on", "norange": "tlbirange=off"}
VARIANT_TEXT = {"plain": "", "kpti": "kpti=on",
                "norange": "without FEAT_TLBIRANGE"}


# --- arm64 -------------------------------------------------------------------

def kinds_of(counts):
    def of(name):
        return counts.get(name, (0, 0))

    def less(all_of, part):
        return (of(all_of)[0] - of(part)[0], of(all_of)[1] - of(part)[1])

    return {"VALE": less("tlbi_va", "tlbi_va_walk"),
            "VAE": of("tlbi_va_walk"),
            "RVALE": less("tlbi_range", "tlbi_range_walk"),
            "RVAE": of("tlbi_range_walk"), "ASIDE": of("tlbi_asid"),
            "ISHST": of("dsb_ishst"), "ISH": of("dsb_ish")}


def bounds(text):
    low, _, high = text.partition("..")
    value = sum(int(n) for n in low.split("+"))
    return (value, int(high) if high else value)


def expectation(text, variant):
    """{kind: (low, high)} of what is to be compared."""
    only = text.startswith("only ")
    given = {}
    for part in filter(None, text.removeprefix("only ").split(", ")):
        kind, value = part.split()
        given[kind] = bounds(value)
    want = dict(given) if only else {k: given.get(k, (0, 0)) for k in KINDS}
    if variant == "norange":
        if "RVALE" in want:
            pages = 256 * want["RVALE"][0]
            want["VALE"] = tuple(n + pages for n in want["VALE"])
            want["RVALE"] = (0, 0)
        if want.get("RVAE", (0, 0)) != (0, 0):
            # What a table is flushed with then was not measured.
            del want["RVAE"], want["VAE"]
    if variant == "kpti":
        for kind in want:
            if not kind.startswith("ISH"):
                want[kind] = tuple(2 * n for n in want[kind])
    return want


def fits(got, want):
    if want[0] == want[1]:
        return got == want
    return want[0] <= got[0] and got[1] <= want[1]


def show(pair):
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}..{pair[1]}"


def compare_arm64(o, sums, results):
    """results[(variant, kernel, case)] = (verdict, counts by kind)"""
    for variant in o.variant:
        for kernel in o.like:
            words = ["like=" + kernel, "numa=fake=2", VARIANTS[variant]]
            cases = parse_cases(run_guest(
                o.shootdown, "linux_counts", 3, words, [],
                ["-k", str(o.calls)]))
            for _, case, _, texts, _ in expected.ARM64:
                if kernel not in texts:
                    continue
                name = f"{kernel} {variant} {case}"
                got = cases.get(case, "no such line")
                if isinstance(got, str):
                    sums.lack(f"{name}: {got}")
                    results[variant, kernel, case] = ("missing", None)
                    continue
                kinds = kinds_of(got)
                good = True
                for kind, want in expectation(texts[kernel],
                                              variant).items():
                    one = fits(kinds[kind], want)
                    good &= one
                    sums.add(one, f"{name}: {kind} is {show(kinds[kind])}, "
                                  f"Linux has {show(want)}")
                results[variant, kernel, case] = (
                    "equal" if good else "differs", kinds)


# --- flush interrupts --------------------------------------------------------

def ipi_law(case, kernel, mode, got, pages):
    """How many requests each other CPU gets: (low, high); None: no law."""
    regions = math.ceil(pages / 512)
    lazy_masks = kernel == "7.2"
    reclaimed = got.get("swap_out", (0, 0))[0]
    flushes = got.get("batch_flush", (0, 0))[0]
    told = mode == "T" or (mode == "U" and lazy_masks)

    def exactly(n):
        return (n, n)

    if case in ("reclaim_dirty", "reclaim_by_other"):
        return exactly(reclaimed if told else 0)
    if case == "reclaim_clean":
        # 6.12's lists are of 64, 31 + 31 + 2 of them clean; one more for a
        # page of the program. 7.2 has shorter ones too.
        least = 3 * pages // 64
        if told and not least <= flushes <= least * (
                1.5 if lazy_masks else 1) + 1:
            return (least, least)
        return exactly(flushes if told else 0)
    if case == "mprotect_after_reclaim":
        return exactly(0 if mode == "U" and not lazy_masks else 1)
    if case in ("pageout_dirty", "pageout_clean"):
        region = 512 if case == "pageout_dirty" else math.ceil(512 / 31)
        last = pages - 512 * (regions - 1)
        every = region * (regions - 1) + (
            last if case == "pageout_dirty" else math.ceil(last / 31))
        if mode == "T":
            return exactly(every + regions - 1)
        if not lazy_masks:
            return exactly(0 if mode == "U" else 1)
        return exactly(region + (1 if mode == "U" else 2))
    if case == "move_pages":
        return exactly(math.ceil(pages / 512) if told else 0)
    if case == "migrate_pages":
        if not told:
            # Spinners are asked for the pages that they map too: no law.
            return None if mode == "U" else (0, 0)
        return exactly(math.ceil((pages + 1) / 512))
    if mode == "I":  # trim
        return exactly(0)
    if mode == "T":
        return exactly(1)
    return exactly(1 if lazy_masks and "due" in case else 0)


def ipi_runs(o):
    """(kernel, cpus, mode, CPUs that may be asked) of each run."""
    for kernel in o.like:
        if kernel == "6.1":
            continue
        for cpus in o.cpus:
            for mode in o.modes:
                yield kernel, cpus, mode, cpus - 1
        # Threads on two CPUs; the others never had the address space.
        if "T" in o.modes and max(o.cpus) > 2:
            yield kernel, max(o.cpus), "T2", 1


def compare_ipi(o, sums, results):
    """results[(kernel, cpus, mode, case)] = (verdict, per CPU)"""
    for kernel, cpus, mode, asked in ipi_runs(o):
        cases = parse_cases(run_guest(
            o.shootdown, "ipi_counts", cpus,
            ["like=" + kernel, "numa=fake=2"], ["--tlb", "ipi"],
            ["-m", mode[0], "-p", str(o.pages),
             *(["-a", "2"] if mode == "T2" else [])]))
        for case, _, _, _ in expected.AMD64:
            name = f"{kernel} N={cpus} {mode} {case}"
            got = cases.get(case, "no such line")
            if isinstance(got, str):
                sums.lack(f"{name}: {got}")
                results[kernel, cpus, mode, case] = ("missing", None)
                continue
            law = ipi_law(case, kernel, mode[0], got, o.pages)
            received = got["received"][0]
            if law is None:
                results[kernel, cpus, mode, case] = ("no law",
                                                     received / asked)
                continue
            low, high = law
            good = low * asked <= received <= high * asked
            sums.add(good, f"{name}: {received} requests, the law "
                           f"gives {show((low, high))} * {asked}")
            results[kernel, cpus, mode, case] = (
                "equal" if good else "differs", received / asked)


# --- NUMA hints --------------------------------------------------------------

def compare_hints(o, sums):
    """[(kernel, N, threads, verdict, pages, flushes of moves, of scans)]"""
    results = []
    pages = min(o.pages, 1024)
    for kernel in o.like:
        if kernel not in expected.NUMA_HINT:
            continue
        for cpus, threads in expected.NUMA_HINT_RUNS:
            if cpus not in o.cpus:
                continue
            words = ["like=" + kernel, "numa=fake=2", "numa_cpus=split",
                     "numa_balancing=on", "numa_scan_ms=50"]
            got = counts_of("numa_hint", run_guest(
                o.shootdown, "numa_hint", cpus, words, ["--tlb", "ipi"],
                ["-H", "-t", str(threads), "-p", str(pages)]))
            moved = got.get("numa_pages_migrated", (0, 0))[0]
            moves = got.get("batch_flush", (0, 0))[0]
            scans = got.get("gather_flush", (0, 0))[0]
            # Nobody else's scan is open where there is one thread.
            good = moved >= pages and moves <= (
                moved * 0.005 if threads > 1 else 0)
            sums.add(good, f"{kernel} N={cpus} numa_hint of {threads} threads:"
                           f" {moved} pages moved by {moves} flushes of their "
                           "own")
            results.append((kernel, cpus, threads,
                            "equal" if good else "differs", moved, moves,
                            scans))
    return results


def numbers(choices):
    def parse(text):
        words = text.split(",")
        for word in words:
            if word not in choices:
                raise argparse.ArgumentTypeError(f"{word} is none of "
                                                 + ", ".join(choices))
        return words
    return parse


def compare_all(o, sums):
    """The results of each part, as page.py takes them."""
    arm64, ipi = {}, {}
    if o.part in (None, "arm64"):
        compare_arm64(o, sums, arm64)
    if o.part in (None, "ipi"):
        compare_ipi(o, sums, ipi)
    hints = compare_hints(o, sums) if o.part in (None, "hints") else []
    large = sizes.compare(o, sums) if o.part in (None, "sizes") else []
    return arm64, ipi, hints, large


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shootdown")
    parser.add_argument("--part", choices=("arm64", "ipi", "hints", "sizes"))
    parser.add_argument("--like", type=numbers(tuple(expected.KERNELS)),
                        default=list(expected.KERNELS))
    parser.add_argument("--variant", type=numbers(tuple(VARIANTS)),
                        default=list(VARIANTS))
    parser.add_argument("--cpus", default="2,4,8",
                        type=lambda t: [int(n) for n in t.split(",")])
    parser.add_argument("--modes", type=numbers("UTI"), default=list("UTI"))
    parser.add_argument("--pages", type=int, default=4096)
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--share", type=int, default=10)
    parser.add_argument("--document")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    o = parser.parse_args()
    counted.RUNS.keep = pathlib.Path(o.keep) if o.keep else None
    if o.jobs > 1:
        counted.RUNS.planned = []
        compare_all(o, Sums())
        counted.RUNS.run_planned(o.jobs)
    sums = Sums()
    arm64, ipi, hints, large = compare_all(o, sums)
    for line in sums.lines:
        print(line)
    print(f"{sums.compared} counts compared, {sums.equal} equal, "
          f"{sums.missing} cases missing")
    if o.document:
        import page
        with open(o.document, "w", encoding="utf-8") as out:
            out.write(page.page(o, sums, arm64, ipi, hints, large))
    return sums.status()


if __name__ == "__main__":
    sys.exit(main())
