#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures executions per second of one core, with the ledger on and off.

  bench/fuzz.py [--build DIR] [--repeat N] [--runs N] [--no-write]

reclaim_race on 4 vCPUs, in three sizes. The same N schedules are run with
`run --runs` with the ledger on and off, in turn, and N executions by `fuzz`,
whose ledger is on. What counts is CPU time, user and system, without that of
the boot and the first execution, so that other load on the machine does not
count as ours (it still makes caches and shared cores slower; both sides of the
ratio alike). Medians. The table goes to standard output and, between the two
markers, into docs/PERFORMANCE.md. It judges nothing.
"""
import argparse
import datetime
import os
import resource
import statistics
import subprocess
import sys

import determinism
import page

BEGIN = "<!-- fuzz: begin -->"
END = "<!-- fuzz: end -->"
MACHINE = ["reclaim_race", "--cpus", "4", "--append", "fault_drain=yes"]
RUN = ["run", *MACHINE, "--engine", "seeded", "--seed", "1",
       "--snapshot-at", "1", "--quiet"]
SIZES = {
    "8 pages, 32 accesses": [],
    "-p 4 -n 8 -b 4": ["-p", "4", "-n", "8", "-b", "4"],
    "-p 2 -n 4 -b 2": ["-p", "2", "-n", "4", "-b", "2"],
}


def commands(runs, size):
    """{column: command} for so many executions."""
    tail = ["--", *size]
    return {
        "on": [*RUN, "--ledger", "on", "--runs", str(runs), *tail],
        "off": [*RUN, "--ledger", "off", "--runs", str(runs), *tail],
        "fuzz": ["fuzz", *MACHINE, "-seed=1", f"-runs={runs}", *tail],
    }


def cpu_seconds(build, words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [os.path.join(build, "shootdown"), *words], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=determinism.LIMIT, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"fuzz: 'shootdown {' '.join(words)}' ended with "
                 f"{done.returncode}:\n{done.stdout.decode(errors='replace')}")
    return (after.ru_utime - before.ru_utime +
            after.ru_stime - before.ru_stime)


def rates(build, repeat, runs, size):
    """{column: executions per CPU second}, and the median of off over on."""
    found = {}
    one, many = commands(1, size), commands(runs, size)
    for _ in range(repeat):
        for name, words in many.items():
            spent = (cpu_seconds(build, words) -
                     cpu_seconds(build, one[name]))
            found.setdefault(name, []).append((runs - 1) / spent)
            determinism.progress(".")
    ratio = statistics.median(
        off / on for on, off in zip(found["on"], found["off"]))
    return {n: statistics.median(v) for n, v in found.items()}, ratio


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--build", default=os.path.join(determinism.ROOT, "build"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1000,
                        help="executions, each time")
    parser.add_argument("--no-write", action="store_true",
                        help="leave docs/PERFORMANCE.md as it is")
    o = parser.parse_args()
    head = (f"{datetime.date.today()}, {os.cpu_count()} cores "
            f"({page.cpu_model()}), median of {o.repeat}, {o.runs} executions, "
            f"load average before: {os.getloadavg()[0]:.1f}.")
    rows = [("executions per CPU second", "fuzz", "run, ledger on",
             "ledger off", "off/on")]
    for name, size in SIZES.items():
        found, ratio = rates(o.build, o.repeat, o.runs, size)
        rows.append((name, f"{found['fuzz']:.0f}", f"{found['on']:.0f}",
                     f"{found['off']:.0f}", f"{ratio:.2f}"))
    determinism.progress("\n")
    text = f"{head}\n\n{determinism.table(rows)}"
    print(text)
    if not o.no_write:
        page.write(text, BEGIN, END)


if __name__ == "__main__":
    main()
