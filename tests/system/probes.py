#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes find in the bundled kernel what its annotations do.

  probes.py SHOOTDOWN KERNEL.ELF

With probes the machine does not ask the kernel for annotations, so that all it
knows of frames and operations is from them. Prints a line per run; exit status
0 or 1.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

RACE = ["reclaim_race", "--engine", "seeded", "--ledger", "on",
        "--snapshot-at", "1", "--mem", "64M"]
DRAIN = ["drain_race", "--engine", "seeded", "--ledger", "on",
         "--snapshot-at", "1", "--mem", "64M", "--cpus", "3", "--strategy",
         "pos", "--runs", "200"]

# The bundled kernel; struct page is 64 bytes, page_map points to the first.
PROBES = """\
pages base=*{page_map:#x} size=64 pa=0x40000000
make_free    frame_free  page=x0 order=x1
swap_write   io_begin    page=x0
sys_madvise  op          kind=madvise_other start=x0 bytes=x1 promise=noaccess
"""

problems = []


def symbol_of(path, name):
    """Its value in the ELF file's symbol table."""
    with open(path, "rb") as file:
        elf = file.read()
    at, size, count = (struct.unpack_from("<Q", elf, 0x28)[0],
                       *struct.unpack_from("<HH", elf, 0x3a))
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, at + i * size)
                for i in range(count)]
    for section in (s for s in sections if s[1] == 2):  # SHT_SYMTAB
        names = sections[section[6]][4]
        for offset in range(section[4], section[4] + section[5], 24):
            start, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", elf,
                                                          offset)
            if elf[names + start:].split(b"\0", 1)[0] == name.encode():
                return value
    sys.exit(f"{path} has no symbol {name}")


def found(title, options, arguments=(), status=77):
    """(rule, cause, function that took away, function that relied on it)."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "found.json")
        words = ["run", *options, "--report", report, "--", *arguments]
        done = subprocess.run(
            [os.path.abspath(sys.argv[1]), *words], cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=False,
            timeout=100 * float(os.environ.get("TEST_TIME_SCALE", "1")))
        told = set()
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                for line in file:
                    f = json.loads(line)
                    sites = {s["what"]: s["symbol"].split("+")[0]
                             for s in f["sites"]}
                    told.add((f["rule"], f["cause"], sites.get("store"),
                              sites["contract"]))
    err = done.stderr.decode(errors="replace")
    print(f"{title:<28} status {done.returncode}, {len(told)} findings")
    if done.returncode != status:
        problems.append(f"{title}: status {done.returncode}\n{err[:1500]}")
    return told, err


def check_tasks(path):
    """Only the end of the same task's operation ends it.

    The advice, x2, is another one for each of the scenario's threads.
    """
    with open(path, encoding="ascii") as file:
        frames = [line for line in file if " op " not in line]
    for end, status in (("x2@entry", 77), ("7", 0)):
        tasks = f"{path}.tasks"
        with open(tasks, "w", encoding="ascii") as file:
            file.writelines(frames)
            file.write("sys_madvise op_begin kind=madvise_other start=x0 "
                       "bytes=x1 promise=noaccess task=x2\n"
                       f"sys_madvise op_end exit kind=madvise_other "
                       f"task={end}\n")
        seen, err = found(f"drain, task={end}",
                          DRAIN + ["--drain", "dsb", "--probes", tasks],
                          (), status)
        if (("S2", "S5", "try_to_unmap_one", "sys_madvise") in seen) != (
                status == 77):
            problems.append(f"task={end}: {seen}\n{err[:1000]}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.probes")
        with open(path, "w", encoding="ascii") as file:
            file.write(PROBES.format(page_map=symbol_of(sys.argv[2],
                                                        "page_map")))
        probes = ["--probes", path]
        bug = [*RACE, "--bug", "free-before-flush"]
        said, _ = found("freed, annotations", bug, ["-b", "8"])
        seen, err = found("freed, probes", bug + probes, ["-b", "8"])
        said = {f for f in said if f[0] == "S1"}
        seen = {f for f in seen if f[0] == "S1"}
        if not said or said != seen or "never came by" in err:
            problems.append(f"freed: {said}, with probes {seen}\n{err[:1000]}")
        found("no bug, probes", RACE + probes, ["-b", "8"], 0)
        seen, _ = found("drain, probes", DRAIN + ["--drain", "dsb"] + probes)
        if ("S2", "S5", "try_to_unmap_one", "sys_madvise") not in seen:
            problems.append(f"drain: {seen}")
        check_tasks(path)
        with open(path, "a", encoding="ascii") as file:
            file.write("no_such_function frame_free pa=x0\n")
        _, err = found("a wrong probe file", RACE + probes, (), 1)
        if ":5:1: the kernel has no function 'no_such_function'" not in err:
            problems.append(f"wrong file: {err}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
