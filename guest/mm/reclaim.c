/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shrink_page_list: the order of its steps is the subject of this kernel. A
 * dirty translation is flushed before its page is written (no write during
 * I/O); every translation is flushed before its frame is freed, at the latest
 * when 31 frames wait.
 */
#include "mm/reclaim.h"

#include "kernel/annot.h"
#include "kernel/bug.h"
#include "kernel/sched.h"
#include "mm/counters.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/migrate.h"
#include "mm/node.h"
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

enum verdict { PAGE_FREED, PAGE_KEEP, PAGE_ACTIVATE, PAGE_DEMOTE };

_Atomic bool reclaim_demotion_enabled;

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
    annot_frame(ANNOT_REG_FRAME_DROP, page_to_phys(page), 0);
    counter_inc(lazyfree_freed);
    return true;
}

/* Must the page get a slot of swap before it can go? */
static bool needs_slot(const struct page *page)
{
    return page_test(page, PG_SHMEM) ||
           (page_test(page, PG_ANON) && !page_test(page, PG_SWAPCACHE) &&
            !page_is_lazyfree(page));
}

/* The page is locked. PAGE_FREED: its count is 0 and nobody finds it. */
static enum verdict shrink_page(struct page *page, bool ignore_references,
                                bool demote)
{
    bool young;

    if (!page_test(page, PG_ANON | PG_SHMEM | PG_SWAPCACHE)) {
        return PAGE_KEEP; /* truncated meanwhile */
    }
    if (!demote && needs_slot(page) && !swap_has_room(page->memcg)) {
        return PAGE_ACTIVATE; /* unmapping it would be for nothing */
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
    if (demote) {
        return PAGE_DEMOTE;
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
        annot_frame(ANNOT_REG_FRAME_DROP, page_to_phys(page), 0);
        return PAGE_FREED;
    }
    return PAGE_KEEP;
}

/* Cold pages of a node that has a slower one behind it. */
static int demotion_target(unsigned node, const struct scan_control *sc)
{
    if (sc->no_demotion || !atomic_load_explicit(&reclaim_demotion_enabled,
                                                 memory_order_relaxed)) {
        return -1;
    }
    return node_demotion_target(node);
}

struct shrink {
    struct scan_control *sc;
    struct free_batch batch;
    bool demote;         /* pages may go to demoted instead */
    struct list demoted; /* isolated, still mapped */
    struct list kept[2]; /* isolated; [1]: to be active */
};

/* One isolated page; it is freed, or on one of the lists. */
static void shrink_one(struct shrink *s, struct page *page)
{
    enum verdict verdict = PAGE_KEEP;

    if (page_trylock(page)) {
        verdict = shrink_page(page, s->sc->ignore_references, s->demote);
        page_unlock(page);
        if (verdict == PAGE_FREED) {
            s->sc->reclaimed++;
            list_append(&s->batch.pages, &page->lru);
            if (++s->batch.n == mm_like.free_batch) {
                free_batch_flush(&s->batch, true);
            }
            return;
        }
        if (verdict == PAGE_DEMOTE) {
            list_append(&s->demoted, &page->lru);
            return;
        }
    }
    list_append(&s->kept[verdict == PAGE_ACTIVATE], &page->lru);
}

/*
 * After the flush: a page that was unmapped but not freed may be freed by
 * anybody as soon as it is on the LRU, or when our reference goes.
 */
static void put_back(struct shrink *s)
{
    for (unsigned active = 0; active < ARRAY_SIZE(s->kept); active++) {
        while (!list_empty(&s->kept[active])) {
            struct page *page = page_of_node(s->kept[active].next);

            list_remove(&page->lru);
            /* Nobody may need it any more: who let go found it locked. */
            swap_cache_try_drop(page);
            lru_putback(page, active != 0);
        }
    }
}

static void shrink_all(struct shrink *s, struct list *pages)
{
    while (!list_empty(pages)) {
        struct page *page = page_of_node(pages->next);

        list_remove(&page->lru);
        preempt_point();
        shrink_one(s, page);
    }
}

void reclaim_list(struct list *pages, unsigned node, struct scan_control *sc)
{
    struct shrink s = {.sc = sc, .batch = {.n = 0}};
    bool nested = current()->tlb_ubc.in_reclaim;
    int target = demotion_target(node, sc);

    list_init(&s.batch.pages);
    list_init(&s.demoted);
    list_init(&s.kept[0]);
    list_init(&s.kept[1]);
    s.demote = target >= 0;
    current()->tlb_ubc.in_reclaim = true;
    counter_inc(pageout_calls);
    shrink_all(&s, pages);
    if (!list_empty(&s.demoted)) {
        sc->reclaimed += migrate_demote(&s.demoted, (unsigned)target);
        /* The slower node is full: then to swap, if there is need. */
        s.demote = false;
        if (!sc->proactive) {
            shrink_all(&s, &s.demoted);
        } else {
            migrate_putback(&s.demoted);
        }
    }
    free_batch_flush(&s.batch, false);
    put_back(&s);
    current()->tlb_ubc.in_reclaim = nested;
}

unsigned reclaim_pages(struct list *pages)
{
    struct scan_control sc = {.ignore_references = true, .no_demotion = true};

    while (!list_empty(pages)) {
        struct list run = LIST_INIT(run);
        unsigned node = page_of_node(pages->next)->node;

        while (!list_empty(pages) && page_of_node(pages->next)->node == node) {
            struct list *first = pages->next;

            list_remove(first);
            list_append(&run, first);
        }
        reclaim_list(&run, node, &sc);
    }
    return sc.reclaimed;
}
