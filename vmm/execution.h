/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs of a deterministic machine: the same machine again and again, each run
 * with its own choices, each written down as a schedule.
 *
 * On the thread that runs the vCPUs: the scheduler's in `run` and `replay`,
 * the caller's in `minimize` and in tests.
 */
#ifndef VMM_EXECUTION_H
#define VMM_EXECUTION_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "choice/choice.h"
#include "choice/schedule.h"
#include "config.h"
#include "ledger_watch.h"
#include "outcome.h"

struct vm;

struct execution_result {
    enum vm_outcome outcome;
    uint64_t finding;             /* its code, VM_OUTCOME_FINDING */
    struct ledger_site violation; /* VM_OUTCOME_VIOLATION */
    uint64_t trace_hash, events;
    uint64_t choices, steps, preemptions;
    uint64_t virtual_ns; /* since the machine was switched on */
};

struct execution {
    struct vm *vm;
    struct snapshot *snapshot; /* NULL: the machine can run once */
    struct choice_stream stream;
    uint64_t without[VM_CPUS_MAX / 64]; /* of the last run */
    uint64_t seed;       /* of the last run, as schedules tell it */
    bool used;           /* ran since the snapshot */
    GArray *checkpoints; /* struct schedule_checkpoint of the last run */
    /* To replay: what the trace should be on the way; borrowed, or NULL. */
    const struct schedule *expected;
    guint expected_next;
    uint64_t checkpoint_due;        /* choices */
    char *divergence;               /* VM_OUTCOME_DIVERGED: where and what */
    struct execution_result result; /* of the last run */
    /* Of all restores. */
    uint64_t restores, restore_ns, restored_pages;
};

/*
 * Switches the machine on. With --snapshot-at it runs plainly to the mark and
 * is remembered there; otherwise, if it is to run more than once, it is
 * remembered as it is. NULL: the mark was never written, or no memory.
 */
struct execution *execution_new(struct vm *vm, bool again, GError **error);
void execution_free(struct execution *execution);

/*
 * One run. without (may be NULL): vCPUs that are never scheduled, a bit each,
 * word i / 64. Several runs need a snapshot.
 */
const struct execution_result *execution_run(struct execution *execution,
                                             struct choice_source *source,
                                             const uint64_t *without);

/* The last run as a schedule; the state hash is computed here. */
struct schedule *execution_schedule(struct execution *execution);

/* The vCPUs that the schedule does without, a bit each. */
void execution_without(const struct schedule *schedule,
                       uint64_t out_without[VM_CPUS_MAX / 64]);

/*
 * A schedule that a violation ended ends there again, whatever else is found
 * on the way. False: its `violation:` line is missing or makes no sense.
 */
bool execution_stop_like(struct vm *vm, const struct schedule *schedule);

/* What the scheduler calls at each of its points. */
void execution_step(struct execution *execution);

#endif
