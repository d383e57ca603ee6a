/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a CPU is stopped: how long after it was sent an interrupt comes, and
 * whether another CPU gets on while this one runs straight ahead.
 */
#include "liberty.h"

#define ROUNDS 40u
#define SGI_PING 1
#define STRAIGHT 100u /* blocks; a whole quantum has some more */

static struct outcome late = {"ipi-delay", 0, 0};
static struct outcome stopped = {"preempt", 0, 0};
static uint64_t masked_taken, latest;
static uint32_t sent, taken, stop, events;
static volatile uint64_t counter;

static void on_sgi(struct frame *f, unsigned intid)
{
    (void)f;
    (void)intid;
    store_release(&taken, taken + 1);
}

static uint64_t begin(uint64_t unused)
{
    (void)unused;
    gic_init_cpu();
    this_cpu()->irq = on_sgi;
    return 0;
}

/*
 * Works until the interrupt n came, and counts how much it got done between
 * seeing that it was sent and being interrupted.
 */
static uint64_t work_until(uint64_t n)
{
    uint64_t done = 0;

    irq_on();
    while (load_acquire(&taken) != n) {
        if (load_acquire(&sent) == n && load_acquire(&taken) != n) {
            done++;
        }
        store_release(&events, events + 1);
        pause_cpu();
    }
    irq_off();
    return done;
}

/* The same with interrupts masked: it must not come at all. */
static uint64_t work_masked(uint64_t n)
{
    for (unsigned i = 0; i < 400; i++) {
        masked_taken += load_acquire(&taken) == n;
        store_release(&events, events + 1);
    }
    return 0;
}

static void interrupt(uint32_t n, bool masked)
{
    uint64_t done;

    if (masked) {
        gic_sgi(2, SGI_PING);
        store_release(&sent, n);
        (void)on(2, work_masked, n);
        (void)on(2, work_until, n);
        return;
    }
    send(2, work_until, n);
    pause_cpu();
    gic_sgi(2, SGI_PING);
    store_release(&sent, n);
    done = answer(2);
    latest = done > latest ? done : latest;
    note(&late, done != 0);
}

/* No trap, no barrier, nothing that another one could come before. */
static uint64_t count(uint64_t unused)
{
    while (!*(volatile uint32_t *)&stop) {
        counter++;
    }
    return unused;
}

static void go_straight(void)
{
    uint64_t before, after;

    pause_cpu(); /* comes back with a whole quantum */
    before = counter;
    for (unsigned i = 0; i < STRAIGHT; i++) {
        __asm__ volatile("" ::: "memory");
    }
    after = counter;
    note(&stopped, before != after);
}

int main(void)
{
    uint32_t n = 0;

    liberty_begin("liberty_irq");
    gic_init_dist();
    (void)on(2, begin, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        interrupt(++n, false);
        interrupt(++n, true);
    }
    send(2, count, 0);
    while (!counter) {
        pause_cpu();
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        go_straight();
    }
    stop = 1;
    (void)answer(2);
    show(&late);
    print("INFO: rounds of work before a late interrupt: %u\n", latest);
    show(&stopped);
    check_equal(taken, n, "each interrupt came once");
    check_equal(masked_taken, 0, "and none while it was masked");
    finish("liberty_irq");
}
