#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the litmus figures of docs/CONFORMANCE.md, between its two marks.

document.py SHOOTDOWN DATA PAGE

DATA as for published.py. Runs the core list and every tier, then everything
with faulty TLBs.
"""
import collections
import csv
import json
import os
import re
import subprocess
import sys
import tempfile

BEGIN = '<!-- litmus: begin of what document.py writes -->'
END = '<!-- litmus: end -->'
HERE = os.path.dirname(os.path.abspath(__file__))

# Why a state that an in-order machine could show is not seen here: test, part
# of the state or '' for all of them, reason. None at present.
REASONS = []

# Why a search does not come to its end.
CUT_OFF = {
    'Sc06+BIS.litmus': 'a loop counts in W10 how often it is gone through: '
                       'there is no last state',
}

# --inject, its name in the column `kills`, what it is.
FAULTS = [
    ('tlbi-nothing', 'm1', 'TLBI does nothing'),
    ('broadcast-lost', 'm2', 'broadcast lost'),
    ('faulting-cached', 'm5', 'faulting walks cached'),
    ('own-not-flushed', 'm8', 'own TLB not flushed'),
]


def reason(name, state):
    for test, part, text in REASONS:
        if test == name and part in state:
            return text
    return 'not known'


def search(shootdown, data, files, cache, results, *options):
    with open(results, 'w') as out:
        subprocess.run(
            [shootdown, 'litmus', '--json', '-j', '2', '--seconds', '20',
             '--random', '2000', *options, '--verdicts',
             os.path.join(data, 'herd-verdicts.tsv'),
             *[os.path.join(data, 'herd', f) for f in files]],
            env={**os.environ, 'XDG_CACHE_HOME': cache}, stdout=out,
            stderr=subprocess.DEVNULL)


def measure(shootdown, data, files, cache):
    results = os.path.join(cache, 'results.json')
    search(shootdown, data, files, cache, results)
    text = subprocess.run(
        [sys.executable, os.path.join(HERE, 'score.py'), data, results,
         '--list'], stdout=subprocess.PIPE, text=True).stdout
    figures = {}
    for line in text.splitlines():
        if line.startswith('tier '):
            for key, value in re.findall(r'(\D+?) (\d+)(?:, |$)',
                                         line.split(': ', 1)[1]):
                figures[key] = figures.get(key, 0) + int(value)
    listed = collections.defaultdict(list)
    for line in text.splitlines():
        what, _, rest = line.partition(': ')
        if what in ('unseen', 'unseen state', 'cut off'):
            listed[what].append(tuple(rest.split(' ', 1)))
    return figures, listed


def row(name, f):
    return '| {} | {} | {} | {} of {} | {} | {} of {} | {} | {} | {} |'.format(
        name, f.get('tests', 0), f.get('complete', 0),
        f.get('in-order states seen', 0), f.get('states in order', 0),
        f.get('not in order, seen', 0),
        f.get('reached', 0), f.get('reachable', 0),
        f.get('tests with states outside', 0), f.get('violations', 0),
        f.get('seconds', 0))


def items(pairs):
    return [f'* `{name.removesuffix(".litmus")}`: {text}'
            for name, text in sorted(set(pairs))] or ['* none.']


def notice(shootdown, data, rows, cache):
    """The table of faults: who should notice, who does."""
    lines = ['| fault | tests that must notice | that do | besides |',
             '|---|---|---|---|']
    results = os.path.join(cache, 'faulty.json')
    rows = [r for r in rows if r['kind_published'][:6] in ('Forbid', 'Requir')
            and os.path.exists(os.path.join(data, 'herd', r['file']))]
    for option, kill, what in FAULTS:
        should = {r['file'] for r in rows
                  if r['class'] == 'FORBIDDEN' and kill in r['kills'].split(',')}
        search(shootdown, data, [r['file'] for r in rows], cache, results,
               '--inject', option)
        noticed = set()
        with open(results) as f:
            for result in map(json.loads, f):
                if result.get('score') == 'violates':
                    noticed.add(os.path.relpath(
                        result['file'], os.path.join(data, 'herd')))
        besides = ', '.join(f'`{n.removesuffix(".litmus")}`'
                            for n in sorted(noticed - should))
        missed = ', '.join(f'`{n.removesuffix(".litmus")}`'
                           for n in sorted(should - noticed))
        lines.append(f'| {what} | {len(should)} | {len(should & noticed)}'
                     f'{": not " + missed if missed else ""} | {besides} |')
    return lines


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
             'others of the model seen | reachable outcomes seen | tests with '
             'states outside | forbidden or not always required | seconds |',
             '|---|---|---|---|---|---|---|---|---|']
    outcomes, states, cut = [], [], []
    with tempfile.TemporaryDirectory() as cache:
        for name, files in lists.items():
            files = [f for f in files
                     if os.path.exists(os.path.join(data, 'herd', f))]
            figures, listed = measure(shootdown, data, files, cache)
            if figures.get('tests') != len(files):
                sys.exit(f'{name}: {figures.get("tests", 0)} of {len(files)} '
                         'tests have a result')
            lines.append(row(name, figures))
            outcomes += [(n, f'`{text}`: {reason(n, text)}.')
                         for n, text in listed['unseen']]
            states += [(n, f'`{text}`: {reason(n, text)}.')
                       for n, text in listed['unseen state']]
            cut += [(n, f'{text}: {CUT_OFF.get(n, "not known why")}.')
                    for n, text in listed['cut off']]
        faults = notice(shootdown, data, rows, cache)
    lines += ['', 'Reachable outcomes that are not seen:', '',
              *items(outcomes), '',
              'In-order states that are not seen:', '', *items(states), '',
              'Searches that were cut off:', '', *items(cut), '',
              'How much of this is the tests\' doing: with a fault put into the '
              'TLBs', '(`--inject`), the tests that notice are those that '
              'should.', '', *faults]
    with open(page) as f:
        text = f.read()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    with open(page, 'w') as f:
        f.write(before + BEGIN + '\n\n' + '\n'.join(lines) + '\n\n' + END
                + after)


if __name__ == '__main__':
    main()
