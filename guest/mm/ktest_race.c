/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests with all CPUs at work on one address space, and ASID rollover. */
#include "arch/sysreg.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "mm/flush.h"
#include "mm/ktest_mm.h"
#include "mm/reclaim.h"
#include "mm/swap.h"
#include "mm/uaccess.h"

#define SLICE 32UL /* pages per thread */

static unsigned thread_count(void)
{
    return cpu_count < 8 ? cpu_count : 8;
}

struct race {
    struct ktest_threads t;
    unsigned rounds;
    _Atomic uint32_t failures;
    bool fork;
};

static uint64_t slice_of(unsigned index)
{
    return TEST_VA + index * SLICE * PAGE_SIZE;
}

/* Writes its slice, pages somebody's out, checks its own; over and over. */
static void write_and_page_out(unsigned index, void *arg)
{
    struct race *race = arg;
    uint64_t va = slice_of(index);

    for (unsigned r = 0; r < race->rounds; r++) {
        uint64_t seed = index * 1000UL + r;
        unsigned victim = (index + r) % race->t.n;

        if (!ktest_fill(va, SLICE, seed) ||
            sys_madvise(slice_of(victim), SLICE * PAGE_SIZE, MADV_PAGEOUT) !=
                0 ||
            !ktest_check(va, SLICE, seed) ||
            sys_madvise(va, SLICE * PAGE_SIZE, MADV_PAGEOUT) != 0 ||
            !ktest_check(va, SLICE, seed)) {
            atomic_fetch_add(&race->failures, 1);
            return;
        }
    }
}

static const char *race_pageout(bool shared)
{
    struct race race = {
        .t = {.fn = write_and_page_out, .n = thread_count()},
        .rounds = 6,
    };
    struct mm *mm = ktest_enter();
    uint64_t used = swap_used();

    KTEST_CHECK(mm != NULL);
    race.t.arg = &race;
    race.t.mm = mm;
    KTEST_CHECK(ktest_map(TEST_VA, race.t.n * SLICE, shared));
    KTEST_CHECK(ktest_threads_start(&race.t, 0));
    ktest_threads_join(&race.t);
    KTEST_CHECK(atomic_load(&race.failures) == 0);
    for (unsigned i = 0; i < race.t.n; i++) {
        KTEST_CHECK(
            ktest_check(slice_of(i), SLICE, i * 1000UL + race.rounds - 1));
    }
    ktest_leave();
    KTEST_CHECK(swap_used() == used);
    return NULL;
}

const char *test_race_private(void)
{
    return race_pageout(false);
}

const char *test_race_shared(void)
{
    return race_pageout(true);
}

/* Maps, writes, protects, unmaps a slice of its own next to the others'. */
static void map_and_unmap(unsigned index, void *arg)
{
    struct race *race = arg;
    uint64_t va = slice_of(index);

    for (unsigned r = 0; r < race->rounds; r++) {
        uint64_t word, seed = index * 77UL + r;
        bool ok = ktest_map(va, SLICE, (index + r) % 2 != 0) &&
                  ktest_fill(va, SLICE, seed) &&
                  sys_mprotect(va, SLICE / 2 * PAGE_SIZE, PROT_READ) == 0 &&
                  put_user_u64(va, 1) == -EFAULT &&
                  sys_madvise(va, SLICE * PAGE_SIZE, MADV_PAGEOUT) == 0 &&
                  ktest_check(va, SLICE, seed) &&
                  sys_munmap(va, SLICE * PAGE_SIZE) == 0 &&
                  get_user_u64(&word, va) == -EFAULT;

        if (!ok) {
            atomic_fetch_add(&race->failures, 1);
            return;
        }
    }
}

const char *test_race_unmap(void)
{
    struct race race = {
        .t = {.fn = map_and_unmap, .n = thread_count()},
        .rounds = 6,
    };
    struct mm *mm = ktest_enter();

    KTEST_CHECK(mm != NULL);
    race.t.arg = &race;
    race.t.mm = mm;
    KTEST_CHECK(ktest_threads_start(&race.t, 0));
    ktest_threads_join(&race.t);
    KTEST_CHECK(atomic_load(&race.failures) == 0);
    KTEST_CHECK(mm->n_areas == 0 && atomic_load(&mm->rss) == 0);
    ktest_leave();
    return NULL;
}

const char *test_race_fork(void)
{
    struct race race = {
        .t = {.fn = write_and_page_out, .n = thread_count()},
        .rounds = 6,
    };
    struct mm *mm = ktest_enter();
    uint64_t used = swap_used();

    KTEST_CHECK(mm != NULL);
    race.t.arg = &race;
    race.t.mm = mm;
    KTEST_CHECK(ktest_map(TEST_VA, race.t.n * SLICE, false));
    KTEST_CHECK(ktest_threads_start(&race.t, 0));
    while (atomic_load(&race.t.done) != race.t.n) {
        struct mm *child = mm_fork(mm);

        KTEST_CHECK(child != NULL);
        sched_sleep_ns(1000 * 1000);
        mm_put(child);
    }
    ktest_threads_join(&race.t);
    KTEST_CHECK(atomic_load(&race.failures) == 0);
    for (unsigned i = 0; i < race.t.n; i++) {
        KTEST_CHECK(
            ktest_check(slice_of(i), SLICE, i * 1000UL + race.rounds - 1));
    }
    ktest_leave();
    KTEST_CHECK(swap_used() == used);
    return NULL;
}

/* --- ASIDs --- */

#define ROLL_MMS 24

const char *test_asid_rollover(void)
{
    struct mm *mms[ROLL_MMS];
    uint64_t generation = asid_generation_now();
    unsigned limit = 2 * cpu_count + 4;

    /* Few numbers, so that a handful of address spaces uses them up. */
    asid_limit(limit);
    for (unsigned i = 0; i < ROLL_MMS; i++) {
        mms[i] = mm_new();
        KTEST_CHECK(mms[i] != NULL);
        ktest_use(mms[i]);
        KTEST_CHECK(ktest_map(TEST_VA, 1, false));
        KTEST_CHECK(put_user_u64(TEST_VA, i) == 0);
        ktest_leave();
    }
    for (unsigned round = 0; round < 200; round++) {
        unsigned i = (round * 7) % ROLL_MMS;
        struct spinlock *ptl;
        uint64_t word, par;
        pte_t *p;

        ktest_use(mms[i]);
        KTEST_CHECK(asid_of(mms[i]) != 0);
        /* What the hardware finds is this mm's frame and nobody else's. */
        p = pt_walk(mms[i], TEST_VA, &ptl);
        par = at_s1e0r(TEST_VA);
        KTEST_CHECK((par & 1) == 0);
        KTEST_CHECK((par & PTE_ADDR_MASK) == pte_address(pte_read(p)));
        KTEST_CHECK(get_user_u64(&word, TEST_VA) == 0 && word == i);
        ktest_leave();
    }
    if (limit < ROLL_MMS) {
        KTEST_CHECK(asid_generation_now() >=
                    generation + 2 * ASID_GENERATION_STEP);
    }
    asid_limit(0);
    for (unsigned i = 0; i < ROLL_MMS; i++) {
        mm_put(mms[i]);
    }
    return NULL;
}

/* Watches one page come back to the LRU. */
struct watch {
    struct ktest_threads t;
    struct page *page;
    const struct tlb_ubc *reclaimer;
    _Atomic uint32_t early;
};

static void watch_page(unsigned index, void *arg)
{
    struct watch *w = arg;

    (void)index;
    while (atomic_load(&w->t.stop) == 0) {
        if (page_test(w->page, PG_LRU) &&
            *(const volatile bool *)&w->reclaimer->flush_required) {
            atomic_fetch_add(&w->early, 1);
        }
        cpu_relax();
    }
}

/*
 * A page that reclaim unmapped and could not free: whoever finds it on the LRU
 * may free it, and knows nothing of the flush that is pending.
 */
const char *test_race_kept(void)
{
    struct mm *mm = ktest_enter();
    struct watch w = {.t = {.fn = watch_page, .n = 1},
                      .reclaimer = &current()->tlb_ubc};
    struct list pages = LIST_INIT(pages);

    if (cpu_count < 2) {
        ktest_leave();
        KTEST_SKIP("1 CPU");
    }
    KTEST_CHECK(mm != NULL);
    w.t.arg = &w;
    w.t.mm = mm;
    /* Clean pages with a copy in swap; somebody holds the first one. */
    KTEST_CHECK(ktest_map(TEST_VA, 16, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 16, 9));
    KTEST_CHECK(sys_madvise(TEST_VA, 16 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(ktest_touch(TEST_VA, 16));
    w.page = pte_page(ktest_pte(mm, TEST_VA));
    page_get(w.page);
    KTEST_CHECK(ktest_isolate(mm, TEST_VA, 16, &pages) == 16);
    KTEST_CHECK(ktest_threads_start(&w.t, 1));
    KTEST_CHECK(reclaim_pages(&pages) == 15);
    ktest_threads_join(&w.t);
    KTEST_CHECK(page_test(w.page, PG_LRU) && page_mapcount(w.page) == 0);
    KTEST_CHECK(atomic_load(&w.early) == 0);
    page_put(w.page);
    KTEST_CHECK(ktest_check(TEST_VA, 16, 9));
    ktest_leave();
    return NULL;
}
