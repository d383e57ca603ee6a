/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System registers: one read_<name>() and write_<name>() each, by the Arm name
 * in lower case. Writers do not synchronise: the caller adds isb() where the
 * new value must take effect.
 */
#ifndef ARCH_SYSREG_H
#define ARCH_SYSREG_H

#include <stdbool.h>
#include <stdint.h>

#define SYSREG_READ(name, reg)                                                 \
    static inline uint64_t read_##name(void)                                   \
    {                                                                          \
        uint64_t value;                                                        \
        __asm__ volatile("mrs %0, " reg : "=r"(value)::"memory");              \
        return value;                                                          \
    }

#define SYSREG_WRITE(name, reg)                                                \
    static inline void write_##name(uint64_t value)                            \
    {                                                                          \
        __asm__ volatile("msr " reg ", %0" ::"r"(value) : "memory");           \
    }

#define SYSREG_RW(name, reg) SYSREG_READ(name, reg) SYSREG_WRITE(name, reg)

SYSREG_READ(currentel, "CurrentEL")
SYSREG_READ(mpidr_el1, "mpidr_el1")
SYSREG_READ(midr_el1, "midr_el1")
SYSREG_READ(ctr_el0, "ctr_el0")
SYSREG_READ(dczid_el0, "dczid_el0")
SYSREG_READ(id_aa64isar0_el1, "id_aa64isar0_el1")
SYSREG_READ(id_aa64isar1_el1, "id_aa64isar1_el1")
SYSREG_READ(id_aa64mmfr0_el1, "id_aa64mmfr0_el1")
SYSREG_READ(id_aa64mmfr1_el1, "id_aa64mmfr1_el1")
SYSREG_READ(id_aa64mmfr2_el1, "id_aa64mmfr2_el1")
SYSREG_READ(id_aa64pfr0_el1, "id_aa64pfr0_el1")

SYSREG_RW(sctlr_el1, "sctlr_el1")
SYSREG_RW(tcr_el1, "tcr_el1")
SYSREG_RW(mair_el1, "mair_el1")
SYSREG_RW(ttbr0_el1, "ttbr0_el1")
SYSREG_RW(ttbr1_el1, "ttbr1_el1")
SYSREG_RW(vbar_el1, "vbar_el1")
SYSREG_RW(cpacr_el1, "cpacr_el1")
SYSREG_RW(tpidr_el0, "tpidr_el0")
SYSREG_WRITE(tpidrro_el0, "tpidrro_el0")
SYSREG_WRITE(tpidr_el1, "tpidr_el1")
SYSREG_RW(esr_el1, "esr_el1")
SYSREG_RW(far_el1, "far_el1")
SYSREG_RW(elr_el1, "elr_el1")
SYSREG_RW(spsr_el1, "spsr_el1")
SYSREG_RW(sp_el0, "sp_el0")
SYSREG_READ(par_el1, "par_el1")
SYSREG_READ(daif, "daif")

/* Not volatile: fixed per CPU, so a function may read it once. */
static inline uint64_t read_tpidr_el1(void)
{
    uint64_t value;

    /* The memory clobber keeps it after a sleep, which may change the CPU. */
    __asm__ volatile("mrs %0, tpidr_el1" : "=r"(value)::"memory");
    return value;
}

/* Generic timer */
SYSREG_READ(cntfrq_el0, "cntfrq_el0")
SYSREG_READ(cntvct_el0, "cntvct_el0")
SYSREG_RW(cntv_ctl_el0, "cntv_ctl_el0")
SYSREG_RW(cntv_cval_el0, "cntv_cval_el0")
SYSREG_WRITE(cntkctl_el1, "cntkctl_el1")

/* GICv3 CPU interface; by encoding, for assemblers without the names */
SYSREG_RW(icc_sre_el1, "S3_0_C12_C12_5")
SYSREG_RW(icc_pmr_el1, "S3_0_C4_C6_0")
SYSREG_RW(icc_bpr1_el1, "S3_0_C12_C12_3")
SYSREG_RW(icc_ctlr_el1, "S3_0_C12_C12_4")
SYSREG_RW(icc_igrpen1_el1, "S3_0_C12_C12_7")
SYSREG_READ(icc_iar1_el1, "S3_0_C12_C12_0")
SYSREG_WRITE(icc_eoir1_el1, "S3_0_C12_C12_1")
SYSREG_WRITE(icc_sgi1r_el1, "S3_0_C12_C11_5")

/* --- interrupt masking --- */

#define DAIF_I (1UL << 7)

static inline void local_irq_disable(void)
{
    __asm__ volatile("msr daifset, #2" ::: "memory");
}

static inline void local_irq_enable(void)
{
    __asm__ volatile("msr daifclr, #2" ::: "memory");
}

static inline bool local_irqs_masked(void)
{
    return (read_daif() & DAIF_I) != 0;
}

static inline uint64_t local_irq_save(void)
{
    uint64_t flags = read_daif();

    local_irq_disable();
    return flags;
}

static inline void local_irq_restore(uint64_t flags)
{
    /* Cheaper than writing DAIF, and all the kernel ever changes is I. */
    if ((flags & DAIF_I) == 0) {
        local_irq_enable();
    }
}

/* --- address translation by hand: AT, result in PAR_EL1 --- */

static inline uint64_t at_s1e0r(uint64_t va)
{
    __asm__ volatile("at s1e0r, %0\n isb" ::"r"(va) : "memory");
    return read_par_el1();
}

static inline uint64_t at_s1e0w(uint64_t va)
{
    __asm__ volatile("at s1e0w, %0\n isb" ::"r"(va) : "memory");
    return read_par_el1();
}

static inline uint64_t at_s1e1r(uint64_t va)
{
    __asm__ volatile("at s1e1r, %0\n isb" ::"r"(va) : "memory");
    return read_par_el1();
}

static inline uint64_t at_s1e1w(uint64_t va)
{
    __asm__ volatile("at s1e1w, %0\n isb" ::"r"(va) : "memory");
    return read_par_el1();
}

/* --- caches, by virtual address --- */

static inline void dc_cvau(const void *va)
{
    __asm__ volatile("dc cvau, %0" ::"r"(va) : "memory");
}

static inline void dc_zva(void *va)
{
    __asm__ volatile("dc zva, %0" ::"r"(va) : "memory");
}

static inline void ic_ivau(const void *va)
{
    __asm__ volatile("ic ivau, %0" ::"r"(va) : "memory");
}

static inline void ic_ialluis(void)
{
    __asm__ volatile("ic ialluis" ::: "memory");
}

/* --- PSCI conduit (SMC calling convention over HVC) --- */

static inline uint64_t hvc_call(uint64_t fn, uint64_t a1, uint64_t a2,
                                uint64_t a3)
{
    register uint64_t x0 __asm__("x0") = fn;
    register uint64_t x1 __asm__("x1") = a1;
    register uint64_t x2 __asm__("x2") = a2;
    register uint64_t x3 __asm__("x3") = a3;

    __asm__ volatile("hvc #0"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                     :
                     : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                       "x13", "x14", "x15", "x16", "x17", "memory");
    return x0;
}

static inline uint64_t smc_call(uint64_t fn, uint64_t a1, uint64_t a2,
                                uint64_t a3)
{
    register uint64_t x0 __asm__("x0") = fn;
    register uint64_t x1 __asm__("x1") = a1;
    register uint64_t x2 __asm__("x2") = a2;
    register uint64_t x3 __asm__("x3") = a3;

    __asm__ volatile("smc #0"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                     :
                     : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                       "x13", "x14", "x15", "x16", "x17", "memory");
    return x0;
}

#endif
