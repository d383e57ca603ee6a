/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address types and page geometry of the 4 KiB granule.
 *
 * Depends on nothing. Pure values, any thread.
 */
#ifndef MMU_ADDR_H
#define MMU_ADDR_H

#include <stdint.h>

/* Guest virtual address, with or without a tag; see regime_canonical(). */
typedef uint64_t gva_t;
/* Guest physical address. Stage 2 is not modelled, so also the IPA. */
typedef uint64_t gpa_t;

#define MMU_PAGE_SHIFT 12
#define MMU_PAGE_SIZE (UINT64_C(1) << MMU_PAGE_SHIFT)
#define MMU_PAGE_MASK (MMU_PAGE_SIZE - 1)

/* Each level resolves nine bits; level 3 resolves VA[20:12]. */
#define MMU_LEVEL_BITS 9
#define MMU_LEVELS 4
#define MMU_PA_BITS 48

/*
 *  63     48 47    39 38    30 29    21 20    12 11         0
 * +---------+--------+--------+--------+--------+------------+
 * | half    | level 0| level 1| level 2| level 3| page offset|
 * +---------+--------+--------+--------+--------+------------+
 */
static inline unsigned mmu_level_shift(unsigned level)
{
    return MMU_PAGE_SHIFT + MMU_LEVEL_BITS * (3 - level);
}

#endif
