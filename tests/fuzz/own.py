#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel and a program of one's own as a target of `shootdown fuzz`.

  own.py SHOOTDOWN KERNEL INITRD PROGRAM

KERNEL is handed over as any other would be: by --kernel, with an initial RAM
disk that has PROGRAM in /bin, and words for the kernel in --append. A bug of
the kernel's is found, and what was written is replayed; without it there is
nothing. Prints what it saw; exit status 0 or 1.
"""
import os
import re
import subprocess
import sys
import tempfile

SCALE = float(os.environ.get("TEST_TIME_SCALE", "1"))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    shootdown, kernel, initrd = map(os.path.abspath, sys.argv[1:4])
    init = f"init=/bin/{sys.argv[4]}"
    problems = []

    def call(status, *words):
        done = subprocess.run([shootdown, *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, cwd=folder,
                              stderr=subprocess.STDOUT, timeout=60 * SCALE,
                              check=False)
        text = done.stdout.decode(errors="replace")
        print(f"{words[0]}: status {done.returncode}, "
              f"{len(text.splitlines())} lines")
        if done.returncode != status:
            problems.append(f"{' '.join(words)}: status {done.returncode}, "
                            f"not {status}\n{text[-2000:]}")
        return text

    def fuzz(status, append, *words):
        return call(status, "fuzz", "--kernel", kernel, "--initrd", initrd,
                    "--append", append, "--mem", "64M", "-seed=1",
                    "-runs=200", "-minimize_runs=20", *words)

    with tempfile.TemporaryDirectory(prefix="shootdown-") as folder:
        text = fuzz(77, init + " bug=local-instead-of-broadcast")
        written = re.search(r"Test unit written to (\S+)\n", text)
        if not written or "S4 (S6) read" not in text:
            problems.append(f"nothing was found:\n{text[-2000:]}")
        else:
            call(77, "replay", "--quiet", written[1])
        text = fuzz(0, init)
        if "DONE" not in text or "==SHOOTDOWN" in text:
            problems.append(f"without the bug:\n{text[-2000:]}")
        # The word for the bundled kernel is no word for another one.
        text = fuzz(1, init, "--bug", "free-before-flush")
        if "--append" not in text:
            problems.append(f"--bug with --kernel:\n{text}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
