/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `shootdown minimize`: from a run that fails to the smallest one that fails
 * the same way, each step run on the machine. Main thread, which also runs the
 * vCPUs: there is no loop and no console.
 */
#include "cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "choice/minimize.h"
#include "choice/source.h"
#include "error.h"
#include "failure.h"
#include "ledger_watch.h"
#include "obs/step_table.h"
#include "obs/symbols.h"
#include "options.h"
#include "progress.h"

#define STEPS_MORE 1000u

struct minimizing {
    const struct minimize_options *options; /* borrowed */
    struct vm_config *config;
    struct symbols *symbols; /* NULL: addresses stay numbers */
    struct events *events;
    struct step_table *table;
    struct vm *vm;
    struct execution *execution;
    struct ledger_watch *ledger; /* NULL: the run had none */
    struct failure failure;      /* that is looked for */
    uint64_t runs;
    uint64_t shown_preemptions; /* with --verbose, not on a terminal */
    struct progress progress;
};

static void run_candidate(void *opaque, const struct choice_entry *entries,
                          size_t count, const uint64_t *without,
                          struct minimize_run *out)
{
    struct minimizing *m = opaque;
    struct choice_source *source =
        choice_source_recorded(entries, count, UINT64_MAX, false);
    const struct execution_result *r =
        execution_run(m->execution, source, without);

    out->fails = failure_happened(&m->failure, r, without);
    out->preemptions = r->preemptions;
    out->steps = r->steps;
    out->total = r->choices;
    out->entries = g_array_new(FALSE, FALSE, sizeof(struct choice_entry));
    g_array_append_vals(out->entries, m->execution->stream.entries->data,
                        m->execution->stream.entries->len);
    choice_source_free(source);
}

static void show_progress(void *opaque, uint64_t runs, uint64_t preemptions,
                          uint64_t steps, const char *pass)
{
    struct minimizing *m = opaque;

    m->runs = runs;
    if (m->options->verbose && !m->progress.is_on &&
        preemptions != m->shown_preemptions) {
        m->shown_preemptions = preemptions;
        fprintf(stderr,
                "%6" PRIu64 " runs: %" PRIu64 " preemptions, %" PRIu64
                " steps (%s)\n",
                runs, preemptions, steps, pass);
    }
    progress_text(&m->progress,
                  "%6" PRIu64 " runs: %" PRIu64 " preemptions, %" PRIu64
                  " steps (%s)",
                  runs, preemptions, steps, pass);
}

static bool prepare(struct minimizing *m, const struct schedule *schedule,
                    GError **error)
{
    const char *run = schedule_get(schedule, "run");
    const char *steps = schedule_get(schedule, "steps");

    if (!run) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the schedule has no 'run:' line: record it again");
        return false;
    }
    if (!failure_of_schedule(schedule, &m->failure, error)) {
        return false;
    }
    m->config = vm_config_from_text(run, error);
    if (!m->config) {
        return false;
    }
    m->config->quiet = true;
    if (steps) {
        /* A candidate that takes much longer has lost the failure. */
        m->config->max_steps =
            4 * g_ascii_strtoull(steps, NULL, 10) + STEPS_MORE;
    }
    if (m->config->symbols) {
        m->symbols = symbols_load(m->config->symbols, NULL);
    }
    m->events = events_new(m->config->cpus);
    m->table = step_table_new(m->events, m->symbols);
    if (m->config->check_bbm || m->config->ledger) {
        m->ledger = ledger_watch_new(m->config, m->events);
    }
    m->vm = vm_new(m->config, m->events, error);
    if (!m->vm || !vm_replay(m->vm, schedule, error)) {
        return false;
    }
    ledger_watch_attach(m->ledger, m->vm);
    (void)execution_stop_like(m->vm, schedule); /* its failure was read */
    m->execution = execution_new(m->vm, true, error);
    if (m->execution) {
        m->execution->seed = m->config->seed;
    }
    return m->execution != NULL;
}

static void finish(struct minimizing *m)
{
    execution_free(m->execution);
    ledger_watch_attach(m->ledger, NULL);
    vm_free(m->vm);
    ledger_watch_free(m->ledger);
    step_table_free(m->table);
    events_free(m->events);
    symbols_free(m->symbols);
    vm_config_free(m->config);
}

/* Runs the small one once more: for its schedule, and to be looked at. */
static struct schedule *run_small(struct minimizing *m,
                                  const struct schedule *small,
                                  const struct minimize_result *result)
{
    struct minimize_run run;

    if (m->options->table) {
        step_table_record(m->table);
    }
    run_candidate(m, (const struct choice_entry *)(void *)small->entries->data,
                  small->entries->len, result->without, &run);
    g_array_unref(run.entries);
    return execution_schedule(m->execution);
}

static int report(struct minimizing *m, struct schedule *small,
                  const struct minimize_result *result)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *line = NULL;
    struct schedule *again = run_small(m, small, result);
    int status = EXIT_FINE;

    progress_clear(&m->progress);
    if (!m->options->quiet) {
        printf("%" PRIu64 " preemptions, %" PRIu64 " steps (from %" PRIu64
               ", %" PRIu64 ") in %" PRIu64 " runs\n",
               result->preemptions, result->steps, result->from_preemptions,
               result->from_steps, result->runs);
    }
    if (m->options->table) {
        g_autofree char *text = step_table_text(m->table);

        printf("\n%s\n", text);
    }
    line = schedule_to_line(again);
    printf("%s%s\n", m->options->quiet ? "" : "shootdown replay ", line);
    if (m->options->output &&
        !schedule_save(again, m->options->output, &error)) {
        status = cli_fail(error);
    }
    schedule_free(again);
    return status;
}

int cmd_minimize(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct minimize_options o = {0};
    struct minimizing m = {.options = &o};
    struct minimize_ops ops = {.run = run_candidate, .progress = show_progress};
    struct minimize_result result;
    struct schedule *schedule = NULL;
    int status = EXIT_ENVIRONMENT;

    if (!minimize_options_parse(&o, argc, argv, &error) ||
        !(schedule = schedule_load(o.schedule, &error)) ||
        !prepare(&m, schedule, &error)) {
        status = cli_fail(error);
    } else {
        progress_init(&m.progress, !o.quiet);
        ops.vcpus = m.config->cpus;
        ops.max_runs = o.max_runs;
        minimize(schedule, &ops, &m, &result);
        if (result.reproduced) {
            status = report(&m, schedule, &result);
        } else {
            g_set_error(&error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "the schedule does not fail any more: 'shootdown "
                        "replay' says where it goes another way");
            status = cli_fail(error);
        }
    }
    finish(&m);
    schedule_free(schedule);
    minimize_options_fini(&o);
    return status;
}
