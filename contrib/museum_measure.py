#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How soon the museum's exhibits are found, and docs/MUSEUM.md, which says so.

  museum_measure.py [options] [NUMBER | NAME]...   measures, and writes both
  museum_measure.py --table                        writes docs/MUSEUM.md only
  museum_measure.py --check                        is it what --table writes?

For each way to see an exhibit: the smallest schedule that still shows it, and
for each strategy how many executions it takes from a cold start, from several
seeds. An execution is the scenario once, from its snapshot. With the switch off
the same schedules, up to those that found it, must be silent.

  --shootdown FILE   the program, default build/shootdown
  --seeds N          cold starts for each strategy (20)
  --bound N          executions of each at most (2000)
  --seconds N        for one strategy at most; the seeds left are not tried (60)
  --missing          only what has no figures yet
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import museum

FIGURES = museum.ROOT / museum.MUSEUM / "measured.json"
TABLE = museum.ROOT / "docs/MUSEUM.md"
STRATEGIES = ("random", "pct:3", "pos")
# Far enough apart that no seed is tried twice.
APART = 1000003


def load_figures():
    if not FIGURES.exists():
        return {}
    return json.loads(FIGURES.read_text(encoding="utf-8"))


def save_figures(figures):
    text = json.dumps(figures, indent=1, sort_keys=True)
    FIGURES.write_text(text + "\n", encoding="utf-8")


def key_of(e, show):
    return f"{e['number']} {show.get('title', '')}".strip()


# --- measuring

def tells(show, found):
    """By its rule and cause; whoever did it to whom."""
    return any(show["tells"] in (f.tells, f.tells.split()[0]) for f in found)


def executions(options, show, strategy, seed):
    """How many until it is told; None: not within the bound."""
    way = {**show, "strategy": strategy}
    done = 0
    while done < options.bound:
        left = max(options.bound - done, 2)
        _, found, text = museum.run(
            options.shootdown,
            museum.words_of(way, True, seed + done, left))
        ran = re.search(r"^shootdown: (\d+) runs?, the last", text, re.M)
        done += max(int(ran[1]) if ran else 0, 1)
        if tells(show, found):
            return done
    return None


def is_silent(options, show, strategy, seed, runs):
    way = {**show, "strategy": strategy}
    status, found, _ = museum.run(
        options.shootdown, museum.words_of(way, False, seed, max(runs, 2)))
    return status == 0 and not found


def cold(options, show, strategy):
    """{found: [executions or null], silent: n, loud: n} of the seeds."""
    end = time.monotonic() + options.seconds
    result = {"bound": options.bound, "found": [], "silent": 0, "loud": 0}
    for i in range(options.seeds):
        if time.monotonic() > end:
            break
        seed = 1 + i * APART
        runs = executions(options, show, strategy, seed)
        result["found"].append(runs)
        if is_silent(options, show, strategy, seed, runs or 2):
            result["silent"] += 1
        else:
            result["loud"] += 1
    return result


def smallest(options, show):
    """Its preemptions and steps; None if minimizing did not get there."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "found.sd"
        words = museum.words_of(show, True, None, 2)
        at = words.index("--") if "--" in words else len(words)
        words[at:at] = ["--record", str(path)]
        museum.run(options.shootdown, words)
        try:
            done = subprocess.run(
                [options.shootdown, "minimize", "--no-table", str(path)],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=options.seconds, check=False)
        except subprocess.TimeoutExpired:
            return None
    text = done.stdout.decode(errors="replace")
    last = re.findall(r"(\d+) preemptions?, (\d+) steps", text)
    return [int(n) for n in last[-1]] if last and done.returncode == 0 else None


def measure(options, exhibits):
    figures = load_figures()
    for e in exhibits:
        for show in e.get("show", []):
            key = key_of(e, show)
            mine = figures.setdefault(key, {})
            if options.missing and set(STRATEGIES) <= set(mine):
                continue
            mine["smallest"] = smallest(options, show)
            for strategy in STRATEGIES:
                mine[strategy] = cold(options, show, strategy)
                mine["when"] = datetime.date.today().isoformat()
                save_figures(figures)
                print(f"{key}: {strategy}: {mine[strategy]['found']}, loud: "
                      f"{mine[strategy]['loud']}", flush=True)


# --- the table

def middle(found, bound):
    """Median and worst, as text; "> n" where a seed did not find it."""
    if not found:
        return "-"
    ranked = sorted(found, key=lambda n: bound + 1 if n is None else n)
    texts = ["> " + str(bound) if n is None else str(n)
             for n in (ranked[(len(ranked) - 1) // 2], ranked[-1])]
    seeds = "" if len(found) == 20 else f" ({len(found)} seeds)"
    return f"{texts[0]} / {texts[1]}{seeds}"


def row_of(e, show, mine):
    name = f"[{e['name']}](museum/{museum.slug(e)}.md)"
    if "title" in show:
        name += f", {show['title']}"
    small = mine.get("smallest")
    cells = [str(e["number"]), name, show["tells"],
             f"{small[0]} / {small[1]}" if small else "-"]
    silent = loud = 0
    for strategy in STRATEGIES:
        figures = mine.get(strategy, {"found": [], "bound": 0, "silent": 0,
                                      "loud": 0})
        cells.append(middle(figures["found"], figures["bound"]))
        silent += figures["silent"]
        loud += figures["loud"]
    cells.append(f"{silent} of {silent + loud}" if silent + loud else "-")
    parts = [f"{show[key]}" for key in ("changed", "broke", "holder")
             if key in show]
    cells.append(", ".join(parts) or "-")
    return "| " + " | ".join(cells) + " |"


HEAD = ["| # | exhibit | told as | preemptions / steps | random | pct:3 | pos "
        "| silent without | vCPUs |", "|" + "---|" * 9]


def table(exhibits):
    figures = load_figures()
    lines = ["# The museum, measured", "", museum.paragraph(
        "Written by `contrib/museum_measure.py` from `museum/exhibits.toml` "
        "and `museum/measured.json`; what each exhibit is, is on its page. "
        "Each line is one way to see an exhibit, and a test: on one schedule "
        "the ledger tells it by that rule (in brackets the cause) and names "
        "these vCPUs and, for S1 and S4, the frame; without the mistake it is "
        "silent on the same seed."), "", museum.paragraph(
        "Told as: the rule, never a stale access that happened to hit. "
        "Preemptions / steps: of the smallest schedule that `shootdown "
        "minimize` gets to, which fails by the same rule. random, pct:3, pos: "
        "executions from a cold start until it is told, the median and the "
        "worst of 20 seeds; \"> n\": not within n. Silent without: cold "
        "starts whose schedules, run as far without the mistake, had nothing "
        "to tell. vCPUs: who took the translation away, who relied on that, "
        "one that may still use it.")]
    for title, wanted in (
            ("No hardware liberty is needed", False),
            ("They need hardware that takes liberties", True)):
        rows = [row_of(e, show, figures.get(key_of(e, show), {}))
                for e in exhibits if bool(e["liberties"]) == wanted
                for show in e.get("show", [])]
        lines += ["", f"## {title}", "", *HEAD, *rows]
    lines += ["", museum.paragraph(
        "The ledger itself needs no liberty for the second group, since it "
        "judges what hardware may hold; what it tells would do no harm on "
        "hardware that is stricter.")]
    unseen = [e for e in exhibits if not e["rules"]]
    if unseen:
        lines += ["", "## Not seen by the ledger", ""]
        lines += [museum.paragraph(f"* {e['number']} {e['name']}: {e['why']}")
                  for e in unseen]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--shootdown",
                        default=str(museum.ROOT / "build" / "shootdown"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--bound", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    for flag in ("--missing", "--table", "--check", "--help"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if options.help:
        sys.exit(__doc__)
    exhibits = museum.load()
    if not options.table and not options.check:
        measure(options, museum.choose(exhibits, options.words))
    text = table(exhibits)
    if options.check:
        same = TABLE.exists() and TABLE.read_text(encoding="utf-8") == text
        if not same:
            print("docs/MUSEUM.md: contrib/museum_measure.py --table writes "
                  "something else")
        return 0 if same else 1
    TABLE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
