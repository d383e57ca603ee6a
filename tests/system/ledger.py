#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The ledger is silent about the bundled guest, and names planted bugs.

  ledger.py SHOOTDOWN

Also: many runs from a snapshot find what each of them finds alone, a recorded
run is judged again when it is replayed, and the reports, as text and as JSON,
have what a reader needs. Prints a line per run; exit
status 0 or 1.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

SHORT = ["--snapshot-at", "1", "--mem", "64M"]
DRAIN = ["--strategy", "pct:3", "--runs", "40"]

# title, options, what is told: (rule and cause, function that did it)
RUNS = (
    ("hello", ["hello"], []),
    ("bench", ["swap_bench"], []),
    ("race", ["reclaim_race"], []),
    ("bench, IPIs", ["swap_bench", "--tlb", "ipi"], []),
    ("free before flush",
     ["reclaim_race", "--bug", "free-before-flush"], [("S1 (S5) freed",
                                                       "make_free")]),
    ("no DSB before the TLBI",
     ["reclaim_race", "--bug", "tlbi-before-store-visible"],
     [("S4 (S7) read", "swap_write"), ("S1 (S7) freed", "make_free")]),
    ("local TLBI",
     ["reclaim_race", "--bug", "local-instead-of-broadcast"],
     [("S4 (S6) read", "swap_write"), ("S1 (S6) freed", "make_free")]),
    ("drained by the wrong CPU",
     ["drain_race", *SHORT, *DRAIN, "--drain", "dsb"],
     [("S2 (S5) returned", "annot_op_end_slow"),
      ("S2 (S5) returned", "madvise_other ended by vCPU 1"),
      ("S2 (S5) returned", "called from sys_madvise")]),
    ("drained by a flush of the mm",
     ["drain_race", *SHORT, *DRAIN, "--drain", "mm"], []),
)

problems = []


def shootdown(*words):
    timeout = 100 * float(os.environ.get("TEST_TIME_SCALE", "1"))
    with tempfile.TemporaryDirectory() as folder:  # of schedules
        result = subprocess.run([os.path.abspath(sys.argv[1]), *words],
                                stdin=subprocess.DEVNULL, cwd=folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                timeout=timeout, check=False)
    return result.returncode, result.stderr.decode(errors="replace")


def judged(title, options, arguments=()):
    words = ["run", *options, "--engine", "seeded", "--ledger", "on",
             "--verbose"]
    status, err = shootdown(*words, *(["--", *arguments] if arguments else []))
    counts = re.search(r"ledger: (\d+) descriptors taken away, .* "
                       r"(\d+) violations", err)
    if not counts or int(counts.group(1)) == 0:
        problems.append(f"{title}: status {status}\n{err[-1500:]}")
        return status, err, 0
    print(f"{title:<32} status {status}, {counts.group(2)} violations")
    return status, err, int(counts.group(2))


def check_run(title, options, told):
    status, err, count = judged(title, options)
    if status != (77 if told else 0) or (count != 0) != bool(told):
        problems.append(f"{title}: status {status}\n{err[:1500]}")
    for rule, culprit in told:
        at = err.find(f"ledger: {rule}:")
        if at < 0 or culprit not in err[at:at + 800]:
            problems.append(f"{title}: not told: {rule} by {culprit}\n"
                            f"{err[:1500]}")


def check_runs(tlb):
    """What is owed is put back with the machine, run by run.

    The runs end with the first in which the guest itself sees the bug.
    """
    options = ["reclaim_race", *SHORT, "--tlb", tlb, "--bug",
               "free-before-flush"]
    _, err, together = judged(f"8 runs, {tlb}", options + ["--runs", "8"],
                              ["-b", "4"])
    runs = int(re.search(r"shootdown: (\d+) runs?, the last", err).group(1))
    alone = sum(judged(f"seed {seed}, {tlb}", options + ["--seed", str(seed)],
                       ["-b", "4"])[2] for seed in range(1, runs + 1))
    if together != alone or alone == 0:
        problems.append(f"{tlb}: {together} violations in {runs} runs, {alone} "
                        "in the same ones one by one")
    return runs


def check_replay():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.sd")
        options = ["reclaim_race", *SHORT, "--tlb", "ipi", "--bug",
                   "free-before-flush", "--record", path]
        first = judged("recorded", options, ["-b", "4"])[1]
        status, again = shootdown("replay", path)
    told = [re.findall(r"ledger: S.*", text) for text in (first, again)]
    print(f"{'replayed':<32} status {status}, {len(told[1])} findings")
    if status != 77 or not told[0] or told[0] != told[1]:
        problems.append(f"replay: status {status}, {told}\n{again[:1500]}")


def check_site(finding, what, function, operation=None):
    """The place is told with its callers and its own instruction marked."""
    sites = {site["what"]: site for site in finding["sites"]}
    site = sites.get(what, {})
    here = [line for line in site.get("code", ()) if line.get("here")]
    chain = [call["symbol"].split("+")[0] for call in site.get("chain", ())]
    if (not site.get("symbol", "").startswith(function) or len(here) != 1 or
            here[0]["pc"] != site["pc"] or ".inst" in here[0]["text"] or
            "sys_madvise" not in chain or "step" not in site or
            site.get("operation") != operation):
        problems.append(f"report: {what}: {site}")
    return site


def check_report():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        schedule = os.path.join(folder, "found.sd")
        options = ["reclaim_race", *SHORT, "--bug", "free-before-flush",
                   "--record", schedule, "--report", path]
        text = judged("reported", options, ["-b", "8"])[1]
        with open(path, encoding="ascii") as file:
            findings = [json.loads(line) for line in file]
        again = os.path.join(folder, "again.json")
        shootdown("replay", schedule, "--report", again)
        with open(again, encoding="ascii") as file:
            replayed = [json.loads(line) for line in file]
    freed = [f for f in findings if f["rule"] == "S1"]
    if len(freed) != 1 or findings != replayed:
        problems.append(f"report: {findings}\n{replayed}")
        return
    freed = freed[0]
    store = check_site(freed, "store", "try_to_unmap_one+")
    tlbi = check_site(freed, "tlbi", "tlb_range_ops+", "VALE1IS")
    contract = check_site(freed, "contract", "make_free+")
    if not store["step"] < tlbi["step"] < contract["step"]:
        problems.append(f"report: order {store} {tlbi} {contract}")
    told = [(m["what"], m["symbol"].split("+")[0]) for m in freed["history"]]
    if told[-1] != ("free", "make_free") or (
            "unmap", "try_to_unmap_one") not in told or (
                "map", "fault_locked") not in told:
        problems.append(f"report: history {told}")
    wide = [line for line in text.splitlines()
            if len(line) > 80 and line.startswith(" ")]
    for part in ("promised  frame " + freed["frame"], "owed      by vCPU ",
                 "-> " + store["pc"][2:], "fix       ",
                 "again     shootdown replay", "    sys_madvise+"):
        if part not in text or wide:
            problems.append(f"report: no '{part}' in, or too wide {wide}:\n"
                            f"{text[:3000]}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for row in RUNS:
        check_run(*row)
    if check_runs("broadcast") + check_runs("ipi") < 4:
        problems.append("too few runs in a row to say anything")
    check_replay()
    check_report()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
