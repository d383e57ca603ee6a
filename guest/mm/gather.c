/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmu_gather: unhook, invalidate, free, in this order. mm->tlb_flush_pending is
 * raised before the first PTL is taken and lowered after the last flush: who
 * holds a PTL and sees a changed PTE also sees that its flush may be owed.
 */
#include "mm/gather.h"

#include "arch/barrier.h"
#include "kernel/bug.h"
#include "kernel/smp.h"
#include "mm/counters.h"
#include "mm/flush.h"
#include "mm/flush_opts.h"
#include "mm/like.h"
#include "mm/mm_debug.h"
#include "mm/mm_priv.h"
#include "mm/rmap.h"
#include "mm/swap.h"

/* In the low bits of a queued page. */
#define DELAYED 1UL   /* its rmap removal waits for the flush */
#define MORE_NEXT 2UL /* a run: the next entry is how many pages */
#define TAGS 3UL

/* Level of the entries that name tables of pages. */
#define TABLE_ENTRY 2

static void range_reset(struct gather *g)
{
    g->start = UINT64_MAX;
    g->end = 0;
    g->cleared = 0;
    g->freed_tables = false;
}

void gather_init(struct gather *g, struct mm *mm, bool fullmm)
{
    g->mm = mm;
    g->fullmm = fullmm;
    g->concurrent = false;
    g->need_flush_all = false;
    g->elsewhere = false;
    g->delayed = false;
    g->batches = 0;
    g->local.next = NULL;
    g->local.count = 0;
    g->local.max = GATHER_BUNDLE;
    g->active = &g->local;
    list_init(&g->tables);
    g->n_tables = 0;
    range_reset(g);
    atomic_fetch_add_explicit(&mm->tlb_flush_pending, 1, memory_order_relaxed);
}

void gather_note(struct gather *g, uint64_t va, uint64_t size, unsigned level)
{
    if (va < g->start) {
        g->start = va;
    }
    if (va + size > g->end) {
        g->end = va + size;
    }
    g->cleared |= (uint8_t)(1U << level);
}

static struct page **batch_pages(struct gather *g, struct gather_batch *batch)
{
    return batch == &g->local ? g->local_pages : batch->pages;
}

static bool next_batch(struct gather *g)
{
    struct gather_batch *batch = g->active->next;

    /* Delayed removals run under the PTL: keep them few. */
    if (g->delayed && g->active != &g->local) {
        return false;
    }
    if (batch == NULL) {
        struct page *page;

        if (g->batches == GATHER_MAX_BATCHES) {
            return false;
        }
        page = page_alloc(0, 0);
        if (page == NULL) {
            return false;
        }
        g->batches++;
        batch = page_address(page);
        batch->next = NULL;
        batch->count = 0;
        batch->max = GATHER_MAX_BATCH;
        g->active->next = batch;
    }
    g->active = batch;
    return true;
}

/* Full one entry early: a run needs two. */
static bool queue(struct gather *g, uint64_t entry, unsigned n)
{
    struct gather_batch *batch = g->active;
    struct page **pages = batch_pages(g, batch);

    pages[batch->count++] = (struct page *)entry;
    if (entry & MORE_NEXT) {
        pages[batch->count++] = (struct page *)(uint64_t)n;
    }
    return batch->count >= batch->max - 1 && !next_batch(g);
}

bool gather_page(struct gather *g, struct page *page, bool delay_rmap)
{
    mm_debug_gathered(g, page, delay_rmap);
    g->delayed |= delay_rmap;
    return queue(g, (uint64_t)page | (delay_rmap ? DELAYED : 0), 1);
}

bool gather_pages(struct gather *g, struct page *first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        mm_debug_gathered(g, first + i, false);
    }
    return queue(g, (uint64_t)first | MORE_NEXT, n);
}

void gather_flush_tlb(struct gather *g)
{
    unsigned lowest = 3;

    if ((g->cleared == 0 && !g->freed_tables) || g->elsewhere) {
        return;
    }
    while (lowest > 0 && !(g->cleared & (1U << lowest))) {
        lowest--;
    }
    if (g->need_flush_all) {
        counter_inc(gather_flush);
        flush_tlb_mm(g->mm);
    } else if (g->fullmm) {
        /*
         * Nobody runs it any more and its ASID is not given away before a
         * rollover flush; only walks in progress could meet freed tables.
         */
        if (g->freed_tables) {
            counter_inc(gather_flush);
            flush_tlb_mm(g->mm);
        }
    } else {
        struct flush_range range = {
            .start = g->start,
            .end = g->end,
            .stride = 1UL << pt_shift(lowest),
            .last_level = !g->freed_tables,
            .freed_tables = g->freed_tables,
        };

        if (!g->freed_tables && g->cleared == (1U << lowest)) {
            range.level = (uint8_t)lowest;
        }
        if (g->freed_tables && bug_is(BUG_wrong_level)) {
            range.level = TABLE_ENTRY;
            range.last_level = true;
        }
        counter_inc(gather_flush);
        flush_tlb_range(g->mm, &range);
    }
    mm_debug_gather_done(g);
    range_reset(g);
}

void gather_finish_rmap(struct gather *g)
{
    if (!g->delayed) {
        return;
    }
    for (struct gather_batch *b = &g->local; b != NULL; b = b->next) {
        struct page **pages = batch_pages(g, b);

        for (unsigned i = 0; i < b->count; i++) {
            uint64_t entry = (uint64_t)pages[i];

            if (entry & DELAYED) {
                pages[i] = (struct page *)(entry & ~DELAYED);
                rmap_remove(pages[i]);
            }
            i += (entry & MORE_NEXT) != 0; /* a number, whatever its bits */
        }
        if (b == g->active) {
            break;
        }
    }
    g->delayed = false;
}

static void free_run(struct page *page, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++, page++) {
        if (page_mapcount(page) == 0) {
            swap_cache_try_drop(page);
        }
        page_put(page);
    }
    counter_add(frames_freed, n);
}

static void free_pages(struct gather *g)
{
    for (struct gather_batch *b = &g->local; b != NULL; b = b->next) {
        struct page **pages = batch_pages(g, b);

        for (unsigned i = 0; i < b->count; i++) {
            uint64_t entry = (uint64_t)pages[i], n = 1;

            if (entry & MORE_NEXT) {
                n = (uint64_t)pages[++i];
            }
            free_run((struct page *)(entry & ~TAGS), n);
        }
        b->count = 0;
    }
    g->active = &g->local;
}

static void free_table(struct page *page)
{
    page_clear(page, PG_TABLE);
    page_free(page, 0);
}

static void nothing(void *arg)
{
    (void)arg;
}

/*
 * Whoever walks without a lock does so with interrupts masked: when all have
 * taken one, the walks that began before the tables were unlinked are over. No
 * broadcast TLBI asks them.
 */
static void wait_for_walks(void)
{
    if (flush_opts.fast_walk && !bug_is(BUG_walker_not_asked)) {
        smp_call_mask(&cpu_online_mask, nothing, NULL, true);
    }
}

static void free_tables(struct gather *g)
{
    if (!list_empty(&g->tables)) {
        wait_for_walks();
    }
    while (!list_empty(&g->tables)) {
        struct page *page = page_of_node(g->tables.next);

        list_remove(&page->lru);
        free_table(page);
    }
    g->n_tables = 0;
}

void gather_table(struct gather *g, struct page *table, uint64_t va,
                  unsigned level)
{
    gather_note(g, va, PAGE_SIZE, level);
    g->freed_tables = true;
    if (bug_is(BUG_table_free_at_once)) {
        free_table(table);
        return;
    }
    list_append(&g->tables, &table->lru);
    if (++g->n_tables == GATHER_MAX_TABLES) {
        gather_flush_tlb(g);
        free_tables(g);
    }
}

void gather_flush(struct gather *g)
{
    gather_flush_tlb(g);
    free_tables(g);
    free_pages(g);
}

void gather_publish(void)
{
    if (mm_like.fault_drain) {
        dsb_ishst();
    }
}

void gather_forget(struct gather *g)
{
    range_reset(g);
}

void gather_finish(struct gather *g)
{
    struct gather_batch *batch;
    bool nested = atomic_load_explicit(&g->mm->tlb_flush_pending,
                                       memory_order_relaxed) > 1;

    if (nested && bug_is(BUG_nested_gather_forgets_freed_tables)) {
        g->freed_tables = false; /* the pages' entries only */
    } else if (nested && !bug_is(BUG_madv_second_caller_skips_flush)) {
        /*
         * Another gather cleared PTEs that we then found clear, and has not
         * flushed yet: our caller may rely on them being gone.
         */
        counter_inc(gather_nested_full);
        g->need_flush_all = true;
        g->freed_tables = true;
    }
    gather_flush(g);
    batch = g->local.next;
    while (batch != NULL) {
        struct gather_batch *next = batch->next;

        page_free(virt_to_page(batch), 0);
        batch = next;
    }
    /* Ordered by the flush above, not by a barrier here. */
    if (bug_is(BUG_pending_flag_not_a_counter)) {
        atomic_store_explicit(&g->mm->tlb_flush_pending, 0,
                              memory_order_relaxed);
        return;
    }
    atomic_fetch_sub_explicit(&g->mm->tlb_flush_pending, 1,
                              memory_order_relaxed);
}
