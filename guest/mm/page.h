/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page frames: one struct page per frame of RAM, a buddy allocator per memory
 * node with a cache of single frames per CPU, and small objects (kmalloc).
 *
 * A node has three watermarks, in frames of its buddy allocator. Allocations
 * leave low free while any node has more; then they wake the background
 * reclaimers, which free up to high, and go down to min; below it only reclaim
 * itself may allocate.
 *
 * Thread or idle context, never an interrupt handler. The kernel is preempted
 * only at preempt_point(), so a CPU's cache needs no lock.
 */
#ifndef MM_PAGE_H
#define MM_PAGE_H

#include <stdatomic.h>

#include "kernel/lib.h"
#include "kernel/lock.h"
#include "kernel/types.h"

#define PAGE_ALIGN_UP(x) ALIGN_UP((uint64_t)(x), PAGE_SIZE)

/* Largest block: 2^10 frames, 4 MiB. */
#define PAGE_MAX_ORDER 10
#define MAX_NODES 2

/* struct page flags; changed with atomic OR and AND only. */
enum page_flag {
    PG_LOCKED = 1 << 0,     /* page_lock() */
    PG_DIRTY = 1 << 1,      /* newer than its copy in swap */
    PG_UPTODATE = 1 << 2,   /* contents are valid */
    PG_SWAPCACHE = 1 << 3,  /* page->private is a swap entry */
    PG_ANON = 1 << 4,       /* page->mapping is a struct anon_family */
    PG_SHMEM = 1 << 5,      /* page->mapping is a struct shmem */
    PG_LRU = 1 << 6,        /* on an LRU list */
    PG_ACTIVE = 1 << 7,     /* ... the active one */
    PG_REFERENCED = 1 << 8, /* second chance */
    PG_RESERVED = 1 << 9,   /* never given to or by the allocator */
    PG_FREE = 1 << 10,      /* head of a free block */
    PG_TABLE = 1 << 11,     /* a page table; page->ptl is its lock */
    PG_SLAB = 1 << 12,      /* holds small objects */
    PG_ICACHE = 1 << 13,    /* instruction caches have seen the contents */
    PG_CACHED = 1 << 14,    /* in a CPU's cache of free frames */
    /* Goes to swap; PG_ANON without it: MADV_FREE, thrown away while clean */
    PG_SWAPBACKED = 1 << 15,
};

/*
 * 64 bytes. Lock order: page lock, then rmap lock (shmem or anon_family), then
 * PTL, then LRU shard / swap slot lock.
 */
struct page {
    _Atomic uint32_t flags;   /* enum page_flag */
    _Atomic uint32_t count;   /* references; 0 = free */
    _Atomic int32_t mapcount; /* user PTEs that map it */
    uint8_t order;            /* of the block it heads */
    uint8_t node;             /* [init] memory node */
    uint16_t memcg;           /* group it is charged to; 0: the root */
    struct list lru;          /* LRU, free list or the owner's private list */
    void *mapping;       /* struct anon_family or struct shmem; slab class */
    uint64_t index;      /* page offset in the mapping */
    uint64_t private;    /* swap entry, slab free count */
    struct spinlock ptl; /* page-table lock when PG_TABLE */
};

/* A range of physical memory, [start, end). */
struct page_range {
    uint64_t start, end;
    uint8_t node; /* of RAM */
};

extern struct page *page_map; /* struct page of frame page_base_pfn */
extern uint64_t page_base_pfn, page_end_pfn;

static inline void *phys_to_virt(uint64_t pa)
{
    return (void *)(pa + LINEAR_BASE);
}

/* Only for addresses of the linear map. */
static inline uint64_t virt_to_phys(const void *va)
{
    return (uint64_t)(uintptr_t)va - LINEAR_BASE;
}

static inline struct page *pfn_to_page(uint64_t pfn)
{
    return page_map + (pfn - page_base_pfn);
}

static inline uint64_t page_to_pfn(const struct page *page)
{
    return (uint64_t)(page - page_map) + page_base_pfn;
}

static inline uint64_t page_to_phys(const struct page *page)
{
    return page_to_pfn(page) << PAGE_SHIFT;
}

static inline struct page *phys_to_page(uint64_t pa)
{
    return pfn_to_page(pa >> PAGE_SHIFT);
}

static inline void *page_address(const struct page *page)
{
    return phys_to_virt(page_to_phys(page));
}

static inline struct page *virt_to_page(const void *va)
{
    return phys_to_page(virt_to_phys(va));
}

/* --- boot, one CPU --- */

/*
 * ranges: all RAM, sorted, not overlapping. reserved: what must not be
 * allocated (kernel image, device tree, initrd), any order. Places page_map
 * itself in the first range that has room. Needs the linear map.
 */
void page_init(const struct page_range *ranges, unsigned n_ranges,
               const struct page_range *reserved, unsigned n_reserved);
/* Gives [start, end) back, e.g. the initrd after it was unpacked. */
void page_release_range(uint64_t start, uint64_t end);

/* --- any CPU, thread context --- */

enum page_alloc_flag {
    PAGE_ALLOC_ZERO = 1,     /* fill with zeroes */
    PAGE_ALLOC_RECLAIM = 2,  /* reclaim if there is none: may sleep */
    PAGE_ALLOC_RESERVE = 4,  /* may dip into the reserve (reclaim itself) */
    PAGE_ALLOC_THISNODE = 8, /* of this node or none */
};

/*
 * fail_page=INTERVAL[,TIMES] on the command line: every INTERVALth allocation
 * for a process's call or fault fails, TIMES times or without end, as if there
 * were no memory. Reclaim, kernel threads and what begins the first process are
 * spared, and a fault tries again instead of killing the process, as Linux
 * does. INTERVAL is 2 at least.
 */
void page_fail_init(void); /* the first process is about to run */
/* Was the last failure for the current task injected? Asked once. */
bool page_fail_retry(void);
/* 2^order frames with count 1, or NULL. Near this CPU if there are any. */
struct page *page_alloc(unsigned order, unsigned flags);
/* The same, of the node if it has any, else of the others. */
struct page *page_alloc_node(unsigned node, unsigned order, unsigned flags);
/* The block must have count 0 or 1 and no mapping. */
void page_free(struct page *page, unsigned order);
/* The block's frames become frames of their own, with count 1 each. */
void page_split_block(struct page *page, unsigned order);
/*
 * The same for one frame that reclaim won: the next allocation of one frame on
 * any CPU gets it, the last one freed first.
 */
void page_free_shared(struct page *page);

/* The linear-map address of 2^order zeroed frames, or NULL. */
void *page_alloc_virt(unsigned order);
void page_free_virt(void *va, unsigned order);

/* References of an order-0 frame. page_put frees it at zero. */
static inline void page_get(struct page *page)
{
    atomic_fetch_add_explicit(&page->count, 1, memory_order_relaxed);
}
bool page_get_unless_zero(struct page *page);
void page_put(struct page *page);

/*
 * The page lock (PG_LOCKED): may be held over reclaim and swap I/O, so a
 * waiter yields the CPU. Never with a spinlock held.
 */
bool page_trylock(struct page *page);
void page_lock(struct page *page);
void page_unlock(struct page *page);

static inline bool page_test(const struct page *page, uint32_t flag)
{
    return atomic_load_explicit(&page->flags, memory_order_relaxed) & flag;
}
/* A load first: mostly there is nothing to do, and atomics are dear. */
static inline void page_set(struct page *page, uint32_t flags)
{
    if ((atomic_load_explicit(&page->flags, memory_order_relaxed) & flags) !=
        flags) {
        atomic_fetch_or_explicit(&page->flags, flags, memory_order_relaxed);
    }
}
static inline void page_clear(struct page *page, uint32_t flags)
{
    if (page_test(page, flags)) {
        atomic_fetch_and_explicit(&page->flags, ~flags, memory_order_relaxed);
    }
}
static inline bool page_test_and_clear(struct page *page, uint32_t flag)
{
    return page_test(page, flag) &&
           (atomic_fetch_and_explicit(&page->flags, ~flag,
                                      memory_order_relaxed) &
            flag);
}
/* MADV_FREE and not known to be written since. */
static inline bool page_is_lazyfree(const struct page *page)
{
    return (atomic_load_explicit(&page->flags, memory_order_relaxed) &
            (PG_ANON | PG_SWAPBACKED)) == PG_ANON;
}
static inline int page_mapcount(const struct page *page)
{
    return atomic_load_explicit(&page->mapcount, memory_order_relaxed);
}

/* Free frames now, all caches included (exact when nobody allocates). */
uint64_t page_free_count(void);
uint64_t page_free_count_node(unsigned node);
/* Frames the allocator was ever given. */
uint64_t page_total_count(void);
uint64_t page_total_count_node(unsigned node);

/* --- small objects, 16 bytes to 2 MiB; zeroed; NULL when out of memory --- */
void *kmalloc(size_t size);
void kfree(void *object); /* NULL is fine */

static inline struct page *page_of_node(struct list *node)
{
    return list_entry(node, struct page, lru);
}

#endif
