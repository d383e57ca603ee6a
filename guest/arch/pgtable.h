/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMSAv8-64 stage 1 descriptors, 4 KiB granule, 48-bit addresses.
 *
 *   47      39 38      30 29      21 20      12 11         0
 *  | L0 index | L1 index | L2 index | L3 index | page offset |
 *
 *  63 62..59 58..55  54   53  52   51 50 47..12  11  10 9..8 7..6  5  4..2  1 0
 *    ignored  soft   UXN  PXN cont DBM GP  OA     nG AF  SH   AP  NS AttrIx ty
 * v
 *
 *   AP[2:1]  EL1   EL0
 *     00     RW    --
 *     01     RW    RW
 *     10     RO    --
 *     11     RO    RO
 */
#ifndef ARCH_PGTABLE_H
#define ARCH_PGTABLE_H

/* MAIR_EL1 attribute indices */
#define MT_NORMAL 0        /* inner and outer write-back, allocating */
#define MT_DEVICE_NGNRNE 1 /* strongly ordered */
#define MT_DEVICE_NGNRE 2  /* posted writes */
#define MT_NORMAL_NC 3
#define MAIR_VALUE 0x440400ff

#define PT_ENTRIES 512
#define PT_LEVELS 4

/* TCR_EL1, without IPS and AS which depend on the CPU */
#define TCR_T0SZ_48 (16 << 0)
#define TCR_IRGN0_WBWA (1 << 8)
#define TCR_ORGN0_WBWA (1 << 10)
#define TCR_SH0_INNER (3 << 12)
#define TCR_T1SZ_48 (16 << 16)
#define TCR_IRGN1_WBWA (1 << 24)
#define TCR_ORGN1_WBWA (1 << 26)
#define TCR_SH1_INNER (3 << 28)
#define TCR_TG1_4K (2 << 30)
#define TCR_IPS_SHIFT 32
#define TCR_AS_16BIT_SHIFT 36

/* SCTLR_EL1: RES1 bits, then what is on */
#define SCTLR_RES1 ((1 << 11) | (1 << 20) | (1 << 22) | (1 << 28) | (1 << 29))
#define SCTLR_M (1 << 0)
#define SCTLR_C (1 << 2)
#define SCTLR_SA (1 << 3)
#define SCTLR_SA0 (1 << 4)
#define SCTLR_I (1 << 12)
#define SCTLR_DZE (1 << 14)  /* DC ZVA at EL0 */
#define SCTLR_UCT (1 << 15)  /* CTR_EL0 at EL0 */
#define SCTLR_NTWI (1 << 16) /* WFI at EL0 */
#define SCTLR_NTWE (1 << 18) /* WFE at EL0 */
#define SCTLR_SPAN (1 << 23) /* PAN unchanged by exceptions */
#define SCTLR_UCI (1 << 26)  /* DC CVAU, IC IVAU at EL0 */

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t pte_t; /* any descriptor */

#define PTE_VALID (1UL << 0)
#define PTE_TABLE (1UL << 1) /* levels 0..2: table, not block */
#define PTE_PAGE (1UL << 1)  /* level 3: required */
#define PTE_ATTR(index) ((uint64_t)(index) << 2)
#define PTE_ATTR_MASK (7UL << 2)
#define PTE_USER (1UL << 6)   /* AP[1]: EL0 may access */
#define PTE_RDONLY (1UL << 7) /* AP[2] */
#define PTE_SH_INNER (3UL << 8)
#define PTE_AF (1UL << 10)
#define PTE_NG (1UL << 11)
#define PTE_DBM (1UL << 51)
#define PTE_PXN (1UL << 53)
#define PTE_UXN (1UL << 54)
#define PTE_SOFT(n) (1UL << (55 + (n))) /* n = 0..3, ours */
#define PTE_ADDR_MASK 0x0000fffffffff000UL

/* Kernel mappings: global, never executable at EL0 */
#define PTE_KERNEL_NORMAL                                                      \
    (PTE_VALID | PTE_AF | PTE_SH_INNER | PTE_ATTR(MT_NORMAL) | PTE_UXN)
#define PTE_KERNEL_RW (PTE_KERNEL_NORMAL | PTE_PXN)
#define PTE_KERNEL_RX (PTE_KERNEL_NORMAL | PTE_RDONLY)
#define PTE_KERNEL_DEVICE                                                      \
    (PTE_VALID | PTE_AF | PTE_ATTR(MT_DEVICE_NGNRE) | PTE_UXN | PTE_PXN)

static inline unsigned pt_shift(unsigned level)
{
    return 39 - 9 * level;
}

static inline unsigned pt_index(uint64_t va, unsigned level)
{
    return (unsigned)(va >> pt_shift(level)) & (PT_ENTRIES - 1);
}

static inline bool pte_is_table(pte_t pte, unsigned level)
{
    return level < 3 &&
           (pte & (PTE_VALID | PTE_TABLE)) == (PTE_VALID | PTE_TABLE);
}

static inline uint64_t pte_address(pte_t pte)
{
    return pte & PTE_ADDR_MASK;
}

/* One descriptor, read or written in one access: walkers may look any time. */
static inline pte_t pte_read(const pte_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void pte_write(pte_t *p, pte_t value)
{
    __atomic_store_n(p, value, __ATOMIC_RELAXED);
}
#endif

#endif
