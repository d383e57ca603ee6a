/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How often each CPU took which interrupt: /proc/interrupts. */
#ifndef KERNEL_IRQSTAT_H
#define KERNEL_IRQSTAT_H

#include "kernel/percpu.h"
#include "kernel/types.h"

enum irq_kind {
    IRQ_TIMER,
    IRQ_UART,
    IRQ_RESCHEDULE,
    IRQ_CALL,
    IRQ_STOP,
    IRQ_KINDS
};

/* [own CPU, interrupts masked; others only read] */
struct irq_stats {
    uint64_t count[IRQ_KINDS];
} CACHE_ALIGNED;

extern struct irq_stats irq_stats[MAX_CPUS];

static inline void irq_count(enum irq_kind kind)
{
    irq_stats[cpu_id()].count[kind]++;
}

#endif
