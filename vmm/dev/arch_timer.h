/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The generic timer of each CPU: EL1 physical and virtual timers over one
 * counter that the caller supplies (CNTVOFF is 0, there is no EL2).
 */
#ifndef DEV_ARCH_TIMER_H
#define DEV_ARCH_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/sysreg_key.h"

struct arch_timer;

#define ARCH_TIMER_NONE UINT64_MAX

struct arch_timer_callbacks {
    /* The counter. Must be quick and must not call the timer. */
    uint64_t (*now_ticks)(void *opaque);
    /* A timer's interrupt line changed; called with no lock held. Calls for
     * one line never overlap and come in order. intid is 27 or 30. */
    void (*line)(void *opaque, unsigned cpu, unsigned intid, bool level);
};

struct arch_timer *arch_timer_new(unsigned cpus, uint64_t frequency,
                                  const struct arch_timer_callbacks *callbacks,
                                  void *opaque);
void arch_timer_free(struct arch_timer *timer);

/* --- any thread --- */

/* False: not a timer register, or not in that direction. A write may change
 * the line and the deadline. */
bool arch_timer_sysreg_read(struct arch_timer *timer, unsigned cpu,
                            uint32_t key, uint64_t *out_value);
bool arch_timer_sysreg_write(struct arch_timer *timer, unsigned cpu,
                             uint32_t key, uint64_t value);

/* CNTKCTL_EL1 lets EL0 use this timer register. */
bool arch_timer_el0_allowed(const struct arch_timer *timer, unsigned cpu,
                            uint32_t key);

/* Counter value at which arch_timer_update() will next raise a line, or
 * ARCH_TIMER_NONE. One atomic load. */
uint64_t arch_timer_deadline(const struct arch_timer *timer, unsigned cpu);

/* Compare with the counter now and tell the lines. */
void arch_timer_update(struct arch_timer *timer, unsigned cpu);

void arch_timer_reset_cpu(struct arch_timer *timer, unsigned cpu);

/* --- while nobody else uses the timers, and outside their callbacks --- */

/*
 * All that the guest can see or change, as plain bytes without pointers and
 * gaps: equal states give equal bytes. The levels that the listener was told
 * are part of it and nothing is told; the counter is the caller's to put back.
 * Only for timers of as many CPUs.
 */
size_t arch_timer_state_size(const struct arch_timer *timer);
void arch_timer_save(const struct arch_timer *timer, void *to);
void arch_timer_restore(struct arch_timer *timer, const void *from);

#endif
