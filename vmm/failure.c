/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What went wrong; see failure.h. */
#include "failure.h"

#include <inttypes.h>

#include "error.h"
#include "session.h"

struct failure failure_of_result(const struct execution_result *result)
{
    return (struct failure){
        .outcome = result->outcome,
        .finding = result->finding,
        .violation = result->violation,
    };
}

bool failure_of_schedule(const struct schedule *schedule, struct failure *out,
                         GError **error)
{
    const char *outcome = schedule_get(schedule, "outcome");
    const char *finding = schedule_get(schedule, "finding");
    const char *violation = schedule_get(schedule, "violation");

    *out = (struct failure){0};
    if (!outcome) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the schedule has no 'outcome:' line: record it again");
        return false;
    }
    out->outcome = vm_outcome_from_name(outcome);
    if (!session_is_failure(out->outcome)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the run of this schedule did not fail (it ended with "
                    "'%s'): there is nothing to look for",
                    outcome);
        return false;
    }
    out->finding = finding ? g_ascii_strtoull(finding, NULL, 10) : 0;
    if (out->outcome == VM_OUTCOME_VIOLATION &&
        (!violation || !ledger_site_parse(violation, &out->violation))) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the schedule's outcome is a violation, but it has no "
                    "'violation:' line that says which");
        return false;
    }
    return true;
}

bool failure_is_same(const struct failure *a, const struct failure *b)
{
    if (a->outcome != b->outcome) {
        return false;
    }
    switch (a->outcome) {
    case VM_OUTCOME_FINDING:
        return a->finding == b->finding;
    case VM_OUTCOME_VIOLATION:
        return ledger_site_is_same(&a->violation, &b->violation);
    default:
        return true;
    }
}

static bool is_hang(enum vm_outcome outcome)
{
    return outcome == VM_OUTCOME_STUCK || outcome == VM_OUTCOME_LIMIT ||
           outcome == VM_OUTCOME_TIMEOUT;
}

bool failure_happened(const struct failure *failure,
                      const struct execution_result *result,
                      const uint64_t *without)
{
    const struct failure other = failure_of_result(result);

    for (unsigned i = 0;
         without && is_hang(failure->outcome) && i < VM_CPUS_MAX / 64; i++) {
        if (without[i]) {
            return false;
        }
    }
    return failure_is_same(failure, &other);
}

const char *failure_kind(const struct failure *failure)
{
    switch (failure->outcome) {
    case VM_OUTCOME_PANIC:
        return "panic";
    case VM_OUTCOME_STUCK:
        return "deadlock";
    case VM_OUTCOME_LIMIT:
    case VM_OUTCOME_TIMEOUT:
        return "timeout";
    case VM_OUTCOME_VIOLATION:
        switch (ledger_rule_number(failure->violation.rule)) {
        case 11:
        case 12:
            return "lost";
        case 15:
            return "deadlock";
        default:
            return "stale";
        }
    default:
        return "stale";
    }
}

char *failure_text(const struct failure *failure)
{
    switch (failure->outcome) {
    case VM_OUTCOME_PANIC:
        return g_strdup("the guest's kernel panicked");
    case VM_OUTCOME_STUCK:
        return g_strdup("every vCPU waits, and no timer or interrupt will "
                        "wake one");
    case VM_OUTCOME_LIMIT:
        return g_strdup("the run was not over after -max_steps");
    case VM_OUTCOME_TIMEOUT:
        return g_strdup("the run was not over after -timeout");
    case VM_OUTCOME_VIOLATION:
        return g_strdup_printf("S%u %s: %s",
                               ledger_rule_number(failure->violation.rule),
                               ledger_rule_name(failure->violation.rule),
                               ledger_rule_text(failure->violation.rule));
    case VM_OUTCOME_FINDING:
        return g_strdup_printf("finding %" PRIu64
                               ": the guest saw what a bug did",
                               failure->finding);
    default:
        return g_strdup(vm_outcome_name(failure->outcome));
    }
}
