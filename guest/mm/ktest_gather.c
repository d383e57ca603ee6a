/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the gather: when it is full, nested, and against a reclaimer. */
#include "kernel/bootargs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "mm/gather.h"
#include "mm/ktest_mm.h"
#include "mm/rmap.h"
#include "mm/tlbbatch.h"
#include "mm/uaccess.h"

/* As often as the page fits in before the gather says that it is full. */
static unsigned fill(struct gather *g, struct page *page, bool delay)
{
    unsigned n = 0;
    bool full;

    gather_note(g, TEST_VA, PAGE_SIZE, 3);
    do {
        page_get(page);
        if (delay) {
            rmap_add(page);
        }
        full = gather_page(g, page, delay);
        n++;
    } while (!full);
    return n;
}

const char *test_gather_full(void)
{
    struct mm *mm = ktest_enter();
    struct page *page = page_alloc(0, 0), *run;
    struct ktest_counts c;
    struct gather g;

    KTEST_CHECK(mm != NULL && page != NULL);
    ktest_counts_start(&c);
    gather_init(&g, mm, false);
    /* 7 of the 8 on the stack, 509 of the 510 of each of 19 pages; again. */
    KTEST_CHECK(fill(&g, page, false) == 7 + 19 * 509);
    gather_flush(&g);
    KTEST_CHECK(fill(&g, page, false) == 7 + 19 * 509);
    gather_flush(&g);
    /* With removals that wait for the flush: one page of them. */
    KTEST_CHECK(fill(&g, page, true) == 7 + 509);
    KTEST_CHECK(page_mapcount(page) == 7 + 509);
    gather_flush_tlb(&g);
    gather_finish_rmap(&g);
    KTEST_CHECK(page_mapcount(page) == 0);
    gather_finish(&g);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_flush == 3);
    KTEST_CHECK(c.at.frames_freed == 2 * (7 + 19 * 509) + 7 + 509);
    KTEST_CHECK(atomic_load(&page->count) == 1);
    /* A run takes two places, and always finds them. */
    run = page_alloc(3, 0);
    KTEST_CHECK(run != NULL);
    page_split_block(run, 3);
    ktest_counts_start(&c);
    gather_init(&g, mm, false);
    gather_note(&g, TEST_VA, PAGE_SIZE, 3);
    for (unsigned i = 0; i < 6; i++) {
        page_get(page);
        KTEST_CHECK(!gather_page(&g, page, false));
    }
    KTEST_CHECK(!gather_pages(&g, run, 8));
    KTEST_CHECK(g.local.count == 8 && g.active != &g.local);
    gather_finish(&g);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.frames_freed == 6 + 8);
    page_put(page);
    ktest_leave();
    return NULL;
}

const char *test_gather_nested(void)
{
    struct mm *mm = ktest_enter();
    struct gather a, b;
    struct ktest_counts c;

    KTEST_CHECK(mm != NULL);
    ktest_counts_start(&c);
    gather_init(&a, mm, false);
    gather_init(&b, mm, false);
    gather_note(&a, TEST_VA, PAGE_SIZE, 3);
    /* The second cleared nothing itself, but what it saw may be a's. */
    gather_finish(&b);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_nested_full == 1 && c.at.gather_flush == 1);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.tlbi_asid == 1 && c.at.dsb_ish == 1);
        KTEST_CHECK(c.at.tlbi_va == 0 && c.at.tlbi_range == 0);
    }
    ktest_counts_start(&c);
    gather_finish(&a); /* alone now: its own page */
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_nested_full == 0 && c.at.gather_flush == 1);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.tlbi_asid == 0 && c.at.tlbi_va == 1);
    }
    KTEST_CHECK(atomic_load(&mm->tlb_flush_pending) == 0);
    ktest_leave();
    return NULL;
}

/* The whole address space: flushed once, and only if tables go. */
const char *test_gather_fullmm(void)
{
    struct mm *mm = ktest_enter();
    struct ktest_counts c;
    struct gather g;

    KTEST_CHECK(mm != NULL);
    ktest_counts_start(&c);
    gather_init(&g, mm, true);
    gather_note(&g, TEST_VA, PAGE_SIZE, 3);
    gather_finish(&g);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_flush == 0 && c.at.dsb_ish == 0);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    mm_get(mm);
    ktest_leave();
    ktest_counts_start(&c);
    mm_put(mm);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_flush == 1 && c.at.frames_freed == TEST_PAGES);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.tlbi_asid == 1 && c.at.dsb_ish == 1);
        KTEST_CHECK(c.at.tlbi_va == 0 && c.at.tlbi_range == 0);
    }
    return NULL;
}

const char *test_gather_tables(void)
{
    struct mm *mm = ktest_enter();
    struct ktest_counts c;
    uint64_t word;

    KTEST_CHECK(mm != NULL);
    /* 600 leaf tables: freed when 509 wait, and at the end. */
    KTEST_CHECK(ktest_map(TEST_VA, 600 * 512, false));
    for (uint64_t i = 0; i < 600; i++) {
        KTEST_CHECK(get_user_u64(&word, TEST_VA + i * BLOCK_SIZE) == 0);
    }
    KTEST_CHECK(atomic_load(&mm->tables) > 600);
    ktest_counts_start(&c);
    KTEST_CHECK(sys_munmap(TEST_VA, 600 * BLOCK_SIZE) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.gather_flush == 3); /* the area, 509 tables, the rest */
    KTEST_CHECK(atomic_load(&mm->tables) == 1);
    ktest_leave();
    return NULL;
}

/* --- munmap while a reclaimer on another CPU has not flushed (T14) --- */

#define T14_PAGES 64UL
#define T14_TAKEN 32UL

struct t14 {
    struct ktest_threads t;
    struct page *pages[T14_TAKEN];
    _Atomic uint32_t unmapped;
    bool pending; /* what the reclaimer's batch said at the end */
};

static void unmap_and_wait(unsigned index, void *arg)
{
    struct t14 *t = arg;

    (void)index;
    for (unsigned i = 0; i < T14_TAKEN; i++) {
        page_lock(t->pages[i]);
        (void)rmap_try_to_unmap(t->pages[i]);
        page_unlock(t->pages[i]);
    }
    atomic_store(&t->unmapped, 1);
    while (!atomic_load_explicit(&t->t.stop, memory_order_relaxed)) {
        cpu_relax();
        preempt_point();
    }
    t->pending = current()->tlb_ubc.flush_required;
    try_to_unmap_flush();
    for (unsigned i = 0; i < T14_TAKEN; i++) {
        page_put(t->pages[i]);
    }
}

static const char *t14_run(struct t14 *t, struct mm *mm)
{
    struct ktest_counts c;
    uint32_t word;

    KTEST_CHECK(ktest_map(TEST_VA, T14_PAGES, true));
    KTEST_CHECK(ktest_fill(TEST_VA, T14_PAGES, 1));
    for (unsigned i = 0; i < T14_TAKEN; i++) {
        unsigned level;

        t->pages[i] = pte_page(pt_lookup(mm, TEST_VA + i * PAGE_SIZE, &level));
        page_get(t->pages[i]);
    }
    KTEST_CHECK(ktest_threads_start(&t->t, 1));
    while (!atomic_load(&t->unmapped)) {
        sched_sleep_ns(1000 * 1000);
    }
    ktest_counts_start(&c);
    KTEST_CHECK(sys_munmap(TEST_VA, T14_PAGES * PAGE_SIZE) == 0);
    ktest_counts_stop(&c);
    /*
     * The drain first, since the reclaimer's TLBIs are not complete; then the
     * dirty pages of the area under the PTL, and the table.
     */
    KTEST_CHECK(c.at.pending_drain == 1 && c.at.batch_flush == 0);
    KTEST_CHECK(c.at.frames_freed == T14_PAGES - T14_TAKEN);
    KTEST_CHECK(c.at.gather_flush == 2);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.tlbi_asid == 1 && c.at.dsb_ish == 3);
    }
    word = atomic_load(&mm->tlb_flush_batched);
    KTEST_CHECK((word & TLB_BATCH_PENDING_MASK) ==
                word >> TLB_BATCH_FLUSHED_SHIFT);
    return NULL;
}

const char *test_gather_drains(void)
{
    static struct t14 t;
    struct mm *mm = ktest_enter();
    const char *why;

    KTEST_CHECK(mm != NULL);
    if (cpu_count < 2 || bootargs.flush != BOOTARG_FLUSH_BATCHED ||
        bootargs.drain != BOOTARG_DRAIN_MM || !should_defer_flush(mm)) {
        ktest_leave();
        KTEST_SKIP("needs 2 CPUs, flush=batched and drain=mm");
    }
    t = (struct t14){.t = {.fn = unmap_and_wait, .n = 1, .mm = mm}};
    t.t.arg = &t;
    why = t14_run(&t, mm);
    ktest_threads_join(&t.t);
    KTEST_CHECK(why == NULL);
    KTEST_CHECK(t.pending);
    ktest_leave();
    return NULL;
}
