/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page allocator: buddy blocks under one lock, and a cache of single
 * frames per CPU so that the lock is taken once per PCP_BATCH frames. Frames
 * that reclaim won are shared by all CPUs: somebody waits for them.
 * Depends on lock, percpu; reclaims through reclaim.h when asked to.
 */
#include "mm/page.h"

#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "mm/lru.h"
#include "mm/mm_debug.h"
#include "mm/reclaim.h"

#define PCP_BATCH 32
#define PCP_HIGH 96
#define SHARED_HIGH 64
/* Frames only PAGE_ALLOC_RESERVE may take: swap-out must make progress. */
#define PAGE_RESERVE 256

/* Set to fill freed frames with junk (debugging). */
#ifndef PAGE_JUNK
#define PAGE_JUNK 0
#endif

struct page_cpu_cache {
    struct list list;       /* [own CPU] */
    _Atomic uint32_t count; /* [own CPU writes] others only add up */
} CACHE_ALIGNED;

struct page *page_map;
uint64_t page_base_pfn, page_end_pfn;

static struct spinlock buddy_lock = SPINLOCK_INIT(LOCK_buddy);
static struct list free_area[PAGE_MAX_ORDER + 1]; /* [lock: buddy_lock] */
static _Atomic uint64_t buddy_free;               /* frames in free_area */
static uint64_t pages_managed;                    /* [lock: buddy_lock] */
static struct page_cpu_cache caches[MAX_CPUS];
static struct {
    struct spinlock lock;
    struct list list;       /* [lock] a stack */
    _Atomic uint32_t count; /* [lock], read without */
} CACHE_ALIGNED shared = {.lock = SPINLOCK_INIT(LOCK_page_shared),
                          .list = LIST_INIT(shared.list)};

_Static_assert(sizeof(struct page) == 64, "one cache line per frame");

static bool pfn_managed(uint64_t pfn)
{
    return pfn >= page_base_pfn && pfn < page_end_pfn;
}

static void buddy_insert_locked(struct page *page, unsigned order)
{
    uint64_t pfn = page_to_pfn(page);

    atomic_fetch_add_explicit(&buddy_free, 1UL << order, memory_order_relaxed);
    while (order < PAGE_MAX_ORDER) {
        uint64_t buddy_pfn = pfn ^ (1UL << order);
        struct page *buddy;

        if (!pfn_managed(buddy_pfn)) {
            break;
        }
        buddy = pfn_to_page(buddy_pfn);
        if (!page_test(buddy, PG_FREE) || buddy->order != order) {
            break;
        }
        list_remove(&buddy->lru);
        page_clear(buddy, PG_FREE);
        pfn &= ~(1UL << order);
        order++;
    }
    page = pfn_to_page(pfn);
    page->order = (uint8_t)order;
    page_set(page, PG_FREE);
    list_push(&free_area[order], &page->lru);
}

static struct page *buddy_take_locked(unsigned order)
{
    for (unsigned o = order; o <= PAGE_MAX_ORDER; o++) {
        struct page *page;

        if (list_empty(&free_area[o])) {
            continue;
        }
        page = page_of_node(free_area[o].next);
        list_remove(&page->lru);
        page_clear(page, PG_FREE);
        while (o > order) {
            struct page *half;

            o--;
            half = page + (1UL << o);
            half->order = (uint8_t)o;
            page_set(half, PG_FREE);
            list_push(&free_area[o], &half->lru);
        }
        page->order = (uint8_t)order;
        atomic_fetch_sub_explicit(&buddy_free, 1UL << order,
                                  memory_order_relaxed);
        return page;
    }
    return NULL;
}

/* --- boot --- */

static bool overlaps(uint64_t start, uint64_t end, const struct page_range *r)
{
    return start < r->end && r->start < end;
}

static uint64_t place_map(const struct page_range *ranges, unsigned n_ranges,
                          const struct page_range *reserved,
                          unsigned n_reserved, uint64_t size)
{
    for (unsigned i = 0; i < n_ranges; i++) {
        uint64_t at = PAGE_ALIGN_UP(ranges[i].start);
        bool moved = true;

        while (moved && at + size <= ranges[i].end) {
            moved = false;
            for (unsigned j = 0; j < n_reserved; j++) {
                if (overlaps(at, at + size, &reserved[j])) {
                    at = PAGE_ALIGN_UP(reserved[j].end);
                    moved = true;
                }
            }
        }
        if (at + size <= ranges[i].end) {
            return at;
        }
    }
    panic("no room for %lu bytes of page map", (unsigned long)size);
}

void page_release_range(uint64_t start, uint64_t end)
{
    uint64_t pfn = PAGE_ALIGN_UP(start) >> PAGE_SHIFT;
    uint64_t end_pfn = end >> PAGE_SHIFT;

    spin_lock(&buddy_lock);
    while (pfn < end_pfn) {
        unsigned order = 0;

        while (order < PAGE_MAX_ORDER && (pfn & ((2UL << order) - 1)) == 0 &&
               pfn + (2UL << order) <= end_pfn) {
            order++;
        }
        for (uint64_t i = pfn; i < pfn + (1UL << order); i++) {
            page_clear(pfn_to_page(i), PG_RESERVED);
        }
        buddy_insert_locked(pfn_to_page(pfn), order);
        pages_managed += 1UL << order;
        pfn += 1UL << order;
    }
    spin_unlock(&buddy_lock);
}

/* Frees [start, end) but for what the reserved ranges from i on cover. */
static void release_around(uint64_t start, uint64_t end,
                           const struct page_range *reserved, unsigned i,
                           unsigned n_reserved)
{
    for (; i < n_reserved; i++) {
        const struct page_range *r = &reserved[i];

        if (start < end && overlaps(start, end, r)) {
            release_around(start, r->start & PAGE_MASK, reserved, i + 1,
                           n_reserved);
            start = PAGE_ALIGN_UP(r->end);
        }
    }
    if (start < end) {
        page_release_range(start, end);
    }
}

void page_init(const struct page_range *ranges, unsigned n_ranges,
               const struct page_range *reserved, unsigned n_reserved)
{
    uint64_t map_pa, map_size, n;

    for (unsigned i = 0; i <= PAGE_MAX_ORDER; i++) {
        list_init(&free_area[i]);
    }
    for (unsigned i = 0; i < MAX_CPUS; i++) {
        list_init(&caches[i].list);
    }
    page_base_pfn = ranges[0].start >> PAGE_SHIFT;
    page_end_pfn = ranges[n_ranges - 1].end >> PAGE_SHIFT;
    n = page_end_pfn - page_base_pfn;
    map_size = PAGE_ALIGN_UP(n * sizeof(struct page));
    map_pa = place_map(ranges, n_ranges, reserved, n_reserved, map_size);
    page_map = phys_to_virt(map_pa);
    memset(page_map, 0, map_size);
    for (uint64_t i = 0; i < n; i++) {
        struct page *page = &page_map[i];

        atomic_init(&page->flags, PG_RESERVED);
        list_init(&page->lru);
        spin_init(&page->ptl, LOCK_ptl);
    }
    for (unsigned i = 0; i < n_ranges; i++) {
        uint64_t start = PAGE_ALIGN_UP(ranges[i].start);
        uint64_t end = ranges[i].end & PAGE_MASK;

        if (overlaps(start, end,
                     &(struct page_range){map_pa, map_pa + map_size})) {
            release_around(start, map_pa, reserved, 0, n_reserved);
            start = map_pa + map_size;
        }
        release_around(start, end, reserved, 0, n_reserved);
    }
}

/* --- single frames through the CPU's cache --- */

static struct page *cache_take(bool use_reserve)
{
    struct page_cpu_cache *cache = &caches[cpu_id()];
    uint32_t count = atomic_load_explicit(&cache->count, memory_order_relaxed);
    struct page *page;

    if (count == 0) {
        uint64_t floor = use_reserve ? 0 : PAGE_RESERVE;

        spin_lock(&buddy_lock);
        while (count < PCP_BATCH &&
               atomic_load_explicit(&buddy_free, memory_order_relaxed) >
                   floor) {
            page = buddy_take_locked(0);
            if (page == NULL) {
                break;
            }
            page_set(page, PG_CACHED);
            list_append(&cache->list, &page->lru);
            count++;
        }
        spin_unlock(&buddy_lock);
        if (count == 0) {
            return NULL;
        }
    }
    page = page_of_node(cache->list.next);
    list_remove(&page->lru);
    /* Ours alone: no need for an atomic operation. */
    atomic_store_explicit(&page->flags, 0, memory_order_relaxed);
    atomic_store_explicit(&cache->count, count - 1, memory_order_relaxed);
    return page;
}

static void cache_give(struct page *page)
{
    struct page_cpu_cache *cache = &caches[cpu_id()];
    uint32_t count = atomic_load_explicit(&cache->count, memory_order_relaxed);

    atomic_store_explicit(&page->flags, PG_CACHED, memory_order_relaxed);
    list_push(&cache->list, &page->lru);
    count++;
    if (count > PCP_HIGH) {
        spin_lock(&buddy_lock);
        for (unsigned i = 0; i < PCP_BATCH; i++, count--) {
            page = page_of_node(cache->list.prev);
            list_remove(&page->lru);
            page_clear(page, PG_CACHED);
            buddy_insert_locked(page, 0);
        }
        spin_unlock(&buddy_lock);
    }
    atomic_store_explicit(&cache->count, count, memory_order_relaxed);
}

static struct page *shared_take(void)
{
    struct page *page = NULL;
    uint32_t count;

    spin_lock(&shared.lock);
    count = atomic_load_explicit(&shared.count, memory_order_relaxed);
    if (count != 0) {
        page = page_of_node(shared.list.next);
        list_remove(&page->lru);
        atomic_store_explicit(&page->flags, 0, memory_order_relaxed);
        atomic_store_explicit(&shared.count, count - 1, memory_order_relaxed);
    }
    spin_unlock(&shared.lock);
    return page;
}

/* False: there are enough. */
static bool shared_give(struct page *page)
{
    uint32_t count;

    spin_lock(&shared.lock);
    count = atomic_load_explicit(&shared.count, memory_order_relaxed);
    if (count < SHARED_HIGH) {
        atomic_store_explicit(&page->flags, PG_CACHED, memory_order_relaxed);
        list_push(&shared.list, &page->lru);
        atomic_store_explicit(&shared.count, count + 1, memory_order_relaxed);
    }
    spin_unlock(&shared.lock);
    return count < SHARED_HIGH;
}

static struct page *take_one(bool use_reserve)
{
    struct page *page = NULL;

    if (atomic_load_explicit(&shared.count, memory_order_relaxed) != 0) {
        page = shared_take();
    }
    return page != NULL ? page : cache_take(use_reserve);
}

static struct page *take(unsigned order, bool use_reserve)
{
    struct page *page = NULL;
    uint64_t floor = use_reserve ? 0 : PAGE_RESERVE;

    if (order == 0) {
        return take_one(use_reserve);
    }
    spin_lock(&buddy_lock);
    if (atomic_load_explicit(&buddy_free, memory_order_relaxed) >=
        floor + (1UL << order)) {
        page = buddy_take_locked(order);
    }
    spin_unlock(&buddy_lock);
    return page;
}

struct page *page_alloc(unsigned order, unsigned flags)
{
    struct page *page;

    ASSERT(order <= PAGE_MAX_ORDER);
    page = take(order, flags & PAGE_ALLOC_RESERVE);
    for (unsigned tries = 0;
         page == NULL && (flags & PAGE_ALLOC_RECLAIM) && tries < 8; tries++) {
        if (reclaim_direct(32) == 0) {
            sched_yield();
        }
        page = take(order, flags & PAGE_ALLOC_RESERVE);
    }
    if (page == NULL) {
        return NULL;
    }
    if (atomic_load_explicit(&page->count, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&page->flags, memory_order_relaxed) != 0) {
        panic("frame 0x%lx from the free list is in use: flags 0x%x count %u",
              (unsigned long)page_to_phys(page),
              (unsigned)atomic_load(&page->flags),
              (unsigned)atomic_load(&page->count));
    }
    atomic_store_explicit(&page->count, 1, memory_order_relaxed);
    atomic_store_explicit(&page->mapcount, 0, memory_order_relaxed);
    page->mapping = NULL;
    page->index = 0;
    page->private = 0;
    if (flags & PAGE_ALLOC_ZERO) {
        memset(page_address(page), 0, PAGE_SIZE << order);
    }
    return page;
}

/* What free frames have in common. */
static void make_free(struct page *page, unsigned order)
{
    uint32_t flags = atomic_load_explicit(&page->flags, memory_order_relaxed);

    if (page_mapcount(page) != 0 ||
        (flags & (PG_LRU | PG_SWAPCACHE | PG_RESERVED | PG_FREE | PG_CACHED |
                  PG_LOCKED)) != 0 ||
        atomic_load_explicit(&page->count, memory_order_relaxed) > 1) {
        panic("freeing frame 0x%lx in use: flags 0x%x count %u mapcount %d",
              (unsigned long)page_to_phys(page), (unsigned)flags,
              (unsigned)atomic_load(&page->count), page_mapcount(page));
    }
    mm_debug_free(page, order);
    atomic_store_explicit(&page->flags, 0, memory_order_relaxed);
    atomic_store_explicit(&page->count, 0, memory_order_relaxed);
    page->mapping = NULL;
    if (PAGE_JUNK) {
        memset(page_address(page), 0x5a, PAGE_SIZE << order);
    }
}

void page_free_shared(struct page *page)
{
    make_free(page, 0);
    if (!shared_give(page)) {
        cache_give(page);
    }
}

void page_free(struct page *page, unsigned order)
{
    make_free(page, order);
    if (order == 0) {
        cache_give(page);
        return;
    }
    spin_lock(&buddy_lock);
    buddy_insert_locked(page, order);
    spin_unlock(&buddy_lock);
}

void *page_alloc_virt(unsigned order)
{
    struct page *page = page_alloc(order, PAGE_ALLOC_ZERO);

    return page == NULL ? NULL : page_address(page);
}

void page_free_virt(void *va, unsigned order)
{
    if (va != NULL) {
        page_free(virt_to_page(va), order);
    }
}

/* --- references and the page lock --- */

bool page_get_unless_zero(struct page *page)
{
    uint32_t count = atomic_load_explicit(&page->count, memory_order_relaxed);

    while (count != 0) {
        /* Acquire: the frame is ours from here; pairs with page_put(). */
        if (atomic_compare_exchange_weak_explicit(
                &page->count, &count, count + 1, memory_order_acquire,
                memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void page_put(struct page *page)
{
    uint32_t old =
        atomic_fetch_sub_explicit(&page->count, 1, memory_order_acq_rel);

    ASSERT(old != 0);
    if (old == 1) {
        lru_del_final(page);
        page_free(page, 0);
    }
}

static bool try_lock(struct page *page)
{
    return !(atomic_fetch_or_explicit(&page->flags, PG_LOCKED,
                                      memory_order_acquire) &
             PG_LOCKED);
}

bool page_trylock(struct page *page)
{
    if (!try_lock(page)) {
        return false;
    }
    lock_order_take(LOCK_page, 0);
    return true;
}

void page_lock(struct page *page)
{
    unsigned spins = 0;

    lock_order_take(LOCK_page, LOCK_ORDER_WAIT);
    while (!try_lock(page)) {
        if (++spins < 64) {
            cpu_relax();
        } else {
            sched_yield();
            spins = 0;
        }
    }
}

void page_unlock(struct page *page)
{
    /* Release: pairs with the acquire of try_lock(). */
    uint32_t old = atomic_fetch_and_explicit(&page->flags, ~(uint32_t)PG_LOCKED,
                                             memory_order_release);

    lock_order_drop(LOCK_page);
    ASSERT(old & PG_LOCKED);
}

uint64_t page_free_count(void)
{
    uint64_t n = atomic_load_explicit(&buddy_free, memory_order_relaxed) +
                 atomic_load_explicit(&shared.count, memory_order_relaxed);

    for (unsigned i = 0; i < cpu_count && i < MAX_CPUS; i++) {
        n += atomic_load_explicit(&caches[i].count, memory_order_relaxed);
    }
    return n;
}

uint64_t page_total_count(void)
{
    return pages_managed;
}
