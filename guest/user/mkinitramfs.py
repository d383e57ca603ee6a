#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the initramfs: mkinitramfs.py OUTPUT PROGRAM...

A cpio archive in the newc format with /bin/<name> for each program. The same
inputs give the same bytes: no times, owners or host inode numbers go in.
"""
import os
import sys

S_IFDIR = 0o040000
S_IFREG = 0o100000


def entry(ino, name, mode, data=b''):
    """One archive member, header and contents padded to four bytes."""
    name_bytes = name.encode() + b'\0'
    links = 2 if mode & S_IFDIR else 1
    fields = [ino, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0,
              len(name_bytes), 0]
    out = b'070701' + b''.join(b'%08x' % f for f in fields) + name_bytes
    out += b'\0' * (-len(out) % 4)
    return out + data + b'\0' * (-len(data) % 4)


def main():
    output, programs = sys.argv[1], sys.argv[2:]
    archive = entry(1, 'bin', S_IFDIR | 0o755)
    programs.sort(key=os.path.basename)
    for ino, path in enumerate(programs, start=2):
        with open(path, 'rb') as f:
            archive += entry(ino, 'bin/' + os.path.basename(path),
                             S_IFREG | 0o755, f.read())
    archive += entry(0, 'TRAILER!!!', 0)
    archive += b'\0' * (-len(archive) % 512)
    with open(output, 'wb') as f:
        f.write(archive)


if __name__ == '__main__':
    main()
