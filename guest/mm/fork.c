/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fork: the child's areas join the families and objects of the parent's;
 * private pages become read-only on both sides (copy-on-write). Shared memory
 * is not copied: the child faults it in.
 */
#include "kernel/annot.h"
#include "kernel/bug.h"
#include "kernel/sched.h"
#include "mm/flush.h"
#include "mm/huge.h"
#include "mm/mm_priv.h"
#include "mm/rmap.h"
#include "mm/swap.h"

/* Both PTLs held. The entry for the child; the parent's is changed. */
static pte_t copy_pte(struct mm *mm, struct mm *child, pte_t *p)
{
    pte_t pte = pte_read(p);
    struct page *page;

    if (!pte_present(pte)) {
        if (pte_is_swap(pte)) {
            swap_dup(pte_swap_entry(pte));
            atomic_fetch_add_explicit(&child->swapped, 1, memory_order_relaxed);
        } else if (pte_is_migration(pte)) {
            /* Both will read when it has arrived, the next write copies. */
            pte = pte_migration_wrprotect(pte);
            pte_write(p, pte);
            atomic_fetch_add_explicit(&child->rss, 1, memory_order_relaxed);
        }
        return pte;
    }
    (void)mm;
    if (pte & PTE_SPECIAL) {
        return pte;
    }
    page = pte_page(pte);
    page_get(page);
    rmap_add(page);
    atomic_fetch_add_explicit(&child->rss, 1, memory_order_relaxed);
    if (pte & PTE_WRITE) {
        pte = pte_wrprotect(pte);
        pte_write(p, pte);
    }
    return pte;
}

static int copy_block(struct mm *mm, struct mm *child, uint64_t va,
                      uint64_t end)
{
    struct spinlock *src_ptl, *dst_ptl;
    pte_t *src = pt_walk(mm, va, &src_ptl), *dst;

    if (src == NULL) {
        return 0;
    }
    dst = pt_alloc(child, va, &dst_ptl);
    if (dst == NULL) {
        return -ENOMEM;
    }
    spin_lock(src_ptl);
    spin_lock_nested(dst_ptl); /* a new mm: nobody takes it first */
    for (; va < end; va += PAGE_SIZE, src++, dst++) {
        if (pte_read(src) != 0) {
            pte_write(dst, copy_pte(mm, child, src));
        }
    }
    spin_unlock(dst_ptl);
    spin_unlock(src_ptl);
    return 0;
}

static int copy_area(struct mm *mm, struct mm *child, const struct vma *vma)
{
    struct vma *copy = vma_new(child, vma->start, vma->end, vma->flags);
    int r = 0;

    if (copy == NULL) {
        return -ENOMEM;
    }
    copy->pgoff = vma->pgoff;
    vma_copy_object(copy, vma);
    if (!vma_insert(child, copy)) {
        vma_free(copy);
        return -ENOMEM;
    }
    for (uint64_t va = vma->start;
         !(vma->flags & VMA_SHARED) && va < vma->end && r == 0;) {
        uint64_t stop = pt_block_end(va, vma->end);

        if (!(block_aligned(va) && block_aligned(stop) &&
              huge_copy(mm, child, va, &r))) {
            r = copy_block(mm, child, va, stop);
        }
        va = stop;
        preempt_point();
    }
    return r;
}

struct mm *mm_fork(struct mm *mm)
{
    struct mm *child = mm_new();
    bool early = bug_is(BUG_flush_too_early_then_remap);
    int r = 0;

    if (child == NULL) {
        return NULL;
    }
    annot_op_begin(ANNOT_OP_FORK, 0, 0, ANNOT_PROMISE_NONE);
    mm_write_lock(&mm->mmap_lock);
    if (early) {
        flush_tlb_mm(mm);
    }
    child->brk_start = mm->brk_start;
    child->brk = mm->brk;
    for (unsigned i = 0; i < mm->n_areas && r == 0; i++) {
        if (!(mm->areas[i]->flags & VMA_DONTFORK)) {
            r = copy_area(mm, child, mm->areas[i]);
        }
    }
    /* Before the lock goes: nobody may copy a page others still write. */
    if (!early) {
        flush_tlb_mm(mm);
    }
    mm_write_unlock(&mm->mmap_lock);
    annot_op_end(ANNOT_OP_FORK);
    if (r != 0) {
        mm_put(child);
        return NULL;
    }
    return child;
}
