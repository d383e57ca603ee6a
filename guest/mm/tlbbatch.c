/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Batched unmap flushing: what generic code does between clearing a PTE and
 * the moment no CPU can use it; see tlbbatch.h. Ordering:
 *
 *   reclaimer, PTL held: clear PTE -> queue -> bump pending word -> swap entry
 *   others, same PTL:    read word; it is bumped if the PTE is seen cleared
 *
 * because both happened before the same unlock. For another PTL the word may
 * look old, but then no PTE of that table was cleared under the bump.
 */
#include "mm/tlbbatch.h"

#include "kernel/bootargs.h"
#include "kernel/bug.h"
#include "kernel/task.h"
#include "mm/counters.h"
#include "mm/flush.h"
#include "mm/mm_debug.h"
#include "mm/mm_priv.h"

bool pte_accessible(struct mm *mm, uint64_t pteval)
{
    /*
     * An open gather may have made the PTE PROT_NONE without having flushed:
     * its old, valid translation may still be cached.
     */
    if (atomic_load_explicit(&mm->tlb_flush_pending, memory_order_relaxed) !=
            0 &&
        !bug_is(BUG_numa_hint_migrate_old_entry)) {
        return pte_present(pteval);
    }
    return pte_valid(pteval);
}

/* One more debt of the mm, for all to see. */
static void bump_pending(struct mm *mm)
{
    uint32_t word =
        atomic_load_explicit(&mm->tlb_flush_batched, memory_order_relaxed);

    for (;;) {
        if ((word & TLB_BATCH_PENDING_MASK) > TLB_BATCH_PENDING_LARGE) {
            /* Start again: 1 pending, 0 flushed still says "not flushed". */
            if (atomic_compare_exchange_strong_explicit(
                    &mm->tlb_flush_batched, &word, 1, memory_order_relaxed,
                    memory_order_relaxed)) {
                break;
            }
        } else {
            atomic_fetch_add_explicit(&mm->tlb_flush_batched, 1,
                                      memory_order_relaxed);
            break;
        }
    }
}

static void queue_flush(struct mm *mm, uint64_t pteval, uint64_t start,
                        uint64_t end, bool tell)
{
    struct tlb_ubc *ubc = &current()->tlb_ubc;
    bool writable = pte_dirty(pteval);

    if (!pte_accessible(mm, pteval)) {
        return;
    }
    counter_inc(unmap_accessible);
    flush_batch_add_pending(ubc, mm, start, end);
    ubc->flush_required = true;
    /* Before the word: who sees it bumped may flush and pay the debt. */
    mm_debug_deferred(mm, pteval, start);

    /*
     * Not before the PTE is cleared; the hardware order comes from the queuing
     * above and from the PTL.
     */
    compiler_barrier();
    if (tell) {
        bump_pending(mm);
    }
    if (writable) {
        ubc->writable = true;
    }
}

void set_tlb_ubc_flush_pending(struct mm *mm, uint64_t pteval, uint64_t start,
                               uint64_t end)
{
    queue_flush(mm, pteval, start, end, true);
}

void set_tlb_ubc_flush_untold(struct mm *mm, uint64_t pteval, uint64_t start,
                              uint64_t end)
{
    queue_flush(mm, pteval, start, end, false);
}

bool should_defer_flush(struct mm *mm)
{
    return bootargs.flush == BOOTARG_FLUSH_BATCHED &&
           flush_batch_should_defer(mm);
}

void try_to_unmap_flush(void)
{
    struct tlb_ubc *ubc = &current()->tlb_ubc;

    if (!ubc->flush_required) {
        return;
    }
    counter_inc(batch_flush);
    flush_batch(ubc);
    mm_debug_batch_done(ubc);
    ubc->flush_required = false;
    ubc->writable = false;
}

void try_to_unmap_flush_dirty(void)
{
    if (current()->tlb_ubc.writable) {
        counter_inc(batch_flush_dirty);
        try_to_unmap_flush();
    }
}

void flush_tlb_batched_pending(struct mm *mm)
{
    uint32_t word =
        atomic_load_explicit(&mm->tlb_flush_batched, memory_order_relaxed);
    uint32_t pending = word & TLB_BATCH_PENDING_MASK;
    uint32_t flushed = word >> TLB_BATCH_FLUSHED_SHIFT;

    if (pending == flushed || bootargs.drain == BOOTARG_DRAIN_NONE) {
        return;
    }
    counter_inc(pending_drain);
    flush_batch_drain(mm);
    /*
     * Once, and only from the value read: if somebody queued more meanwhile,
     * the word stays and the next caller flushes again. Ordered after the
     * flush's completion.
     */
    atomic_compare_exchange_strong_explicit(
        &mm->tlb_flush_batched, &word,
        pending | pending << TLB_BATCH_FLUSHED_SHIFT, memory_order_seq_cst,
        memory_order_relaxed);
}
