/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of migration. Target frames are of any node: with one node a page moves
 * from frame to frame of it.
 */
#include "kernel/bootargs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "mm/ktest_mm.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/migrate.h"
#include "mm/rmap.h"
#include "mm/swap.h"
#include "mm/tlbbatch.h"
#include "mm/uaccess.h"

#define N_PAGES 64UL

static const char *migrate_contents(bool shared)
{
    struct mm *mm = ktest_enter();
    uint64_t last = TEST_VA + (N_PAGES - 1) * PAGE_SIZE;
    pte_t before, after;
    int64_t rss;

    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, N_PAGES, shared));
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 5));
    before = ktest_pte(mm, last);
    rss = atomic_load(&mm->rss);
    KTEST_CHECK(ktest_move(mm, TEST_VA, N_PAGES, MIGRATE_SYNC) == N_PAGES);
    after = ktest_pte(mm, last);
    KTEST_CHECK(pte_page(after) != pte_page(before));
    KTEST_CHECK((after & ~PTE_ADDR_MASK) == (before & ~PTE_ADDR_MASK));
    KTEST_CHECK(page_mapcount(pte_page(after)) == 1);
    KTEST_CHECK(page_mapcount(pte_page(before)) == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == rss);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 5));
    /* Clean PTEs too. */
    KTEST_CHECK(sys_madvise(TEST_VA, N_PAGES * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(ktest_touch(TEST_VA, N_PAGES));
    before = ktest_pte(mm, last);
    KTEST_CHECK(pte_dirty(before) == (shared && mm_like.read_fault_dirty));
    KTEST_CHECK(ktest_move(mm, TEST_VA, N_PAGES, MIGRATE_ASYNC) == N_PAGES);
    after = ktest_pte(mm, last);
    KTEST_CHECK((after & ~PTE_ADDR_MASK) == (before & ~PTE_ADDR_MASK));
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 5));
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 6));
    KTEST_CHECK(sys_madvise(TEST_VA, N_PAGES * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 6));
    ktest_leave();
    KTEST_CHECK(swap_used() == 0);
    return NULL;
}

const char *test_migrate_private(void)
{
    return migrate_contents(false);
}

const char *test_migrate_shared(void)
{
    return migrate_contents(true);
}

/* Pages that parent and child map; then each writes its own. */
const char *test_migrate_fork(void)
{
    const uint64_t priv = TEST_VA, shared = TEST_VA + BLOCK_SIZE;
    struct mm *mm = ktest_enter(), *child;
    pte_t pte;

    KTEST_CHECK(mm != NULL && ktest_map(priv, N_PAGES, false));
    KTEST_CHECK(ktest_map(shared, N_PAGES, true));
    KTEST_CHECK(ktest_fill(priv, N_PAGES, 1) && ktest_fill(shared, N_PAGES, 2));
    mm_get(mm);
    child = mm_fork(mm);
    KTEST_CHECK(child != NULL);
    ktest_go_to(child);
    KTEST_CHECK(ktest_check(shared, N_PAGES, 2)); /* maps them here too */
    KTEST_CHECK(ktest_move(child, priv, N_PAGES, MIGRATE_SYNC) == N_PAGES);
    KTEST_CHECK(ktest_move(mm, shared, N_PAGES, MIGRATE_SYNC) == N_PAGES);
    pte = ktest_pte(child, priv);
    KTEST_CHECK(pte_page(pte) == pte_page(ktest_pte(mm, priv)));
    KTEST_CHECK(page_mapcount(pte_page(pte)) == 2 && !(pte & PTE_WRITE));
    KTEST_CHECK(pte_page(ktest_pte(child, shared)) ==
                pte_page(ktest_pte(mm, shared)));
    KTEST_CHECK(ktest_fill(priv, N_PAGES / 2, 3));
    KTEST_CHECK(ktest_fill(shared, N_PAGES, 4));
    ktest_go_to(mm);
    KTEST_CHECK(ktest_check(priv, N_PAGES, 1));
    KTEST_CHECK(ktest_check(shared, N_PAGES, 4));
    KTEST_CHECK(ktest_move(mm, priv, N_PAGES, MIGRATE_SYNC) == N_PAGES);
    ktest_go_to(child);
    KTEST_CHECK(ktest_check(priv, N_PAGES / 2, 3));
    ktest_leave();
    mm_put(child);
    mm_put(mm);
    return NULL;
}

/* Pages of the swap cache: another address space has only their slots. */
const char *test_migrate_swapcache(void)
{
    struct mm *mm = ktest_enter(), *child;
    pte_t pte;

    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, N_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 1));
    KTEST_CHECK(sys_madvise(TEST_VA, N_PAGES * PAGE_SIZE, MADV_PAGEOUT) == 0);
    mm_get(mm);
    child = mm_fork(mm);
    KTEST_CHECK(child != NULL && ktest_touch(TEST_VA, N_PAGES));
    pte = ktest_pte(mm, TEST_VA);
    KTEST_CHECK(page_test(pte_page(pte), PG_SWAPCACHE));
    KTEST_CHECK(ktest_move(mm, TEST_VA, N_PAGES, MIGRATE_SYNC) == N_PAGES);
    KTEST_CHECK(pte_page(ktest_pte(mm, TEST_VA)) != pte_page(pte));
    pte = ktest_pte(mm, TEST_VA);
    KTEST_CHECK(page_test(pte_page(pte), PG_SWAPCACHE));
    ktest_go_to(child);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 1));
    KTEST_CHECK(pte_page(ktest_pte(child, TEST_VA)) == pte_page(pte));
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 2));
    ktest_go_to(mm);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 1));
    ktest_leave();
    mm_put(child);
    mm_put(mm);
    KTEST_CHECK(swap_used() == 0);
    return NULL;
}

/* --- what everybody does with migration entries --- */

/* One page of TEST_VA, locked and unmapped; its entries are there. */
struct half_way {
    struct page *page;
    uint64_t pin;
};

static bool half_way(struct mm *mm, uint64_t va, struct half_way *h)
{
    struct list list;

    if (ktest_isolate(mm, va, 1, &list) != 1) {
        return false;
    }
    h->page = page_of_node(list.next);
    list_remove(&h->page->lru);
    page_lock(h->page);
    /* Held for another task's sake: this one goes on to system calls. */
    lock_order_drop(LOCK_page);
    return rmap_try_to_migrate(h->page, false, &h->pin) &&
           pte_is_migration(ktest_pte(mm, va));
}

/* Back where it was: a migration that failed. */
static void whole_way_back(struct half_way *h)
{
    rmap_remove_migration(h->pin, h->page, h->page);
    page_unlock(h->page);
    lru_putback(h->page, false);
}

const char *test_migrate_entries(void)
{
    const uint64_t a = TEST_VA, b = TEST_VA + PAGE_SIZE;
    const uint64_t moved = TEST_VA + BLOCK_SIZE;
    struct mm *mm = ktest_enter();
    struct half_way h;
    uint64_t word;
    pte_t pte;

    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, 3, false));
    KTEST_CHECK(put_user_u64(a, 1) == 0 && put_user_u64(b, 2) == 0);
    pte = ktest_pte(mm, a);
    KTEST_CHECK(half_way(mm, a, &h));
    KTEST_CHECK(page_mapcount(h.page) == 0 && atomic_load(&mm->rss) == 2);
    KTEST_CHECK(atomic_load(&h.page->count) == 1);
    /* mincore: it is in memory. b holds the answer. */
    KTEST_CHECK(sys_mincore(a, PAGE_SIZE, b + 8) == 0);
    KTEST_CHECK(get_user_u64(&word, b + 8) == 0 && (word & 1) == 1);
    whole_way_back(&h);
    KTEST_CHECK(ktest_pte(mm, a) == pte);
    /* mprotect: what it becomes may not write. */
    KTEST_CHECK(half_way(mm, a, &h));
    KTEST_CHECK(sys_mprotect(a, PAGE_SIZE, PROT_READ) == 0);
    KTEST_CHECK(!(ktest_pte(mm, a) & PTE_WRITE));
    whole_way_back(&h);
    KTEST_CHECK(pte_valid(ktest_pte(mm, a)) &&
                !pte_writes_now(ktest_pte(mm, a)));
    KTEST_CHECK(put_user_u64(a, 9) == -EFAULT);
    KTEST_CHECK(sys_mprotect(a, PAGE_SIZE, RW) == 0);
    KTEST_CHECK(put_user_u64(a, 3) == 0);
    /* mremap: the entry moves, the end of the migration finds it. */
    KTEST_CHECK(half_way(mm, a, &h));
    KTEST_CHECK(sys_mremap(a, PAGE_SIZE, PAGE_SIZE,
                           MREMAP_MAYMOVE | MREMAP_FIXED,
                           moved) == (int64_t)moved);
    KTEST_CHECK(pte_is_migration(ktest_pte(mm, moved)) &&
                ktest_pte(mm, a) == 0);
    whole_way_back(&h);
    KTEST_CHECK(get_user_u64(&word, moved) == 0 && word == 3);
    KTEST_CHECK(atomic_load(&mm->rss) == 2);
    /* MADV_DONTNEED, MADV_PAGEOUT, munmap: gone, and the page with it. */
    KTEST_CHECK(half_way(mm, moved, &h));
    KTEST_CHECK(sys_madvise(moved, PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(sys_madvise(moved, PAGE_SIZE, MADV_COLD) == 0);
    KTEST_CHECK(pte_is_migration(ktest_pte(mm, moved)));
    KTEST_CHECK(sys_madvise(moved, PAGE_SIZE, MADV_DONTNEED) == 0);
    KTEST_CHECK(ktest_pte(mm, moved) == 0 && atomic_load(&mm->rss) == 1);
    whole_way_back(&h);
    KTEST_CHECK(ktest_pte(mm, moved) == 0);
    /* The last area goes while the page is on its way. */
    KTEST_CHECK(half_way(mm, b, &h));
    KTEST_CHECK(sys_munmap(TEST_VA, 3 * PAGE_SIZE) == 0);
    KTEST_CHECK(sys_munmap(moved, PAGE_SIZE) == 0 && mm->n_areas == 0);
    whole_way_back(&h);
    KTEST_CHECK(atomic_load(&mm->rss) == 0);
    ktest_leave();
    return NULL;
}

const char *test_migrate_entry_fork(void)
{
    struct mm *mm = ktest_enter(), *child;
    struct half_way h;
    uint64_t word;

    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, 1, false));
    KTEST_CHECK(put_user_u64(TEST_VA, 1) == 0);
    mm_get(mm);
    KTEST_CHECK(half_way(mm, TEST_VA, &h));
    child = mm_fork(mm);
    KTEST_CHECK(child != NULL && atomic_load(&child->rss) == 1);
    KTEST_CHECK(pte_is_migration(ktest_pte(child, TEST_VA)));
    KTEST_CHECK(
        !((ktest_pte(mm, TEST_VA) | ktest_pte(child, TEST_VA)) & PTE_WRITE));
    whole_way_back(&h);
    KTEST_CHECK(page_mapcount(h.page) == 2);
    KTEST_CHECK(put_user_u64(TEST_VA, 2) == 0);
    ktest_go_to(child);
    KTEST_CHECK(get_user_u64(&word, TEST_VA) == 0 && word == 1);
    KTEST_CHECK(put_user_u64(TEST_VA, 3) == 0);
    ktest_go_to(mm);
    KTEST_CHECK(get_user_u64(&word, TEST_VA) == 0 && word == 2);
    ktest_leave();
    mm_put(child);
    mm_put(mm);
    return NULL;
}

/* Somebody has a reference: the page stays, mapped as it was. */
const char *test_migrate_restore(void)
{
    struct mm *mm = ktest_enter();
    struct ktest_counts c;
    struct page *page;
    uint32_t pending;
    pte_t pte;

    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, 4, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 4, 1));
    pte = ktest_pte(mm, TEST_VA);
    page = pte_page(pte);
    pending = atomic_load(&mm->tlb_flush_batched);
    page_get(page);
    ktest_counts_start(&c);
    KTEST_CHECK(ktest_move(mm, TEST_VA, 1, MIGRATE_ASYNC) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(ktest_pte(mm, TEST_VA) == pte);
    KTEST_CHECK(page_mapcount(page) == 1 && atomic_load(&page->count) == 2);
    KTEST_CHECK(page_test(page, PG_LRU) && !page_test(page, PG_LOCKED));
    KTEST_CHECK(c.at.migrate_fail == 1 && c.at.migrate_success == 0);
    KTEST_CHECK(c.at.unmap_ptes == (mm_like.migrate_batched ? 1 : 10));
    if (c.at.batch_flush == 1) {
        /* The flush was queued: the word says so although nothing is gone. */
        KTEST_CHECK(atomic_load(&mm->tlb_flush_batched) == pending + 1);
    }
    /* The others of a batch do not suffer. */
    KTEST_CHECK(ktest_move(mm, TEST_VA, 4, MIGRATE_SYNC) == 3);
    KTEST_CHECK(pte_page(ktest_pte(mm, TEST_VA)) == page);
    page_put(page);
    /* Locked: asynchronous migration does not wait. */
    page_lock(page);
    lock_order_drop(LOCK_page); /* as if another task held it */
    KTEST_CHECK(ktest_move(mm, TEST_VA, 1, MIGRATE_ASYNC) == 0);
    page_unlock(page);
    KTEST_CHECK(ktest_move(mm, TEST_VA, 4, MIGRATE_SYNC) == 4);
    KTEST_CHECK(ktest_check(TEST_VA, 4, 1));
    ktest_leave();
    return NULL;
}

/* --- counts --- */

/* move_pages of 1200 pages: 3 waits; in R parts: R * ceil(P / (512 R)). */
const char *test_migrate_count(void)
{
    static const uint16_t parts[] = {1, 2, 3, 4, 6, 1200};
    const uint64_t pages = 1200;
    struct mm *mm = ktest_enter();
    struct ktest_counts c;

    if (bootargs.tlb != BOOTARG_TLB_BROADCAST) {
        ktest_leave();
        KTEST_SKIP("tlb=ipi");
    }
    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, pages, false));
    KTEST_CHECK(ktest_fill(TEST_VA, pages, 1));
    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
        uint64_t r = parts[i], each = pages / r;
        uint64_t flushes = ktest_defers() ? r * ((each + 511) / 512) : pages;

        ktest_counts_start(&c);
        for (uint64_t done = 0; done < pages; done += each) {
            KTEST_CHECK(ktest_move(mm, TEST_VA + done * PAGE_SIZE, each,
                                   MIGRATE_SYNC) == each);
        }
        ktest_counts_stop(&c);
        KTEST_CHECK(c.at.unmap_ptes == pages && c.at.tlbi_va == pages);
        KTEST_CHECK(c.at.dsb_ishst == pages && c.at.dsb_ish == flushes);
        KTEST_CHECK(c.at.tlbi_asid == 0 && c.at.tlbi_range == 0);
        KTEST_CHECK(c.at.batch_flush == (ktest_defers() ? flushes : 0));
        KTEST_CHECK(c.at.migrate_success == pages && c.at.migrate_fail == 0);
    }
    KTEST_CHECK(ktest_check(TEST_VA, pages, 1));
    ktest_leave();
    return NULL;
}

/* --- races --- */

#define SLICE 32UL
#define FORK_EVERY_NS 200000UL

struct migrate_race {
    struct ktest_threads t;
    struct mm *mm;
    unsigned rounds;        /* at least */
    _Atomic uint32_t moved; /* pages; the writers wait for some */
    _Atomic uint32_t failures;
    uint64_t seed[8]; /* [writer, then who joined it] of the last round */
};

static void write_and_check(unsigned index, void *arg)
{
    struct migrate_race *race = arg;
    uint64_t va = TEST_VA + index * SLICE * PAGE_SIZE;

    for (unsigned r = 0; r < race->rounds || atomic_load(&race->moved) == 0;
         r++) {
        uint64_t seed = index * 1000000UL + r;

        race->seed[index] = seed;
        preempt_point();
        if (!ktest_fill(va, SLICE, seed) || !ktest_check(va, SLICE, seed)) {
            atomic_fetch_add(&race->failures, 1);
            return;
        }
    }
}

static const char *race_migrate(bool shared, bool fork)
{
    struct migrate_race race = {
        .t = {.fn = write_and_check, .n = cpu_count < 8 ? cpu_count : 8},
        .rounds = 12,
    };
    struct mm *mm = ktest_enter();

    KTEST_CHECK(mm != NULL);
    race.t.arg = &race;
    race.t.mm = mm;
    KTEST_CHECK(ktest_map(TEST_VA, race.t.n * SLICE, shared));
    KTEST_CHECK(ktest_threads_start(&race.t, 0));
    while (atomic_load(&race.t.done) != race.t.n) {
        struct mm *child = fork ? mm_fork(mm) : NULL;

        KTEST_CHECK(!fork || child != NULL);
        atomic_fetch_add(&race.moved, ktest_move(mm, TEST_VA, race.t.n * SLICE,
                                                 MIGRATE_SYNC));
        atomic_fetch_add(&race.moved,
                         ktest_move(mm, TEST_VA, SLICE, MIGRATE_ASYNC));
        mm_put(child);
        /*
         * In step with a writer every fork could take back what its last fault
         * gave it, for ever.
         */
        if (fork) {
            sched_sleep_ns(FORK_EVERY_NS);
        }
        preempt_point();
    }
    ktest_threads_join(&race.t);
    KTEST_CHECK(atomic_load(&race.failures) == 0);
    for (unsigned i = 0; i < race.t.n; i++) {
        KTEST_CHECK(
            ktest_check(TEST_VA + i * SLICE * PAGE_SIZE, SLICE, race.seed[i]));
    }
    ktest_leave();
    KTEST_CHECK(swap_used() == 0);
    return NULL;
}

const char *test_migrate_race_private(void)
{
    return race_migrate(false, false);
}

const char *test_migrate_race_shared(void)
{
    return race_migrate(true, false);
}

const char *test_migrate_race_fork(void)
{
    return race_migrate(false, true);
}
