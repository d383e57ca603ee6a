#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one command under a time limit and judges its output.

  run.py [options] -- COMMAND...

Every option adds a condition; all must hold:
  --text FILE      standard output is exactly that of FILE, except that lines
                   that start with "INFO:" or two spaces are left out (numbers
                   that may differ from run to run); given more than once,
                   one of them must fit
  --line TEXT      a line of standard output is TEXT
  --match REGEX    a line of standard output matches
  --error REGEX    a line of standard error matches
  --forbid REGEX   no line of standard output or standard error matches
  --tap            standard output holds TAP: as many "ok" lines as all "1..N"
                   plans announce, at least one plan, no "not ok"
  --lock-order FILE  what debug=locks saw goes down FILE's table "Lock order"
  --tap-may-fail REGEX   with --tap: such a "not ok" line is no failure
  --status N[,N]   the exit status is one of these (default 0); a death by
                   signal is never accepted
  --timeout S      seconds until it is killed, which fails the test (60);
                   times $TEST_TIME_SCALE, which sanitizer builds set
  --repeat N       all of it N times
Exit status 0 or 1; on failure it prints what was expected and what came.
"""
import argparse
import difflib
import os
import re
import signal
import subprocess
import sys


def parse():
    if "--" not in sys.argv:
        sys.exit(__doc__)
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--line", action="append", default=[])
    parser.add_argument("--match", action="append", default=[])
    parser.add_argument("--error", action="append", default=[])
    parser.add_argument("--forbid", action="append", default=[])
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--lock-order")
    parser.add_argument("--tap-may-fail", action="append", default=[])
    parser.add_argument("--status", default="0")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args(sys.argv[1:split])
    options.timeout *= float(os.environ.get("TEST_TIME_SCALE", "1"))
    return options, sys.argv[split + 1:]


def run(command, timeout):
    """(status, stdout, stderr, timed_out); kills what is left of it."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True)
    late = False
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        late = True
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return (process.returncode, out.decode(errors="replace"),
            err.decode(errors="replace"), late)


def lines_of(text):
    return [line.rstrip("\r") for line in text.splitlines()]


def stable(text):
    return [line for line in lines_of(text)
            if not line.startswith(("INFO:", "  "))]


def judge_tap(lines, may_fail):
    plans = [int(m[1]) for m in (re.match(r"1\.\.(\d+)\b", line)
                                 for line in lines) if m]
    oks = sum(bool(re.match(r"ok\b", line)) for line in lines)
    wrong = []
    excused = 0
    for line in lines:
        if re.match(r"not ok\b", line):
            if any(re.search(pattern, line) for pattern in may_fail):
                excused += 1
            else:
                wrong.append(line)
        if line.startswith("Bail out!"):
            wrong.append(line)
    if not plans:
        wrong.append("no TAP plan (1..N)")
    elif sum(plans) != oks + excused + len(wrong):
        wrong.append(f"{sum(plans)} TAP checks planned, {oks} were ok")
    return wrong


def judge_lock_order(lines, document):
    """Every "# lock order: HELD TAKEN" goes down the document's table."""
    with open(document, encoding="utf-8") as file:
        section = file.read().split("\n## Lock order\n")[1].split("\n## ")[0]
    rank = {name: i for i, name in enumerate(
        re.findall(r"^\| `(\w+)` \|", section, re.M))}
    edges = [m.groups() for m in (
        re.match(r"# lock order: (\w+) (\w+)$", line) for line in lines) if m]
    if len(edges) < 20:
        return [f"{len(edges)} pairs of locks seen: is debug=locks on?"]
    return [f"{document}: no such pair of locks: {held}, then {taken}"
            for held, taken in edges
            if not rank.get(held, 1000) < rank.get(taken, -1)]


def judge(options, result):
    """The list of what is wrong."""
    status, out, err, late = result
    out_lines, err_lines = lines_of(out), lines_of(err)
    wrong = []
    if late:
        wrong.append(f"killed after {options.timeout:g} s")
    elif status < 0:
        wrong.append(f"died by signal {-status}")
    elif str(status) not in options.status.split(","):
        wrong.append(f"exit status {status}, expected {options.status}")
    differences = []
    for name in options.text:
        with open(name, encoding="utf-8") as file:
            want = stable(file.read())
        differences.append(list(difflib.unified_diff(
            want, stable(out), name, "got", lineterm="", n=1)))
    if differences and all(differences):
        wrong.extend(differences[0])
    for text in options.line:
        if text not in out_lines:
            wrong.append(f"no line: {text}")
    for pattern in options.match:
        if not any(re.search(pattern, line) for line in out_lines):
            wrong.append(f"no line of stdout matches: {pattern}")
    for pattern in options.error:
        if not any(re.search(pattern, line) for line in err_lines):
            wrong.append(f"no line of stderr matches: {pattern}")
    if options.lock_order:
        wrong.extend(judge_lock_order(out_lines, options.lock_order))
    if options.tap:
        wrong.extend(judge_tap(out_lines, options.tap_may_fail))
    for pattern in options.forbid:
        for line in out_lines + err_lines:
            if re.search(pattern, line):
                wrong.append(f"forbidden line: {line}")
    return wrong


def main():
    options, command = parse()
    for turn in range(options.repeat):
        result = run(command, options.timeout)
        wrong = judge(options, result)
        if wrong:
            print("command:", " ".join(command))
            if options.repeat > 1:
                print(f"run {turn + 1} of {options.repeat}")
            print("\n".join(wrong))
            print("--- last lines of its output")
            print("\n".join(lines_of(result[1])[-20:]))
            print("--- last lines of its errors")
            print("\n".join(lines_of(result[2])[-20:]))
            return 1
    print(f"ok: {' '.join(command)} ({options.repeat} times)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
