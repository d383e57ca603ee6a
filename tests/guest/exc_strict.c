/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults that real CPUs raise and emulators tend to leave out. Ours lacks some,
 * as docs/CAVEATS.md says; the expected output holds exactly those as FAIL.
 */
#include "exc.h"

SNIPPET(do_load, "ldr x1, [x0]");
SNIPPET(do_sp_align, "msr spsel, #0\n mov sp, x0\n ldr x1, [sp]\n"
                     "msr spsel, #1");
SNIPPET(do_cvac, "dc cvac, x0");
USER_SNIPPET(user_daif, "msr daifset, #2");
USER_SNIPPET(user_wfe, "wfe");
USER_SNIPPET(user_sp_align, "mov sp, x0\n ldr x1, [sp]");

#define PAGE 3

static uint8_t data[4096] __attribute__((aligned(4096)));

int main(void)
{
    const uint64_t va = window_va(PAGE), sp = (uint64_t)data + 8;
    const uint64_t block = BOARD_RAM_BASE | MAP_BLOCK | MAP_NORMAL | MAP_ISH |
                           MAP_AF | MAP_UXN | MAP_PXN;
    struct trap t = {0};
    struct want w = {VECTOR_EL1T,
                     ESR(EC_SP_ALIGN, 0),
                     0,
                     (uint64_t)do_sp_align + 8,
                     SPSR_EL1T | SPSR_DAIF,
                     false};

    probe(do_sp_align, sp, &t);
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap("a misaligned SP, on SP_EL0", &t, &w);
    expect_el0("EL0: a misaligned SP", user_sp_align,
               window_va(WINDOW_USER_STACK) + 8, 4, ESR(EC_SP_ALIGN, 0), 0,
               false);
    /* SCTLR_EL1.UMA and nTWE are clear. */
    expect_el0("EL0: MSR DAIFSet with UMA clear traps", user_daif, 0, 0,
               ESR(EC_SYSREG, ISS_REG(0, 3, 4, 2, 6, 31, 0)), 0, false);
    expect_el0("EL0: WFE with nTWE clear traps", user_wfe, 0, 0,
               ESR(EC_WFX, 0x1e00001), 0, false);

    window_unmap(PAGE);
    expect_abort("DC CVAC of an unmapped page says CM and WnR", do_cvac, va,
                 va, (FSC_TRANSLATION + 3) | ISS_WNR | ISS_CM);
    window_map(PAGE, (uint64_t)data, MAP_DATA & ~(7ull << 2));
    expect_abort("a misaligned LDR of device memory", do_load, va + 3, va + 3,
                 FSC_ALIGNMENT);

    level0[7] = block;
    __asm__ volatile("dsb ishst; tlbi vmalle1is; dsb ish; isb" ::: "memory");
    expect_abort("a block at level 0 is no translation", do_load, 7ull << 39,
                 7ull << 39, FSC_TRANSLATION);
    finish("exc_strict");
}
