#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures shootdown and QEMU (MTTCG) side by side with the same guest image.

  bench/compare_qemu.py [--build DIR] [--repeat N] [--quick] [--no-write]

Every line is run by one, then by the other, N times in turn; the median is
shown. The table goes to standard output and, between the two markers, into
docs/PERFORMANCE.md. It measures; it judges nothing and fails only where
something did not run at all.
"""
import argparse
import datetime
import os
import platform
import re
import statistics
import subprocess
import sys
import time

import page

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
LIMIT = 150  # seconds for one run; QEMU with more vCPUs than cores needs it

# name of bench_micro's line -> what the table calls it
MICRO = {
    "syscall_getpid": "system call",
    "fault_first_touch": "page fault, first touch",
    "fault_after_dontneed": "page fault, after MADV_DONTNEED",
    "flush_mprotect_1cpu": "mprotect + TLBI + DSB, 1 vCPU live",
    "flush_mprotect_2cpu": "mprotect + TLBI + DSB, 2 vCPUs live",
    "flush_mprotect_4cpu": "mprotect + TLBI + DSB, 4 vCPUs live",
    "ipi_round_trip": "IPI round trip",
    "membarrier_2cpu": "membarrier, 2 vCPUs live",
    "context_switch": "context switch",
}


class Machines:
    def __init__(self, build, qemu):
        self.build, self.qemu = build, qemu
        self.kernel = os.path.join(build, "guest/kernel.img")
        self.initrd = os.path.join(build, "guest/initramfs.cpio")
        for path in (os.path.join(build, "shootdown"), self.kernel,
                     self.initrd):
            if not os.path.exists(path):
                sys.exit(f"compare_qemu: {path} is not there; build first "
                         "(./quickstart), or name the build with --build")

    def command(self, which, cpus, append):
        if which == "shootdown":
            return [os.path.join(self.build, "shootdown"), "run", "--kernel",
                    self.kernel, "--initrd", self.initrd, "--cpus", str(cpus),
                    "--append", append]
        return [self.qemu, "-M", "virt,gic-version=3", "-cpu", "max", "-smp",
                str(cpus), "-m", "512M", "-accel", "tcg,thread=multi",
                "-display", "none", "-monitor", "none", "-serial", "stdio",
                "-nic", "none", "-kernel", self.kernel, "-initrd", self.initrd,
                "-append", append]

    def run(self, which, cpus, append):
        """(seconds, output), or (None, output) when init did not end.

        Its status may be 1: QEMU fails one self-test on x86 hosts.
        """
        start = time.monotonic()
        try:
            done = subprocess.run(
                self.command(which, cpus, append), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired as late:
            return None, (late.output or b"").decode(errors="replace")
        out = done.stdout.decode(errors="replace").replace("\r", "")
        good = re.search(r"^init: exit status \d+$", out, re.M)
        return (time.monotonic() - start if good else None), out


def progress(text):
    print(text, end="", file=sys.stderr, flush=True)


def both(machines, repeat, cpus, append, measure):
    """{machine: {line: [values]}} of `repeat` runs each, taken in turn."""
    values = {"shootdown": {}, "qemu": {}}
    progress(f"{cpus} vCPUs, {append} ")
    for _ in range(repeat):
        for which, lines in values.items():
            seconds, out = machines.run(which, cpus, append)
            progress("." if seconds is not None else "x")
            for line, value in measure(seconds, out).items():
                lines.setdefault(line, []).append(value)
    progress("\n")
    return values


def whole_run(name):
    return lambda seconds, out: {} if seconds is None else {name: seconds * 1e9}


def swap_bench(name):
    def measure(_, out):
        match = re.search(r"elapsed (\d+) us, madvise (\d+) us in (\d+)", out)
        if not match:
            return {}
        return {name: int(match[2]) * 1000 / int(match[3])}
    return measure


def micro(_, out):
    lines = {}
    for match in re.finditer(r"^(\w+) (\d+)$", out, re.M):
        if match[1] in MICRO:
            lines[MICRO[match[1]]] = int(match[2])
        elif match[1] == "loop_1000_instructions":
            # ns for 1000 instructions -> instructions per second
            lines["MIPS"] = 1e12 / max(int(match[2]), 1)
    return lines


def unit(ns):
    for limit, factor, name in ((1e3, 1, "ns"), (1e6, 1e3, "us"),
                                (1e9, 1e6, "ms")):
        if ns < limit:
            return f"{ns / factor:.3g} {name}"
    return f"{ns / 1e9:.3g} s"


def table(results):
    rows = [("what", "shootdown", "QEMU", "speed, QEMU = 1")]
    for values in results:
        names = list(values["shootdown"])
        names += [n for n in values["qemu"] if n not in names]
        for name in names:
            ours, theirs = (values[m].get(name) for m in ("shootdown", "qemu"))
            ours = statistics.median(ours) if ours else None
            theirs = statistics.median(theirs) if theirs else None
            faster = name == "MIPS"  # more is better
            show = (lambda v: f"{v / 1e6:.0f}") if faster else unit
            ratio = "-"
            if ours and theirs:
                ratio = f"{ours / theirs if faster else theirs / ours:.2f}"
            rows.append((name + (", in a register loop" if faster else ""),
                         show(ours) if ours else "did not end",
                         show(theirs) if theirs else "did not end", ratio))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
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


def heading(qemu, repeat):
    version = subprocess.run([qemu, "--version"], stdout=subprocess.PIPE,
                             check=True).stdout.decode().splitlines()[0]
    model = page.cpu_model(platform.machine())
    return (f"{datetime.date.today()}, {os.cpu_count()} cores ({model}), "
            f"{version}, median of {repeat}, load average before: "
            f"{os.getloadavg()[0]:.1f}.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--qemu", default="qemu-system-aarch64")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true",
                        help="1 and 2 vCPUs only, once")
    parser.add_argument("--no-write", action="store_true",
                        help="leave docs/PERFORMANCE.md as it is")
    o = parser.parse_args()
    repeat = 1 if o.quick else o.repeat
    counts = (1, 2) if o.quick else (1, 2, 4)
    machines = Machines(o.build, o.qemu)
    head = heading(o.qemu, repeat)
    results = [
        both(machines, repeat, 2, "init=/bin/hello",
             whole_run("boot to a program and off, 2 vCPUs")),
        both(machines, 1, 2, "init=selftest",
             whole_run("boot to the end of self-test, 2 vCPUs")),
    ]
    for cpus in counts:
        for flush in ("sync", "batched"):
            results.append(both(
                machines, repeat, cpus,
                f"flush={flush} init=/bin/swap_bench -- -q -t {cpus - 1}",
                swap_bench(f"swap_bench, one madvise, {flush}, {cpus} vCPU"
                           + ("s" if cpus > 1 else ""))))
    results.append(both(machines, repeat, max(counts), "init=/bin/bench_micro",
                        micro))
    text = f"{head}\n\n{table(results)}"
    print(text)
    if not o.no_write:
        page.write(text, BEGIN, END)


if __name__ == "__main__":
    main()
