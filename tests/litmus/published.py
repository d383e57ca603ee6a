#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Published litmus tests, where somebody has them.

published.py SHOOTDOWN DATA SCORE [TIER...]

DATA (or $SHOOTDOWN_LITMUS_DATA) is a directory with herd/, herd-verdicts.tsv,
herd-states.json and core.txt. Without tiers the core list is run, else every
test of these tiers. Skipped, with status 77, where there is no such directory.
"""
import csv
import os
import subprocess
import sys
import tempfile

SKIPPED = 77


def files_of(data, tiers):
    if not tiers:
        with open(os.path.join(data, 'core.txt')) as f:
            return [line.strip() + '.litmus' for line in f if line.strip()]
    with open(os.path.join(data, 'herd-verdicts.tsv')) as f:
        return [row['file'] for row in csv.DictReader(f, delimiter='\t')
                if row['tier'] in tiers]


def main():
    shootdown, data, score = sys.argv[1:4]
    data = os.environ.get('SHOOTDOWN_LITMUS_DATA') or data
    if not data or not os.path.isdir(data):
        print('no directory of published litmus tests: set '
              'SHOOTDOWN_LITMUS_DATA, or the option litmus_data of meson')
        return SKIPPED
    paths = [os.path.join(data, 'herd', f) for f in files_of(data, sys.argv[4:])]
    paths = [p for p in paths if os.path.exists(p)]
    with tempfile.TemporaryDirectory() as cache:
        results = os.path.join(cache, 'results.json')
        with open(results, 'w') as out:
            status = subprocess.run(
                [shootdown, 'litmus', '--json', '-j', '2', '--seconds', '20',
                 '--random', '2000', '--verdicts',
                 os.path.join(data, 'herd-verdicts.tsv'), *paths],
                env={**os.environ, 'XDG_CACHE_HOME': cache},
                stdout=out).returncode
        scored = subprocess.run([sys.executable, score, data, results,
                                 '--list']).returncode
    return 1 if status or scored or not paths else 0


if __name__ == '__main__':
    sys.exit(main())
