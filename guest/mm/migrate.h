/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moving pages to another memory node. The caller has isolated them from the
 * LRU lists, which gave each a reference, and linked them by page->lru; those
 * that cannot be moved stay on his list.
 */
#ifndef MM_MIGRATE_H
#define MM_MIGRATE_H

#include "kernel/types.h"

struct list;
struct page;

/* Pages unmapped with one flush. */
#define MIGRATE_BATCH 512U

enum migrate_mode {
    MIGRATE_ASYNC, /* waits for nobody's page lock */
    MIGRATE_SYNC,  /* ... but tries again, one by one, what ASYNC left */
};

/* How many pages are left on the list, or -ENOMEM: the node is full. */
int migrate_pages(struct list *pages, unsigned node, enum migrate_mode mode);
/* Puts what is left back on the LRU lists. */
void migrate_putback(struct list *pages);
/*
 * Reclaim's: cold pages go to a slower node. How many did; the others are left
 * on the list.
 */
unsigned migrate_demote(struct list *pages, unsigned to_node);

#endif
