#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one deterministic configuration in many processes, each in other
circumstances, and demands the same run of all.

  same.py --shootdown PROGRAM [--runs N] [--timeout S] [--only NAMES]
          [--expect-status N] -- WORDS AFTER run

The same: the trace hash, the steps and the choices that -v prints, and every
byte of the guest's console. Run i is made in circumstance i of a fixed list
(see CIRCUMSTANCES: traces, plugins, statistics, other address spaces,
environments, loads, ...), then from its beginning again; --only names some of
them. Exit status 0 or 1.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SUMMARY = re.compile(
    r"the last: (\d+) steps, (\d+) choices, trace ([0-9a-f]{16})")

# name -> (words before the program, options of run, environment)
BIG = {f"PADDING_{i}": "x" * 4000 for i in range(20)}
CIRCUMSTANCES = {
    "nothing": ([], [], {}),
    "setarch": (["setarch", "-R"], [], {}),
    "trace": ([], ["--trace", "{dir}/trace.json"], {}),
    "count": ([], ["--plugin", "count"], {}),
    "environment": ([], [], BIG),
    "tlbstat": ([], ["--plugin", "tlbstat"], {}),
    "stats": ([], ["--stats", "{dir}/stats.json"], {}),
    "execlog": ([], ["--plugin", "execlog,limit=2000"], {}),
    "load": ([], [], {}),
    "timeout": ([], ["--timeout", "3000"], {}),
    "one_core": (["taskset", "-c", "0"], [], {}),
    "record": ([], ["--record", "{dir}/run.schedule"], {}),
    "nice": (["nice", "-n", "19"], [], {}),
    "allocator": ([], [], {"MALLOC_PERTURB_": "165",
                           "MALLOC_MMAP_THRESHOLD_": "4096"}),
    "everything": ([], ["--trace", "{dir}/all.json", "--plugin", "count",
                        "--plugin", "tlbstat", "--stats", "{dir}/all.stats"],
                   BIG),
}


@contextlib.contextmanager
def busy(wanted):
    """Keeps the cores from being ours alone while it lasts."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
             for _ in range(os.cpu_count() or 1)] if wanted else []
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def usable(name):
    before = CIRCUMSTANCES[name][0]
    if not before:
        return True
    if not shutil.which(before[0]):
        return False
    return subprocess.run(before + ["true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def run_once(options, words, name):
    """(what must be the same, standard error)."""
    before, extra, environment = CIRCUMSTANCES[name]
    split = words.index("--") if "--" in words else len(words)
    with tempfile.TemporaryDirectory(prefix="shootdown-") as folder:
        extra = [word.format(dir=folder) for word in extra]
        command = (before + [options.shootdown, "run", "-v"] + words[:split]
                   + extra + words[split:])
        with busy(name == "load"):
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True,
                check=False, timeout=options.timeout,
                env={**os.environ, **environment})
        error = done.stderr.decode(errors="replace")
        found = SUMMARY.search(error)
        if done.returncode != options.expect_status or not found:
            raise RuntimeError(f"{' '.join(command)}: status "
                               f"{done.returncode}\n{error[-2000:]}")
        if "--stats" in extra:
            with open(extra[extra.index("--stats") + 1],
                      encoding="utf-8") as file:
                json.load(file)
        if name == "execlog" and len(error.splitlines()) < 2000:
            raise RuntimeError("execlog has seen nothing")
    return found.groups(), done.stdout


def main():
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--runs", type=int, default=len(CIRCUMSTANCES))
    parser.add_argument("--only")
    parser.add_argument("--timeout", type=float, default=100)
    parser.add_argument("--expect-status", type=int, default=0)
    options = parser.parse_args(sys.argv[1:split])
    words = sys.argv[split + 1:]
    scale = float(os.environ.get("TEST_TIME_SCALE", "1"))
    options.timeout *= scale

    names = options.only.split(",") if options.only else list(CIRCUMSTANCES)
    names = [name for name in names if usable(name)]
    first = None
    for i in range(options.runs):
        name = names[i % len(names)]
        same = run_once(options, words, name)
        if first is None:
            first = same
        elif same[0] != first[0]:
            print(f"run {i + 1} ({name}) has steps, choices, trace "
                  f"{same[0]}; the first one had {first[0]}")
            return 1
        elif same[1] != first[1]:
            print(f"run {i + 1} ({name}): another console:\n"
                  f"{same[1].decode(errors='replace')}\nthe first one:\n"
                  f"{first[1].decode(errors='replace')}")
            return 1
    if not first[1]:
        print("the console was empty")
        return 1
    steps, choices, trace = first[0]
    print(f"ok: {options.runs} processes, {', '.join(names[:options.runs])}: "
          f"{steps} steps, {choices} choices, trace {trace}, "
          f"{len(first[1])} bytes of console")
    return 0


if __name__ == "__main__":
    sys.exit(main())
