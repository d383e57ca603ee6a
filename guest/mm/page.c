/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page frames for everybody: a cache of single frames per CPU and node, so that
 * a node's lock is taken once per PCP_BATCH frames, over the blocks of buddy.c.
 * Frames that reclaim won are shared by all CPUs: somebody waits for them.
 * Also references and the page lock.
 * Depends on lock, percpu; reclaims through vmscan.h when asked to.
 */
#include "mm/page.h"

#include "kernel/annot.h"
#include "kernel/bootargs.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "mm/buddy.h"
#include "mm/lru.h"
#include "mm/memcg.h"
#include "mm/mm_debug.h"
#include "mm/node.h"
#include "mm/vmscan.h"

#define PCP_BATCH 32
#define PCP_HIGH 96
#define SHARED_HIGH 64
#define RECLAIM_TARGET 32U /* frames a direct reclaim */

/* Set to fill freed frames with junk (debugging). */
#ifndef PAGE_JUNK
#define PAGE_JUNK 0
#endif

struct page_cpu_cache {
    struct list list;       /* [own CPU] */
    _Atomic uint32_t count; /* [own CPU writes] others only add up */
} CACHE_ALIGNED;

static struct page_cpu_cache caches[MAX_CPUS][MAX_NODES];
static struct page_shared {
    struct spinlock lock;
    struct list list;       /* [lock] a stack */
    _Atomic uint32_t count; /* [lock], read without */
} CACHE_ALIGNED shared[MAX_NODES];

void page_caches_init(void)
{
    for (unsigned node = 0; node < MAX_NODES; node++) {
        spin_init(&shared[node].lock, LOCK_page_shared);
        list_init(&shared[node].list);
        for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
            list_init(&caches[cpu][node].list);
        }
    }
}

/* --- single frames through the CPU's cache --- */

static struct page *cache_take(unsigned node, enum page_wmark mark)
{
    struct page_cpu_cache *cache = &caches[cpu_id()][node];
    uint32_t count = atomic_load_explicit(&cache->count, memory_order_relaxed);
    struct page *page;

    if (count == 0) {
        count = buddy_take_cached(node, &cache->list, PCP_BATCH, mark);
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
    struct page_cpu_cache *cache = &caches[cpu_id()][page->node];
    uint32_t count = atomic_load_explicit(&cache->count, memory_order_relaxed);

    atomic_store_explicit(&page->flags, PG_CACHED, memory_order_relaxed);
    list_push(&cache->list, &page->lru);
    count++;
    if (count > PCP_HIGH) {
        buddy_give_cached(page->node, &cache->list, PCP_BATCH);
        count -= PCP_BATCH;
    }
    atomic_store_explicit(&cache->count, count, memory_order_relaxed);
}

static struct page *shared_take(struct page_shared *s)
{
    struct page *page = NULL;
    uint32_t count;

    spin_lock(&s->lock);
    count = atomic_load_explicit(&s->count, memory_order_relaxed);
    if (count != 0) {
        page = page_of_node(s->list.next);
        list_remove(&page->lru);
        atomic_store_explicit(&page->flags, 0, memory_order_relaxed);
        atomic_store_explicit(&s->count, count - 1, memory_order_relaxed);
    }
    spin_unlock(&s->lock);
    return page;
}

/* False: there are enough. */
static bool shared_give(struct page *page)
{
    struct page_shared *s = &shared[page->node];
    uint32_t count;

    spin_lock(&s->lock);
    count = atomic_load_explicit(&s->count, memory_order_relaxed);
    if (count < SHARED_HIGH) {
        atomic_store_explicit(&page->flags, PG_CACHED, memory_order_relaxed);
        list_push(&s->list, &page->lru);
        atomic_store_explicit(&s->count, count + 1, memory_order_relaxed);
    }
    spin_unlock(&s->lock);
    return count < SHARED_HIGH;
}

static struct page *take(unsigned node, unsigned order, enum page_wmark mark)
{
    struct page *page = NULL;

    if (order != 0) {
        return buddy_take(node, order, mark);
    }
    if (atomic_load_explicit(&shared[node].count, memory_order_relaxed) != 0) {
        page = shared_take(&shared[node]);
    }
    return page != NULL ? page : cache_take(node, mark);
}

/* Of the node, then of those behind it. */
static struct page *take_near(unsigned node, unsigned order, unsigned flags,
                              enum page_wmark mark)
{
    unsigned n = flags & PAGE_ALLOC_THISNODE ? 1 : nodes_count();

    for (unsigned i = 0; i < n; i++) {
        struct page *page = take((node + i) % nodes_count(), order, mark);

        if (page != NULL) {
            return page;
        }
    }
    return NULL;
}

/* No node has more than its low watermark free. */
static struct page *take_slow(unsigned node, unsigned order, unsigned flags)
{
    enum page_wmark mark = flags & PAGE_ALLOC_RESERVE ? WMARK_NONE : WMARK_MIN;
    struct vmscan_retries retries = {0};
    struct page *page;

    kswapd_wake(node, flags & PAGE_ALLOC_THISNODE);
    page = take_near(node, order, flags, mark);
    if (!(flags & PAGE_ALLOC_RECLAIM) || current()->tlb_ubc.in_reclaim) {
        return page;
    }
    while (page == NULL &&
           vmscan_again(&retries, vmscan_direct(RECLAIM_TARGET << order))) {
        page = take_near(node, order, flags, mark);
    }
    return page;
}

/* --- fail_page=INTERVAL[,TIMES]: page.h --- */

static struct {
    uint64_t interval; /* [init] 0: off */
    _Atomic uint64_t asked;
    _Atomic int64_t times; /* left; below 0: without end */
} fail_page = {.times = -1};

void page_fail_init(void)
{
    char value[32], *comma;
    uint64_t times;

    if (bootargs_get("fail_page", value, sizeof(value)) == NULL) {
        return;
    }
    comma = strchr(value, ',');
    if (comma != NULL) {
        *comma++ = '\0';
    }
    if (!str_to_u64(value, &fail_page.interval) || fail_page.interval < 2 ||
        (comma != NULL && !str_to_u64(comma, &times))) {
        fail_page.interval = 0;
        printk("fail_page: INTERVAL[,TIMES], from 2 on; nothing fails\n");
    } else if (comma != NULL) {
        atomic_store(&fail_page.times, (int64_t)times);
    }
}

/* Of a program's calls and faults only: they can be told. */
static bool fails_now(unsigned flags)
{
    if (likely(fail_page.interval == 0) || (flags & PAGE_ALLOC_RESERVE) ||
        current()->process == NULL || current()->tlb_ubc.in_reclaim ||
        (atomic_fetch_add_explicit(&fail_page.asked, 1, memory_order_relaxed) +
         1) % fail_page.interval !=
            0) {
        return false;
    }
    if (atomic_load(&fail_page.times) >= 0) {
        int64_t left = atomic_load(&fail_page.times);

        while (left > 0 && !atomic_compare_exchange_weak(&fail_page.times,
                                                         &left, left - 1)) {
        }
        if (left == 0) {
            return false;
        }
    }
    current()->page_failed = true;
    return true;
}

bool page_fail_retry(void)
{
    bool failed = current()->page_failed;

    current()->page_failed = false;
    return failed;
}

struct page *page_alloc_node(unsigned node, unsigned order, unsigned flags)
{
    struct page *page;

    ASSERT(order <= PAGE_MAX_ORDER && node < nodes_count());
    if (unlikely(fails_now(flags))) {
        return NULL;
    }
    page = take_near(node, order, flags, WMARK_LOW);
    if (page == NULL) {
        page = take_slow(node, order, flags);
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
    page->memcg = 0;
    if (flags & PAGE_ALLOC_ZERO) {
        memset(page_address(page), 0, PAGE_SIZE << order);
    }
    return page;
}

struct page *page_alloc(unsigned order, unsigned flags)
{
    return page_alloc_node(node_of_cpu(cpu_id()), order, flags);
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
    annot_frame(ANNOT_REG_FRAME_FREE, page_to_phys(page), order);
    if (page->memcg != 0) {
        memcg_uncharge(page, order);
    }
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
    buddy_give(page, order);
}

void page_split_block(struct page *page, unsigned order)
{
    for (unsigned i = 0; i < 1U << order; i++) {
        struct page *frame = &page[i];

        ASSERT(atomic_load_explicit(&frame->flags, memory_order_relaxed) == 0);
        atomic_store_explicit(&frame->count, 1, memory_order_relaxed);
        atomic_store_explicit(&frame->mapcount, 0, memory_order_relaxed);
        frame->order = 0;
        frame->mapping = NULL;
        frame->index = 0;
        frame->private = 0;
    }
    memcg_split(page, 1U << order);
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

uint64_t page_free_count_node(unsigned node)
{
    uint64_t n = buddy_free(node) + atomic_load_explicit(&shared[node].count,
                                                         memory_order_relaxed);

    for (unsigned i = 0; i < cpu_count && i < MAX_CPUS; i++) {
        n += atomic_load_explicit(&caches[i][node].count, memory_order_relaxed);
    }
    return n;
}

uint64_t page_free_count(void)
{
    uint64_t n = 0;

    for (unsigned node = 0; node < nodes_count(); node++) {
        n += page_free_count_node(node);
    }
    return n;
}
