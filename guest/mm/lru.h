/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LRU lists of user pages, in shards so that CPUs do not meet on one lock: a
 * page belongs to the shard of the CPU that first listed it.
 */
#ifndef MM_LRU_H
#define MM_LRU_H

#include "kernel/types.h"

struct list;
struct page;

void lru_init(void);
/* Head of the inactive list. The page is on no list. */
void lru_add(struct page *page);
/* Takes the page off with a new reference; false: not on a list. */
bool lru_isolate(struct page *page);
/* Puts an isolated page back and drops that reference. */
void lru_putback(struct page *page, bool active);
/* To the tail of the inactive list: next to go. */
void lru_deactivate(struct page *page);
/* MADV_FREE: the same, and it need not go to swap. */
void lru_mark_lazyfree(struct page *page);
/* The page has no references left. */
void lru_del_final(struct page *page);
/* Isolates up to max pages from the cold end; appends them to out. */
unsigned lru_isolate_cold(struct list *out, unsigned max);

#endif
