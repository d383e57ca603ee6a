/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Swap slots and the swap cache. Each slot has a lock out of a hashed array; it
 * covers count, cache and where the data are. The data themselves are read and
 * written by whoever holds the page lock of the page in the cache.
 */
#include "mm/swap.h"

#include "kernel/annot.h"
#include "kernel/bootargs.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/smp.h"
#include "mm/compress.h"
#include "mm/counters.h"
#include "mm/lru.h"
#include "mm/memcg.h"
#include "mm/mm_debug.h"
#include "mm/page.h"
#include "mm/swap_store.h"

#define SLOT_LOCKS 128
#define SLOTS_PER_PAGE (PAGE_SIZE / sizeof(struct swap_slot))
#define SLOT_BATCH 32
#define SIZE_FILL 1 /* data is the contents themselves */

struct swap_slot {
    uint32_t count; /* [slot lock] */
    uint16_t size;  /* [page lock] bytes; SIZE_FILL; 0: nothing stored */
    uint16_t memcg; /* group that is charged for the slot */
    union {
        void *chunk;
        struct compress_fill fill;
        uint64_t next_free; /* [free_lock] */
    } data;
    struct page *cache; /* [slot lock] */
};

_Static_assert(sizeof(struct swap_slot) == 32, "they fill a page");

struct slot_cache {
    unsigned n;
    _Atomic int64_t used;       /* [own CPU writes] taken minus given here */
    uint64_t entry[SLOT_BATCH]; /* [own CPU] */
} CACHE_ALIGNED;

static struct {
    struct spinlock lock;
} CACHE_ALIGNED slot_locks[SLOT_LOCKS];

static struct swap_slot **slot_pages; /* [init] */
static uint64_t n_slots;              /* [init] */
static uint64_t slot_limit;           /* n_slots, but for tests */
static struct spinlock free_lock = SPINLOCK_INIT(LOCK_swap_free);
static uint64_t free_head; /* [free_lock] entry or 0 */
static uint64_t fresh;     /* [free_lock] slots never used begin here */
static struct slot_cache slot_caches[MAX_CPUS];
static struct compress_work *works[MAX_CPUS]; /* [own CPU] */

/* swap=off, or its size; as many pages as there is RAM if nobody says. */
static uint64_t slots_wanted(void)
{
    uint64_t all = page_total_count(), bytes;
    char buf[24];
    const char *value = bootargs_get("swap", buf, sizeof(buf));

    if (value == NULL) {
        return all;
    }
    if (strcmp(value, "off") == 0) {
        return 0;
    }
    if (!str_to_size(&value, &bytes) || *value != '\0') {
        printk("swap: swap=%s is not known, the default stays\n", value);
        return all;
    }
    return min_u64(bytes >> PAGE_SHIFT, 4 * all);
}

void swap_init(void)
{
    uint64_t n_pages;

    for (unsigned i = 0; i < SLOT_LOCKS; i++) {
        spin_init(&slot_locks[i].lock, LOCK_swap_slot);
    }
    swap_store_init();
    n_slots = slots_wanted();
    n_pages = (n_slots + SLOTS_PER_PAGE - 1) / SLOTS_PER_PAGE;
    slot_limit = n_slots;
    if (n_pages == 0) {
        return;
    }
    slot_pages = kmalloc(n_pages * sizeof(*slot_pages));
    ASSERT_MSG(slot_pages != NULL, "no memory for swap slots");
    for (uint64_t i = 0; i < n_pages; i++) {
        slot_pages[i] = page_alloc_virt(0);
        ASSERT_MSG(slot_pages[i] != NULL, "no memory for swap slots");
    }
}

static struct swap_slot *slot_of(uint64_t entry)
{
    ASSERT_MSG(entry != 0 && entry <= n_slots, "swap entry %lu of %lu",
               (unsigned long)entry, (unsigned long)n_slots);
    return &slot_pages[(entry - 1) / SLOTS_PER_PAGE]
                      [(entry - 1) % SLOTS_PER_PAGE];
}

static struct spinlock *slot_lock(uint64_t entry)
{
    struct spinlock *lock = &slot_locks[entry % SLOT_LOCKS].lock;

    spin_lock(lock);
    return lock;
}

/* --- free slots: a cache per CPU over one list --- */

static void used_add(struct slot_cache *cache, int64_t n)
{
    int64_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);

    atomic_store_explicit(&cache->used, used + n, memory_order_relaxed);
}

static uint64_t slot_take(void)
{
    struct slot_cache *cache = &slot_caches[cpu_id()];

    if (slot_limit < n_slots && swap_used() >= slot_limit) {
        return 0;
    }
    if (cache->n == 0) {
        spin_lock(&free_lock);
        while (cache->n < SLOT_BATCH / 2) {
            uint64_t entry = free_head;

            if (entry != 0) {
                free_head = slot_of(entry)->data.next_free;
            } else if (fresh < n_slots) {
                entry = ++fresh;
            } else {
                break;
            }
            cache->entry[cache->n++] = entry;
        }
        spin_unlock(&free_lock);
        if (cache->n == 0) {
            return 0;
        }
    }
    used_add(cache, 1);
    return cache->entry[--cache->n];
}

bool swap_has_room(uint16_t memcg)
{
    if ((slot_limit < n_slots && swap_used() >= slot_limit) ||
        memcg_swap_full(memcg)) {
        return false;
    }
    return slot_caches[cpu_id()].n != 0 ||
           __atomic_load_n(&free_head, __ATOMIC_RELAXED) != 0 ||
           __atomic_load_n(&fresh, __ATOMIC_RELAXED) < n_slots;
}

static void slot_give(uint64_t entry)
{
    struct slot_cache *cache = &slot_caches[cpu_id()];

    used_add(cache, -1);
    if (cache->n == SLOT_BATCH) {
        spin_lock(&free_lock);
        while (cache->n > SLOT_BATCH / 2) {
            uint64_t e = cache->entry[--cache->n];

            slot_of(e)->data.next_free = free_head;
            free_head = e;
        }
        spin_unlock(&free_lock);
    }
    cache->entry[cache->n++] = entry;
}

static void drop_data(struct swap_slot *slot)
{
    if (slot->size > SIZE_FILL) {
        swap_store_free(slot->data.chunk);
    }
    slot->size = 0;
}

/* Slot lock held; unlocks. Frees the slot if nothing refers to it. */
static void slot_unlock_put(struct swap_slot *slot, uint64_t entry,
                            struct spinlock *lock)
{
    bool dead = slot->count == 0 && slot->cache == NULL;

    if (dead) {
        drop_data(slot);
        memcg_uncharge_swap(slot->memcg);
    }
    spin_unlock(lock);
    if (dead) {
        slot_give(entry);
    }
}

/* --- use counts --- */

void swap_dup(uint64_t entry)
{
    struct swap_slot *slot = slot_of(entry);
    struct spinlock *lock = slot_lock(entry);

    ASSERT(slot->count != 0 || slot->cache != NULL);
    slot->count++;
    spin_unlock(lock);
}

void swap_free(uint64_t entry)
{
    struct swap_slot *slot = slot_of(entry);
    struct spinlock *lock = slot_lock(entry);
    struct page *page = NULL;

    ASSERT(slot->count != 0);
    slot->count--;
    if (slot->count == 0 && slot->cache != NULL &&
        page_mapcount(slot->cache) == 0) {
        page = slot->cache;
        page_get(page);
    }
    slot_unlock_put(slot, entry, lock);
    if (page != NULL) {
        swap_cache_try_drop(page);
        page_put(page);
    }
}

uint32_t swap_count(uint64_t entry)
{
    struct swap_slot *slot = slot_of(entry);
    struct spinlock *lock = slot_lock(entry);
    uint32_t count = slot->count;

    spin_unlock(lock);
    return count;
}

/* --- swap cache --- */

bool swap_cache_add(struct page *page)
{
    struct swap_slot *slot;
    struct spinlock *lock;
    uint64_t entry;

    if (!memcg_charge_swap(page->memcg)) {
        return false;
    }
    entry = slot_take();
    if (entry == 0) {
        memcg_uncharge_swap(page->memcg);
        return false;
    }
    slot = slot_of(entry);
    lock = slot_lock(entry);
    slot->count = 0;
    slot->size = 0;
    slot->memcg = page->memcg;
    slot->cache = page;
    page_get(page);
    page->private = entry;
    page_set(page, PG_SWAPCACHE);
    spin_unlock(lock);
    return true;
}

bool swap_cache_holds(const struct page *page, uint64_t entry)
{
    return page_test(page, PG_SWAPCACHE) && page->private == entry;
}

void swap_cache_delete(struct page *page)
{
    uint64_t entry = page->private;
    struct swap_slot *slot = slot_of(entry);
    struct spinlock *lock = slot_lock(entry);

    ASSERT(slot->cache == page);
    slot->cache = NULL;
    page->private = 0;
    page_clear(page, PG_SWAPCACHE);
    slot_unlock_put(slot, entry, lock);
    page_put(page);
}

bool swap_cache_remove_last(struct page *page)
{
    uint64_t entry = page->private;
    struct swap_slot *slot = slot_of(entry);
    struct spinlock *lock = slot_lock(entry);
    uint32_t expected = 2;

    /*
     * New references come from the slot (under its lock), from the LRU (the
     * page is isolated) or from a PTE (it is unmapped): none can appear now.
     */
    if (page_test(page, PG_DIRTY) ||
        !atomic_compare_exchange_strong_explicit(&page->count, &expected, 0,
                                                 memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        spin_unlock(lock);
        return false;
    }
    slot->cache = NULL;
    page->private = 0;
    page_clear(page, PG_SWAPCACHE);
    slot_unlock_put(slot, entry, lock);
    return true;
}

bool swap_cache_replace(struct page *page, struct page *to)
{
    uint64_t entry = page->private;
    struct swap_slot *slot = slot_of(entry);
    struct spinlock *lock = slot_lock(entry);

    ASSERT(slot->cache == page);
    /* As above; acquire: whoever let go is done with the contents. */
    if (atomic_load_explicit(&page->count, memory_order_acquire) != 2) {
        spin_unlock(lock);
        return false;
    }
    to->private = entry;
    page_set(to, PG_SWAPCACHE);
    page_get(to);
    slot->cache = to;
    page->private = 0;
    page_clear(page, PG_SWAPCACHE);
    spin_unlock(lock);
    page_put(page); /* the cache's */
    return true;
}

void swap_cache_free_use(struct page *page)
{
    uint64_t entry = page->private;
    struct swap_slot *slot = slot_of(entry);
    struct spinlock *lock = slot_lock(entry);
    bool last;

    ASSERT(slot->cache == page && slot->count != 0);
    last = --slot->count == 0;
    if (last) {
        page_set(page, PG_DIRTY);
        slot->cache = NULL;
        page->private = 0;
        page_clear(page, PG_SWAPCACHE);
    }
    slot_unlock_put(slot, entry, lock);
    if (last) {
        page_put(page);
    }
}

/* Nobody maps the page and nobody names its slot; certain if it is locked. */
static bool is_orphan(struct page *page)
{
    uint64_t entry = __atomic_load_n(&page->private, __ATOMIC_RELAXED);

    return page_test(page, PG_SWAPCACHE) && page_mapcount(page) == 0 &&
           entry != 0 && swap_count(entry) == 0;
}

/*
 * Whoever lets go of a page last looks here, and goes away if the page is
 * locked. So everybody looks who unlocks a page that is not mapped by himself
 * for certain, this function too: what was no orphan under the lock may have
 * become one before it was free.
 */
void swap_cache_try_drop(struct page *page)
{
    while (is_orphan(page) && page_trylock(page)) {
        if (is_orphan(page)) {
            page_clear(page, PG_DIRTY);
            swap_cache_delete(page);
        }
        page_unlock(page);
    }
}

void swap_cache_unlock_put(struct page *page)
{
    page_unlock(page);
    swap_cache_try_drop(page);
    page_put(page);
}

/* --- data --- */

void swap_cpu_init(void)
{
    works[cpu_id()] = kmalloc(sizeof(*works[0]));
}

bool swap_write(struct page *page)
{
    struct swap_slot *slot = slot_of(page->private);
    const void *src = page_address(page);
    struct compress_work *work;
    size_t size = 0;
    void *chunk;
    struct compress_fill fill;

    mm_debug_write_out(page);
    annot_frame(ANNOT_REG_IO_BEGIN, page_to_phys(page), 0);
    drop_data(slot);
    counter_inc(swap_out);
    if (compress_is_fill(src, &fill)) {
        counter_inc(swap_same_filled);
        slot->data.fill = fill;
        slot->size = SIZE_FILL;
        return true;
    }
    work = works[cpu_id()]; /* not preempted until the copy is made */
    if (work != NULL) {
        size = compress_page(work, src, PAGE_SIZE * 3 / 4);
    }
    chunk = swap_store_alloc(size != 0 ? size : PAGE_SIZE);
    if (chunk == NULL) {
        return false;
    }
    if (size != 0) {
        memcpy(chunk, work->out, size);
    } else {
        size = PAGE_SIZE; /* does not compress: as it is */
        memcpy(chunk, src, size);
    }
    slot->data.chunk = chunk;
    slot->size = (uint16_t)size;
    return true;
}

static void read_data(const struct swap_slot *slot, void *dst)
{
    if (slot->size == SIZE_FILL) {
        compress_fill_page(&slot->data.fill, dst);
    } else if (slot->size == PAGE_SIZE) {
        memcpy(dst, slot->data.chunk, PAGE_SIZE);
    } else if (slot->size == 0 ||
               !compress_expand(slot->data.chunk, slot->size, dst)) {
        panic("swap data of %u bytes do not expand", slot->size);
    }
}

/* Charged to whoever wants it back, as Linux does without swap accounting. */
static struct page *user_page(unsigned flags)
{
    struct page *page = page_alloc(0, flags);

    if (page != NULL && !memcg_charge(page, flags)) {
        page_free(page, 0);
        return NULL;
    }
    return page;
}

struct page *swap_in_page(uint64_t entry, bool *out_no_memory)
{
    struct swap_slot *slot = slot_of(entry);
    struct page *page = NULL, *fresh_page = NULL;
    struct spinlock *lock;

    /* Mostly it must be read in: a guess spares looking twice. */
    if (__atomic_load_n(&slot->cache, __ATOMIC_RELAXED) == NULL) {
        fresh_page = user_page(0);
        if (fresh_page != NULL) {
            page_trylock(fresh_page);
        }
    }
    for (;;) {
        lock = slot_lock(entry);
        page = slot->cache;
        if (page != NULL) {
            page_get(page); /* alive: the cache has a reference */
            break;
        }
        if (slot->count == 0) {
            break; /* stale entry */
        }
        if (fresh_page != NULL) {
            slot->cache = fresh_page;
            page_get(fresh_page);
            fresh_page->private = entry;
            page_set(fresh_page, PG_SWAPCACHE);
            spin_unlock(lock);
            read_data(slot, page_address(fresh_page));
            counter_inc(swap_in);
            page_set(fresh_page, PG_UPTODATE);
            page_unlock(fresh_page);
            lru_add(fresh_page);
            return fresh_page;
        }
        spin_unlock(lock);
        fresh_page = user_page(PAGE_ALLOC_RECLAIM);
        if (fresh_page == NULL) {
            *out_no_memory = true;
            return NULL;
        }
        page_trylock(fresh_page);
    }
    spin_unlock(lock);
    if (fresh_page != NULL) {
        page_unlock(fresh_page);
        page_put(fresh_page);
    }
    return page;
}

uint64_t swap_total(void)
{
    return n_slots;
}

void swap_limit(uint64_t slots)
{
    slot_limit = slots < n_slots ? slots : n_slots;
}

uint64_t swap_used(void)
{
    int64_t used = 0;

    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        used +=
            atomic_load_explicit(&slot_caches[cpu].used, memory_order_relaxed);
    }
    return (uint64_t)used;
}
