# SPDX-License-Identifier: GPL-2.0-or-later
"""The sizes in which published measurements were made: pageout, demotion and
move_pages, counted on Linux 7.2 and 6.12 and compared by their laws. Each law
is exact for the guest at any size."""
import math

import expected
from counted import counts_of, run_guest

GENERATION_LIST = 64
PRIORITY = 12
LEAST = 32  # pages that a round wants at least
ROUNDS_TO_AGE = 3  # until pages just written are old


def demotion_lists(pages, requests, scaled):
    """How many lists a group of `pages` pages is demoted in by so many equal
    requests, nothing else being there: see "Reclaim" in docs/GUEST.md. A
    request goes on by quarters of what is left; each goes from priority 12 down
    until it has enough; scaled lists (7.2) are no longer than what is left of
    size >> priority, the others (6.12) take 64."""
    size, lists, ageings = pages, 0, ROUNDS_TO_AGE
    for _ in range(requests):
        left = pages // requests
        vain = 0
        while left > 0 and vain <= 16:
            want, got = max(left // 4, LEAST), 0
            for priority in range(PRIORITY, -1, -1):
                if ageings > 0:
                    ageings -= priority < PRIORITY
                    continue
                share, scanned = size >> priority, 0
                while scanned < share and got < want and size > 0:
                    n = min(GENERATION_LIST, size)
                    if scaled:
                        n = min(n, share - scanned)
                    size -= n
                    got += n
                    scanned += n
                    lists += 1
                if got >= want:
                    break
            vain += got == 0
            left -= got
    return lists


class Comparison:
    """One line of the page: what, sizes, Linux's F, the law at that size, and
    what was counted at our size, where the law gives `want`."""

    def __init__(self, what, kernel, cpus, linux_pages, linux, law):
        self.what, self.kernel, self.cpus = what, kernel, cpus
        self.linux_pages, self.linux, self.law = linux_pages, linux, law
        self.pages = self.flushes = self.want = None
        self.state = "missing"

    def count(self, o, sums, workload, words, options, arguments, pages, want):
        """Runs it and compares F, requests, and that all pages went."""
        counts = counts_of(workload, run_guest(
            o.shootdown, workload, self.cpus, ["like=" + self.kernel, *words],
            ["--mem", f"{256 + pages // 96 * 2}M", *options],
            ["-p", str(pages), *arguments]))
        went = counts.get({"pageout": "swap_out", "demotion": "pages_demoted",
                           "move_pages": "migrate_success"}[workload], (0, 0))
        asked = want * (self.cpus - 1) if "ipi" in options else 0
        self.pages, self.want = pages, want
        self.flushes = counts.get("batch_flush", (0, 0))[0]
        self.state = "equal"
        for name, got, expect in (
                ("flushes", self.flushes, want),
                ("requests", counts.get("remote_flush_received", (0, 0))[0],
                 asked),
                ("pages gone", went[0], pages)):
            sums.add(got == expect, f"{self.kernel} {self.what}, {pages} pages:"
                                    f" {got} {name}, the law gives {expect}")
            if got != expect:
                self.state = "differs"


def compare(o, sums):
    """A list of Comparison."""
    lines = []
    kernels = [k for k in o.like if k in expected.DEMOTION]

    def start(*about):
        lines.append(Comparison(*about))
        return lines[-1]

    if "7.2" in kernels:
        full, linux = expected.PAGEOUT
        pages = full // o.share
        start("pageout by memory.reclaim", "7.2", 8, full, linux, full).count(
            o, sums, "pageout", [], ["--tlb", "ipi"], [], pages, pages)
        full = expected.MOVE_PAGES
        pages = full // o.share
        for calls, linux in expected.MOVE_CALLS.items():
            def law(n, r=calls):
                return sum(math.ceil((n * (i + 1) // r - n * i // r) / 512)
                           for i in range(r))
            start(f"move_pages, {calls} calls", "7.2", 4, full, linux,
                  law(full)).count(
                      o, sums, "move_pages", ["numa=fake=2"],
                      ["--tlb", "ipi"], ["-r", "1", "-c", str(calls)], pages,
                      law(pages))
    for kernel in kernels:
        full = expected.DEMOTION_PAGES
        for requests, linux in expected.DEMOTION[kernel].items():
            scaled = kernel == "7.2"
            # One request is quick.
            pages = full // (o.share if requests > 1 else -(-o.share // 10))
            start(f"demotion, {requests} requests", kernel, 4, full, linux,
                  demotion_lists(full, requests, scaled)).count(
                      o, sums, "demotion", ["numa=fake=2"],
                      # 6.12 asks nobody, and so counts no flush.
                      ["--tlb", "ipi"] if scaled else [],
                      ["-s", "-r", str(requests)], pages,
                      demotion_lists(pages, requests, scaled))
    return lines
