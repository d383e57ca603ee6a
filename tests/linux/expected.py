# SPDX-License-Identifier: GPL-2.0-or-later
"""What Linux kernels were counted to do, as data for compare.py.

Measured on Debian's kernels under QEMU, not simulated: TLBI and DSB of each
system call by a TCG plugin (arm64), the "TLB" row of /proc/interrupts (amd64).

  6.1    6.1.176   arm64 not batched, x86 batched; migration not batched
  6.12   6.12.117  batched, 31 pages a flush; a drain is one flush of the ASID
  7.2    7.2.13    as 6.12; a read fault maps a dirty page dirty; x86 masks are
                   cleared lazily and trimmed once a second

Common to all: 4 KiB pages, no huge pages, no NUMA balancing, swap in RAM.
"""

KERNELS = {"6.1": "6.1.176", "6.12": "6.12.117", "7.2": "7.2.13"}

# --- arm64: instructions of the calling CPU within the system call -----------
#
# (section, case of linux_counts, what it is, {kernel: counts}, law)
#
# Counts: "KIND n, KIND n+m"; sums as the kernels' flushes + drains. A kind that
# is not named is 0, or, after "only", not compared. "a..b" is a range. RVALE is
# a run of pages by one RVALE1IS: without FEAT_TLBIRANGE as many VALE1IS as
# RUN[case] says (256 otherwise).

_256 = "VALE 256, ISHST 256+1, ISH 256+1, RVALE 1"
_FIRST = "VALE 256, ISHST 256, ISH 256"
_PER_PAGE = "VALE 256, ISHST 256+1, ISH 256+1, ASIDE 1"
_BATCHED = "VALE 256, ISHST 256+1, ISH 9+1, ASIDE 1"
_SPLIT = "VALE 256, ISHST 256+2, ISH 9+2, ASIDE 2"
_SPLIT_FIRST = "VALE 256, ISHST 256+1, ISH 256+1, ASIDE 1"
_DRAIN = "ISHST 1, ASIDE 1, ISH 1"
_NOTHING = ""


def _new(counts):
    """6.12 and 7.2 alike."""
    return {"6.12": counts, "7.2": counts}


ARM64 = [
    ("A1", "getppid", "a call that is none of memory's",
     {"6.1": _NOTHING, **_new(_NOTHING)}, "nothing"),
    ("A1", "shared_read.1", "256 shared pages, just written",
     {"6.1": _256, **_new(_FIRST)}, "dirty: one flush a page"),
    ("A1", "shared_read.n", "the same pages, read back, each later call",
     {"6.1": _256, "6.12": _BATCHED, "7.2": _PER_PAGE},
     "clean: one flush for 31 pages, one drain; 7.2 maps them dirty"),
    ("A1", "shared_read_70_186.1", "in two regions, 70 + 186, first call",
     {"6.1": _256, "6.12": _SPLIT_FIRST}, "the second drains the first"),
    ("A1", "shared_read_70_186.n", "in two regions, 70 + 186",
     {"6.1": _256, "6.12": _SPLIT}, "each region a list, each with a drain"),
    ("A1", "shared_read_88_168.n", "in two regions, 88 + 168",
     {"6.1": _256, "6.12": _SPLIT}, "3 + 6 flushes, 2 drains"),
    ("A1", "shared_read_231_25.n", "in two regions, 231 + 25",
     {"6.1": _256, "6.12": _SPLIT}, "8 + 1 flushes, 2 drains"),
    ("A1", "shared_read_15_241.n", "in two regions, 15 + 241",
     {"6.1": _256, "6.12": _SPLIT}, "1 + 8 flushes, 2 drains"),

    ("A2", "shared_read_only.n", "shared, through a PROT_READ mapping",
     {"7.2": "only ISH 9+1"}, "never mapped dirty: batched"),
    ("A2", "private_read.n", "private, read back",
     {"7.2": "only ISH 9+1"}, "private pages are mapped clean"),
    ("A2", "lazyfree.n", "private, written and given to MADV_FREE",
     {"7.2": "only ISH 9"}, "MADV_FREE drained already"),

    ("A3", "private_write.1", "256 private pages, written, first call",
     {"6.1": "only ISH 256+1", **_new("only ISH 256")}, "F = P"),
    ("A3", "private_write.n", "256 private pages, written each time",
     {"6.1": "only ISH 256+1", **_new("only ISH 256+1, ASIDE 1")},
     "F = P, one drain"),
    ("A3", "private_read.n", "256 private pages, read back",
     {"6.1": "only ISH 256+1", **_new("only ISH 9+1")}, "ceil(P/31)"),
    ("A3", "shared_write.n", "256 shared pages, written each time",
     {"6.1": "only ISH 256+1", **_new("only ISH 256+1")}, "F = P"),
    ("A3", "shared_every_4th.n", "every 4th page written, the rest read",
     {"6.1": "only ISH 256+1", "6.12": "only ISH 64+6+1",
      "7.2": "only ISH 256+1"},
     "64 dirty, 6 times 31 were full before the next dirty one"),
    ("A3", "shared_read_4_pmds.n", "2048 pages in four regions, one call",
     {"6.1": "only ISH 2048+1", "6.12": "only ISH 68+4, ASIDE 4",
      "7.2": "only ISH 2048+4"}, "4 ceil(512/31), a drain a region"),
    ("A3", "nothing_mapped.n", "again, when nothing is mapped any more",
     {"6.1": "only ISH 0", **_new("only ISH 0+1")}, "the drain alone"),
    ("A3", "move_pages", "move_pages of 1200 pages",
     {"6.1": "only ISH 1200, VALE 1200", **_new("only ISH 3, VALE 1200")},
     "ceil(P/512)"),
    ("A3", "reclaim_dirty", "memory.reclaim of 1024 private written pages",
     {"6.1": "only ISH 1024, VALE 1024+1024, ISHST 1024+1024",
      **_new("only ISH 1024, ASIDE 0")}, "F = P, no drain"),
    ("A3", "reclaim_clean", "memory.reclaim of 1024 private read pages",
     {"6.1": "only ISH 1024", "6.12": "only ISH 48", "7.2": "only ISH 67..74"},
     "sum of ceil(n/31) over the lists"),

    ("A4", "drain_mprotect.1", "1st mprotect of the reclaimed range",
     {"6.1": _NOTHING, **_new(_DRAIN)}, "one drain"),
    ("A4", "drain_mprotect.2", "2nd mprotect of it",
     {"6.1": _NOTHING, **_new(_NOTHING)}, "nothing"),
    ("A4", "drain_mprotect_other_cpu", "mprotect of it by another CPU",
     {"6.1": _NOTHING, **_new(_DRAIN)}, "that CPU drains"),
    ("A4", "drain_mprotect_present.1", "mprotect of 256 other, present pages",
     {"6.1": "ISHST 1, RVALE 1, ISH 1",
      **_new("ISHST 2, ASIDE 1, RVALE 1, ISH 2")}, "its own flush, one drain"),
    ("A4", "drain_mprotect_present.2", "and the next one",
     {"6.1": "ISHST 1, RVALE 1, ISH 1", **_new("ISHST 1, RVALE 1, ISH 1")},
     "its own flush"),
    ("A4", "drain_dontneed.1", "1st MADV_DONTNEED of the reclaimed range",
     {"6.1": _NOTHING, **_new(_DRAIN)}, "one drain"),
    ("A4", "drain_dontneed.2", "2nd MADV_DONTNEED of it",
     {"6.1": _NOTHING, **_new(_NOTHING)}, "nothing"),
    ("A4", "drain_munmap.kept", "munmap of it, its page table is kept",
     {"6.1": _NOTHING, **_new(_DRAIN)}, "one drain"),
    ("A4", "drain_munmap.freed", "munmap of it, its page table goes",
     {"6.1": "ISHST 1, RVAE 1, ISH 1",
      **_new("ISHST 2, ASIDE 1, RVAE 1, ISH 2")}, "the table, one drain"),
    ("A4", "munmap_present", "munmap of 256 present pages, nothing pending",
     {k: "ISHST 2, RVALE 1, RVAE 1, ISH 2" for k in KERNELS},
     "the pages, the table"),
    ("A4", "drain_mremap", "mremap of the reclaimed range",
     {"6.1": "only ISHST 1, ASIDE 0, ISH 1",
      **_new("only ISHST 2, ASIDE 1, ISH 2")}, "a range, one drain"),
    ("A4", "drain_fork", "fork while a drain is due",
     {k: _DRAIN for k in KERNELS}, "fork's own flush, no drain"),
]

# The sweep of A3: clean shared pages, one call.
SWEEP = (1, 2, 8, 30, 31, 32, 61, 62, 63, 93, 94, 124, 125, 256, 310, 511, 512)
for _n in SWEEP:
    _batches = -(-_n // 31)
    ARM64.append(
        ("A3", f"sweep_{_n}.n", f"{_n} shared pages, read back",
         {"6.1": f"only ISH {_n}+1", "6.12": f"only ISH {_batches}+1",
          "7.2": f"only ISH {_n}+1"}, "ceil(P/31), one drain"))

# --- amd64: flush interrupts per other CPU, N = 8, P = 4096 private pages -----
#
# (case of ipi_counts, what it is, {kernel: (U, T, I)} as measured, law)
#
# A law is a text for the reader and a name in compare.py's LAWS.

AMD64 = [
    ("reclaim_dirty", "memory.reclaim of written pages",
     {"7.2": (4101, 4124, 0), "6.12": (0, 4096, 0)}, "F = pages reclaimed"),
    ("mprotect_after_reclaim", "the first mprotect after it",
     {"7.2": (1, 1, 1), "6.12": (0, 1, 1)}, "one drain"),
    ("reclaim_by_other", "memory.reclaim by another process on CPU 0",
     {"7.2": (4085, 4091, 0), "6.12": (0, 4084, 0)},
     "F = pages reclaimed from this one"),
    ("pageout_dirty", "MADV_PAGEOUT of written pages",
     {"7.2": (513, 4103, 514), "6.12": (0, 4103, 1)},
     "U 512+1; T P + regions-1; I 512+2, or 1"),
    ("reclaim_clean", "memory.reclaim of pages read back",
     {"7.2": (243, 242, 0), "6.12": (0, 193, 0)},
     "F = sum of ceil(n/31) over the lists"),
    ("pageout_clean", "MADV_PAGEOUT of pages read back",
     {"7.2": (18, 143, 19), "6.12": (0, 143, 1)},
     "U 17+1; T 17 a region + regions-1; I 17+2, or 1"),
    ("move_pages", "move_pages", {"7.2": (8, 8, 0), "6.12": (0, 8, 0)},
     "F = ceil(P/512)"),
    ("migrate_pages", "migrate_pages, and the program's other pages",
     {"7.2": (9, 9, 0), "6.12": ("0..1", 9, 0)},
     "F = ceil(P'/512), P' > P; 6.12 U: none"),
    ("trim_due", "mprotect of a page, a second after the last trim",
     {"7.2": (1, 1, 0), "6.12": (0, 1, 0)}, "U: asks all, and trims"),
    ("trim_soon_after", "the same at once",
     {"7.2": (0, 1, 0), "6.12": (0, 1, 0)}, "asks who runs it"),
    ("trim_due_again", "the same 1.3 s later",
     {"7.2": (1, 1, 0), "6.12": (0, 1, 0)}, "U: asks all, and trims"),
    ("trim_again", "the same at once",
     {"7.2": (0, 1, 0), "6.12": (0, 1, 0)}, "asks who runs it"),
]

# NUMA hints, 4 threads, 4096 pages: (pages migrated by a hint, broadcasts of
# batch and unmap flushes, of which the migrating CPU began).
NUMA_HINT = {"6.12": (4108, 24, 9), "7.2": (4107, 24, 9)}

# (N, threads) of the runs: threads of the program on its CPU.
NUMA_HINT_RUNS = [(2, 1), (4, 1), (4, 2), (8, 4)]

# --- amd64: the sizes of published measurements, 7.2 unless said -------------

# memory.reclaim of written pages, N = 8, mode U: (pages, F).
PAGEOUT = (81920, 81932)

# memory.reclaim of pages that can only be demoted, in R equal requests:
# {kernel: {R: F}}; 6.12 was counted by its calls of migrate_pages. The groups
# held pages of the program too.
DEMOTION_PAGES = 81920
DEMOTION = {
    "6.12": {1: "1280", 40: "1280"},
    "7.2": {1: "1405..1408", 2: "1459..1466", 5: "1587..1608",
            10: "1738..1742", 16: "1925", 20: "1996..1998", 40: "2361..2366"},
}

# move_pages of that many pages in R calls, N = 4, mode U: {R: F}.
MOVE_PAGES = 331600
MOVE_CALLS = {1: 648, 20: 660, 10: 650, 5: 650}
