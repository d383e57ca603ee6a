/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of MADV_FREE, and of MADV_COLD and MADV_PAGEOUT on shared pages. */
#include "kernel/bootargs.h"
#include "kernel/task.h"
#include "mm/ktest_mm.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/reclaim.h"
#include "mm/swap.h"
#include "mm/uaccess.h"

static bool advise(uint64_t pages, uint64_t advice)
{
    return sys_madvise(TEST_VA, pages * PAGE_SIZE, advice) == 0;
}

static bool counted(struct ktest_counts *c, uint64_t pages, uint64_t advice)
{
    bool ok;

    ktest_counts_start(c);
    ok = advise(pages, advice);
    ktest_counts_stop(c);
    return ok;
}

static bool is_zero(uint64_t pages)
{
    uint64_t word;

    for (uint64_t p = 0; p < pages; p++) {
        if (get_user_u64(&word, TEST_VA + p * PAGE_SIZE + p * 8) != 0 ||
            word != 0) {
            return false;
        }
    }
    return true;
}

const char *test_lazyfree(void)
{
    struct mm *mm = ktest_enter();
    uint64_t used = swap_used();
    struct ktest_counts c;

    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 3));
    KTEST_CHECK(advise(TEST_PAGES, MADV_FREE));
    /* Nothing has gone yet. */
    KTEST_CHECK(atomic_load(&mm->rss) == (int64_t)TEST_PAGES);
    KTEST_CHECK(ktest_check(TEST_VA, TEST_PAGES, 3));
    /* Every other page is written again: those stay, and go to swap later. */
    for (uint64_t p = 1; p < TEST_PAGES; p += 2) {
        KTEST_CHECK(ktest_fill(TEST_VA + p * PAGE_SIZE, 1, p));
    }
    KTEST_CHECK(counted(&c, TEST_PAGES, MADV_PAGEOUT));
    KTEST_CHECK(c.at.lazyfree_freed == TEST_PAGES / 2 && c.at.swap_out == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == (int64_t)TEST_PAGES / 2);
    KTEST_CHECK(swap_used() == used);
    KTEST_CHECK(counted(&c, TEST_PAGES, MADV_PAGEOUT));
    KTEST_CHECK(c.at.lazyfree_freed == 0 && c.at.swap_out == TEST_PAGES / 2);
    for (uint64_t p = 0; p < TEST_PAGES; p++) {
        uint64_t word = 1, va = TEST_VA + p * PAGE_SIZE;

        if (p % 2 == 1) {
            KTEST_CHECK(ktest_check(va, 1, p));
        } else {
            KTEST_CHECK(get_user_u64(&word, va + p * 8) == 0 && word == 0);
        }
    }
    /* In swap they are dropped at once; of shared memory, not at all. */
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 4));
    KTEST_CHECK(advise(TEST_PAGES, MADV_PAGEOUT));
    KTEST_CHECK(swap_used() == used + TEST_PAGES);
    KTEST_CHECK(advise(TEST_PAGES, MADV_FREE));
    KTEST_CHECK(swap_used() == used && atomic_load(&mm->swapped) == 0);
    KTEST_CHECK(is_zero(TEST_PAGES));
    KTEST_CHECK(ktest_map(TEST_VA, 4, true));
    KTEST_CHECK(sys_madvise(TEST_VA, PAGE_SIZE, MADV_FREE) == -EINVAL);
    ktest_leave();
    return NULL;
}

/* Pages with a copy in swap, and pages that a child has too. */
const char *test_lazyfree_kept(void)
{
    struct mm *parent = ktest_enter(), *child;
    uint64_t used = swap_used();
    struct ktest_counts c;

    KTEST_CHECK(parent != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 64, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 5));
    KTEST_CHECK(advise(64, MADV_PAGEOUT));
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    mm_get(parent);
    /* Half of them in, still in the swap cache: the child's entries count. */
    KTEST_CHECK(ktest_touch(TEST_VA, 32));
    KTEST_CHECK(advise(64, MADV_FREE));
    KTEST_CHECK(counted(&c, 64, MADV_PAGEOUT));
    KTEST_CHECK(c.at.lazyfree_freed == 0 && c.at.swap_out == 0);
    KTEST_CHECK(ktest_check(TEST_VA, 32, 5));
    ktest_leave();
    ktest_use(child);
    KTEST_CHECK(ktest_check(TEST_VA, 64, 5));
    ktest_leave();
    mm_put(child);
    /* Alone now: the copy in swap goes with the contents. */
    ktest_use(parent);
    KTEST_CHECK(advise(32, MADV_FREE));
    KTEST_CHECK(swap_used() == used);
    KTEST_CHECK(counted(&c, 32, MADV_PAGEOUT));
    KTEST_CHECK(c.at.lazyfree_freed == 32 && c.at.swap_out == 0);
    KTEST_CHECK(is_zero(64));
    ktest_leave();
    mm_put(parent);
    return NULL;
}

/* Lazily freed, then written by one of the two that share it. */
const char *test_lazyfree_fork(void)
{
    struct mm *parent = ktest_enter(), *child;
    struct ktest_counts c;

    KTEST_CHECK(parent != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 32, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 32, 6));
    KTEST_CHECK(advise(32, MADV_FREE));
    KTEST_CHECK(ktest_fill(TEST_VA, 16, 7));
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    mm_get(parent);
    ktest_leave();
    /* The child has the dirty bits too: its half survives the parent. */
    mm_put(parent);
    ktest_use(child);
    KTEST_CHECK(counted(&c, 32, MADV_PAGEOUT));
    KTEST_CHECK(c.at.lazyfree_freed == 16 && c.at.swap_out == 0);
    KTEST_CHECK(ktest_check(TEST_VA, 16, 7));
    KTEST_CHECK(advise(32, MADV_PAGEOUT));
    KTEST_CHECK(ktest_check(TEST_VA, 16, 7));
    ktest_leave();
    mm_put(child);
    return NULL;
}

/* MADV_FREE, written again, then two mappings: reclaim finds both dirty. */
const char *test_lazyfree_shared(void)
{
    struct mm *parent = ktest_enter(), *child;
    struct list list;
    uint64_t word;
    pte_t pte;

    KTEST_CHECK(parent != NULL && ktest_map(TEST_VA, 1, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 1, 1) && advise(1, MADV_FREE));
    KTEST_CHECK(put_user_u64(TEST_VA, 7) == 0);
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    pte = ktest_pte(parent, TEST_VA);
    KTEST_CHECK(pte_dirty(pte) && page_is_lazyfree(pte_page(pte)));
    KTEST_CHECK(ktest_isolate(parent, TEST_VA, 1, &list) == 1);
    KTEST_CHECK(reclaim_pages(&list) == 0);
    KTEST_CHECK(page_mapcount(pte_page(pte)) == 2);
    KTEST_CHECK(!page_is_lazyfree(pte_page(pte)));
    KTEST_CHECK(get_user_u64(&word, TEST_VA) == 0 && word == 7);
    /* From now on it is a page as any other. */
    KTEST_CHECK(ktest_isolate(parent, TEST_VA, 1, &list) == 1);
    KTEST_CHECK(reclaim_pages(&list) == 1);
    KTEST_CHECK(get_user_u64(&word, TEST_VA) == 0 && word == 7);
    ktest_leave();
    mm_put(child);
    KTEST_CHECK(swap_used() == 0);
    return NULL;
}

const char *test_count_lazyfree(void)
{
    struct ktest_counts c;

    if (bootargs.tlb != BOOTARG_TLB_BROADCAST ||
        bootargs.flush != BOOTARG_FLUSH_BATCHED ||
        bootargs.drain != BOOTARG_DRAIN_MM || !mm_like.bc_batched ||
        mm_like.free_batch != 31) {
        KTEST_SKIP("not tlb=broadcast flush=batched drain=mm like=6.12");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    for (unsigned round = 0; round < 3; round++) {
        KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, round));
        KTEST_CHECK(counted(&c, TEST_PAGES, MADV_FREE));
        /* One range; and, but for the first time, what is pending. */
        KTEST_CHECK(c.at.dsb_ish == 1UL + (round != 0));
        KTEST_CHECK(c.at.dsb_ishst == c.at.dsb_ish);
        KTEST_CHECK(c.at.tlbi_asid == (round != 0));
        KTEST_CHECK(c.at.gather_flush == 1);
        KTEST_CHECK(c.at.tlbi_range == 1 || c.at.tlbi_va == TEST_PAGES);
        /* Clean and old already: nothing to flush. */
        KTEST_CHECK(counted(&c, TEST_PAGES, MADV_FREE));
        KTEST_CHECK(c.at.dsb_ish == 0 && c.at.tlbi_range == 0);
        /* 9, and no drain: MADV_FREE did it. */
        KTEST_CHECK(counted(&c, TEST_PAGES, MADV_PAGEOUT));
        KTEST_CHECK(c.at.dsb_ish == 9 && c.at.dsb_ishst == TEST_PAGES);
        KTEST_CHECK(c.at.tlbi_va == TEST_PAGES && c.at.tlbi_asid == 0);
        KTEST_CHECK(c.at.batch_flush_31 == 8 && c.at.batch_flush_dirty == 0);
        KTEST_CHECK(c.at.lazyfree_freed == TEST_PAGES && c.at.swap_out == 0);
    }
    ktest_leave();
    return NULL;
}

const char *test_cold(void)
{
    struct mm *parent = ktest_enter(), *child;
    struct spinlock *ptl;
    struct ktest_counts c;
    pte_t *p;

    KTEST_CHECK(parent != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 32, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 32, 8));
    KTEST_CHECK(counted(&c, 32, MADV_COLD));
    KTEST_CHECK(c.at.gather_flush == 1 && c.at.swap_out == 0);
    p = pt_walk(parent, TEST_VA, &ptl);
    for (unsigned i = 0; i < 32; i++) {
        KTEST_CHECK(pte_valid(pte_read(&p[i])));
        KTEST_CHECK(!(pte_read(&p[i]) & PTE_AF) && pte_dirty(pte_read(&p[i])));
        KTEST_CHECK(
            !page_test(pte_page(pte_read(&p[i])), PG_ACTIVE | PG_REFERENCED));
    }
    KTEST_CHECK(counted(&c, 32, MADV_COLD)); /* old already */
    KTEST_CHECK(c.at.gather_flush == 0);
    KTEST_CHECK(ktest_check(TEST_VA, 32, 8));
    /* Two users: neither advice touches them. */
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    KTEST_CHECK(counted(&c, 32, MADV_COLD));
    KTEST_CHECK(c.at.gather_flush == 0);
    KTEST_CHECK(counted(&c, 32, MADV_PAGEOUT));
    KTEST_CHECK(c.at.unmap_ptes == 0 && c.at.swap_out == 0);
    mm_put(child);
    KTEST_CHECK(counted(&c, 32, MADV_PAGEOUT));
    KTEST_CHECK(c.at.unmap_ptes == 32 && c.at.swap_out == 32);
    KTEST_CHECK(ktest_check(TEST_VA, 32, 8));
    ktest_leave();
    return NULL;
}
