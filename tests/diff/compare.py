#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one program here and on QEMU: is all that it sees the same?

  compare.py --shootdown PROGRAM --qemu PROGRAM --image FILE
             [--seed N] [--first N] [--tables N] [--cpus N]
             [--timeout S] [--show N] [--operations N] [--options=WORDS]
             [--document FILE]

The image is one of this folder's: it makes random operations from a seed, in
tables that depend on the seed and their number only, and prints a line with a
hash for each. The first tables whose lines differ (--show, 1) are run again on
both, with all their operations printed; this prints those that differ
(--operations, 5) with both answers. For the MMU's program it adds the
registers and the walk: the descriptors level by level, as they are in memory.

--document writes the figures between the two marks of a Markdown file. Exit
status 0 (no difference), 1 (differences), 2 (one of the machines did not run
the program to its end), 77 (there is no QEMU).
"""
import argparse
import os
import re
import subprocess
import sys
import time

TABLE = re.compile(r"table (\d+) ops (\d+) hash (0x[0-9a-f]+)$")
ADDRESS = 0x0000_FFFF_FFFF_F000
FAULTS = {0: "address size", 1: "translation", 2: "access flag",
          3: "permission"}
# What came before a phase (enum forget).
FORGET = ["a change of ASID", "TLBI ASIDE1", "TLBI VAE1", "TLBI VAAE1",
          "TLBI RVAE1", "TLBI RVAAE1", "TLBI VMALLE1"]
# Of a table descriptor, and of a leaf: name and bit.
TABLE_BITS = {"PXNTable": 59, "UXNTable": 60, "APTable0": 61, "APTable1": 62}
LEAF_BITS = {"AP1": 6, "AP2": 7, "AF": 10, "nG": 11, "DBM": 51, "PXN": 53,
             "UXN": 54}


def commands(options, words):
    """name -> command that runs the image with these bootargs; one host thread
    each: CPUs that wait for each other are slow where it has few cores"""
    named = "--engine" in options.options or "--workers" in options.options
    workers = [] if named else ["--workers", "1"]
    return {
        "shootdown": [
            options.shootdown, "run", "--kernel", options.image, "--cpus",
            str(options.cpus), *workers, "--mem", "512M", "--timeout", "0",
            "--append", words, *options.options.split()],
        "qemu": [
            options.qemu, "-M", "virt,gic-version=3", "-cpu", "max", "-smp",
            str(options.cpus), "-m", "512M", "-accel", "tcg,thread=single",
            "-display", "none", "-monitor", "none", "-serial", "stdio",
            "-nic", "none", "-no-reboot", "-kernel", options.image, "-append",
            words],
    }


class Failed(Exception):
    """A machine did not run the program to its end."""


def run(name, command, timeout):
    """(lines, seconds)"""
    start = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, check=False)
    except subprocess.TimeoutExpired as late:
        tail = (late.stdout or b"").decode(errors="replace")[-300:]
        raise Failed(f"{name}: killed after {timeout:g} s; it ended in\n"
                     f"{tail}") from late
    lines = done.stdout.decode(errors="replace").replace("\r", "").split("\n")
    if done.returncode != 0 or not any(
            line.startswith("end: ") for line in lines):
        raise Failed(f"{name}: status {done.returncode}, without its last "
                     f"line; it ended in\n" + "\n".join(lines[-4:]) +
                     done.stderr.decode(errors="replace")[-1000:])
    return lines, time.monotonic() - start


def run_both(options, words):
    """name -> (lines, seconds); one after the other"""
    return {name: run(name, command, options.timeout)
            for name, command in commands(options, words).items()}


def hashes(lines):
    return {int(m[1]): (int(m[2]), m[3])
            for m in map(TABLE.match, lines) if m}


def counts(lines):
    """kind of operation -> outcome -> how often"""
    result = {}
    for line in lines:
        words = line.split()
        if len(words) == 4 and words[0] == "count":
            result.setdefault(words[1], {})[words[2]] = int(words[3])
    return result


# --- one table, in detail ---

def parse_op(line):
    words = line.split()
    op = {"number": int(words[1]), "kind": words[2]}
    for name, value in zip(words[3::2], words[4::2]):
        op[name] = int(value, 0)
    return op


def parse_verbose(lines):
    """(registers, address -> descriptor, operations); an operation has the
    roots of its phase"""
    registers, memory, ops, phases = {}, {}, [], []
    for line in lines:
        words = line.split()
        if line.startswith("  desc "):
            memory[int(words[1], 16)] = int(words[2], 16)
        elif line.startswith("  phase "):
            phases.append({name: int(value, 0)
                           for name, value in zip(words[::2], words[1::2])})
        elif line.startswith("  "):
            for name, value in zip(words[::2], words[1::2]):
                registers[name] = int(value, 0)
        elif line.startswith("op "):
            ops.append(parse_op(line))
            ops[-1].update([p for p in phases
                            if p["first"] <= ops[-1]["number"]][-1])
    return registers, memory, ops


def fault_name(status):
    if status < 0x10:
        return f"{FAULTS[status >> 2]} fault, level {status & 3}"
    if status == 0x10:
        return "external abort"
    if 0x14 <= status < 0x18:
        return f"external abort of the walk, level {status & 3}"
    return {0x21: "alignment fault"}.get(status, f"status {status:#x}")


def answer(op):
    """What a machine said, in words."""
    if op["status"] == 0:
        return f"not made: AT S1E1R gave PAR {op['par']:#x}"
    if op["status"] == 1 and op["kind"].startswith("AT_"):
        par = op["read"]
        if par & 1:
            return f"PAR {par:#x}: {fault_name(par >> 1 & 0x3f)}"
        return (f"PAR {par:#x}: PA {par & ADDRESS:#x} attr {par >> 56:#x} "
                f"SH {par >> 7 & 3}")
    if op["status"] == 1:
        return f"done, read {op['read']:#x}, left {op['pool']:#x}"
    ec = op["esr"] >> 26 & 0x3f
    text = (f"vector {op['status'] >> 8} ESR {op['esr']:#x} FAR "
            f"{op['far']:#x} ELR {op['elr']:#x} SPSR {op['spsr']:#x} read "
            f"{op['read']:#x} left {op['pool']:#x}")
    if ec in (0x20, 0x21, 0x24, 0x25):
        text += ": " + fault_name(op["esr"] & 0x3f)
    elif ec in (0x15, 0x3c):
        text += f": {'BRK' if ec == 0x3c else 'SVC'} {op['esr'] & 0xffff:#x}"
    return text


def bits_of(desc, names):
    return " ".join(name for name, bit in names.items() if desc >> bit & 1)


def walk(registers, memory, op):
    """The descriptors that a walk of op's address meets, a line each."""
    va = op["va"]
    tcr = registers["tcr"]
    half = va >> 55 & 1
    tsz = tcr >> (16 * half) & 0x3F
    ttbr = op[f"ttbr{half}"] & 0xFFFF_FFFF_FFFE
    ips = (32, 36, 40, 42, 44, 48, 52, 52)[tcr >> 32 & 7]
    bits = 64 - tsz
    level = 4 - (bits - 12 + 8) // 9
    yield (f"TTBR{half} {ttbr:#x} T{half}SZ {tsz} EPD "
           f"{tcr >> (23 if half else 7) & 1} TBI {tcr >> (37 + half) & 1} "
           f"HPD {tcr >> (41 + half) & 1} output {ips} bits WXN "
           f"{registers['sctlr'] >> 19 & 1}")
    high = va >> bits
    if tcr >> (37 + half) & 1:
        high &= (1 << (56 - bits)) - 1 if bits < 56 else 0
        full = (1 << (56 - bits)) - 1
    else:
        full = (1 << (64 - bits)) - 1
    if high != (full if half else 0):
        yield "the address is outside of both halves"
        return
    table, width = ttbr, bits - (12 + 9 * (3 - level))
    table &= ~((8 << width) - 1)
    while True:
        shift = 12 + 9 * (3 - level)
        entry = table + 8 * (va >> shift & ((1 << width) - 1))
        desc = memory.get(entry, 0)
        if desc & 3 == 3 and level < 3:
            yield (f"level {level} at {entry:#x}: {desc:#018x} table "
                   f"{bits_of(desc, TABLE_BITS)}")
            table, width, level = desc & ADDRESS, 9, level + 1
            continue
        kind = "invalid"
        if desc & 3 == 3 or (desc & 3 == 1 and level in (1, 2)):
            kind = "page" if level == 3 else "block"
            kind += (f" -> {desc & ADDRESS & ~((1 << shift) - 1):#x} attr "
                     f"{desc >> 2 & 7} SH {desc >> 8 & 3} "
                     f"{bits_of(desc, LEAF_BITS)}")
        yield f"level {level} at {entry:#x}: {desc:#018x} {kind}"
        return


def explain_lines(options, both):
    """Operations of a program that this script knows nothing about."""
    ours, theirs = ([line for line in both[name][0] if line.startswith("op ")]
                    for name in ("shootdown", "qemu"))
    pairs = [pair for pair in zip(ours, theirs) if pair[0] != pair[1]]
    for a, b in pairs[:options.operations]:
        print(f"  shootdown {a}\n  qemu      {b}")
    if len(pairs) > options.operations:
        print(f"  ... {len(pairs)} of {len(ours)} operations differ")


def explain(options, number):
    words = f"seed={options.seed} first={number} tables=1 verbose={number}"
    both = run_both(options, words)
    if not any(line.startswith("  desc ") for line in both["shootdown"][0]):
        print(f"table {number} of seed {options.seed}; bootargs: {words}")
        explain_lines(options, both)
        return
    registers, memory, ours = parse_verbose(both["shootdown"][0])
    other_registers, other_memory, theirs = parse_verbose(both["qemu"][0])
    print(f"table {number} of seed {options.seed}; bootargs: {words}")
    print("  " + " ".join(f"{name} {value:#x}"
                          for name, value in registers.items()))
    if (registers, memory) != (other_registers, other_memory):
        print("  the tables themselves differ: the generator is not a "
              "function of seed and number")
    shown = 0
    for a, b in zip(ours, theirs):
        if a == b:
            continue
        shown += 1
        print(f"  operation {a['number']}: {a['kind']} of {a['va']:#x}, PAN "
              f"{a['pstate'] & 1} UAO {a['pstate'] >> 1}, phase "
              f"{a['phase']} after {FORGET[a['forget']]}, ASID "
              f"{a['asid']:#x}")
        print(f"    shootdown {answer(a)}")
        print(f"    qemu      {answer(b)}")
        for line in walk(registers, memory, a):
            print(f"      {line}")
        if shown == options.operations:
            print("  ...")
            break
    if shown == 0:
        print("  no operation differs when this table runs alone")


# --- figures for people ---

MARK = "<!-- {}: {} of what compare.py --document writes -->"
OUTCOMES = (("done", ["done"]),
            ("address size", [f"fsc{n:#x}" for n in range(0x0, 0x4)]),
            ("translation", [f"fsc{n:#x}" for n in range(0x4, 0x8)]),
            ("access flag", [f"fsc{n:#x}" for n in range(0x9, 0xC)]),
            ("permission", [f"fsc{n:#x}" for n in range(0xC, 0x10)]),
            ("abort", ["fsc0x10"]),
            ("abort of the walk", [f"fsc{n:#x}" for n in range(0x14, 0x18)]),
            ("not made", ["skipped"]))


def columns(seen):
    """(name, keys) of each: the outcomes of the MMU's program have names here,
    those of others are names"""
    found = {key: None for outcomes in seen.values() for key in outcomes}
    if any(key in found for _, keys in OUTCOMES for key in keys):
        return OUTCOMES
    return [(key, [key]) for key in found]


def document(options, program, operations, different, seconds, seen):
    """Replaces what is between the program's marks in the file."""
    version = subprocess.run([options.qemu, "--version"],
                             stdout=subprocess.PIPE, check=False)
    version = re.search(r"version (\S+)", version.stdout.decode())[1]
    lines = [
        "", f"Seed {options.seed}, tables {options.first} to "
        f"{options.first + options.tables - 1}, QEMU {version}: "
        f"**{operations:,} operations, {different:,} tables differ.** "
        f"{seconds['shootdown']:.0f} s here, {seconds['qemu']:.0f} s on QEMU."]
    outcomes_shown = columns(seen)
    if seen:
        lines += [
            "", " | ".join(["| operation"] +
                           [name for name, _ in outcomes_shown]) + " |",
            "|---" * (len(outcomes_shown) + 1) + "|"]
    known = {key for _, keys in outcomes_shown for key in keys}
    for kind, outcomes in seen.items():
        row = [sum(outcomes.get(key, 0) for key in keys)
               for _, keys in outcomes_shown]
        lines.append(f"| {kind} | " + " | ".join(map(str, row)) + " |")
        for key in outcomes.keys() - known:
            lines.append(f"| {kind}, {key} | {outcomes[key]} |")
    begin, end = MARK.format(program, "begin"), MARK.format(program, "end")
    with open(options.document, encoding="utf-8") as file:
        text = file.read()
    if begin not in text or end not in text:
        sys.exit(f"{options.document}: no line {begin!r} and {end!r}")
    before, after = text.split(begin)[0], text.split(end)[1]
    with open(options.document, "w", encoding="utf-8") as file:
        file.write(before + begin + "\n" + "\n".join(lines) + "\n\n" + end +
                   after)


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--qemu", required=True)
    parser.add_argument("--image", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=60,
                        help="seconds for each machine")
    parser.add_argument("--show", type=int, default=1,
                        help="tables to print when they differ")
    parser.add_argument("--operations", type=int, default=5,
                        help="operations to print of each such table")
    parser.add_argument("--options", default="",
                        help="words for 'shootdown run' besides")
    parser.add_argument("--document", help="Markdown file to update")
    options = parser.parse_args()
    options.timeout *= float(os.environ.get("TEST_TIME_SCALE", "1"))
    return options


def main():
    options = parse()
    if not options.qemu:
        print("QEMU is not installed")
        return 77  # meson: skipped
    words = (f"seed={options.seed} first={options.first} "
             f"tables={options.tables}")
    try:
        both = run_both(options, words)
        ours, theirs = (hashes(both[name][0]) for name in commands(options, ""))
        wanted = range(options.first, options.first + options.tables)
        different = [n for n in wanted
                     if n not in ours or ours[n] != theirs.get(n)]
        operations = sum(ours[n][0] for n in wanted if n in ours)
        seen = {name: counts(lines) for name, (lines, _) in both.items()}
        for number in different[:options.show]:
            explain(options, number)
    except Failed as failure:
        print(failure)
        return 2
    if not different and seen["shootdown"] != seen["qemu"]:
        print("the hashes are the same, the counts are not")
        different = list(wanted)
    seconds = {name: both[name][1] for name in both}
    if options.document:
        program = both["shootdown"][0][0].split()[0]
        document(options, program, operations, len(different), seconds,
                 seen["shootdown"])
    print(f"{options.tables} tables, {operations} operations, "
          f"{len(different)} tables differ; seconds: "
          f"{seconds['shootdown']:.1f} here, {seconds['qemu']:.1f} on QEMU")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
