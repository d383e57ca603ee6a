/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page faults. mmap_lock is held for reading, so areas and tables stay; every
 * PTE is looked at again under its PTL before it is changed.
 */
#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/annot.h"
#include "kernel/panic.h"
#include "kernel/sched.h"
#include "mm/counters.h"
#include "mm/flush.h"
#include "mm/huge.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/mm_priv.h"
#include "mm/numa.h"
#include "mm/rmap.h"
#include "mm/shmem.h"
#include "mm/swap.h"
#include "mm/tlbbatch.h"

#define FAULT_RETRY 1 /* something moved: look again */

struct fault {
    struct mm *mm;
    struct vma *vma;
    uint64_t va; /* of the page */
    bool write;
    bool force; /* mm_poke: it cares for the instruction caches itself */
    pte_t *p;
    struct spinlock *ptl;
    pte_t orig; /* as read without the lock */
};

void fault_clean_dcache(struct page *page)
{
    const char *va = page_address(page);

    for (unsigned i = 0; i < PAGE_SIZE; i += 64) {
        dc_cvau(va + i);
    }
    page_set(page, PG_ICACHE);
}

void fault_drop_icache(void)
{
    dsb_ish();
    ic_ialluis();
    dsb_ish();
    isb();
}

void fault_sync_icache(struct page *page)
{
    fault_clean_dcache(page);
    fault_drop_icache();
}

/* The PTE for a page of this area, clean. */
static pte_t make_pte(const struct fault *f, struct page *page)
{
    if ((f->vma->flags & PROT_EXEC) && !f->force &&
        !page_test(page, PG_ICACHE)) {
        fault_sync_icache(page);
    }
    return page_to_phys(page) | vma_pte(f->vma);
}

/* A private page of which this PTE is the only user. */
static pte_t make_private(const struct fault *f, struct page *page)
{
    pte_t pte = make_pte(f, page);

    if (f->vma->flags & PROT_WRITE) {
        pte |= PTE_WRITE;
    }
    return f->write ? pte_mkdirty(pte) : pte;
}

/* Takes the PTL if the PTE is still what was read. */
static bool lock_same(struct fault *f)
{
    spin_lock(f->ptl);
    if (pte_read(f->p) == f->orig) {
        if (mm_like.fault_drain && !pte_present(f->orig)) {
            flush_tlb_batched_pending(f->mm);
            if (atomic_load_explicit(&f->mm->tlb_flush_pending,
                                     memory_order_relaxed) != 0) {
                flush_tlb_mm(f->mm); /* a gather's, still to come */
            }
        }
        return true;
    }
    spin_unlock(f->ptl);
    return false;
}

static int fault_anon(struct fault *f)
{
    struct page *page;

    if (!f->write) {
        if (lock_same(f)) {
            struct page *shown =
                f->vma->flags & VMA_SIGPAGE ? sigpage : zero_page;

            pte_write(f->p,
                      page_to_phys(shown) | vma_pte(f->vma) | PTE_SPECIAL);
            spin_unlock(f->ptl);
        }
        return 0;
    }
    page = numa_alloc(f->vma, PAGE_ALLOC_ZERO | PAGE_ALLOC_RECLAIM);
    if (page == NULL) {
        return -ENOMEM;
    }
    if (!lock_same(f)) {
        page_free(page, 0);
        return FAULT_RETRY;
    }
    rmap_add_anon_new(page, f->vma, f->va);
    lru_add(page);
    pte_write(f->p, make_private(f, page));
    spin_unlock(f->ptl);
    atomic_fetch_add_explicit(&f->mm->rss, 1, memory_order_relaxed);
    return 0;
}

/*
 * A private mapping of a file: a page of its own from the first use. Until it
 * is written it is as after MADV_FREE: reclaim throws it away while it is
 * clean, and the next use reads it again.
 */
static int fault_file(struct fault *f)
{
    struct page *page =
        numa_alloc(f->vma, PAGE_ALLOC_ZERO | PAGE_ALLOC_RECLAIM);
    int r = page == NULL ? -ENOMEM : filemap_read(f->vma, f->va, page);

    if (r == 0 && !lock_same(f)) {
        r = FAULT_RETRY;
    }
    if (r != 0) {
        if (page != NULL) {
            page_free(page, 0);
        }
        return r;
    }
    rmap_add_anon_new(page, f->vma, f->va);
    if (!f->write) {
        page_clear(page, PG_SWAPBACKED);
    }
    lru_add(page);
    pte_write(f->p, make_private(f, page));
    spin_unlock(f->ptl);
    atomic_fetch_add_explicit(&f->mm->rss, 1, memory_order_relaxed);
    return 0;
}

static int fault_shmem(struct fault *f)
{
    uint64_t index = f->vma->pgoff + ((f->va - f->vma->start) >> PAGE_SHIFT);
    struct page *page;
    pte_t pte;

    if (index >= f->vma->shmem->n_pages) {
        return -EFAULT;
    }
    page = shmem_get_page(f->vma->shmem, index, numa_policy(f->vma));
    if (page == NULL) {
        return -ENOMEM;
    }
    if (!lock_same(f)) {
        page_unlock(page);
        page_put(page);
        return FAULT_RETRY;
    }
    /* A read maps a dirty page clean up to Linux 6.12, then dirty. */
    pte = make_pte(f, page);
    if (f->write || (mm_like.read_fault_dirty && (pte & PTE_WRITE) &&
                     page_test(page, PG_DIRTY))) {
        pte = pte_mkdirty(pte);
    }
    pte_write(f->p, pte);
    rmap_add(page); /* with the reference of shmem_get_page() */
    spin_unlock(f->ptl);
    page_unlock(page);
    atomic_fetch_add_explicit(&f->mm->rss, 1, memory_order_relaxed);
    return 0;
}

static int fault_swap(struct fault *f)
{
    uint64_t entry = pte_swap_entry(f->orig);
    bool no_memory = false;
    struct page *page = swap_in_page(entry, &no_memory);

    if (page == NULL) {
        return no_memory ? -ENOMEM : FAULT_RETRY;
    }
    page_lock(page); /* reclaim may still be at it */
    if (!swap_cache_holds(page, entry) || !lock_same(f)) {
        swap_cache_unlock_put(page);
        return FAULT_RETRY;
    }
    if (page_mapcount(page) == 0) {
        bool alone = swap_count(entry) == 1;

        rmap_add_anon_new(page, f->vma, f->va);
        pte_write(f->p, alone ? make_private(f, page) : make_pte(f, page));
    } else {
        rmap_add(page);
        pte_write(f->p, make_pte(f, page));
    }
    /*
     * Under the PTL: from then on an unmap may take the mapping's reference,
     * which is the last when the cache's has gone.
     */
    swap_cache_free_use(page);
    page_unlock(page);
    spin_unlock(f->ptl);
    atomic_fetch_add_explicit(&f->mm->rss, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&f->mm->swapped, 1, memory_order_relaxed);
    return 0;
}

/*
 * The page is on its way to another frame: wait until it has arrived. No
 * reference is taken, which would hold the move up: page structures are never
 * freed, and the entry changes before its page is unlocked.
 */
static int fault_migration(struct fault *f)
{
    struct page *page = pte_page(f->orig);
    unsigned spins = 0;

    while (pte_read(f->p) == f->orig && page_test(page, PG_LOCKED)) {
        if (++spins < 64) {
            cpu_relax();
        } else {
            sched_yield();
            spins = 0;
        }
    }
    return FAULT_RETRY;
}

/* Replaces the PTE's page by a copy of it. The caller holds a reference. */
static int copy_page(struct fault *f, struct page *old)
{
    struct page *page = numa_alloc(f->vma, PAGE_ALLOC_RECLAIM);
    bool special = f->orig & PTE_SPECIAL; /* zero_page or sigpage */

    if (page == NULL) {
        return -ENOMEM;
    }
    if (old == zero_page) {
        memset(page_address(page), 0, PAGE_SIZE);
    } else {
        annot_frame(ANNOT_REG_COPY_BEGIN, page_to_phys(old), 0);
        /* It cannot change: while we map it, it has more than one user. */
        memcpy(page_address(page), page_address(old), PAGE_SIZE);
    }
    if (!lock_same(f)) {
        page_free(page, 0);
        return FAULT_RETRY;
    }
    /* Another output address: break, invalidate, make. */
    pte_exchange(f->p, 0);
    flush_tlb_page(f->mm, f->va);
    rmap_add_anon_new(page, f->vma, f->va);
    lru_add(page);
    pte_write(f->p, make_private(f, page));
    if (!special) {
        rmap_remove(old);
    }
    spin_unlock(f->ptl);
    if (special) {
        atomic_fetch_add_explicit(&f->mm->rss, 1, memory_order_relaxed);
    } else {
        swap_cache_try_drop(old);
        page_put(old); /* the mapping's */
    }
    return 0;
}

/* Nobody else can reach the page: neither a PTE nor a swap entry. Locked. */
static bool alone_in_cache(struct page *page)
{
    return page_mapcount(page) == 1 &&
           (!page_test(page, PG_SWAPCACHE) || swap_count(page->private) == 0);
}

/* The page became ours alone: the PTE may write. PTL held; unlocks. */
static void reuse(struct fault *f, struct page *page)
{
    pte_t pte = pte_read(f->p) | PTE_AF;

    if (f->vma->flags & PROT_WRITE) {
        pte |= PTE_WRITE;
    }
    page_clear(page, PG_ICACHE);
    pte_write(f->p, pte_mkdirty(pte));
    spin_unlock(f->ptl);
    flush_tlb_fix_spurious(f->mm, f->va);
}

/* No other PTE maps the page, nor will one when a migration has ended. */
static bool alone_unlocked(struct page *page)
{
    if (atomic_load_explicit(&page->mapcount, memory_order_acquire) != 1 ||
        page_test(page, PG_SWAPCACHE)) {
        return false;
    }
    /*
     * Who migrates the page took a reference before he took PTEs away; the
     * acquire above pairs with the release of rmap_remove().
     */
    return atomic_load_explicit(&page->count, memory_order_relaxed) == 1;
}

/* A write to a private page that is mapped read-only. */
static int fault_wp(struct fault *f)
{
    struct page *page;
    bool maybe_alone;
    int r;

    if (f->orig & PTE_SPECIAL) {
        return copy_page(f, pte_page(f->orig));
    }
    if (!lock_same(f)) {
        return FAULT_RETRY;
    }
    page = pte_page(f->orig);
    if (alone_unlocked(page)) {
        reuse(f, page);
        return 0;
    }
    /* Perhaps it is alone, but only under its lock can that be told. */
    maybe_alone = page_mapcount(page) == 1;
    page_get(page);
    spin_unlock(f->ptl);
    if (maybe_alone || page_test(page, PG_SWAPCACHE)) {
        page_lock(page);
        if (!lock_same(f)) {
            swap_cache_unlock_put(page);
            return FAULT_RETRY;
        }
        if (alone_in_cache(page)) {
            if (page_test(page, PG_SWAPCACHE)) {
                page_set(page, PG_DIRTY);
                swap_cache_delete(page);
            }
            reuse(f, page);
            page_unlock(page);
            page_put(page);
            return 0;
        }
        spin_unlock(f->ptl);
        page_unlock(page);
    }
    r = copy_page(f, page);
    if (r != 0) {
        swap_cache_try_drop(page); /* whoever let go may have found it locked */
    }
    page_put(page);
    return r;
}

/*
 * A hint: this CPU uses the page. It comes nearer, if it is far away, at the
 * price of no flush, since no TLB can hold a hint; then the PTE is as before.
 */
static int fault_hint(struct fault *f)
{
    struct page *page;
    int node;

    if (!lock_same(f)) {
        return FAULT_RETRY;
    }
    counter_inc(numa_hint_faults);
    page = pte_page(f->orig);
    node = numa_misplaced(page, f->vma);
    if (node >= 0 && lru_isolate(page)) {
        spin_unlock(f->ptl);
        if (numa_bring_page(page, (unsigned)node)) {
            return 0;
        }
        if (!lock_same(f)) {
            return FAULT_RETRY;
        }
    }
    pte_write(f->p, pte_clear_hint(f->orig));
    spin_unlock(f->ptl);
    return 0; /* if there is more to it than the hint, it faults again */
}

/* The PTE is present: access flag, first write, or nothing at all. */
static int fault_present(struct fault *f)
{
    bool area_writes = f->vma->flags & PROT_WRITE;
    pte_t pte;

    if (f->write && area_writes && !(f->orig & PTE_WRITE)) {
        if (f->vma->flags & VMA_SHARED) {
            return -EACCES;
        }
        return fault_wp(f);
    }
    if (f->write && !area_writes &&
        ((f->orig & PTE_SPECIAL) || page_mapcount(pte_page(f->orig)) != 1)) {
        return fault_wp(f); /* forced: a page of our own, still read-only */
    }
    if (!lock_same(f)) {
        return FAULT_RETRY;
    }
    pte = f->orig | PTE_AF;
    if (f->write) {
        pte = pte_mkdirty(pte);
    }
    if (pte != f->orig) {
        pte_write(f->p, pte);
    }
    spin_unlock(f->ptl);
    /* Only more is allowed than before: no other CPU need know. */
    flush_tlb_fix_spurious(f->mm, f->va);
    return 0;
}

static int access_error(const struct vma *vma, unsigned flags)
{
    if (flags & MM_FAULT_FORCE) {
        return 0;
    }
    if (flags & MM_FAULT_WRITE) {
        return vma->flags & PROT_WRITE ? 0 : -EACCES;
    }
    if (flags & MM_FAULT_EXEC) {
        return vma->flags & PROT_EXEC ? 0 : -EACCES;
    }
    return vma_accessible(vma) ? 0 : -EACCES;
}

int fault_locked(struct mm *mm, uint64_t va, unsigned flags)
{
    struct fault f = {
        .mm = mm,
        .va = va & PAGE_MASK,
        .write = flags & MM_FAULT_WRITE,
        .force = flags & MM_FAULT_FORCE,
    };
    int r;

    f.vma = va < USER_END ? vma_find(mm, va) : NULL;
    if (f.vma == NULL) {
        return -EFAULT;
    }
    r = access_error(f.vma, flags);
    if (r != 0) {
        return r;
    }
    if (huge_fault(mm, f.vma, f.va, flags)) {
        return 0;
    }
    do {
        f.p = pt_walk(mm, f.va, &f.ptl);
        if (f.p == NULL) {
            f.p = pt_alloc(mm, f.va, &f.ptl);
        }
        if (f.p == NULL) {
            return -ENOMEM;
        }
        f.orig = pte_read(f.p);
        if (f.orig == 0) {
            r = f.vma->flags & VMA_SHARED ? fault_shmem(&f)
                : f.vma->file != NULL     ? fault_file(&f)
                                          : fault_anon(&f);
        } else if (pte_present(f.orig)) {
            r = (f.orig & PTE_PROT_NONE) && vma_accessible(f.vma)
                    ? fault_hint(&f)
                    : fault_present(&f);
        } else if (pte_is_migration(f.orig)) {
            r = fault_migration(&f);
        } else {
            ASSERT_MSG(pte_is_swap(f.orig), "strange PTE 0x%lx at 0x%lx",
                       (unsigned long)f.orig, (unsigned long)va);
            r = fault_swap(&f);
        }
    } while (r == FAULT_RETRY);
    return r;
}

int mm_fault(struct mm *mm, uint64_t va, unsigned flags)
{
    int r;

    if (flags & MM_FAULT_USER) {
        counter_inc(page_faults);
    }
    if (mm == NULL) {
        return -EFAULT;
    }
    mm_read_lock(&mm->mmap_lock);
    r = fault_locked(mm, va, flags);
    mm_read_unlock(&mm->mmap_lock);
    return r;
}
