/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Per-CPU data. TPIDR_EL1 points at this CPU's struct cpu. Since the kernel is
 * preempted only at preempt_point() and when it sleeps, the answer of cpu_id()
 * stays true until then.
 *
 * Other modules keep per-CPU state in arrays indexed by cpu_id(), with
 * CACHE_ALIGNED elements.
 */
#ifndef KERNEL_PERCPU_H
#define KERNEL_PERCPU_H

#include "arch/sysreg.h"
#include "kernel/cpumask.h"
#include "kernel/types.h"

struct task;

struct cpu {
    uint32_t id;             /* [init] logical number, order of the DT */
    uint32_t irq_depth;      /* [own CPU] nesting of interrupt handlers */
    uint64_t mpidr;          /* [init] affinity bits */
    uint64_t boot_stack_top; /* [init] stack of the idle task; boot/start.S */
    struct task *idle;       /* [init] */
    volatile void *gicr;     /* [own CPU] redistributor frame */
    struct task *fp_owner;   /* [own CPU] whose FP registers are loaded */
    _Atomic uint32_t need_resched; /* any CPU sets, own CPU clears */
    _Atomic uint32_t online;
} CACHE_ALIGNED;

extern struct cpu cpus[MAX_CPUS];

static inline struct cpu *this_cpu(void)
{
    return (struct cpu *)read_tpidr_el1();
}

static inline unsigned cpu_id(void)
{
    return this_cpu()->id;
}

static inline bool in_irq(void)
{
    return this_cpu()->irq_depth != 0;
}

#endif
