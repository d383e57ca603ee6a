/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 2 MiB blocks of private anonymous memory, on request (MADV_HUGEPAGE).
 *
 * A block is a level-2 entry that maps 512 adjacent frames. Each of them is an
 * ordinary page: one reference and one mapcount for each block that maps it, on
 * the LRU, in the reverse map. So a block can be split at any moment, without
 * memory and without touching a page: its leaf table was set aside when it was
 * made (page->lru of the level-2 table). Whoever wants a PTE of a block splits
 * it (pt_walk()); zap, mprotect, mremap, fork, faults and user copies know
 * blocks and leave them whole.
 *
 * A slot changes under the lock of its level-2 table:
 *
 *   empty --fault--> block --split--> invalid --flush, table filled--> table
 *     ^                |
 *     +--zap, flush----+
 *
 * The invalid entry still says "block" to software (pte_is_block()): who meets
 * it waits for the lock. A block never crosses the end of its area.
 */
#ifndef MM_HUGE_H
#define MM_HUGE_H

#include "mm/mm_priv.h"

struct gather;

#define BLOCK_PAGES (BLOCK_SIZE / PAGE_SIZE)
#define BLOCK_ORDER 9

static inline bool block_aligned(uint64_t va)
{
    return (va & (BLOCK_SIZE - 1)) == 0;
}

/* Splits the block of the slot, if it is one. No spinlock but the rmap's. */
void huge_split(struct mm *mm, pte_t *slot, struct spinlock *lock, uint64_t va);
/* Splits the block that va lies in, if there is one. */
void huge_split_at(struct mm *mm, uint64_t va);

/*
 * A fault in an area that may have blocks. True: dealt with, try the access
 * again. False: there is no block (any more), go on with pages.
 */
bool huge_fault(struct mm *mm, struct vma *vma, uint64_t va, unsigned flags);

/*
 * Each does the whole of the block at va, [va, va + BLOCK_SIZE), and is false
 * if there is none.
 */
bool huge_zap(struct gather *g, uint64_t va);
bool huge_protect(struct gather *g, const struct vma *vma, uint64_t va);
bool huge_cold(struct gather *g, uint64_t va);
/* True also if the copy failed: then *out_error says so. */
bool huge_copy(struct mm *mm, struct mm *child, uint64_t va, int *out_error);

/*
 * mremap of the 2 MiB at from, block or leaf table, as one entry, under the
 * object's rmap lock. 1: moved; 0: move PTEs; or a negative error.
 */
int huge_move(struct mm *mm, struct spinlock *rmap, uint64_t from, uint64_t to);

/* All pages of the block at va have another user too. */
bool huge_is_shared(struct mm *mm, uint64_t va);
/*
 * If there is a block at va: true, and sets *out_young if it maps the page and
 * was used. The last page's question clears its access flag.
 */
bool huge_clear_young(struct mm *mm, uint64_t va, const struct page *page,
                      bool *out_young);

#endif
