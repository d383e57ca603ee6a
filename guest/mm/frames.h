/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the frames of RAM are in use for: every struct page is looked at. Exact
 * when nothing moves; else each frame is counted as what it was when its turn
 * came. Thread context.
 */
#ifndef MM_FRAMES_H
#define MM_FRAMES_H

#include "kernel/types.h"

enum frame_kind {
    FRAME_FREE,       /* of the allocator, caches included */
    FRAME_RESERVED,   /* never given to the allocator */
    FRAME_TABLE,      /* page tables, those set aside for blocks included */
    FRAME_SLAB,       /* small objects */
    FRAME_ANON,       /* private memory */
    FRAME_SHMEM,      /* shared memory */
    FRAME_SWAP_CACHE, /* has a copy in swap; private and shared alike */
    FRAME_SWAP_STORE, /* what is in swap */
    FRAME_OTHER,      /* files, stacks of tasks, large objects */
    FRAME_KINDS
};

struct frame_counts {
    uint64_t n[FRAME_KINDS]; /* frames */
};

void frames_count(struct frame_counts *out);
const char *frame_kind_name(enum frame_kind kind);

#endif
