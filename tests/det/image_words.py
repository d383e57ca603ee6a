#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Assembles image.S into image_words.inc, or with --check sees whether that is
what the file holds.

  image_words.py [--check] ASSEMBLER OBJCOPY image.S image_words.inc
"""
import os
import struct
import subprocess
import sys
import tempfile


def words_of(assembler, objcopy, source):
    with tempfile.TemporaryDirectory(prefix="shootdown-") as folder:
        obj = os.path.join(folder, "image.o")
        binary = os.path.join(folder, "image")
        subprocess.run([assembler, "-c", source, "-o", obj], check=True)
        subprocess.run([objcopy, "-O", "binary", "-j", ".text", obj, binary],
                       check=True)
        with open(binary, "rb") as file:
            data = file.read()
    return struct.unpack(f"<{len(data) // 4}I", data)


def text_of(words):
    lines = ["/* SPDX-License-Identifier: GPL-2.0-or-later */",
             "/* image.S, made by image_words.py. No guard. */"]
    for i in range(0, len(words), 6):
        lines.append(" ".join(f"0x{word:08x}," for word in words[i:i + 6]))
    return "\n".join(lines) + "\n"


def main():
    check = sys.argv[1:2] == ["--check"]
    assembler, objcopy, source, target = sys.argv[-4:]
    text = text_of(words_of(assembler, objcopy, source))
    if not check:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(target, encoding="utf-8") as file:
        same = file.read() == text
    if not same:
        print(f"{target} is not what {source} assembles to")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
