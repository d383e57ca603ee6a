# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of the guest whose counters are compared, and the sums of that."""
import concurrent.futures
import hashlib
import pathlib
import re
import subprocess
import sys
import time


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


def command_of(shootdown, workload, cpus, words, options, arguments):
    """Without the ledger: it changes no count, and takes nearly all of the time
    where thousands of pages are unmapped that idle CPUs may still have."""
    return [shootdown, "run", workload, "--cpus", str(cpus), "--engine",
            "vtime", "--timeout", "0", "--ledger", "off", "--append",
            " ".join(words), *options, "--", *arguments]


class Runs:
    """Runs each command once: those planned several at a time, the longest
    (most CPUs) first. In the folder `keep` outputs outlive the program, so that
    what was broken off goes on where it was; they count for the same VMM, kernel
    and programs only."""

    def __init__(self, keep=None):
        self.keep = pathlib.Path(keep) if keep else None
        self.planned = None  # a list: commands are noted, not run
        self.outputs = {}
        self.builds = {}

    def build(self, shootdown):
        """A hash of what a run is made of."""
        if shootdown not in self.builds:
            h = hashlib.sha256()
            guest = pathlib.Path(shootdown).parent / "guest"
            for path in (pathlib.Path(shootdown), guest / "kernel.img",
                         guest / "initramfs.cpio"):
                if path.is_file():
                    h.update(path.read_bytes())
            self.builds[shootdown] = h.hexdigest()
        return self.builds[shootdown]

    def place(self, command):
        key = "\0".join([self.build(command[0]), *command[1:]])
        return self.keep / hashlib.sha256(key.encode()).hexdigest()[:32]

    def run(self, command):
        """The text of a run, or an error and exit status 1."""
        if self.keep and self.place(command).is_file():
            return self.place(command).read_text(encoding="utf-8")
        out = subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = out.stdout.decode(errors="replace")
        if out.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{text[-2000:]}\n"
                               f"exit status {out.returncode}")
        if self.keep:
            self.keep.mkdir(parents=True, exist_ok=True)
            part = self.place(command).with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(self.place(command))
        return text

    def run_planned(self, jobs):
        """Runs what was noted, and says on a terminal or a log how far it is."""
        todo = [list(c) for c in dict.fromkeys(map(tuple, self.planned))]
        todo.sort(key=lambda c: -int(c[c.index("--cpus") + 1]))
        self.planned = None
        begin, told = time.monotonic(), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(self.run, c): c for c in todo}
            try:
                for n, done in enumerate(
                        concurrent.futures.as_completed(running), 1):
                    self.outputs[tuple(running[done])] = done.result()
                    now = time.monotonic()
                    if now - told > 10:
                        told = now
                        print(f"{n} of {len(todo)} runs, {now - begin:.0f} s",
                              file=sys.stderr, flush=True)
            except RuntimeError as error:
                pool.shutdown(cancel_futures=True)
                print(error)
                sys.exit(1)


RUNS = Runs()


def run_guest(shootdown, workload, cpus, words, options, arguments):
    """The lines of a run, continuation lines joined to theirs; none while runs
    are only planned."""
    command = command_of(shootdown, workload, cpus, words, options, arguments)
    if RUNS.planned is not None:
        RUNS.planned.append(command)
        return []
    if tuple(command) not in RUNS.outputs:
        try:
            RUNS.outputs[tuple(command)] = RUNS.run(command)
        except RuntimeError as error:
            print(error)
            sys.exit(1)
    text = RUNS.outputs[tuple(command)]
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
