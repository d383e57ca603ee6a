/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The deadlines of the guest's timers; see deadlines.h. */
#include "deadlines.h"

#include <stdatomic.h>
#include <glib.h>

#include "dev/arch_timer.h"

struct deadlines {
    unsigned cpus;          /* [init] */
    _Atomic uint64_t cpu[]; /* all accesses seq_cst */
};

struct deadlines *deadlines_new(unsigned cpus)
{
    struct deadlines *deadlines =
        g_malloc(sizeof(*deadlines) + cpus * sizeof(deadlines->cpu[0]));

    deadlines->cpus = cpus;
    for (unsigned i = 0; i < cpus; i++) {
        atomic_init(&deadlines->cpu[i], ARCH_TIMER_NONE);
    }
    return deadlines;
}

void deadlines_free(struct deadlines *deadlines)
{
    g_free(deadlines);
}

bool deadlines_note(struct deadlines *deadlines, unsigned cpu, uint64_t ticks)
{
    return ticks < atomic_exchange(&deadlines->cpu[cpu], ticks);
}

uint64_t deadlines_of(const struct deadlines *deadlines, unsigned cpu)
{
    return atomic_load(&deadlines->cpu[cpu]);
}

uint64_t deadlines_earliest(const struct deadlines *deadlines)
{
    uint64_t earliest = ARCH_TIMER_NONE;

    for (unsigned i = 0; i < deadlines->cpus; i++) {
        earliest = MIN(earliest, deadlines_of(deadlines, i));
    }
    return earliest;
}

void deadlines_expired(struct deadlines *deadlines, unsigned cpu, uint64_t seen,
                       uint64_t next)
{
    /*
     * That the vCPU notes `seen` again between the loop's look and this is no
     * harm: it expired, so the timer raised its line when it was written.
     */
    (void)atomic_compare_exchange_strong(&deadlines->cpu[cpu], &seen, next);
}
