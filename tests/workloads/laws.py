#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The laws of the workloads' counters, as exact integers.

  laws.py SHOOTDOWN WORKLOAD [--cpus 2,4,8]

Runs the workload deterministically on each number of vCPUs and with the flush
back ends that its laws are about, and compares what it printed. LAWS says for
each workload: options, arguments, and equations of the counters, in which N is
the number of vCPUs and a name is a counter (0 where it did not move). Exit
status 1 when one does not hold.
"""
import argparse
import re
import subprocess
import sys

TWO_NODES = "numa=fake=2"
IPI = ["--tlb", "ipi"]

# (words of the kernel, options, arguments, equations)
LAWS = {
    # Each page is dirty: a flush a page, and each flush asks every CPU that is
    # taken for a user: all, where masks are cleared late.
    "pageout": [
        ("like=6.12", [], ["-p", "600"],
         ["swap_out == 600", "tlbi_va == 600", "dsb_ish == 600",
          "tlbi_asid == 0"]),
        ("like=7.2", IPI, ["-p", "600"],
         ["swap_out == 600", "batch_flush == 600",
          "remote_flush_received == 600 * (N - 1)"]),
        ("like=7.2", IPI, ["-p", "600", "-m", "T"],
         ["remote_flush_received == 600 * (N - 1)"]),
        ("like=7.2", IPI, ["-p", "600", "-m", "I"],
         ["swap_out == 600", "remote_flush_received == 0"]),
        ("like=6.12", IPI, ["-p", "600"],
         ["swap_out == 600", "remote_flush_received == 0"]),
        # The filter leaves out those who only know the address space.
        ("like=7.2", IPI + ["--filter", "stale"], ["-p", "600"],
         ["swap_out == 600", "remote_flush_received == 0"]),
    ],
    # A call of p pages is ceil(p/512) batches.
    "move_pages": [
        (TWO_NODES, [], ["-p", "1200"],
         ["migrate_success == 1200", "tlbi_va == 1200", "dsb_ish == 3"]),
        (TWO_NODES, [], ["-p", "1200", "-c", "4"],
         ["migrate_success == 1200", "dsb_ish == 4 * 1"]),
        (TWO_NODES + " like=6.1", [], ["-p", "1200"], ["dsb_ish == 1200"]),
        (TWO_NODES + " like=7.2", IPI, ["-p", "1200"],
         ["batch_flush == 3", "remote_flush_received == 3 * (N - 1)"]),
        (TWO_NODES + " like=7.2", IPI + ["--filter", "stale"],
         ["-p", "1200"], ["remote_flush_received == 0"]),
    ],
    # Each round is one batch, and asks the CPUs whose threads touch: all but
    # those whose thread waits for the page just then.
    "migrate": [
        (TWO_NODES, [], ["-p", "256", "-r", "6"],
         ["migrate_success == 6 * 256", "tlbi_va == 6 * 256",
          "dsb_ish == 6"]),
        (TWO_NODES, IPI, ["-p", "256", "-r", "6"],
         ["batch_flush == 6", "remote_flush_received <= 6 * (N - 1)",
          "remote_flush_received > 0"]),
    ],
    # One invalidation a mapping, one wait a dirty page or 31 clean ones.
    "shared_unmap": [
        ("like=6.12", [], ["-n", "100", "-p", "16"],
         ["unmap_ptes == 16 * 101", "tlbi_va == 16 * 101", "dsb_ish == 1"]),
        ("like=6.12", [], ["-n", "100", "-p", "16", "-d"],
         ["unmap_ptes == 16 * 101", "tlbi_va == 16 * 101", "dsb_ish == 16"]),
        ("like=6.12", ["--flush", "sync"], ["-n", "100", "-p", "16"],
         ["unmap_ptes == 16 * 101", "dsb_ish == 16 * 101"]),
    ],
    # P = 16, 10 rounds of N threads: see the program. A gather that ends while
    # another is open flushes the whole ASID once more.
    "tlb_flush": [
        ("like=6.12", [], ["-r", "10", "-p", "16"],
         ["tlbi_va == 10 * 16 * N", "tlbi_range == 5 * 10 * N",
          "tlbi_range_walk == 10 * N",
          "dsb_ish == (16 + 5) * 10 * N + tlbi_asid"]),
        ("like=6.12", IPI, ["-r", "10", "-p", "16"],
         ["dsb_ishst == 16 * 10 * N + gather_flush", "pending_drain == 0",
          "gather_flush >= 5 * 10 * N"]),
    ],
    # A demoted list is one batch, a page that goes to swap after all another.
    # Without swap there are only lists, of 64 pages; tests/linux has 7.2's.
    "demotion": [
        (TWO_NODES + " like=6.12", [], ["-p", "1024", "-s"],
         ["pages_demoted == 1024", "unmap_ptes == 1024", "tlbi_va == 1024",
          "batch_flush == 1024 // 64", "dsb_ish == 1024 // 64"]),
        (TWO_NODES + " like=6.12", [], ["-p", "1024"],
         ["pages_demoted > 0", "dsb_ish == batch_flush",
          "unmap_ptes == pages_demoted + swap_out",
          "batch_flush - swap_out >= (pages_demoted + 63) // 64",
          "batch_flush - swap_out <= pageout_calls"]),
        (TWO_NODES + " like=7.2", IPI, ["-p", "1024"],
         ["pages_demoted > 0",
          "remote_flush_received == batch_flush * (N - 1)"]),
    ],
    # Moving a page that has a hint costs no flush.
    "numa_hint": [
        (TWO_NODES + " numa_cpus=split numa_balancing=on numa_scan_ms=50",
         [], ["-H", "-p", "300", "-t", "1"],
         ["numa_pages_migrated >= 300", "batch_flush == 0"]),
    ],
    # Without reclaim nothing is ever pending: fork and exec never drain.
    "fork_churn": [
        ("like=6.12", [], ["-n", "2", "-r", "3", "-s", "none"],
         ["unmap_ptes == 0", "batch_flush == 0", "pending_drain == 0"]),
    ],
}


def run(shootdown, workload, cpus, law):
    words, options, arguments, _ = law
    command = [shootdown, "run", workload, "--cpus", str(cpus), "--engine",
               "vtime", "--timeout", "0", "--append", words, *options, "--",
               *arguments]
    out = subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = out.stdout.decode(errors="replace")
    counts = {}
    m = re.search(rf"^{workload} counts:((?:.*)(?:\n  .*)*)", text, re.M)
    if out.returncode == 0 and m:
        values = m[1].split()
        counts = {k: int(v) for k, v in zip(values[::2], values[1::2])}
    else:
        print(text[-1500:])
        print(f"exit status {out.returncode}, or no counts")
        return command, None
    return command, counts


class Counts(dict):
    def __missing__(self, name):
        return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shootdown")
    parser.add_argument("workload", choices=sorted(LAWS))
    parser.add_argument("--cpus", default="2,4,8")
    o = parser.parse_args()
    failed = 0
    for cpus in map(int, o.cpus.split(",")):
        for law in LAWS[o.workload]:
            command, counts = run(o.shootdown, o.workload, cpus, law)
            print(" ".join(command))
            for equation in law[3]:
                good = counts is not None and eval(
                    equation, {"__builtins__": {}}, Counts(counts, N=cpus))
                failed += not good
                print(f"  {'ok' if good else 'NOT OK'}: {equation}")
            if counts is not None and failed:
                print("  counted:", counts)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
