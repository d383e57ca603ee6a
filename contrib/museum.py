#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The museum of TLB-invalidation bugs: docs/museum/exhibits.toml, told and run.

  museum.py [options] WHAT [NUMBER | NAME]...

WHAT is one of
  list      the exhibits, a line each
  run       runs them: with the mistake, the ledger must name its rule, the
            vCPUs and the frame; without it, on the same seed, nothing
  command   prints the command lines of `run` instead
  pages     writes docs/museum/*.md
  check     is what `pages` writes what is there?
  tests     "NN_name" of each exhibit that can be shown, for meson

Without a number or a name, all of them.
  --shootdown FILE   the program, default build/shootdown
  --find N           run: where the seed in the file does not show it any more,
                     look for another one from 1 to N
  --verbose          run: the findings, too
Exit status 0 or 1; 2 for what does not exist.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUSEUM = pathlib.Path("docs/museum")
GROUPS = {
    "A": "Deferred and batched flushes",
    "B": "Moves, unlinked ranges, shared tables",
    "C": "Page-table pages, walk caches, software walkers, operands",
    "D": "ASIDs, context switch, shootdown targets",
    "E": "Plain omissions",
    "F": "Hardware errata and secondary TLBs",
}
LIBERTIES = {
    "H1": "a CPU may walk at any time, for any address",
    "H2": "a TLBI takes effect elsewhere as late as its issuer's DSB",
    "H3": "a PTE store may wait in a buffer that walks do not see",
    "H4": "table descriptors are cached apart from translations",
    "H5": "an access may be translated and performed much later",
    "H6": "entries of an ASID outlive the switch to another one",
    "H7": "two CPUs may share a TLB",
    "H8": "an IPI may be late",
    "H9": "an entry that is dirty does not make its PTE dirty again",
    "H10": "entries of several sizes exist for one address",
    "H11": "a DSB may end before others' accesses are performed",
    "H12": "an idle CPU keeps the last root loaded",
    "H13": "a vCPU may be stopped anywhere for any time",
    "H14": "level hints and ranges of a TLBI are taken at their word",
}
MARKS = {
    "V": "read in the original text",
    "V-id": "identifier and title read, mechanics from memory",
    "M": "from memory, not looked up",
}
NEEDED = {"number", "name", "group", "year", "reference", "mark", "invariant",
          "consequence", "fix", "here", "interleaving", "rules", "liberties"}
KNOWN = NEEDED | {"guard", "why", "show"}
SHOW_NEEDED = {"on", "workload", "options", "strategy", "seed", "tells"}
SHOW_KNOWN = SHOW_NEEDED | {"title", "off", "arguments", "changed", "broke",
                            "holder", "at"}


def slug(e):
    return f"{e['number']:02d}-{e['name']}"


def problems_of(e):
    """What is wrong with an exhibit's table."""
    name = e.get("name", "without a name")
    wrong = [f"{name}: {key} is missing" for key in sorted(NEEDED - set(e))]
    wrong += [f"{name}: {key} is unknown" for key in sorted(set(e) - KNOWN)]
    if wrong:
        return wrong
    if e["group"] not in GROUPS or e["mark"] not in MARKS:
        wrong.append(f"{name}: group {e['group']}, mark {e['mark']}")
    wrong += [f"{name}: {h} is no liberty" for h in e["liberties"]
              if h not in LIBERTIES]
    if not e["rules"] and "why" not in e:
        wrong.append(f"{name}: why can the ledger not see it?")
    if bool(e.get("show")) != bool(e["rules"]):
        wrong.append(f"{name}: rules and ways to see it go together")
    for show in e.get("show", []):
        wrong += [f"{name}: {key} is missing in a show"
                  for key in sorted(SHOW_NEEDED - set(show))]
        wrong += [f"{name}: {key} is unknown in a show"
                  for key in sorted(set(show) - SHOW_KNOWN)]
        told = set(re.findall(r"S\d+", show.get("tells", "")))
        if not told & set(e["rules"]):
            wrong.append(f"{name}: tells {show.get('tells')}, which is none "
                         f"of {', '.join(e['rules'])}")
    return wrong


def load():
    with open(ROOT / MUSEUM / "exhibits.toml", "rb") as file:
        exhibits = tomllib.load(file)["exhibit"]
    wrong = [text for e in exhibits for text in problems_of(e)]
    names = [e[key] for e in exhibits for key in ("number", "name") if key in e]
    wrong += [f"{name} is there twice" for name in set(names)
              if names.count(name) > 1]
    if wrong:
        sys.exit("exhibits.toml: " + "\nexhibits.toml: ".join(wrong))
    return sorted(exhibits, key=lambda e: e["number"])


def choose(exhibits, words):
    chosen = [e for e in exhibits if not words or str(e["number"]) in words or
              e["name"] in words or slug(e) in words]
    known = {word for e in chosen for word in (str(e["number"]), e["name"],
                                               slug(e))}
    for word in words:
        if word not in known:
            print(f"museum.py: no exhibit {word}", file=sys.stderr)
            sys.exit(2)
    return chosen


# --- running

def words_of(show, is_on, seed=None, runs=1):
    """Those of a command line, without the program."""
    words = ["run", show["workload"], "--engine", "seeded", "--ledger",
             "on" if runs == 1 else "stop", "--mem", "64M", "--snapshot-at", "1", "--strategy",
             show["strategy"], "--seed", str(show["seed"] if seed is None
                                             else seed)]
    if runs != 1:
        words += ["--runs", str(runs)]
    words += show["options"] + (show["on"] if is_on else show.get("off", []))
    if show.get("arguments"):
        words += ["--"] + show["arguments"]
    return words


@dataclasses.dataclass
class Finding:
    """One of the ledger's: "S1 (S5)", who did it, with which frame."""
    tells: str
    changed: int = -1
    broke: int = -1
    at: str = ""
    holders: int = 0
    old: int = 0
    frame: int = 0


def findings_of(path):
    """What --report wrote; see docs/LEDGER.md."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            told = json.loads(line)
            sites = {site["what"]: site for site in told["sites"]}
            contract = sites["contract"]
            found.append(Finding(
                told["rule"] + (f" ({told['cause']})" if told["cause"] else ""),
                sites.get("store", {"vcpu": -1})["vcpu"], contract["vcpu"],
                contract["symbol"].split("+")[0],
                sum(1 << vcpu for vcpu in told["live"]),
                int(told["mapping"]["old"], 16),
                int(told.get("frame", "0"), 16)))
    return found


def run(shootdown, words):
    """(exit status, findings, standard error)."""
    timeout = 60 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run(
            [os.path.abspath(shootdown), *words[:1], "--verbose", "--report",
             report, *words[1:]], cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=timeout, check=False)
        found = findings_of(report) if os.path.exists(report) else []
    text = done.stderr.decode(errors="replace")
    if not re.search(r"ledger: [1-9]\d* descriptors taken away", text):
        text += "\nthe ledger saw nothing at all"
        return -1, [], text
    return done.returncode, found, text


def fits(show, f):
    """Is it the finding that the exhibit is about?"""
    is_frame_right = (f.tells.split()[0] not in ("S1", "S4") or
                      f.frame == f.old & 0x0000fffffffff000)
    return (show["tells"] in (f.tells, f.tells.split()[0]) and
            is_frame_right and
            show.get("changed", f.changed) == f.changed and
            show.get("broke", f.broke) == f.broke and
            show.get("at", f.at) == f.at and
            ("holder" not in show or f.holders >> show["holder"] & 1 == 1))


def title_of(e, show):
    return f"{e['number']:>2} {e['name']}" + (
        f", {show['title']}" if "title" in show else "")


def show_once(show, options, seed):
    """(what is wrong or None, all findings, those that fit)."""
    status, found, text = run(options.shootdown, words_of(show, True, seed))
    right = [f for f in found if fits(show, f)]
    if not right or status not in (77, 3):
        wrong = f"status {status}, not told: {show['tells']}; told:"
        for f in found:
            wrong += (f"\n  {f.tells}: changed {f.changed}, broke {f.broke} "
                      f"at {f.at}, holders 0x{f.holders:x}")
        if options.verbose or status not in (0, 77):
            wrong += "\n" + textwrap.indent(text[-2000:], "  ")
        return wrong, found, right
    status, silent, text = run(options.shootdown, words_of(show, False, seed))
    if status != 0 or silent:
        return (f"without the mistake: status {status}\n"
                f"{textwrap.indent(text[-2000:], '  ')}"), found, right
    return None, found, right


def first_seed(shootdown, show, first, limit):
    """Of the seeds first, first + 1, ... the first that shows it, or None."""
    seed, end = first, first + limit
    while seed < end:
        _, found, text = run(shootdown, words_of(show, True, seed,
                                                 max(end - seed, 2)))
        count = re.search(r"^shootdown: (\d+) runs?, the last", text, re.M)
        seed += max(int(count[1]) if count else 0, 1)
        if any(fits(show, f) for f in found):
            return seed - 1
        # Something else ended it: another rule, or what the program saw.
    return None


def run_show(e, show, options):
    """Prints a line; false if it is not as the file says."""
    seed, end = show["seed"], 1 + options.find
    wrong, found, right = show_once(show, options, seed)
    at = 1
    while wrong is not None and at < end:
        seed = first_seed(options.shootdown, show, at, end - at)
        if seed is None:
            break
        at = seed + 1
        wrong, found, right = show_once(show, options, seed)
    if wrong is not None:
        print(f"not ok {title_of(e, show)}: {wrong}")
        return False
    f = right[0]
    print(f"ok {title_of(e, show)}: seed {seed}: {f.tells}, vCPU {f.changed} "
          f"took it away, vCPU {f.broke} relied on it in {f.at or '?'}, may "
          f"have it: 0x{f.holders:x}")
    if options.verbose:
        for f in found:
            print(f"   {f}")
    return True


# --- pages

def cell(text):
    return text.replace("|", "\\|")


def paragraph(text):
    return textwrap.fill(" ".join(text.split()), 79, break_long_words=False,
                         break_on_hyphens=False)


def shown(words):
    """A command line, for a shell, in lines of at most 79 characters."""
    lines, line = [], "shootdown"
    for word in words:
        if re.search(r"[^\w@%+=:,./-]", word):
            word = f"'{word}'"
        if len(line) + 1 + len(word) > 73:
            lines.append(line + " \\")
            line = "   "
        line += " " + word
    return "\n".join("    " + text for text in lines + [line])


def who(show):
    parts = []
    if "changed" in show:
        parts.append(f"vCPU {show['changed']} took the translation away")
    if "broke" in show:
        parts.append(f"vCPU {show['broke']} relied on that"
                     + (f" in `{show['at']}`" if "at" in show else ""))
    if "holder" in show:
        parts.append(f"vCPU {show['holder']} may still use it")
    return "; ".join(parts)


def page(e):
    lines = [f"# {e['number']}. {e['name']}", ""]
    lines += ["| | |", "|---|---|",
              f"| group | {e['group']}: {GROUPS[e['group']]} |",
              f"| year | {e['year']} |",
              f"| reference | {cell(' '.join(e['reference'].split()))} |",
              f"| these facts | {MARKS[e['mark']]} |"]
    if e.get("guard"):
        lines.append("| kind | a documented rule, broken on purpose: no "
                     "shipped bug |")
    lines.append("| rules | " + (", ".join(e["rules"]) or "none") + " |")
    lines.append("| hardware | " + (
        "; ".join(f"{h}: {LIBERTIES[h]}" for h in e["liberties"]) or
        "no liberty: an interleaving is enough") + " |")
    lines += ["", "## What must hold", "", paragraph(e["invariant"]), "",
              "## How it is broken", ""]
    lines += [textwrap.fill(f"{i}. {step}", 79, subsequent_indent="   ",
                            break_long_words=False, break_on_hyphens=False)
              for i, step in enumerate(e["interleaving"], 1)]
    lines += ["", paragraph("So: " + e["consequence"]), "", "## Here", "",
              paragraph(e["here"])]
    if not e["rules"]:
        lines += ["", paragraph("No test shows it: " + e["why"])]
    for show in e.get("show", []):
        told = f"The ledger tells {show['tells']}"
        if "title" in show:
            told = f"{show['title'][0].upper()}{show['title'][1:]}: the " \
                   f"ledger tells {show['tells']}"
        about = who(show)
        lines += ["", paragraph(told + (f"; {about}." if about else "."))]
        lines += ["", shown(words_of(show, True))]
    lines += ["", "## What helps", "", paragraph(e["fix"]), "",
              "[All exhibits](README.md)"]
    return "\n".join(lines) + "\n"


def index(exhibits):
    lines = ["# The museum", ""]
    lines.append(paragraph(
        "Real mistakes in TLB invalidation, each planted in the bundled guest "
        "behind a switch that is one choice in its source. "
        f"{len(exhibits)} are here. The pages are written from "
        "`exhibits.toml` by `contrib/museum.py pages`; `contrib/museum.py run "
        "NUMBER` shows one."))
    for group, title in GROUPS.items():
        rows = [e for e in exhibits if e["group"] == group]
        if not rows:
            continue
        lines += ["", f"## {group}: {title}", "",
                  "| # | exhibit | year | rules | hardware |",
                  "|---|---|---|---|---|"]
        lines += [f"| {e['number']} | [{e['name']}]({slug(e)}.md) | "
                  f"{e['year']} | {', '.join(e['rules']) or 'none'} | "
                  f"{', '.join(e['liberties']) or 'plain'} |" for e in rows]
    return "\n".join(lines) + "\n"


def pages(exhibits):
    return {"README.md": index(exhibits),
            **{slug(e) + ".md": page(e) for e in exhibits}}


def write_pages(exhibits):
    folder = ROOT / MUSEUM
    texts = pages(exhibits)
    for path in folder.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return True


def switches():
    """{name: exhibit number} of the bugs that the guest knows."""
    text = (ROOT / "guest/abi/bugs.inc").read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(
        r'^BUG\(\w+, "([\w-]+)", (\d+),', text, re.M)}


def check_pages(exhibits):
    folder = ROOT / MUSEUM
    texts = pages(exhibits)
    wrong = [name for name, text in texts.items()
             if not (folder / name).exists() or
             (folder / name).read_text(encoding="utf-8") != text]
    wrong += [path.name for path in folder.glob("*.md")
              if path.name not in texts]
    if wrong:
        print("not what exhibits.toml says (contrib/museum.py pages): " +
              ", ".join(sorted(wrong)))
    known = switches()
    for e in exhibits:
        for show in e.get("show", []):
            for flag, name in zip(show["on"], show["on"][1:]):
                if flag == "--bug" and known.pop(name, e["number"]) != \
                        e["number"]:
                    wrong.append(name)
                    print(f"{name} is exhibit {e['number']} in exhibits.toml "
                          "and another one in guest/abi/bugs.inc")
    numbers = {e["number"] for e in exhibits}
    for name, number in known.items():
        if number and number not in numbers: # 0: a mutant, no museum piece
            wrong.append(name)
            print(f"guest/abi/bugs.inc: {name}: no exhibit {number}")
    return not wrong


# --- all of it

def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--shootdown",
                        default=str(ROOT / "build" / "shootdown"))
    parser.add_argument("--find", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("what", nargs="?")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    exhibits = load()
    chosen = choose(exhibits, options.words)
    fine = True
    if options.what == "list":
        for e in chosen:
            print(f"{e['number']:>2}  {e['group']}  {e['name']:<36} "
                  f"{' '.join(e['rules']) or '-'}")
    elif options.what == "tests":
        for e in chosen:
            if e.get("show"):
                print(slug(e).replace("-", "_"))
    elif options.what in ("run", "command"):
        for e in chosen:
            for show in e.get("show", []):
                if options.what == "command":
                    print(" ".join(["shootdown", *words_of(show, True)]))
                else:
                    fine &= run_show(e, show, options)
    elif options.what == "pages":
        fine = write_pages(exhibits)
    elif options.what == "check":
        fine = check_pages(exhibits)
    else:
        sys.exit(__doc__)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
