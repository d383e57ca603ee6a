/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stores to every part of the physical address space that is not this program,
 * in steps that reach each device register and each page of RAM; then, with
 * WILD, to the program itself, after which anything may happen.
 */
#include "guest.h"

#include "abi/annot.h"

extern char __image_start[], __image_end[];

struct range {
    uint64_t from, to, step;
};

static const struct range ranges[] = {
    {0, 0x1000000, 0x1000},
    {BOARD_GICD_BASE, BOARD_GICD_BASE + 0x10000, 4},
    {BOARD_GICR_BASE, BOARD_GICR_BASE + 0x80000, 8},
    {BOARD_UART_BASE + 4, BOARD_UART_BASE + 0x1000, 4},
    {0x0a000000, 0x0b000000, 0x1000},
    /* Not FINDING, which ends the run, nor the pair that reaches it. */
    {BOARD_ANNOT_BASE, BOARD_ANNOT_BASE + ANNOT_REG_FINDING - 8, 8},
    {BOARD_ANNOT_BASE + ANNOT_REG_FINDING + 8, BOARD_ANNOT_BASE + 0x1000, 8},
    {0x10000000, 0x40000000, 0x100000},
    {0x44000000, 0x100000000ull, 0x1000},
    {BOARD_GICR2_BASE, BOARD_GICR2_BASE + 0x80000, 0x10},
    {0x8000000000ull, 0xffffffffffffull, 0x100000000ull},
};

static void store64(uint64_t a)
{
    *(volatile uint64_t *)a = 0x5555aaaa5555aaaaull;
}
static void store32(uint64_t a)
{
    *(volatile uint32_t *)a = 0xaaaa5555;
}
static void store8(uint64_t a)
{
    *(volatile uint8_t *)a = 0x5a;
}
static void store_pair(uint64_t a)
{
    __asm__ volatile("stp %0, %0, [%1]" ::"r"(-1ull), "r"(a) : "memory");
}
static void zero_line(uint64_t a)
{
    __asm__ volatile("dc zva, %0" ::"r"(a) : "memory");
}
static void load64(uint64_t a)
{
    (void)*(volatile uint64_t *)a;
}

int main(void)
{
    void (*const how[])(uint64_t) = {store64, store32,   store8,
                                     load64,  store_pair, zero_line};
    uint64_t faults = 0, tries = 0;
    struct trap t;

    write_sysreg(sctlr_el1, read_sysreg(sctlr_el1) & ~1ull);
    isb();
    for (unsigned h = 0; h < sizeof(how) / sizeof(how[0]); h++) {
        for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
            const struct range *r = &ranges[i];
            /* The wide ranges once; the devices by every form. */
            uint64_t step = h ? r->step * (r->step >= 0x1000 ? 16 : 1)
                              : r->step;

            for (uint64_t a = r->from; a < r->to; a += step, tries++) {
                faults += probe(how[h], a, &t);
            }
        }
    }
    mmio_write32(BOARD_UART_BASE + 0x30, 0x301); /* UARTCR: enabled again */
    print("INFO: %u accesses, %u faulted\n", tries, faults);
#ifdef WILD
    print("WILD: now the program itself\n");
    for (uint64_t a = (uint64_t)__image_start;; a += 8) {
        store64(a);
    }
#endif
    finish("write_everywhere");
}
