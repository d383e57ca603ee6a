#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one command to its end and judges the memory that it took.

  many.py --rss MIB --timeout S --line TEXT -- COMMAND

Exit status 0 if it ended with 0 in time, wrote that line, and its resident set
was never larger than MIB; sanitizers may take more of either.
"""
import argparse
import os
import resource
import subprocess
import sys


def main():
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rss", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--line", required=True)
    options = parser.parse_args(sys.argv[1:split])
    scale = float(os.environ.get("TEST_TIME_SCALE", "1"))
    try:
        done = subprocess.run(sys.argv[split + 1:], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False,
                              timeout=options.timeout * scale)
    except subprocess.TimeoutExpired:
        print(f"it did not end within {options.timeout * scale:g} s")
        return 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    mib = used.ru_maxrss / 1024
    lines = done.stdout.decode(errors="replace").splitlines()
    print(f"status {done.returncode}, {mib:.0f} MiB, "
          f"{used.ru_utime + used.ru_stime:.1f} s of processor time")
    if (done.returncode != 0 or mib > options.rss * scale
            or options.line not in [line.rstrip("\r") for line in lines]):
        print("\n".join(lines[-20:]))
        print(done.stderr.decode(errors="replace")[-2000:])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
