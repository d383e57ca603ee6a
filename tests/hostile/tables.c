/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Table entries that lead into devices, out of RAM, beyond the address size,
 * to their own table, to random memory: reads, writes and jumps through each.
 */
#include "rng.h"

#define SEED 0x5eed0003ull
#define TABLE 3ull

static uint64_t scratch[512] __attribute__((aligned(4096)));

static void load(uint64_t a)
{
    (void)*(volatile uint64_t *)a;
}
static void store(uint64_t a)
{
    *(volatile uint64_t *)a = 0;
}
static void jump(uint64_t a)
{
    ((void (*)(void))a)();
}
static void translate(uint64_t a)
{
    __asm__ volatile("at s1e1r, %0\n isb" ::"r"(a) : "memory");
    (void)read_sysreg(par_el1);
}

static void flush(void)
{
    __asm__ volatile("dsb ish\n tlbi vmalle1is\n dsb ish\n isb" ::: "memory");
}

static uint64_t through(uint64_t *entry, uint64_t value, uint64_t va)
{
    struct trap t;
    uint64_t faults = 0;

    *entry = value;
    flush();
    /* AT reports faults in PAR_EL1, but an external abort is an exception. */
    probe(translate, va, &t);
    faults += probe(load, va, &t);
    faults += probe(load, va + 0xff8, &t);
    faults += probe(jump, va, &t);
    faults += probe(store, va + 0x1000, &t);
    *entry = 0;
    flush();
    return faults;
}

int main(void)
{
    static const uint64_t nowhere[] = {
        BOARD_UART_BASE, BOARD_GICD_BASE,  BOARD_GICR_BASE, 0,
        0x20000000,      0xfffff000,       0x8000000000ull, 0xfffff000000ull,
        0x7fffffff000ull & ~0xfffull, 0xfffffffff000ull};
    struct rng r = {SEED};
    uint64_t faults = 0, tries = 0;

    for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
        faults += through(&level0[9], nowhere[i] | TABLE, 9ull << 39);
        faults += through(&level1[9], nowhere[i] | TABLE, 9ull << 30);
        faults += through(&window2[9], nowhere[i] | TABLE,
                          WINDOW_VA + (9ull << 21));
        faults += through(&window3[9], nowhere[i] | MAP_DATA, window_va(9));
        faults += through(&window3[9], nowhere[i] | MAP_CODE, window_va(9));
        tries += 20;
    }
    /* A table that holds itself: a page at level 3 is its own map. */
    faults += through(&level0[9], (uint64_t)level0 | TABLE,
                      9ull << 39 | 9ull << 30 | 9ull << 21 | 9ull << 12);
    faults += through(&level1[9], (uint64_t)level1 | TABLE,
                      9ull << 30 | 9ull << 21 | 9ull << 12);
    tries += 8;
    for (unsigned n = 0; n < 20; n++) {
        for (unsigned i = 0; i < 512; i++) {
            scratch[i] = rng_next(&r);
        }
        faults += through(&level0[9], (uint64_t)scratch | TABLE,
                          9ull << 39 | (rng_next(&r) & 0x7ffffff000ull));
        faults += through(&level1[9], (uint64_t)scratch | TABLE,
                          9ull << 30 | (rng_next(&r) & 0x3ffff000ull));
        faults += through(&window2[9], (uint64_t)scratch | TABLE,
                          WINDOW_VA + (9ull << 21) +
                              (rng_next(&r) & 0x1ff000ull));
        tries += 12;
    }
    print("INFO: %u accesses, %u faulted\n", tries, faults);
#ifdef ROOT
    /* Now the root itself; the next fetch has nowhere to come from. */
    write_sysreg(ttbr0_el1, ROOT);
    flush();
#endif
    finish("tables");
}
