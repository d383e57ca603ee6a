#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shootdown fuzz` from outside: finds, repeats, merges, refuses.

  fuzz.py SHOOTDOWN PART

PART is one of the functions below that begin with part_. Prints what it saw;
exit status 0 or 1.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

SCALE = float(os.environ.get("TEST_TIME_SCALE", "1"))
SHOOTDOWN = os.path.abspath(sys.argv[1])
# Closes the window that Linux leaves open, which is no planted bug.
RACE = ["reclaim_race", "--mem", "64M", "--append", "fault_drain=yes"]
DRAIN = ["drain_race", "--mem", "64M", "--cpus", "3", "--append",
         "fault_drain=yes", "-ignore_rules=S10"]
problems = []


def expect(ok, what):
    if not ok:
        problems.append(what)
        print("FAIL:", what)


def call(*words, status=None, cwd="."):
    done = subprocess.run([SHOOTDOWN, *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          cwd=cwd, timeout=100 * SCALE, check=False)
    text = done.stdout.decode(errors="replace")
    if status is not None:
        expect(done.returncode == status, f"{' '.join(words)}: status "
               f"{done.returncode}, not {status}:\n{text[-2000:]}")
    return done.returncode, text


def fuzz(*words, **more):
    return call("fuzz", *words, **more)


def without_rates(text):
    return re.sub(r"exec/s: \d+|rss: \d+Mb|in \d+ ms", "", text)


def sha1_of(path):
    with open(path, "rb") as file:
        return hashlib.sha1(file.read()).hexdigest()


def paste(text, cwd):
    """What the report says shows it again, by a shell; the words, too."""
    at = re.search(r"^again +((?:.*\\\n)*.*)$", text, re.M)
    line = at[1] if at else "false # no line"
    done = subprocess.run(
        ["bash", "-c", 'shootdown() { "$0" "$@"; }\n' + line, SHOOTDOWN],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, cwd=cwd, timeout=100 * SCALE, check=False)
    expect(done.returncode == 77,
           f"{line}\n{done.returncode}: {done.stdout.decode()[-1000:]}")
    return line


def part_finds(folder):
    """Planted bugs from cold, with what they leave."""
    for words, rules in ((RACE + ["--bug", "free-before-flush"], "S1"),
                         (DRAIN + ["--drain", "dsb"], "S[125]")):
        _, text = fuzz(*words, "-seed=1", "-runs=300", "-minimize_runs=60",
                       status=77, cwd=folder)
        expect(re.search(rf"^==SHOOTDOWN: stale: {rules} ", text, re.M),
               f"{words}: {text}")
        expect("stability: 100%" in text, f"{words}: {text}")
        expect(text.startswith("INFO: Seed: 1\n"), text)
        found = re.search(r"Test unit written to (\./stale-([0-9a-f]{40}))\n",
                          text)
        small = re.search(r"Small one written to (\S+)\n", text)
        counts = re.search(r"(\d+) preemptions, (\d+) steps \(from (\d+), "
                           r"(\d+)\)", text)
        if not found or not small or not counts:
            expect(False, f"{words}: no artifact:\n{text}")
            continue
        print(f"{words[0]}: {counts[0]}")
        expect(int(counts[1]) <= int(counts[3]), text)
        expect(sha1_of(os.path.join(folder, found[1])) == found[2],
               f"{found[1]} is not named by its contents")
        expect(found[1] in paste(text, folder), "again is another file")
        for path in (found[1], small[1]):
            call("replay", "--quiet", path, status=77, cwd=folder)
            text = fuzz(*words, path, status=77, cwd=folder)[1]
        paste(text, folder)  # a line that needs no file
        call("minimize", "--quiet", "--max-runs", "20", found[1], status=0,
             cwd=folder)
        fuzz(*words, "-minimize_crash=1", "-runs=10",
             "-exact_artifact_path=exact", found[1], status=77, cwd=folder)
        call("replay", "--quiet", "exact", status=77, cwd=folder)
    # The same file where the bug is not.
    fuzz(*DRAIN, found[1], status=0, cwd=folder)


def part_finds_nothing(folder):
    for words in (RACE, RACE + ["--tlb", "ipi"]):
        _, text = fuzz(*words, "-seed=1", "-runs=150", "-print_final_stats=1",
                       status=0, cwd=folder)
        done = re.search(r"^#(\d+)\tDONE   tlb: (\d+) sched: (\d+) corp: (\d+)"
                         r"/\S+ exec/s: \d+ depth: \d+ rss: \d+Mb$", text, re.M)
        expect(done and int(done[1]) == 151 and int(done[3]) > 300, text)
        expect("stat::number_of_executed_units: 151\n" in text, text)
    expect(os.listdir(folder) == [], f"files: {os.listdir(folder)}")


def part_repeats(folder):
    """One seed, the same text; another one, another."""
    texts = [without_rates(fuzz(*RACE, f"-seed={seed}", "-runs=60",
                                status=0, cwd=folder)[1])
             for seed in (3, 3, 4)]
    expect(texts[0] == texts[1], f"{texts[0]}\n--- is not ---\n{texts[1]}")
    expect(texts[0] != texts[2], "two seeds, the same run")


def part_shards(folder):
    """Shards find what the whole finds, and merge to the same coverage."""
    os.chdir(folder)
    for name in ("whole", "s0", "s1", "s2", "a", "b"):
        os.mkdir(name)
    words = [*RACE, "-strategy=random", "-seed=9", "-runs=45"]
    fuzz(*words, "whole", status=0)
    for i in range(3):
        fuzz(*words, f"-shard={i}/3", f"s{i}", status=0)
    union = set(os.listdir("s0")) | set(os.listdir("s1")) | \
        set(os.listdir("s2"))
    expect(set(os.listdir("whole")) <= union and os.listdir("whole"),
           "an input of the whole is in no shard")
    for name in union & set(os.listdir("whole")):
        expect(sha1_of(os.path.join("whole", name)) == name, name)
    covered = []
    for target, sources in (("a", ["whole"]), ("b", ["s0", "s1", "s2"])):
        text = fuzz(*RACE, "-merge=1", target, *sources, status=0)[1]
        covered.append(re.search(r"DONE   (tlb: \d+ sched: \d+)", text)[1])
        again = fuzz(*RACE, "-merge=1", target, *sources, status=0)[1]
        expect("MERGE-OUTER: 0 new files" in again, again)
    whole, shards = ([int(n) for n in re.findall(r"\d+", c)] for c in covered)
    expect(shards[0] >= whole[0] and shards[1] >= whole[1], f"{covered}")
    print("covered:", *covered)


def part_jobs(folder):
    os.mkdir(os.path.join(folder, "corpus"))
    _, text = fuzz(*RACE, "--bug", "free-before-flush", "-jobs=2", "-seed=1",
                   "-runs=100", "-minimize_runs=0", "-campaign=out", "corpus",
                   status=77, cwd=folder)
    expect(text.count("exited with exit code 77") == 2, text)
    for job in range(2):
        with open(f"{folder}/fuzz-{job}.log", encoding="utf-8") as log:
            expect("==SHOOTDOWN: stale: S1" in log.read(), f"job {job}")
        with open(f"{folder}/out/job-{job}/stats.json",
                  encoding="utf-8") as file:
            stats = json.load(file)
        expect(stats["findings"] == {"bugs": 1, "hangs": 0} and
               stats["shard"] == [job, 2], f"{stats}")
        with open(f"{folder}/out/job-{job}/fuzzer_stats",
                  encoding="utf-8") as file:
            expect(re.search(r"^execs_done +: \d+$", file.read(), re.M),
                   "fuzzer_stats")
        with open(f"{folder}/out/job-{job}/plot_data",
                  encoding="utf-8") as file:
            lines = file.read().splitlines()
        expect(len(lines) >= 2 and
               len(lines[0].split(",")) == len(lines[-1].split(",")) == 13,
               f"{lines}")
        expect(os.listdir(f"{folder}/out/job-{job}/crashes"), "no artifact")


def part_goes_on(folder):
    """One file for each kind, however often it is found."""
    _, text = fuzz(*RACE, "--bug", "local-instead-of-broadcast,free-before-flush",
                   "-seed=2", "-runs=60", "-keep_going=1", "-minimize_runs=0",
                   "-error_exitcode=33", "-artifact_prefix=a b/x-",
                   "-on_bug=cp \"$1\" copied", status=33, cwd=folder)
    told = re.findall(r"^==SHOOTDOWN: .*", text, re.M)
    paste(text, folder)
    files = os.listdir(os.path.join(folder, "a b"))
    expect(len(told) == len(files) >= 2 and
           all(re.match("x-(stale|lost)-", name) for name in files),
           f"{told}, {files}")
    expect(len({sha1_of(os.path.join(folder, "a b", name)) for name in files}) ==
           len(files), "two files are the same")
    expect(os.path.exists(os.path.join(folder, "copied")), text)
    print(*told, sep="\n")
    _, text = fuzz(*RACE, "-max_steps=50", "-seed=1", "-runs=3",
                   "-minimize_runs=0", status=70, cwd=folder)
    expect("==SHOOTDOWN: timeout: " in text, text)


def part_refuses(folder):
    os.mkdir(os.path.join(folder, "empty"))
    for words, sentence in (
            (["-dict=x"], "-dict is not supported: "),
            (["-use_value_profile=1"], "-use_value_profile is not supported"),
            (["-nonsense=1"], "there is no flag -nonsense"),
            (["-runs=x"], "-runs is 'x'"),
            (["-runs"], "-runs needs a value"),
            (["-seed=-1"], "-seed is '-1'"),
            (["-jobs=1000"], "-jobs is '1000': accepted is a number"),
            (["-shard=3/3"], "-shard is '3/3'"),
            (["-strategy=best"], "no strategy 'best'"),
            (["-strategy=dfs", "-shard=0/2"], "cannot be divided"),
            (["-ignore_rules=S99"], "-ignore_rules is 'S99'"),
            (["-merge=1"], "needs two directories"),
            (["-merge=1", "empty"], "needs two directories"),
            (["-minimize_crash=1"], "needs one file"),
            (["-minimize_crash=1", "-merge=1"], "exclude each other"),
            (["-fork=2", "-jobs=2"], "exclude each other"),
            (["-exact_artifact_path=x", "-keep_going=1"], "one file"),
            (["-artifact_prefix="], "needs a value"),
            (["nothing-there"], "neither a file nor a directory"),
            (["empty", SHOOTDOWN], "give one or the other"),
            (["--engine", "vtime"], "--engine"),
            (["--cpus", "0"], "--cpus")):
        text = fuzz("reclaim_race", *words, status=1, cwd=folder)[1]
        expect(sentence in text and text.startswith("shootdown: ") and
               text.count("\n") == 1, f"{words}: {text}")
    expect("WORKLOAD" not in fuzz(status=1)[1], "no target")
    fuzz("no_such_target", status=1, cwd=folder)
    for flag in ("-artifact_prefix", "-exact_artifact_path"):
        text = fuzz("reclaim_race", f"{flag}=/dev/null/x/y", status=2,
                    cwd=folder)[1]
        expect(f"{flag} is '/dev/null/x/y', but" in text, text)
    # A program without a scenario's beginning.
    text = fuzz("hello", "--mem", "32M", status=2, cwd=folder)[1]
    expect("never wrote the mark" in text, text)
    expect(os.listdir(folder) == ["empty"], f"files: {os.listdir(folder)}")
    lines = fuzz("--help", status=0)[1].splitlines()
    expect(max(len(line) for line in lines) <= 80, "help is too wide")


def main():
    parts = {name[5:]: fn for name, fn in globals().items()
             if name.startswith("part_")}
    if len(sys.argv) != 3 or sys.argv[2] not in parts:
        sys.exit(__doc__ + f"\nParts: {', '.join(parts)}")
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="shootdown-") as folder:
        parts[sys.argv[2]](folder)
        os.chdir(here)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
