#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each fault that can be put into the TLB is seen by a test that passes without.

  inject.py SHOOTDOWN FOLDER      FOLDER: where tests/guest/*.elf are

Runs bare guest programs with each fault of --inject; which check must fail is
in the table. A fault that is allowed must make an outcome disappear instead.
Prints a line per run; exit status 0 or 1.
"""
import os
import re
import subprocess
import sys

# fault -> (program, text of a check that must fail), ...
NOTICED_BY = {
    "tlbi-nothing": (
        ("tlbi_dsb", "after the issuer's DSB the page faults"),
        ("remap", "the data that is read is the page mapped now"),
        ("liberty_tlbi", "a page taken away by the rules faults everywhere"),
    ),
    "broadcast-lost": (
        ("tlbi_dsb", "after the issuer's DSB the page faults"),
        ("remap", "the data that is read is the page mapped now"),
        ("liberty_tlb", "a page taken away by the rules faults everywhere"),
    ),
    "faulting-cached": (
        ("tlbi_dsb", "a mapped page is reachable"),
        ("liberty_tlb", "a mapped page is reachable"),
    ),
    "own-not-flushed": (
        ("tlbi_dsb", "and no more after a local TLBI, DSB NSH and ISB"),
        ("remap", "the data that is read is the page mapped now"),
    ),
    "wrong-completer": (
        ("tlbi_dsb", "after the issuer's DSB the page faults"),
    ),
    "ish-as-nsh": (
        ("tlbi_dsb", "after the issuer's DSB the page faults"),
        ("liberty_tlbi", "a page taken away by the rules faults everywhere"),
    ),
    "ttl-other-level": (
        ("liberty_tlbi", "a page taken away by the rules faults everywhere"),
    ),
    "asid-other": (
        ("tlbi_asid", "VAE1IS takes a page of its ASID away"),
        ("tlbi_asid", "ASIDE1IS takes it away as well"),
    ),
    "tables-kept": (
        ("liberty_tlbi", "a page taken away by the rules faults everywhere"),
    ),
}
# fault -> (program, outcome that is only seen without it)
HIDES = {"nsh-as-ish": ("tlbi_asid", "after-dsb-nsh")}

# TLBIs are late, so that it shows who waits for them.
OPTIONS = ("--cpus", "3", "--engine", "seeded", "--hw", "typical",
           "--hw-defer", "on", "--ledger", "off")

problems = []
done = {}


def run(program, fault):
    """(failed checks, outcomes); each run is made once."""
    if (program, fault) in done:
        return done[program, fault]
    command = [sys.argv[1], "run", "--kernel",
               os.path.join(sys.argv[2], program + ".elf"), *OPTIONS]
    if fault:
        command += ["--inject", fault]
    timeout = 60 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    result = subprocess.run(command, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=timeout, check=False)
    out = result.stdout.decode(errors="replace")
    failed = re.findall(r"^FAIL: (.*)", out, re.M)
    if result.returncode != 0 or "RESULT: " not in out:
        problems.append(f"{' '.join(command)}: exit status "
                        f"{result.returncode}: " +
                        result.stderr.decode(errors="replace")[-500:])
    print(f"{fault or 'no fault':<16} {program:<13}",
          "; ".join(failed) or "nothing fails")
    outcomes = {name: int(count) for name, count
                in re.findall(r"^INFO: (\S+) (\d+) of \d+", out, re.M)}
    done[program, fault] = failed, outcomes
    return failed, outcomes


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for program in sorted({p for rows in NOTICED_BY.values() for p, _ in rows}):
        failed, _ = run(program, None)
        if failed:
            problems.append(f"{program} fails without a fault: {failed}")
    for fault, rows in NOTICED_BY.items():
        for program, check in rows:
            failed, _ = run(program, fault)
            if not any(text.startswith(check) for text in failed):
                problems.append(f"{fault}: {program} does not notice: "
                                f"'{check}' holds")
    for fault, (program, outcome) in HIDES.items():
        _, without = run(program, None)
        failed, outcomes = run(program, fault)
        if not without.get(outcome) or outcomes.get(outcome) != 0 or failed:
            problems.append(f"{fault}: {outcome} {without.get(outcome)} times "
                            f"without, {outcomes.get(outcome)} times with it")
    # The option tells what it accepts.
    refused = subprocess.run([sys.argv[1], "run", "--kernel", "x", "--engine",
                              "seeded", "--inject", "no-such-fault"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             check=False)
    listed = refused.stderr.decode()
    for fault in [*NOTICED_BY, *HIDES]:
        if refused.returncode != 1 or fault not in listed:
            problems.append(f"'{fault}' is not in: {listed}")
    known = re.findall(r"[a-z-]+(?=,|$)", listed.split("accepted are")[-1])
    for fault in known:
        if fault not in NOTICED_BY and fault not in HIDES:
            problems.append(f"no test notices '{fault}'")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
