/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug=mm: assertions of what batched flushing must keep.
 *
 *   I1  a frame is free only after every CPU lost its translations
 *   I2  when a page is written out, no CPU can still write it
 *   I3  a range operation that held a table's lock has flushed, or had flushed,
 *       what anybody deferred in that table
 *   I4  while a table's deferred flush is owed, the pending word says so
 *
 * A broken one is a finding of the machine, then a panic. Off, each hook is one
 * load and one branch.
 */
#ifndef MM_MM_DEBUG_H
#define MM_MM_DEBUG_H

#include "kernel/lib.h"
#include "kernel/types.h"

struct gather;
struct mm;
struct page;
struct tlb_ubc;

/* Codes of the annotation device's FINDING register: base + the invariant. */
#define MM_DEBUG_FINDING 0x110

extern bool mm_debug_on; /* [init] */

void mm_debug_init(void); /* after page_init(); takes memory if it is on */

/* The task's slot is given back; its batch must be flushed. */
void mm_debug_task_gone_slow(struct tlb_ubc *ubc);
void mm_debug_mm_gone_slow(struct mm *mm);
void mm_debug_deferred_slow(struct mm *mm, uint64_t pteval, uint64_t va);
void mm_debug_batch_done_slow(struct tlb_ubc *ubc);
void mm_debug_gathered_slow(struct gather *g, struct page *page, bool writable);
void mm_debug_gather_done_slow(struct gather *g);
uint64_t mm_debug_mm_flush_begin_slow(struct mm *mm);
void mm_debug_mm_flush_end_slow(struct mm *mm, uint64_t ticket);
void mm_debug_drained_slow(struct mm *mm, const void *pte);
void mm_debug_free_slow(struct page *page, unsigned order);
void mm_debug_write_out_slow(struct page *page);

static inline void mm_debug_task_gone(struct tlb_ubc *ubc)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_task_gone_slow(ubc);
    }
}

static inline void mm_debug_mm_gone(struct mm *mm)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_mm_gone_slow(mm);
    }
}

/* The reverse map cleared pteval of va; the flush was queued. PTL held. */
static inline void mm_debug_deferred(struct mm *mm, uint64_t pteval,
                                     uint64_t va)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_deferred_slow(mm, pteval, va);
    }
}

/* All that the current task queued is flushed. */
static inline void mm_debug_batch_done(struct tlb_ubc *ubc)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_batch_done_slow(ubc);
    }
}

/* A gather owes the flush of a translation of page. */
static inline void mm_debug_gathered(struct gather *g, struct page *page,
                                     bool writable)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_gathered_slow(g, page, writable);
    }
}

static inline void mm_debug_gather_done(struct gather *g)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_gather_done_slow(g);
    }
}

/* Around the flush of a whole address space on all CPUs. */
static inline uint64_t mm_debug_mm_flush_begin(struct mm *mm)
{
    return unlikely(mm_debug_on) ? mm_debug_mm_flush_begin_slow(mm) : 0;
}

static inline void mm_debug_mm_flush_end(struct mm *mm, uint64_t ticket)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_mm_flush_end_slow(mm, ticket);
    }
}

/* After flush_tlb_batched_pending(), the lock of pte's table still held. */
static inline void mm_debug_drained(struct mm *mm, const void *pte)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_drained_slow(mm, pte);
    }
}

/* The block is about to become free. */
static inline void mm_debug_free(struct page *page, unsigned order)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_free_slow(page, order);
    }
}

/* The page's contents are about to be read for write-out. */
static inline void mm_debug_write_out(struct page *page)
{
    if (unlikely(mm_debug_on)) {
        mm_debug_write_out_slow(page);
    }
}

#endif
