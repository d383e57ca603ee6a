/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `run` and `replay` say at the end of a run. Main thread. */
#include "cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "ledger_report.h"

/* A person is told why it takes longer, after so much. */
#define PATIENCE_NS UINT64_C(2000000000)
/* A longer line is a file's business. */
#define LINE_MAX_PRINTED 2000u

static int outcome_exit_status(const struct run *run)
{
    switch (run->outcome) {
    case VM_OUTCOME_OFF:
        return run->totals.has_exit_status && run->totals.exit_status != 0
                   ? EXIT_WORKLOAD_FAILED
                   : EXIT_FINE;
    case VM_OUTCOME_RESET:
    case VM_OUTCOME_END:
        return EXIT_FINE;
    case VM_OUTCOME_FINDING:
    case VM_OUTCOME_VIOLATION:
        return EXIT_BUG_FOUND;
    case VM_OUTCOME_STUCK:
    case VM_OUTCOME_LIMIT:
        return EXIT_HANG;
    case VM_OUTCOME_DIVERGED:
    case VM_OUTCOME_PANIC:
        return EXIT_GUEST_PANIC;
    case VM_OUTCOME_INTERRUPTED:
        return EXIT_INTERRUPTED;
    case VM_OUTCOME_TIMEOUT:
        return EXIT_HANG;
    case VM_OUTCOME_NONE:
    case VM_OUTCOME_ENGINE_ERROR:
        return EXIT_ENVIRONMENT;
    }
    g_assert_not_reached();
}

int run_exit_status(const struct run *run)
{
    int status = outcome_exit_status(run);

    /* What was found counts more than that the run was over. */
    return run->violations &&
                   (status == EXIT_FINE || status == EXIT_WORKLOAD_FAILED)
               ? EXIT_BUG_FOUND
               : status;
}

/* One sentence for every end that is not a plain success. */
static void report_outcome(const struct vm_config *config,
                           const struct run *run)
{
    switch (run->outcome) {
    case VM_OUTCOME_OFF:
        if (run->totals.has_exit_status && run->totals.exit_status != 0) {
            fprintf(stderr, "shootdown: the workload ended with status %d\n",
                    run->totals.exit_status);
        }
        break;
    case VM_OUTCOME_PANIC:
        fprintf(
            stderr,
            "shootdown: the guest's kernel panicked (code 0x%" G_GINT64_MODIFIER
            "x); its console says why\n",
            run->totals.panic_code);
        break;
    case VM_OUTCOME_INTERRUPTED:
        fprintf(stderr, "shootdown: interrupted\n");
        break;
    case VM_OUTCOME_TIMEOUT:
        fprintf(stderr,
                "shootdown: the guest did not end within %u s (--timeout)\n",
                config->timeout_s);
        break;
    case VM_OUTCOME_FINDING:
        fprintf(stderr,
                "shootdown: finding %" PRIu64 ": the guest saw what a bug "
                "did\n",
                run->session.last.finding);
        break;
    case VM_OUTCOME_STUCK:
        fprintf(stderr, "shootdown: stuck: every vCPU waits, and no timer or "
                        "interrupt will wake one\n");
        break;
    case VM_OUTCOME_LIMIT:
        fprintf(stderr,
                "shootdown: the run was not over after %" PRIu64
                " scheduling points (--max-steps)\n",
                config->max_steps);
        break;
    case VM_OUTCOME_NONE:
    case VM_OUTCOME_RESET:
    case VM_OUTCOME_END:
    case VM_OUTCOME_DIVERGED:     /* the session tells where */
    case VM_OUTCOME_VIOLATION:    /* the ledger tells what */
    case VM_OUTCOME_ENGINE_ERROR: /* has an error of its own */
        break;
    }
}

/* Where the schedule goes if nobody said: named by what it ends in. */
static char *schedule_path(const struct vm_config *config,
                           const struct schedule *schedule)
{
    return config->record_path
               ? g_strdup(config->record_path)
               : g_strdup_printf("shootdown-%016" PRIx64 ".schedule",
                                 schedule->trace_hash);
}

static void report_failure(const struct vm_config *config,
                           const struct session *s)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = schedule_path(config, s->schedule);
    g_autofree char *line = schedule_to_line(s->schedule);

    fprintf(stderr,
            "shootdown: run %" PRIu64 ", seed %" PRIu64 ", %s: %" PRIu64
            " preemptions, %" PRIu64 " steps, %" PRIu64 " choices\n",
            s->runs, s->seed, config->strategy, s->last.preemptions,
            s->last.steps, s->last.choices);
    if (!schedule_save(s->schedule, path, &error)) {
        fprintf(stderr, "shootdown: the schedule is lost: %s\n",
                error->message);
        return;
    }
    fprintf(stderr, "shootdown: again:    shootdown replay %s\n", path);
    fprintf(stderr, "shootdown: simplify: shootdown minimize %s\n", path);
    if (strlen(line) <= LINE_MAX_PRINTED) {
        fprintf(stderr, "shootdown: or without the file:\n%s\n", line);
    }
}

static void report_rates(const struct session *s)
{
    double seconds = (double)s->host_ns / 1e9;

    fprintf(stderr,
            "shootdown: %" PRIu64 " run%s, the last: %" PRIu64
            " steps, %" PRIu64 " choices, trace %016" PRIx64 "\n"
            "shootdown: %.0f runs a second, %.1f million instructions a "
            "second\n",
            s->runs, s->runs == 1 ? "" : "s", s->last.steps, s->last.choices,
            s->last.trace_hash, (double)s->runs / seconds,
            (double)s->instructions / seconds / 1e6);
    if (s->restores) {
        fprintf(stderr,
                "shootdown: a restore takes %.1f us and puts %.0f pages "
                "back\n",
                (double)s->restore_ns / (double)s->restores / 1e3,
                (double)s->restored_pages / (double)s->restores);
    }
}

static bool report_session(const struct vm_config *config,
                           const struct run *run, GError **error)
{
    const struct session *s = &run->session;

    if (config->engine == VM_ENGINE_PARALLEL || s->runs == 0) {
        return true;
    }
    if (s->divergence) {
        fprintf(stderr, "shootdown: the replay diverged: %s\n", s->divergence);
    }
    if (!s->replay && s->schedule && session_is_failure(run->outcome)) {
        report_failure(config, s);
    } else if (s->schedule && config->record_path &&
               !schedule_save(s->schedule, config->record_path, error)) {
        return false;
    }
    if (config->verbose || config->runs > 1) {
        report_rates(s);
    }
    return true;
}

/* Where the run of this finding is written, or NULL: its run line says it. */
static char *finding_path(const struct vm_config *config, const struct run *run,
                          const struct ledger_finding *f, GError **error)
{
    g_autofree char *path = NULL;

    if (run->replayed || !f->schedule) {
        return g_strdup(run->replayed);
    }
    if (config->record_path && f->run == run->session.runs) {
        return g_strdup(config->record_path); /* is there already */
    }
    if (!config->has_snapshot_at) {
        return NULL;
    }
    /* A search may not come by here again with this seed alone. */
    path = g_strdup_printf("shootdown-%016" PRIx64 ".schedule",
                           f->schedule->trace_hash);
    return schedule_save(f->schedule, path, error) ? g_steal_pointer(&path)
                                                   : NULL;
}

static bool report_findings(const struct vm_config *config,
                            const struct run *run, GError **error)
{
    const struct ledger_telling telling = {
        .config = config,
        .symbols = run->symbols,
        .has_colour = isatty(STDERR_FILENO) && !g_getenv("NO_COLOR"),
    };
    unsigned count = ledger_findings_count(run->findings);
    g_autoptr(GError) again = NULL;

    if (count && run->session.host_ns > PATIENCE_NS && isatty(STDERR_FILENO)) {
        fprintf(stderr,
                "shootdown: ledger: %u finding%s; running it again to see how "
                "(Ctrl-C: no)\n",
                count, count == 1 ? "" : "s");
    }
    if (!ledger_findings_retell(run->findings, config, &again)) {
        fprintf(stderr, "shootdown: the run could not be had again: %s\n",
                again->message);
    }
    for (unsigned i = 0; i < count; i++) {
        struct ledger_finding *f = ledger_findings_at(run->findings, i);

        f->schedule_path = finding_path(config, run, f, error);
        if (error && *error) {
            return false;
        }
        ledger_finding_print(f, &telling, stderr);
    }
    if (!config->report_path) {
        return true;
    }
    if (strcmp(config->report_path, "-") == 0 && run->totals.console_midline) {
        (void)fputc('\n', stdout); /* an error shows in fflush() */
    }
    return ledger_findings_write(run->findings, &telling, config->report_path,
                                 error);
}

int run_report(const struct vm_config *config, const struct run *run)
{
    g_autoptr(GError) error = NULL;
    bool has_person = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
    int status = run_exit_status(run);

    (void)fflush(stdout); /* the console's last words come first */
    report_outcome(config, run);
    if (!report_session(config, run, &error) ||
        !report_findings(config, run, &error)) {
        return cli_fail(error);
    }
    if (!config->quiet && (config->verbose || has_person)) {
        g_autofree char *summary = stats_summary(&run->totals);

        fprintf(stderr, "%s%s", run->totals.console_midline ? "\n" : "",
                summary);
        if (run->windows) {
            fprintf(stderr,
                    "%" PRIu64 " page%s came back before the old translation "
                    "was gone: counted, no violation\n",
                    run->windows, run->windows == 1 ? "" : "s");
        }
    }
    if (config->stats_path &&
        !stats_write(&run->totals, run->symbols, config->stats_path, &error)) {
        return cli_fail(error);
    }
    return status;
}
