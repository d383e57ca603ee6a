# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of the guest whose counters are compared, and the sums of that."""
import re
import subprocess
import sys


class Sums:
    """Values that were compared, equal, and not there."""

    def __init__(self):
        self.compared = self.equal = self.missing = 0
        self.lines = []

    def add(self, fits, line):
        self.compared += 1
        self.equal += fits
        if not fits:
            self.lines.append("differs: " + line)

    def lack(self, line):
        self.missing += 1
        self.lines.append("missing: " + line)

    def status(self):
        if self.equal < self.compared:
            return 1
        return 2 if self.missing else 0


def run_guest(shootdown, workload, cpus, words, options, arguments):
    """The lines of a run, continuation lines joined to theirs."""
    command = [shootdown, "run", workload, "--cpus", str(cpus), "--engine",
               "vtime", "--timeout", "0", "--append", " ".join(words),
               *options, "--", *arguments]
    out = subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = out.stdout.decode(errors="replace")
    if out.returncode != 0:
        print(" ".join(command))
        print(text[-2000:])
        print(f"exit status {out.returncode}")
        sys.exit(1)
    return re.sub(r"\n  ", " ", text).splitlines()


def counters_of(words):
    """{name: (low, high)}"""
    counts = {}
    for name, value in zip(words[::2], words[1::2]):
        low, _, high = value.partition("..")
        counts[name] = (int(low), int(high or low))
    return counts


def parse_cases(lines):
    """{case: {name: (low, high)}}; a case that was skipped is its reason."""
    cases = {}
    for line in lines:
        m = re.match(r"case (\S+) (skipped: .*)", line)
        if m:
            cases[m[1]] = m[2]
            continue
        m = re.match(r"case (\S+) [^:]*: ?(.*)", line)
        if m and m[1] not in cases:
            cases[m[1]] = counters_of(m[2].split())
    return cases


def counts_of(workload, lines):
    """{name: (low, high)} of the line "WORKLOAD counts: ...", or {}."""
    for line in lines:
        if line.startswith(f"{workload} counts:"):
            return counters_of(line.split()[2:])
    return {}
