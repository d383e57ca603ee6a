/* SPDX-License-Identifier: GPL-2.0-or-later */
/* LRU lists in shards; each shard's lock covers its lists and PG_LRU. */
#include "mm/lru.h"

#include "kernel/percpu.h"
#include "mm/page.h"

#define LRU_SHARDS 64

static struct lru_shard {
    struct spinlock lock;
    struct list inactive, active;
} CACHE_ALIGNED shards[LRU_SHARDS];

void lru_init(void)
{
    for (unsigned i = 0; i < LRU_SHARDS; i++) {
        spin_init(&shards[i].lock, LOCK_lru);
        list_init(&shards[i].inactive);
        list_init(&shards[i].active);
    }
}

static void add(struct page *page, bool active, bool tail)
{
    struct lru_shard *shard;

    page->shard = (uint16_t)(cpu_id() % LRU_SHARDS);
    shard = &shards[page->shard];
    spin_lock(&shard->lock);
    if (active) {
        page_set(page, PG_ACTIVE);
        list_push(&shard->active, &page->lru);
    } else {
        page_clear(page, PG_ACTIVE);
        if (tail) {
            list_append(&shard->inactive, &page->lru);
        } else {
            list_push(&shard->inactive, &page->lru);
        }
    }
    page_set(page, PG_LRU);
    spin_unlock(&shard->lock);
}

void lru_add(struct page *page)
{
    add(page, false, false);
}

void lru_putback(struct page *page, bool active)
{
    add(page, active, false);
    page_put(page);
}

bool lru_isolate(struct page *page)
{
    struct lru_shard *shard;
    bool ok = false;

    if (!page_test(page, PG_LRU)) {
        return false;
    }
    /* page->shard only changes while the page is on no list. */
    shard = &shards[page->shard];
    spin_lock(&shard->lock);
    if (page_test(page, PG_LRU) && shard == &shards[page->shard] &&
        page_get_unless_zero(page)) {
        list_remove(&page->lru);
        page_clear(page, PG_LRU);
        ok = true;
    }
    spin_unlock(&shard->lock);
    return ok;
}

void lru_deactivate(struct page *page)
{
    if (lru_isolate(page)) {
        add(page, false, true);
        page_put(page);
    }
}

void lru_mark_lazyfree(struct page *page)
{
    if (page_test(page, PG_SWAPCACHE) || !page_test(page, PG_SWAPBACKED)) {
        return;
    }
    if (lru_isolate(page)) {
        page_clear(page, PG_SWAPBACKED | PG_REFERENCED);
        add(page, false, true);
        page_put(page);
    }
}

void lru_del_final(struct page *page)
{
    struct lru_shard *shard;

    if (!page_test(page, PG_LRU)) {
        return;
    }
    shard = &shards[page->shard];
    spin_lock(&shard->lock);
    list_remove(&page->lru);
    page_clear(page, PG_LRU | PG_ACTIVE);
    spin_unlock(&shard->lock);
}

static unsigned isolate_from(struct lru_shard *shard, struct list *out,
                             unsigned max)
{
    unsigned n = 0, scan = max * 4;

    spin_lock(&shard->lock);
    if (list_empty(&shard->inactive)) {
        /* Age: half a scan's worth of the active list moves over. */
        for (unsigned i = 0; i < scan && !list_empty(&shard->active); i++) {
            struct page *page = page_of_node(shard->active.prev);

            list_remove(&page->lru);
            page_clear(page, PG_ACTIVE);
            list_push(&shard->inactive, &page->lru);
        }
    }
    while (n < max && scan-- > 0 && !list_empty(&shard->inactive)) {
        struct page *page = page_of_node(shard->inactive.prev);

        list_remove(&page->lru);
        if (page_get_unless_zero(page)) {
            page_clear(page, PG_LRU);
            list_append(out, &page->lru);
            n++;
        } else {
            /* Being freed; its last owner waits for our lock. */
            list_push(&shard->inactive, &page->lru);
        }
    }
    spin_unlock(&shard->lock);
    return n;
}

unsigned lru_isolate_cold(struct list *out, unsigned max)
{
    unsigned n = 0, first = cpu_id() % LRU_SHARDS;

    for (unsigned i = 0; i < LRU_SHARDS && n < max; i++) {
        n += isolate_from(&shards[(first + i) % LRU_SHARDS], out, max - n);
    }
    return n;
}
