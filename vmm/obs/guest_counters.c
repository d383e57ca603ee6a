/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's own counters as the VMM sees them: names from the shared
 * X-macro, values copied out of guest RAM. Any thread.
 */
#include <string.h>
#include <glib.h>

#include "abi/annot.h"
#include "obs/stats.h"

static const char *const guest_names[ANNOT_COUNTERS] = {
#define COUNTER(name, text) [ANNOT_COUNTER_##name] = #name,
#include "abi/counters.inc"
#undef COUNTER
};

unsigned guest_counter_count(void)
{
    return ANNOT_COUNTERS;
}

const char *guest_counter_name(unsigned index)
{
    return index < ANNOT_COUNTERS ? guest_names[index] : "?";
}

int guest_counter_index(const char *name)
{
    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        if (strcmp(guest_names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

size_t guest_counter_stride(void)
{
    return sizeof(struct annot_counters);
}

void vm_totals_set_guest(struct vm_totals *totals, const void *array,
                         unsigned cpus)
{
    const uint8_t *bytes = array;

    g_free(totals->guest);
    totals->guest_cpus = cpus;
    totals->guest = g_new0(uint64_t, (size_t)cpus * ANNOT_COUNTERS);
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        /* The guest chose the address: it need not be aligned. */
        memcpy(totals->guest + (size_t)cpu * ANNOT_COUNTERS,
               bytes + cpu * sizeof(struct annot_counters),
               ANNOT_COUNTERS * sizeof(uint64_t));
    }
}

uint64_t vm_totals_guest_sum(const struct vm_totals *totals, unsigned index)
{
    uint64_t sum = 0;

    for (unsigned cpu = 0; cpu < totals->guest_cpus; cpu++) {
        sum += totals->guest[(size_t)cpu * ANNOT_COUNTERS + index];
    }
    return sum;
}

void vm_totals_fini(struct vm_totals *totals)
{
    g_clear_pointer(&totals->guest, g_free);
    totals->guest_cpus = 0;
}
