/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whom the IPI back end interrupts: CPUs that run an address space, run another
 * one ("stale"), or are idle ("lazy"); by mask=, lazy_hit= and filter=, which
 * the tests switch themselves. Numbers: Linux 6.12 and 7.2, and the filter's
 * description.
 */
#include "kernel/bootargs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "kernel/time.h"
#include "mm/flush.h"
#include "mm/flush_opts.h"
#include "mm/ktest_mm.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/reclaim.h"
#include "mm/tlbbatch.h"
#include "mm/uaccess.h"

#define BLOCK_PAGES 512UL
#define TRACKED 8 /* address spaces of a batch that the filter knows */

#define SKIP_UNLESS_IPI(cpus)                                                  \
    do {                                                                       \
        if (bootargs.tlb != BOOTARG_TLB_IPI ||                                 \
            bootargs.flush != BOOTARG_FLUSH_BATCHED ||                         \
            bootargs.drain != BOOTARG_DRAIN_MM) {                              \
            KTEST_SKIP("not tlb=ipi flush=batched drain=mm");                  \
        }                                                                      \
        if (cpu_count < (cpus)) {                                              \
            KTEST_SKIP("fewer than " #cpus " CPUs");                           \
        }                                                                      \
    } while (0)

/* --- the scene: CPU 0 and the switches are the test's --- */

struct scene {
    struct mm *mm;              /* of the test itself, on CPU 0 */
    struct ktest_threads users; /* run mm on CPUs 1 .. */
    struct ktest_threads others;
    struct mm *other;
    struct cpumask affinity;
    struct mm_like like;
    struct flush_opts opts;
};

static void spin_until_stop(unsigned index, void *arg)
{
    struct ktest_threads *t = arg;

    (void)index;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        cpu_relax();
    }
}

/* Threads that spin with mm loaded on CPUs first, first + 1, ... */
static bool run_on(struct ktest_threads *t, struct mm *mm, unsigned first,
                   unsigned n)
{
    *t = (struct ktest_threads){.fn = spin_until_stop, .arg = t, .n = n};
    t->mm = mm;
    return n == 0 || ktest_threads_start(t, first);
}

static bool scene_begin(struct scene *s, bool lazy_mask)
{
    struct cpumask zero;

    s->like = mm_like;
    s->opts = flush_opts;
    mm_like.lazy_cpumask = lazy_mask;
    mm_like.ipi_lazy_keeps_bit = lazy_mask;
    flush_opts.filter_stale = false;
    s->users.n = 0;
    s->others.n = 0;
    s->affinity = current()->affinity;
    cpumask_zero(&zero);
    cpumask_set(&zero, 0);
    task_set_affinity(current(), &zero);
    s->other = mm_new();
    s->mm = ktest_enter();
    return s->mm != NULL && s->other != NULL;
}

/* CPUs 1 .. n have mm loaded, idle: nobody uses it any more. */
static bool make_lazy(struct scene *s, unsigned n)
{
    struct ktest_threads t;

    if (!run_on(&t, s->mm, 1, n)) {
        return false;
    }
    ktest_threads_join(&t);
    /* The last thread may not have left its CPU yet. */
    for (unsigned cpu = 1; cpu <= n; cpu++) {
        while (!atomic_load(&tlb_cpus[cpu].is_lazy) ||
               atomic_load(&tlb_cpus[cpu].loaded) != s->mm) {
            sched_sleep_ns(1000 * 1000);
        }
    }
    return true;
}

/* CPUs 1 .. n ran mm and now run another address space. */
static bool make_stale(struct scene *s, unsigned n)
{
    return make_lazy(s, n) && run_on(&s->others, s->other, 1, n);
}

static void scene_end(struct scene *s)
{
    if (s->users.n != 0) {
        ktest_threads_join(&s->users);
    }
    if (s->others.n != 0) {
        ktest_threads_join(&s->others);
    }
    mm_like = s->like;
    flush_opts = s->opts;
    mm_put(s->other);
    ktest_leave();
    task_set_affinity(current(), &s->affinity);
}

static unsigned others_count(void)
{
    return cpu_count - 1 < 7 ? cpu_count - 1 : 7;
}

static bool mask_is_self(const struct scene *s)
{
    return cpumask_weight(&s->mm->context.cpumask) == 1 &&
           cpumask_test(&s->mm->context.cpumask, 0);
}

/* --- MADV_PAGEOUT of dirty pages, three tables, by its owner --- */

enum company { COMPANY_STALE, COMPANY_THREADS, COMPANY_IDLE };

static bool assemble(struct scene *s, enum company company, unsigned n)
{
    switch (company) {
    case COMPANY_STALE:
        return make_stale(s, n);
    case COMPANY_THREADS:
        return run_on(&s->users, s->mm, 1, n);
    case COMPANY_IDLE:
        return make_lazy(s, n);
    }
    return false;
}

static const char *pageout_dirty(enum company company, bool lazy_mask,
                                 uint64_t each, uint64_t wrong, bool alone)
{
    unsigned n = others_count();
    struct ktest_counts c;
    struct scene s;

    KTEST_CHECK(scene_begin(&s, lazy_mask));
    mm_like.pageout_young_flush = false;
    /* Not counted in here: a trim, should it be due. */
    atomic_store(&s.mm->context.next_trim, UINT64_MAX);
    KTEST_CHECK(ktest_map(TEST_VA, 3 * BLOCK_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 3 * BLOCK_PAGES, 1));
    KTEST_CHECK(assemble(&s, company, n));
    ktest_counts_start(&c);
    KTEST_CHECK(
        sys_madvise(TEST_VA, 3 * BLOCK_PAGES * PAGE_SIZE, MADV_PAGEOUT) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.unmap_ptes == 3 * BLOCK_PAGES);
    KTEST_CHECK(c.at.remote_flush_received == each * n);
    KTEST_CHECK(c.at.wrong_cpu == wrong * n);
    KTEST_CHECK(mask_is_self(&s) == alone);
    KTEST_CHECK(ktest_check(TEST_VA, 3 * BLOCK_PAGES, 1));
    scene_end(&s);
    return NULL;
}

const char *test_ipi_pageout(void)
{
    const char *why;

    SKIP_UNLESS_IPI(2);
    /*
     * The stale ones are told of every page of the first table; the second
     * table's drain reaches them too, and they leave.
     */
    why = pageout_dirty(COMPANY_STALE, true, BLOCK_PAGES + 1, 1, true);
    if (why == NULL) {
        /* They left when they switched. */
        why = pageout_dirty(COMPANY_STALE, false, 0, 0, true);
    }
    if (why == NULL) {
        /* Every page, and two drains. */
        why =
            pageout_dirty(COMPANY_THREADS, true, 3 * BLOCK_PAGES + 2, 0, false);
    }
    if (why == NULL) {
        why = pageout_dirty(COMPANY_THREADS, false, 3 * BLOCK_PAGES + 2, 0,
                            false);
    }
    return why;
}

const char *test_ipi_pageout_idle(void)
{
    const char *why;

    SKIP_UNLESS_IPI(2);
    /*
     * First table: nothing. The first drain makes them unload the mm, but they
     * stay in its mask: every page of the second table. Then they leave.
     */
    why = pageout_dirty(COMPANY_IDLE, true, 1 + BLOCK_PAGES + 1, 1, true);
    if (why == NULL) {
        why = pageout_dirty(COMPANY_IDLE, false, 1, 0, true);
    }
    return why;
}

/* --- lazy CPUs --- */

/* A batch flush of one page of mm. */
static void batch_flush(struct mm *mm)
{
    set_tlb_ubc_flush_pending(mm, PTE_VALID | PTE_RDONLY, TEST_VA,
                              TEST_VA + PAGE_SIZE);
    try_to_unmap_flush();
}

/* CPU 1 runs mm for a moment. Returns how often it flushed its TLB itself. */
static uint64_t run_again(struct scene *s)
{
    uint64_t before = counters[1].tlbi_local;

    return make_lazy(s, 1) ? counters[1].tlbi_local - before : UINT64_MAX;
}

/* 1200 pages in 1 and 5 parts: 3 and 5 batches, each asks whom company says. */
static const char *migrate_with(enum company company, bool lazy_mask, bool hits)
{
    unsigned n = others_count();
    struct ktest_counts c;
    struct scene s;

    KTEST_CHECK(scene_begin(&s, lazy_mask));
    atomic_store(&s.mm->context.next_trim, UINT64_MAX);
    KTEST_CHECK(ktest_map(TEST_VA, 1200, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 1200, 1) && assemble(&s, company, n));
    for (uint64_t parts = 1; parts <= 5; parts += 4) {
        ktest_counts_start(&c);
        for (uint64_t i = 0; i < parts; i++) {
            KTEST_CHECK(ktest_move(s.mm,
                                   TEST_VA + i * (1200 / parts) * PAGE_SIZE,
                                   1200 / parts, MIGRATE_SYNC) == 1200 / parts);
        }
        ktest_counts_stop(&c);
        KTEST_CHECK(c.at.remote_flush_received ==
                    (hits ? n * (parts == 1 ? 3 : 5) : 0));
    }
    KTEST_CHECK(ktest_check(TEST_VA, 1200, 1));
    scene_end(&s);
    return NULL;
}

const char *test_ipi_migrate(void)
{
    const char *why;

    SKIP_UNLESS_IPI(2);
    if (!mm_like.migrate_batched) {
        KTEST_SKIP("migrate=sync");
    }
    why = migrate_with(COMPANY_THREADS, false, true);
    why = why != NULL ? why : migrate_with(COMPANY_STALE, true, true);
    why = why != NULL ? why : migrate_with(COMPANY_STALE, false, false);
    return why != NULL ? why : migrate_with(COMPANY_IDLE, true, false);
}

const char *test_ipi_lazy(void)
{
    struct ktest_counts c;
    struct scene s;

    SKIP_UNLESS_IPI(2);
    KTEST_CHECK(scene_begin(&s, true));
    KTEST_CHECK(make_lazy(&s, 1));
    /* Nothing was flushed meanwhile: nothing to catch up with. */
    KTEST_CHECK(run_again(&s) == 0);
    ktest_counts_start(&c);
    batch_flush(s.mm);
    batch_flush(s.mm);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.remote_flush_received == 0 && c.at.remote_flush == 0);
    KTEST_CHECK(c.at.lazy_skipped == 2 && c.at.batch_flush == 2);
    /* It missed two generations, and does them with one. */
    KTEST_CHECK(run_again(&s) == flush_views());
    KTEST_CHECK(run_again(&s) == 0);
    /* Tables may be freed next: it must stop walking them now. */
    ktest_counts_start(&c);
    flush_tlb_mm(s.mm);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.remote_flush_received == 1 && c.at.wrong_cpu == 0);
    KTEST_CHECK(atomic_load(&tlb_cpus[1].loaded) == NULL);
    KTEST_CHECK(cpumask_test(&s.mm->context.cpumask, 1));
    /* Not lazy any more, and in the mask: batches ask it. */
    ktest_counts_start(&c);
    batch_flush(s.mm);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.remote_flush_received == 1 && c.at.lazy_skipped == 0);
    KTEST_CHECK(cpumask_test(&s.mm->context.cpumask, 1));
    scene_end(&s);
    return NULL;
}

/* --- trim --- */

static uint64_t now_ticks(void)
{
    return time_now_ns() / NSEC_PER_TICK;
}

static void flush_page_counted(struct scene *s, struct ktest_counts *c)
{
    ktest_counts_start(c);
    flush_tlb_page(s->mm, TEST_VA);
    ktest_counts_stop(c);
}

const char *test_ipi_trim(void)
{
    unsigned n = others_count();
    struct ktest_counts c;
    struct scene s;
    uint64_t due;

    SKIP_UNLESS_IPI(2);
    KTEST_CHECK(scene_begin(&s, true));
    due = atomic_load(&s.mm->context.next_trim);
    KTEST_CHECK(due <= now_ticks() + HZ && due + HZ > now_ticks());
    KTEST_CHECK(make_stale(&s, n));
    /* Too early: who runs something else is left alone. */
    atomic_store(&s.mm->context.next_trim, now_ticks() + 1000 * HZ);
    flush_page_counted(&s, &c);
    KTEST_CHECK(c.at.remote_flush_received == 0 && c.at.trim_rounds == 0);
    /* A batch never trims, whatever the time. */
    atomic_store(&s.mm->context.next_trim, 0);
    ktest_counts_start(&c);
    batch_flush(s.mm);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.remote_flush_received == n && c.at.wrong_cpu == 0);
    KTEST_CHECK(c.at.trim_rounds == 0);
    KTEST_CHECK(cpumask_weight(&s.mm->context.cpumask) == n + 1);
    /* Now all are asked, and leave. */
    flush_page_counted(&s, &c);
    KTEST_CHECK(c.at.remote_flush_received == n && c.at.wrong_cpu == n);
    KTEST_CHECK(c.at.trim_rounds == 1);
    KTEST_CHECK(mask_is_self(&s));
    due = atomic_load(&s.mm->context.next_trim);
    KTEST_CHECK(due <= now_ticks() + HZ && due + HZ > now_ticks());
    flush_page_counted(&s, &c);
    KTEST_CHECK(c.at.remote_flush_received == 0 && c.at.trim_rounds == 0);
    scene_end(&s);

    /* Lazy ones are not asked even then. */
    KTEST_CHECK(scene_begin(&s, true));
    KTEST_CHECK(make_lazy(&s, n));
    atomic_store(&s.mm->context.next_trim, 0);
    flush_page_counted(&s, &c);
    KTEST_CHECK(c.at.remote_flush_received == 0 && c.at.trim_rounds == 1);
    KTEST_CHECK(c.at.lazy_skipped == n);
    scene_end(&s);
    return NULL;
}

/* --- the filter --- */

/* Reclaims the page at TEST_VA, however many map it. */
static bool reclaim_page(struct mm *mm)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(mm, TEST_VA, &ptl);
    struct page *page = p != NULL ? pte_page(pte_read(p)) : NULL;
    struct list pages;

    list_init(&pages);
    if (page == NULL || !lru_isolate(page)) {
        return false;
    }
    list_append(&pages, &page->lru);
    return reclaim_pages(&pages) == 1;
}

/* A page of mms address spaces; CPU 1 runs one of them, CPU 2 none, 3 idles. */
static const char *filter_page(unsigned mms, bool filter, uint64_t received,
                               uint64_t stale)
{
    struct mm *children[TRACKED];
    struct ktest_counts c;
    struct scene s;

    KTEST_CHECK(scene_begin(&s, true));
    flush_opts.filter_stale = filter;
    KTEST_CHECK(ktest_map(TEST_VA, 1, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 1, 1));
    for (unsigned i = 0; i + 1 < mms; i++) {
        children[i] = mm_fork(s.mm);
        KTEST_CHECK(children[i] != NULL);
        /* They ran on CPU 2 once. */
        cpumask_test_and_set_atomic(&children[i]->context.cpumask, 2);
    }
    KTEST_CHECK(make_lazy(&s, 3));
    KTEST_CHECK(run_on(&s.users, s.mm, 1, 1));
    KTEST_CHECK(run_on(&s.others, s.other, 2, 1));
    ktest_counts_start(&c);
    KTEST_CHECK(reclaim_page(s.mm));
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.unmap_ptes == mms && c.at.batch_flush == 1);
    KTEST_CHECK(c.at.remote_flush_received == received);
    KTEST_CHECK(c.at.stale_skipped == stale && c.at.lazy_skipped == 1);
    KTEST_CHECK(c.at.wrong_cpu == 0);
    /* Left out or not, everybody's entries were of an older generation. */
    KTEST_CHECK(ktest_check(TEST_VA, 1, 1));
    for (unsigned i = 0; i + 1 < mms; i++) {
        mm_put(children[i]);
    }
    scene_end(&s);
    return NULL;
}

const char *test_ipi_filter(void)
{
    const char *why;

    SKIP_UNLESS_IPI(4);
    why = filter_page(1, true, 1, 1);
    if (why == NULL) {
        why = filter_page(TRACKED, true, 1, 1);
    }
    if (why == NULL) {
        why = filter_page(TRACKED + 1, true, 2, 0);
    }
    if (why == NULL) {
        why = filter_page(TRACKED, false, 2, 0);
    }
    return why;
}

/* A CPU that the filter left out flushes when it runs the mm again. */
const char *test_ipi_filter_catches_up(void)
{
    struct ktest_counts c;
    struct scene s;
    uint64_t before;

    SKIP_UNLESS_IPI(2);
    KTEST_CHECK(scene_begin(&s, true));
    flush_opts.filter_stale = true;
    KTEST_CHECK(make_stale(&s, 1));
    ktest_counts_start(&c);
    batch_flush(s.mm);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.stale_skipped == 1 && c.at.remote_flush_received == 0);
    before = counters[1].tlbi_local;
    ktest_threads_join(&s.others);
    s.others.n = 0;
    KTEST_CHECK(make_lazy(&s, 1));
    KTEST_CHECK(counters[1].tlbi_local - before == flush_views());
    scene_end(&s);
    return NULL;
}

/* --- how much a target flushes --- */

/* A flush of so many pages, with CPU 1 running the mm: what it issued. */
static uint64_t target_ops(struct scene *s, uint64_t pages)
{
    struct flush_range range = {
        .start = TEST_VA,
        .end = TEST_VA + pages * PAGE_SIZE,
        .stride = PAGE_SIZE,
        .level = 3,
        .last_level = true,
    };
    uint64_t before = counters[1].tlbi_local;

    flush_tlb_range(s->mm, &range);
    return (counters[1].tlbi_local - before) / flush_views();
}

const char *test_ipi_ceiling(void)
{
    uint64_t before;
    struct scene s;

    SKIP_UNLESS_IPI(2);
    KTEST_CHECK(scene_begin(&s, false));
    KTEST_CHECK(run_on(&s.users, s.mm, 1, 1));
    KTEST_CHECK(target_ops(&s, 1) == 1);
    KTEST_CHECK(target_ops(&s, 33) == 33);
    KTEST_CHECK(target_ops(&s, 34) == 1);
    /* One generation was missed: pages do not say what it flushed. */
    (void)atomic_fetch_add(&s.mm->context.tlb_gen, 1);
    KTEST_CHECK(target_ops(&s, 33) == 1);
    KTEST_CHECK(target_ops(&s, 33) == 33);
    /* A batch's flush is always of everything. */
    before = counters[1].tlbi_local;
    batch_flush(s.mm);
    KTEST_CHECK(counters[1].tlbi_local - before == flush_views());
    KTEST_CHECK(flush_shootdowns(1) == counters[1].remote_flush_received);
    scene_end(&s);
    return NULL;
}
