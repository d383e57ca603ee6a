/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's counters: storage, names, totals. */
#include "mm/counters.h"

#include "kernel/smp.h"

struct annot_counters counters[BOARD_MAX_CPUS];

uint64_t counter_total(enum annot_counter_index which)
{
    uint64_t sum = 0;

    for (unsigned cpu = 0; cpu < cpu_count && cpu < BOARD_MAX_CPUS; cpu++) {
        /* All members are uint64_t, in the order of the enum. */
        const uint64_t *values = (const uint64_t *)&counters[cpu];

        sum += __atomic_load_n(&values[which], __ATOMIC_RELAXED);
    }
    return sum;
}

const char *counter_name(enum annot_counter_index which)
{
    static const char *const names[] = {
#define COUNTER(name, text) #name,
#include "abi/counters.inc"
#undef COUNTER
    };

    return (unsigned)which < ANNOT_COUNTERS ? names[which] : "?";
}
