/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random loads and stores of random sizes to device registers by all CPUs:
 * aligned and not, in and beside them, with interrupts masked.
 */
#include "abi/annot.h"
#include "rng.h"

#define SEED 0x5eed0005ull
#define ROUNDS 100000u


static void access(struct rng *r)
{
    static const uint64_t bases[] = {
        BOARD_GICD_BASE,  BOARD_GICD_BASE,        BOARD_GICR_BASE,
        BOARD_GICR_BASE + 0x10000, BOARD_GICR_BASE + 0x20000,
        BOARD_GICR2_BASE, BOARD_UART_BASE,        BOARD_ANNOT_BASE,
        0x0a000000,       0x3eff0000};
    uint64_t a = bases[rng_next(r) % (sizeof(bases) / sizeof(bases[0]))] +
                 rng_next(r) % 0x10000;
    uint64_t v = rng_next(r);

    if (rng_next(r) % 4) {
        a &= ~7ull;
    }
    if ((a & ~0xfffull) == BOARD_UART_BASE && (a & 0xfff) < 4) {
        return; /* not into the output */
    }
    if (a + 16 > BOARD_ANNOT_BASE + ANNOT_REG_FINDING &&
        a < BOARD_ANNOT_BASE + ANNOT_REG_FINDING + 8) {
        return; /* it would end the run */
    }
    switch (rng_next(r) % 10) {
    case 0:
        (void)*(volatile uint8_t *)a;
        break;
    case 1:
        (void)*(volatile uint16_t *)a;
        break;
    case 2:
        (void)*(volatile uint32_t *)a;
        break;
    case 3:
        (void)*(volatile uint64_t *)a;
        break;
    case 4:
        *(volatile uint8_t *)a = (uint8_t)v;
        break;
    case 5:
        *(volatile uint16_t *)a = (uint16_t)v;
        break;
    case 6:
        *(volatile uint32_t *)a = (uint32_t)v;
        break;
    case 7:
        *(volatile uint64_t *)a = v;
        break;
    case 8:
        __asm__ volatile("ldp %0, xzr, [%1]" : "=r"(v) : "r"(a) : "memory");
        break;
    case 9:
        __asm__ volatile("stp %0, xzr, [%1]" ::"r"(v), "r"(a) : "memory");
        break;
    }
}

static void probed(uint64_t r)
{
    access((struct rng *)r);
}

static void member(unsigned cpu)
{
    struct rng r = {SEED + cpu};
    struct trap t;

    for (unsigned i = 0; i < ROUNDS; i++) {
        probe(probed, (uint64_t)&r, &t);
    }
}

int main(void)
{
    unsigned n = cpu_count();

    print("INFO: seed %x\n", SEED);
    run_on_all(n < 4 ? n : 4, member);
    mmio_write32(BOARD_UART_BASE + 0x30, 0x301); /* UARTCR: enabled again */
    finish("mmio_random");
}
