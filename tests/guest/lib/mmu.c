/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page tables of the test programs: 48-bit addresses, 4 KiB granule. 0..1 GiB
 * device, 1..2 GiB normal memory, both EL1 only, in 1 GiB blocks; one window
 * of 512 single pages at 4 GiB. TTBR1 walks are off.
 */
#include "guest.h"

#define TCR_T0SZ_48 16ull
#define TCR_WBWA_ISH ((1ull << 8) | (1ull << 10) | (3ull << 12))
#define TCR_EPD1 (1ull << 23)
#define TCR_IPS_40 (2ull << 32)
#define TCR_AS16 (1ull << 36)

#define SCTLR_RES1 0x30d00800ull
#define SCTLR_M (1ull << 0)
#define SCTLR_C (1ull << 2)
#define SCTLR_SA (1ull << 3)
#define SCTLR_SA0 (1ull << 4)
#define SCTLR_I (1ull << 12)

extern char __user_start[], __user_end[];

uint64_t level0[512] __attribute__((aligned(4096)));
uint64_t level1[512] __attribute__((aligned(4096)));
uint64_t window2[512] __attribute__((aligned(4096)));
uint64_t window3[512] __attribute__((aligned(4096)));
static uint8_t user_stack[4096] __attribute__((aligned(4096)));

void mmu_build(void)
{
    const uint64_t block = MAP_BLOCK | MAP_AF | MAP_UXN;
    unsigned pages = (unsigned)((__user_end - __user_start) / 4096);

    level1[0] = block | MAP_DEVICE | MAP_PXN;
    level1[1] = BOARD_RAM_BASE | block | MAP_NORMAL | MAP_ISH;
    level1[WINDOW_VA >> 30] = (uint64_t)window2 | MAP_VALID;
    window2[0] = (uint64_t)window3 | MAP_VALID;
    level0[0] = (uint64_t)level1 | MAP_VALID;
    for (unsigned i = 0; i < pages; i++) {
        window3[WINDOW_USER_PAGE + i] =
            ((uint64_t)__user_start + i * 4096) | MAP_CODE | MAP_EL0 | MAP_PXN;
    }
    window3[WINDOW_USER_STACK] = (uint64_t)user_stack | MAP_DATA | MAP_EL0;
}

void mmu_enable(void)
{
    write_sysreg(mair_el1, 0x44ff04);
    write_sysreg(tcr_el1, TCR_T0SZ_48 | TCR_WBWA_ISH | TCR_EPD1 | TCR_IPS_40 |
                              TCR_AS16);
    write_sysreg(ttbr0_el1, (uint64_t)level0);
    __asm__ volatile("dsb ish; tlbi vmalle1; dsb nsh; isb" ::: "memory");
    write_sysreg(sctlr_el1, SCTLR_RES1 | SCTLR_M | SCTLR_C | SCTLR_I |
                                SCTLR_SA | SCTLR_SA0);
    isb();
}

void pte_write(uint64_t *entry, uint64_t value)
{
    *(volatile uint64_t *)entry = value;
    __asm__ volatile("dsb ishst; isb" ::: "memory");
}

void window_unmap(unsigned page)
{
    pte_write(&window3[page], 0);
    __asm__ volatile("tlbi vaae1is, %0; dsb ish; isb" ::"r"(
                         window_va(page) >> 12)
                     : "memory");
}

void window_map(unsigned page, uint64_t pa, uint64_t flags)
{
    window_unmap(page);
    pte_write(&window3[page], pa | flags);
}

uint64_t user_alias(const void *code)
{
    return window_va(WINDOW_USER_PAGE) +
           ((uint64_t)code - (uint64_t)__user_start);
}
