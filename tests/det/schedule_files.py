#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `shootdown replay` and `minimize` make of schedule files: good ones,
damaged ones, those of another kernel, and those that somebody made up, with a
right hash at their end.

  schedule_files.py --shootdown PROGRAM [--seed N] [--count N]

Nothing may crash or hang, and every refusal is a sentence. Exit status 0 or 1.
"""
import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile

SCALE = float(os.environ.get("TEST_TIME_SCALE", "1"))
NEVER = re.compile(r"CRITICAL|[Aa]ssert|Sanitizer|runtime error")
KNOWN_STATUS = {0, 1, 2, 3, 4, 70, 77}
failures = []


def expect(ok, what):
    if not ok:
        failures.append(what)
        print("FAIL:", what)


class Files:
    """Schedules in a folder that goes away."""

    def __init__(self, shootdown, folder):
        self.shootdown = shootdown
        self.folder = folder
        self.done = 0

    def call(self, *words):
        """(status, what it said); a crash or a hang is a failure."""
        self.done += 1
        try:
            done = subprocess.run([self.shootdown, *words],
                                  stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False,
                                  timeout=60 * SCALE)
        except subprocess.TimeoutExpired:
            expect(False, f"{words} did not end")
            return None, ""
        said = done.stderr.decode(errors="replace")
        expect(done.returncode in KNOWN_STATUS,
               f"{words} ended with {done.returncode}: {said[-500:]}")
        expect(not NEVER.search(said), f"{words} said {said[-500:]}")
        return done.returncode, said

    def record(self, *words):
        path = os.path.join(self.folder, "good")
        status, said = self.call("run", *words, "--engine", "seeded",
                                 "--record", path)
        expect(status in (0, 77), f"recording ended with {status}: {said}")
        with open(path, "rb") as file:
            return file.read()

    def replay(self, data, *options):
        path = os.path.join(self.folder, "changed")
        with open(path, "wb") as file:
            file.write(data)
        return self.call("replay", "--quiet", *options, path)

    def minimize(self, data, *options):
        path = os.path.join(self.folder, "changed")
        with open(path, "wb") as file:
            file.write(data)
        return self.call("minimize", "--quiet", *options, path)


def sealed(body):
    """The bytes before the last line, with the hash that fits them."""
    return body + b"hash: " + hashlib.sha256(body).hexdigest().encode() + b"\n"


def body_of(data):
    return data[:data.rindex(b"hash: ")]


def header_set(data, key, value):
    """The schedule with `key: value`; None takes the line out."""
    line = b"" if value is None else f"{key}: {value}\n".encode()
    body, n = re.subn(rb"^" + key.encode() + rb": .*\n",
                      lambda _: line, body_of(data), flags=re.M)
    if n == 0:
        body = body.replace(b"\noutcome:", b"\n" + line + b"outcome:", 1)
    return sealed(body)


def header(data, key):
    return re.search(rb"^" + key.encode() + rb": (.*)$", data,
                     re.M)[1].decode()


def good_files(files):
    for words in (["hello", "--mem", "32M"],
                  ["reclaim_race", "--mem", "32M", "--snapshot-at", "1"],
                  ["reclaim_race", "--mem", "32M", "--snapshot-at", "1",
                   "--hw", "adversarial", "--tlb", "ipi"]):
        data = files.record(*words)
        for options in ([], ["--stats", "/dev/null"], ["--plugin", "count"],
                        ["--trace", "/dev/null"]):
            status, said = files.replay(data, *options)
            expect(status == 0 and "diverged" not in said,
                   f"{words} {options}: {status}, {said}")


def wrong_hashes(files, data):
    """What the file's own hash does not tell."""
    for key, sentence in (
            ("kernel-sha256", "of another kernel.*SHA-256"),
            ("initrd-sha256", "of another initial RAM disk.*SHA-256"),
            ("trace-hash", "diverged: .*trace hash at the end"),
            ("state-hash", "diverged: .*state hash at the end")):
        was = header(data, key)
        now = was[:-1] + ("0" if was[-1] != "0" else "1")
        status, said = files.replay(header_set(data, key, now))
        expect(status == 2 and re.search(sentence, said),
               f"another {key}: {status}, {said}")
    for key in ("kernel-sha256", "initrd-sha256", "run"):
        status, said = files.replay(header_set(data, key, None))
        expect(status == 2 and len(said) > 20, f"no {key}: {status}, {said}")


def changed_entries(files, data, rng, count):
    """One entry is another one: told with its place, at the end, or void."""
    tokens = list(re.finditer(rb"\b([a-z])(\d+)/(\d+)", body_of(data)))
    told = at_end = void = 0
    for token in rng.sample(tokens, min(count, len(tokens))):
        kind, value, n = token[1], int(token[2]), int(token[3])
        change = rng.choice(["value", "n", "kind"] if n > 2 else ["n", "kind"])
        if change == "value":
            value = value % (n - 1) + 1
        elif change == "n":
            n += 1
        else:
            kind = b"q" if kind != b"q" else b"v"
        body = body_of(data)
        body = (body[:token.start()] + kind + f"{value}/{n}".encode()
                + body[token.end():])
        status, said = files.replay(sealed(body))
        if re.search(r"diverged: .*step \d+, choice \d+, while vCPU \d+ was in "
                     r"the block at 0x[0-9a-f]+", said):
            told += status == 2
        elif re.search(r"diverged: .*hash at the end", said):
            at_end += status == 2 and change == "value"
        else:
            void += status == 0 and change == "value"
    expect(told + at_end + void == min(count, len(tokens)),
           f"{count} changed entries: {told} told, {at_end} at the end, "
           f"{void} void")
    expect(told > 0, "no changed entry was told with its place")
    print(f"{told} changed entries were told with their place, {at_end} at "
          f"the end, {void} were void")


def damaged(files, data, rng, count):
    for _ in range(count):
        bit = rng.randrange(8 * len(data))
        bad = bytearray(data)
        bad[bit // 8] ^= 1 << bit % 8
        status, said = files.replay(bytes(bad))
        expect(status == 2 and len(said) > 20,
               f"bit {bit} flipped: {status}, {said}")
    for bad in (b"", b"\n", data[:100], data[:-1], data + b"\n", data[1:],
                b"\0" * 1000, bytes(range(256)) * 50, b"sd1:", b"sd1:aaaa\n",
                b"sd1:" + b"a" * 100000):
        for what in (files.replay, files.minimize):
            status, said = what(bad)
            expect(status == 2 and len(said) > 20,
                   f"{bad[:30]}...: {status}, {said}")
    for path in (files.folder, "/nonexistent/schedule", "/dev/null", "sd1:",
                 "sd1:!!!!", ""):
        status, said = files.call("replay", path)
        expect(status in (1, 2) and len(said) > 20,
               f"'{path}': {status}, {said}")


# What a run line or another header of anybody's may be.
HEADERS = [
    ("run", "hello"),
    ("run", "--engine=parallel hello"),
    ("run", ""),
    ("run", "'"),
    ("run", "--engine=seeded"),
    ("run", "--engine=seeded no_such_workload"),
    ("run", "--engine=seeded --kernel=/dev/zero"),
    ("run", "--engine=seeded --kernel=/dev/null"),
    ("run", "--engine=seeded --kernel=/"),
    ("run", "--engine=seeded --initrd=/dev/zero hello"),
    ("run", "--engine=seeded --record=/tmp/never-written hello"),
    ("run", "--engine=seeded --trace=/tmp/never-written hello"),
    ("run", "--engine=seeded --stats=/tmp/never-written hello"),
    ("run", "--engine=seeded --plugin=/tmp/never-loaded.so hello"),
    ("run", "--engine=seeded --cpus=0 hello"),
    ("run", "--engine=seeded --cpus=99999 hello"),
    ("run", "--engine=seeded --cpus=64 --mem=32M hello"),
    ("run", "--engine=seeded --cpus=1 --mem=32M hello"),
    ("run", "--engine=seeded --mem=999999999999G hello"),
    ("run", "--engine=seeded --mem=16M hello"),
    ("run", "--engine=seeded --runs=1000000 --snapshot-at=1 reclaim_race"),
    ("run", "--engine=seeded --snapshot-at=12345 --mem=32M hello"),
    ("run", "--engine=seeded --max-steps=1 --mem=32M hello"),
    ("run", "--engine=seeded --seed=1 --strategy=none hello"),
    ("run", "--engine=vtime --mem=32M hello"),
    ("run", "--engine=seeded --mem=32M hello -- " + "x " * 500),
    ("run", "--engine=seeded --mem=32M --append=" + "x" * 5000 + " hello"),
    ("run", "\\x00\\x0a"),
    ("without", "0"),
    ("without", "0,1,2,3"),
    ("without", "3"),
    ("without", "511,512,99999999999999999999,-1,x,,"),
    ("outcome", "finding"),
    ("outcome", "none"),
    ("outcome", "nonsense"),
    ("outcome", None),
    ("finding", "-1"),
    ("steps", "18446744073709551615"),
    ("steps", "x"),
    ("choices", "0"),
    ("choices", "99999999999999999999"),
    ("trace-hash", "0"),
    ("version", "99"),
    ("engine", ""),
]


def made_up(files, data):
    for key, value in HEADERS:
        bad = header_set(data, key, value)
        for what in (files.replay, files.minimize):
            status, said = what(bad)
            expect(status == 0 or len(said) > 20,
                   f"{key}: {value}: {status} without a sentence")
    expect(not os.path.exists("/tmp/never-written"),
           "a schedule made the program write a file")


def random_choices(files, data, rng, count):
    """Choices that no run would ask, in a file that is intact."""
    start = data.index(b"\n\n") + 2
    for _ in range(count):
        tokens, total = [], 0
        while total < 3000:
            if rng.randrange(2):
                gap = rng.randrange(1, 20)
                if tokens and tokens[-1].isdigit():
                    continue
                tokens.append(str(gap))
                total += gap
            else:
                n = rng.choice([2, 2, 2, 3, 4, 5, 9, 1024])
                tokens.append(f"{rng.choice('vqawpesitrlmdog')}"
                              f"{rng.randrange(1, n)}/{n}")
                total += 1
        body = re.sub(rb"^choices: .*$", f"choices: {total}".encode(),
                      data[:start], flags=re.M)
        body += " ".join(tokens).encode() + b"\n"
        status, said = files.replay(sealed(body))
        expect(status == 2 and "diverged" in said or
               re.search(r"line \d+, column \d+", said),
               f"random choices: {status}, {said}")
        files.minimize(header_set(sealed(body), "outcome", "finding"),
                       "--max-runs", "20")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print("seed", options.seed)
    with tempfile.TemporaryDirectory(prefix="shootdown-") as folder:
        files = Files(options.shootdown, folder)
        good_files(files)
        data = files.record("reclaim_race", "--mem", "32M", "--snapshot-at",
                            "1")
        wrong_hashes(files, data)
        changed_entries(files, data, rng, options.count)
        damaged(files, data, rng, options.count)
        made_up(files, data)
        random_choices(files, data, rng, options.count)
        print(f"{files.done} calls, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
