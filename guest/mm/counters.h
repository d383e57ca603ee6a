/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's own counters: one struct annot_counters (abi/annot.h) per CPU.
 *
 * counter_add() is a plain read-modify-write of this CPU's line: no atomics.
 * Rule: the kernel is preempted only at preempt_point() and where it sleeps, so
 * thread context may count as it is. A counter that an interrupt handler also
 * bumps (ipi_received, remote_flush_received, wrong_cpu, tlbi_local, dsb_nsh,
 * dsb_irq) is bumped with IRQs masked everywhere.
 */
#ifndef MM_COUNTERS_H
#define MM_COUNTERS_H

#include "abi/annot.h"
#include "abi/board.h"
#include "kernel/percpu.h"

extern struct annot_counters counters[BOARD_MAX_CPUS];

#define counter_add(name, n) ((void)(counters[cpu_id()].name += (uint64_t)(n)))
#define counter_inc(name) counter_add(name, 1)

/* The sum over all CPUs; exact when nothing runs. */
uint64_t counter_total(enum annot_counter_index which);
const char *counter_name(enum annot_counter_index which);

#endif
