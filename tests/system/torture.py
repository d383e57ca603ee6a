#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the bundled guest's races under combinations of everything that can be
chosen: engine, strategy, hardware, back end, Linux release, and the kernel's
own switches, always with debug=locks,mm.

A case is its number: the same number is the same command in every run, drawn
from the tables below. What fails is printed as a command to repeat; a failed
deterministic run leaves a schedule in --keep, for `shootdown replay` and
`shootdown minimize`. The exit status is 1 if a case failed.

  torture.py --shootdown build/shootdown --seconds 600 --jobs 2
  torture.py --shootdown build/shootdown --case 1234
"""

import argparse
import concurrent.futures
import os
import random
import re
import shlex
import subprocess
import sys
import time

# What the kernel says when it found something wrong with itself, also where
# the run went on.
UNFINISHED = "scheduling points (--max-steps)"
BAD = re.compile(r"^(panic|lock order|mm: I\d|race_mix: FINDING|.*: leak|"
                 r".*not known, .* stays)", re.M)

STRATEGIES = ["random", "random", "pct:3", "pct:5", "pos", "surw", "chaos"]

BACK_ENDS = [
    ("broadcast", []),
    ("broadcast", []),
    ("ipi", []),
    ("ipi", ["--filter", "stale"]),
    ("ipi", ["mask=lazy"]),
    ("ipi", ["--filter", "stale", "mask=lazy"]),
    ("broadcast", ["tlb=invlpgb"]),
]

# Each is added with the odds given.
SWITCHES = [
    (0.25, ["kpti=on"]),
    (0.25, ["asid_bits=3"]),
    (0.15, ["asid_bits=4"]),
    (0.2, ["tlbirange=off"]),
    (0.2, ["repeat_tlbi=on"]),
    (0.3, ["numa=fake=2"]),
    (0.3, ["numa=fake=2", "numa_cpus=split"]),
    (0.1, ["lists=classic"]),
    (0.1, ["migrate=sync"]),
    (0.1, ["read_fault=dirty"]),
    (0.1, ["free_batch=list"]),
]


def words(rng, deterministic):
    """Options of `shootdown run` that every case has, and appended words."""
    tlb, more = rng.choice(BACK_ENDS)
    append = ["debug=locks,mm", "like=" + rng.choice(["6.1", "6.12", "7.2"])]
    options = ["--tlb", tlb, "--flush", rng.choice(["batched", "batched",
                                                    "sync"])]
    if more[:1] == ["--filter"]:
        options += more[:2]
        more = more[2:]
    append += more
    for odds, chosen in SWITCHES:
        if rng.random() < odds:
            append += [w for w in chosen if w not in append
                       and not any(a.split("=")[0] == w.split("=")[0]
                                   for a in append)]
    if any(a.startswith("numa=") for a in append) and rng.random() < 0.5:
        append.append("numa_balancing=on")
    cpus = rng.choice([2, 3, 4] if deterministic else [2, 4, 4, 8])
    options += ["--cpus", str(cpus)]
    if "kpti=on" in append and cpus > 2 or cpus > 6:
        append = [a for a in append if a != "asid_bits=3"]
    if "kpti=on" in append and cpus > 6:
        append = [a for a in append if a != "asid_bits=4"]
    if rng.random() < 0.3:
        options += ["--mem", rng.choice(["32M", "48M", "64M"])]
    return options, append


def race_mix(rng, deterministic, small):
    seed = str(rng.randrange(1 << 20))
    if deterministic:
        args = ["-S", seed, "-r", str(rng.choice([10, 20, 40])),
                "-p", str(rng.choice([4, 8, 24])),
                "-w", str(rng.choice([2, 4, 8]))]
        if rng.random() < 0.6:
            return True, args + ["-q", "-c", "-n", "1",
                                 "-t", rng.choice(["2", "3"])]
        return True, args + ["-n", "2", "-t", rng.choice(["1", "2"])]
    # What does not fit into memory and swap kills somebody, rightly.
    args = ["-S", seed, "-n", rng.choice(["1", "2", "3", "6"][:4 - small]),
            "-t", rng.choice(["1", "2", "3"][:3 - small]),
            "-r", str(rng.choice([50, 100, 300])),
            "-p", str(rng.choice([4, 24, 64][:3 - small])),
            "-w", str(rng.choice([2, 16, 64]))]
    if rng.random() < 0.6:
        args += ["-m", str(rng.choice([160, 250, 400, 800]))]
    return False, args


def reclaim_race(rng, deterministic, _):
    if deterministic:
        return True, ["-b", "8"] if rng.random() < 0.5 else []
    return False, ["-r", "8"]


# Name, odds with a parallel engine, odds with a deterministic one, arguments.
PROGRAMS = [
    ("race_mix", 12, 12, race_mix),
    ("reclaim_race", 1, 4, reclaim_race),
    ("migrate_race", 1, 3, lambda rng, d, _: (d, [])),
    ("huge_race", 1, 3, lambda rng, d, _: (d, [])),
    ("drain_race", 1, 2, lambda rng, d, _: (d, [])),
    ("fork_churn", 1, 0, lambda *_: (False, ["-n", "2", "-r", "3"])),
    ("selftest", 1, 0, lambda *_: (False, [])),
    ("swap_bench", 1, 0, lambda *_: (False, ["-k", "2", "-p", "64",
                                                 "-t", "2", "-v"])),
    ("numa_hint", 1, 0, lambda *_: (False, [])),
    ("migrate", 1, 0, lambda *_: (False, [])),
    ("tlb_flush", 1, 0, lambda *_: (False, [])),
    ("shared_unmap", 1, 0, lambda *_: (False, [])),
    ("demotion", 1, 0, lambda *_: (False, [])),
    ("move_pages", 1, 0, lambda *_: (False, [])),
    ("pageout", 1, 0, lambda *_: (False, [])),
]


def command(shootdown, number, keep, only):
    """The words of case `number`."""
    rng = random.Random("case %d" % number)
    deterministic = rng.random() < 0.5
    programs = [p for p in PROGRAMS if only is None or p[0] in only]
    weights = [p[2] if deterministic else p[1] for p in programs]
    if sum(weights) == 0:
        deterministic = not deterministic
        weights = [p[2] if deterministic else p[1] for p in programs]
    name, _, _, arguments = rng.choices(programs, weights)[0]
    options, append = words(rng, deterministic)
    if name == "migrate_race" and not any(a.startswith("numa=")
                                          for a in append):
        append.append("numa=fake=2")
    repeat, args = arguments(rng, deterministic, "--mem" in options)
    if deterministic:
        options += ["--engine", "seeded", "--seed", str(rng.randrange(1 << 32)),
                    "--strategy", rng.choice(STRATEGIES),
                    "--hw", rng.choice(["random", "random", "adversarial",
                                        "eager"])]
        if repeat:
            options += ["--snapshot-at", "1", "--runs", "12",
                        "--max-steps", "4000000"]
        if keep is not None:
            options += ["--record", os.path.join(keep, "%d.sd" % number)]
    return ([shootdown, "run", name, "--timeout", "0"]
            + options + ["--append", " ".join(append)]
            + (["--"] + args if args else []))


def run_case(arguments, number):
    """Runs it; what was wrong, or None, and what it printed."""
    cmd = command(arguments.shootdown, number, arguments.keep, arguments.only)
    try:
        done = subprocess.run(cmd, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace",
                              stdin=subprocess.DEVNULL, check=False,
                              timeout=arguments.timeout)
    except subprocess.TimeoutExpired as e:
        text = e.stdout.decode(errors="replace") if e.stdout else ""
        return cmd, "still running after %d s" % arguments.timeout, text
    found = BAD.search(done.stdout)
    wrong = None
    if done.returncode == 70 and UNFINISHED in done.stdout:
        wrong = UNFINISHED
    elif done.returncode != 0:
        wrong = "exit status %d" % done.returncode
    elif found is not None:
        wrong = "it said '%s'" % found.group(0)
    record = os.path.join(arguments.keep or "", "%d.sd" % number)
    if wrong is None and arguments.keep and os.path.exists(record):
        os.unlink(record)
    return cmd, wrong, done.stdout


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--first", type=int, default=0,
                        help="number of the first case")
    parser.add_argument("--count", type=int, help="so many cases")
    parser.add_argument("--seconds", type=float,
                        help="begin no case after so many seconds")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=300,
                        help="of a case, in seconds; more is a hang")
    parser.add_argument("--case", type=int, help="this one only, aloud")
    parser.add_argument("--only", action="append", metavar="PROGRAM")
    parser.add_argument("--keep", metavar="DIR",
                        help="schedules and outputs of what failed go there")
    parser.add_argument("--print", action="store_true",
                        help="say the commands, run nothing")
    arguments = parser.parse_args()

    if arguments.case is not None:
        arguments.first, arguments.count = arguments.case, 1
    if arguments.keep is not None:
        os.makedirs(arguments.keep, exist_ok=True)
    begin = time.monotonic()
    failed = finished = unfinished = 0

    def one(number):
        if (arguments.seconds is not None
                and time.monotonic() - begin >= arguments.seconds):
            return None
        return (number,) + run_case(arguments, number)

    if arguments.count is None and arguments.seconds is None:
        parser.error("one of --count, --seconds and --case")
    count = arguments.count if arguments.count is not None else 10 ** 6
    if arguments.print:
        for number in range(arguments.first, arguments.first + count):
            print(number, shlex.join(command(arguments.shootdown, number, None,
                                             arguments.only)))
        return 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        numbers = iter(range(arguments.first, arguments.first + count))
        pending = set()
        while True:
            while len(pending) < arguments.jobs:
                number = next(numbers, None)
                if number is None:
                    break
                pending.add(pool.submit(one, number))
            if not pending:
                break
            done, pending = concurrent.futures.wait(
                pending, return_when=concurrent.futures.FIRST_COMPLETED)
            results = [d.result() for d in done]
            if any(r is None for r in results):
                numbers = iter(())
            for result in results:
                if result is None:
                    continue
                number, cmd, wrong, text = result
                finished += 1
                if arguments.case is not None:
                    sys.stdout.write(text)
                if wrong == UNFINISHED:
                    unfinished += 1
                elif wrong is not None:
                    failed += 1
                    print("case %d: %s\n  %s" % (number, wrong,
                                                 shlex.join(cmd)), flush=True)
                    tail = [l for l in text.splitlines() if l][-12:]
                    print("\n".join("  | " + l[:160] for l in tail),
                          flush=True)
                    if arguments.keep is not None:
                        with open(os.path.join(arguments.keep, "%d.txt"
                                               % number), "w",
                                  encoding="utf-8") as f:
                            f.write(shlex.join(cmd) + "\n" + text)
    print("torture: %d cases, %d failed, %d not over by --max-steps, %d s"
          % (finished, failed, unfinished, time.monotonic() - begin))
    return 1 if failed or finished == unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
