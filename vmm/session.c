/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions; see session.h. */
#include "session.h"

#include <inttypes.h>

#include "choice/source.h"
#include "det.h"
#include "ledger_watch.h"
#include "vm_priv.h"

bool session_is_failure(enum vm_outcome outcome)
{
    switch (outcome) {
    case VM_OUTCOME_PANIC:
    case VM_OUTCOME_FINDING:
    case VM_OUTCOME_STUCK:
    case VM_OUTCOME_LIMIT:
    case VM_OUTCOME_VIOLATION:
        return true;
    default:
        return false;
    }
}

bool session_goes_on(enum vm_outcome outcome)
{
    return outcome == VM_OUTCOME_END || outcome == VM_OUTCOME_OFF ||
           outcome == VM_OUTCOME_RESET;
}

/* The source of the next run; NULL without an error: everything was tried. */
static struct choice_source *
next_source(struct vm *vm, struct choice_source *source, GError **error)
{
    const struct vm_config *config = vm->config;
    const struct schedule *replay = vm->session.replay;

    if (replay) {
        return source ? source
                      : choice_source_recorded(
                            (const struct choice_entry *)(void *)
                                replay->entries->data,
                            replay->entries->len, replay->total, true);
    }
    if (!source) {
        return choice_strategy_new(config->strategy, config->seed, error);
    }
    if (source->ops->next_run && !source->ops->next_run(source)) {
        choice_source_free(source);
        return NULL; /* everything was tried */
    }
    return source;
}

static uint64_t instructions_of(const struct vm *vm)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < vm->cpus; i++) {
        sum += vm->vcpu[i]->counters->instructions;
    }
    return sum;
}

/* What a replay must end with. */
static void compare_end(struct session *s)
{
    const struct schedule *was = s->replay;

    if (s->divergence) {
        return;
    }
    if (was->trace_hash != s->schedule->trace_hash) {
        s->divergence = g_strdup_printf(
            "all choices fitted, but the trace hash at the end is %016" PRIx64
            " and was %016" PRIx64 " when the schedule was recorded",
            s->schedule->trace_hash, was->trace_hash);
    } else if (was->state_hash != s->schedule->state_hash) {
        s->divergence = g_strdup_printf(
            "the trace is the same, but the state hash at the end is "
            "%016" PRIx64 " and was %016" PRIx64
            " when the schedule was recorded",
            s->schedule->state_hash, was->state_hash);
    }
}

/* To what the ledger found in this run belongs how to have it again. */
static void note_findings(struct vm *vm, struct execution *e)
{
    struct ledger_findings *findings;

    ledger_watch_settle(vm->ledger);
    findings = ledger_watch_findings(vm->ledger);
    if (ledger_findings_want_schedule(findings)) {
        ledger_findings_take_schedule(findings, execution_schedule(e),
                                      vm->session.runs, vm->session.seed);
    }
}

static void run_all(struct vm *vm, struct execution *e)
{
    struct session *s = &vm->session;
    const struct vm_config *config = vm->config;
    uint64_t runs = s->replay ? 1 : config->runs;
    uint64_t instructions = instructions_of(vm);
    uint64_t start = uv_hrtime();
    struct choice_source *source = NULL;
    uint64_t without[VM_CPUS_MAX / 64] = {0};
    GError *error = NULL;

    if (s->replay) {
        execution_without(s->replay, without);
    }
    e->expected = s->replay;
    while (s->runs < runs) {
        source = next_source(vm, source, &error);
        if (!source) {
            break;
        }
        e->seed = config->seed + s->runs;
        s->last = *execution_run(e, source, without);
        s->seed = e->seed;
        s->runs++;
        s->choices += s->last.choices;
        note_findings(vm, e);
        if (!session_goes_on(s->last.outcome)) {
            break;
        }
    }
    s->host_ns = uv_hrtime() - start;
    s->restores = e->restores;
    s->restore_ns = e->restore_ns;
    s->restored_pages = e->restored_pages;
    s->instructions = instructions_of(vm) - instructions;
    if (error) {
        vm_stop_error(vm, g_strdup(error->message));
        g_error_free(error);
    } else if (config->record_path || s->replay ||
               session_is_failure(s->last.outcome)) {
        s->divergence = g_strdup(e->divergence);
        s->schedule = execution_schedule(e);
        if (s->replay) {
            compare_end(s);
        }
    }
    choice_source_free(source);
}

void vm_session(struct vm *vm)
{
    GError *error = NULL;
    struct execution *e = execution_new(vm, vm->config->runs > 1, &error);

    if (e) {
        run_all(vm, e);
        execution_free(e);
        return;
    }
    /* Ended before its mark; a panic or an interruption says so itself. */
    if (atomic_load(&vm->outcome) == VM_OUTCOME_NONE ||
        atomic_load(&vm->outcome) == VM_OUTCOME_OFF) {
        atomic_store(&vm->outcome, VM_OUTCOME_NONE);
        vm_stop_error(vm, g_strdup(error->message));
    }
    g_error_free(error);
}

void session_fini(struct session *session)
{
    schedule_free(session->schedule);
    g_free(session->divergence);
}
