/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * migrate_pages: every page of a batch is unmapped, then one flush is waited
 * for, then every page is copied. So no CPU can write a page that is being
 * copied, and the price is one wait for up to 512 pages.
 *
 *   page          PTEs                who faults
 *   ------------  ------------------  -----------------------------------
 *   locked        present             goes on
 *   unmapped      migration entries   waits for the page's lock
 *   (flush)
 *   moved         migration entries   waits; the copy is made
 *   done          present, new frame  goes on; the old frame is free
 *
 * Between unmapping and moving, page->private of the target keeps the pin of
 * the reverse map; the two lists of a batch run in parallel.
 *
 * Nobody can get at an unmapped, locked page but through the index of shared
 * memory or the swap cache, and both are changed under their locks and only if
 * nobody has a reference: whoever looks afterwards finds the target, locked.
 */
#include "mm/migrate.h"

#include "kernel/annot.h"
#include "kernel/bug.h"
#include "kernel/errno.h"
#include "kernel/panic.h"
#include "kernel/sched.h"
#include "mm/counters.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/mm_debug.h"
#include "mm/memcg.h"
#include "mm/page.h"
#include "mm/rmap.h"
#include "mm/shmem.h"
#include "mm/swap.h"
#include "mm/tlbbatch.h"

/* How often a batch goes through what somebody else was busy with. */
#define PASSES 10U
#define PASSES_SYNC_FIRST 3U /* all of them, asynchronously; then ... */
#define PASSES_SYNC_REST (PASSES - PASSES_SYNC_FIRST)

/* What a page carries with it. */
#define PG_IDENTITY                                                            \
    (PG_DIRTY | PG_UPTODATE | PG_ANON | PG_SWAPBACKED | PG_ACTIVE |            \
     PG_REFERENCED)

enum step {
    STEP_DONE,      /* or nothing to do: it is gone */
    STEP_UNMAPPED,  /* both locked, the target has the pin */
    STEP_AGAIN,     /* somebody is at it */
    STEP_NO_MEMORY, /* nothing free on the node */
};

struct migration {
    unsigned node;
    enum migrate_mode mode;
    bool defer;           /* flushes may wait for the end of the batch */
    struct list unmapped; /* page->lru */
    struct list targets;  /* their new frames, in the same order */
    struct list left;     /* failed */
    unsigned passes;
};

/* Not at the price of reclaim: its victim would be a page worth more. */
static struct page *target_new(unsigned node)
{
    return page_alloc_node(node, 0, PAGE_ALLOC_THISNODE);
}

static void target_drop(struct page *to)
{
    to->private = 0;
    page_unlock(to);
    page_free(to, 0);
}

/* The page is locked and mapped again as it was. */
static void undo_page(struct page *page, struct page *to)
{
    rmap_remove_migration(to->private, page, page);
    page_unlock(page);
    target_drop(to);
}

/* The last reference is ours: its users went while it was isolated. */
static bool is_gone(struct page *page)
{
    return atomic_load_explicit(&page->count, memory_order_acquire) == 1 &&
           page_mapcount(page) == 0;
}

static enum step unmap_page(const struct migration *m, struct page *page,
                            struct page **out_to)
{
    struct page *to;

    if (is_gone(page)) {
        return STEP_DONE;
    }
    to = target_new(m->node);
    if (to == NULL) {
        return STEP_NO_MEMORY;
    }
    if (!page_trylock(page)) {
        if (m->mode == MIGRATE_ASYNC) {
            page_free(to, 0);
            return STEP_AGAIN;
        }
        page_lock(page); /* the only one we hold */
    }
    (void)page_trylock(to);
    if (page_test(page, PG_ANON | PG_SHMEM | PG_SWAPCACHE) &&
        rmap_try_to_migrate(page, m->defer, &to->private)) {
        *out_to = to;
        return STEP_UNMAPPED;
    }
    undo_page(page, to);
    return STEP_AGAIN;
}

/* The target takes the page's place wherever it is known by name. */
static bool take_place(struct page *page, struct page *to)
{
    to->mapping = page->mapping;
    to->index = page->index;
    page_set(to, atomic_load_explicit(&page->flags, memory_order_relaxed) &
                     PG_IDENTITY);
    if (page_test(page, PG_SHMEM)) {
        return shmem_replace_page(page, to);
    }
    if (page_test(page, PG_SWAPCACHE)) {
        return swap_cache_replace(page, to);
    }
    /* Unmapped, isolated, in no cache: only who had it before may know it. */
    return atomic_load_explicit(&page->count, memory_order_acquire) == 1;
}

static enum step move_page(struct page *page, struct page *to)
{
    uint64_t pin = to->private;

    to->private = 0;
    if (!take_place(page, to)) {
        page_clear(to, PG_IDENTITY);
        to->mapping = NULL;
        to->private = pin;
        return STEP_AGAIN;
    }
    memcg_move_charge(page, to);
    mm_debug_write_out(page);
    annot_frame(ANNOT_REG_COPY_BEGIN, page_to_phys(page), 0);
    memcpy(page_address(to), page_address(page), PAGE_SIZE);
    rmap_remove_migration(pin, page, to);
    page_unlock(to);
    /* Nobody may need it any more: who let go last found it locked. */
    swap_cache_try_drop(to);
    lru_putback(to, page_test(page, PG_ACTIVE));
    page->mapping = NULL;
    page_unlock(page);
    page_put(page); /* the isolation's: the last */
    counter_inc(frames_freed);
    counter_inc(migrate_success);
    return STEP_DONE;
}

/* False: out of memory. What must be tried again stays in pages. */
static bool unmap_pass(struct migration *m, struct list *pages)
{
    struct list *node, *next;

    list_for_each_safe(node, next, pages)
    {
        struct page *page = page_of_node(node), *to = NULL;

        switch (unmap_page(m, page, &to)) {
        case STEP_DONE:
            list_remove(&page->lru);
            lru_putback(page, false);
            break;
        case STEP_UNMAPPED:
            list_remove(&page->lru);
            list_append(&m->unmapped, &page->lru);
            list_append(&m->targets, &to->lru);
            break;
        case STEP_AGAIN:
            break;
        case STEP_NO_MEMORY:
            return false;
        }
        preempt_point();
    }
    return true;
}

/* Moves what is unmapped and not in use. */
static void move_pass(struct migration *m)
{
    struct list *node = m->unmapped.next, *to_node = m->targets.next;

    while (node != &m->unmapped) {
        struct page *page = page_of_node(node), *to = page_of_node(to_node);

        node = node->next;
        to_node = to_node->next;
        list_remove(&page->lru);
        list_remove(&to->lru);
        if (move_page(page, to) == STEP_AGAIN) {
            /* Back to where it was. */
            list_append(node, &page->lru);
            list_append(to_node, &to->lru);
        }
        preempt_point();
    }
}

static void list_take_all(struct list *to, struct list *from)
{
    while (!list_empty(from)) {
        struct list *node = from->next;

        list_remove(node);
        list_append(to, node);
    }
}

/* Empties pages; what failed goes to m->left. 0 or -ENOMEM. */
static int migrate_batch(struct migration *m, struct list *pages)
{
    bool memory = true;

    for (unsigned i = 0; i < m->passes && memory && !list_empty(pages); i++) {
        memory = unmap_pass(m, pages);
    }
    if (!bug_is(BUG_migrate_before_flush)) {
        try_to_unmap_flush();
    }
    for (unsigned i = 0; i < m->passes && !list_empty(&m->unmapped); i++) {
        move_pass(m);
    }
    try_to_unmap_flush(); /* done: for the bug only */
    while (!list_empty(&m->unmapped)) {
        struct page *page = page_of_node(m->unmapped.next);
        struct page *to = page_of_node(m->targets.next);

        list_remove(&page->lru);
        list_remove(&to->lru);
        undo_page(page, to);
        list_append(&m->left, &page->lru);
    }
    list_take_all(&m->left, pages);
    return memory ? 0 : -ENOMEM;
}

/* Each page by itself, with a flush of its own; empties pages. */
static int migrate_singly(struct migration *m, struct list *pages,
                          unsigned passes)
{
    int r = 0;

    m->defer = false;
    m->passes = 1;
    for (unsigned i = 0; i < passes && r == 0 && !list_empty(pages); i++) {
        while (r == 0 && !list_empty(pages)) {
            struct list one;
            struct list *node = pages->next;

            list_init(&one);
            list_remove(node);
            list_append(&one, node);
            r = migrate_batch(m, &one);
        }
        if (r == 0 && i + 1 < passes) {
            list_take_all(pages, &m->left);
        }
    }
    list_take_all(&m->left, pages);
    return r;
}

/* Up to MIGRATE_BATCH pages; what failed goes to left. */
static int migrate_some(struct list *pages, struct list *left, unsigned node,
                        enum migrate_mode mode)
{
    struct migration m = {.node = node, .mode = mode};
    int r;

    list_init(&m.unmapped);
    list_init(&m.targets);
    list_init(&m.left);
    if (!mm_like.migrate_batched) {
        r = migrate_singly(&m, pages, PASSES);
    } else {
        m.mode = MIGRATE_ASYNC;
        m.defer = true;
        m.passes = mode == MIGRATE_ASYNC ? PASSES : PASSES_SYNC_FIRST;
        r = migrate_batch(&m, pages);
        if (mode != MIGRATE_ASYNC && r == 0) {
            m.mode = mode;
            list_take_all(pages, &m.left);
            r = migrate_singly(&m, pages, PASSES_SYNC_REST);
        }
    }
    list_take_all(left, &m.left);
    return r;
}

int migrate_pages(struct list *pages, unsigned node, enum migrate_mode mode)
{
    struct list some, left;
    int n_left = 0, r = 0;

    list_init(&left);
    while (r == 0 && !list_empty(pages)) {
        list_init(&some);
        for (unsigned n = 0; n < MIGRATE_BATCH && !list_empty(pages); n++) {
            struct list *first = pages->next;

            list_remove(first);
            list_append(&some, first);
        }
        r = migrate_some(&some, &left, node, mode);
    }
    list_take_all(pages, &left);
    for (struct list *at = pages->next; at != pages; at = at->next) {
        n_left++;
    }
    counter_add(migrate_fail, (uint64_t)n_left);
    return r != 0 ? r : n_left;
}

void migrate_putback(struct list *pages)
{
    while (!list_empty(pages)) {
        struct page *page = page_of_node(pages->next);

        list_remove(&page->lru);
        /* Who let go last found it locked. */
        swap_cache_try_drop(page);
        lru_putback(page, page_test(page, PG_ACTIVE));
    }
}

unsigned migrate_demote(struct list *pages, unsigned to_node)
{
    uint64_t before = 0, left = 0;

    for (struct list *at = pages->next; at != pages; at = at->next) {
        before++;
    }
    (void)migrate_pages(pages, to_node, MIGRATE_ASYNC);
    for (struct list *at = pages->next; at != pages; at = at->next) {
        left++;
    }
    counter_add(pages_demoted, before - left);
    return (unsigned)(before - left);
}
