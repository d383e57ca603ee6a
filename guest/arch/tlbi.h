/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLBI, one function per operation. They only issue: the caller has made the
 * descriptor change visible (DSB ISHST) and waits with the DSB of its choice.
 * Counting is the callers' business too (mm/).
 *
 * Operand by address:  63     48 47  44 43            0
 *                     |  ASID   | TTL  |  VA[55:12]    |
 * Operand by ASID: the ASID in 63:48.
 * Operand of ranges:   63  48 47 46 45 44 43  39 38 37 36       0
 *                     | ASID |  TG |SCALE|  NUM  | TTL |  BaseADDR |
 */
#ifndef ARCH_TLBI_H
#define ARCH_TLBI_H

#include <stdint.h>

#define TLBI_OP0(name, op)                                                     \
    static inline void tlbi_##name(void)                                       \
    {                                                                          \
        __asm__ volatile("tlbi " op ::: "memory");                             \
    }

#define TLBI_OP1(name, op)                                                     \
    static inline void tlbi_##name(uint64_t operand)                           \
    {                                                                          \
        __asm__ volatile("tlbi " op ", %0" ::"r"(operand) : "memory");         \
    }

/* By encoding: the assembler's base architecture has no range operations. */
#define TLBI_SYS1(name, op)                                                    \
    static inline void tlbi_##name(uint64_t operand)                           \
    {                                                                          \
        __asm__ volatile("sys " op ", %0" ::"r"(operand) : "memory");          \
    }

/* Every CPU of the inner shareable domain */
TLBI_OP0(vmalle1is, "vmalle1is")
TLBI_OP1(aside1is, "aside1is")
TLBI_OP1(vae1is, "vae1is")
TLBI_OP1(vale1is, "vale1is")
TLBI_OP1(vaae1is, "vaae1is")
TLBI_OP1(vaale1is, "vaale1is")
TLBI_SYS1(rvae1is, "#0, c8, c2, #1")
TLBI_SYS1(rvale1is, "#0, c8, c2, #5")
TLBI_SYS1(rvaae1is, "#0, c8, c2, #3")
TLBI_SYS1(rvaale1is, "#0, c8, c2, #7")

/* This CPU only */
TLBI_OP0(vmalle1, "vmalle1")
TLBI_OP1(aside1, "aside1")
TLBI_OP1(vae1, "vae1")
TLBI_OP1(vale1, "vale1")
TLBI_OP1(vaae1, "vaae1")
TLBI_OP1(vaale1, "vaale1")
TLBI_SYS1(rvae1, "#0, c8, c6, #1")
TLBI_SYS1(rvale1, "#0, c8, c6, #5")

#define TLBI_TTL_4K(level) ((uint64_t)(4 | (level)) << 44)

static inline uint64_t tlbi_operand_va(uint64_t va, uint64_t asid)
{
    return (asid << 48) | ((va >> 12) & 0xfffffffffffUL);
}

static inline uint64_t tlbi_operand_asid(uint64_t asid)
{
    return asid << 48;
}

/* (num + 1) << (5 * scale + 1) pages from va; no level hint. */
static inline uint64_t tlbi_operand_range(uint64_t va, uint64_t asid,
                                          unsigned scale, unsigned num)
{
    return (asid << 48) | (1UL << 46) | ((uint64_t)scale << 44) |
           ((uint64_t)num << 39) | ((va >> 12) & 0x1fffffffffUL);
}

#endif
