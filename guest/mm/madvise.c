/* SPDX-License-Identifier: GPL-2.0-or-later */
/* madvise and mincore. */
#include "kernel/annot.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "mm/gather.h"
#include "mm/huge.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/mm_debug.h"
#include "mm/mm_priv.h"
#include "mm/reclaim.h"
#include "mm/shmem.h"
#include "mm/swap.h"
#include "mm/tlbbatch.h"
#include "mm/uaccess.h"

/* Makes a PTE look old; the gather owes the flush. PTL held. */
static void clear_young(struct gather *g, pte_t *p, pte_t pte, uint64_t va)
{
    if (pte & PTE_AF) {
        pte_write(p, pte & ~PTE_AF);
        gather_note(g, va, PAGE_SIZE, 3);
    }
}

/*
 * One leaf table: isolate under the PTL, reclaim after it. One list each. g is
 * NULL unless the young bits go first (mm_like.pageout_young_flush).
 */
static void pageout_block(struct gather *g, struct mm *mm, uint64_t va,
                          uint64_t end)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(mm, va, &ptl);
    struct list pages;

    if (p == NULL) {
        return;
    }
    list_init(&pages);
    spin_lock(ptl);
    flush_tlb_batched_pending(mm);
    mm_debug_drained(mm, p);
    for (; va < end; va += PAGE_SIZE, p++) {
        pte_t pte = pte_read(p);
        struct page *page;

        if (!pte_present(pte) || (pte & PTE_SPECIAL)) {
            continue;
        }
        page = pte_page(pte);
        if (page_mapcount(page) != 1) {
            continue; /* others use it */
        }
        if (g != NULL) {
            clear_young(g, p, pte, va);
        }
        page_clear(page, PG_REFERENCED);
        if (lru_isolate(page)) {
            list_append(&pages, &page->lru);
        }
    }
    spin_unlock(ptl);
    if (!list_empty(&pages)) {
        reclaim_pages(&pages);
    }
}

/*
 * MADV_FREE: may the contents go? Page locked, PTL held. A page that has a copy
 * in swap or was written must be this PTE's alone, and then it forgets both.
 */
static bool forget_contents(struct page *page)
{
    bool ok = page_mapcount(page) == 1;

    if (ok && page_test(page, PG_SWAPCACHE)) {
        ok = swap_count(page->private) == 0;
        if (ok) {
            swap_cache_delete(page);
        }
    }
    if (ok) {
        page_clear(page, PG_DIRTY);
    }
    return ok;
}

/*
 * PTL held. The PTE becomes clean and old, so that the next write sets it
 * dirty again and reclaim can tell; what TLBs hold goes with the gather's
 * flush. Until then a store through a dirty entry is lost, as are all before
 * the call.
 */
static void free_pte(struct gather *g, pte_t *p, uint64_t va)
{
    pte_t pte = pte_read(p);
    struct page *page;

    if (pte_is_swap(pte)) {
        pte_write(p, 0);
        swap_free(pte_swap_entry(pte));
        atomic_fetch_sub_explicit(&g->mm->swapped, 1, memory_order_relaxed);
        return;
    }
    if (!pte_present(pte) || (pte & PTE_SPECIAL)) {
        return;
    }
    page = pte_page(pte);
    if (page_test(page, PG_SWAPCACHE | PG_DIRTY)) {
        bool ok;

        if (!page_trylock(page)) {
            return; /* on its way to swap: leave it */
        }
        ok = forget_contents(page);
        page_unlock(page);
        if (!ok) {
            return;
        }
    }
    if ((pte & PTE_AF) || pte_dirty(pte)) {
        pte = pte_exchange(p, 0);
        pte_write(p, pte_mkclean(pte) & ~PTE_AF);
        gather_note(g, va, PAGE_SIZE, 3);
    }
    lru_mark_lazyfree(page);
}

static void free_block(struct gather *g, uint64_t va, uint64_t end)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(g->mm, va, &ptl);

    if (p == NULL) {
        return;
    }
    spin_lock(ptl);
    flush_tlb_batched_pending(g->mm);
    for (; va < end; va += PAGE_SIZE, p++) {
        free_pte(g, p, va);
    }
    gather_publish();
    spin_unlock(ptl);
}

/*
 * After the gather's flush: from here a write makes these dirty again. Told
 * now, since what was stored through an old entry until then is lost by right.
 */
static void tell_clean(struct mm *mm, uint64_t va, uint64_t end)
{
    while (annot_listens && va < end) {
        uint64_t stop = pt_block_end(va, end);
        struct spinlock *ptl;
        pte_t *p = pt_walk(mm, va, &ptl);

        if (p != NULL) {
            spin_lock(ptl);
            for (; va < stop; va += PAGE_SIZE, p++) {
                pte_t pte = pte_read(p);

                if (pte_present(pte) && !(pte & PTE_SPECIAL) &&
                    !pte_dirty(pte) && page_is_lazyfree(pte_page(pte))) {
                    annot_frame(ANNOT_REG_FRAME_CLEAN,
                                page_to_phys(pte_page(pte)), 0);
                }
            }
            spin_unlock(ptl);
        }
        va = stop;
    }
}

/* Makes the pages look old. */
static void cold_block(struct gather *g, uint64_t va, uint64_t end)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(g->mm, va, &ptl);

    if (p == NULL) {
        return;
    }
    spin_lock(ptl);
    flush_tlb_batched_pending(g->mm);
    mm_debug_drained(g->mm, p);
    for (; va < end; va += PAGE_SIZE, p++) {
        pte_t pte = pte_read(p);

        if (!pte_present(pte) || (pte & PTE_SPECIAL) ||
            page_mapcount(pte_page(pte)) != 1 ||
            !page_test(pte_page(pte), PG_LRU)) {
            continue; /* not ours to age: others use it, or it is being moved */
        }
        clear_young(g, p, pte, va);
        page_clear(pte_page(pte), PG_REFERENCED);
        lru_deactivate(pte_page(pte));
    }
    spin_unlock(ptl);
}

static void advise_blocks(struct vma *vma, uint64_t start, uint64_t end,
                          uint64_t advice)
{
    bool pageout = advice == MADV_PAGEOUT;
    bool young = !pageout || mm_like.pageout_young_flush;
    uint64_t first = start;
    struct gather g;

    if (young) {
        gather_init(&g, vma->mm, false);
    }
    while (start < end) {
        uint64_t stop = pt_block_end(start, end);

        if (pageout && huge_is_shared(vma->mm, start)) {
            /* Nothing to page out: do not split it. */
        } else if (pageout) {
            pageout_block(young ? &g : NULL, vma->mm, start, stop);
        } else if (advice == MADV_FREE) {
            free_block(&g, start, stop);
        } else if (!(block_aligned(start) && block_aligned(stop) &&
                     huge_cold(&g, start))) {
            cold_block(&g, start, stop);
        }
        start = stop;
        preempt_point();
    }
    if (young) {
        gather_finish(&g);
    }
    if (advice == MADV_FREE) {
        tell_clean(vma->mm, first, end);
    }
}

static int advise_populate(struct vma *vma, uint64_t start, uint64_t end,
                           uint64_t advice)
{
    unsigned flags = advice == MADV_POPULATE_WRITE ? MM_FAULT_WRITE : 0;

    for (; start < end; start += PAGE_SIZE) {
        int r = fault_locked(vma->mm, start, flags);

        if (r != 0) {
            return r == -ENOMEM ? r : -EFAULT;
        }
        preempt_point();
    }
    return 0;
}

static int advise_area(struct vma *vma, uint64_t start, uint64_t end,
                       uint64_t advice)
{
    switch (advice) {
    case MADV_PAGEOUT:
    case MADV_COLD:
        advise_blocks(vma, start, end, advice);
        return 0;
    case MADV_FREE:
        if ((vma->flags & VMA_SHARED) || vma->file != NULL) {
            return -EINVAL;
        }
        advise_blocks(vma, start, end, advice);
        return 0;
    case MADV_DONTNEED:
        zap_range_single(vma, start, end);
        return 0;
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
        return advise_populate(vma, start, end, advice);
    default:
        return 0;
    }
}

static int advise_locked(struct mm *mm, uint64_t start, uint64_t end,
                         uint64_t advice)
{
    int result = 0;

    while (start < end) {
        unsigned i = vma_index(mm, start);
        uint64_t stop;
        int r;

        if (i == mm->n_areas || mm->areas[i]->start >= end) {
            return -ENOMEM;
        }
        if (mm->areas[i]->start > start) {
            result = -ENOMEM; /* a hole: go on, but say so */
            start = mm->areas[i]->start;
        }
        stop = mm->areas[i]->end < end ? mm->areas[i]->end : end;
        r = advise_area(mm->areas[i], start, stop, advice);
        if (r != 0) {
            return r;
        }
        start = stop;
    }
    return result;
}

/* Advice that is a flag of the area: mmap_lock is held for writing. */
static int advise_flags(struct mm *mm, uint64_t start, uint64_t end,
                        uint32_t set, uint32_t clear)
{
    int result = 0;

    while (start < end) {
        unsigned i = vma_index(mm, start);
        struct vma *vma = i < mm->n_areas ? mm->areas[i] : NULL;

        if (vma == NULL || vma->start >= end) {
            return -ENOMEM;
        }
        if (vma->start > start) {
            result = -ENOMEM; /* a hole: go on, but say so */
            start = vma->start;
        }
        if ((vma->flags & (set | clear)) != set) {
            if (vma->start < start) {
                vma = vma_split(mm, vma, start);
            }
            if (vma == NULL ||
                (vma->end > end && vma_split(mm, vma, end) == NULL)) {
                return -ENOMEM;
            }
            vma->flags = (vma->flags | set) & ~clear;
        }
        start = vma->end;
        vma_merge(mm, vma_index(mm, vma->start));
    }
    return result;
}

/* The advice's change of flags; false if it is of another kind. */
static bool advice_flags(uint64_t advice, uint32_t *set, uint32_t *clear)
{
    *set = advice == MADV_HUGEPAGE   ? VMA_HUGE
           : advice == MADV_DONTFORK ? VMA_DONTFORK
                                     : 0;
    *clear = advice == MADV_NOHUGEPAGE ? VMA_HUGE
             : advice == MADV_DOFORK   ? VMA_DONTFORK
                                       : 0;
    return (*set | *clear) != 0;
}

static bool advice_known(uint64_t advice)
{
    switch (advice) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
        return true;
    default:
        return false;
    }
}

int64_t sys_madvise(uint64_t addr, uint64_t len, uint64_t advice)
{
    struct mm *mm = current()->mm;
    unsigned op = advice == MADV_PAGEOUT ? ANNOT_OP_MADVISE_PAGEOUT
                                         : ANNOT_OP_MADVISE_OTHER;
    uint32_t set, clear;
    int r;

    if (!advice_known(advice) || len > USER_END ||
        !range_ok(addr, PAGE_ALIGN_UP(len))) {
        return -EINVAL;
    }
    if (len == 0) {
        return 0;
    }
    annot_op_begin(op, addr, addr + PAGE_ALIGN_UP(len),
                   advice == MADV_DONTNEED ? ANNOT_PROMISE_NOACCESS
                   : advice == MADV_FREE   ? ANNOT_PROMISE_NOWRITE
                                           : ANNOT_PROMISE_NONE);
    if (advice_flags(advice, &set, &clear)) {
        mm_write_lock(&mm->mmap_lock);
        r = advise_flags(mm, addr, addr + PAGE_ALIGN_UP(len), set, clear);
        mm_write_unlock(&mm->mmap_lock);
    } else {
        mm_read_lock(&mm->mmap_lock);
        r = advise_locked(mm, addr, addr + PAGE_ALIGN_UP(len), advice);
        mm_read_unlock(&mm->mmap_lock);
    }
    annot_op_end(op);
    return r;
}

/* --- mincore --- */

static uint8_t resident(struct vma *vma, uint64_t va)
{
    unsigned level;
    pte_t pte = pt_lookup(vma->mm, va, &level);

    if (pte_present(pte) || pte_is_migration(pte)) {
        return 1;
    }
    if (vma->file != NULL) {
        return pte == 0 && filemap_has(vma, va);
    }
    return (vma->flags & VMA_SHARED) &&
           shmem_resident(vma->shmem,
                          vma->pgoff + ((va - vma->start) >> PAGE_SHIFT));
}

int64_t sys_mincore(uint64_t addr, uint64_t len, uint64_t vec)
{
    struct mm *mm = current()->mm;
    uint8_t buf[256];
    uint64_t n;

    if ((addr & (PAGE_SIZE - 1)) != 0) {
        return -EINVAL;
    }
    if (len > USER_END || !range_ok(addr, PAGE_ALIGN_UP(len))) {
        return -ENOMEM;
    }
    n = PAGE_ALIGN_UP(len) >> PAGE_SHIFT;
    while (n > 0) {
        unsigned part = n < sizeof(buf) ? (unsigned)n : sizeof(buf);
        bool hole = false;

        mm_read_lock(&mm->mmap_lock);
        for (unsigned i = 0; i < part && !hole; i++) {
            uint64_t va = addr + i * PAGE_SIZE;
            struct vma *vma = vma_find(mm, va);

            hole = vma == NULL;
            buf[i] = hole ? 0 : resident(vma, va);
        }
        mm_read_unlock(&mm->mmap_lock);
        if (hole) {
            return -ENOMEM;
        }
        if (copy_to_user(vec, buf, part) != 0) {
            return -EFAULT;
        }
        addr += part * PAGE_SIZE;
        vec += part;
        n -= part;
        preempt_point();
    }
    return 0;
}
