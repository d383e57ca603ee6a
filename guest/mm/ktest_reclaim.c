/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of reclaim by lists: how long they are, what their flushes cost, when
 * the background reclaimer works, and what happens when swap is full. No user
 * program runs yet, so the root group's lists hold the tests' pages only.
 */
#include "kernel/bootargs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/buddy.h"
#include "mm/flush_opts.h"
#include "mm/ktest_mm.h"
#include "mm/like.h"
#include "mm/memcg.h"
#include "mm/node.h"
#include "mm/numa.h"
#include "mm/swap.h"
#include "mm/uaccess.h"
#include "mm/vmscan.h"

#define PAGES 1024UL
#define KSWAPD_NS (20UL * NSEC_PER_SEC)

static bool batched(void)
{
    return bootargs.flush == BOOTARG_FLUSH_BATCHED &&
           (bootargs.tlb == BOOTARG_TLB_IPI ||
            (mm_like.bc_batched &&
             (!flush_opts.repeat_tlbi || mm_like.release >= LIKE_7_2)));
}

/* The lists of a release, whatever was booted. */
static void use_lists(bool mglru, bool scaled)
{
    mm_like.mglru_lists = mglru;
    mm_like.mglru_scaled = scaled;
    mm_like.free_batch = LIKE_FREE_BATCH_MAX;
    mm_like.read_fault_dirty = false;
}

/* PAGES private pages, all in memory; clean: with an unused swap entry. */
static bool prepare(bool dirty)
{
    return ktest_map(TEST_VA, PAGES, false) && ktest_fill(TEST_VA, PAGES, 5) &&
           (dirty ||
            (sys_madvise(TEST_VA, PAGES * PAGE_SIZE, MADV_PAGEOUT) == 0 &&
             ktest_touch(TEST_VA, PAGES)));
}

static bool count_request(struct ktest_counts *c, uint64_t pages)
{
    bool ok;

    ktest_counts_start(c);
    ok = vmscan_request(memcg_root(), pages) == 0;
    ktest_counts_stop(c);
    return ok;
}

/*
 * 1024 pages: with generations the first round of every request takes a 4096th
 * and the three after it make the pages old; then, scaled, 4 7 15 31 60 64 49
 * 64, and so on for what is left: 53 lists, 71 times 31 or less.
 */
static const char *check_lists(bool scaled, uint64_t lists, uint64_t flushes)
{
    struct ktest_counts c;

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(prepare(false));
    KTEST_CHECK(lru_size(&memcg_root()->lruvecs[0]) == PAGES);
    use_lists(true, scaled);
    KTEST_CHECK(count_request(&c, PAGES));
    KTEST_CHECK(c.at.pageout_calls == lists);
    KTEST_CHECK(c.at.unmap_ptes == PAGES && c.at.swap_out == PAGES);
    KTEST_CHECK(c.at.pgscan_direct == PAGES && c.at.pgsteal_direct == PAGES);
    KTEST_CHECK(c.at.lru_ageings == 3 && c.at.batch_flush_dirty == 0);
    KTEST_CHECK(c.at.pending_drain == 0);
    if (batched() && bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.batch_flush == flushes && c.at.dsb_ish == flushes);
        KTEST_CHECK(c.at.tlbi_va == PAGES && c.at.dsb_ishst == PAGES);
    }
    KTEST_CHECK(ktest_check(TEST_VA, PAGES, 5));
    ktest_leave();
    return NULL;
}

const char *test_lists(void)
{
    struct mm_like saved = mm_like;
    struct cpumask affinity = current()->affinity, first;
    const char *why;

    if (!saved.mglru_lists) {
        KTEST_SKIP("lists=classic");
    }
    /* All pages on the lists of the first node. */
    cpumask_zero(&first);
    cpumask_set(&first, 0);
    task_set_affinity(current(), &first);
    why = check_lists(false, 16, 48);
    if (why == NULL) {
        why = check_lists(true, 53, 71);
    }
    task_set_affinity(current(), &affinity);
    mm_like = saved;
    return why;
}

const char *test_lists_dirty(void)
{
    struct mm_like saved = mm_like;
    struct ktest_counts c;

    if (!saved.mglru_lists) {
        KTEST_SKIP("lists=classic");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(prepare(true));
    use_lists(true, false);
    KTEST_CHECK(count_request(&c, PAGES));
    mm_like = saved;
    KTEST_CHECK(c.at.pageout_calls == 16 && c.at.unmap_ptes == PAGES);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.dsb_ish == PAGES && c.at.tlbi_va == PAGES);
        KTEST_CHECK(c.at.batch_flush == (batched() ? PAGES : 0));
    }
    KTEST_CHECK(ktest_check(TEST_VA, PAGES, 5));
    ktest_leave();
    return NULL;
}

static void spin_until_stop(unsigned index, void *arg)
{
    struct ktest_threads *t = arg;

    (void)index;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        cpu_relax();
    }
}

/* T1 and T2: the flushes of reclaim times the other CPUs. */
static const char *check_ipis(bool dirty, uint64_t flushes)
{
    struct ktest_threads t = {.fn = spin_until_stop, .n = 3};
    struct ktest_counts c;

    t.arg = &t;
    t.mm = ktest_enter();
    KTEST_CHECK(t.mm != NULL && prepare(dirty));
    KTEST_CHECK(ktest_threads_start(&t, 1));
    use_lists(true, false);
    KTEST_CHECK(count_request(&c, PAGES));
    ktest_threads_join(&t);
    KTEST_CHECK(c.at.unmap_ptes == PAGES);
    KTEST_CHECK(c.at.batch_flush == flushes);
    KTEST_CHECK(c.at.remote_flush == flushes);
    KTEST_CHECK(c.at.remote_flush_received == flushes * 3);
    KTEST_CHECK(ktest_check(TEST_VA, PAGES, 5));
    ktest_leave();
    return NULL;
}

const char *test_lists_ipi(void)
{
    struct mm_like saved = mm_like;
    const char *why;

    if (bootargs.tlb != BOOTARG_TLB_IPI || !batched() || !saved.mglru_lists) {
        KTEST_SKIP("not tlb=ipi flush=batched lists=mglru");
    }
    if (cpu_count < 4) {
        KTEST_SKIP("fewer than 4 CPUs");
    }
    why = check_ipis(true, PAGES);
    if (why == NULL) {
        why = check_ipis(false, 48);
    }
    mm_like = saved;
    return why;
}

const char *test_lists_classic(void)
{
    struct ktest_counts c;

    if (mm_like.mglru_lists) {
        KTEST_SKIP("lists=mglru");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(prepare(false));
    ktest_counts_start(&c);
    KTEST_CHECK(vmscan_request(memcg_root(), PAGES) == 0);
    ktest_counts_stop(&c);
    /* Each page is met once while it looks used, and again to go. */
    KTEST_CHECK(c.at.unmap_ptes == PAGES && c.at.pgsteal_direct == PAGES);
    KTEST_CHECK(c.at.pgscan_direct >= 2 * PAGES);
    KTEST_CHECK(c.at.pageout_calls >= 2 * PAGES / 32);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST &&
        mm_like.referenced_young_tlbi) {
        KTEST_CHECK(c.at.tlbi_va == 2 * PAGES);
        KTEST_CHECK(c.at.dsb_ishst == 2 * PAGES);
        KTEST_CHECK(batched() ? c.at.dsb_ish < PAGES / 16
                              : c.at.dsb_ish == PAGES);
    }
    KTEST_CHECK(ktest_check(TEST_VA, PAGES, 5));
    ktest_leave();
    return NULL;
}

const char *test_request_again(void)
{
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(prepare(true));
    /* There is not so much. */
    KTEST_CHECK(vmscan_request(memcg_root(), 2 * PAGES) == -EAGAIN);
    KTEST_CHECK(lru_size(&memcg_root()->lruvecs[0]) == 0);
    KTEST_CHECK(vmscan_request(memcg_root(), 1) == -EAGAIN);
    KTEST_CHECK(vmscan_request(memcg_root(), 0) == 0);
    KTEST_CHECK(ktest_check(TEST_VA, PAGES, 5));
    ktest_leave();
    return NULL;
}

/* The pages that are used stay, the others go first. */
const char *test_used_stay(void)
{
    uint64_t half = PAGES / 2;
    struct ktest_counts c;

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(prepare(false));
    /* All are old after this; then one half is used again. */
    KTEST_CHECK(vmscan_request(memcg_root(), 32) == 0);
    KTEST_CHECK(ktest_touch(TEST_VA, half));
    KTEST_CHECK(vmscan_request(memcg_root(), half / 2) == 0);
    ktest_counts_start(&c);
    KTEST_CHECK(ktest_touch(TEST_VA, half));
    ktest_counts_stop(&c);
    /* Linux gives no promise; the bigger part must have stayed. */
    KTEST_CHECK(c.at.swap_in < half / 2);
    KTEST_CHECK(ktest_check(TEST_VA, PAGES, 5));
    ktest_leave();
    return NULL;
}

/* One list per run of pages of one node, in one table. */
const char *test_lists_by_node(void)
{
    const uint64_t run = 10 * PAGE_SIZE, other = TEST_VA + BLOCK_SIZE;
    struct ktest_counts c;

    if (nodes_count() < 2) {
        KTEST_SKIP("one node");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 30, false) && ktest_map(other, 1, false));
    for (uint64_t i = 0; i < 3; i++) {
        KTEST_CHECK(put_user_u64(other, 1UL << (i % 2)) == 0);
        KTEST_CHECK(
            sys_mbind(TEST_VA + i * run, run, MPOL_BIND, other, 64, 0) == 0);
    }
    KTEST_CHECK(ktest_fill(TEST_VA, 30, 4));
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, 3 * run, MADV_PAGEOUT) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.pageout_calls == 3 && c.at.unmap_ptes == 30);
    KTEST_CHECK(c.at.pages_demoted == 0);
    KTEST_CHECK(ktest_check(TEST_VA, 30, 4));
    ktest_leave();
    return NULL;
}

/* --- background --- */

/* The nodes in the mask, where there is something to reclaim. */
static bool all_balanced(unsigned nodes)
{
    for (unsigned node = 0; node < nodes_count(); node++) {
        if ((nodes >> node & 1) != 0 &&
            buddy_free(node) < buddy_wmark(node, WMARK_HIGH)) {
            return false;
        }
    }
    return true;
}

/* Takes blocks until no node has more than its low watermark free. */
static void take_all(struct list *out)
{
    for (unsigned order = 8; order > 0;) {
        bool low = true;
        struct page *page;

        for (unsigned node = 0; node < nodes_count(); node++) {
            low &= buddy_free(node) <=
                   buddy_wmark(node, WMARK_LOW) + (1UL << order);
        }
        page = low ? NULL : page_alloc(order, 0);
        if (page == NULL) {
            order--;
            continue;
        }
        page->private = order;
        list_append(out, &page->lru);
    }
}

const char *test_kswapd(void)
{
    struct list taken = LIST_INIT(taken);
    struct ktest_counts c;
    uint64_t deadline = time_now_ns() + KSWAPD_NS;
    struct page *page;
    unsigned nodes = 0;
    bool ok;

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 4096, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 4096, 6));
    for (unsigned node = 0; node < nodes_count(); node++) {
        nodes |= (lru_size(&memcg_root()->lruvecs[node]) >= 2048) << node;
    }
    KTEST_CHECK(nodes != 0);
    ktest_counts_start(&c);
    take_all(&taken);
    /* One more wakes them, if the last did not. */
    for (unsigned i = 0; i < 64; i++) {
        page = page_alloc(2, 0);
        if (page != NULL) {
            page->private = 2;
            list_append(&taken, &page->lru);
        }
    }
    while (!all_balanced(nodes) && time_now_ns() < deadline) {
        sched_sleep_ns(1000 * 1000);
    }
    ok = all_balanced(nodes);
    sched_sleep_ns(20 * 1000 * 1000);
    ktest_counts_stop(&c);
    while (!list_empty(&taken)) {
        page = page_of_node(taken.next);
        list_remove(&page->lru);
        page_free(page, (unsigned)page->private);
    }
    KTEST_CHECK(ok);
    KTEST_CHECK(c.at.kswapd_wakes >= 1 && c.at.allocstall == 0);
    KTEST_CHECK(c.at.pgsteal_kswapd > 0 && c.at.pgsteal_direct == 0);
    /* There is enough: nobody wakes them. */
    ktest_counts_start(&c);
    KTEST_CHECK(ktest_check(TEST_VA, 4096, 6));
    sched_sleep_ns(20 * 1000 * 1000);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.kswapd_wakes == 0 && c.at.pgscan_kswapd == 0);
    ktest_leave();
    return NULL;
}

/* --- no swap left --- */

const char *test_swap_full(void)
{
    struct ktest_counts c;
    uint64_t used = swap_used();

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 64, false));
    KTEST_CHECK(ktest_map(TEST_VA + BLOCK_SIZE, 64, true));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 7));
    KTEST_CHECK(ktest_fill(TEST_VA + BLOCK_SIZE, 64, 8));
    swap_limit(used);
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, 64 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(
        sys_madvise(TEST_VA + BLOCK_SIZE, 64 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(vmscan_request(memcg_root(), 32) == -EAGAIN);
    ktest_counts_stop(&c);
    /* They are not even unmapped. */
    KTEST_CHECK(c.at.swap_out == 0 && c.at.frames_freed == 0);
    KTEST_CHECK(c.at.unmap_ptes == 0 && c.at.tlbi_va == 0);
    KTEST_CHECK(swap_used() == used);
    KTEST_CHECK(ktest_check(TEST_VA, 64, 7));
    KTEST_CHECK(ktest_check(TEST_VA + BLOCK_SIZE, 64, 8));
    /* Room for ten. */
    swap_limit(used + 10);
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, 64 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.frames_freed == 10 && swap_used() == used + 10);
    KTEST_CHECK(ktest_check(TEST_VA, 64, 7));
    swap_limit(swap_total());
    KTEST_CHECK(sys_madvise(TEST_VA, 64 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(ktest_check(TEST_VA, 64, 7));
    ktest_leave();
    KTEST_CHECK(swap_used() == used);
    return NULL;
}

static void unmap_first(unsigned index, void *out_error)
{
    (void)index;
    *(long *)out_error = sys_munmap(TEST_VA, PAGE_SIZE);
}

/*
 * Its last user finds the page locked, and cannot take it out of the swap
 * cache: who unlocks it does.
 */
const char *test_cache_orphan(void)
{
    uint64_t used = swap_used(), entry;
    bool no_memory = false;
    long error = -1;
    struct ktest_threads other = {.fn = unmap_first, .n = 1, .arg = &error};
    struct page *page;

    other.mm = ktest_enter();
    KTEST_CHECK(other.mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 1, false) && ktest_fill(TEST_VA, 1, 9));
    KTEST_CHECK(sys_madvise(TEST_VA, PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(pte_is_swap(ktest_pte(current()->mm, TEST_VA)));
    entry = pte_swap_entry(ktest_pte(current()->mm, TEST_VA));
    page = swap_in_page(entry, &no_memory);
    KTEST_CHECK(page != NULL);
    page_lock(page);
    KTEST_CHECK(ktest_threads_start(&other, 0));
    ktest_threads_join(&other);
    KTEST_CHECK(error == 0);
    KTEST_CHECK(swap_cache_holds(page, entry) && swap_used() == used + 1);
    swap_cache_unlock_put(page);
    KTEST_CHECK(swap_used() == used);
    ktest_leave();
    return NULL;
}
