/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reclaiming lists of isolated pages: demote, or unmap, write to swap and free.
 * vmscan.c makes the lists.
 */
#ifndef MM_RECLAIM_H
#define MM_RECLAIM_H

#include "kernel/types.h"

struct list;
struct memcg;

/* What one reclaim is after, and how it goes. */
struct scan_control {
    struct memcg *group;    /* pages of this one and of those below */
    unsigned target;        /* enough when so many are reclaimed */
    unsigned priority;      /* of each lruvec, size >> priority a round */
    bool ignore_references; /* also what was used lately */
    bool no_demotion;
    bool proactive; /* somebody asked; nobody is short of memory */
    bool kswapd;
    unsigned scanned, reclaimed;
};

/* [init] but for /sys/kernel/mm/numa/demotion_enabled */
extern _Atomic bool reclaim_demotion_enabled;

/*
 * Reclaims what it can of a list of isolated pages of one node; the others go
 * back to the LRU. Adds to sc->reclaimed. All it unmapped is flushed on return.
 * Thread context, no locks but mmap_lock.
 */
void reclaim_list(struct list *pages, unsigned node, struct scan_control *sc);
/*
 * MADV_PAGEOUT: the same for pages of any node, a list for each run of pages
 * of one node; used or not, and never by demotion. Returns pages freed.
 */
unsigned reclaim_pages(struct list *pages);

#endif
