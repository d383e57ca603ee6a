#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints "PASSED FAILED" for testlog.json files of meson; "0 1" without any."""
import json
import sys

GOOD = {"OK", "EXPECTEDFAIL"}
NEITHER = {"SKIP", "IGNORED"}


def main():
    passed = failed = 0
    try:
        for name in sys.argv[1:]:
            with open(name, encoding="utf-8") as log:
                for line in log:
                    result = json.loads(line)["result"]
                    passed += result in GOOD
                    failed += result not in GOOD and result not in NEITHER
    except (OSError, ValueError, KeyError):
        failed += 1
    print(passed, failed)


if __name__ == "__main__":
    main()
