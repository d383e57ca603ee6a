/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tags, and the seam between tlb.c and walk_cache.c. Private to mmu.
 *
 * Everything that a lookup compares is one word:
 *
 *   63                 27 26    19 18       3   2    1     0
 *  +---------------------+--------+----------+---+---------+
 *  |      VA[48:12]      |   0    |   ASID   | G |  size   |
 *  +---------------------+--------+----------+---+---------+
 *
 * VA[48] stands for the half. Size is 1, 2, 3 for a leaf at level 3, 2, 1 (or
 * 1 + level for a table), so a tag is never 0 and 0 marks a free way. A global
 * entry has G set and ASID 0: two words cover both ways to match.
 */
#ifndef MMU_TLB_PRIV_H
#define MMU_TLB_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mmu/tlb.h"

#define TAG_VA_SHIFT 27
#define TAG_ASID_SHIFT 3
#define TAG_GLOBAL (UINT64_C(1) << 2)
#define TAG_SIZE_MASK UINT64_C(3)
/* What page: all but the ASID and G. */
#define TAG_PAGE_MASK (UINT64_MAX << TAG_VA_SHIFT | TAG_SIZE_MASK)

/* Bits [63:48] all alike; a tag cannot hold another address. */
static inline bool tag_can_hold(gva_t va)
{
    return (gva_t)((int64_t)(va << 15) >> 15) == va;
}

static inline uint64_t tag_va(gva_t va, unsigned shift)
{
    return va >> shift << shift << (TAG_VA_SHIFT - MMU_PAGE_SHIFT);
}

static inline uint64_t tag_asid(uint16_t asid)
{
    return (uint64_t)asid << TAG_ASID_SHIFT;
}

/* Counters are the TLB's; the cache keeps a pointer to them. */
struct walk_cache *walk_cache_new(unsigned entries,
                                  struct tlb_counters *counters);
void walk_cache_free(struct walk_cache *wc);
void walk_cache_copy(struct walk_cache *to, const struct walk_cache *from);
size_t walk_cache_capacity(const struct walk_cache *wc);
void walk_cache_invalidate(struct walk_cache *wc, const struct tlbi_op *op);
/* As tlb_checkpoint() and tlb_rollback(). Only the first one can fail. */
bool walk_cache_checkpoint(struct walk_cache *wc);
void walk_cache_rollback(struct walk_cache *wc);

#endif
