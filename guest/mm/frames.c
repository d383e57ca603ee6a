/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting frames by their use; frames.h. */
#include "mm/frames.h"

#include "kernel/sched.h"
#include "mm/page.h"
#include "mm/swap.h"

#define FRAMES_AT_ONCE 1024 /* between two looks for somebody who waits */

static enum frame_kind kind_of(const struct page *page)
{
    uint32_t flags = atomic_load_explicit(&page->flags, memory_order_relaxed);

    if (flags & PG_RESERVED) {
        return FRAME_RESERVED;
    }
    if (flags & (PG_FREE | PG_CACHED)) {
        return FRAME_FREE;
    }
    if (flags & PG_TABLE) {
        return FRAME_TABLE;
    }
    if (flags & PG_SLAB) {
        return FRAME_SLAB;
    }
    if (flags & PG_SWAPCACHE) {
        return FRAME_SWAP_CACHE;
    }
    if (flags & PG_ANON) {
        return FRAME_ANON;
    }
    return flags & PG_SHMEM ? FRAME_SHMEM : FRAME_OTHER;
}

void frames_count(struct frame_counts *out)
{
    uint64_t pfn = page_base_pfn, store;

    memset(out, 0, sizeof(*out));
    while (pfn < page_end_pfn) {
        const struct page *page = pfn_to_page(pfn);
        enum frame_kind kind = kind_of(page);
        /* The others of a block have no flags. */
        uint64_t n = kind == FRAME_RESERVED ? 1 : 1UL << page->order;

        n = min_u64(n, page_end_pfn - pfn);
        out->n[kind] += n;
        pfn += n;
        if (pfn % FRAMES_AT_ONCE == 0) {
            preempt_point();
        }
    }
    /* Its frames look like any other's. */
    store = min_u64(swap_store_pages(), out->n[FRAME_OTHER]);
    out->n[FRAME_SWAP_STORE] = store;
    out->n[FRAME_OTHER] -= store;
}

const char *frame_kind_name(enum frame_kind kind)
{
    static const char *const names[] = {
        [FRAME_FREE] = "free",
        [FRAME_RESERVED] = "reserved",
        [FRAME_TABLE] = "table",
        [FRAME_SLAB] = "slab",
        [FRAME_ANON] = "anon",
        [FRAME_SHMEM] = "shmem",
        [FRAME_SWAP_CACHE] = "swap_cache",
        [FRAME_SWAP_STORE] = "swap_store",
        [FRAME_OTHER] = "other",
    };

    return names[kind];
}
