/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of 2 MiB blocks, and of mremap of whole tables. */
#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/bootargs.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "mm/huge.h"
#include "mm/ktest_mm.h"
#include "mm/swap.h"
#include "mm/uaccess.h"
#include "mm/vmscan.h"

#define NEXT (TEST_VA + BLOCK_SIZE)
#define FAR (TEST_VA + 64 * BLOCK_SIZE)
#define PART(n) ((n)*PAGE_SIZE)

static unsigned level_at(uint64_t va)
{
    unsigned level;

    return pt_lookup(current()->mm, va, &level) == 0 ? 0 : level;
}

/* n blocks at TEST_VA, filled. False: there was no memory for blocks. */
static bool blocks(uint64_t n, uint64_t seed)
{
    return ktest_map(TEST_VA, n * BLOCK_PAGES, false) &&
           sys_madvise(TEST_VA, n * BLOCK_SIZE, MADV_HUGEPAGE) == 0 &&
           ktest_fill(TEST_VA, n * BLOCK_PAGES, seed) &&
           level_at(TEST_VA) == 2 &&
           level_at(TEST_VA + (n - 1) * BLOCK_SIZE) == 2;
}

static bool enough_memory(void)
{
    return page_free_count() > 16 * BLOCK_PAGES;
}

const char *test_huge_basic(void)
{
    struct mm *mm = ktest_enter();
    uint8_t in[2];
    uint64_t word = 1;
    struct ktest_counts c;

    KTEST_CHECK(mm != NULL);
    if (!enough_memory()) {
        ktest_leave();
        KTEST_SKIP("too little memory");
    }
    ktest_counts_start(&c);
    KTEST_CHECK(blocks(2, 1));
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.block_faults == 2 && c.at.block_splits == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == 2 * BLOCK_PAGES);
    KTEST_CHECK(ktest_check(TEST_VA, 2 * BLOCK_PAGES, 1));
    /* What the MMU says. */
    dsb_ishst();
    isb();
    KTEST_CHECK((at_s1e0w(NEXT + PART(7)) & (PTE_ADDR_MASK | 1)) ==
                pte_address(pt_lookup(mm, NEXT + PART(7), &(unsigned){0})));
    /* mincore counts its pages. */
    KTEST_CHECK(ktest_map(FAR, 1, false));
    KTEST_CHECK(sys_mincore(TEST_VA + PART(511), PART(2), FAR) == 0);
    KTEST_CHECK(copy_from_user(in, FAR, 2) == 0 && in[0] == 1 && in[1] == 1);
    KTEST_CHECK(level_at(TEST_VA) == 2 && level_at(NEXT) == 2);
    /* Away and here again, both by reading. */
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_DONTNEED) == 0);
    KTEST_CHECK(level_at(TEST_VA) == 0);
    KTEST_CHECK(get_user_u64(&word, TEST_VA + 8) == 0 && word == 0);
    KTEST_CHECK(level_at(TEST_VA) == 2);
    KTEST_CHECK(ktest_fill(TEST_VA, 4, 2) && ktest_check(TEST_VA, 4, 2));
    KTEST_CHECK(level_at(TEST_VA) == 2);
    /* Not asked for, not aligned, or shared: pages. */
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_DONTNEED) == 0);
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_NOHUGEPAGE) == 0);
    KTEST_CHECK(mm->n_areas == 3 && ktest_fill(TEST_VA, 1, 3));
    KTEST_CHECK(level_at(TEST_VA) == 3);
    KTEST_CHECK(level_at(NEXT) == 2);
    KTEST_CHECK(sys_munmap(TEST_VA, 2 * BLOCK_SIZE) == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == 1); /* FAR */
    KTEST_CHECK(ktest_map(TEST_VA, BLOCK_PAGES - 1, false));
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE - PAGE_SIZE, MADV_HUGEPAGE) ==
                0);
    KTEST_CHECK(ktest_fill(TEST_VA, 1, 3) && level_at(TEST_VA) == 3);
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_HUGEPAGE) == -ENOMEM);
    ktest_leave();
    return NULL;
}

/* Each of these works on a part: the block is split, the rest is untouched. */
static bool cut(unsigned how, uint64_t va, uint64_t len)
{
    static const uint64_t advice[] = {MADV_DONTNEED, MADV_PAGEOUT, MADV_FREE,
                                      MADV_COLD, MADV_DONTFORK};

    switch (how) {
    case 0:
        return sys_munmap(va, len) == 0;
    case 1:
        return sys_mprotect(va, len, PROT_READ) == 0;
    case 2:
        return sys_mremap(va, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
                          FAR + PAGE_SIZE) == (int64_t)(FAR + PAGE_SIZE);
    default:
        return sys_madvise(va, len, advice[how - 3]) == 0;
    }
}

const char *test_huge_cut(void)
{
    if (!enough_memory()) {
        KTEST_SKIP("too little memory");
    }
    for (unsigned how = 0; how < 8; how++) {
        struct mm *mm = ktest_enter();
        struct ktest_counts c;
        bool gone = how == 0 || how == 2 || how == 3;

        KTEST_CHECK(mm != NULL && blocks(1, 9));
        ktest_counts_start(&c);
        KTEST_CHECK(cut(how, TEST_VA + PART(100), PART(50)));
        ktest_counts_stop(&c);
        KTEST_CHECK(c.at.block_splits == 1 && level_at(TEST_VA) == 3);
        KTEST_CHECK(ktest_check(TEST_VA, 100, 9));
        KTEST_CHECK(atomic_load(&mm->tables) >= 4);
        for (uint64_t p = 0; gone && p < 50; p++) {
            KTEST_CHECK(level_at(TEST_VA + PART(100 + p)) == 0);
        }
        if (!gone) {
            KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 9));
        }
        KTEST_CHECK(ktest_fill(TEST_VA + PART(150), 362, 10));
        KTEST_CHECK(ktest_check(TEST_VA + PART(150), 362, 10));
        ktest_leave();
    }
    return NULL;
}

const char *test_huge_protect(void)
{
    struct mm *mm = ktest_enter();
    struct ktest_counts c;
    uint64_t word;

    KTEST_CHECK(mm != NULL);
    if (!enough_memory()) {
        ktest_leave();
        KTEST_SKIP("too little memory");
    }
    KTEST_CHECK(blocks(1, 3));
    ktest_counts_start(&c);
    KTEST_CHECK(sys_mprotect(TEST_VA, BLOCK_SIZE, PROT_READ) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_flush == 1 && level_at(TEST_VA) == 2);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.tlbi_va + c.at.tlbi_range == 1);
        KTEST_CHECK(c.at.dsb_ish == 1 && c.at.tlbi_asid == 0);
    }
    KTEST_CHECK(put_user_u64(TEST_VA + PART(3), 1) == -EFAULT);
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 3));
    KTEST_CHECK(sys_mprotect(TEST_VA, BLOCK_SIZE, 0) == 0);
    KTEST_CHECK(get_user_u64(&word, TEST_VA + PART(3)) == -EFAULT);
    KTEST_CHECK(level_at(TEST_VA) == 2);
    /* A part of it comes back; of a PROT_NONE block, all PTEs are. */
    KTEST_CHECK(sys_mprotect(TEST_VA, PART(16), RW) == 0);
    KTEST_CHECK(level_at(TEST_VA) == 3 && ktest_check(TEST_VA, 16, 3));
    KTEST_CHECK(get_user_u64(&word, TEST_VA + PART(16)) == -EFAULT);
    KTEST_CHECK(sys_mprotect(TEST_VA, BLOCK_SIZE, RW | PROT_EXEC) == 0);
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 3));
    KTEST_CHECK(ktest_fill(TEST_VA, BLOCK_PAGES, 4));
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 4));
    ktest_leave();
    return NULL;
}

const char *test_huge_fork(void)
{
    struct mm *parent = ktest_enter(), *child;
    struct ktest_counts c;

    KTEST_CHECK(parent != NULL);
    if (!enough_memory()) {
        ktest_leave();
        KTEST_SKIP("too little memory");
    }
    KTEST_CHECK(blocks(1, 5));
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    KTEST_CHECK(atomic_load(&child->rss) == BLOCK_PAGES);
    mm_get(parent);
    KTEST_CHECK(level_at(TEST_VA) == 2);
    /* Others use it: left alone, and not split. */
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_PAGEOUT) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.block_splits == 0 && c.at.unmap_ptes == 0);
    ktest_leave();
    ktest_use(child);
    KTEST_CHECK(level_at(TEST_VA) == 2);
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 5));
    KTEST_CHECK(ktest_fill(TEST_VA, 8, 6));
    KTEST_CHECK(level_at(TEST_VA) == 3);
    KTEST_CHECK(ktest_check(TEST_VA, 8, 6));
    ktest_leave();
    ktest_use(parent);
    KTEST_CHECK(level_at(TEST_VA) == 2);
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 5));
    ktest_leave();
    mm_put(child);
    /* Ours alone again: the pages are written where they are. */
    ktest_use(parent);
    KTEST_CHECK(ktest_fill(TEST_VA, BLOCK_PAGES, 7));
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 7));
    KTEST_CHECK(atomic_load(&parent->rss) == BLOCK_PAGES);
    ktest_leave();
    mm_put(parent);
    return NULL;
}

const char *test_huge_reclaim(void)
{
    struct mm *mm = ktest_enter();
    uint64_t used = swap_used();
    struct ktest_counts c;

    KTEST_CHECK(mm != NULL);
    if (!enough_memory()) {
        ktest_leave();
        KTEST_SKIP("too little memory");
    }
    KTEST_CHECK(blocks(1, 11));
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_PAGEOUT) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.block_splits == 1 && c.at.swap_out == BLOCK_PAGES);
    KTEST_CHECK(atomic_load(&mm->rss) == 0);
    KTEST_CHECK(swap_used() == used + BLOCK_PAGES);
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 11));
    KTEST_CHECK(sys_munmap(TEST_VA, BLOCK_SIZE) == 0);
    KTEST_CHECK(swap_used() == used);
    /* Through the reverse map. */
    KTEST_CHECK(blocks(1, 12));
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_COLD) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_flush == 1 && level_at(TEST_VA) == 2);
    for (unsigned i = 0; i < 8 && level_at(TEST_VA) == 2; i++) {
        (void)vmscan_direct(64);
    }
    KTEST_CHECK(level_at(TEST_VA) == 3 && atomic_load(&mm->swapped) > 0);
    KTEST_CHECK(ktest_check(TEST_VA, BLOCK_PAGES, 12));
    KTEST_CHECK(sys_munmap(TEST_VA, BLOCK_SIZE) == 0);
    /* MADV_FREE of the whole. */
    KTEST_CHECK(blocks(1, 13));
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_FREE) == 0);
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, BLOCK_SIZE, MADV_PAGEOUT) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.lazyfree_freed == BLOCK_PAGES && c.at.swap_out == 0);
    ktest_leave();
    return NULL;
}

static int64_t move(uint64_t from, uint64_t to, uint64_t len, uint64_t flags)
{
    return sys_mremap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED | flags,
                      to);
}

const char *test_huge_mremap(void)
{
    struct mm *mm = ktest_enter();
    struct ktest_counts c;

    KTEST_CHECK(mm != NULL);
    if (!enough_memory()) {
        ktest_leave();
        KTEST_SKIP("too little memory");
    }
    KTEST_CHECK(blocks(2, 21));
    ktest_counts_start(&c);
    KTEST_CHECK(move(TEST_VA, FAR, 2 * BLOCK_SIZE, 0) == (int64_t)FAR);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.mremap_entries == 2 && c.at.block_splits == 0);
    KTEST_CHECK(level_at(TEST_VA) == 0 && level_at(FAR) == 2);
    KTEST_CHECK(ktest_check(FAR, 2 * BLOCK_PAGES, 21));
    /* The reverse map finds them there. */
    KTEST_CHECK(sys_madvise(FAR, BLOCK_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == BLOCK_PAGES);
    /* Not aligned: split, then PTEs. */
    KTEST_CHECK(move(FAR, TEST_VA + PAGE_SIZE, 2 * BLOCK_SIZE, 0) ==
                (int64_t)(TEST_VA + PAGE_SIZE));
    KTEST_CHECK(ktest_check(TEST_VA + PAGE_SIZE, 2 * BLOCK_PAGES, 21));
    ktest_leave();
    return NULL;
}

/* Whole leaf tables, present and swapped. */
const char *test_mremap_tables(void)
{
    struct mm *mm = ktest_enter();
    struct ktest_counts c;
    uint64_t word = 1;

    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 2 * BLOCK_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 2 * BLOCK_PAGES, 31));
    KTEST_CHECK(sys_madvise(TEST_VA, PART(256), MADV_PAGEOUT) == 0);
    ktest_counts_start(&c);
    KTEST_CHECK(move(TEST_VA, FAR, 2 * BLOCK_SIZE, 0) == (int64_t)FAR);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.mremap_entries == 2 && c.at.pending_drain == 0);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        /* One range each; level-2 table and above went, hence one more. */
        KTEST_CHECK(c.at.dsb_ish >= 2 && c.at.dsb_ish <= 3);
        KTEST_CHECK(c.at.tlbi_range == c.at.dsb_ish || c.at.tlbi_asid >= 2);
    }
    KTEST_CHECK(ktest_check(FAR, 2 * BLOCK_PAGES, 31));
    KTEST_CHECK(sys_madvise(FAR, 2 * BLOCK_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == 0);
    KTEST_CHECK(ktest_check(FAR, 2 * BLOCK_PAGES, 31));
    /* Over what is there, whose tables go first. */
    KTEST_CHECK(ktest_map(TEST_VA + BLOCK_SIZE, 1, false));
    KTEST_CHECK(ktest_fill(TEST_VA + BLOCK_SIZE, 1, 1));
    ktest_counts_start(&c);
    KTEST_CHECK(move(FAR, TEST_VA + BLOCK_SIZE, 2 * BLOCK_SIZE, 0) ==
                (int64_t)(TEST_VA + BLOCK_SIZE));
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.mremap_entries == 2);
    KTEST_CHECK(ktest_check(TEST_VA + BLOCK_SIZE, 2 * BLOCK_PAGES, 31));
    /* The old place stays, empty. */
    KTEST_CHECK(move(TEST_VA + BLOCK_SIZE, FAR, BLOCK_SIZE, MREMAP_DONTUNMAP) ==
                (int64_t)FAR);
    KTEST_CHECK(ktest_check(FAR, BLOCK_PAGES, 31));
    KTEST_CHECK(get_user_u64(&word, TEST_VA + BLOCK_SIZE) == 0 && word == 0);
    KTEST_CHECK(ktest_fill(TEST_VA + BLOCK_SIZE, 32, 32));
    KTEST_CHECK(sys_madvise(TEST_VA + BLOCK_SIZE, PART(32), MADV_PAGEOUT) == 0);
    KTEST_CHECK(sys_madvise(FAR, BLOCK_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(ktest_check(TEST_VA + BLOCK_SIZE, 32, 32));
    KTEST_CHECK(ktest_check(FAR, BLOCK_PAGES, 31));
    KTEST_CHECK(sys_mremap(FAR, BLOCK_SIZE, 2 * BLOCK_SIZE,
                           MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0) == -EINVAL);
    KTEST_CHECK(sys_mremap(FAR, BLOCK_SIZE, BLOCK_SIZE, MREMAP_DONTUNMAP, 0) ==
                -EINVAL);
    ktest_leave();
    return NULL;
}

/* --- all CPUs at once --- */

#define SLICE 32UL

struct race {
    struct ktest_threads t;
    _Atomic uint32_t failures;
};

/* Writes its slice of the first block, pages a part out, checks; repeatedly. */
static void write_and_split(unsigned index, void *arg)
{
    struct race *race = arg;
    uint64_t va = TEST_VA + PART(index * SLICE);

    for (unsigned r = 0; r < 4; r++) {
        uint64_t seed = index * 1000UL + r;

        if (!ktest_fill(va, SLICE, seed) ||
            sys_madvise(TEST_VA, BLOCK_SIZE,
                        r % 2 ? MADV_COLD : MADV_PAGEOUT) != 0 ||
            !ktest_check(va, SLICE, seed) ||
            sys_madvise(va, PART(SLICE / 2), MADV_PAGEOUT) != 0 ||
            !ktest_check(va, SLICE, seed)) {
            atomic_fetch_add(&race->failures, 1);
            return;
        }
    }
}

/* Meanwhile: fork, and a second block that goes and comes. */
static const char *disturb(struct mm *mm, unsigned round)
{
    struct mm *child = mm_fork(mm);

    KTEST_CHECK(child != NULL);
    KTEST_CHECK(ktest_fill(NEXT, 8, round));
    mm_put(child);
    KTEST_CHECK(move(NEXT, FAR, BLOCK_SIZE, 0) == (int64_t)FAR);
    KTEST_CHECK(ktest_check(FAR, 8, round));
    KTEST_CHECK(sys_madvise(FAR, BLOCK_SIZE, MADV_DONTNEED) == 0);
    KTEST_CHECK(ktest_fill(FAR, 8, round + 1));
    KTEST_CHECK(move(FAR, NEXT, BLOCK_SIZE, 0) == (int64_t)NEXT);
    KTEST_CHECK(ktest_check(NEXT, 8, round + 1));
    return NULL;
}

const char *test_huge_race(void)
{
    struct race race = {
        .t = {.fn = write_and_split, .n = cpu_count < 8 ? cpu_count : 8},
    };
    struct mm *mm = ktest_enter();
    uint64_t used = swap_used();
    const char *why = NULL;

    KTEST_CHECK(mm != NULL);
    if (!enough_memory()) {
        ktest_leave();
        KTEST_SKIP("too little memory");
    }
    race.t.arg = &race;
    race.t.mm = mm;
    KTEST_CHECK(blocks(2, 1));
    KTEST_CHECK(ktest_threads_start(&race.t, 0));
    for (unsigned r = 0;
         why == NULL && (r < 2 || atomic_load(&race.t.done) != race.t.n); r++) {
        why = disturb(mm, r);
    }
    ktest_threads_join(&race.t);
    KTEST_CHECK(why == NULL);
    KTEST_CHECK(atomic_load(&race.failures) == 0);
    ktest_leave();
    KTEST_CHECK(swap_used() == used);
    return NULL;
}
