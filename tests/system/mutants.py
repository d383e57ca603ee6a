#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutants of the TLB flush: not historical, each one slip of the pen.

  mutants.py SHOOTDOWN

Each must be told by its rule and cause in a scenario of a few hundred steps;
without it, on the same schedules, nothing. Prints a line per mutant; exit
status 0 or 1.
"""
import os
import re
import subprocess
import sys
import tempfile

# name, arguments of museum_tlbi, what is told
MUTANTS = (
    ("mutant-dsb-ishst", ["-p", "2"], "S1 (S5) freed"),
    ("mutant-dsb-nsh", ["-p", "2"], "S1 (S5) freed"),
    ("mutant-leaf-only", ["-o", "unmap", "-p", "1"], "S8 (S6) table-freed"),
    ("mutant-asid-zero", ["-p", "2"], "S1 (S6) freed"),
    ("mutant-one-page-short", ["-o", "protect", "-p", "3"],
     "S2 (S6) returned"),
    ("mutant-hint-off-by-one", ["-p", "1"], "S1 (S6) freed"),
    ("mutant-unshifted", ["-p", "1"], "S1 (S6) freed"),
)


def told(arguments, options, folder):
    timeout = 60 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    result = subprocess.run(
        [os.path.abspath(sys.argv[1]), "run", "museum_tlbi", "--cpus", "2", "--mem", "64M",
         "--engine", "seeded", "--ledger", "on", "--snapshot-at", "1",
         "--runs", "5", "--verbose", *options, "--", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=timeout, check=False, cwd=folder)
    text = result.stderr.decode(errors="replace")
    looked = re.search(r"ledger: [1-9]\d* descriptors taken away", text)
    return (result.returncode if looked else -1,
            re.findall(r"ledger: (S\d+.*?):", text))


def check(folder):
    fine = True
    for name, arguments, rule in MUTANTS:
        status, rules = told(arguments, ["--bug", name], folder)
        silent = told(arguments, [], folder)
        good = status == 77 and rule in rules and silent == (0, [])
        print(f"{'ok' if good else 'not ok'} {name}: status {status}, "
              f"{', '.join(rules)}; without it: status {silent[0]}"
              f"{', '.join(silent[1])}")
        fine = fine and good
    return 0 if fine else 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    # A run that finds something leaves its schedule where it is.
    with tempfile.TemporaryDirectory() as folder:
        return check(folder)


if __name__ == "__main__":
    sys.exit(main())
