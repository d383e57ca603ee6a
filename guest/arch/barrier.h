/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Barriers and hints, by their Arm names. All are compiler barriers too. */
#ifndef ARCH_BARRIER_H
#define ARCH_BARRIER_H

#define ARCH_BARRIER(name, text)                                               \
    static inline void name(void)                                              \
    {                                                                          \
        __asm__ volatile(text ::: "memory");                                   \
    }

ARCH_BARRIER(isb, "isb")
ARCH_BARRIER(dsb_sy, "dsb sy")
ARCH_BARRIER(dsb_ish, "dsb ish")
ARCH_BARRIER(dsb_ishst, "dsb ishst")
ARCH_BARRIER(dsb_nsh, "dsb nsh")
ARCH_BARRIER(dsb_nshst, "dsb nshst")
ARCH_BARRIER(dmb_ish, "dmb ish")
ARCH_BARRIER(dmb_ishld, "dmb ishld")
ARCH_BARRIER(dmb_ishst, "dmb ishst")
ARCH_BARRIER(wfi, "wfi")
ARCH_BARRIER(wfe, "wfe")
ARCH_BARRIER(sev, "sev")
ARCH_BARRIER(sevl, "sevl")
ARCH_BARRIER(cpu_relax, "yield")

static inline void compiler_barrier(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif
