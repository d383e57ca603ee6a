/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmu_gather: collects cleared PTEs, pages and tables of one operation, so that
 * they are unhooked, invalidated and freed in this order with few flushes.
 * Lives on the stack of the thread that changes the address space.
 */
#ifndef MM_GATHER_H
#define MM_GATHER_H

#include "kernel/types.h"
#include "mm/page.h"

struct mm;

#define GATHER_BUNDLE 8
#define GATHER_MAX_BATCH 510
#define GATHER_MAX_BATCHES 19
#define GATHER_MAX_TABLES 509

struct gather_batch {
    struct gather_batch *next;
    uint32_t count, max;
    struct page *pages[]; /* bit 0 set: its rmap removal is delayed */
};

struct gather {
    struct mm *mm;
    uint64_t start, end; /* inverted when empty */
    bool fullmm;         /* the whole address space goes away */
    bool concurrent;     /* mmap_lock is held for reading: faults go on */
    bool need_flush_all; /* another gather was open */
    bool freed_tables;
    bool elsewhere;  /* the caller flushes what is cleared, not the gather */
    bool delayed;    /* some rmap removals wait for the flush */
    uint8_t cleared; /* bit n: an entry of level n was cleared */
    unsigned batches;
    struct gather_batch *active;
    struct list tables; /* page-table pages to free after the flush */
    unsigned n_tables;
    struct gather_batch local;
    struct page *local_pages[GATHER_BUNDLE];
};

void gather_init(struct gather *g, struct mm *mm, bool fullmm);
void gather_finish(struct gather *g);

/* An entry of this level was cleared or changed. */
void gather_note(struct gather *g, uint64_t va, uint64_t size, unsigned level);
/*
 * Queues the page, whose mapping's reference passes on. delay_rmap: a dirty
 * shared page must not look unmapped and clean while a TLB can still write it;
 * gather_finish_rmap() comes after the flush. True: now full.
 */
bool gather_page(struct gather *g, struct page *page, bool delay_rmap);
/* A run of n frames that were mapped as one, no longer in the reverse map. */
bool gather_pages(struct gather *g, struct page *first, unsigned n);
void gather_finish_rmap(struct gather *g);
/* A table that the entry of this level at va referred to, unhooked. */
void gather_table(struct gather *g, struct page *table, uint64_t va,
                  unsigned level);
/* Flushes what was noted; frees nothing. May be called under a PTL. */
void gather_flush_tlb(struct gather *g);
/*
 * Before a PTL goes under which others may find cleared what this gather has
 * not flushed: with fault_drain=yes the stores are made visible to walks here.
 * Linux lets the DSB of whoever found them do that.
 */
void gather_publish(void);
/* What was noted is not flushed any more. For a planted bug only. */
void gather_forget(struct gather *g);
/* Flushes and frees. */
void gather_flush(struct gather *g);

#endif
