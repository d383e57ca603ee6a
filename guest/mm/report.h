/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc tells of an address space: its areas, and what is in them. Thread
 * context; the caller holds a reference of mm and no spinlock.
 */
#ifndef MM_REPORT_H
#define MM_REPORT_H

#include "kernel/types.h"

struct inode;
struct mm;

/* Bytes, but for pss: bytes << 12. */
struct mm_area_pages {
    uint64_t rss, pss, pss_dirty;
    uint64_t shared_clean, shared_dirty, private_clean, private_dirty;
    uint64_t referenced, anonymous, lazyfree, swap, huge;
};

struct mm_area {
    uint64_t start, end;
    unsigned prot; /* PROT_* */
    bool shared;
    bool heap;          /* what brk() moved over */
    bool sigpage;       /* MM_SIGPAGE */
    uint64_t offset;    /* in the shared object or file, bytes */
    uint64_t object_id; /* of the shared object */
    struct inode *file; /* mapped privately; the caller puts it; NULL */
    struct mm_area_pages pages;
};

struct mm_totals {
    uint64_t size, rss, swapped, tables; /* bytes */
    uint64_t data, stack;                /* of size: writable; at the top */
    unsigned areas;
};

/* The first area that ends above va; its pages only if wanted. False: none. */
bool mm_report_area(struct mm *mm, uint64_t va, bool pages,
                    struct mm_area *out);
void mm_report_totals(struct mm *mm, struct mm_totals *out);

#endif
