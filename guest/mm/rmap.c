/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reverse map, and unmapping through it with a batched TLB flush.
 *
 * Objects (families of areas, shared memory) are protected by a hashed array of
 * locks, not by a lock inside: page->mapping may name an object that was freed
 * meanwhile. Under the lock a page that is still mapped proves that one of its
 * areas is still linked, hence that the object and the page tables are alive:
 * an area leaves the list only after its pages were unmapped, and tables are
 * freed only after the areas left.
 */
#include "mm/rmap.h"

#include "kernel/panic.h"
#include "mm/counters.h"
#include "mm/flush.h"
#include "mm/like.h"
#include "mm/mm_priv.h"
#include "mm/shmem.h"
#include "mm/swap.h"
#include "mm/tlbbatch.h"

#define RMAP_LOCKS 256

static struct {
    struct spinlock lock;
} CACHE_ALIGNED rmap_locks[RMAP_LOCKS];

void rmap_init(void)
{
    for (unsigned i = 0; i < RMAP_LOCKS; i++) {
        spin_init(&rmap_locks[i].lock, LOCK_rmap);
    }
}

struct spinlock *rmap_lock(const void *object)
{
    uint64_t h = (uint64_t)object >> 4;

    h *= 0x9e3779b97f4a7c15UL;
    return &rmap_locks[h >> 56].lock;
}

static struct list *object_vmas(const struct vma *vma, const void **out_object)
{
    if (vma->family != NULL) {
        *out_object = vma->family;
        return &vma->family->vmas;
    }
    *out_object = vma->shmem;
    return &vma->shmem->vmas;
}

void rmap_link(struct vma *vma)
{
    const void *object;
    struct list *vmas = object_vmas(vma, &object);
    struct spinlock *lock = rmap_lock(object);

    spin_lock(lock);
    list_append(vmas, &vma->rmap_node);
    spin_unlock(lock);
}

void rmap_unlink(struct vma *vma)
{
    const void *object;
    struct list *vmas = object_vmas(vma, &object);
    struct spinlock *lock = rmap_lock(object);
    bool last;

    spin_lock(lock);
    list_remove(&vma->rmap_node);
    last = list_empty(vmas);
    spin_unlock(lock);
    /* Only members can bring in new members, so an empty family stays empty. */
    if (last && vma->family != NULL) {
        kfree(vma->family);
        vma->family = NULL;
    }
}

void rmap_add_anon_new(struct page *page, struct vma *vma, uint64_t va)
{
    page->mapping = vma->family;
    page->index = vma->pgoff + ((va - vma->start) >> PAGE_SHIFT);
    page_set(page, PG_ANON | PG_UPTODATE);
    rmap_add(page);
}

void rmap_add(struct page *page)
{
    atomic_fetch_add_explicit(&page->mapcount, 1, memory_order_relaxed);
}

void rmap_remove(struct page *page)
{
    int32_t old =
        atomic_fetch_sub_explicit(&page->mapcount, 1, memory_order_release);

    ASSERT(old > 0);
}

/* Address of the page in the area, or 0. */
static uint64_t page_va(const struct page *page, const struct vma *vma)
{
    uint64_t n = (vma->end - vma->start) >> PAGE_SHIFT;

    if (page->index < vma->pgoff || page->index - vma->pgoff >= n) {
        return 0;
    }
    return vma->start + ((page->index - vma->pgoff) << PAGE_SHIFT);
}

/* The PTE that maps the page at va, with its lock held; or NULL, unlocked. */
static pte_t *mapping_pte(struct page *page, struct mm *mm, uint64_t va,
                          struct spinlock **out_ptl)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(mm, va, &ptl);
    pte_t pte;

    if (p == NULL) {
        return NULL;
    }
    /* A look without the lock spares most locks of a wide family. */
    pte = pte_read(p);
    if (!pte_present(pte) || pte_page(pte) != page) {
        return NULL;
    }
    spin_lock(ptl);
    pte = pte_read(p);
    if (!pte_present(pte) || (pte & PTE_SPECIAL) || pte_page(pte) != page) {
        spin_unlock(ptl);
        return NULL;
    }
    *out_ptl = ptl;
    return p;
}

/* Exact order of the steps: what the flush and its bookkeeping rely on. */
static void try_to_unmap_one(struct page *page, struct vma *vma, uint64_t va)
{
    struct mm *mm = vma->mm;
    struct spinlock *ptl;
    pte_t *p = mapping_pte(page, mm, va, &ptl);
    pte_t old, entry = 0;

    if (p == NULL) {
        return;
    }
    if (page_test(page, PG_ANON)) {
        /* Before the PTE goes: from here nobody else can free the slot. */
        swap_dup(page->private);
        entry = pte_of_swap(page->private);
    }
    old = pte_exchange(p, 0);
    counter_inc(unmap_ptes);
    if (should_defer_flush(mm)) {
        set_tlb_ubc_flush_pending(mm, old, va, va + PAGE_SIZE);
    } else if (pte_accessible(mm, old)) {
        counter_inc(unmap_accessible);
        flush_tlb_page(mm, va);
    }
    if (pte_dirty(old)) {
        page_set(page, PG_DIRTY);
    }
    if (entry != 0) {
        pte_write(p, entry);
        atomic_fetch_add_explicit(&mm->swapped, 1, memory_order_relaxed);
    }
    atomic_fetch_sub_explicit(&mm->rss, 1, memory_order_relaxed);
    rmap_remove(page);
    page_put(page); /* the mapping's; the caller has its own */
    spin_unlock(ptl);
}

static bool clear_young_one(struct page *page, struct vma *vma, uint64_t va)
{
    struct spinlock *ptl;
    pte_t *p = mapping_pte(page, vma->mm, va, &ptl);
    bool young;

    if (p == NULL) {
        return false;
    }
    young = pte_read(p) & PTE_AF;
    /*
     * A cached entry only hides the next use of the page, which makes it look
     * older than it is: nobody waits for the TLBI, if there is one at all.
     */
    pte_write(p, pte_read(p) & ~PTE_AF);
    if (young && mm_like.referenced_young_tlbi) {
        flush_tlb_young(vma->mm, va);
    }
    spin_unlock(ptl);
    return young;
}

/* Calls fn for every area of the page's object that covers the page. */
static unsigned rmap_walk(struct page *page,
                          bool (*fn)(struct page *, struct vma *, uint64_t))
{
    void *object = page->mapping;
    struct spinlock *lock = rmap_lock(object);
    struct list *vmas, *node;
    unsigned n = 0;

    spin_lock(lock);
    if (page->mapping != object || page_mapcount(page) == 0) {
        spin_unlock(lock);
        return 0;
    }
    vmas = page_test(page, PG_ANON) ? &((struct anon_family *)object)->vmas
                                    : &((struct shmem *)object)->vmas;
    list_for_each(node, vmas)
    {
        struct vma *vma = list_entry(node, struct vma, rmap_node);
        uint64_t va = page_va(page, vma);

        if (va != 0) {
            n += fn(page, vma, va);
            if (page_mapcount(page) == 0) {
                break;
            }
        }
    }
    spin_unlock(lock);
    return n;
}

static bool unmap_fn(struct page *page, struct vma *vma, uint64_t va)
{
    try_to_unmap_one(page, vma, va);
    return false;
}

bool rmap_try_to_unmap(struct page *page)
{
    (void)rmap_walk(page, unmap_fn);
    return page_mapcount(page) == 0;
}

bool rmap_test_and_clear_young(struct page *page)
{
    return rmap_walk(page, clear_young_one) != 0;
}
