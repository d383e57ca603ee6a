/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The batch of unmapped but not yet flushed translations. One struct tlb_ubc
 * lives in every task (zeroed at creation); only its task touches it, it
 * survives preemption and migration, and a nested reclaim adds to it and never
 * clears it but by a real flush.
 */
#ifndef MM_TLBBATCH_H
#define MM_TLBBATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/cpumask.h"

struct mm;

#define TLB_UBC_MMS 8

struct tlb_ubc {
    bool flush_required; /* an accessible PTE was cleared and not flushed */
    bool writable;       /* one of them was dirty: flush before any I/O */
    uint16_t debug_slot; /* mm_debug.c; 0: none yet */
    bool in_reclaim;     /* this task is reclaiming: no nested reclaim */
    struct {
        struct cpumask cpumask; /* CPUs that may hold the entries (IPI) */
        bool unmapped_pages;
        /*
         * With filter=stale, whose entries they are. Compared, never followed:
         * an mm that was freed and made again costs a needless SGI at most.
         */
        bool mms_overflow; /* more than fit: anybody's */
        uint8_t mms_count;
        const struct mm *mms[TLB_UBC_MMS];
    } arch;
};

/* --- the pending word: bits 0..14 pending, 16..30 flushed generation --- */
#define TLB_BATCH_FLUSHED_SHIFT 16
#define TLB_BATCH_PENDING_MASK 0x7fffu
#define TLB_BATCH_PENDING_LARGE (TLB_BATCH_PENDING_MASK / 2)

/* Could a TLB hold a translation made from this PTE? PTL held. */
bool pte_accessible(struct mm *mm, uint64_t pteval);
/* The caller holds the PTL of the PTE whose old value is pteval. */
void set_tlb_ubc_flush_pending(struct mm *mm, uint64_t pteval, uint64_t start,
                               uint64_t end);
/* The same, but no other task knows of the debt. For a planted bug only. */
void set_tlb_ubc_flush_untold(struct mm *mm, uint64_t pteval, uint64_t start,
                              uint64_t end);
bool should_defer_flush(struct mm *mm);
/* Flushes what this task queued, if anything. */
void try_to_unmap_flush(void);
/* The same, only if something dirty was queued: call before write-out. */
void try_to_unmap_flush_dirty(void);
/* The caller holds the PTL of the range that it is about to modify. */
void flush_tlb_batched_pending(struct mm *mm);

#endif
