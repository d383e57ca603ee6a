/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clearing the PTEs of a range: munmap, MADV_DONTNEED, exit. */
#include "kernel/bug.h"
#include "kernel/sched.h"
#include "mm/gather.h"
#include "mm/mm_debug.h"
#include "mm/huge.h"
#include "mm/mm_priv.h"
#include "mm/rmap.h"
#include "mm/swap.h"
#include "mm/tlbbatch.h"

enum zap_result { ZAP_MORE, ZAP_FLUSH_NOW, ZAP_FULL };

/* PTL held, one present PTE. */
static enum zap_result zap_present(struct gather *g, pte_t *p, uint64_t va)
{
    pte_t old = pte_exchange(p, 0);
    struct page *page;
    bool shared_dirty;

    gather_note(g, va, PAGE_SIZE, 3);
    if (old & PTE_SPECIAL) {
        return ZAP_MORE;
    }
    page = pte_page(old);
    atomic_fetch_sub_explicit(&g->mm->rss, 1, memory_order_relaxed);
    shared_dirty = pte_dirty(old) && !page_test(page, PG_ANON);
    if (shared_dirty) {
        page_set(page, PG_DIRTY);
    } else {
        rmap_remove(page);
    }
    if (gather_page(g, page, shared_dirty)) {
        return ZAP_FULL;
    }
    return shared_dirty ? ZAP_FLUSH_NOW : ZAP_MORE;
}

/*
 * One leaf table's part of the range; returns where it stopped. drain: as every
 * hold of a PTL must, first wait for what reclaim has queued under it.
 */
static uint64_t zap_block(struct gather *g, uint64_t va, uint64_t end,
                          bool drain)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(g->mm, va, &ptl);
    bool flush = false, full = false;

    if (p == NULL) {
        return end;
    }
    spin_lock(ptl);
    if (drain) {
        flush_tlb_batched_pending(g->mm);
        mm_debug_drained(g->mm, p);
    }
    for (; va < end && !full; va += PAGE_SIZE, p++) {
        pte_t pte = pte_read(p);

        if (pte_present(pte)) {
            enum zap_result r = zap_present(g, p, va);

            flush |= r != ZAP_MORE;
            full = r == ZAP_FULL;
        } else if (pte_is_swap(pte)) {
            pte_write(p, 0);
            swap_free(pte_swap_entry(pte));
            atomic_fetch_sub_explicit(&g->mm->swapped, 1, memory_order_relaxed);
        } else if (pte_is_migration(pte)) {
            /* The frame is the migration's; it will find one PTE less. */
            pte_write(p, 0);
            atomic_fetch_sub_explicit(&g->mm->rss, 1, memory_order_relaxed);
        }
    }
    if (flush) {
        /* Before the PTL goes: the dirty page must not look clean. */
        gather_flush_tlb(g);
        gather_finish_rmap(g);
    }
    gather_publish();
    spin_unlock(ptl);
    if (flush) {
        gather_flush(g);
    }
    return va;
}

void zap_range(struct gather *g, struct vma *vma, uint64_t start, uint64_t end)
{
    bool drain = true;

    (void)vma;
    while (start < end) {
        uint64_t stop = pt_block_end(start, end);

        if (block_aligned(start) && block_aligned(stop) && huge_zap(g, start)) {
            start = stop;
        }
        while (start < stop) {
            start = zap_block(g, start, stop, drain);
            drain = !bug_is(BUG_pending_drain_then_relock);
            preempt_point();
        }
        if (start < end && bug_is(BUG_lock_dropped_with_flush_owed)) {
            gather_forget(g);
        }
    }
    if (!g->fullmm) {
        gather_flush_tlb(g); /* end of the area */
    }
}

void mm_reap(struct mm *mm, unsigned tasks)
{
    struct gather g;

    mm_read_lock(&mm->mmap_lock);
    if (atomic_load_explicit(&mm->users, memory_order_relaxed) <= tasks) {
        /* Not the whole of it: threads that are to die may still run. */
        gather_init(&g, mm, bug_is(BUG_oom_reaper_fullmm_skip));
        g.concurrent = true;
        for (unsigned i = 0; i < mm->n_areas; i++) {
            struct vma *vma = mm->areas[i];

            if (!(vma->flags & (VMA_SHARED | VMA_SIGPAGE))) {
                zap_range(&g, vma, vma->start, vma->end);
            }
        }
        gather_finish(&g);
    }
    mm_read_unlock(&mm->mmap_lock);
}

void zap_range_single(struct vma *vma, uint64_t start, uint64_t end)
{
    struct gather g;

    gather_init(&g, vma->mm, false);
    g.concurrent = true;
    zap_range(&g, vma, start, end);
    gather_finish(&g);
}
