/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The buddy allocator of each memory node, and how it gets its memory. */
#include "mm/buddy.h"

#include "kernel/panic.h"

#define WMARK_MIN_BYTES (128UL << 10)
#define WMARK_MAX_BYTES (256UL << 20)

static struct buddy {
    struct spinlock lock;
    struct list free_area[PAGE_MAX_ORDER + 1]; /* [lock] */
    _Atomic uint64_t free;                     /* [lock] frames in free_area */
    _Atomic uint64_t managed;                  /* [lock] frames ever given */
    _Atomic uint64_t wmarks[WMARKS];
} CACHE_ALIGNED buddies[MAX_NODES];

struct page *page_map;
uint64_t page_base_pfn, page_end_pfn;

_Static_assert(sizeof(struct page) == 64, "one cache line per frame");

static bool pfn_managed(uint64_t pfn)
{
    return pfn >= page_base_pfn && pfn < page_end_pfn;
}

static void insert_locked(struct buddy *b, struct page *page, unsigned order)
{
    uint64_t pfn = page_to_pfn(page);

    atomic_fetch_add_explicit(&b->free, 1UL << order, memory_order_relaxed);
    while (order < PAGE_MAX_ORDER) {
        uint64_t buddy_pfn = pfn ^ (1UL << order);
        struct page *half;

        if (!pfn_managed(buddy_pfn)) {
            break;
        }
        half = pfn_to_page(buddy_pfn);
        /* A frame's node never changes: this may look at another's. */
        if (half->node != page->node || !page_test(half, PG_FREE) ||
            half->order != order) {
            break;
        }
        list_remove(&half->lru);
        page_clear(half, PG_FREE);
        pfn &= ~(1UL << order);
        order++;
    }
    page = pfn_to_page(pfn);
    page->order = (uint8_t)order;
    page_set(page, PG_FREE);
    list_push(&b->free_area[order], &page->lru);
}

static struct page *take_locked(struct buddy *b, unsigned order)
{
    for (unsigned o = order; o <= PAGE_MAX_ORDER; o++) {
        struct page *page;

        if (list_empty(&b->free_area[o])) {
            continue;
        }
        page = page_of_node(b->free_area[o].next);
        list_remove(&page->lru);
        page_clear(page, PG_FREE);
        while (o > order) {
            struct page *half;

            o--;
            half = page + (1UL << o);
            half->order = (uint8_t)o;
            page_set(half, PG_FREE);
            list_push(&b->free_area[o], &half->lru);
        }
        page->order = (uint8_t)order;
        atomic_fetch_sub_explicit(&b->free, 1UL << order, memory_order_relaxed);
        return page;
    }
    return NULL;
}

/* --- watermarks --- */

static uint64_t square_root(uint64_t x)
{
    uint64_t root = 0;

    for (uint64_t bit = 1UL << 31; bit != 0; bit >>= 1) {
        if ((root | bit) * (root | bit) <= x) {
            root |= bit;
        }
    }
    return root;
}

/*
 * As Linux does: min is 4 times the root of all memory in KiB, shared out by
 * the nodes' sizes; low and high are a quarter of it apart, or a thousandth of
 * the node.
 */
static void update_wmarks(void)
{
    uint64_t total = page_total_count(), bytes, min_all;

    if (total == 0) {
        return;
    }
    bytes = square_root(total * (PAGE_SIZE / 1024) * 16) * 1024;
    bytes = bytes < WMARK_MIN_BYTES ? WMARK_MIN_BYTES : bytes;
    min_all = min_u64(bytes, WMARK_MAX_BYTES) / PAGE_SIZE;
    for (unsigned i = 0; i < MAX_NODES; i++) {
        struct buddy *b = &buddies[i];
        uint64_t managed =
            atomic_load_explicit(&b->managed, memory_order_relaxed);
        uint64_t min = min_all * managed / total;
        uint64_t step = min / 4 > managed / 1000 ? min / 4 : managed / 1000;

        atomic_store_explicit(&b->wmarks[WMARK_MIN], min, memory_order_relaxed);
        atomic_store_explicit(&b->wmarks[WMARK_LOW], min + step,
                              memory_order_relaxed);
        atomic_store_explicit(&b->wmarks[WMARK_HIGH], min + 2 * step,
                              memory_order_relaxed);
    }
}

uint64_t buddy_free(unsigned node)
{
    return atomic_load_explicit(&buddies[node].free, memory_order_relaxed);
}

uint64_t buddy_wmark(unsigned node, enum page_wmark mark)
{
    return atomic_load_explicit(&buddies[node].wmarks[mark],
                                memory_order_relaxed);
}

uint64_t buddy_managed(unsigned node)
{
    return atomic_load_explicit(&buddies[node].managed, memory_order_relaxed);
}

uint64_t page_total_count(void)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < MAX_NODES; i++) {
        total += buddy_managed(i);
    }
    return total;
}

uint64_t page_total_count_node(unsigned node)
{
    return buddy_managed(node);
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

/* Frames of one node. */
static void release_range(uint64_t start, uint64_t end)
{
    uint64_t pfn = start >> PAGE_SHIFT;
    uint64_t end_pfn = end >> PAGE_SHIFT;
    struct buddy *b = &buddies[pfn_to_page(pfn)->node];

    spin_lock(&b->lock);
    atomic_fetch_add_explicit(&b->managed, end_pfn - pfn, memory_order_relaxed);
    while (pfn < end_pfn) {
        unsigned order = 0;

        while (order < PAGE_MAX_ORDER && (pfn & ((2UL << order) - 1)) == 0 &&
               pfn + (2UL << order) <= end_pfn) {
            order++;
        }
        for (uint64_t i = pfn; i < pfn + (1UL << order); i++) {
            page_clear(pfn_to_page(i), PG_RESERVED);
        }
        insert_locked(b, pfn_to_page(pfn), order);
        pfn += 1UL << order;
    }
    spin_unlock(&b->lock);
}

void page_release_range(uint64_t start, uint64_t end)
{
    start = PAGE_ALIGN_UP(start);
    end &= PAGE_MASK;
    while (start < end) {
        uint64_t stop = start + PAGE_SIZE;

        while (stop < end &&
               phys_to_page(stop)->node == phys_to_page(start)->node) {
            stop += PAGE_SIZE;
        }
        release_range(start, stop);
        start = stop;
    }
    update_wmarks();
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

static void init_map(const struct page_range *range)
{
    uint64_t end = range->end >> PAGE_SHIFT;

    for (uint64_t pfn = range->start >> PAGE_SHIFT; pfn < end; pfn++) {
        pfn_to_page(pfn)->node = range->node;
    }
}

void page_init(const struct page_range *ranges, unsigned n_ranges,
               const struct page_range *reserved, unsigned n_reserved)
{
    uint64_t map_pa, map_size, n;

    for (unsigned node = 0; node < MAX_NODES; node++) {
        spin_init(&buddies[node].lock, LOCK_buddy);
        for (unsigned i = 0; i <= PAGE_MAX_ORDER; i++) {
            list_init(&buddies[node].free_area[i]);
        }
    }
    page_caches_init();
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
        init_map(&ranges[i]);
    }
    for (unsigned i = 0; i < n_ranges; i++) {
        uint64_t start = PAGE_ALIGN_UP(ranges[i].start);
        uint64_t end = ranges[i].end & PAGE_MASK;

        if (overlaps(start, end,
                     &(struct page_range){map_pa, map_pa + map_size, 0})) {
            release_around(start, map_pa, reserved, 0, n_reserved);
            start = map_pa + map_size;
        }
        release_around(start, end, reserved, 0, n_reserved);
    }
}

/* --- any CPU --- */

static bool leaves(const struct buddy *b, uint64_t frames, enum page_wmark mark)
{
    return atomic_load_explicit(&b->free, memory_order_relaxed) >=
           atomic_load_explicit(&b->wmarks[mark], memory_order_relaxed) +
               frames;
}

struct page *buddy_take(unsigned node, unsigned order, enum page_wmark mark)
{
    struct buddy *b = &buddies[node];
    struct page *page = NULL;

    if (!leaves(b, 1UL << order, mark)) {
        return NULL; /* mostly still so under the lock */
    }
    spin_lock(&b->lock);
    if (leaves(b, 1UL << order, mark)) {
        page = take_locked(b, order);
    }
    spin_unlock(&b->lock);
    return page;
}

unsigned buddy_take_cached(unsigned node, struct list *out, unsigned max,
                           enum page_wmark mark)
{
    struct buddy *b = &buddies[node];
    unsigned n = 0;

    if (!leaves(b, 1, mark)) {
        return 0;
    }
    spin_lock(&b->lock);
    for (; n < max && leaves(b, 1, mark); n++) {
        struct page *page = take_locked(b, 0);

        if (page == NULL) {
            break;
        }
        page_set(page, PG_CACHED);
        list_append(out, &page->lru);
    }
    spin_unlock(&b->lock);
    return n;
}

void buddy_give(struct page *page, unsigned order)
{
    struct buddy *b = &buddies[page->node];

    spin_lock(&b->lock);
    insert_locked(b, page, order);
    spin_unlock(&b->lock);
}

void buddy_give_cached(unsigned node, struct list *from, unsigned n)
{
    struct buddy *b = &buddies[node];

    spin_lock(&b->lock);
    for (; n > 0; n--) {
        struct page *page = page_of_node(from->prev);

        list_remove(&page->lru);
        page_clear(page, PG_CACHED);
        insert_locked(b, page, 0);
    }
    spin_unlock(&b->lock);
}
