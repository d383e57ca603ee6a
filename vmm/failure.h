/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What went wrong in a run, as far as it tells one failure from another:
 * whoever shrinks a schedule, repeats one or collects several asks whether two
 * are the same. Any thread.
 */
#ifndef VMM_FAILURE_H
#define VMM_FAILURE_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "choice/schedule.h"
#include "execution.h"

struct failure {
    enum vm_outcome outcome;
    uint64_t finding;             /* VM_OUTCOME_FINDING: its code */
    struct ledger_site violation; /* VM_OUTCOME_VIOLATION */
};

/* Of a run that failed (session_is_failure()). */
struct failure failure_of_result(const struct execution_result *result);
/* False: the run of the schedule did not fail, or it does not say how. */
bool failure_of_schedule(const struct schedule *schedule, struct failure *out,
                         GError **error);
bool failure_is_same(const struct failure *a, const struct failure *b);
/*
 * The run failed so, and for the same reason. without: the vCPUs that were
 * kept from running, or NULL. That the others wait for one of these for ever
 * is no failure of the guest's, so no hang counts then.
 */
bool failure_happened(const struct failure *failure,
                      const struct execution_result *result,
                      const uint64_t *without);

/*
 * The word that files are named by: "stale" (what somebody may still use),
 * "lost" (a request or a write), "deadlock", "timeout" or "panic".
 */
const char *failure_kind(const struct failure *failure);
/* One sentence without a full stop; g_free() it. */
char *failure_text(const struct failure *failure);

#endif
