/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which instructions a flush takes: ranges cut into operations, the limits at
 * which all of an address space goes, the workaround, and INVLPGB's way.
 */
#include "kernel/bootargs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "mm/flush.h"
#include "mm/flush_opts.h"
#include "mm/ktest_mm.h"
#include "mm/like.h"
#include "mm/tlbbatch.h"

#define MAX_RANGE_PAGES 2097152UL

/* A flush of so many pages: DSB ISHST and DSB ISH are checked, too. */
static bool count_range(struct mm *mm, uint64_t pages, struct ktest_counts *c)
{
    struct flush_range range = {
        .start = TEST_VA,
        .end = TEST_VA + pages * PAGE_SIZE,
        .stride = PAGE_SIZE,
        .level = 3,
        .last_level = true,
    };

    ktest_counts_start(c);
    flush_tlb_range(mm, &range);
    ktest_counts_stop_raw(c);
    return c->at.dsb_ishst == 1 && c->at.dsb_ish == 1;
}

static bool ops_are(const struct ktest_counts *c, uint64_t single,
                    uint64_t range, uint64_t asid)
{
    return c->at.tlbi_va == single * flush_views() &&
           c->at.tlbi_range == range * flush_views() &&
           c->at.tlbi_asid == asid * flush_views();
}

const char *test_flush_ranges(void)
{
    /* Pages, operations of one page, operations by range. */
    static const uint32_t cuts[][3] = {
        {1, 1, 0},       {2, 0, 1},       {3, 1, 1},     {16, 0, 1},
        {31, 1, 1},      {32, 0, 1},      {33, 1, 1},    {63, 1, 1},
        {64, 0, 1},      {65, 1, 1},      {66, 0, 2},    {256, 0, 1},
        {257, 1, 1},     {511, 1, 2},     {512, 0, 1},   {2047, 1, 2},
        {2048, 0, 1},    {65535, 1, 3},   {65536, 0, 1}, {262144, 0, 1},
        {2097151, 1, 4}, {2097152, 0, 1},
    };
    struct flush_opts opts = flush_opts;
    struct ktest_counts c;
    struct mm *mm;

    if (bootargs.tlb != BOOTARG_TLB_BROADCAST) {
        KTEST_SKIP("not tlb=broadcast");
    }
    if (!flush_opts.range_ops) {
        KTEST_SKIP("no TLBI by range");
    }
    mm = ktest_enter();
    KTEST_CHECK(mm != NULL);
    flush_opts.repeat_tlbi = false;
    for (unsigned i = 0; i < ARRAY_SIZE(cuts); i++) {
        KTEST_CHECK(count_range(mm, cuts[i][0], &c));
        KTEST_CHECK(ops_are(&c, cuts[i][1], cuts[i][2], 0));
    }
    KTEST_CHECK(count_range(mm, MAX_RANGE_PAGES + 1, &c));
    KTEST_CHECK(ops_are(&c, 0, 0, 1));
    flush_opts = opts;
    ktest_leave();
    return NULL;
}

const char *test_flush_singles(void)
{
    struct flush_opts opts = flush_opts;
    struct flush_range blocks = {
        .start = TEST_VA,
        .end = TEST_VA + 3 * BLOCK_SIZE,
        .stride = BLOCK_SIZE,
        .level = 2,
        .last_level = true,
    };
    struct ktest_counts c;
    struct mm *mm;

    if (bootargs.tlb != BOOTARG_TLB_BROADCAST) {
        KTEST_SKIP("not tlb=broadcast");
    }
    mm = ktest_enter();
    KTEST_CHECK(mm != NULL);
    flush_opts.range_ops = false;
    flush_opts.repeat_tlbi = false;
    KTEST_CHECK(count_range(mm, 256, &c) && ops_are(&c, 256, 0, 0));
    KTEST_CHECK(count_range(mm, 511, &c) && ops_are(&c, 511, 0, 0));
    KTEST_CHECK(count_range(mm, 512, &c) && ops_are(&c, 0, 0, 1));
    ktest_counts_start(&c);
    flush_tlb_range(mm, &blocks);
    ktest_counts_stop_raw(&c);
    KTEST_CHECK(ops_are(&c, 3, 0, 0));
    /* Queuing too many is a flush at once. */
    ktest_counts_start(&c);
    set_tlb_ubc_flush_pending(mm, PTE_VALID | PTE_RDONLY, TEST_VA,
                              TEST_VA + 511 * PAGE_SIZE);
    ktest_counts_stop_raw(&c);
    KTEST_CHECK(ops_are(&c, 511, 0, 0) && c.at.dsb_ish == 0);
    ktest_counts_start(&c);
    set_tlb_ubc_flush_pending(mm, PTE_VALID | PTE_RDONLY, TEST_VA,
                              TEST_VA + 512 * PAGE_SIZE);
    ktest_counts_stop_raw(&c);
    KTEST_CHECK(ops_are(&c, 0, 0, 1) && c.at.dsb_ish == 1);
    flush_opts = opts;
    try_to_unmap_flush();
    ktest_leave();
    return NULL;
}

const char *test_flush_repeat(void)
{
    struct flush_opts opts = flush_opts;
    struct mm_like like = mm_like;
    struct ktest_counts c;
    struct mm *mm;

    if (bootargs.tlb != BOOTARG_TLB_BROADCAST) {
        KTEST_SKIP("not tlb=broadcast");
    }
    mm = ktest_enter();
    KTEST_CHECK(mm != NULL);
    mm_like.bc_batched = true;
    flush_opts.repeat_tlbi = true;
    mm_like.release = LIKE_6_12;
    KTEST_CHECK(!flush_batch_should_defer(mm));
    mm_like.release = LIKE_7_2;
    KTEST_CHECK(flush_batch_should_defer(mm));
    ktest_counts_start(&c);
    flush_tlb_page(mm, TEST_VA);
    ktest_counts_stop_raw(&c);
    /* The page, once a view, and one of nothing. */
    KTEST_CHECK(c.at.tlbi_va == flush_views() + 1UL && c.at.dsb_ish == 2);
    ktest_counts_start(&c);
    for (unsigned i = 0; i < 8; i++) {
        set_tlb_ubc_flush_pending(mm, PTE_VALID | PTE_RDONLY,
                                  TEST_VA + i * PAGE_SIZE,
                                  TEST_VA + (i + 1) * PAGE_SIZE);
    }
    try_to_unmap_flush();
    ktest_counts_stop_raw(&c);
    KTEST_CHECK(c.at.tlbi_va == 8 * flush_views() + 1UL);
    KTEST_CHECK(c.at.dsb_ishst == 8 && c.at.dsb_ish == 2);
    /* The young bit's TLBI is waited for by nobody. */
    ktest_counts_start(&c);
    flush_tlb_young(mm, TEST_VA);
    ktest_counts_stop_raw(&c);
    KTEST_CHECK(ops_are(&c, 1, 0, 0));
    KTEST_CHECK(c.at.dsb_ishst == 1 && c.at.dsb_ish == 0);
    flush_opts = opts;
    mm_like = like;
    ktest_leave();
    return NULL;
}

/* --- tlb=invlpgb --- */

static void spin_until_stop(unsigned index, void *arg)
{
    struct ktest_threads *t = arg;

    (void)index;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        cpu_relax();
    }
}

const char *test_flush_invlpgb(void)
{
    struct ktest_threads t = {.fn = spin_until_stop, .n = 1};
    struct mm_like like = mm_like;
    struct ktest_counts c;
    struct mm *mm;

    if (bootargs.tlb != BOOTARG_TLB_INVLPGB || flush_opts.repeat_tlbi ||
        bootargs.flush != BOOTARG_FLUSH_BATCHED ||
        bootargs.drain != BOOTARG_DRAIN_MM) {
        KTEST_SKIP("not tlb=invlpgb flush=batched drain=mm");
    }
    if (cpu_count < 2) {
        KTEST_SKIP("fewer than 2 CPUs");
    }
    mm = ktest_enter();
    KTEST_CHECK(mm != NULL);
    mm_like.pageout_young_flush = false;
    mm_like.free_batch = 31;
    t.arg = &t;
    t.mm = mm;
    KTEST_CHECK(ktest_threads_start(&t, 1));
    /* Up to the ceiling by address, then by ASID; nobody is interrupted. */
    KTEST_CHECK(count_range(mm, 1, &c) && ops_are(&c, 1, 0, 0));
    KTEST_CHECK(count_range(mm, 34, &c) && ops_are(&c, 0, 0, 1));
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    KTEST_CHECK(sys_madvise(TEST_VA, TEST_PAGES * PAGE_SIZE, MADV_PAGEOUT) ==
                0);
    KTEST_CHECK(ktest_touch(TEST_VA, TEST_PAGES));
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, TEST_PAGES * PAGE_SIZE, MADV_PAGEOUT) ==
                0);
    ktest_counts_stop_raw(&c);
    /* Nothing by page; each batch of 31 clean pages once of everything. */
    KTEST_CHECK(ops_are(&c, 0, 0, 1));
    KTEST_CHECK(c.at.tlbi_all == 9 && c.at.dsb_ish == 9 + 1);
    KTEST_CHECK(c.at.remote_flush == 0 && c.at.remote_flush_received == 0);
    KTEST_CHECK(c.at.tlbi_local == 0);
    KTEST_CHECK(ktest_check(TEST_VA, TEST_PAGES, 1));
    ktest_threads_join(&t);
    mm_like = like;
    ktest_leave();
    return NULL;
}
