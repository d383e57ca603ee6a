#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What one MADV_PAGEOUT call of swap_bench costs, exactly.

  counts.py --shootdown FILE --tlb broadcast|ipi --flush sync|batched
            --threads N [--cpus N] [--rounds N] [--append WORDS]

The expected numbers are those of a Linux 6.12 kernel for 256 pages inside one
2 MiB region (docs/TESTING.md): no tolerance. They are compared with what the
machine counted inside each call and with what swap_bench printed; and what the
machine attributes to the kernel's flush functions with the guest's own count.
With kpti=on in WORDS every TLBI comes twice and no DSB does; repeat_tlbi=on does
not batch, and each wait has a TLBI and a DSB ISH more.
"""
import argparse
import json
import re
import subprocess
import sys

PAGES = 256
BATCH = 31                          # frames that wait to be freed together
BATCHES = -(-PAGES // BATCH)        # 9
SHARED_VA = ("VAE1IS", "VALE1IS", "VAAE1IS", "VAALE1IS")


def expected(tlb, flush, others, words):
    """{(first|steady, kind): count} for the calling vCPU's flush code."""
    want = {}
    repeats = "repeat_tlbi=on" in words
    if repeats and tlb == "broadcast":
        flush = "sync"
    if tlb == "broadcast":
        first = {"TLBI VALE1IS": PAGES, "TLBI ASIDE1IS": 0,
                 "DSB ISHST": PAGES, "DSB ISH": PAGES, "IPI": 0}
        steady = dict(first)
        if flush == "batched":
            # The pages are clean now: one DSB a batch. The +1 is the drain
            # of what the call before left pending.
            steady.update({"TLBI ASIDE1IS": 1, "DSB ISHST": PAGES + 1,
                           "DSB ISH": BATCHES + 1})
        for counts in (first, steady):
            if "kpti=on" in words:
                counts["TLBI VALE1IS"] *= 2
                counts["TLBI ASIDE1IS"] *= 2
            if repeats:
                counts["TLBI VALE1IS"] += counts["DSB ISH"]
                counts["DSB ISH"] *= 2
    else:
        first = {"TLBI VALE1IS": 0, "TLBI ASIDE1IS": 0, "IPI": PAGES * others}
        steady = dict(first)
        if flush == "batched":
            steady["IPI"] = (BATCHES + 1) * others
    want.update({("first", k): v for k, v in first.items()})
    want.update({("steady", k): v for k, v in steady.items()})
    return want


class Checks:
    def __init__(self):
        self.failed = 0

    def equal(self, what, got, want):
        good = got == want
        self.failed += not good
        print(f"{'ok' if good else 'NOT OK'}: {what}: {got}"
              + ("" if good else f", expected {want}"))


def check_machine(checks, stats, want):
    op = stats["operations"].get("madvise_pageout")
    if not op:
        checks.equal("calls of madvise_pageout", 0, "some")
        return
    checks.equal("calls cut by a migration", op["broken"], 0)
    for (when, kind), n in want.items():
        if when == "first":
            checks.equal(f"machine, call 1, {kind}",
                         op["first"]["flush"].get(kind, 0), n)
        else:
            for edge in ("min", "max"):
                checks.equal(f"machine, calls 2.., {kind}, {edge}",
                             op[edge]["flush"].get(kind, 0), n)


def check_guest(checks, stats):
    """The two countings of the whole run, the machine's and the guest's.

    Barriers are compared for the flush functions only (flush_*): the boot of
    the kernel and new page tables have some that are no flush.
    """
    guest, machine = stats["guest"], stats["machine"]
    sites = {}
    for site in machine.get("flush_sites", []):
        if (site["class"] == "flush" and site["kind"].startswith("DSB")
                and not (site["symbol"] or "").startswith("flush_")):
            continue
        key = (site["class"], site["kind"])
        sites[key] = sites.get(key, 0) + site["count"]

    def shared(names):
        return sum(n for (c, kind), n in sites.items()
                   if c == "flush" and kind[5:] in names
                   and kind.startswith("TLBI "))

    checks.equal("guest tlbi_va", guest["tlbi_va"], shared(SHARED_VA))
    checks.equal("guest tlbi_asid", guest["tlbi_asid"], shared(("ASIDE1IS",)))
    checks.equal("guest tlbi_range", guest["tlbi_range"], shared(
        ("RVAE1IS", "RVALE1IS", "RVAAE1IS", "RVAALE1IS")))
    checks.equal("guest dsb_ish", guest["dsb_ish"],
                 sites.get(("flush", "DSB ISH"), 0))
    checks.equal("guest dsb_ishst", guest["dsb_ishst"],
                 sites.get(("flush", "DSB ISHST"), 0))
    checks.equal("guest dsb_switch", guest["dsb_switch"],
                 sites.get(("switch", "DSB ISH"), 0))
    checks.equal("guest ipi_sent", guest["ipi_sent"], machine["ipis_sent"])


def printed_counts(line):
    """{name: (low, high)} of swap_bench's "call 1:" or "calls 2..N, each:"."""
    words = line.split(":", 1)[1].split()
    counts = {}
    for name, value in zip(words[::2], words[1::2]):
        low, _, high = value.partition("..")
        counts[name] = (int(low), int(high or low))
    return counts


def check_printed(checks, lines, want, tlb):
    """What the program printed: the kernel's own counters around each call."""
    names = {"TLBI VALE1IS": "tlbi_va", "TLBI ASIDE1IS": "tlbi_asid",
             "DSB ISHST": "dsb_ishst", "DSB ISH": "dsb_ish"}
    found = {"first": next((printed_counts(line) for line in lines
                            if line.startswith("call 1:")), None),
             "steady": next((printed_counts(line) for line in lines
                             if re.match(r"calls 2\.\.\d+, each:", line)), None)}
    for when, counts in found.items():
        if counts is None:
            checks.equal(f"printed, {when}", "no line", "counts")
            continue
        for (at, kind), n in want.items():
            if at == when and kind in names and tlb == "broadcast":
                name = names[kind]
                checks.equal(f"printed, {when}, {name}",
                             counts.get(name, (0, 0)), (n, n))
        if tlb == "ipi":
            sent = want[(when, "IPI")]
            checks.equal(f"printed, {when}, ipi_sent",
                         counts.get("ipi_sent", (0, 0)), (sent, sent))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--tlb", required=True)
    parser.add_argument("--flush", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--append", default="")
    o = parser.parse_args()
    command = [o.shootdown, "run", "swap_bench", "--cpus", str(o.cpus),
               "--tlb", o.tlb, "--flush", o.flush, "--timeout", "100",
               "--append", o.append, "--stats", "-", "--", "-k", str(o.rounds),
               "-t", str(o.threads)]
    print(" ".join(command))
    run = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=120,
                         stdout=subprocess.PIPE, check=False)
    out = run.stdout.decode(errors="replace").splitlines()
    checks = Checks()
    checks.equal("exit status", run.returncode, 0)
    try:
        stats = json.loads(out[-1])
    except (IndexError, ValueError):
        print("\n".join(out[-20:]))
        print("NOT OK: the last line is no JSON")
        return 1
    want = expected(o.tlb, o.flush, o.threads, o.append.split())
    check_machine(checks, stats, want)
    check_printed(checks, out, want, o.tlb)
    check_guest(checks, stats)
    if checks.failed:
        print("\n".join(out[:-1][-20:]))
        print(json.dumps(stats["operations"].get("madvise_pageout")))
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
