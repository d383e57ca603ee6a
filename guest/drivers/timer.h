/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtual timer of each CPU (PPI 27) as one deadline. */
#ifndef DRIVERS_TIMER_H
#define DRIVERS_TIMER_H

#include "kernel/types.h"

void timer_init_cpu(void);
/* Interrupt at that time_now_ns(); UINT64_MAX: none. Interrupts masked. */
void timer_set_deadline(uint64_t ns);
void timer_handle_irq(void);

#endif
