/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who runs which vCPU when: what the machine asks of a scheduler. There are
 * two: sched_parallel.c (worker threads, `parallel`) and sched_det.c (one
 * thread, `seeded` and `vtime`).
 */
#ifndef VMM_SCHEDULER_H
#define VMM_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

struct sched;
struct vcpu;
struct vm;

struct sched_ops {
    void (*free)(struct sched *sched);
    /* Starts the threads. False: one could not be made. */
    bool (*start)(struct sched *sched, GError **error);
    /* Makes every thread leave its vCPU, and joins them. */
    void (*join)(struct sched *sched);

    /* --- any thread; sched_det.c: its own --- */

    /* Wakes everybody so that they see that the machine stops. Any thread. */
    void (*stop)(struct sched *sched);
    /* A parked or powered-off vCPU becomes runnable; no effect on others. */
    void (*wake)(struct sched *sched, struct vcpu *vcpu);
    /* The interrupt signal of the GIC to this vCPU changed. */
    void (*irq)(struct sched *sched, struct vcpu *vcpu, bool level);
    /* The deadline of this vCPU's timers may have changed. */
    void (*timer_changed)(struct sched *sched, unsigned cpu);

    /* --- the thread that runs the vCPU --- */

    /*
     * watch->budget blocks were entered: sets a new budget, and asks the vCPU
     * to yield if it is another's turn.
     */
    void (*quantum_over)(struct sched *sched, struct vcpu *vcpu);
    /* WFE or YIELD, it waits for somebody: true if it shall give way. */
    bool (*spin)(struct sched *sched, struct vcpu *vcpu);
    /*
     * Runs fn(opaque) while no other vCPU is in the guest: for what must be
     * done to the whole machine. The caller holds `self`, which is not in the
     * guest either.
     */
    void (*exclusive)(struct sched *sched, struct vcpu *self,
                      void (*fn)(void *opaque), void *opaque);
    /* The guest's counter, in ticks. */
    uint64_t (*now_ticks)(struct sched *sched);
};

/* What both begin with. */
struct sched {
    const struct sched_ops *ops;
};

/* For an interrupt handler that `parallel` runs out of turn, in blocks. */
#define SCHED_URGED_BLOCKS 512u

struct sched *sched_parallel_new(struct vm *vm, unsigned workers);

#endif
