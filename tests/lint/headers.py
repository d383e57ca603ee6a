#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every header compiles alone.

  headers.py ROOT HOST-COMPILER CROSS-COMPILER
"""
import os
import subprocess
import sys

# folder -> (compiler, include directories, pkg-config names)
FOLDERS = [
    ("mmu/include", "host", ["mmu/include"], []),
    ("guest/abi", "host", ["guest"], []),
    ("plugins/include", "host", ["plugins/include"], []),
    ("vmm", "host", ["vmm", "mmu/include", "guest", "plugins/include"],
     ["glib-2.0", "gmodule-2.0", "libuv", "capstone", "unicorn"]),
    ("guest", "cross", ["guest"], []),
    ("tests/guest/lib", "cross", ["tests/guest/lib", "guest"], []),
]
# Meant for one includer: assembly offsets and the like.
SKIP = ("guest/boot/offsets.h",)


def flags(names):
    if not names:
        return []
    return subprocess.run(["pkg-config", "--cflags"] + names, check=True,
                          stdout=subprocess.PIPE).stdout.decode().split()


def main():
    root, host, cross = sys.argv[1:4]
    done, wrong = set(), 0
    for folder, which, includes, packages in FOLDERS:
        extra = flags(packages)
        for where, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                path = os.path.join(where, name)
                short = os.path.relpath(path, root)
                if (not name.endswith(".h") or short in done or short in SKIP
                        or short.startswith("guest/user/")):
                    continue
                done.add(short)
                command = [cross if which == "cross" else host, "-std=gnu11",
                           "-fsyntax-only", "-Wall", "-Wextra", "-x", "c"]
                if which == "cross":
                    command += ["-ffreestanding", "-march=armv8.1-a"]
                for include in includes:
                    command += ["-I", os.path.join(root, include)]
                # As an includer would: "#pragma once in main file" and
                # unused static functions are not the header's fault.
                text = f'#include "{path}"\n'
                run = subprocess.run(command + extra + ["-"],
                                     input=text.encode(), check=False,
                                     stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT)
                if run.returncode:
                    wrong += 1
                    print(f"{short} does not compile alone:")
                    print(run.stdout.decode()[:600])
    print(f"{len(done)} headers, {wrong} wrong")
    return 1 if wrong or not done else 0


if __name__ == "__main__":
    sys.exit(main())
