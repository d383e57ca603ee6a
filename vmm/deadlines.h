/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The deadlines of the guest's timers, one per CPU, as the loop last heard of
 * them. A vCPU's thread notes its own; the loop looks for the earliest, and
 * takes off what expired. In ticks of the machine; ARCH_TIMER_NONE is none.
 */
#ifndef VMM_DEADLINES_H
#define VMM_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>

struct deadlines;

/* All are none. */
struct deadlines *deadlines_new(unsigned cpus);
void deadlines_free(struct deadlines *deadlines);

/*
 * Any thread: this is the CPU's deadline now. True: it is earlier than what was
 * noted, so whoever waits for the earliest has to look again.
 */
bool deadlines_note(struct deadlines *deadlines, unsigned cpu, uint64_t ticks);
uint64_t deadlines_of(const struct deadlines *deadlines, unsigned cpu);
uint64_t deadlines_earliest(const struct deadlines *deadlines);
/*
 * What the loop saw has expired, and the timer's next deadline was `next` when
 * it looked. A deadline that the vCPU noted after the loop looked stays: it is
 * newer than `next`.
 */
void deadlines_expired(struct deadlines *deadlines, unsigned cpu, uint64_t seen,
                       uint64_t next);

#endif
