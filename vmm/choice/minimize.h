/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shrinking a schedule that fails to one that a person can read. Pure: it
 * knows schedules, not machines; the caller runs them.
 */
#ifndef CHOICE_MINIMIZE_H
#define CHOICE_MINIMIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "choice/schedule.h"

/* How a run of a candidate went. */
struct minimize_run {
    bool fails;           /* the same failure as the original's */
    uint64_t preemptions; /* vCPUs switched that could have gone on */
    uint64_t steps;       /* scheduling points until the failure */
    /*
     * The choices that the run really made, with their ordinals; taken by the
     * caller of run().
     */
    GArray *entries; /* struct choice_entry */
    uint64_t total;
};

struct minimize_ops {
    /*
     * Runs the machine with these choices, found by (kind, ordinal), and with
     * the vCPUs in without (a bit each, word i / 64) never scheduled.
     */
    void (*run)(void *opaque, const struct choice_entry *entries, size_t count,
                const uint64_t *without, struct minimize_run *out);
    /* After every improvement and now and then; may be NULL. */
    void (*progress)(void *opaque, uint64_t runs, uint64_t preemptions,
                     uint64_t steps, const char *pass);
    unsigned vcpus;    /* at most 512 */
    uint64_t max_runs; /* 0: no limit */
};

struct minimize_result {
    bool reproduced; /* false: the original did not fail; nothing was done */
    uint64_t runs;
    uint64_t from_preemptions, from_steps, preemptions, steps;
    uint64_t without[8]; /* vCPUs that are not needed */
};

/*
 * Shrinks schedule->entries in place. Passes until none helps: drop vCPUs,
 * drop blocks of choices (ddmin), merge slices, zero hardware liberties, lower
 * values, leave out guest operations (CHOICE_operation from 0 to 1). Better is
 * fewer preemptions, then fewer entries (an operation left out is none), then
 * fewer steps, then lower values; every accepted candidate was run, and the
 * entries are those that the last accepted run made. Checkpoints and hashes of
 * the schedule are cleared, since they belong to the longer run; a run of the
 * result gives the new ones.
 */
void minimize(struct schedule *schedule, const struct minimize_ops *ops,
              void *opaque, struct minimize_result *out);

#endif
