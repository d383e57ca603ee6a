/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Areas of an address space: a sorted array of pointers, found by bisection.
 * mmap_lock held: for writing by all that change, for reading by vma_find.
 */
#include "kernel/inode.h"
#include "mm/huge.h"
#include "mm/mm_priv.h"
#include "mm/shmem.h"

unsigned vma_index(const struct mm *mm, uint64_t va)
{
    unsigned low = 0, high = mm->n_areas;

    while (low < high) {
        unsigned mid = (low + high) / 2;

        if (mm->areas[mid]->end <= va) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

struct vma *vma_find(const struct mm *mm, uint64_t va)
{
    unsigned i = vma_index(mm, va);

    if (i == mm->n_areas || mm->areas[i]->start > va) {
        return NULL;
    }
    return mm->areas[i];
}

struct vma *vma_new(struct mm *mm, uint64_t start, uint64_t end, uint32_t flags)
{
    struct vma *vma = kmalloc(sizeof(*vma));

    if (vma == NULL) {
        return NULL;
    }
    vma->mm = mm;
    vma->start = start;
    vma->end = end;
    vma->pgoff = start >> PAGE_SHIFT;
    vma->flags = flags;
    list_init(&vma->rmap_node);
    return vma;
}

void vma_copy_object(struct vma *to, const struct vma *from)
{
    to->family = from->family;
    to->shmem = from->shmem;
    if (to->shmem != NULL) {
        shmem_get(to->shmem);
    }
    to->file = from->file != NULL ? inode_get(from->file) : NULL;
    to->file_shift = from->file_shift;
}

void vma_free(struct vma *vma)
{
    if (vma->shmem != NULL) {
        shmem_put(vma->shmem);
    }
    inode_put(vma->file);
    kfree(vma);
}

static bool areas_reserve(struct mm *mm)
{
    unsigned max = mm->max_areas == 0 ? 32 : mm->max_areas * 2;
    struct vma **areas;

    if (mm->n_areas < mm->max_areas) {
        return true;
    }
    areas = kmalloc(max * sizeof(*areas));
    if (areas == NULL) {
        return false;
    }
    if (mm->n_areas != 0) {
        memcpy(areas, mm->areas, mm->n_areas * sizeof(*areas));
    }
    kfree(mm->areas);
    mm->areas = areas;
    mm->max_areas = max;
    return true;
}

bool vma_insert(struct mm *mm, struct vma *vma)
{
    unsigned i = vma_index(mm, vma->start);

    if (!areas_reserve(mm)) {
        return false;
    }
    memmove(&mm->areas[i + 1], &mm->areas[i],
            (mm->n_areas - i) * sizeof(*mm->areas));
    mm->areas[i] = vma;
    mm->n_areas++;
    rmap_link(vma);
    return true;
}

void vma_remove(struct mm *mm, struct vma *vma)
{
    rmap_unlink(vma);
    vma_forget(mm, vma);
}

void vma_forget(struct mm *mm, struct vma *vma)
{
    unsigned i = vma_index(mm, vma->start);

    mm->n_areas--;
    memmove(&mm->areas[i], &mm->areas[i + 1],
            (mm->n_areas - i) * sizeof(*mm->areas));
}

struct vma *vma_split(struct mm *mm, struct vma *vma, uint64_t va)
{
    struct vma *upper = vma_new(mm, va, vma->end, vma->flags);
    struct spinlock *lock;

    if (upper == NULL || !areas_reserve(mm)) {
        kfree(upper);
        return NULL;
    }
    upper->pgoff = vma->pgoff + ((va - vma->start) >> PAGE_SHIFT);
    vma_copy_object(upper, vma);
    if (!block_aligned(va)) {
        huge_split_at(mm, va); /* no block across the new boundary */
    }
    /*
     * The upper part is linked before the lower one shrinks, so that a walk of
     * the reverse map finds every page in one of them (or in both).
     */
    rmap_link(upper);
    lock = rmap_lock(vma->family != NULL ? (void *)vma->family : vma->shmem);
    spin_lock(lock);
    vma->end = va;
    spin_unlock(lock);
    {
        unsigned i = vma_index(mm, va - 1) + 1;

        memmove(&mm->areas[i + 1], &mm->areas[i],
                (mm->n_areas - i) * sizeof(*mm->areas));
        mm->areas[i] = upper;
        mm->n_areas++;
    }
    return upper;
}

static bool can_join(const struct vma *a, const struct vma *b)
{
    return a->end == b->start && a->flags == b->flags &&
           a->family == b->family && a->shmem == b->shmem &&
           a->file == b->file && a->file_shift == b->file_shift &&
           a->pgoff + ((a->end - a->start) >> PAGE_SHIFT) == b->pgoff;
}

/* Swallows areas[index + 1] if it fits. */
static bool join_next(struct mm *mm, unsigned index)
{
    struct vma *a, *b;
    struct spinlock *lock;

    if (index + 1 >= mm->n_areas) {
        return false;
    }
    a = mm->areas[index];
    b = mm->areas[index + 1];
    if (!can_join(a, b)) {
        return false;
    }
    lock = rmap_lock(a->family != NULL ? (void *)a->family : a->shmem);
    spin_lock(lock);
    a->end = b->end;
    spin_unlock(lock);
    /* As with the split: never a moment at which nobody covers a page. */
    rmap_unlink(b);
    mm->n_areas--;
    memmove(&mm->areas[index + 1], &mm->areas[index + 2],
            (mm->n_areas - index - 1) * sizeof(*mm->areas));
    vma_free(b);
    return true;
}

void vma_merge(struct mm *mm, unsigned index)
{
    while (index < mm->n_areas && join_next(mm, index)) {
    }
    if (index > 0 && index < mm->n_areas) {
        join_next(mm, index - 1);
    }
}

uint64_t vma_gap(const struct mm *mm, uint64_t len, uint64_t limit)
{
    unsigned i = vma_index(mm, limit);
    uint64_t top = limit;

    /* Area i ends above the limit; it may begin below it. */
    if (i < mm->n_areas && mm->areas[i]->start < top) {
        top = mm->areas[i]->start;
    }
    for (;;) {
        uint64_t bottom = i > 0 ? mm->areas[i - 1]->end : PAGE_SIZE;

        if (top >= bottom && top - bottom >= len) {
            return top - len;
        }
        if (i == 0) {
            return 0;
        }
        i--;
        top = mm->areas[i]->start;
    }
}

pte_t vma_pte(const struct vma *vma)
{
    pte_t pte = PTE_USER_BASE | PTE_AF | PTE_RDONLY;

    if (vma_accessible(vma)) {
        pte |= PTE_VALID;
    } else {
        pte |= PTE_PROT_NONE;
    }
    if (!(vma->flags & PROT_EXEC)) {
        pte |= PTE_UXN;
    }
    /* Private pages become writable by a fault, which knows who shares. */
    if ((vma->flags & VMA_SHARED) && (vma->flags & PROT_WRITE)) {
        pte |= PTE_WRITE;
    }
    return pte;
}
