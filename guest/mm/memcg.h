/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory groups: the memory part of Linux's control groups, version 2. Every
 * process belongs to one; the pages that it touches first are charged to the
 * group and to those above it, but not to the root. A group has a limit, and a
 * pair of LRU lists (lru.h) per node.
 *
 * Groups live in a fixed table and are never freed: a removed one is used again
 * when its last page is gone, so whoever walks the table needs no lock. Names
 * are those of directories (kernel/cgroupfs.c); groups are made and removed
 * with tree_lock held for writing.
 */
#ifndef MM_MEMCG_H
#define MM_MEMCG_H

#include <stdatomic.h>

#include "kernel/lock.h"
#include "kernel/types.h"
#include "mm/lru.h"
#include "mm/page.h"

#define MEMCG_MAX 64
#define MEMCG_NO_LIMIT (INT64_MAX >> PAGE_SHIFT) /* in pages: "max" */

struct process;

/* What a group and those below it have, and may have. */
struct memcg_limit {
    _Atomic int64_t usage, max;
};

struct memcg {
    uint16_t id;                 /* [init] index in the table; 0 is the root */
    _Atomic bool used;           /* [tree_lock] is, or was, a group */
    _Atomic bool online;         /* [tree_lock] not removed */
    _Atomic uint32_t use;        /* [tree_lock] how often the place was used */
    struct memcg *parent;        /* [tree_lock] NULL: the root */
    _Atomic int32_t procs;       /* processes in it */
    struct memcg_limit memory;   /* pages */
    struct memcg_limit swap;     /* slots */
    _Atomic uint64_t events_max; /* charges that met the limit */
    _Atomic uint64_t events_oom; /* ... and failed */
    _Atomic uint64_t events_oom_kill; /* processes killed for it */
    struct lruvec lruvecs[MAX_NODES];
};

extern struct memcg memcgs[MEMCG_MAX];

void memcg_init(void);

static inline struct memcg *memcg_root(void)
{
    return &memcgs[0];
}
static inline struct memcg *memcg_of(const struct page *page)
{
    return &memcgs[page->memcg];
}
/* The next group in use that is top or below it; NULL begins and ends. */
struct memcg *memcg_next(const struct memcg *top, struct memcg *last);

/* --- pages; thread context, no locks but mmap_lock --- */
/*
 * Charges a fresh block to the group of the current process; reclaims from the
 * group that is at its limit if the allocation's flags allow. False: over.
 */
bool memcg_charge(struct page *page, unsigned flags);
/* page_free() does it. */
void memcg_uncharge(struct page *page, unsigned order);
/* A swap slot of the group; false: it may not have more. */
bool memcg_charge_swap(uint16_t id);
bool memcg_swap_full(uint16_t id); /* ... would be refused just now */
void memcg_uncharge_swap(uint16_t id);
/* The charge goes with the contents; neither is on an LRU list. */
void memcg_move_charge(struct page *from, struct page *to);
/* The pages of a block that is cut up, beside the first. */
void memcg_split(struct page *head, unsigned pages);

/* --- processes --- */
void memcg_enter(struct process *process, struct memcg *group);
void memcg_leave(struct process *process);
/* The current process is killed for want of memory. */
void memcg_note_oom_kill(void);

/* --- tree_lock held for writing --- */
struct memcg *memcg_make(struct memcg *parent); /* NULL: there are too many */
int memcg_remove(struct memcg *group);          /* 0, -EBUSY */

/* No locks held: sets memory.max and reclaims down to it. */
void memcg_set_max(struct memcg *group, int64_t pages);

#endif
