/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of random words run at EL0, each until it traps or a timer stops it.
 * The kernel around it must come through unharmed.
 */
#include "rng.h"

#define PAGES 3000u
#define CODE_PAGE 8
#define DATA_PAGE 9
#define SEED 0x5eed0001ull

static uint32_t code[1024] __attribute__((aligned(4096)));
static uint8_t data[4096] __attribute__((aligned(4096)));
extern char probe_resume[];
static uint64_t stopped;

static void on_timer(struct frame *f, unsigned intid)
{
    (void)intid;
    write_sysreg(cntv_ctl_el0, 0);
    isb();
    stopped++;
    /* As if EL0 had trapped: back to where probe() was called. */
    f->elr = (uint64_t)probe_resume;
    f->spsr = 0x3c5;
}

int main(void)
{
    struct rng r = {SEED};
    uint64_t by_class[64] = {0};
    struct trap t;

    gic_init_dist();
    gic_init_cpu();
    gic_enable(BOARD_TIMER_VIRT_INTID);
    cpus[0].irq = on_timer;
    print("INFO: seed %x, %u pages\n", SEED, (uint64_t)PAGES);
    window_map(CODE_PAGE, (uint64_t)code, MAP_CODE | MAP_EL0 | MAP_PXN);
    window_map(DATA_PAGE, (uint64_t)data, MAP_DATA | MAP_EL0);
    for (unsigned p = 0; p < PAGES; p++) {
        struct el0_start s = {window_va(CODE_PAGE), window_va(DATA_PAGE + 1),
                              window_va(DATA_PAGE) + 512, 0};

        for (unsigned i = 0; i < 1024; i++) {
            uint64_t w = rng_next(&r);

            code[i] = (uint32_t)(w >> 32);
        }
        __asm__ volatile("dsb ish\n ic ialluis\n dsb ish\n isb" ::: "memory");
        write_sysreg(cntv_tval_el0, counter_hz() / 1000);
        write_sysreg(cntv_ctl_el0, 1);
        t.esr = ~0ull;
        probe(el0_enter, (uint64_t)&s, &t);
        write_sysreg(cntv_ctl_el0, 0);
        if (t.esr != ~0ull) {
            by_class[t.esr >> 26 & 63]++;
        }
    }
    print("INFO: stopped by the timer: %u\n", stopped);
    for (unsigned c = 0; c < 64; c++) {
        if (by_class[c]) {
            print("INFO: exception class %x: %u\n", (uint64_t)c, by_class[c]);
        }
    }
    finish("random_words_el0");
}
