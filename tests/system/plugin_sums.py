#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The count plugin's table adds up to the machine's counters.

  plugin_sums.py FILE-OF-SHOOTDOWN PLUGIN

The rows sum to the total row; the total row is the machine's TLBI and DSB of
all kinds, and its instructions within 1 % (the plugin counts whole blocks, of
which a fault or an interrupt may cut the end off); row by row the plugin and
the machine name the same functions.
"""
import json
import re
import subprocess
import sys

ROW = re.compile(r"^(\S.*?)\s+(\d+)\s+(\d+)\s+(\d+)$")


def main():
    shootdown, plugin = sys.argv[1:]
    run = subprocess.run(
        [shootdown, "run", "swap_bench", "--plugin", plugin + ",top=0",
         "--timeout", "100", "--stats", "-"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=120, check=False)
    out = run.stdout.decode(errors="replace").splitlines()
    err = run.stderr.decode(errors="replace").splitlines()
    failures = []
    if run.returncode:
        print("\n".join(out[-20:] + err[-20:]))
        print(f"exit status {run.returncode}")
        return 1
    stats = json.loads(out[-1])
    rows, total, inside = {}, None, False
    for line in out + err:
        if line.startswith("count: symbol"):
            inside = True
            continue
        match = ROW.match(line) if inside else None
        if match:
            numbers = tuple(int(match[i]) for i in (2, 3, 4))
            if match[1] == "total":
                total = numbers
                break
            rows[match[1]] = numbers
    if not total:
        print("\n".join(out[-40:-1] + err))
        print("no table of the count plugin")
        return 1
    machine = stats["machine"]
    sums = tuple(sum(row[i] for row in rows.values()) for i in range(3))
    want = (machine["instructions"], sum(machine["tlbi"].values()),
            sum(machine["dsb"].values()))
    for name, i in (("instructions", 0), ("TLBI", 1), ("DSB", 2)):
        print(f"{name}: rows {sums[i]}, total {total[i]}, machine {want[i]}")
        slack = want[i] / 100 if name == "instructions" else 0
        if sums[i] != total[i] or abs(total[i] - want[i]) > slack:
            failures.append(f"{name} differ")
    # By symbol, as the machine attributes them.
    by_symbol = {}
    for site in machine.get("flush_sites", []):
        if site["kind"] == "IPI" or not site["symbol"]:
            continue
        i = 1 if site["kind"].startswith("TLBI") else 2
        by_symbol.setdefault(site["symbol"], [0, 0, 0])[i] += site["count"]
    for symbol, numbers in by_symbol.items():
        row = rows.get(symbol[:32], (0, 0, 0))
        if row[1:] != tuple(numbers[1:]):
            failures.append(f"{symbol}: plugin TLBI, DSB {row[1:]}, "
                            f"machine {tuple(numbers[1:])}")
    if not by_symbol:
        failures.append("the machine has no flush_sites")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
