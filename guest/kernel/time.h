/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monotonic time from the virtual counter, and busy waiting. */
#ifndef KERNEL_TIME_H
#define KERNEL_TIME_H

#include "kernel/types.h"

#define HZ 100
#define NSEC_PER_SEC 1000000000UL
#define NSEC_PER_TICK (NSEC_PER_SEC / HZ)

void time_init(void);
uint64_t time_now_ns(void);             /* since the counter started */
uint64_t time_ns_to_ticks(uint64_t ns); /* counter ticks, rounded up */
void time_udelay(uint64_t us);

#endif
