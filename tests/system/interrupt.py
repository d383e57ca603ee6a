#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ctrl-C in a running guest: it ends soon, cleanly, with the statistics.

  interrupt.py FILE-OF-SHOOTDOWN WAIT-FOR-LINE ARGUMENTS-OF-RUN...
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

SECONDS_TO_END = 10
INTERRUPTED = 130


def main():
    shootdown, awaited, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "stats.json")
        run = subprocess.Popen(
            [shootdown, "run", "--stats", name] + arguments,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            start_new_session=True)
        try:
            for line in run.stdout:
                if awaited in line.decode(errors="replace"):
                    break
            else:
                failures.append(f"ended before it printed '{awaited}'")
            time.sleep(0.3)
            sent = time.monotonic()
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=SECONDS_TO_END)
            print(f"ended {time.monotonic() - sent:.2f} s after SIGINT")
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            failures.append(f"not ended {SECONDS_TO_END} s after SIGINT")
        if run.returncode != INTERRUPTED:
            failures.append(f"exit status {run.returncode}, "
                            f"expected {INTERRUPTED}")
        try:
            with open(name, encoding="utf-8") as file:
                stats = json.loads(file.read())
            if stats["machine"]["instructions"] <= 0:
                failures.append("no instruction was counted")
        except (OSError, ValueError, KeyError) as error:
            failures.append(f"no statistics: {error}")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
