/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtual timer driver. All functions: own CPU, interrupts masked. */
#include "drivers/timer.h"

#include "abi/board.h"
#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "drivers/gic.h"
#include "kernel/sched.h"
#include "kernel/time.h"

#define CNTV_CTL_ENABLE 1
#define CNTV_CTL_IMASK 2
#define CNTKCTL_EL0VCTEN 2

/* What the comparator holds: writing a register costs more than a compare. */
static struct {
    uint64_t deadline;
} CACHE_ALIGNED timers[MAX_CPUS];

void timer_init_cpu(void)
{
    timers[cpu_id()].deadline = UINT64_MAX;
    write_cntv_ctl_el0(CNTV_CTL_IMASK);
    write_cntkctl_el1(CNTKCTL_EL0VCTEN);
    isb();
    gic_enable_ppi(BOARD_TIMER_VIRT_INTID);
}

void timer_set_deadline(uint64_t ns)
{
    uint64_t *deadline = &timers[cpu_id()].deadline;

    if (ns == *deadline) {
        return;
    }
    if (ns == UINT64_MAX) {
        write_cntv_ctl_el0(CNTV_CTL_IMASK);
    } else {
        write_cntv_cval_el0(time_ns_to_ticks(ns));
        if (*deadline == UINT64_MAX) {
            write_cntv_ctl_el0(CNTV_CTL_ENABLE);
        }
    }
    isb();
    *deadline = ns;
}

void timer_handle_irq(void)
{
    /* The line stays up until the comparator is moved or masked. */
    timer_set_deadline(UINT64_MAX);
    sched_tick();
}
