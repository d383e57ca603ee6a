#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each hardware liberty does what it says, and nothing more.

  liberties.py SHOOTDOWN ELF      ELF: one of tests/guest/liberty_*.c

The program prints how often it saw what some liberty allows ("INFO: NAME N of
M") and FAIL lines for what none allows. It is run with all liberties off, with
each alone, and with all at once; the table says what must and may be seen.
Prints a line per run; exit status 0 or 1.
"""
import os
import re
import subprocess
import sys
import tempfile

KNOBS = ("prefetch", "evict", "defer", "pte-delay", "walk-cache",
         "asid-retain", "shared-tlb", "ipi-delay", "dbm", "multi-size",
         "repeat-tlbi", "preempt", "literal")
TYPICAL = ("walk-cache", "asid-retain", "literal")  # hw.inc

# outcome -> the knobs that, alone and on, always show it; those that may
SHOWN_BY = {
    "prefetch": (["prefetch"], []),
    "evict": (["evict"], []),
    "shared-tlb": (["shared-tlb", "prefetch"], []),
    "asid-retain": (["asid-retain"], []),
    # The page may be lost, and then it is the block's turn.
    "multi-size": (["multi-size"], ["evict"]),
    "defer": (["defer", "repeat-tlbi"], []),
    "defer-in-dsb": (["defer"], ["repeat-tlbi"]),
    "defer-other-dsb": (["defer", "repeat-tlbi"], []),
    "repeat-tlbi": (["repeat-tlbi"], []),
    "pte-delay": (["pte-delay"], []),
    "pte-delay-tlbi": (["pte-delay", "repeat-tlbi"], []),
    "walk-cache": (["walk-cache", "repeat-tlbi"], []),
    "literal-ttl": (["literal"], []),
    "literal-range": (["literal"], []),
    "dbm": (["dbm"], []),
    "dbm-af": (["dbm"], []),
    "dbm-dirty": (["dbm"], []),
    "dbm-dirty-cached": (["dbm"], []),
    "ipi-delay": (["ipi-delay"], []),
    "preempt": (["preempt"], []),
}
# vtime: an interrupt takes its time, a quantum is what the clocks say.
UNJUDGED_IN_VTIME = ("ipi-delay", "preempt")

problems = []


def run(title, options):
    """What was seen, summed up over all runs: outcome -> how often."""
    # What it does to its tables is wrong on purpose: that is for the ledger.
    command = [sys.argv[1], "run", "--kernel", sys.argv[2], "--cpus", "3",
               "--ledger", "off", *options]
    timeout = 60 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    result = subprocess.run(command, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=timeout, check=False)
    out = result.stdout.decode(errors="replace")
    seen = {}
    for name, count in re.findall(r"^INFO: (\S+) (\d+) of \d+", out, re.M):
        seen[name] = seen.get(name, 0) + int(count)
    wrong = re.findall(r"^FAIL: .*", out, re.M)
    if result.returncode != 0 or wrong or not seen or "RESULT: " not in out:
        problems.append(" ".join(command))
        wrong += out.splitlines()[-8:]
        wrong += result.stderr.decode(errors="replace").splitlines()[-8:]
        problems.append(f"  exit status {result.returncode}: " +
                        "\n  ".join(wrong))
    print(f"{title:<24}", " ".join(f"{name} {count}" for name, count
                                   in seen.items() if count) or "nothing")
    return seen


def judge(title, seen, must, may):
    for name, count in seen.items():
        if count and name not in may and name not in must:
            problems.append(f"{title}: '{name}' was seen {count} times and "
                            "must not be")
        if not count and name in must:
            problems.append(f"{title}: '{name}' was never seen")


def shown(knobs):
    must = [name for name, (always, _) in SHOWN_BY.items()
            if set(always) & set(knobs)]
    may = [name for name, (_, sometimes) in SHOWN_BY.items()
           if set(sometimes) & set(knobs)]
    return must, may


def alone(engine, extra):
    title = f"{engine}, none"
    judge(title, run(title, ["--engine", engine, "--hw", "eager"]), [], extra)
    for knob in KNOBS:
        title = f"{engine}, {knob}"
        must, may = shown([knob])
        seen = run(title, ["--engine", engine, "--hw", "eager",
                           f"--hw-{knob}", "on"])
        judge(title, seen, [name for name in must if name not in extra],
              [*may, *extra])


def drawn():
    """Only now and then, so that several runs are asked."""
    for knob in KNOBS:
        title = f"seeded, {knob} random"
        must, may = shown([knob])
        seen = run(title, ["--engine", "seeded", "--hw", "eager",
                           f"--hw-{knob}", "random", "--snapshot-at", "1",
                           "--runs", "4"])
        judge(title, seen, [], [*must, *may])
        own = [count for name, count in seen.items()
               if name.startswith(knob)]
        if own and not sum(own):
            problems.append(f"{title}: nothing of it was seen in 4 runs")


def together():
    """All at once: what only an erratum or a missing feature would show."""
    ordinary = [name for name in SHOWN_BY
                if name != "repeat-tlbi" and not name.startswith("dbm")]
    for engine, profile, runs in (("seeded", "random", 8),
                                  ("seeded", "adversarial", 4),
                                  ("vtime", "random", 4),
                                  ("vtime", "adversarial", 1)):
        options = ["--engine", engine, "--hw", profile, "--snapshot-at", "1",
                   "--runs", str(runs), "--max-steps", "20000000"]
        title = f"{engine}, {profile}"
        judge(title, run(title, options), [], ordinary)
        run(f"{title}, more", [*options, "--hw-dbm", "on", "--hw-shared-tlb",
                               "on", "--hw-repeat-tlbi", "random"])


def again(engine):
    """A run after two others from its snapshot, and the same from the start."""
    with tempfile.TemporaryDirectory() as folder:
        schedule = os.path.join(folder, "run.schedule")
        run(f"{engine}, recorded",
            ["--engine", engine, "--hw", "random", "--hw-dbm", "on",
             "--hw-shared-tlb", "on", "--hw-repeat-tlbi", "random",
             "--snapshot-at", "1", "--runs", "3", "--max-steps", "20000000",
             "--record", schedule])
        result = subprocess.run([sys.argv[1], "replay", schedule],
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        if result.returncode != 0:
            problems.append(f"{engine}: the replay differs: " +
                            result.stdout.decode(errors="replace")[-500:])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    alone("seeded", [])
    alone("vtime", UNJUDGED_IN_VTIME)
    drawn()
    together()
    again("seeded")
    again("vtime")
    must, _ = shown(TYPICAL)
    judge("parallel", run("parallel", []), must,
          ["defer", "defer-in-dsb", "defer-other-dsb", "preempt",
           "ipi-delay"])
    if problems:
        print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
