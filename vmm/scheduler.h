/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `parallel` scheduler: as many worker threads as asked for, one run queue
 * of vCPUs, each worker running one vCPU's engine at a time. A vCPU in WFI
 * parks and costs nothing. Where others wait, a slice ends after a number of
 * blocks; counting blocks needs no timer and costs one decrement.
 */
#ifndef VMM_SCHEDULER_H
#define VMM_SCHEDULER_H

#include <stdbool.h>
#include <glib.h>

struct sched;
struct vcpu;
struct vm;

/* Some 50 to 100 us of guest code; a switch costs about 1 us. */
#define SCHED_SLICE_BLOCKS 8192u
/* For an interrupt handler that is run out of turn. */
#define SCHED_URGED_BLOCKS 512u

struct sched *sched_new(struct vm *vm, unsigned workers);
void sched_free(struct sched *sched);

/* Starts the workers. False: a thread could not be made. */
bool sched_start(struct sched *sched, GError **error);
/* Makes every worker leave its vCPU, and joins them. */
void sched_join(struct sched *sched);

/* --- any thread --- */

/* A parked or powered-off vCPU becomes runnable; no effect on others. */
void sched_wake(struct sched *sched, struct vcpu *vcpu);
/*
 * An interrupt came for a vCPU that no worker runs: it is the next to run, and
 * if every worker is busy one of them, not the caller's, is asked to yield.
 * Without it the sender of an IPI would wait for whole slices of others.
 */
void sched_urge(struct sched *sched, struct vcpu *vcpu);
/* Some vCPU is runnable and has no worker. A hint. */
bool sched_others_wait(const struct sched *sched);
/* Wakes everybody so that they see that the machine stops. */
void sched_stop(struct sched *sched);

/* --- a worker's thread, holding no vCPU in the guest --- */

/*
 * Runs fn(opaque) while no other vCPU is held: for what must be done to the
 * whole machine. The caller holds `self`.
 */
void sched_exclusive(struct sched *sched, struct vcpu *self,
                     void (*fn)(void *opaque), void *opaque);

#endif
