#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The negative controls: what looks wrong and is not; the ledger is silent.

  controls.py SHOOTDOWN TRACES [--runs N] [--only N1,..] [--seed N]

Each has its name in the museum's list, traces in TRACES that say exactly this,
and, where the bundled guest does it, a scenario that runs under N schedules
(default 40). Prints a line each; exit status 0 or 1.
"""
import argparse
import os
import re
import subprocess
import sys

RACE = ["race_mix", "--mem", "64M"]
# The mix as a scenario; and the shortest in which processes end, too.
SMALL = ["-k"]
ENDS = ["-c", "-r", "1", "-p", "2", "-w", "2", "-q", "-n", "1", "-t", "2"]

# name, what, traces, options and arguments of a run
CONTROLS = (
    ("N1", "more permissions, and a flush of the own CPU only",
     ["good_control_n01"], [*RACE], SMALL),
    ("N2", "more permissions and no flush at all",
     ["good_control_n02"], [], []),
    ("N3", "a batch of TLBIs, and one DSB of who issued them",
     ["good_control_n03"],
     ["drain_race", "--mem", "64M", "--strategy", "pct:3"], ["-p", "4"]),
    ("N4", "a flush that is put off while the frame has a reference",
     ["good_control_n04"], ["reclaim_race", "--mem", "64M"], ["-b", "8"]),
    ("N5", "the end of an address space without a TLBI",
     ["good_control_n05"], [*RACE, "--append", "asid_bits=3"], ENDS),
    ("N6", "a lazy CPU that is not told",
     ["good_control_n06"],
     ["reclaim_race", "--mem", "64M", "--tlb", "ipi"], ["-b", "8"]),
    ("N7", "block size in place, with FEAT_BBM level 2",
     ["good_control_n07", "good_control_n07_block"], [], []),
    ("N8", "the access flag is cleared without a flush",
     ["good_control_n08"],
     [*RACE, "--tlb", "ipi", "--hw-dbm", "on"], SMALL),
    ("N9", "pages become a block, with a break, as Arm wants it",
     ["good_table_with_pages"],
     ["huge_race", "--mem", "64M"], ["-b", "1", "-r", "1", "-n", "8"]),
    ("N10", "a TLBI with an ASID that was just retired",
     ["good_control_n10"],
     [*RACE, "--append", "asid_bits=3", "--hw", "adversarial"], ENDS),
    ("N11", "an operation ends, and what is younger is owed for",
     ["good_control_n11"],
     ["migrate_race", "--mem", "64M", "--append", "numa=fake=2"],
     ["-r", "1", "-n", "64"]),
    ("N12", "a frame that no loaded root led to",
     ["good_control_n12"], [*RACE, "--tlb", "ipi"], ENDS),
)


def run_scenario(options, name, words, arguments):
    """The number of schedules that were run, or an error."""
    command = [options.shootdown, "run", *words, "--engine", "seeded",
               "--ledger", "on", "--verbose", "--seed", str(options.seed)]
    command += ["--snapshot-at", "1", "--runs", str(options.runs)]
    scale = float(os.environ.get("TEST_TIME_SCALE", "1"))
    result = subprocess.run([*command, "--", *arguments],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False,
                            timeout=max(100, options.runs) * scale)
    err = result.stderr.decode(errors="replace")
    counts = re.search(r"ledger: (\d+) descriptors taken away, .* "
                       r"(\d+) violations", err)
    if result.returncode != 0 or not counts or int(counts.group(2)) != 0:
        return f"{name}: status {result.returncode}\n{err[-1500:]}"
    runs = re.search(r"shootdown: (\d+) runs?, the last", err)
    return int(runs.group(1)) if runs else 1, int(counts.group(1))


def check_traces(folder, names):
    for name in names:
        with open(os.path.join(folder, name + ".txt"), encoding="ascii") as f:
            if "expect good" not in f.read() or not name.startswith("good_"):
                return f"{name}: expects something else than silence"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shootdown")
    parser.add_argument("traces")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    only = options.only.split(",") if options.only else []
    problems = []
    for name, what, traces, words, arguments in CONTROLS:
        if only and name not in only:
            continue
        problem = check_traces(options.traces, traces)
        figures = "trace only"
        if words and not problem:
            result = run_scenario(options, name, words, arguments)
            if isinstance(result, str):
                problem = result
            else:
                figures = f"{result[0]} schedules, {result[1]} taken away"
        print(f"{name:<4} {what:<56} {problem or figures}", flush=True)
        problems += [problem] if problem else []
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
