#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Long runs of what is right, in which nothing may be found: docs/SILENCE.md.

  silence.py [options] run [NAME]...   goes on where the log stands
  silence.py left [NAME]...            how many schedules are left, a line each
  silence.py table                     writes docs/SILENCE.md from the log
  silence.py check                     is it what `table` writes?
  silence.py sample                    ten schedules of each way of race_mix,
                                       without a log: for the tests

NAME is race_mix, or N1 to N12 of tests/system/controls.py; without a name, all
of them. Work is done in shards of some thousand schedules. Each is one process
with seeds of its own, and when it is over a line of the log, JSON: a run can be
ended at any time, and loses the shard it is at. A shard that finds something,
or fails, is logged with what was said, and ends the run; it is not done again,
and the goal, so many silent schedules, begins anew.

  --shootdown FILE   the program, default build/shootdown
  --log FILE         default docs/museum/silence.jsonl
  --seconds N        do not begin a shard after that
  --alternate        a shard of each in turn, not one name after the other
Exit status 0; 1: something was found, or the table is not what it should be.
"""
import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = ROOT / "docs/museum/silence.jsonl"
TABLE = ROOT / "docs/SILENCE.md"
sys.path.insert(0, str(ROOT / "tests/system"))
import controls  # noqa: E402 pylint: disable=wrong-import-position

# --- what is run

# Schedules of a shard, by strategy. The corpus of the last one is in memory.
SHARD = {"portfolio": 2000}
SHARD_DEFAULT = 5000
MIX_GOAL = 1000000
SAMPLE = 10
CONTROL_GOAL = 100000

TWO = ["--append", "numa=fake=2"]
IPI = ["--tlb", "ipi"]
# Quanta are drawn: with adversarial ones a schedule takes ten times as long.
CRUEL = ["--hw", "adversarial", "--hw-preempt", "random"]
# Ways to run race_mix, one a shard in turn: strategy, machine, arguments.
WAYS = (
    ("pct:3", TWO, []),
    ("random", [*TWO, *IPI], []),
    ("pos", TWO, []),
    ("portfolio", [*TWO, *IPI], []),
    ("pct:3", [*TWO, *IPI], ["-r", "1"]),
    ("random", [*TWO, *CRUEL], []),
    ("pos", [*IPI, *CRUEL], []),
    ("chaos", TWO, ["-r", "1"]),
    ("pct:3", [*TWO, *IPI, *CRUEL], []),
    ("portfolio", [*TWO, "--flush", "sync"], []),
    ("pct:5", ["--append", "asid_bits=3"], ["-t", "4"]),
    ("random", [*TWO, *IPI, "--flush", "sync"], ["-r", "1"]),
    ("pos", [*TWO, *IPI, "--hw-dbm", "on"], []),
    ("chaos", [*TWO, *IPI], []),
    ("pct:3", [*TWO, "--hw-dbm", "on", "--cpus", "3"], ["-t", "4"]),
    ("portfolio", [*TWO, *CRUEL], ["-r", "1"]),
)


class Work:
    """A name, its goal, and what shard n of it is."""

    def __init__(self, name):
        self.name = name
        self.goal = MIX_GOAL if name == "race_mix" else CONTROL_GOAL
        self.control = next((c for c in controls.CONTROLS if c[0] == name),
                            None)

    def what(self):
        if self.control:
            return self.control[1]
        return "everything at once, another mix each time"

    def shard(self, n, left=1 << 62):
        """Strategy, words of the command line, schedules."""
        if self.control:
            runs = min(SHARD_DEFAULT, left)
            words, arguments = self.control[3:]
            strategy = "random"
            if "--strategy" in words:
                strategy = words[words.index("--strategy") + 1]
            return strategy, self.run_words(n, runs, words, arguments), runs
        strategy, machine, arguments = WAYS[n % len(WAYS)]
        runs = min(SHARD.get(strategy, SHARD_DEFAULT), left)
        words = ["race_mix", "--mem", "64M", *machine]
        arguments = ["-k", *arguments]
        if strategy == "portfolio":
            words = ["fuzz", *words, f"-runs={runs}", f"-seed={n + 1}",
                     "-reload=0", "-artifact_prefix=silence-"]
            return strategy, [*words, "--", *arguments], runs
        words += ["--strategy", strategy]
        return strategy, self.run_words(n, runs, words, arguments), runs

    @staticmethod
    def run_words(n, runs, words, arguments):
        # Run i of a shard has its seed + i.
        return ["run", *words, "--engine", "seeded", "--ledger", "stop",
                "--snapshot-at", "1", "--seed", str(n * SHARD_DEFAULT + 1),
                "--runs", str(runs), "--timeout", "0", "--", *arguments]


def names_of(words):
    known = ["race_mix"] + [c[0] for c in controls.CONTROLS if c[3]]
    for word in words:
        if word not in known:
            sys.exit(f"silence.py: no {word}; there is {' '.join(known)}")
    return [Work(name) for name in (words or known)]


# --- the log

def load(path):
    if not path.exists():
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def schedules(log, name):
    """Silent ones, since something was found last."""
    count = 0
    for line in log:
        if line["name"] == name:
            count = 0 if line["found"] else count + line["schedules"]
    return count


def images(shootdown):
    """Which kernel and programs were run: the first of their SHA-256."""
    guest = pathlib.Path(shootdown).resolve().parent / "guest"
    digest = hashlib.sha256()
    for path in sorted(guest.glob("*.cpio")) + sorted(guest.glob("*.elf")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def run_shard(options, work, n, left):
    strategy, words, runs = work.shard(n, left)
    began = time.monotonic()
    done = subprocess.run([options.shootdown, *words], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    line = {"name": work.name, "shard": n, "strategy": strategy,
            "images": images(options.shootdown), "schedules": runs,
            "seconds": round(time.monotonic() - began, 1), "found": 0,
            "command": " ".join(words)}
    if done.returncode != 0:
        text = done.stdout.decode(errors="replace")
        ran = re.findall(r"^(?:shootdown: (\d+) runs?, the last|#(\d+)\s)",
                         text, re.M)
        line["schedules"] = int("".join(ran[-1])) if ran else 0
        line["found"] = 1
        line["status"] = done.returncode
        line["said"] = text[-3000:]
    return line


def run(options):
    works = names_of(options.names)
    log = load(options.log)
    began = time.monotonic()
    at = 0
    while works and time.monotonic() - began < options.seconds:
        work = works[at % len(works)]
        left = work.goal - schedules(log, work.name)
        if left <= 0:
            works.remove(work)
            continue
        n = 1 + max((line["shard"] for line in log
                     if line["name"] == work.name), default=-1)
        line = run_shard(options, work, n, left)
        log.append(line)
        with open(options.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{work.name} shard {n} ({line['strategy']}): "
              f"{line['schedules']} in {line['seconds']} s, "
              f"{max(left - line['schedules'], 0)} left", flush=True)
        if line["found"]:
            print(line["said"])
            return 1
        at += 1 if options.alternate else 0
    return 0


def sample(options):
    for n, (strategy, *_) in enumerate(WAYS):
        line = run_shard(options, Work("race_mix"), n, SAMPLE)
        print(f"{n} {strategy}: {line['schedules']} in {line['seconds']} s")
        if line["found"]:
            print(line["command"], line["said"], sep="\n")
            return 1
    return 0


def left_of(options):
    log = load(options.log)
    for work in names_of(options.names):
        done = schedules(log, work.name)
        print(f"{work.name:<9} {done:>8} of {work.goal:>8}, "
              f"{max(work.goal - done, 0):>8} left")
    return 0


# --- the table

HEAD = """# Silence

Written by `contrib/silence.py table` from `museum/silence.jsonl`, one line of
which is one shard: its command, which can be given again, how long it took, on
which images. What is run is right, so that whatever is found is a false alarm of
the ledger or a mistake in the guest. The ledger is on, and a run ends with the
first thing that it, the program (which checks what it has) or the kernel says.

`race_mix` is the unmodified guest under `race_mix -- -k` (docs/FUZZING.md). The
shards go round through {ways} ways: strategies, half of them with shootdown
IPIs, two nodes or one, hardware that draws its liberties or takes nearly all of
them. The others are the negative controls (docs/LEDGER.md). Rates are those of
one process on a machine that did other things as well.

| what | | schedules | seconds | a second | findings | silent since |
|---|---|---|---|---|---|---|
"""

FOUND = """
## What was found

Each ended its shard; the runs went on when it was mended.

"""

# (name, shard): what it was.
KNOWN = {
    "race_mix 8": "S8, a mistake of the guest: with IPIs a CPU left the mask of "
                  "the old\n  address space before it had the new root, and a "
                  "table could go that its\n  walks still read. "
                  "`museum_ipi -u` tells it in 6 schedules.",
    "race_mix 22": "as 8, before that was mended (by what was said: S8, IPIs, a "
                   "table\n  freed, a CPU with the root loaded not asked).",
    "race_mix 24": "as 22.",
    "race_mix 28": "as 22.",
}


def row(name, what, lines, silent=None):
    runs = sum(line["schedules"] for line in lines)
    seconds = sum(line["seconds"] for line in lines)
    found = sum(line["found"] for line in lines)
    rate = f"{runs / seconds:.0f}" if seconds else "-"
    since = f" {silent} |" if silent is not None else ""
    return (f"| {name} | {what} | {runs} | {seconds:.0f} | {rate} | {found} |"
            f"{since}\n")


def table_text(log):
    text = HEAD.format(ways=len(WAYS))
    for work in names_of([]):
        lines = [line for line in log if line["name"] == work.name]
        if lines:
            text += row(work.name, work.what(), lines,
                        schedules(log, work.name))
    text += "\nN2 and N7 are traces only: no guest does that.\n"
    text += ("\n`race_mix` by strategy:\n\n| strategy | | schedules | seconds |"
             " a second | findings |\n|---|---|---|---|---|---|\n")
    mix = [line for line in log if line["name"] == "race_mix"]
    for strategy in sorted({line["strategy"] for line in mix}):
        for ipi in (False, True):
            lines = [line for line in mix if line["strategy"] == strategy and
                     ("--tlb ipi" in line["command"]) == ipi]
            if lines:
                text += row(strategy, "IPIs" if ipi else "broadcast", lines)
    found = [line for line in log if line["found"]]
    if found:
        text += FOUND
        for line in found:
            key = f"{line['name']} {line['shard']}"
            text += f"* {key}: {KNOWN.get(key, 'not known yet')}\n"
    return text


def table(options, write):
    text = table_text(load(options.log))
    if write:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    if not TABLE.exists() or TABLE.read_text(encoding="utf-8") != text:
        print("docs/SILENCE.md is not what contrib/silence.py table writes")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter,
        usage=argparse.SUPPRESS)
    parser.add_argument("action", choices=("run", "left", "table", "check",
                                           "sample"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--shootdown", default=str(ROOT / "build/shootdown"))
    parser.add_argument("--log", type=pathlib.Path, default=LOG)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--alternate", action="store_true")
    options = parser.parse_args()
    if options.action == "sample":
        return sample(options)
    if options.action == "run":
        return run(options)
    if options.action == "left":
        return left_of(options)
    return table(options, options.action == "table")


if __name__ == "__main__":
    sys.exit(main())
