/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mmap, munmap and brk, and mapping for the program loader. */
#include "kernel/annot.h"
#include "kernel/bug.h"
#include "kernel/inode.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "mm/flush.h"
#include "mm/gather.h"
#include "mm/like.h"
#include "mm/mm_priv.h"
#include "mm/shmem.h"
#include "mm/uaccess.h"

#define PROT_MASK (PROT_READ | PROT_WRITE | PROT_EXEC)

/* The family of a new private area: that of a neighbour it can join. */
static struct anon_family *family_for(struct mm *mm, const struct vma *vma)
{
    unsigned i = vma_index(mm, vma->start);
    struct anon_family *family;

    if (i > 0) {
        struct vma *prev = mm->areas[i - 1];

        if (prev->end == vma->start && prev->flags == vma->flags &&
            prev->pgoff + ((prev->end - prev->start) >> PAGE_SHIFT) ==
                vma->pgoff) {
            return prev->family;
        }
    }
    if (i < mm->n_areas) {
        struct vma *next = mm->areas[i];

        if (vma->end == next->start && next->flags == vma->flags &&
            vma->pgoff + ((vma->end - vma->start) >> PAGE_SHIFT) ==
                next->pgoff) {
            return next->family;
        }
    }
    family = kmalloc(sizeof(*family));
    if (family != NULL) {
        list_init(&family->vmas);
    }
    return family;
}

static int map_source_locked(struct mm *mm, uint64_t start, uint64_t len,
                             uint32_t flags, const struct map_source *source)
{
    struct vma *vma = vma_new(mm, start, start + len, flags);

    if (vma == NULL) {
        return -ENOMEM;
    }
    if (flags & VMA_SHARED) {
        vma->pgoff = 0;
        vma->shmem = shmem_new(len >> PAGE_SHIFT);
        if (vma->shmem == NULL) {
            kfree(vma);
            return -ENOMEM;
        }
    } else {
        vma->family = family_for(mm, vma);
        if (vma->family == NULL) {
            kfree(vma);
            return -ENOMEM;
        }
        if (source != NULL && source->file != NULL) {
            vma->file = inode_get(source->file);
            vma->file_shift = (source->offset >> PAGE_SHIFT) - vma->pgoff;
        }
    }
    if (!vma_insert(mm, vma)) {
        if (vma->family != NULL && list_empty(&vma->family->vmas)) {
            kfree(vma->family);
        }
        vma_free(vma);
        return -ENOMEM;
    }
    vma_merge(mm, vma_index(mm, start));
    return 0;
}

int map_locked(struct mm *mm, uint64_t start, uint64_t len, uint32_t flags)
{
    return map_source_locked(mm, start, len, flags, NULL);
}

/*
 * munmap=read: the area is out of the list, so that no fault finds it, and then
 * mmap_lock is held for reading only. Its tables may go: no area needs them and
 * none can be made there.
 */
static void unmap_reading(struct mm *mm, struct vma *vma, uint64_t floor,
                          uint64_t ceiling)
{
    struct gather g;

    vma_forget(mm, vma);
    mm_write_downgrade(&mm->mmap_lock);
    gather_init(&g, mm, false);
    zap_range(&g, vma, vma->start, vma->end);
    rmap_unlink(vma);
    pt_free_range(&g, vma->start, vma->end, floor, ceiling);
    gather_finish(&g);
    vma_free(vma);
}

/*
 * Unmaps what is mapped there. downgraded: NULL, or mmap_lock may be held for
 * reading afterwards, and whether it is. later: see unmap_later().
 */
static int unmap(struct mm *mm, uint64_t start, uint64_t end, bool later,
                 bool *downgraded)
{
    unsigned first = vma_index(mm, start), last;
    struct gather g;
    uint64_t floor, ceiling;
    struct list gone;

    if (first == mm->n_areas || mm->areas[first]->start >= end) {
        return 0;
    }
    if (mm->areas[first]->start < start) {
        if (vma_split(mm, mm->areas[first], start) == NULL) {
            return -ENOMEM;
        }
        first++;
    }
    last = vma_index(mm, end);
    if (last < mm->n_areas && mm->areas[last]->start < end) {
        if (vma_split(mm, mm->areas[last], end) == NULL) {
            return -ENOMEM;
        }
        last++;
    }
    /* areas[first..last) go. */
    floor = first > 0 ? mm->areas[first - 1]->end : 0;
    ceiling = last < mm->n_areas ? mm->areas[last]->start : USER_END;
    if (downgraded != NULL && last == first + 1) {
        *downgraded = true;
        unmap_reading(mm, mm->areas[first], floor, ceiling);
        return 0;
    }
    start = mm->areas[first]->start;
    end = mm->areas[last - 1]->end;
    gather_init(&g, mm, false);
    g.elsewhere = later;
    for (unsigned i = first; i < last; i++) {
        zap_range(&g, mm->areas[i], mm->areas[i]->start, mm->areas[i]->end);
    }
    list_init(&gone);
    for (unsigned i = first; i < last; i++) {
        struct vma *vma = mm->areas[first];

        vma_remove(mm, vma); /* the next one moves down */
        list_append(&gone, &vma->rmap_node);
    }
    pt_free_range(&g, start, end, floor, ceiling);
    gather_finish(&g);
    while (!list_empty(&gone)) {
        struct vma *vma = list_first(&gone, struct vma, rmap_node);

        list_remove(&vma->rmap_node);
        vma_free(vma);
    }
    return 0;
}

int unmap_locked(struct mm *mm, uint64_t start, uint64_t end)
{
    return unmap(mm, start, end, false, NULL);
}

int unmap_later(struct mm *mm, uint64_t start, uint64_t end, bool later)
{
    return unmap(mm, start, end, later, NULL);
}

void unmap_all(struct mm *mm)
{
    struct gather g;

    gather_init(&g, mm, true);
    if (bug_is(BUG_flush_once_then_free_live_tables)) {
        flush_tlb_mm(mm);
        g.elsewhere = true;
    }
    for (unsigned i = 0; i < mm->n_areas; i++) {
        zap_range(&g, mm->areas[i], mm->areas[i]->start, mm->areas[i]->end);
    }
    for (unsigned i = 0; i < mm->n_areas; i++) {
        rmap_unlink(mm->areas[i]);
    }
    if (mm->n_areas != 0) {
        pt_free_range(&g, mm->areas[0]->start, mm->areas[mm->n_areas - 1]->end,
                      0, USER_END);
    }
    gather_finish(&g);
    for (unsigned i = 0; i < mm->n_areas; i++) {
        vma_free(mm->areas[i]);
    }
    mm->n_areas = 0;
}

static bool range_free(const struct mm *mm, uint64_t start, uint64_t len)
{
    unsigned i = vma_index(mm, start);

    return i == mm->n_areas || mm->areas[i]->start >= start + len;
}

/* Where to map; 0: no room. Makes the place free if the flags say so. */
static int64_t choose_address(struct mm *mm, uint64_t addr, uint64_t len,
                              uint64_t flags)
{
    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
        if (!range_ok(addr, len) || addr == 0) {
            return -EINVAL;
        }
        if (flags & MAP_FIXED_NOREPLACE) {
            return range_free(mm, addr, len) ? (int64_t)addr : -EEXIST;
        }
        int r = unmap_locked(mm, addr, addr + len);

        return r != 0 ? r : (int64_t)addr;
    }
    addr &= PAGE_MASK;
    if (addr != 0 && range_ok(addr, len) && range_free(mm, addr, len)) {
        return (int64_t)addr;
    }
    addr = vma_gap(mm, len, USER_MMAP_TOP);
    return addr == 0 ? -ENOMEM : (int64_t)addr;
}

static void populate(struct mm *mm, uint64_t start, uint64_t len, unsigned prot)
{
    unsigned flags = prot & PROT_WRITE ? MM_FAULT_WRITE : 0;

    for (uint64_t va = start; va < start + len; va += PAGE_SIZE) {
        if (mm_fault(mm, va, flags) != 0) {
            return; /* as on Linux, not an error of mmap */
        }
        preempt_point();
    }
}

int64_t sys_mmap(uint64_t addr, uint64_t len, uint64_t prot, uint64_t flags,
                 uint64_t fd, uint64_t offset)
{
    struct mm *mm = current()->mm;
    uint64_t type = flags & 3;
    struct map_source source = {.offset = offset};
    int64_t at;
    int r;

    if ((offset & (PAGE_SIZE - 1)) != 0) {
        return -EINVAL;
    }
    if (!(flags & MAP_ANONYMOUS)) {
        r = filemap_open(fd, prot, flags, &source);
        if (r == -EBADF) {
            return r;
        }
    } else {
        r = 0;
    }
    if (len == 0 || type == 0) {
        r = -EINVAL;
    } else if (len > USER_END) {
        r = -ENOMEM;
    }
    if (r != 0) {
        inode_put(source.file);
        return r;
    }
    len = PAGE_ALIGN_UP(len);
    mm_write_lock(&mm->mmap_lock);
    at = choose_address(mm, addr, len, flags);
    if (at >= 0) {
        r = map_source_locked(mm, (uint64_t)at, len,
                              (uint32_t)(prot & PROT_MASK) |
                                  (type != MAP_PRIVATE ? VMA_SHARED : 0),
                              &source);
        if (r != 0) {
            at = r;
        }
    }
    mm_write_unlock(&mm->mmap_lock);
    inode_put(source.file);
    if (at >= 0 && (flags & MAP_POPULATE)) {
        populate(mm, (uint64_t)at, len, (unsigned)prot);
    }
    return at;
}

int64_t sys_munmap(uint64_t addr, uint64_t len)
{
    struct mm *mm = current()->mm;
    bool reading = false;
    int r;

    if (len == 0 || len > USER_END || !range_ok(addr, PAGE_ALIGN_UP(len))) {
        return -EINVAL;
    }
    annot_op_begin(ANNOT_OP_MUNMAP, addr, addr + PAGE_ALIGN_UP(len),
                   ANNOT_PROMISE_NOACCESS);
    mm_write_lock(&mm->mmap_lock);
    r = unmap(mm, addr, addr + PAGE_ALIGN_UP(len), false,
              mm_like.munmap_read ? &reading : NULL);
    if (reading) {
        mm_read_unlock(&mm->mmap_lock);
    } else {
        mm_write_unlock(&mm->mmap_lock);
    }
    annot_op_end(ANNOT_OP_MUNMAP);
    return r;
}

/* Returns the break in force, changed or not. */
int64_t sys_brk(uint64_t addr)
{
    struct mm *mm = current()->mm;
    uint64_t old_end, new_end, result;

    mm_write_lock(&mm->mmap_lock);
    old_end = PAGE_ALIGN_UP(mm->brk);
    if (addr >= mm->brk_start && addr <= USER_MMAP_TOP) {
        new_end = PAGE_ALIGN_UP(addr);
        if (new_end <= old_end) {
            if (new_end == old_end || unmap_locked(mm, new_end, old_end) == 0) {
                mm->brk = addr;
            }
        } else if (range_free(mm, old_end, new_end - old_end) &&
                   map_locked(mm, old_end, new_end - old_end,
                              PROT_READ | PROT_WRITE) == 0) {
            mm->brk = addr;
        }
    }
    result = mm->brk;
    mm_write_unlock(&mm->mmap_lock);
    return (int64_t)result;
}

/* --- the program loader --- */

void mm_set_brk(struct mm *mm, uint64_t va)
{
    mm->brk_start = mm->brk = PAGE_ALIGN_UP(va);
}

int mm_map_sigpage(struct mm *mm)
{
    int r;

    mm_write_lock(&mm->mmap_lock);
    r = map_locked(mm, MM_SIGPAGE, PAGE_SIZE,
                   PROT_READ | PROT_EXEC | VMA_SIGPAGE);
    mm_write_unlock(&mm->mmap_lock);
    return r;
}

int mm_map(struct mm *mm, uint64_t va, uint64_t size, unsigned prot)
{
    int r;

    size = PAGE_ALIGN_UP(size);
    if (size == 0 || va == 0 || !range_ok(va, size)) {
        return -EINVAL;
    }
    mm_write_lock(&mm->mmap_lock);
    r = unmap_locked(mm, va, va + size);
    if (r == 0) {
        r = map_locked(mm, va, size, prot & PROT_MASK);
    }
    mm_write_unlock(&mm->mmap_lock);
    return r;
}
