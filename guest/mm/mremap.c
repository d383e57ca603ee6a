/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mremap: shrink, grow in place, or move PTEs to another place. */
#include "kernel/annot.h"
#include "kernel/bug.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "mm/flush.h"
#include "mm/gather.h"
#include "mm/mm_debug.h"
#include "mm/huge.h"
#include "mm/mm_priv.h"
#include "mm/tlbbatch.h"

#define FLAGS ((uint64_t)(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP))

/*
 * One leaf table's part. The rmap lock keeps the reverse map from looking at
 * the new place before and at the old place after an entry moved. late: the
 * caller flushes, for a planted bug.
 */
static int move_block(struct vma *old_vma, uint64_t from, uint64_t to,
                      uint64_t len, bool late)
{
    struct mm *mm = old_vma->mm;
    struct spinlock *old_ptl, *new_ptl;
    struct spinlock *rmap = rmap_lock(
        old_vma->family != NULL ? (void *)old_vma->family : old_vma->shmem);
    struct flush_range range = {
        .start = from,
        .end = from + len,
        .stride = PAGE_SIZE,
        .freed_tables = true, /* as for any caller: lazy CPUs too */
    };
    pte_t *src = pt_walk(mm, from, &old_ptl), *dst;
    bool flush = false;

    if (src == NULL) {
        return 0;
    }
    dst = pt_alloc(mm, to, &new_ptl);
    if (dst == NULL) {
        return -ENOMEM;
    }
    spin_lock(rmap);
    spin_lock(old_ptl);
    if (new_ptl != old_ptl) {
        spin_lock_nested(new_ptl); /* source first; mmap_lock is ours */
    }
    flush_tlb_batched_pending(mm);
    mm_debug_drained(mm, src);
    mm_debug_drained(mm, dst);
    for (uint64_t done = 0; done < len; done += PAGE_SIZE, src++, dst++) {
        pte_t pte = pte_exchange(src, 0);

        if (pte != 0) {
            flush |= pte_present(pte);
            pte_write(dst, pte);
        }
    }
    if (flush && !late) {
        flush_tlb_range(mm, &range);
    }
    if (new_ptl != old_ptl) {
        spin_unlock(new_ptl);
    }
    spin_unlock(old_ptl);
    spin_unlock(rmap);
    return 0;
}

/* Returns how far it came: len, or less when memory ran out. */
static uint64_t move_range(struct vma *old_vma, uint64_t from, uint64_t to,
                           uint64_t len)
{
    struct spinlock *rmap = rmap_lock(
        old_vma->family != NULL ? (void *)old_vma->family : old_vma->shmem);
    bool late = bug_is(BUG_mremap_late_flush);
    uint64_t done = 0;

    while (done < len) {
        int r = 0;
        uint64_t n = pt_block_end(from + done, from + len) - (from + done);
        uint64_t m = pt_block_end(to + done, to + len) - (to + done);

        n = n < m ? n : m;
        if (n == BLOCK_SIZE) {
            r = huge_move(old_vma->mm, rmap, from + done, to + done);
        }
        if (r == 0) {
            r = move_block(old_vma, from + done, to + done, n, late);
        }
        if (r < 0) {
            break;
        }
        done += n;
        preempt_point();
    }
    if (late) {
        flush_tlb_mm(old_vma->mm);
    }
    return done;
}

/* The area is exactly [addr, addr + old_len). */
static int64_t move_area(struct mm *mm, struct vma *vma, uint64_t new_addr,
                         uint64_t new_len, bool unmap)
{
    uint64_t addr = vma->start, old_len = vma->end - vma->start;
    uint64_t len = old_len < new_len ? old_len : new_len;
    struct vma *copy = vma_new(mm, new_addr, new_addr + new_len, vma->flags);
    uint64_t done;

    if (copy == NULL) {
        return -ENOMEM;
    }
    copy->pgoff = vma->pgoff;
    vma_copy_object(copy, vma);
    if (!vma_insert(mm, copy)) {
        vma_free(copy);
        return -ENOMEM;
    }
    done = move_range(vma, addr, new_addr, len);
    if (done < len) {
        /* Back again: the tables of the old place are all there. */
        move_range(copy, new_addr, addr, done);
        unmap_locked(mm, new_addr, new_addr + new_len);
        return -ENOMEM;
    }
    if (unmap) {
        unmap_locked(mm, addr, addr + old_len);
    }
    vma_merge(mm, vma_index(mm, new_addr));
    return (int64_t)new_addr;
}

static bool grow_in_place(struct mm *mm, struct vma *vma, uint64_t end)
{
    unsigned i = vma_index(mm, vma->start) + 1;
    struct spinlock *lock;

    if (end > USER_END || (i < mm->n_areas && mm->areas[i]->start < end)) {
        return false;
    }
    lock = rmap_lock(vma->family != NULL ? (void *)vma->family : vma->shmem);
    spin_lock(lock);
    vma->end = end;
    spin_unlock(lock);
    vma_merge(mm, vma_index(mm, vma->start));
    return true;
}

static int64_t remap_locked(struct mm *mm, uint64_t addr, uint64_t old_len,
                            uint64_t new_len, uint64_t flags, uint64_t new_addr)
{
    struct vma *vma;

    if (flags & MREMAP_FIXED) {
        int r;

        if (!range_ok(new_addr, new_len) || new_addr == 0 ||
            (new_addr < addr + old_len && addr < new_addr + new_len)) {
            return -EINVAL;
        }
        r = unmap_later(mm, new_addr, new_addr + new_len,
                        bug_is(BUG_deferred_flag_leaks_into_freeing_op));
        if (r != 0) {
            return r;
        }
    }
    if (new_len < old_len) {
        int r = unmap_locked(mm, addr + new_len, addr + old_len);

        if (r != 0) {
            return r;
        }
        old_len = new_len;
    }
    vma = vma_find(mm, addr);
    if (vma == NULL || vma->end < addr + old_len) {
        return -EFAULT;
    }
    if (!(flags & MREMAP_FIXED)) {
        if (new_len == old_len && !(flags & MREMAP_DONTUNMAP)) {
            return (int64_t)addr;
        }
        if (vma->end == addr + old_len && new_len > old_len &&
            grow_in_place(mm, vma, addr + new_len)) {
            return (int64_t)addr;
        }
        if (!(flags & MREMAP_MAYMOVE)) {
            return -ENOMEM;
        }
        new_addr = vma_gap(mm, new_len, USER_MMAP_TOP);
        if (new_addr == 0) {
            return -ENOMEM;
        }
    }
    if (vma->start < addr) {
        vma = vma_split(mm, vma, addr);
    }
    if (vma == NULL || (vma->end > addr + old_len &&
                        vma_split(mm, vma, addr + old_len) == NULL)) {
        return -ENOMEM;
    }
    return move_area(mm, vma, new_addr, new_len, !(flags & MREMAP_DONTUNMAP));
}

int64_t sys_mremap(uint64_t addr, uint64_t old_len, uint64_t new_len,
                   uint64_t flags, uint64_t new_addr)
{
    struct mm *mm = current()->mm;
    int64_t r;

    if (old_len == 0 || new_len == 0 || old_len > USER_END ||
        new_len > USER_END || (flags & ~FLAGS) != 0 ||
        ((flags & ~MREMAP_MAYMOVE) && !(flags & MREMAP_MAYMOVE))) {
        return -EINVAL;
    }
    old_len = PAGE_ALIGN_UP(old_len);
    new_len = PAGE_ALIGN_UP(new_len);
    if ((flags & MREMAP_DONTUNMAP) && old_len != new_len) {
        return -EINVAL;
    }
    if (!range_ok(addr, old_len)) {
        return -EINVAL;
    }
    /* What goes for sure: what is cut off, or all if it has to move. */
    annot_op_begin(ANNOT_OP_MREMAP,
                   flags & MREMAP_FIXED ? addr : addr + new_len, addr + old_len,
                   flags & MREMAP_FIXED || new_len < old_len
                       ? ANNOT_PROMISE_NOACCESS
                       : ANNOT_PROMISE_NONE);
    mm_write_lock(&mm->mmap_lock);
    r = remap_locked(mm, addr, old_len, new_len, flags, new_addr);
    mm_write_unlock(&mm->mmap_lock);
    annot_op_end(ANNOT_OP_MREMAP);
    return r;
}
