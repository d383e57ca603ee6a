#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the litmus figures of docs/CONFORMANCE.md, between its two marks.

document.py SHOOTDOWN DATA PAGE

DATA as for published.py. Runs the core list and every tier.
"""
import csv
import os
import re
import subprocess
import sys
import tempfile

BEGIN = '<!-- litmus: begin of what document.py writes -->'
END = '<!-- litmus: end -->'
HERE = os.path.dirname(os.path.abspath(__file__))

# Why an outcome that an in-order machine could show is not seen here.
REASONS = [
    (r'coRRNExpNExpExp|\+af|LDR-BY2PTE',
     'a hardware update of the descriptor would have to become visible after '
     'the access that made it'),
]


def reason(name):
    for pattern, text in REASONS:
        if re.search(pattern, name):
            return text
    return 'not known'


def measure(shootdown, data, files, cache):
    results = os.path.join(cache, 'results.json')
    with open(results, 'w') as out:
        subprocess.run(
            [shootdown, 'litmus', '--json', '-j', '2', '--verdicts',
             os.path.join(data, 'herd-verdicts.tsv'),
             *[os.path.join(data, 'herd', f) for f in files]],
            env={**os.environ, 'XDG_CACHE_HOME': cache}, stdout=out,
            stderr=subprocess.DEVNULL)
    text = subprocess.run(
        [sys.executable, os.path.join(HERE, 'score.py'), data, results,
         '--list'], stdout=subprocess.PIPE, text=True).stdout
    figures = {}
    for line in text.splitlines():
        if line.startswith('tier '):
            for key, value in re.findall(r'(\D+?) (\d+)(?:, |$)',
                                         line.split(': ', 1)[1]):
                figures[key] = figures.get(key, 0) + int(value)
    unseen = [line.split()[1] for line in text.splitlines()
              if line.startswith('unseen: ')]
    return figures, unseen


def row(name, f):
    return '| {} | {} | {} | {} of {} | {} of {} | {} | {} |'.format(
        name, f.get('tests', 0), f.get('complete', 0),
        f.get('in-order states seen', 0), f.get('states in order', 0),
        f.get('reached', 0), f.get('reachable', 0),
        f.get('tests with states outside', 0), f.get('violations', 0))


def main():
    shootdown, data, page = sys.argv[1:4]
    with open(os.path.join(data, 'herd-verdicts.tsv')) as f:
        rows = list(csv.DictReader(f, delimiter='\t'))
    with open(os.path.join(data, 'core.txt')) as f:
        lists = {'core': [line.strip() + '.litmus' for line in f
                          if line.strip()]}
    for tier in 'ABCD':
        lists['tier ' + tier] = [r['file'] for r in rows if r['tier'] == tier]
    lines = ['| list | tests | searched to the end | in-order states seen | '
             'reachable outcomes seen | tests with states outside | '
             'forbidden or not always required |',
             '|---|---|---|---|---|---|---|']
    missing = {}
    with tempfile.TemporaryDirectory() as cache:
        for name, files in lists.items():
            files = [f for f in files
                     if os.path.exists(os.path.join(data, 'herd', f))]
            figures, unseen = measure(shootdown, data, files, cache)
            if figures.get('tests') != len(files):
                sys.exit(f'{name}: {figures.get("tests", 0)} of {len(files)} '
                         'tests have a result')
            lines.append(row(name, figures))
            missing.update({u: reason(u) for u in unseen})
    lines += ['', 'Reachable outcomes that are not seen:', '']
    lines += [f'* `{name.removesuffix(".litmus")}`: {text}.'
              for name, text in sorted(missing.items())] or ['* none.']
    with open(page) as f:
        text = f.read()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    with open(page, 'w') as f:
        f.write(before + BEGIN + '\n\n' + '\n'.join(lines) + '\n\n' + END
                + after)


if __name__ == '__main__':
    main()
