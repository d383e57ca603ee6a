/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a deterministic machine does between vm_run() and its end: one run, or
 * many from a snapshot until one fails, or the replay of a schedule.
 */
#ifndef VMM_SESSION_H
#define VMM_SESSION_H

#include <stdint.h>
#include <glib.h>

#include "choice/schedule.h"
#include "execution.h"

struct vm;

struct session {
    const struct schedule
        *replay; /* [init] borrowed; NULL: config's strategy */
    /* Results, after vm_run(). */
    struct execution_result last;
    uint64_t runs;                  /* done, the failing one included */
    uint64_t seed;                  /* of the last one */
    uint64_t host_ns;               /* spent in runs, after the snapshot */
    uint64_t choices, instructions; /* of all of them */
    uint64_t restores, restore_ns, restored_pages;
    struct schedule *schedule; /* of the last run, where it is worth keeping */
    char *divergence;          /* replay: where it went another way */
};

/* The thread that runs the vCPUs, from its beginning to its end. */
void vm_session(struct vm *vm);
void session_fini(struct session *session);

/* A run that ended so is not as it should be, and is written down. */
bool session_is_failure(enum vm_outcome outcome);
/* It ended as scenarios do, and another one may follow. */
bool session_goes_on(enum vm_outcome outcome);

#endif
