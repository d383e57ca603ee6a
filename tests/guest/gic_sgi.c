/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Software-generated interrupts between CPUs: by target list, to all others,
 * in order of priority, masked by PMR, never lost.
 */
#include "guest.h"

#define STORM 20000u
#define SGI_PING 1
#define SGI_PONG 2
#define SGI_LOW 5
#define SGI_HIGH 6

static unsigned n;
static uint32_t ready, stop;
static uint32_t pings[MAX_CPUS][16];
static uint32_t order[4], order_n;

static void on_sgi(struct frame *f, unsigned intid)
{
    unsigned me = this_cpu()->id;

    (void)f;
    if (intid == SGI_PING) {
        __atomic_fetch_add(&pings[me][0], 1, __ATOMIC_RELEASE);
        if (me) {
            gic_sgi(0, SGI_PONG);
        }
    }
    if (intid == SGI_LOW || intid == SGI_HIGH) {
        order[order_n++ % 4] = intid;
    }
}

static void member(unsigned cpu)
{
    (void)cpu;
    gic_init_cpu();
    this_cpu()->irq = on_sgi;
    __atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
    /* Masked between the test and WFI, or the last SGI could slip between. */
    while (!load_acquire(&stop)) {
        __asm__ volatile("wfi");
        irq_on();
        isb();
        irq_off();
    }
}

static uint32_t count(unsigned cpu)
{
    return load_acquire(&pings[cpu][0]);
}

static bool wait_counts(uint32_t want, unsigned from)
{
    for (unsigned i = from; i < n; i++) {
        unsigned spins = 0;

        while (count(i) != want) {
            if (++spins % 1024 == 0) {
                __asm__ volatile("yield");
            }
        }
    }
    return true;
}

int main(void)
{
    uint32_t sent = 0, before;
    uint64_t all = 0;

    n = cpu_count();
    n = n < 8 ? n : 8;
    gic_init_dist();
    gic_init_cpu();
    cpus[0].irq = on_sgi;
    for (unsigned i = 1; i < n; i++) {
        cpu_start(i, member);
        all |= 1u << i;
    }
    wait_for(&ready, n - 1);
    irq_on();
    print("INFO: %u CPUs\n", (uint64_t)n);

    for (unsigned i = 1; i < n; i++) {
        gic_sgi(i, SGI_PING);
    }
    sent++;
    check(wait_counts(sent, 1), "each CPU by its own");
    gic_sgi_raw((uint64_t)SGI_PING << 24 | all);
    sent++;
    check(wait_counts(sent, 1), "all in one target list");
    before = pings[0][0];
    gic_sgi_raw((uint64_t)SGI_PING << 24 | 1ull << 40);
    sent++;
    check(wait_counts(sent, 1), "IRM: all but the sender");
    for (unsigned i = 0; i < 1000; i++) {
        isb();
    }
    check(pings[0][0] == before, "IRM leaves the sender out");
    gic_sgi_raw((uint64_t)SGI_PING << 24 | 7ull << 16 | 0xffff);
    check(pings[0][0] == before, "an affinity nobody has reaches nobody");
    gic_sgi(0, SGI_PING);
    while (count(0) == before) {
    }
    check(count(0) == before + 1, "an SGI to itself");

    /* One at a time, each answered: a lost one hangs here. */
    for (unsigned i = 0; i < STORM && n > 1; i++) {
        unsigned target = 1 + i % (n - 1);
        uint32_t have = count(target), pongs = cpus[0].irqs[SGI_PONG];

        gic_sgi(target, SGI_PING);
        while (*(volatile uint32_t *)&cpus[0].irqs[SGI_PONG] == pongs ||
               count(target) == have) {
        }
    }
    check(true, "20000 round trips, none lost");

    irq_off();
    gic_priority(SGI_LOW, 0xb0);
    gic_priority(SGI_HIGH, 0x40);
    gic_sgi(0, SGI_LOW);
    gic_sgi(0, SGI_HIGH);
    irq_on();
    isb();
    irq_off();
    check(order_n == 2 && order[0] == SGI_HIGH && order[1] == SGI_LOW,
          "the higher priority comes first");

    write_sysreg(S3_0_C4_C6_0, 0x80);
    gic_sgi(0, SGI_LOW);
    gic_sgi(0, SGI_HIGH);
    irq_on();
    isb();
    irq_off();
    check(order_n == 3 && order[2] == SGI_HIGH,
          "PMR lets only the higher priority through");
    check_equal(read_sysreg(S3_0_C12_C12_0), 1023,
                "ICC_IAR1_EL1 reads 1023 when nothing may come");
    write_sysreg(S3_0_C4_C6_0, 0xff);
    irq_on();
    isb();
    irq_off();
    check(order_n == 4 && order[3] == SGI_LOW, "the other one was kept");
    check_equal(read_sysreg(S3_0_C12_C11_3), 0xff,
                "ICC_RPR_EL1 is idle outside handlers");

    store_release(&stop, 1);
    gic_sgi_raw((uint64_t)SGI_PONG << 24 | 1ull << 40);
    for (unsigned i = 1; i < n; i++) {
        cpu_wait(i);
    }
    check(true, "every CPU left its loop");
    finish("gic_sgi");
}
