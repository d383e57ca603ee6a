#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the deterministic engines: runs a second, restores, instructions.

  bench/determinism.py [--build DIR] [--repeat N] [--runs N] [--no-write]

Lines of one table are measured in turn, N times; the median is shown, and
ratios are of medians of one invocation. The table goes to standard output and,
between the two markers, into docs/PERFORMANCE.md. It judges nothing and fails
only where something did not run.
"""
import argparse
import datetime
import json
import os
import re
import resource
import statistics
import subprocess
import sys

import page

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGIN = "<!-- determinism: begin -->"
END = "<!-- determinism: end -->"
LIMIT = 300  # seconds for one command

SCENARIO = ["run", "reclaim_race", "--engine", "seeded", "--mem", "64M",
            "--snapshot-at", "1", "--quiet"]
RACES = {
    "eager hardware, broadcast": ["--hw", "eager"],
    "random hardware, broadcast": ["--hw", "random"],
    "random hardware, IPI": ["--hw", "random", "--tlb", "ipi"],
    "adversarial hardware, broadcast": ["--hw", "adversarial"],
}
SWAP = ["run", "swap_bench", "--quiet"]
ENGINES = {
    "parallel, one worker": ["--engine", "parallel", "--workers", "1"],
    "seeded, eager hardware": ["--engine", "seeded", "--hw", "eager"],
    "seeded, random hardware": ["--engine", "seeded", "--hw", "random"],
    "vtime": ["--engine", "vtime"],
}


def run(build, words):
    done = subprocess.run(
        [os.path.join(build, "shootdown"), *words], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT,
        check=False)
    out = done.stdout.decode(errors="replace")
    if done.returncode:
        sys.exit(f"determinism: 'shootdown {' '.join(words)}' ended with "
                 f"{done.returncode}:\n{out}")
    return out


def number(pattern, out):
    return float(re.search(pattern, out)[1].replace(",", ""))


def progress(text):
    print(text, end="", file=sys.stderr, flush=True)


def in_turn(title, repeat, commands, measure):
    """{name: [result of measure]}; every command once, then again."""
    values = {name: [] for name in commands}
    progress(title + " ")
    for _ in range(repeat):
        for name, words in commands.items():
            values[name].append(measure(words))
            progress(".")
    progress("\n")
    return {name: [statistics.median(column) for column in zip(*found)]
            for name, found in values.items()}


def race(build, runs):
    def measure(words):
        out = run(build, SCENARIO + words + ["--runs", str(runs), "--", "-b", "8"])
        return (number(r"([\d.]+) runs a second", out),
                number(r"([\d.]+) million instr", out),
                number(r"a restore takes ([\d.]+) us", out),
                number(r"puts (\d+) pages", out))
    return measure


def mips(build):
    def measure(words):
        out = run(build, SWAP + words + ["--stats", "-", "--", "-t", "3"])
        stats = json.loads(out.strip().splitlines()[-1])
        return (stats["time"]["instructions_per_second"] / 1e6,)
    return measure


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for index, row in enumerate(rows):
        lines.append("| " + " | ".join(
            cell.ljust(widths[i]) if i == 0 else cell.rjust(widths[i])
            for i, cell in enumerate(row)) + " |")
        if index == 0:
            lines.append("|" + "|".join(
                "-" * (w + 1) + ("-" if i == 0 else ":")
                for i, w in enumerate(widths)) + "|")
    return "\n".join(lines)


def race_table(found):
    rows = [("reclaim_race -b 8, seeded", "runs/s", "MIPS", "restore",
             "pages back")]
    for name, (runs, speed, restore, pages) in found.items():
        rows.append((name, f"{runs:.0f}", f"{speed:.0f}", f"{restore:.1f} us",
                     f"{pages:.0f}"))
    return table(rows)


def mips_table(found):
    base = found["parallel, one worker"][0]
    rows = [("swap_bench -t 3", "MIPS", "parallel = 1")]
    rows += [(name, f"{speed:.0f}", f"{speed / base:.2f}")
             for name, (speed,) in found.items()]
    return table(rows)


def many_vcpus(build):
    run(build, ["run", "hello", "--quiet", "--cpus", "512", "--engine",
                "vtime"])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2 ** 20
    return ("The largest of these processes, `hello` on 512 vCPUs in `vtime`, "
            f"took\n{peak:.1f} GiB.")


def heading(o):
    model = page.cpu_model()
    return (f"{datetime.date.today()}, {os.cpu_count()} cores ({model}), "
            f"median of {o.repeat}, load average before: "
            f"{os.getloadavg()[0]:.1f}.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3000,
                        help="of the scenario, each time")
    parser.add_argument("--no-write", action="store_true",
                        help="leave docs/PERFORMANCE.md as it is")
    o = parser.parse_args()
    head = heading(o)
    text = "\n\n".join([
        head,
        race_table(in_turn("reclaim_race", o.repeat, RACES,
                           race(o.build, o.runs))),
        mips_table(in_turn("swap_bench", o.repeat, ENGINES, mips(o.build))),
        many_vcpus(o.build)])
    print(text)
    if not o.no_write:
        page.write(text, BEGIN, END)


if __name__ == "__main__":
    main()
