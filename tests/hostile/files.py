#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Feeds shootdown broken kernels and initrds, made from good ones.

  files.py --shootdown FILE --kind elf|image|initrd --base FILE
           [--kernel FILE] [--count N] [--seed N] [--only N]

For initrd, --kernel boots and --base is broken. Every case must end within
its time limit, not by a signal, with a documented exit status, and must say
something on standard error when that status is 2. The same seed makes the
same files; --only N runs case N alone and keeps its file.
"""
import argparse
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile

STATUSES = {0, 1, 2, 3, 4, 70}
GUEST_SECONDS = 1     # --timeout: most broken kernels loop
HOST_SECONDS = 30     # and this is for the VMM to notice


def put(data, offset, fmt, value):
    size = struct.calcsize(fmt)
    if offset + size <= len(data):
        mask = (1 << 8 * size) - 1
        struct.pack_into(fmt, data, offset, value & mask)


EXTREMES = [0, 1, 7, 8, 0x3f, 0x40, 0x1000, 0x40000000, 0x40080000, 0x5fffffff,
            0x60000000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
            1 << 40, 1 << 47, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
            (1 << 64) - 0x1000]


def number(rng, bits):
    kind = rng.randrange(3)
    if kind == 0:
        return rng.choice(EXTREMES)
    if kind == 1:
        return rng.getrandbits(bits)
    return 1 << rng.randrange(bits)


def truncate(rng, data):
    small = [0, 1, 3, 4, 15, 16, 63, 64, 65, 119, 120, 200]
    size = rng.choice(small) if rng.random() < 0.5 else rng.randrange(len(data))
    return data[:size]


def flip(rng, data, limit=None):
    for _ in range(rng.choice([1, 2, 8, 64])):
        data[rng.randrange(limit or len(data))] ^= 1 << rng.randrange(8)
    return data


def break_elf(rng, data):
    kind = rng.randrange(6)
    if kind == 0:
        return truncate(rng, data)
    if kind == 1:
        return flip(rng, data, 64)
    if kind == 2:
        return flip(rng, data)
    phoff = struct.unpack_from("<Q", data, 32)[0]
    phnum = struct.unpack_from("<H", data, 56)[0]
    if kind == 3:  # a field of the file header
        offset, fmt = rng.choice([(16, "<H"), (18, "<H"), (24, "<Q"),
                                  (32, "<Q"), (40, "<Q"), (52, "<H"),
                                  (54, "<H"), (56, "<H"), (58, "<H"),
                                  (60, "<H"), (62, "<H")])
        put(data, offset, fmt, number(rng, 8 * struct.calcsize(fmt)))
        return data
    for _ in range(rng.choice([1, 1, 2, 5])):  # fields of a program header
        base = phoff + 56 * rng.randrange(max(phnum, 1))
        offset, fmt = rng.choice([(0, "<I"), (8, "<Q"), (16, "<Q"),
                                  (24, "<Q"), (32, "<Q"), (40, "<Q"),
                                  (48, "<Q")])
        put(data, base + offset, fmt, number(rng, 64))
    return data


def break_image(rng, data):
    kind = rng.randrange(5)
    if kind == 0:
        return truncate(rng, data)
    if kind == 1:
        return flip(rng, data, 64)
    if kind == 2:
        return flip(rng, data)
    if kind == 3:
        put(data, rng.choice([8, 16, 24]), "<Q", number(rng, 64))
        return data
    put(data, 0, "<I", rng.getrandbits(32))
    return data


def break_initrd(rng, data):
    kind = rng.randrange(5)
    if kind == 0:
        return truncate(rng, data)
    if kind == 1:
        return flip(rng, data)
    if kind == 2:  # hex digits of a newc header
        at = [i for i in range(0, len(data) - 110, 4)
              if data[i:i + 6] == b"070701"]
        base = rng.choice(at) if at else 0
        field = 6 + 8 * rng.randrange(13)
        data[base + field:base + field + 8] = rng.choice(
            [b"ffffffff", b"00000000", b"7fffffff", b"0000000g", b"80000000"])
        return data
    if kind == 3:
        return bytearray(rng.getrandbits(8) for _ in range(rng.randrange(4096)))
    return data + bytearray(b"070701" + b"f" * rng.randrange(200))


BREAK = {"elf": break_elf, "image": break_image, "initrd": break_initrd}


def run(command):
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=HOST_SECONDS)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, b"", b""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--kind", choices=BREAK, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--kernel")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    o = parser.parse_args()
    with open(o.base, "rb") as file:
        base = file.read()
    print(f"seed {o.seed}, {o.count} files from {o.base}")
    seen = {}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = range(o.count) if o.only is None else [o.only]
        for case in cases:
            rng = random.Random(f"{o.seed}/{o.kind}/{case}")
            data = BREAK[o.kind](rng, bytearray(base))
            name = os.path.join("." if o.only is not None else folder,
                                f"hostile-{o.kind}-{case}")
            with open(name, "wb") as file:
                file.write(data)
            command = [o.shootdown, "run", "--cpus", "2", "--timeout",
                       str(GUEST_SECONDS)]
            if o.kind == "initrd":
                command += ["--kernel", o.kernel, "--initrd", name]
            else:
                command += ["--kernel", name]
            status, out, err = run(command)
            seen[status] = seen.get(status, 0) + 1
            wrong = None
            if status is None:
                wrong = f"not ended after {HOST_SECONDS} s"
            elif status < 0:
                wrong = f"died by signal {-status}"
            elif status not in STATUSES:
                wrong = f"exit status {status}"
            elif status == 2 and not err.strip():
                wrong = "exit status 2 without a word"
            if wrong or o.only is not None:
                bad += bool(wrong)
                print(f"case {case}: {wrong or status}")
                print("  " + " ".join(command))
                print("  " + err.decode(errors="replace")[-500:])
                print("  " + out.decode(errors="replace")[-300:])
            if o.only is None:
                os.unlink(name)
    print("exit statuses:", ", ".join(f"{k}: {v}" for k, v in
                                      sorted(seen.items(), key=str)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
