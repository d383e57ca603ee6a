#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our own litmus tests: the printed result must be the expected one.

own.py SHOOTDOWN DIRECTORY [--update]

Runs `shootdown litmus` over DIRECTORY twice, in one process at a time and in
three, the second time from the cache, and compares with expected.txt there.
Then makes the TLB faulty in each way in turn: the tests that notice must be
those that should.
"""
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile


NOTICED = {
    'tlbi-nothing': {'own-unmap', 'own-unmap-self', 'own-bystander'},
    'broadcast-lost': {'own-unmap', 'own-bystander'},
    'own-not-flushed': {'own-unmap-self'},
    'faulting-cached': {'own-map', 'own-map-dmb'},
    'wrong-completer': {'own-bystander'},
    'ish-as-nsh': {'own-unmap', 'own-bystander'},
    # There is one table and one ASID, and more waiting than needed is allowed.
    'ttl-other-level': set(),
    'asid-other': set(),
    'tables-kept': set(),
    'nsh-as-ish': set(),
}


def noticed(shootdown, directory, cache, fault):
    """Names of the tests that disagree with their kind under this fault."""
    result = subprocess.run(
        [shootdown, 'litmus', '-j', '2', '--json', '--quiet',
         '--inject', fault, '--verdicts', 'kinds.txt', '.'],
        cwd=directory, env={**os.environ, 'XDG_CACHE_HOME': cache},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return {json.loads(line).get('name', line)
            for line in result.stdout.splitlines()}


def run(shootdown, directory, cache, jobs):
    result = subprocess.run(
        [shootdown, 'litmus', '-j', str(jobs), '--verdicts', 'kinds.txt', '.'],
        cwd=directory, env={**os.environ, 'XDG_CACHE_HOME': cache},
        stdout=subprocess.PIPE, text=True)
    # Times differ, and nothing else.
    text = re.sub(r', [0-9.]+ s$', '', result.stdout, flags=re.M)
    return f'{text}exit status {result.returncode}\n'


def main():
    shootdown, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
    path = os.path.join(directory, 'expected.txt')
    with tempfile.TemporaryDirectory() as cache:
        first = run(shootdown, directory, cache, 1)
        second = run(shootdown, directory, cache, 3)
        wrong = {fault: got for fault, expected in NOTICED.items()
                 if (got := noticed(shootdown, directory, cache, fault))
                 != expected}
    if sys.argv[3:] == ['--update']:
        with open(path, 'w') as f:
            f.write(first)
    with open(path) as f:
        expected = f.read()
    for what, got in (('one at a time', first), ('from the cache', second)):
        if got != expected:
            print(what + ':')
            print('\n'.join(difflib.unified_diff(
                expected.splitlines(), got.splitlines(), 'expected', 'got',
                lineterm='')))
            return 1
    for fault, got in wrong.items():
        print(f'--inject {fault} was noticed by {sorted(got)}, expected '
              f'{sorted(NOTICED[fault])}')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
