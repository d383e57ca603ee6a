#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one libFuzzer target for a while; a finding is a failure.

  run.py --target FILE --corpus DIR [--seconds N] [--length N] [--seed N]
         [--keep DIR]

The inputs in --corpus are run first; words for changing them are in the file of
the same name with .dict. New ones go to a directory that is
removed, or to --keep, from which a later run goes on. An input that breaks the
target is kept in the current directory and its name and content are printed.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

RUNS = 100_000_000  # the time ends it, as long as clocks go


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--seconds", type=int, default=7)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    o = parser.parse_args()

    seeds = sorted(os.listdir(o.corpus))
    if not seeds:
        sys.exit(f"no inputs in {o.corpus}")
    name = os.path.basename(o.target)
    with tempfile.TemporaryDirectory() as folder:
        keep = o.keep or os.path.join(folder, "new")
        os.makedirs(keep, exist_ok=True)
        command = [
            o.target, f"-max_total_time={o.seconds}", f"-runs={RUNS}",
            f"-seed={o.seed}", f"-max_len={o.length}", "-timeout=20",
            "-rss_limit_mb=4096", "-print_final_stats=1",
            f"-artifact_prefix={name}-"]
        if os.path.exists(o.corpus + ".dict"):
            command.append(f"-dict={o.corpus}.dict")
        command += [keep, o.corpus]
        # GLib's own pools would hide what is used after it was freed.
        environment = dict(os.environ, G_SLICE="always-malloc", TMPDIR=folder)
        run = subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=environment)
    text = run.stdout.decode(errors="replace")
    done = re.search(r"stat::number_of_executed_units:\s+(\d+)", text)
    coverage = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text)
    if run.returncode or not done:
        print(text[-6000:])
        print(f"{name}: exit status {run.returncode}")
        return 1
    if int(done[1]) < len(seeds):
        print(f"{name}: {done[1]} runs, but {len(seeds)} seeds")
        return 1
    print(f"{name}: {done[1]} runs, {coverage[-1][0]} edges, "
          f"{coverage[-1][1]} features, {coverage[-1][2]} inputs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
