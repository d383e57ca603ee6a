/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mprotect: change the PTEs under their PTL, flush the range once. */
#include "kernel/annot.h"
#include "kernel/bug.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "mm/gather.h"
#include "mm/huge.h"
#include "mm/mm_debug.h"
#include "mm/mm_priv.h"
#include "mm/tlbbatch.h"

#define PROT_MASK (PROT_READ | PROT_WRITE | PROT_EXEC)

/* The PTE with the area's new protection. */
static pte_t change_pte(const struct vma *vma, pte_t old)
{
    pte_t new = vma_pte(vma) | (old & (PTE_ADDR_MASK | PTE_SPECIAL));

    /* A private page that was ours alone still is. */
    if ((old & PTE_WRITE) && (vma->flags & PROT_WRITE)) {
        new |= PTE_WRITE;
    }
    if (!(old & PTE_AF)) {
        new &= ~PTE_AF;
    }
    if (!(old & PTE_SPECIAL) && (vma->flags & PROT_EXEC) &&
        !page_test(pte_page(old), PG_ICACHE)) {
        fault_sync_icache(pte_page(old));
    }
    return pte_dirty(old) ? pte_mkdirty(new) : new;
}

/* What a pass over the PTEs does. */
struct change {
    struct vma *vma;
    bool hints;       /* makes NUMA hints; else what the area allows */
    int skip_node;    /* hints: whose pages need none */
    uint64_t updates; /* PTEs changed */
};

/* Would a hint on this PTE tell anything worth a fault? */
static bool wants_hint(const struct change *c, pte_t pte)
{
    const struct page *page = pte_page(pte);

    if (!pte_valid(pte) || (pte & PTE_SPECIAL)) {
        return false;
    }
    /* Pages shared by copy-on-write have users on either node. */
    return ((c->vma->flags & VMA_SHARED) || page_mapcount(page) == 1) &&
           page->node != c->skip_node;
}

static void change_block(struct gather *g, struct change *c, uint64_t va,
                         uint64_t end)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(g->mm, va, &ptl);

    if (p == NULL) {
        return;
    }
    spin_lock(ptl);
    if (!bug_is(BUG_reclaim_batch_vs_mprotect)) {
        flush_tlb_batched_pending(g->mm);
        mm_debug_drained(g->mm, p);
    }
    for (; va < end; va += PAGE_SIZE, p++) {
        pte_t old = pte_read(p);

        if (c->hints) {
            if (wants_hint(c, old)) {
                pte_write(p, pte_make_hint(old));
                gather_note(g, va, PAGE_SIZE, 3);
                c->updates++;
            }
        } else if (pte_present(old)) {
            pte_exchange(p, 0);
            pte_write(p, change_pte(c->vma, old));
            gather_note(g, va, PAGE_SIZE, 3);
            c->updates++;
        } else if (pte_is_migration(old)) {
            /* Its flush is the migration's; it becomes what the area allows. */
            pte_write(p, pte_migration_wrprotect(old));
        }
    }
    gather_publish();
    spin_unlock(ptl);
}

/* False if it must be done by PTEs. Hints are not worth splitting a block. */
static bool change_whole(struct gather *g, struct change *c, uint64_t start,
                         uint64_t end)
{
    unsigned level;

    if (c->hints) {
        return pt_lookup(g->mm, start, &level) != 0 && level == 2;
    }
    return block_aligned(start) && block_aligned(end) &&
           huge_protect(g, c->vma, start);
}

static void change_range(struct change *c, uint64_t start, uint64_t end)
{
    struct gather g;

    gather_init(&g, c->vma->mm, false);
    while (start < end) {
        uint64_t stop = pt_block_end(start, end);

        if (!change_whole(&g, c, start, stop)) {
            change_block(&g, c, start, stop);
        }
        start = stop;
        preempt_point();
    }
    gather_finish(&g);
}

uint64_t protect_hints(struct vma *vma, uint64_t start, uint64_t end,
                       int skip_node)
{
    struct change c = {.vma = vma, .hints = true, .skip_node = skip_node};

    change_range(&c, start, end);
    return c.updates;
}

/* One area's part. Returns 0 or a negative error. */
static int protect_area(struct mm *mm, struct vma *vma, uint64_t start,
                        uint64_t end, uint32_t prot)
{
    uint32_t flags = (vma->flags & ~(uint32_t)PROT_MASK) | prot;

    if (flags == vma->flags) {
        return 0;
    }
    if (vma->start < start) {
        vma = vma_split(mm, vma, start);
        if (vma == NULL) {
            return -ENOMEM;
        }
    }
    if (vma->end > end && vma_split(mm, vma, end) == NULL) {
        return -ENOMEM;
    }
    vma->flags = flags;
    change_range(&(struct change){.vma = vma}, vma->start, vma->end);
    return 0;
}

static int protect_locked(struct mm *mm, uint64_t start, uint64_t end,
                          uint32_t prot)
{
    uint64_t va = start;
    int r = 0;

    while (va < end && r == 0) {
        struct vma *vma = vma_find(mm, va);
        uint64_t stop;

        if (vma == NULL) {
            return -ENOMEM;
        }
        stop = vma->end < end ? vma->end : end;
        r = protect_area(mm, vma, va, stop, prot);
        vma_merge(mm, vma_index(mm, va));
        va = stop;
    }
    return r;
}

int64_t sys_mprotect(uint64_t addr, uint64_t len, uint64_t prot)
{
    struct mm *mm = current()->mm;
    int r;

    if (len > USER_END || !range_ok(addr, PAGE_ALIGN_UP(len)) ||
        (prot & ~(uint64_t)PROT_MASK) != 0) {
        return -EINVAL;
    }
    if (len == 0) {
        return 0;
    }
    annot_op_begin(ANNOT_OP_MPROTECT, addr, addr + PAGE_ALIGN_UP(len),
                   prot & PROT_WRITE  ? ANNOT_PROMISE_NONE
                   : prot & PROT_READ ? ANNOT_PROMISE_NOWRITE
                                      : ANNOT_PROMISE_NOACCESS);
    mm_write_lock(&mm->mmap_lock);
    r = protect_locked(mm, addr, addr + PAGE_ALIGN_UP(len), (uint32_t)prot);
    mm_write_unlock(&mm->mmap_lock);
    annot_op_end(ANNOT_OP_MPROTECT);
    return r;
}
