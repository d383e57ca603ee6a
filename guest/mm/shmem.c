/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared anonymous memory objects. Lock order: page lock, shmem->lock, swap
 * slot lock. An index entry changes under shmem->lock, and a page leaves the
 * index only with its page lock held.
 */
#include "mm/shmem.h"

#include "kernel/panic.h"
#include "mm/lru.h"
#include "mm/numa.h"
#include "mm/swap.h"

#define IS_SWAP(entry) ((entry)&1)

struct shmem *shmem_new(uint64_t n_pages)
{
    static _Atomic uint64_t next_id = 1;
    struct shmem *shmem = kmalloc(sizeof(*shmem));
    uint64_t n_dir = (n_pages + SHMEM_FANOUT - 1) / SHMEM_FANOUT;

    if (shmem == NULL) {
        return NULL;
    }
    shmem->dir = kmalloc(n_dir * sizeof(*shmem->dir));
    if (shmem->dir == NULL) {
        kfree(shmem);
        return NULL;
    }
    atomic_init(&shmem->refs, 1);
    spin_init(&shmem->lock, LOCK_shmem);
    list_init(&shmem->vmas);
    shmem->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
    shmem->n_pages = n_pages;
    return shmem;
}

void shmem_get(struct shmem *shmem)
{
    atomic_fetch_add_explicit(&shmem->refs, 1, memory_order_relaxed);
}

/* The entry's place; NULL: no index page there and make is false or fails. */
static _Atomic uint64_t *slot_of(struct shmem *shmem, uint64_t index, bool make)
{
    _Atomic(_Atomic uint64_t *) *dir = &shmem->dir[index / SHMEM_FANOUT];
    /* Acquire: its zeroes. Pairs with the exchange below. */
    _Atomic uint64_t *leaf = atomic_load_explicit(dir, memory_order_acquire);

    if (leaf == NULL && make) {
        struct page *page = page_alloc(0, PAGE_ALLOC_ZERO);

        if (page == NULL) {
            return NULL;
        }
        if (atomic_compare_exchange_strong_explicit(
                dir, &leaf, page_address(page), memory_order_acq_rel,
                memory_order_acquire)) {
            leaf = page_address(page);
        } else {
            page_free(page, 0);
        }
    }
    return leaf == NULL ? NULL : &leaf[index % SHMEM_FANOUT];
}

/* The object is dying and unmapped: its page goes, whoever else looks at it. */
static void evict_page(struct shmem *shmem, _Atomic uint64_t *slot)
{
    for (;;) {
        uint64_t entry;
        struct page *page;

        spin_lock(&shmem->lock);
        entry = atomic_load_explicit(slot, memory_order_relaxed);
        if (entry == 0) {
            spin_unlock(&shmem->lock);
            return;
        }
        if (IS_SWAP(entry)) {
            atomic_store_explicit(slot, 0, memory_order_relaxed);
            spin_unlock(&shmem->lock);
            swap_free(entry >> 1);
            return;
        }
        page = (struct page *)entry;
        page_get(page);
        spin_unlock(&shmem->lock);
        page_lock(page); /* reclaim may be moving it to swap */
        if (page->mapping == shmem) {
            spin_lock(&shmem->lock);
            atomic_store_explicit(slot, 0, memory_order_relaxed);
            spin_unlock(&shmem->lock);
            page->mapping = NULL;
            page_clear(page, PG_DIRTY | PG_SHMEM);
            page_unlock(page);
            page_put(page); /* the index's */
            page_put(page);
            return;
        }
        swap_cache_unlock_put(page);
    }
}

void shmem_put(struct shmem *shmem)
{
    uint64_t n_dir = (shmem->n_pages + SHMEM_FANOUT - 1) / SHMEM_FANOUT;

    if (atomic_fetch_sub_explicit(&shmem->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint64_t d = 0; d < n_dir; d++) {
        _Atomic uint64_t *leaf =
            atomic_load_explicit(&shmem->dir[d], memory_order_acquire);

        if (leaf == NULL) {
            continue;
        }
        for (unsigned i = 0; i < SHMEM_FANOUT; i++) {
            if (atomic_load_explicit(&leaf[i], memory_order_relaxed) != 0) {
                evict_page(shmem, &leaf[i]);
            }
        }
        page_free(virt_to_page((void *)leaf), 0);
    }
    kfree((void *)shmem->dir);
    kfree(shmem);
}

/* A fresh zeroed page, locked, put at an entry found empty. NULL: retry. */
static struct page *add_new(struct shmem *shmem, uint64_t index,
                            _Atomic uint64_t *slot, uint32_t policy,
                            bool *out_no_memory)
{
    struct page *page =
        numa_alloc_policy(policy, PAGE_ALLOC_ZERO | PAGE_ALLOC_RECLAIM);

    if (page == NULL) {
        *out_no_memory = true;
        return NULL;
    }
    page_trylock(page);
    page->mapping = shmem;
    page->index = index;
    spin_lock(&shmem->lock);
    if (atomic_load_explicit(slot, memory_order_relaxed) != 0) {
        spin_unlock(&shmem->lock);
        page->mapping = NULL;
        page_unlock(page);
        page_put(page);
        return NULL;
    }
    page_get(page); /* the index's */
    page_set(page, PG_SHMEM | PG_SWAPBACKED | PG_UPTODATE | PG_DIRTY);
    atomic_store_explicit(slot, (uint64_t)page, memory_order_release);
    spin_unlock(&shmem->lock);
    lru_add(page);
    return page;
}

/* Brings the entry in; the page, locked, takes the entry's place. */
static struct page *swap_in(struct shmem *shmem, uint64_t index,
                            _Atomic uint64_t *slot, uint64_t entry,
                            bool *out_no_memory)
{
    struct page *page = swap_in_page(entry >> 1, out_no_memory);

    if (page == NULL) {
        return NULL;
    }
    page_lock(page);
    spin_lock(&shmem->lock);
    if (atomic_load_explicit(slot, memory_order_relaxed) != entry ||
        !swap_cache_holds(page, entry >> 1)) {
        spin_unlock(&shmem->lock);
        swap_cache_unlock_put(page);
        return NULL;
    }
    page->mapping = shmem;
    page->index = index;
    page_get(page); /* the index's */
    page_set(page, PG_SHMEM | PG_SWAPBACKED | PG_DIRTY);
    atomic_store_explicit(slot, (uint64_t)page, memory_order_release);
    spin_unlock(&shmem->lock);
    /* The slot's one user was the index: its copy in swap is not needed. */
    swap_cache_delete(page);
    swap_free(entry >> 1);
    return page;
}

struct page *shmem_get_page(struct shmem *shmem, uint64_t index,
                            uint32_t policy)
{
    _Atomic uint64_t *slot;
    bool no_memory = false;

    if (index >= shmem->n_pages) {
        return NULL;
    }
    slot = slot_of(shmem, index, true);
    if (slot == NULL) {
        return NULL;
    }
    while (!no_memory) {
        uint64_t entry = atomic_load_explicit(slot, memory_order_relaxed);
        struct page *page;

        if (entry == 0) {
            page = add_new(shmem, index, slot, policy, &no_memory);
            if (page != NULL) {
                return page;
            }
            continue;
        }
        if (IS_SWAP(entry)) {
            page = swap_in(shmem, index, slot, entry, &no_memory);
            if (page != NULL) {
                return page;
            }
            continue;
        }
        spin_lock(&shmem->lock);
        if (atomic_load_explicit(slot, memory_order_relaxed) != entry) {
            spin_unlock(&shmem->lock);
            continue;
        }
        page = (struct page *)entry;
        page_get(page);
        spin_unlock(&shmem->lock);
        page_lock(page);
        if (page->mapping == shmem && page->index == index) {
            return page;
        }
        swap_cache_unlock_put(page); /* it went to swap while we waited */
    }
    return NULL;
}

bool shmem_writepage(struct page *page)
{
    struct shmem *shmem = page->mapping;
    _Atomic uint64_t *slot = slot_of(shmem, page->index, false);
    uint64_t entry;

    if (!swap_cache_add(page)) {
        return false;
    }
    entry = page->private;
    if (!swap_write(page)) {
        swap_cache_delete(page);
        return false;
    }
    spin_lock(&shmem->lock);
    swap_dup(entry);
    atomic_store_explicit(slot, entry << 1 | 1, memory_order_release);
    page->mapping = NULL;
    page_clear(page, PG_SHMEM);
    spin_unlock(&shmem->lock);
    page_put(page); /* the index's */
    return true;
}

bool shmem_replace_page(struct page *page, struct page *to)
{
    struct shmem *shmem = page->mapping;
    _Atomic uint64_t *slot = slot_of(shmem, page->index, false);

    spin_lock(&shmem->lock);
    /*
     * References come from the index, under this lock. Acquire: whoever let go
     * is done with the contents.
     */
    if (atomic_load_explicit(&page->count, memory_order_acquire) != 2) {
        spin_unlock(&shmem->lock);
        return false;
    }
    to->mapping = shmem;
    to->index = page->index;
    page_set(to, PG_SHMEM);
    page_get(to); /* the index's */
    atomic_store_explicit(slot, (uint64_t)to, memory_order_release);
    page->mapping = NULL;
    page_clear(page, PG_SHMEM);
    spin_unlock(&shmem->lock);
    page_put(page); /* the index's */
    return true;
}

bool shmem_resident(struct shmem *shmem, uint64_t index)
{
    _Atomic uint64_t *slot =
        index < shmem->n_pages ? slot_of(shmem, index, false) : NULL;
    uint64_t entry;

    if (slot == NULL) {
        return false;
    }
    entry = atomic_load_explicit(slot, memory_order_relaxed);
    return entry != 0 && !IS_SWAP(entry);
}
