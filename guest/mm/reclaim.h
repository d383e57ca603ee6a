/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reclaim: unmap, write to swap and free lists of isolated pages. */
#ifndef MM_RECLAIM_H
#define MM_RECLAIM_H

#include "kernel/types.h"

struct list;

/*
 * Reclaims what it can of a list of isolated pages; the others go back to the
 * LRU. ignore_references: also what was used lately. Returns pages freed. All
 * it unmapped is flushed on return. Thread context, no locks but mmap_lock.
 */
unsigned reclaim_pages(struct list *pages, bool ignore_references);
/* Frees about n pages of the cold end for an allocation; how many it did. */
unsigned reclaim_direct(unsigned n);

#endif
