# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/LINUX.md, from expected.py and what compare.py counted."""
import expected

NAMES = {"VALE": "TLBI VALE1IS", "RVALE": "TLBI RVALE1IS",
         "VAE": "TLBI VAE1IS", "RVAE": "TLBI RVAE1IS",
         "ASIDE": "TLBI ASIDE1IS", "ISHST": "DSB ISHST", "ISH": "DSB ISH"}

INTRO = """# The guest and Linux, count by count

What a memory call costs in TLB maintenance was counted on three real kernels
and is counted here, by the guest's own counters next to each instruction
(`guest/abi/counters.inc`; a test compares those with what the machine counts).
`like=` chooses whose kernel the guest behaves like.

{sums}

| kernel | built by | what matters here |
|---|---|---|
| 6.1.176 | Debian 12 | arm64 does not batch; x86 does; migration does not; 32 pages a list |
| 6.12.117 | Debian 13 | batches; 31 pages wait together; a drain flushes the ASID; 64 pages a list |
| 7.2.13 | Debian sid | as 6.12; a read fault maps a dirty page dirty; x86 masks are cleared late |

This page is written by `tests/linux/compare.py build/shootdown --document
docs/LINUX.md`; the kernels' numbers are in `tests/linux/expected.py`. `./check`
compares a part of it. Every run is deterministic (`--engine vtime`), so that a
number that differs once differs always.

## Words

| word | means |
|---|---|
| P, N | pages, CPUs |
| drain | DSB ISHST, TLBI ASIDE1IS, DSB ISH: what a reclaim left pending is paid by the next call that takes a page-table lock |
| range | DSB ISHST, TLBI RVALE1IS, DSB ISH: pages of a range |
| table | DSB ISHST, TLBI RVAE1IS, DSB ISH: a page table goes |
| F | flushes that other CPUs are asked to do |

*Linux* columns hold sums as they come about: flushes + drains, or, on 6.1,
flushes + the one range flush that clears the young bits.
"""

A_TITLES = {
    "A1": ("One `MADV_PAGEOUT` call: 256 pages of 1 MiB",
           "DSB ISH of a call. The verdict is about all seven kinds of TLBI and "
           "DSB. In one 2 MiB region unless it says so."),
    "A2": ("What makes 7.2 flush page by page",
           "The same call where pages are mapped clean even there. DSB ISH."),
    "A3": ("Other single calls", "DSB ISH of a call."),
    "A4": ("What is paid after a reclaim",
           "Each row is a call after 256 pages were reclaimed, three times "
           "over. The verdict is about all seven kinds."),
}


def short(text):
    """An expectation as a cell: its DSB ISH, or the sequences of A4."""
    for part in text.removeprefix("only ").split(", "):
        if part.startswith("ISH "):
            return part[4:]
    return "0"


SEQUENCES = [
    ("", "nothing"),
    ("ISHST 1, ASIDE 1, ISH 1", "drain"),
    ("ISHST 1, RVALE 1, ISH 1", "range"),
    ("ISHST 1, RVAE 1, ISH 1", "table"),
    ("ISHST 2, ASIDE 1, RVALE 1, ISH 2", "range + drain"),
    ("ISHST 2, ASIDE 1, RVAE 1, ISH 2", "table + drain"),
    ("ISHST 2, RVALE 1, RVAE 1, ISH 2", "range + table"),
    ("only ISHST 1, ASIDE 0, ISH 1", "a range flush"),
    ("only ISHST 2, ASIDE 1, ISH 2", "a range flush + drain"),
]


def sequence(text):
    return dict(SEQUENCES).get(text, text)


def counted_sequence(kinds):
    """What was counted, as a sequence where it is one."""
    parts = [(k, kinds[k]) for k in ("ISHST", "VALE", "RVALE", "VAE", "RVAE",
                                     "ASIDE", "ISH") if kinds[k] != (0, 0)]
    for text, name in SEQUENCES[:-2]:
        want = dict(part.split() for part in filter(None, text.split(", ")))
        if {k: str(v[0]) for k, v in parts if v[0] == v[1]} == want and all(
                v[0] == v[1] for _, v in parts):
            return name
    return ", ".join(f"{NAMES[k]} {span(v)}" for k, v in parts)


def span(pair):
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}..{pair[1]}"


def verdict(states):
    if "differs" in states:
        return "**differs**"
    if "missing" in states:
        return "not counted"
    return "equal"


def total(text):
    """The value of "256+1", "67..74"."""
    low, _, high = text.partition("..")
    value = sum(int(n) for n in low.split("+"))
    return f"{value}..{high}" if high else str(value)


def a_rows(results, section, kernels):
    lines = ["| what | " + " | ".join(
        f"Linux {k} | here" for k in kernels) + " | law | verdict |",
        "|---" * (2 * len(kernels) + 3) + "|"]
    for part, case, what, texts, law in expected.ARM64:
        if part != section or case.startswith("sweep_"):
            continue
        cells, states = [], []
        for kernel in kernels:
            if kernel not in texts:
                cells += ["", ""]
                continue
            state, kinds = results.get(("plain", kernel, case),
                                       ("missing", None))
            states.append(state)
            text = texts[kernel]
            if section == "A4":
                cells.append(sequence(text))
                cells.append("?" if kinds is None else counted_sequence(kinds))
            else:
                cells.append(short(text))
                cells.append("?" if kinds is None else span(kinds["ISH"]))
        lines.append(f"| {what} | " + " | ".join(cells)
                     + f" | {law} | {verdict(states)} |")
    return lines


def sweep(results, kernels):
    lines = ["", "The sweep: P shared pages that were read back, one call, "
             "flushes + 1.", "",
             "| P | " + " | ".join(f"Linux {k} | here" for k in kernels)
             + " | verdict |", "|---" * (2 * len(kernels) + 2) + "|"]
    for n in expected.SWEEP:
        case = f"sweep_{n}.n"
        texts = next(t for _, c, _, t, _ in expected.ARM64 if c == case)
        cells, states = [], []
        for kernel in kernels:
            state, kinds = results.get(("plain", kernel, case),
                                       ("missing", None))
            states.append(state)
            cells += [short(texts[kernel]),
                      "?" if kinds is None else span(kinds["ISH"])]
        lines.append(f"| {n} | " + " | ".join(cells)
                     + f" | {verdict(states)} |")
    return lines


def variants(o, results):
    lines = ["", "### Variants", "",
             "With `kpti=on` each TLBI is issued for two ASIDs and no barrier "
             "is added. Without range operations (`tlbirange=off`, as a "
             "Cortex-A72 has none) a range is as many TLBI VALE1IS as pages. "
             "All cases above, again:", "",
             "| variant | kernel | cases | equal |", "|---|---|---|---|"]
    for variant, name in (("plain", "as above"), ("kpti", "`kpti=on`"),
                          ("norange", "`tlbirange=off`")):
        for kernel in o.like:
            states = [state for (v, k, _), (state, _) in results.items()
                      if v == variant and k == kernel]
            if states:
                lines.append(f"| {name} | {kernel} | {len(states)} | "
                             f"{states.count('equal')} |")
    return lines


def value(n):
    return str(n) if isinstance(n, str) else f"{n}"


def ours(results, kernel, cpus, mode, case):
    state, n = results.get((kernel, cpus, mode, case), ("missing", None))
    text = "?" if n is None else f"{n:.2f}".rstrip("0").rstrip(".")
    return text if state != "differs" else f"**{text}**"


def ipi_part(o, results):
    kernels = [k for k in o.like if k != "6.1"]
    most = max(o.cpus)
    lines = ["", "## Flush interrupts", "",
             "Requests that each other CPU gets (F = requests / (N-1)) for what "
             f"a program on CPU 0 does with P = {o.pages} private pages, where "
             "TLBs are flushed by interrupt (`tlb=ipi`; Linux: amd64 without "
             f"INVLPGB, N = 8, P = 4096). Here N = {most}.", "",
             "* **U**: unrelated processes spin on the other CPUs; the program "
             "has been there.",
             "* **T**: threads of the program spin there.",
             "* **I**: they are idle, with the address space still loaded.", ""]
    for kernel in kernels:
        head = " | ".join(f"{mode}: Linux | here" for mode in o.modes)
        lines += ["", f"### like={kernel}", "",
                  f"| what | {head} | law | verdict, N = "
                  f"{', '.join(map(str, o.cpus))} |",
                  "|---" * (2 * len(o.modes) + 3) + "|"]
        for case, what, measured, law in expected.AMD64:
            cells, states = [], []
            for mode in o.modes:
                index = "UTI".index(mode)
                cells += [value(measured[kernel][index]),
                          ours(results, kernel, most, mode, case)]
                states += [results.get((kernel, n, mode, case),
                                       ("missing", None))[0] for n in o.cpus]
            lines.append(f"| {what} | " + " | ".join(cells)
                         + f" | {law} | {verdict(states)} |")
    few = [state for (_, _, mode, _), (state, _) in results.items()
           if mode == "T2"]
    if few:
        lines += ["", "With threads on two of the CPUs, CPU 0 among them, and "
                  "nothing on the others, one CPU gets the requests of T and "
                  f"the rest none: {few.count('equal')} of {len(few)} cases "
                  "are equal."]
    lines += ["", "Linux's numbers hold a few pages of the program itself and, "
              "where a CPU was caught in a kernel thread, a request less; the "
              "laws are exact here. Pages of `migrate_pages` that the spinners "
              "map too bring their CPUs into a batch: no law where nobody "
              "else is asked (6.12, U)."]
    return lines


def hint_part(hints):
    if not hints:
        return []
    lines = ["", "## NUMA hints", "",
             "Pages on the other node, used until they have come. A page whose "
             "PTE is PROT_NONE is in no TLB: moving it needs no flush, to the "
             "last page where one thread uses them. What is left are the "
             "scans' own range flushes, and moves while another thread's scan "
             "is open (Linux: 0.2 % of the pages).", "",
             "| kernel | Linux, 4 threads: pages | flushes, all | by who moves "
             "| N | threads | here: pages | flushes of moves | of scans | "
             "verdict |", "|---" * 10 + "|"]
    for kernel, cpus, threads, state, pages, moves, scans in hints:
        want = expected.NUMA_HINT[kernel]
        lines.append(f"| {kernel} | {want[0]} | {want[1]} | {want[2]} | {cpus} "
                     f"| {threads} | {pages} | {moves} | {scans} | "
                     f"{verdict([state])} |")
    return lines


def sizes_part(large):
    if not large:
        return []
    lines = ["", "## The sizes of published measurements", "",
             "F in mode U, on 7.2 by flush interrupts; 6.12 asks nobody there, "
             "and its lists are counted. The law gives F for any number of "
             "pages; here fewer were taken where it says so, and the verdict "
             "is about F, the requests F (N-1) and the pages. Linux's groups "
             "held pages of the program, which the guest's do not: F of "
             "`pageout` is as much larger, F of a demotion differs by less than "
             "2 %.", "",
             "* **pageout**: F = P.",
             "* **move_pages**: F = R ceil(P/(512 R)).",
             "* **demotion**, without swap: F is the number of lists. A request "
             "goes on by quarters of what is left, each from priority 12 down; "
             "a list is 64 pages, on 7.2 no more than what is left of "
             "size >> priority (`demotion_lists()` in `tests/linux/sizes.py` "
             "computes it).", "",
             "| what | kernel | N | Linux: P | F | law, that P | here: P | F | "
             "law, this P | verdict |", "|---" * 10 + "|"]
    for c in large:
        lines.append(f"| {c.what} | {c.kernel} | {c.cpus} | {c.linux_pages} | "
                     f"{c.linux} | {c.law} | {c.pages} | {c.flushes} | "
                     f"{c.want} | {verdict([c.state])} |")
    return lines


def page(o, sums, arm64, ipi, hints, large):
    lines = [INTRO.format(
        sums=f"**{sums.equal} of {sums.compared} values are equal"
             + (f"; {sums.missing} cases could not be counted."
                if sums.missing else ".") + "**")]
    lines += ["", "## Instructions of a call", "",
              "arm64, the calling CPU, within the system call."]
    for section, (title, text) in A_TITLES.items():
        lines += ["", f"### {title}", "", text, ""]
        kernels = [k for k in o.like if any(
            s == section and k in t for s, _, _, t, _ in expected.ARM64)]
        lines += a_rows(arm64, section, kernels)
        if section == "A3":
            lines += sweep(arm64, kernels)
    lines += variants(o, arm64)
    lines += ipi_part(o, ipi)
    lines += sizes_part(large)
    lines += hint_part(hints)
    return "\n".join(lines) + "\n"
