#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the guest counts what: every counter of guest/abi/counters.inc, with
the functions that count it, as docs/ALGORITHM.md lists them.

  counters.py ROOT             is the table up to date, and is each counted?
  counters.py ROOT --document  write it
"""
import pathlib
import re
import sys

BEGIN = "<!-- counters: begin of what counters.py --document writes -->\n"
END = "<!-- counters: end of what counters.py --document writes -->\n"
COUNTER = re.compile(r'^COUNTER\((\w+), "([^"]*)"\)', re.M)
# TLBI_VIEWS(instruction, operand, counter) issues it for each view of an ASID.
COUNTED = re.compile(r"\bcounter_(?:inc|add)\(\s*(\w+)|"
                     r"\bTLBI_VIEWS\(.*, (\w+)\);")


def functions_of(text):
    """Yields (function, line) for each line."""
    name, pending = None, None
    for line in text.splitlines():
        if line.startswith("}"):
            name = None
        elif line[:1].isalpha() or line[:1] == "_":
            match = re.search(r"(\w+)\(", line)
            if match and not line.rstrip().endswith(";"):
                pending = match.group(1)
        elif line.startswith("{"):
            name = pending
        yield name, line


def places(root):
    """{counter: [(file, function), ...]} in the order of the files."""
    found = {}
    files = sorted((root / "guest").rglob("*.[chS]"))
    for path in files:
        if path.name.startswith("ktest_"):
            continue
        for name, line in functions_of(path.read_text()):
            for match in COUNTED.finditer(line):
                counter = match.group(1) or match.group(2)
                where = (path.relative_to(root / "guest").as_posix(),
                         name or "a macro")
                found.setdefault(counter, [])
                if where not in found[counter]:
                    found[counter].append(where)
    return found


def table(root):
    counters = COUNTER.findall(
        (root / "guest/abi/counters.inc").read_text())
    found = places(root)
    lines = ["| counter | what | counted in |", "|---|---|---|"]
    missing = []
    for name, what in counters:
        if name not in found:
            missing.append(name)
            continue
        where = {}
        for path, function in found[name]:
            where.setdefault(path, []).append(function)
        text = "; ".join(
            f"`{path}`: " + ", ".join(f"`{f}`" for f in names)
            for path, names in where.items())
        lines.append(f"| `{name}` | {what} | {text} |")
    return "\n".join(lines) + "\n", missing


def main():
    root = pathlib.Path(sys.argv[1])
    document = root / "docs/ALGORITHM.md"
    text = document.read_text()
    new, missing = table(root)
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if missing:
        sys.exit("counted nowhere: " + ", ".join(missing))
    if sys.argv[2:] == ["--document"]:
        document.write_text(text[:begin] + "\n" + new + "\n" + text[end:])
    elif text[begin:end].strip() != new.strip():
        old = set(text[begin:end].splitlines())
        sys.exit("docs/ALGORITHM.md is not up to date: counters.py ROOT "
                 "--document writes it. First difference:\n" +
                 next((l for l in new.splitlines() if l not in old), "a line "
                      "too many"))


main()
