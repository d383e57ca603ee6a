/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which Linux the memory management behaves like. `like=6.1|6.6|6.12|7.2` on
 * the command line (6.12 by default) sets every switch here; a switch's own
 * word then overrides it, wherever it stands in the line:
 *
 *   bc=batched|sync             bc_batched
 *   migrate=batched|sync        migrate_batched
 *   free_batch=list|1..31       free_batch
 *   pageout_young=flush|keep    pageout_young_flush
 *   referenced_young=tlbi|keep  referenced_young_tlbi
 *   read_fault=clean|dirty      read_fault_dirty
 *   mask=switch|lazy            lazy_cpumask
 *   lazy_hit=clear|keep         ipi_lazy_keeps_bit
 *   lists=classic|mglru|scaled  mglru_lists, mglru_scaled
 *   request=whole|quarters      request_quarters
 *   fault_drain=no|yes          fault_drain; no is what Linux does
 *   munmap=write|read           munmap_read; read is what Linux does
 *
 * lists= also sets referenced_young_tlbi, which only the classic walk has.
 * Read only after like_init(). A value that is not known is reported, and what
 * like= said stays.
 */
#ifndef MM_LIKE_H
#define MM_LIKE_H

#include "kernel/types.h"

#define LIKE_FREE_BATCH_MAX 31

enum like_release { LIKE_6_1, LIKE_6_6, LIKE_6_12, LIKE_7_2, LIKE_RELEASES };

struct mm_like {
    enum like_release release; /* what like= said */
    /* Broadcast back end: unmapping queues its flush (else one DSB a page). */
    bool bc_batched;
    /* Migration flushes once a batch of at most 512 pages (else each page). */
    bool migrate_batched;
    /* Frames that wait for one flush; 0: all of a list. */
    unsigned free_batch;
    /* MADV_PAGEOUT clears the young bits and flushes their range, per call. */
    bool pageout_young_flush;
    /* Testing a page for use issues the TLBI, without waiting for it. */
    bool referenced_young_tlbi;
    /* A read fault of a writable shared area maps a dirty page dirty. */
    bool read_fault_dirty;
    /* IPI: a CPU stays in an mm's mask when it switches; trim once a second. */
    bool lazy_cpumask;
    /* IPI: a lazy CPU hit by a flush unloads the mm but keeps its mask bit. */
    bool ipi_lazy_keeps_bit;
    /* Reclaim lists: generations and up to 64 pages (else classic, 32). */
    bool mglru_lists;
    /* ... of min(64, evictable >> priority) pages (else always up to 64). */
    bool mglru_scaled;
    /* memory.reclaim asks for a quarter of what is left (else all of it). */
    bool request_quarters;
    /*
     * No Linux does it: a fault that maps a page where none was drains what
     * reclaim has not flushed yet. Without it another CPU may go on reading a
     * clean page's old frame for a while after a new one is mapped, which is
     * break-before-make without the wait.
     */
    bool fault_drain;
    /* munmap of one area lets others read mmap_lock while it clears PTEs. */
    bool munmap_read;
};

extern struct mm_like mm_like; /* [init] */

/* After bootargs_parse(), before mm_init(). */
void like_init(void);
/* "6.1", "6.6", "6.12" or "7.2". */
const char *like_name(void);

#endif
