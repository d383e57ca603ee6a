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

#include "kernel/bug.h"
#include "kernel/panic.h"
#include "mm/counters.h"
#include "mm/flush.h"
#include "mm/huge.h"
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
    last = list_empty(vmas) && (vma->family == NULL || vma->family->pins == 0);
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
    page_set(page, PG_ANON | PG_UPTODATE | PG_SWAPBACKED);
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

/* One walk over the areas of a page's object. */
struct rmap_walk {
    struct page *page;
    bool batch;      /* migration: defer the flush */
    struct page *to; /* end of a migration */
    bool (*fn)(const struct rmap_walk *w, struct vma *vma, uint64_t va);
};

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
    unsigned level;
    pte_t pte = pt_lookup(mm, va, &level), *p;

    /*
     * A look without the lock spares most locks of a wide family, and splits
     * only blocks that map the page.
     */
    if (!pte_present(pte) || pte_page(pte) != page) {
        return NULL;
    }
    p = pt_walk(mm, va, &ptl);
    if (p == NULL) {
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

/*
 * A MADV_FREE page, its PTE cleared and its dirty bit taken over: may the
 * contents go? Pairs with whoever takes a reference or writes and then looks at
 * the PTE again: either they see it cleared, or we see the reference or the
 * dirty bit. The references: the caller's, and one a mapping.
 */
static bool may_discard(struct page *page)
{
    uint32_t count;
    int mapcount;

    atomic_thread_fence(memory_order_seq_cst);
    count = atomic_load_explicit(&page->count, memory_order_relaxed);
    mapcount = page_mapcount(page);
    atomic_thread_fence(memory_order_acquire);
    if (page_test(page, PG_DIRTY)) {
        page_set(page, PG_SWAPBACKED); /* written again: as any other */
        return false;
    }
    return count == 1 + (uint32_t)mapcount;
}

/* Exact order of the steps: what the flush and its bookkeeping rely on. */
static bool try_to_unmap_one(const struct rmap_walk *w, struct vma *vma,
                             uint64_t va)
{
    struct page *page = w->page;
    struct mm *mm = vma->mm;
    struct spinlock *ptl;
    pte_t *p = mapping_pte(page, mm, va, &ptl);
    bool lazyfree = page_is_lazyfree(page);
    pte_t old, entry = 0;

    if (p == NULL) {
        return false;
    }
    if (page_test(page, PG_ANON) && !lazyfree) {
        if (!page_test(page, PG_SWAPCACHE)) {
            /* Found written by this walk, after MADV_FREE: it stays. */
            spin_unlock(ptl);
            return false;
        }
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
    if (lazyfree && !may_discard(page)) {
        pte_write(p, old); /* the flush stays queued: one too many */
        spin_unlock(ptl);
        return false;
    }
    if (entry != 0) {
        pte_write(p, entry);
        atomic_fetch_add_explicit(&mm->swapped, 1, memory_order_relaxed);
    }
    atomic_fetch_sub_explicit(&mm->rss, 1, memory_order_relaxed);
    rmap_remove(page);
    page_put(page); /* the mapping's; the caller has its own */
    spin_unlock(ptl);
    return true;
}

static bool clear_young_one(const struct rmap_walk *w, struct vma *vma,
                            uint64_t va)
{
    struct spinlock *ptl;
    bool young;
    pte_t *p;

    if (huge_clear_young(vma->mm, va, w->page, &young)) {
        return young;
    }
    p = mapping_pte(w->page, vma->mm, va, &ptl);
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

static struct list *vmas_of(const struct page *page)
{
    return page_test(page, PG_ANON)
               ? &((struct anon_family *)page->mapping)->vmas
               : &((struct shmem *)page->mapping)->vmas;
}

/* Is the page mapped, so that its object is alive? The rmap lock is held. */
static bool object_alive(const struct page *page, const void *object)
{
    return page->mapping == object && page_mapcount(page) != 0;
}

/* Rmap lock held. How often fn said true; ends when nothing maps the page. */
static unsigned walk_mapped(const struct rmap_walk *w)
{
    struct list *vmas = vmas_of(w->page), *node;
    unsigned n = 0;

    list_for_each(node, vmas)
    {
        struct vma *vma = list_entry(node, struct vma, rmap_node);
        uint64_t va = page_va(w->page, vma);

        if (va != 0) {
            n += w->fn(w, vma, va);
            if (page_mapcount(w->page) == 0) {
                break;
            }
        }
    }
    return n;
}

/* Calls fn for every area of the page's object that covers the page. */
static unsigned rmap_walk(const struct rmap_walk *w)
{
    void *object = w->page->mapping;
    struct spinlock *lock = rmap_lock(object);
    unsigned n = 0;

    spin_lock(lock);
    if (object_alive(w->page, object)) {
        n = walk_mapped(w);
    }
    spin_unlock(lock);
    return n;
}

bool rmap_try_to_unmap(struct page *page)
{
    struct rmap_walk w = {.page = page, .fn = try_to_unmap_one};

    (void)rmap_walk(&w);
    return page_mapcount(page) == 0;
}

bool rmap_test_and_clear_young(struct page *page)
{
    struct rmap_walk w = {.page = page, .fn = clear_young_one};

    return rmap_walk(&w) != 0;
}

/* --- migration --- */

#define PIN_FAMILY 1UL /* in the pin, next to the object's address */

/* As try_to_unmap_one(), but the contents stay in memory: no slot, no count. */
static bool try_to_migrate_one(const struct rmap_walk *w, struct vma *vma,
                               uint64_t va)
{
    struct page *page = w->page;
    struct mm *mm = vma->mm;
    struct spinlock *ptl;
    pte_t *p = mapping_pte(page, mm, va, &ptl);
    pte_t old;

    if (p == NULL) {
        return false;
    }
    old = pte_exchange(p, 0);
    counter_inc(unmap_ptes);
    if (w->batch && should_defer_flush(mm)) {
        if (bug_is(BUG_migrate_collect_unlock_before_flush)) {
            set_tlb_ubc_flush_untold(mm, old, va, va + PAGE_SIZE);
        } else {
            set_tlb_ubc_flush_pending(mm, old, va, va + PAGE_SIZE);
        }
    } else if (pte_accessible(mm, old)) {
        counter_inc(unmap_accessible);
        flush_tlb_page(mm, va);
    }
    if (pte_dirty(old)) {
        page_set(page, PG_DIRTY);
    }
    pte_write(p, pte_of_migration(old));
    rmap_remove(page);
    page_put(page); /* the mapping's; the caller has its own */
    spin_unlock(ptl);
    return true;
}

bool rmap_try_to_migrate(struct page *page, bool batch, uint64_t *out_pin)
{
    struct rmap_walk w = {
        .page = page, .batch = batch, .fn = try_to_migrate_one};
    void *object = page->mapping;
    struct spinlock *lock = rmap_lock(object);

    *out_pin = 0;
    spin_lock(lock);
    if (object_alive(page, object)) {
        /*
         * From here no mapcount proves that the object lives. A shared one
         * cannot die while a page of its index is locked; a family is pinned.
         */
        *out_pin = (uint64_t)object;
        if (page_test(page, PG_ANON)) {
            ((struct anon_family *)object)->pins++;
            *out_pin |= PIN_FAMILY;
        }
        (void)walk_mapped(&w);
    }
    spin_unlock(lock);
    return page_mapcount(page) == 0;
}

/* Migration entry to PTE, with what the area allows now. */
static bool remove_migration_one(const struct rmap_walk *w, struct vma *vma,
                                 uint64_t va)
{
    struct spinlock *ptl;
    unsigned level;
    pte_t entry = pt_lookup(vma->mm, va, &level), pte, *p;

    if (!pte_is_migration(entry) || pte_page(entry) != w->page) {
        return false;
    }
    p = pt_walk(vma->mm, va, &ptl);
    if (p == NULL) {
        return false;
    }
    spin_lock(ptl);
    entry = pte_read(p);
    if (!pte_is_migration(entry) || pte_page(entry) != w->page) {
        spin_unlock(ptl);
        return false;
    }
    if ((vma->flags & PROT_EXEC) && !page_test(w->to, PG_ICACHE)) {
        fault_sync_icache(w->to);
    }
    pte = page_to_phys(w->to) | vma_pte(vma);
    if (vma->flags & PROT_WRITE) {
        pte |= entry & PTE_WRITE;
    }
    if (!(entry & PTE_AF)) {
        pte &= ~PTE_AF;
    }
    if ((entry & PTE_DIRTY) && page_test(w->to, PG_DIRTY)) {
        pte = pte_mkdirty(pte);
    }
    page_get(w->to);
    rmap_add(w->to);
    pte_write(p, pte);
    spin_unlock(ptl);
    return true;
}

/*
 * fork copies entries from an area to a later one of the list, with both PTLs
 * held, and mremap moves them under the rmap lock: one walk meets them all.
 */
void rmap_remove_migration(uint64_t pin, struct page *page, struct page *to)
{
    struct rmap_walk w = {.page = page, .to = to};
    void *object = (void *)(pin & ~PIN_FAMILY);
    struct anon_family *family = pin & PIN_FAMILY ? object : NULL;
    struct spinlock *lock = rmap_lock(object);
    struct list *vmas, *node;
    bool last = false;

    if (pin == 0) {
        return; /* it was not mapped */
    }
    vmas = family != NULL ? &family->vmas : &((struct shmem *)object)->vmas;
    spin_lock(lock);
    list_for_each(node, vmas)
    {
        struct vma *vma = list_entry(node, struct vma, rmap_node);
        uint64_t va = page_va(page, vma);

        if (va != 0) {
            (void)remove_migration_one(&w, vma, va);
        }
    }
    if (family != NULL) {
        last = --family->pins == 0 && list_empty(vmas);
    }
    spin_unlock(lock);
    if (last) {
        kfree(family);
    }
}
