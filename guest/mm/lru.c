/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The LRU lists; each lruvec's lock covers its lists and PG_LRU. */
#include "mm/lru.h"

#include "kernel/sched.h"
#include "mm/counters.h"
#include "mm/like.h"
#include "mm/memcg.h"
#include "mm/page.h"
#include "mm/rmap.h"
#include "mm/swap.h"

/* Pages whose use is looked up between two holds of the lock. */
#define AGE_BATCH 32

enum lru_place {
    LRU_PLACE_NEW,    /* used for the first time */
    LRU_PLACE_ACTIVE, /* used again */
    LRU_PLACE_KEEP,   /* not used enough */
    LRU_PLACE_COLD,   /* next to go */
};

void lru_init(struct lruvec *v)
{
    spin_init(&v->lock, LOCK_lru);
    for (unsigned i = 0; i < LRU_GENS; i++) {
        list_init(&v->lists[i]);
    }
    v->min_gen = 0;
    v->max_gen = LRU_GENS - 1;
}

static struct lruvec *lruvec_of(const struct page *page)
{
    return &memcg_of(page)->lruvecs[page->node];
}

uint64_t lru_size(const struct lruvec *v)
{
    return atomic_load_explicit(&v->n[LRU_INACTIVE], memory_order_relaxed) +
           atomic_load_explicit(&v->n[LRU_ACTIVE], memory_order_relaxed);
}

static struct list *gen_list(struct lruvec *v, uint64_t gen)
{
    return &v->lists[gen % LRU_GENS];
}

/* Lock held. PG_ACTIVE says which count the page is in; generations: never. */
static void count(struct lruvec *v, const struct page *page, int64_t sign)
{
    _Atomic uint64_t *n = &v->n[page_test(page, PG_ACTIVE)];

    atomic_store_explicit(n,
                          atomic_load_explicit(n, memory_order_relaxed) +
                              (uint64_t)(sign * (int64_t)(1UL << page->order)),
                          memory_order_relaxed);
}

static void insert_classic(struct lruvec *v, struct page *page,
                           enum lru_place place)
{
    if (place == LRU_PLACE_ACTIVE) {
        page_set(page, PG_ACTIVE);
        list_push(&v->lists[LRU_ACTIVE], &page->lru);
        return;
    }
    page_clear(page, PG_ACTIVE);
    if (place == LRU_PLACE_COLD) {
        list_append(&v->lists[LRU_INACTIVE], &page->lru);
    } else {
        list_push(&v->lists[LRU_INACTIVE], &page->lru);
    }
}

static void insert_gen(struct lruvec *v, struct page *page,
                       enum lru_place place)
{
    page_clear(page, PG_ACTIVE);
    switch (place) {
    case LRU_PLACE_NEW:
    case LRU_PLACE_ACTIVE:
        list_push(gen_list(v, v->max_gen), &page->lru);
        break;
    case LRU_PLACE_KEEP: /* there are always two */
        list_push(gen_list(v, v->min_gen + 1), &page->lru);
        break;
    case LRU_PLACE_COLD:
        list_append(gen_list(v, v->min_gen), &page->lru);
        break;
    }
}

static void add(struct page *page, enum lru_place place)
{
    struct lruvec *v = lruvec_of(page);

    spin_lock(&v->lock);
    if (mm_like.mglru_lists) {
        insert_gen(v, page, place);
    } else {
        insert_classic(v, page, place);
    }
    count(v, page, 1);
    page_set(page, PG_LRU);
    spin_unlock(&v->lock);
}

/* Lock held. */
static void take_off(struct lruvec *v, struct page *page)
{
    list_remove(&page->lru);
    page_clear(page, PG_LRU);
    count(v, page, -1);
}

void lru_add(struct page *page)
{
    add(page, LRU_PLACE_NEW);
}

void lru_putback(struct page *page, bool active)
{
    add(page, active ? LRU_PLACE_ACTIVE : LRU_PLACE_KEEP);
    page_put(page);
}

bool lru_isolate(struct page *page)
{
    struct lruvec *v;
    bool ok = false;

    if (!page_test(page, PG_LRU)) {
        return false;
    }
    /* The group only changes while the page is on no list. */
    v = lruvec_of(page);
    spin_lock(&v->lock);
    if (page_test(page, PG_LRU) && v == lruvec_of(page) &&
        page_get_unless_zero(page)) {
        take_off(v, page);
        ok = true;
    }
    spin_unlock(&v->lock);
    return ok;
}

void lru_deactivate(struct page *page)
{
    if (lru_isolate(page)) {
        add(page, LRU_PLACE_COLD);
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
        add(page, LRU_PLACE_COLD);
        page_put(page);
    }
}

void lru_del_final(struct page *page)
{
    struct lruvec *v;

    if (!page_test(page, PG_LRU)) {
        return;
    }
    v = lruvec_of(page);
    spin_lock(&v->lock);
    take_off(v, page);
    page_clear(page, PG_ACTIVE);
    spin_unlock(&v->lock);
}

/* Lock held. Up to max pages from the cold end of a list. */
static unsigned isolate_from(struct lruvec *v, struct list *from,
                             struct list *out, unsigned max)
{
    unsigned n = 0;

    for (unsigned scan = max * 4; n < max && scan > 0 && !list_empty(from);
         scan--) {
        struct page *page = page_of_node(from->prev);

        if (page_get_unless_zero(page)) {
            take_off(v, page);
            list_append(out, &page->lru);
            n++;
        } else {
            /* Being freed; its last owner waits for our lock. */
            list_remove(&page->lru);
            list_push(from, &page->lru);
        }
    }
    return n;
}

unsigned lru_isolate_list(struct lruvec *v, unsigned list, struct list *out,
                          unsigned max)
{
    unsigned n;

    spin_lock(&v->lock);
    n = isolate_from(v, &v->lists[list], out, max);
    spin_unlock(&v->lock);
    return n;
}

static bool list_is_active(const struct lruvec *v, unsigned i)
{
    if (!mm_like.mglru_lists) {
        return i == LRU_ACTIVE;
    }
    for (unsigned k = 0; k < LRU_MIN_GENS; k++) {
        if ((v->max_gen - k) % LRU_GENS == i) {
            return true;
        }
    }
    return false;
}

void lru_count(struct lruvec *v, struct lru_stat *out)
{
    *out = (struct lru_stat){0};
    spin_lock(&v->lock);
    for (unsigned i = 0; i < LRU_GENS; i++) {
        uint64_t *n = list_is_active(v, i) ? &out->active : &out->inactive;
        struct list *at;

        list_for_each(at, &v->lists[i])
        {
            const struct page *page = page_of_node(at);
            uint64_t pages = 1UL << page->order;

            *n += pages;
            out->anon += page_test(page, PG_ANON) ? pages : 0;
            out->shmem += page_test(page, PG_SHMEM) ? pages : 0;
        }
    }
    spin_unlock(&v->lock);
}

/* --- generations --- */

/* Lock held. Skips empty ones; false: the oldest is one of the youngest. */
static bool find_oldest(struct lruvec *v)
{
    while (v->min_gen + LRU_MIN_GENS <= v->max_gen) {
        if (!list_empty(gen_list(v, v->min_gen))) {
            return true;
        }
        if (v->ageing) {
            return false; /* its pages may be on their way back */
        }
        v->min_gen++;
    }
    return false;
}

bool lru_needs_ageing(struct lruvec *v)
{
    bool needs;

    spin_lock(&v->lock);
    needs = !find_oldest(v) && !v->ageing;
    spin_unlock(&v->lock);
    return needs;
}

unsigned lru_isolate_oldest(struct lruvec *v, struct list *out, unsigned max)
{
    unsigned n = 0;

    spin_lock(&v->lock);
    if (find_oldest(v)) {
        n = isolate_from(v, gen_list(v, v->min_gen), out, max);
    }
    spin_unlock(&v->lock);
    return n;
}

/* Was the page used since somebody last asked? Its reference is ours. */
static bool used_lately(struct page *page)
{
    bool young = false;

    if (page_trylock(page)) {
        young = rmap_test_and_clear_young(page);
        page_unlock(page);
        swap_cache_try_drop(page);
    }
    return young;
}

/* Moves the youngest n pages of walk back; lock held, dropped meanwhile. */
static void age_some(struct lruvec *v, struct list *walk, struct list *back)
{
    struct page *pages[AGE_BATCH];
    uint32_t young = 0;
    unsigned n = 0;

    while (n < AGE_BATCH && !list_empty(walk)) {
        struct page *page = page_of_node(walk->prev);

        list_remove(&page->lru);
        list_push(back, &page->lru);
        if (page_get_unless_zero(page)) {
            pages[n++] = page;
        }
    }
    spin_unlock(&v->lock);
    for (unsigned i = 0; i < n; i++) {
        young |= (uint32_t)used_lately(pages[i]) << i;
    }
    spin_lock(&v->lock);
    for (unsigned i = 0; i < n; i++) {
        if ((young >> i & 1) != 0 && page_test(pages[i], PG_LRU) &&
            v == lruvec_of(pages[i])) {
            list_remove(&pages[i]->lru);
            list_push(gen_list(v, v->max_gen), &pages[i]->lru);
        }
    }
    spin_unlock(&v->lock);
    for (unsigned i = 0; i < n; i++) {
        page_put(pages[i]);
    }
    preempt_point();
    spin_lock(&v->lock);
}

static void splice(struct list *to, struct list *from)
{
    if (!list_empty(from)) {
        to->prev->next = from->next;
        from->next->prev = to->prev;
        from->prev->next = to;
        to->prev = from->prev;
        list_init(from);
    }
}

void lru_age(struct lruvec *v)
{
    struct list walk = LIST_INIT(walk);

    spin_lock(&v->lock);
    if (v->ageing) {
        spin_unlock(&v->lock);
        return;
    }
    v->ageing = true;
    counter_inc(lru_ageings);
    if (v->max_gen - v->min_gen + 1 == LRU_GENS) {
        /* No room: the two oldest become one, the oldest pages last. */
        splice(gen_list(v, v->min_gen + 1), gen_list(v, v->min_gen));
        v->min_gen++;
    }
    v->max_gen++;
    for (uint64_t gen = v->min_gen; gen < v->max_gen; gen++) {
        splice(&walk, gen_list(v, gen));
        while (!list_empty(&walk)) {
            age_some(v, &walk, gen_list(v, gen));
        }
    }
    v->ageing = false;
    spin_unlock(&v->lock);
}
