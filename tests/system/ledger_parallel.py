#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The ledger with the parallel engine: silent, and names planted bugs.

  ledger_parallel.py SHOOTDOWN [--repeat N] [--long]

No two runs are the same, so a workload without a bug must be silent in all of
them, and a planted bug must be told, by its rule and by nothing else, within
some. Prints a line per workload; exit status 0 or 1.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

SILENT = (
    ["swap_bench"],
    ["swap_bench", "--tlb", "ipi"],
    ["race_mix", "--", "-r", "50"],
    ["race_mix", "--tlb", "ipi", "--", "-r", "50"],
    ["drain_race", "--drain", "mm"],
)
LONG = (
    ["race_mix"],
    ["race_mix", "--tlb", "ipi"],
    ["reclaim_race"],
    ["reclaim_race", "--tlb", "ipi"],
    ["migrate_race"],
    ["migrate_race", "--tlb", "ipi"],
    ["huge_race"],
    ["fork_churn"],
    ["fork_churn", "--tlb", "ipi"],
    ["selftest"],
    ["selftest", "--tlb", "ipi"],
)
# options, rule and cause that must be told, and all that may be
PLANTED = (
    (["reclaim_race", "--bug", "free-before-flush"], "S1 (S5)", {"S1 (S5)"}),
    (["reclaim_race", "--tlb", "ipi", "--bug", "free-before-flush"], "S1",
     {"S1"}),
    (["drain_race", "--drain", "dsb"], "S2 (S5)", {"S2 (S5)"}),
)
TRIES = 40

problems = []


def run(shootdown, words, ledger="on"):
    timeout = 170 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    at = words.index("--") if "--" in words else len(words)
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [os.path.abspath(shootdown), "run", *words[:at], "--cpus", "4",
             "--ledger", ledger, "--verbose", *words[at:]],
            stdin=subprocess.DEVNULL, cwd=folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=timeout, check=False)
    err = result.stderr.decode(errors="replace")
    counts = re.search(r"ledger: (\d+) descriptors taken away, .* "
                       r"(\d+) violations", err)
    told = re.findall(r"ledger: (S\d+(?: \(S\d\))?) ", err)
    return result.returncode, counts and int(counts.group(1)), told, err


def check_silent(shootdown, words, repeat):
    for _ in range(repeat):
        status, taken, told, err = run(shootdown, words)
        if status != 0 or not taken or told:
            problems.append(f"{words}: status {status}, {told}\n{err[:3000]}")
            return
    print(f"{' '.join(words):<50} {repeat} times silent")


def check_planted(shootdown, words, wanted, allowed):
    for tries in range(1, TRIES + 1):
        status, _, told, err = run(shootdown, words)
        if set(told) - allowed or status != (77 if told else 0):
            problems.append(f"{words}: status {status}, {told}\n{err[:3000]}")
            return
        if wanted in told:
            print(f"{' '.join(words):<50} {wanted} in run {tries}")
            return
    problems.append(f"{words}: not told in {TRIES} runs")


def check_stop(shootdown):
    words = ["reclaim_race", "--bug", "free-before-flush"]
    status, _, told, err = run(shootdown, words, "stop")
    print(f"{'--ledger stop':<50} status {status}, {told}")
    if status != 77 or len(told) != 1:
        problems.append(f"stop: status {status}, {told}\n{err[:3000]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shootdown")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--long", action="store_true",
                        help="every workload, the self-test included")
    options = parser.parse_args()
    for words in SILENT + (LONG if options.long else ()):
        check_silent(options.shootdown, words, options.repeat)
    for words, wanted, allowed in PLANTED:
        check_planted(options.shootdown, words, wanted, allowed)
    check_stop(options.shootdown)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
