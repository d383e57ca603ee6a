#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A scenario under libFuzzer or AFL++: a planted bug is found, and its absence.

  engines.py --engine libfuzzer|afl --target FILE --shootdown FILE
             [--seconds N]

Who meets reclaim's pending invalidations with another vCPU's DSB (--drain dsb)
is found out by the fuzzer, AFL++ from an input that shows nothing; what it kept shows
the same again, and the line for `replay` as well. With --drain mm it finds
nothing in --seconds, but new coverage.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

OPTIONS = ["--cpus", "4", "--append", "fault_drain=yes", "--hw", "typical",
           "--hw-defer", "on", "drain_race", "--drain"]
PATIENCE = 60  # seconds for the planted bug; it takes one or two
SEED = "1"


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, **more)
    return done.returncode, done.stdout.decode(errors="replace")


def fail(text, output=""):
    sys.exit(f"{output[-3000:]}\n{text}")


class LibFuzzer:
    def __init__(self, target):
        self.target = target

    def fuzz(self, folder, seconds, options):
        """(names of artifacts, inputs in the corpus, executions, output)"""
        corpus = os.path.join(folder, "corpus")
        os.makedirs(corpus)
        status, text = run(
            [self.target, corpus, f"-max_total_time={seconds}", "-seed=" + SEED,
             "-max_len=4096", "-len_control=0", "-print_final_stats=1",
             f"-artifact_prefix={folder}/", "--"] + options)
        found = [os.path.join(folder, name) for name in os.listdir(folder)
                 if name.startswith("crash-")]
        if status != (77 if found else 0):
            fail(f"exit status {status}, {len(found)} artifacts", text)
        runs = re.search(r"number_of_executed_units: (\d+)", text)
        return found, len(os.listdir(corpus)), int(runs[1]), text

    def again(self, artifact, options):
        return run([self.target, artifact, "--"] + options)[1]


class Afl:
    def __init__(self, target):
        self.target = target

    def begin(self, path, options):
        """AFL++ wants an input that does not fail: the plain run, or another."""
        rng = random.Random(SEED)
        for length in [1] + [64] * 40:
            with open(path, "wb") as file:
                file.write(bytes(length) if length == 1 else
                           bytes(rng.randrange(256) for _ in range(length)))
            if "shootdown: " not in self.again(path, options):
                return
        fail("no input to begin with: each of 41 fails at once")

    def fuzz(self, folder, seconds, options):
        first, out = os.path.join(folder, "in"), os.path.join(folder, "out")
        os.makedirs(first)
        self.begin(os.path.join(first, "first"), options)
        environment = dict(
            os.environ, AFL_NO_UI="1", AFL_SKIP_CPUFREQ="1",
            AFL_NO_AFFINITY="1", AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES="1",
            AFL_BENCH_UNTIL_CRASH="1")
        status, text = run(
            ["afl-fuzz", "-V", str(seconds), "-s", SEED, "-t", "5000",
             "-i", first, "-o", out, "--", self.target] + options,
            env=environment, stdin=subprocess.DEVNULL)
        out = os.path.join(out, "default")
        if status or not os.path.exists(os.path.join(out, "fuzzer_stats")):
            fail(f"afl-fuzz: exit status {status}", text)
        with open(os.path.join(out, "fuzzer_stats"), encoding="utf-8") as file:
            stats = dict(re.findall(r"^(\w+)\s*: (.*)$", file.read(), re.M))
        if stats["stability"] != "100.00%":
            fail(f"stability {stats['stability']}", text)
        crashes = os.path.join(out, "crashes")
        found = [os.path.join(crashes, name) for name in os.listdir(crashes)
                 if name.startswith("id:")]
        return (found, int(stats["corpus_count"]), int(stats["execs_done"]),
                text)

    def again(self, artifact, options):
        with open(artifact, "rb") as file:
            return run([self.target] + options, stdin=file)[1]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--engine", choices=["libfuzzer", "afl"],
                        required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--seconds", type=int, default=8)
    o = parser.parse_args()
    engine = {"libfuzzer": LibFuzzer, "afl": Afl}[o.engine](o.target)

    with tempfile.TemporaryDirectory() as folder:
        options = OPTIONS + ["dsb"]
        found, _, runs, text = engine.fuzz(os.path.join(folder, "bad"),
                                           PATIENCE, options)
        if not found:
            fail(f"--drain dsb: nothing found in {runs} runs", text)
        text = engine.again(found[0], options)
        line = re.search(r"^again +shootdown replay(?: \\\n)? *"
                         r"(sd1:\w+)$", text, re.M)
        if not line or "S2 (S5)" not in text:
            fail(f"{os.path.basename(found[0])} does not show it again", text)
        status, text = run([o.shootdown, "replay", line[1]])
        if status != 77 or "S2 (S5)" not in text:
            fail(f"the replay ends with {status}", text)
        print(f"--drain dsb: found in {runs} runs, shown again, replayed")

        found, corpus, runs, text = engine.fuzz(
            os.path.join(folder, "good"), o.seconds, OPTIONS + ["mm"])
        if found:
            fail("--drain mm: " + engine.again(found[0], OPTIONS + ["mm"]))
        if corpus < 3 or runs < 20:
            fail(f"{runs} runs, {corpus} inputs: no coverage", text)
        print(f"--drain mm: nothing found in {runs} runs, {corpus} inputs kept")


if __name__ == "__main__":
    main()
