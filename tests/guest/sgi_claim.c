/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An SGI wakes a CPU that sleeps in WFI, also at the very moment at which
 * another CPU's DSB serves the sleeper's invalidations for it.
 */
#include "guest.h"

#define ROUNDS 30000u
#define SGI_PING 1

static uint32_t ready, stop, pongs;

static void on_sgi(struct frame *f, unsigned intid)
{
    (void)f;
    (void)intid;
    __atomic_fetch_add(&pongs, 1, __ATOMIC_RELEASE);
}

static void sleeper(unsigned cpu)
{
    (void)cpu;
    gic_init_cpu();
    this_cpu()->irq = on_sgi;
    __atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
    while (!load_acquire(&stop)) {
        __asm__ volatile("wfi");
        irq_on();
        isb();
        irq_off();
    }
}

static void flusher(unsigned cpu)
{
    (void)cpu;
    __atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
    while (!load_acquire(&stop)) {
        __asm__ volatile("tlbi vaae1is, %0\n dsb ish" ::"r"(0x100000ull)
                         : "memory");
    }
}

int main(void)
{
    gic_init_dist();
    gic_init_cpu();
    cpu_start(1, sleeper);
    cpu_start(2, flusher);
    wait_for(&ready, 2);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        gic_sgi(1, SGI_PING);
        wait_for(&pongs, i); /* a lost one hangs here */
    }
    check(pongs == ROUNDS, "every SGI woke the sleeper once");
    store_release(&stop, 1);
    gic_sgi(1, SGI_PING);
    cpu_wait(1);
    cpu_wait(2);
    finish("sgi_claim");
}
