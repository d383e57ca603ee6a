/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shrink_page_list: the order of its steps is the subject of this kernel. A
 * dirty translation is flushed before its page is written (no write during
 * I/O); every translation is flushed before its frame is freed, at the latest
 * when 31 frames wait.
 */
#include "mm/reclaim.h"

#include "kernel/bug.h"
#include "kernel/sched.h"
#include "mm/counters.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/page.h"
#include "mm/rmap.h"
#include "mm/shmem.h"
#include "mm/swap.h"
#include "mm/tlbbatch.h"

/* Frames that nobody finds any more and that wait for their flush. */
struct free_batch {
    unsigned n;
    struct list pages;
};

enum verdict { PAGE_FREED, PAGE_KEEP, PAGE_ACTIVATE };

static void free_batch_pages(struct free_batch *batch)
{
    while (!list_empty(&batch->pages)) {
        struct page *page = page_of_node(batch->pages.next);

        list_remove(&page->lru);
        page_clear(page, PG_ACTIVE);
        page_free_shared(page);
    }
    counter_add(frames_freed, batch->n);
    batch->n = 0;
}

static void free_batch_flush(struct free_batch *batch, bool full)
{
    if (full && current()->tlb_ubc.flush_required) {
        counter_inc(batch_flush_31);
    }
    if (bug_is(BUG_free_before_flush)) {
        free_batch_pages(batch); /* somebody may still use them */
    }
    try_to_unmap_flush();
    free_batch_pages(batch);
}

/* Writes a dirty, unmapped page to swap. */
static bool pageout(struct page *page)
{
    /* Ours, and the swap cache's or the index's: anybody else uses it. */
    if (atomic_load_explicit(&page->count, memory_order_acquire) != 2) {
        return false;
    }
    page_clear(page, PG_DIRTY);
    if (page_test(page, PG_SHMEM) ? shmem_writepage(page) : swap_write(page)) {
        return true;
    }
    page_set(page, PG_DIRTY);
    return false;
}

/* An unmapped, clean MADV_FREE page: nobody else may hold it. */
static bool discard(struct page *page)
{
    uint32_t expected = 1;

    if (!atomic_compare_exchange_strong_explicit(&page->count, &expected, 0,
                                                 memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return false;
    }
    page->mapping = NULL;
    counter_inc(lazyfree_freed);
    return true;
}

/* The page is locked. PAGE_FREED: its count is 0 and nobody finds it. */
static enum verdict shrink_page(struct page *page, bool ignore_references)
{
    bool young;

    if (!page_test(page, PG_ANON | PG_SHMEM | PG_SWAPCACHE)) {
        return PAGE_KEEP; /* truncated meanwhile */
    }
    if (!ignore_references) {
        young = rmap_test_and_clear_young(page);
        if (page_test_and_clear(page, PG_REFERENCED) && young) {
            return PAGE_ACTIVATE;
        }
        if (young) {
            page_set(page, PG_REFERENCED);
            return PAGE_KEEP;
        }
    }
    if (page_test(page, PG_ANON) && !page_test(page, PG_SWAPCACHE) &&
        !page_is_lazyfree(page)) {
        if (page_mapcount(page) == 0) {
            return PAGE_KEEP; /* its last mapping just went */
        }
        if (!swap_cache_add(page)) {
            return PAGE_ACTIVATE;
        }
        page_set(page, PG_DIRTY);
    }
    if (page_mapcount(page) != 0 && !rmap_try_to_unmap(page)) {
        return PAGE_ACTIVATE;
    }
    if (page_is_lazyfree(page)) {
        return discard(page) ? PAGE_FREED : PAGE_KEEP;
    }
    if (page_test(page, PG_DIRTY)) {
        if (!bug_is(BUG_io_before_dirty_flush)) {
            try_to_unmap_flush_dirty();
        }
        if (!pageout(page)) {
            return PAGE_ACTIVATE;
        }
    }
    if (page_test(page, PG_SWAPCACHE) && swap_cache_remove_last(page)) {
        page->mapping = NULL;
        return PAGE_FREED;
    }
    return PAGE_KEEP;
}

unsigned reclaim_pages(struct list *pages, bool ignore_references)
{
    struct free_batch batch = {.n = 0, .pages = LIST_INIT(batch.pages)};
    unsigned freed = 0;
    bool nested = current()->tlb_ubc.in_reclaim;

    current()->tlb_ubc.in_reclaim = true;
    counter_inc(pageout_calls);
    while (!list_empty(pages)) {
        struct page *page = page_of_node(pages->next);
        enum verdict verdict = PAGE_KEEP;

        list_remove(&page->lru);
        preempt_point();
        if (page_trylock(page)) {
            verdict = shrink_page(page, ignore_references);
            if (verdict == PAGE_FREED) {
                page_unlock(page);
                freed++;
                list_append(&batch.pages, &page->lru);
                if (++batch.n == mm_like.free_batch) {
                    free_batch_flush(&batch, true);
                }
                continue;
            }
            page_unlock(page);
        }
        /* Nobody may need it any more: who let go last found it locked. */
        swap_cache_try_drop(page);
        lru_putback(page, verdict == PAGE_ACTIVATE);
    }
    free_batch_flush(&batch, false);
    current()->tlb_ubc.in_reclaim = nested;
    return freed;
}

unsigned reclaim_direct(unsigned n)
{
    struct list pages;
    unsigned freed = 0;

    if (current()->tlb_ubc.in_reclaim) {
        return 0;
    }
    for (unsigned round = 0; round < 16 && freed < n; round++) {
        list_init(&pages);
        if (lru_isolate_cold(&pages, 32) == 0) {
            break;
        }
        freed += reclaim_pages(&pages, round >= 8);
    }
    return freed;
}
