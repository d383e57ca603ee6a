#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest program on Linux, by qemu-user: linux_user.py QEMU PROGRAM REGEX
[ARGUMENTS]. A line of its output matches REGEX, its exit status is 0, and no
line of it or of its --help is longer than 80 characters. Exit status 77, which
means skipped, where QEMU is empty: qemu-user is not installed.
"""
import re
import subprocess
import sys


def run(command):
    out = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=80,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         check=False)
    return out.returncode, out.stdout.decode(errors="replace")


def main():
    qemu, program, regex, *arguments = sys.argv[1:]
    if not qemu:
        print("skipped: no qemu-aarch64 (the package qemu-user)")
        return 77
    wrong = []
    status, text = run([qemu, program, *arguments])
    if status != 0:
        wrong.append(f"exit status {status}")
    if not any(re.search(regex, line) for line in text.splitlines()):
        wrong.append(f"no line matches {regex}")
    status, usage = run([qemu, program, "--help"])
    if status != 0 or "usage:" not in usage:
        wrong.append(f"--help: exit status {status}")
    wrong += [f"longer than 80: {line}" for line in
              (text + usage).splitlines() if len(line) > 80]
    print(text)
    print("\n".join(wrong) or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
