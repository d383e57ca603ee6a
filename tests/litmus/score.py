#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares what `shootdown litmus --json` saw with the states of a model.

score.py DATA RESULTS [--list]

DATA is a directory with herd-states.json and herd-verdicts.tsv; RESULTS the
JSON lines. Prints figures for each tier, and what disagrees: states outside the
model's (but for those in which one access faulted twice and in two ways, since
models bound how often it is tried again), forbidden or not always required
outcomes, outcomes and states that an in-order machine could show and this one
did not. Exit status 1: there was a state outside, a violation, or a test that
failed.
"""
import argparse
import collections
import csv
import json
import os
import re
import sys


def normal_item(item):
    """One 'name=value' without blanks, the fields of descriptors sorted."""
    match = re.fullmatch(r'(.*)\((oa:.*)\)', item.strip())
    if match:
        fields = ','.join(sorted(f.strip() for f in match[2].split(',')))
        return re.sub(r'\s+', '', match[1]) + '(' + fields + ')'
    return re.sub(r'\s+', '', item)


def normal(state):
    return frozenset(normal_item(i) for i in state.split(';') if i.strip())


def retries(state):
    """Did one access fault in two ways? Models bound how often it retries."""
    places = [i.rpartition(',')[0] for i in state if i.startswith('Fault')]
    return len(places) != len(set(places))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('data')
    parser.add_argument('results')
    parser.add_argument('--list', action='store_true',
                        help='name every outcome and state in order that was '
                        'not seen, and every search that was cut off')
    args = parser.parse_args()
    with open(os.path.join(args.data, 'herd-states.json')) as f:
        model = json.load(f)
    with open(os.path.join(args.data, 'herd-verdicts.tsv')) as f:
        rows = {r['file']: r for r in csv.DictReader(f, delimiter='\t')}
    tiers = collections.defaultdict(collections.Counter)
    bad = False
    root = os.path.join(args.data, 'herd') + os.sep
    for line in open(args.results):
        result = json.loads(line)
        if 'error' in result:
            print('failed:', result['error'])
            tiers['?']['failed'] += 1
            bad = True
            continue
        name = os.path.relpath(result['file'], root)
        row = rows.get(name, {'tier': '?', 'class': '?'})
        tier = tiers[row['tier']]
        tier['tests'] += 1
        tier['complete'] += result['complete']
        tier['seconds'] += result['seconds']
        if result.get('score') == 'violates':
            print('VIOLATION:', name, row['kind_published'],
                  result['observation'])
            tier['violations'] += 1
            bad = True
        states = model.get(name, {})
        known = {normal(s) for s in states.get('states') or []}
        inorder = {normal(s): s for s in states.get('inorder_states') or []}
        seen = {normal(s['state']) for s in result['states']}
        outside = {s for s in seen - known if not retries(s)}
        if known:
            tier['compared'] += 1
            tier['states with two faults of one access'] += \
                len(seen - known) - len(outside)
            tier['states seen'] += len(seen & known)
            tier['states in order'] += len(inorder)
            tier['in-order states seen'] += len(seen & inorder.keys())
            tier['not in order, seen'] += len((seen & known) - inorder.keys())
            for state in sorted(inorder.keys() - seen, key=sorted):
                if args.list:
                    print('unseen state:', name, inorder[state].strip())
        if args.list and not result['complete']:
            print('cut off:', name, result['extent'])
        if known and outside:
            tier['tests with states outside'] += 1
            bad = True
            for state in sorted(outside, key=sorted):
                print('OUTSIDE:', name, '; '.join(sorted(state)))
        if row['class'] == 'ALLOWED-REACHABLE':
            tier['reachable'] += 1
            if result['observation'] == 'Never':
                if args.list:
                    print('unseen:', name, result['condition'])
            else:
                tier['reached'] += 1
    for name in sorted(tiers):
        print('tier', name + ':',
              ', '.join(f'{k} {v:.0f}' for k, v in tiers[name].items()))
    return bad


if __name__ == '__main__':
    sys.exit(main())
