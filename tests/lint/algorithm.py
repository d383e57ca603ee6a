#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/ALGORITHM.md says of the guest's source: every counter of
guest/abi/counters.inc with the functions that count it, and the tests it names.

  algorithm.py ROOT             is the table up to date, is each counter
                                counted, is every sentence in quotes a test's?
  algorithm.py ROOT --document  write the table
"""
import pathlib
import re
import sys

BEGIN = "<!-- counters: begin of what algorithm.py --document writes -->\n"
END = "<!-- counters: end of what algorithm.py --document writes -->\n"
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


def unknown_tests(root, text):
    section = text.split("\n## Tests of the whole\n")[1].split("\n## ")[0]
    sources = "".join(
        path.read_text() for pattern in ("ktests.inc", "ktest_*.c",
                                         "selftest_*.c")
        for path in sorted((root / "guest").rglob(pattern)))
    return [name for name in re.findall(r'"([^"]+)"', section)
            if f'"{name}"' not in sources]


def main():
    root = pathlib.Path(sys.argv[1])
    document = root / "docs/ALGORITHM.md"
    text = document.read_text()
    new, missing = table(root)
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if missing:
        sys.exit("counted nowhere: " + ", ".join(missing))
    unknown = unknown_tests(root, text)
    if unknown:
        sys.exit("docs/ALGORITHM.md names no test of the guest: " +
                 "; ".join(unknown))
    if sys.argv[2:] == ["--document"]:
        document.write_text(text[:begin] + "\n" + new + "\n" + text[end:])
    elif text[begin:end].strip() != new.strip():
        old = set(text[begin:end].splitlines())
        sys.exit("docs/ALGORITHM.md is not up to date: algorithm.py ROOT "
                 "--document writes it. First difference:\n" +
                 next((l for l in new.splitlines() if l not in old), "a line "
                      "too many"))


main()
