# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benchmarks share: the page that their tables go to."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def cpu_model(unknown="unknown"):
    """The host CPU's name as Linux gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return re.search(r"model name\s*: (.*)", info.read())[1]
    except (OSError, TypeError):
        return unknown


def write(text, begin, end):
    """Puts the text between two marks of docs/PERFORMANCE.md."""
    path = os.path.join(ROOT, "docs/PERFORMANCE.md")
    with open(path, encoding="utf-8") as file:
        page = file.read()
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{begin}\n{text}\n{end}{after}")
    print(f"written to {path}", file=sys.stderr)
