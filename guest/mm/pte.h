/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User PTEs (level 3). The hardware bits are in arch/pgtable.h; TCR.HA and HD
 * stay off, so only software changes a PTE, always under its table's PTL.
 *
 *   WRITE (DBM) RDONLY (AP[2])  means
 *       0           1           no writes (or copy-on-write)
 *       1           1           writable, clean: the first write faults and
 *                               clears RDONLY
 *       1           0           writable, dirty
 *   DIRTY (soft) keeps "dirty" when WRITE goes away.
 *
 * A clean PTE is read-only to the hardware, hence a write through a cached
 * clean translation always re-walks the tables: invariant I2.
 *
 * Swap entry (VALID = 0, SWAP = 1):   63..12 slot    2 SWAP    1..0 zero
 *
 * Migration entry (VALID = 0, MIGRATION = 1): the frame is on its way to
 * another one. The address is that of the old frame, which stays locked until
 * every such entry has become a PTE again; who faults waits for that lock. An
 * entry owns no reference and no mapcount of the frame, and still counts in
 * mm->rss. WRITE, DIRTY and AF are those of the PTE it replaces.
 */
#ifndef MM_PTE_H
#define MM_PTE_H

#include "arch/pgtable.h"
#include "kernel/types.h"
#include "mm/page.h"

#define PTE_WRITE PTE_DBM
#define PTE_DIRTY PTE_SOFT(0)
#define PTE_SPECIAL PTE_SOFT(1)   /* the zero page: no reverse map */
/*
 * Present to software, VALID = 0: the area allows nothing, or, where it does,
 * a NUMA hint: whoever faults next says which CPUs use the page.
 */
#define PTE_PROT_NONE PTE_SOFT(3)
#define PTE_SWAP (1UL << 2)
#define PTE_MIGRATION (1UL << 3)

#define PTE_USER_BASE                                                          \
    (PTE_PAGE | PTE_USER | PTE_SH_INNER | PTE_NG | PTE_ATTR(MT_NORMAL) |       \
     PTE_PXN)

static inline bool pte_valid(pte_t pte)
{
    return pte & PTE_VALID;
}
static inline bool pte_present(pte_t pte)
{
    return pte & (PTE_VALID | PTE_PROT_NONE);
}
static inline bool pte_is_swap(pte_t pte)
{
    return !pte_present(pte) && (pte & PTE_SWAP);
}
static inline bool pte_dirty(pte_t pte)
{
    return (pte & PTE_DIRTY) || (pte & (PTE_WRITE | PTE_RDONLY)) == PTE_WRITE;
}
/* A store through this PTE succeeds at once. */
static inline bool pte_writes_now(pte_t pte)
{
    return pte_valid(pte) && (pte & (PTE_WRITE | PTE_RDONLY)) == PTE_WRITE;
}
static inline pte_t pte_mkdirty(pte_t pte)
{
    pte |= PTE_DIRTY;
    return pte & PTE_WRITE ? pte & ~PTE_RDONLY : pte;
}
static inline pte_t pte_mkclean(pte_t pte)
{
    pte &= ~PTE_DIRTY;
    return pte & PTE_WRITE ? pte | PTE_RDONLY : pte;
}
static inline pte_t pte_wrprotect(pte_t pte)
{
    if (pte_dirty(pte)) {
        pte |= PTE_DIRTY;
    }
    return (pte & ~PTE_WRITE) | PTE_RDONLY;
}
static inline struct page *pte_page(pte_t pte)
{
    return phys_to_page(pte_address(pte));
}
static inline pte_t pte_of_swap(uint64_t entry)
{
    return entry << PAGE_SHIFT | PTE_SWAP;
}
static inline uint64_t pte_swap_entry(pte_t pte)
{
    return pte >> PAGE_SHIFT;
}
static inline pte_t pte_make_hint(pte_t pte)
{
    return (pte & ~PTE_VALID) | PTE_PROT_NONE;
}
static inline pte_t pte_clear_hint(pte_t pte)
{
    return (pte & ~PTE_PROT_NONE) | PTE_VALID | PTE_AF;
}
/*
 * Of a level-2 entry: a block of user memory, be it PROT_NONE or on its way to
 * become a table (huge.c). The other bits are those of a PTE.
 */
static inline bool pte_is_block(pte_t pte)
{
    return pte_present(pte) && !(pte & PTE_TABLE);
}
static inline bool pte_is_migration(pte_t pte)
{
    return !pte_present(pte) && (pte & PTE_MIGRATION);
}
static inline pte_t pte_of_migration(pte_t pte)
{
    return (pte & (PTE_ADDR_MASK | PTE_WRITE | PTE_AF)) | PTE_MIGRATION |
           (pte_dirty(pte) ? PTE_DIRTY : 0);
}
/* A copy exists, or the area forbids it: the PTE to come may not write. */
static inline pte_t pte_migration_wrprotect(pte_t entry)
{
    return entry & ~PTE_WRITE;
}
/* Relaxed is enough: the PTL orders it for software (O1). */
static inline pte_t pte_exchange(pte_t *p, pte_t value)
{
    return __atomic_exchange_n(p, value, __ATOMIC_RELAXED);
}

#endif
