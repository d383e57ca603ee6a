#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes an initramfs: mkinitramfs.py OUTPUT ENTRY...

An ENTRY is PROGRAM (a file that becomes /bin/<its name>), NAME=FILE (a file
that becomes /NAME) or NAME->TARGET (a symbolic link); files are executable.
A cpio archive in the newc format. Kernels take several of them, one after the
other: a second one adds to the first. The same inputs give the same bytes: no
times, owners or host inode numbers go in.
"""
import os
import sys

S_IFDIR = 0o040000
S_IFREG = 0o100000
S_IFLNK = 0o120000


def entry(ino, name, mode, data=b''):
    """One archive member, header and contents padded to four bytes."""
    name_bytes = name.encode() + b'\0'
    links = 2 if mode & S_IFDIR else 1
    fields = [ino, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0,
              len(name_bytes), 0]
    out = b'070701' + b''.join(b'%08x' % f for f in fields) + name_bytes
    out += b'\0' * (-len(out) % 4)
    return out + data + b'\0' * (-len(data) % 4)


def member(word):
    """(name in the archive, mode, contents) of an ENTRY."""
    if '->' in word:
        name, target = word.split('->', 1)
        return name, S_IFLNK | 0o777, target.encode()
    name, path = word.split('=', 1) if '=' in word else (
        'bin/' + os.path.basename(word), word)
    with open(path, 'rb') as f:
        return name, S_IFREG | 0o755, f.read()


def folders(names):
    """The folders that the names need, outer ones first."""
    found = set()
    for name in names:
        parts = name.split('/')[:-1]
        found.update('/'.join(parts[:n + 1]) for n in range(len(parts)))
    return sorted(found)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    members = sorted(member(word) for word in sys.argv[2:])
    archive = b''
    ino = 0
    for ino, name in enumerate(folders(m[0] for m in members), start=1):
        archive += entry(ino, name, S_IFDIR | 0o755)
    for ino, (name, mode, data) in enumerate(members, start=ino + 1):
        archive += entry(ino, name, mode, data)
    archive += entry(0, 'TRAILER!!!', 0)
    archive += b'\0' * (-len(archive) % 512)
    with open(sys.argv[1], 'wb') as f:
        f.write(archive)


if __name__ == '__main__':
    main()
