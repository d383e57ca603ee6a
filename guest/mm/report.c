/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Areas and their pages, counted one page table at a time. */
#include "mm/report.h"

#include "kernel/inode.h"
#include "kernel/sched.h"
#include "mm/mm_priv.h"
#include "mm/shmem.h"

static void count_page(struct mm_area_pages *out, pte_t pte)
{
    struct page *page = pte_page(pte);
    unsigned users = (unsigned)page_mapcount(page);
    bool dirty = pte_dirty(pte) || page_test(page, PG_DIRTY);

    out->rss += PAGE_SIZE;
    out->pss += (PAGE_SIZE << 12) / (users > 1 ? users : 1);
    out->pss_dirty += dirty ? (PAGE_SIZE << 12) / (users > 1 ? users : 1) : 0;
    if (users > 1) {
        *(dirty ? &out->shared_dirty : &out->shared_clean) += PAGE_SIZE;
    } else {
        *(dirty ? &out->private_dirty : &out->private_clean) += PAGE_SIZE;
    }
    out->referenced += (pte & PTE_AF) ? PAGE_SIZE : 0;
    out->anonymous += page_test(page, PG_ANON) ? PAGE_SIZE : 0;
    out->lazyfree += page_is_lazyfree(page) ? PAGE_SIZE : 0;
}

/* Pages of a block; only faults and reclaim can change them meanwhile. */
static void count_block(struct mm *mm, uint64_t va, uint64_t end,
                        struct mm_area_pages *out)
{
    for (; va < end; va += PAGE_SIZE) {
        unsigned level;
        pte_t pte = pt_lookup(mm, va, &level);

        if (pte_present(pte) && !(pte & PTE_SPECIAL)) {
            count_page(out, pte);
            out->huge += level == 2 ? PAGE_SIZE : 0;
        }
    }
}

/* Up to the end of one page table, under its lock. */
static void count_table(struct mm *mm, uint64_t va, uint64_t end,
                        struct mm_area_pages *out)
{
    struct spinlock *ptl;
    unsigned level;
    pte_t *p;

    if (pt_lookup(mm, va, &level) != 0 && level == 2) {
        count_block(mm, va, end, out); /* no need to split it */
        return;
    }
    p = pt_walk(mm, va, &ptl);
    if (p == NULL) {
        return;
    }
    spin_lock(ptl);
    for (; va < end; va += PAGE_SIZE, p++) {
        pte_t pte = pte_read(p);

        if (pte_is_swap(pte)) {
            out->swap += PAGE_SIZE;
        } else if (pte_present(pte) && !(pte & PTE_SPECIAL)) {
            count_page(out, pte);
        }
    }
    spin_unlock(ptl);
}

static void describe(const struct mm *mm, const struct vma *vma,
                     struct mm_area *out)
{
    *out = (struct mm_area){
        .start = vma->start,
        .end = vma->end,
        .prot = vma->flags & (PROT_READ | PROT_WRITE | PROT_EXEC),
        .shared = (vma->flags & VMA_SHARED) != 0,
        .heap = vma->start < mm->brk && vma->end > mm->brk_start,
        .sigpage = (vma->flags & VMA_SIGPAGE) != 0,
    };
    if (out->shared) {
        out->offset = vma->pgoff << PAGE_SHIFT;
        out->object_id = vma->shmem->id;
    } else if (vma->file != NULL) {
        out->offset = (vma->pgoff + vma->file_shift) << PAGE_SHIFT;
        out->file = inode_get(vma->file);
    }
}

bool mm_report_area(struct mm *mm, uint64_t va, bool pages, struct mm_area *out)
{
    unsigned i;
    bool found;

    mm_read_lock(&mm->mmap_lock);
    i = vma_index(mm, va);
    found = i < mm->n_areas;
    if (found) {
        describe(mm, mm->areas[i], out);
    }
    for (uint64_t at = found && pages ? out->start : USER_END;
         at < USER_END && at < out->end;) {
        uint64_t end = pt_block_end(at, out->end);

        count_table(mm, at, end, &out->pages);
        at = end;
    }
    if (found && out->file != NULL) {
        /* Not written yet: the file's, as far as anybody can tell. */
        out->pages.anonymous -= out->pages.lazyfree;
        out->pages.lazyfree = 0;
    }
    mm_read_unlock(&mm->mmap_lock);
    return found;
}

void mm_report_totals(struct mm *mm, struct mm_totals *out)
{
    *out = (struct mm_totals){
        .rss = (uint64_t)mm->rss << PAGE_SHIFT,
        .swapped = (uint64_t)mm->swapped << PAGE_SHIFT,
        .tables = (uint64_t)mm->tables << PAGE_SHIFT,
    };
    mm_read_lock(&mm->mmap_lock);
    out->areas = mm->n_areas;
    for (unsigned i = 0; i < mm->n_areas; i++) {
        const struct vma *vma = mm->areas[i];
        uint64_t size = vma->end - vma->start;

        out->size += size;
        if (vma->end == MM_SIGPAGE) {
            out->stack = size;
        } else if ((vma->flags & (PROT_WRITE | VMA_SHARED)) == PROT_WRITE) {
            out->data += size;
        }
    }
    mm_read_unlock(&mm->mmap_lock);
}
