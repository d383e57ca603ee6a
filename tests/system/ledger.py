#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The ledger is silent about the bundled guest, and names planted bugs.

  ledger.py SHOOTDOWN

Also: many runs from a snapshot find what each of them finds alone, and a
recorded run is judged again when it is replayed. Prints a line per run; exit
status 0 or 1.
"""
import os
import re
import subprocess
import sys
import tempfile

SHORT = ["--snapshot-at", "1", "--mem", "64M"]
DRAIN = ["--strategy", "pct:3", "--runs", "40"]

# title, options, what is told: (rule and cause, function that did it)
RUNS = (
    ("hello", ["hello"], []),
    ("bench", ["swap_bench"], []),
    ("race", ["reclaim_race"], []),
    ("bench, IPIs", ["swap_bench", "--tlb", "ipi"], []),
    ("free before flush",
     ["reclaim_race", "--bug", "free-before-flush"], [("S1 (S5) freed",
                                                       "make_free")]),
    ("no DSB before the TLBI",
     ["reclaim_race", "--bug", "tlbi-before-store-visible"],
     [("S4 (S7) read", "swap_write"), ("S1 (S7) freed", "make_free")]),
    ("local TLBI",
     ["reclaim_race", "--bug", "local-instead-of-broadcast"],
     [("S4 (S6) read", "swap_write"), ("S1 (S6) freed", "make_free")]),
    ("drained by the wrong CPU",
     ["drain_race", *SHORT, *DRAIN, "--drain", "dsb"],
     [("S2 (S5) returned", "annot_op_end_slow")]),
    ("drained by a flush of the mm",
     ["drain_race", *SHORT, *DRAIN, "--drain", "mm"], []),
)

problems = []


def shootdown(*words):
    timeout = 100 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    result = subprocess.run([sys.argv[1], *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=timeout, check=False)
    return result.returncode, result.stderr.decode(errors="replace")


def judged(title, options, arguments=()):
    words = ["run", *options, "--engine", "seeded", "--ledger", "on",
             "--verbose"]
    status, err = shootdown(*words, *(["--", *arguments] if arguments else []))
    counts = re.search(r"ledger: (\d+) descriptors taken away, .* "
                       r"(\d+) violations", err)
    if not counts or int(counts.group(1)) == 0:
        problems.append(f"{title}: status {status}\n{err[-1500:]}")
        return status, err, 0
    print(f"{title:<32} status {status}, {counts.group(2)} violations")
    return status, err, int(counts.group(2))


def check_run(title, options, told):
    status, err, count = judged(title, options)
    if status != (77 if told else 0) or (count != 0) != bool(told):
        problems.append(f"{title}: status {status}\n{err[:1500]}")
    for rule, culprit in told:
        at = err.find(f"ledger: {rule}: ")
        if at < 0 or culprit + "+" not in err[at:at + 800]:
            problems.append(f"{title}: not told: {rule} by {culprit}\n"
                            f"{err[:1500]}")


def check_runs(tlb):
    """What is owed is put back with the machine, run by run.

    The runs end with the first in which the guest itself sees the bug.
    """
    options = ["reclaim_race", *SHORT, "--tlb", tlb, "--bug",
               "free-before-flush"]
    _, err, together = judged(f"8 runs, {tlb}", options + ["--runs", "8"],
                              ["-b", "4"])
    runs = int(re.search(r"shootdown: (\d+) runs?, the last", err).group(1))
    alone = sum(judged(f"seed {seed}, {tlb}", options + ["--seed", str(seed)],
                       ["-b", "4"])[2] for seed in range(1, runs + 1))
    if together != alone or alone == 0:
        problems.append(f"{tlb}: {together} violations in {runs} runs, {alone} "
                        "in the same ones one by one")
    return runs


def check_replay():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.sd")
        options = ["reclaim_race", *SHORT, "--tlb", "ipi", "--bug",
                   "free-before-flush", "--record", path]
        first = judged("recorded", options, ["-b", "4"])[1]
        status, again = shootdown("replay", path)
    told = [re.findall(r"ledger: S.*", text) for text in (first, again)]
    print(f"{'replayed':<32} status {status}, {len(told[1])} findings")
    if status != 77 or not told[0] or told[0] != told[1]:
        problems.append(f"replay: status {status}, {told}\n{again[:1500]}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for row in RUNS:
        check_run(*row)
    if check_runs("broadcast") + check_runs("ipi") < 4:
        problems.append("too few runs in a row to say anything")
    check_replay()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
