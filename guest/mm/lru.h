/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LRU lists of user pages: a struct lruvec for each memory group and node. Two
 * forms, by mm_like.mglru_lists:
 *
 * - classic: an inactive and an active list. New pages are inactive; a page
 *   that was used while it was there becomes active.
 * - generations: up to LRU_GENS lists, numbered; new pages go to the youngest.
 *   The two youngest are never reclaimed from. Ageing begins a new one and
 *   moves there what was used since the last time.
 *
 * page->memcg and page->node say which lruvec a page belongs to; both are
 * settled while it is on no list. The lock is a leaf.
 */
#ifndef MM_LRU_H
#define MM_LRU_H

#include "kernel/lib.h"
#include "kernel/lock.h"
#include "kernel/types.h"

struct page;

#define LRU_GENS 4
#define LRU_MIN_GENS 2 /* these are not reclaimed from */

/* Indices of lists[] in the classic form */
#define LRU_INACTIVE 0
#define LRU_ACTIVE 1

struct lruvec {
    struct spinlock lock;
    struct list lists[LRU_GENS];        /* [lock] or by generation % LRU_GENS */
    uint64_t min_gen, max_gen;          /* [lock] */
    bool ageing;                        /* [lock] somebody is at it */
    _Atomic uint64_t n[LRU_ACTIVE + 1]; /* [lock] pages; read without */
} CACHE_ALIGNED;

void lru_init(struct lruvec *v);
/* Pages on both lists or all generations. */
uint64_t lru_size(const struct lruvec *v);

struct lru_stat {
    uint64_t anon, shmem;      /* pages; the rest is only in swap's cache */
    uint64_t active, inactive; /* generations: the youngest are active */
};
/* Goes through all of the lists. */
void lru_count(struct lruvec *v, struct lru_stat *out);

/* As a page that was just used for the first time. It is on no list. */
void lru_add(struct page *page);
/* Takes the page off with a new reference; false: not on a list. */
bool lru_isolate(struct page *page);
/* Puts an isolated page back and drops that reference. */
void lru_putback(struct page *page, bool active);
/* To the cold end: next to go. */
void lru_deactivate(struct page *page);
/* MADV_FREE: the same, and it need not go to swap. */
void lru_mark_lazyfree(struct page *page);
/* The page has no references left. */
void lru_del_final(struct page *page);

/* --- for vmscan.c --- */
/* Classic: isolates up to max pages from the cold end of one of the lists. */
unsigned lru_isolate_list(struct lruvec *v, unsigned list, struct list *out,
                          unsigned max);
/* Generations: from the oldest that is not empty; 0: it is time to age. */
unsigned lru_isolate_oldest(struct lruvec *v, struct list *out, unsigned max);
/* Generations: are all pages in the youngest ones? */
bool lru_needs_ageing(struct lruvec *v);
/* Generations: a new one. No locks held; may sleep. */
void lru_age(struct lruvec *v);

#endif
