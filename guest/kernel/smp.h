/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starting CPUs (PSCI) and calling functions on other CPUs (SGI).
 *
 * Each (source, target) pair has one bit in the target's call queue; the
 * function and its argument are in the source's descriptor. So a source has one
 * call in flight, and a target whose queue word is already non-empty is not
 * kicked again.
 */
#ifndef KERNEL_SMP_H
#define KERNEL_SMP_H

#include "kernel/cpumask.h"
#include "kernel/percpu.h"
#include "kernel/types.h"

extern struct cpumask cpu_online_mask; /* grows during smp_init() only */
extern unsigned cpu_count;             /* [init] CPUs of the machine */

void smp_init_boot_cpu(void);
void smp_init(void);

/*
 * Runs fn(arg) on every CPU of mask except this one, in interrupt context with
 * interrupts masked. With wait, returns when all have returned; without, when
 * all have been asked (arg must then outlive the call). Task context, or with
 * interrupts masked but never from an interrupt handler: while waiting this CPU
 * serves its own queue, so two CPUs calling each other do not deadlock.
 * fn must not sleep and must not call smp_call_mask().
 */
void smp_call_mask(const struct cpumask *mask, void (*fn)(void *), void *arg,
                   bool wait);
/* Runs what others asked of this CPU; interrupts masked. */
void smp_call_serve(void);

void smp_send_reschedule(unsigned cpu);
/* Panic: park every other CPU; does not wait. */
void smp_stop_others(void);

enum smp_sgi {
    SGI_CALL = 0,
    SGI_RESCHEDULE = 1,
    SGI_STOP = 2,
};
void smp_handle_sgi(unsigned intid);

#endif
