#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The bundled guest keeps break-before-make but where Linux does not, and
planted bugs break it.

  bbm.py SHOOTDOWN

Prints a line per run; exit status 0 or 1.
"""
import os
import re
import subprocess
import sys


# title, options, arguments, exit status, what must be printed: all of it
RUNS = (
    ("hello", ["hello"], [], 0, None),
    ("bench, batched", ["swap_bench"], [], 0, None),
    ("bench, sync", ["swap_bench", "--flush", "sync"], [], 0, None),
    ("bench, vtime", ["swap_bench", "--engine", "vtime"], [], 0, None),
    ("race", ["reclaim_race"], [], 0, None),
    ("race, cruel", ["reclaim_race", "--hw", "adversarial"], [], 0, None),
    ("blocks, cruel", ["huge_race", "--hw", "adversarial"], [], 0, None),
    # As in Linux: a clean page that reclaim has unmapped but not yet flushed
    # comes back from swap in another frame. See docs/GUEST.md.
    ("refault before the flush", ["reclaim_race"], ["-b", "8", "-r", "20"], 77,
     ("the DSB after the TLBI does not wait for it", "try_to_unmap_one+")),
    ("... and with a drain",
     ["reclaim_race", "--append", "fault_drain=yes"], ["-b", "8", "-r", "20"],
     0, None),
    ("no DSB before the TLBI",
     ["swap_bench", "--bug", "tlbi-before-store-visible"], [], 77,
     ("the TLBI came before the DSB of the invalid store",
      "try_to_unmap_one+")),
    ("local TLBI",
     ["swap_bench", "--bug", "local-instead-of-broadcast"], [], 77,
     ("the TLBI did not reach every vCPU that has the table",
      "try_to_unmap_one+")),
    ("split in one store", ["huge_race", "--bug", "split-without-break"], [],
     77, ("level 2 descriptor", "block size", "pt_hook+")),
)

problems = []


def run(title, options, arguments, status, text):
    command = [sys.argv[1], "run", *options, "--check", "bbm", "--verbose"]
    if "--engine" not in options:
        command += ["--engine", "seeded"]
    if arguments:
        command += ["--", *arguments]
    timeout = 100 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    result = subprocess.run(command, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=timeout, check=False)
    err = result.stderr.decode(errors="replace")
    counts = re.search(r"(\d+) descriptors taken away, (\d+) of them cleanly, "
                       r"(\d+) made, (\d+) violations", err)
    print(f"{title:<24} status {result.returncode},",
          counts.group(0) if counts else "no counts")
    if result.returncode != status or not counts:
        problems.append(f"{' '.join(command)}: status {result.returncode}:\n" +
                        err[-1500:])
        return
    broken, made, bad = (int(counts.group(i)) for i in (1, 3, 4))
    if broken == 0 or made == 0 or (bad != 0) != (text is not None):
        problems.append(f"{title}: {counts.group(0)}")
    for part in text or ():
        if part not in err:
            problems.append(f"{title}: not told: {part}\n{err[:1500]}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for row in RUNS:
        run(*row)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
