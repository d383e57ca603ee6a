#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""House rules that the compiler cannot check, over all files of the tree.

  tree.py ROOT spdx     each source file has an SPDX line near its top
  tree.py ROOT layers   includes go down the layers only
  tree.py ROOT words    no path or name of somebody's machine
  tree.py ROOT readme   80 columns; what it names is there
"""
import os
import re
import subprocess
import sys

CODE = (".c", ".h", ".S", ".inc", ".py", ".sh", ".ld", ".build", ".supp")
# Prose and data have no comment syntax of their own.
WITHOUT_SPDX = ("COPYING", ".md", ".txt", ".clang-format", ".gitignore",
                ".editorconfig", ".json", ".jsonl", ".svg", ".png", ".cast", ".seed",
                ".dict")
# Put together here, so that this file does not name them itself.
WORDS = [re.compile("|".join([
    "/work" + "/", "shared" + "/design", "shared" + "/reference",
    "/home/" + r"\w+", r"\b" + "localhost:" + r"\d+", "cla" + "ude",
    "anthr" + "opic", "engine-" + "facts", "house-" + "style"]), re.I)]

# folder -> (allowed quoted prefixes, forbidden angle includes)
# A quoted include without a folder is one of the same folder.
GUEST_OK = re.compile(r"^std(arg|atomic|bool|def|int)\.h$")
RULES = [
    ("mmu/", re.compile(r"^(mmu/|[a-z_]+\.(h|inc)$)"),
     re.compile(r"^(assert|stdbool|stddef|stdint|stdlib|string)\.h$")),
    ("guest/abi/", re.compile(r"^(abi/|[a-z_]+\.(h|inc)$)"),
     re.compile(r"^stdint\.h$")),
    ("guest/user/", re.compile(r"^(abi/|[a-z_]+\.h$)"), None),
    ("guest/", re.compile(r"^(abi|arch|boot|drivers|kernel|lib|mm)/|"
                          r"^[a-z_]+\.(h|inc)$"), GUEST_OK),
    ("plugins/include/", re.compile(r"^$"),
     re.compile(r"^std(bool|def|int)\.h$")),
    ("plugins/", re.compile(r"^$"), None),
    ("vmm/", re.compile(r"^(abi|choice|mmu|dev|insn|litmus|obs|shootdown)/|"
                        r"^[a-z_0-9]+\.(h|inc)$"), None),
]
# library header -> the only files that may include it
ONLY = {
    re.compile(r"^unicorn/"): ("vmm/engine.c",),
    re.compile(r"^capstone/"): ("vmm/insn/disas.c", "plugins/execlog.c",
                                "tests/"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def files(root):
    """Names of the files that are, or would be, under version control."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        names = listed.stdout.decode().splitlines()
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        names = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, found in os.walk(root) for name in found
                 if not os.path.relpath(folder, root).startswith(
                     ("build", ".git"))]
    return sorted(n for n in names if os.path.isfile(os.path.join(root, n)))


def text_of(root, name):
    with open(os.path.join(root, name), encoding="utf-8",
              errors="replace") as file:
        return file.read()


def spdx(root):
    wrong = []
    for name in files(root):
        if name.endswith(WITHOUT_SPDX):
            continue
        head = text_of(root, name)[:400]
        if "SPDX-License-" + "Identifier:" not in head:
            wrong.append(f"{name}: no SPDX line")
    return wrong


def layers(root):
    wrong = []
    for name in files(root):
        if not name.endswith((".c", ".h", ".S", ".inc")):
            continue
        rule = next((r for r in RULES if name.startswith(r[0])), None)
        for number, line in enumerate(text_of(root, name).splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            ours, theirs = match[1], match[2]
            for pattern, allowed in ONLY.items():
                if (pattern.match(theirs or ours)
                        and not name.startswith(allowed)):
                    wrong.append(f"{name}:{number}: only {allowed[0]} may "
                                 f"include {theirs or ours}")
            if not rule:
                continue
            if ours and not rule[1].match(ours):
                wrong.append(f'{name}:{number}: {rule[0]} may not include '
                             f'"{ours}"')
            if theirs and rule[2] and not rule[2].match(theirs):
                wrong.append(f"{name}:{number}: {rule[0]} may not include "
                             f"<{theirs}>")
    return wrong


def words(root):
    wrong = []
    for name in files(root):
        for number, line in enumerate(text_of(root, name).splitlines(), 1):
            for pattern in WORDS:
                if pattern.search(line):
                    wrong.append(f"{name}:{number}: {line.strip()[:70]}")
    return wrong


def readme(root):
    wrong = []
    text = text_of(root, "README.md")
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > 80:
            wrong.append(f"README.md:{number}: {len(line)} columns")
    named = set(re.findall(r"^ {4}\./([\w./-]+)", text, re.M))
    named |= set(re.findall(r"\]\((?!https?:)([^)#]+)", text))
    named |= set(re.findall(r"^\| `([\w./-]+)`", text, re.M))
    for name in sorted(named):
        if not os.path.exists(os.path.join(root, name)):
            wrong.append(f"README.md names {name}, which is not there")
    if not {"quickstart", "check"} <= named:
        wrong.append("README.md does not give ./quickstart and ./check")
    return wrong


def main():
    root = sys.argv[1]
    wrong = {"spdx": spdx, "layers": layers, "words": words,
             "readme": readme}[sys.argv[2]](root)
    print("\n".join(wrong) or "fine")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
