/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzzer does with a run that failed: once for each different failure
 * it is told, run again three times, written down, and shrunk.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice/minimize.h"
#include "choice/source.h"
#include "error.h"
#include "fuzz.h"
#include "mmu/ledger.h"

#define REPLAYS 3u
/* A candidate may take so much longer than what it came from. */
#define STEPS_MORE 1000u

static bool is_known(const struct fuzz *f, const struct failure *failure)
{
    for (guint i = 0; i < f->found->len; i++) {
        if (failure_is_same(&g_array_index(f->found, struct failure, i),
                            failure)) {
            return true;
        }
    }
    return false;
}

bool fuzz_stops_at(void *opaque, const struct ledger_site *site)
{
    const struct fuzz *f = opaque;
    const struct failure failure = {.outcome = VM_OUTCOME_VIOLATION,
                                    .violation = *site};

    if (f->wanted) {
        return failure_is_same(f->wanted, &failure);
    }
    if (f->flags->ignored_rules >> ledger_rule_number(site->rule) & 1) {
        return false;
    }
    return f->every_time || !is_known(f, &failure);
}

static bool is_hang(const struct failure *failure)
{
    return failure->outcome == VM_OUTCOME_LIMIT ||
           failure->outcome == VM_OUTCOME_STUCK ||
           failure->outcome == VM_OUTCOME_TIMEOUT;
}

int fuzz_exit_status(const struct fuzz *f)
{
    return f->found->len > f->hangs ? (int)f->flags->error_exitcode
           : f->hangs               ? (int)f->flags->timeout_exitcode
                                    : EXIT_FINE;
}

/* --- files --- */

/* With a campaign and no prefix findings go to its directories. */
static char *artifact_path(const struct fuzz *f, const struct failure *failure,
                           const char *word, const char *name)
{
    const char *prefix = f->flags->artifact_prefix;

    if (!prefix && f->flags->campaign) {
        return g_strdup_printf("%s/%s/%s-%s", f->flags->campaign,
                               is_hang(failure) ? "hangs" : "crashes", word,
                               name);
    }
    return g_strdup_printf("%s%s-%s", prefix ? prefix : "./", word, name);
}

/*
 * What is found after hours is not to be lost for want of a directory: those
 * that findings go to are made before anything is run.
 */
bool fuzz_make_directories(const struct fuzz_flags *flags, GError **error)
{
    const struct {
        const char *name, *value;
    } paths[] = {
        {"artifact_prefix", flags->artifact_prefix},
        {"exact_artifact_path", flags->exact_artifact_path},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        const char *slash =
            paths[i].value ? strrchr(paths[i].value, '/') : NULL;
        g_autofree char *dir =
            slash
                ? g_strndup(paths[i].value, (gsize)(slash - paths[i].value) + 1)
                : NULL;

        if (dir && g_mkdir_with_parents(dir, 0777) != 0) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "-%s is '%s', but the directory cannot be made: %s; "
                        "choose one that can be written to",
                        paths[i].name, paths[i].value, g_strerror(errno));
            return false;
        }
    }
    return true;
}

/* Writes the schedule; the path to be freed, or NULL and error. */
static char *write_artifact(const struct fuzz *f, const struct schedule *s,
                            const struct failure *failure, const char *word,
                            const char *exact, const char *name, GError **error)
{
    g_autofree char *text = schedule_to_text(s);
    g_autofree char *digest = fuzz_name(text, strlen(text));
    char *path = exact ? g_strdup(exact)
                       : artifact_path(f, failure, word, name ? name : digest);

    if (!g_file_set_contents(path, text, -1, error)) {
        if (error && *error) {
            (*error)->domain = VM_ERROR;
            (*error)->code = VM_ERROR_ENVIRONMENT;
        }
        g_clear_pointer(&path, g_free);
    }
    return path;
}

/* --- shrinking --- */

struct shrinking {
    struct fuzz *fuzz;
    const struct failure *failure;
};

static void run_candidate(void *opaque, const struct choice_entry *entries,
                          size_t count, const uint64_t *without,
                          struct minimize_run *out)
{
    struct shrinking *s = opaque;
    const GArray *made;
    struct choice_source *source =
        choice_source_recorded(entries, count, UINT64_MAX, false);
    struct fuzz_run run;

    fuzz_watchdog_begin(s->fuzz);
    fuzz_target_run_source(s->fuzz->target, source, 0, without, &run);
    choice_source_free(source);
    made = fuzz_target_entries(s->fuzz->target);
    *out = (struct minimize_run){
        .fails =
            run.failed && failure_happened(s->failure, &run.result, without),
        .preemptions = run.result.preemptions,
        .steps = run.result.steps,
        .total = run.result.choices,
        .entries = g_array_new(FALSE, FALSE, sizeof(struct choice_entry)),
    };
    g_array_append_vals(out->entries, made->data, made->len);
}

/*
 * The schedule becomes the smallest that was found within max_runs, which was
 * run again. False: it does not fail in the same way, and is what it was.
 */
static bool shrink(struct fuzz *f, struct schedule **schedule,
                   const struct failure *failure, uint64_t max_runs,
                   struct minimize_result *result)
{
    struct shrinking s = {f, failure};
    const struct vm_config *config = fuzz_target_of(f->target);
    const struct minimize_ops ops = {
        .run = run_candidate, .vcpus = config->cpus, .max_runs = max_runs};
    const char *steps = schedule_get(*schedule, "steps");
    uint64_t limit = config->max_steps;
    struct schedule *small = schedule_copy(*schedule);
    struct minimize_run run;
    bool ok;

    if (failure->outcome != VM_OUTCOME_LIMIT && steps) {
        fuzz_target_limit_steps(
            f->target, 4 * g_ascii_strtoull(steps, NULL, 10) + STEPS_MORE);
    }
    minimize(small, &ops, &s, result);
    fuzz_target_limit_steps(f->target, limit);
    ok = result->reproduced;
    if (ok) {
        run_candidate(&s,
                      (const struct choice_entry *)(void *)small->entries->data,
                      small->entries->len, result->without, &run);
        g_array_unref(run.entries);
        ok = run.fails;
    }
    schedule_free(small);
    if (ok) {
        schedule_free(*schedule);
        *schedule = fuzz_target_schedule(f->target);
    }
    return ok;
}

static void print_shrunk(const struct minimize_result *r)
{
    printf("%" PRIu64 " preemptions, %" PRIu64 " steps (from %" PRIu64
           ", %" PRIu64 ") in %" PRIu64 " runs\n",
           r->preemptions, r->steps, r->from_preemptions, r->from_steps,
           r->runs);
}

/* --- a finding --- */

/* path: where its schedule is; NULL: nowhere. */
static void print_finding(struct fuzz *f, const struct failure *failure,
                          const struct fuzz_run *run, const char *path)
{
    g_autofree char *text = failure_text(failure);

    printf("==SHOOTDOWN: %s: %s\n", failure_kind(failure), text);
    fuzz_target_report(f->target, path, stdout);
    printf("execution %" PRIu64 " of seed %" PRIu64 ": %" PRIu64
           " preemptions, %" PRIu64 " steps, %" PRIu64 " choices\n",
           f->number, f->flags->seed, run->result.preemptions,
           run->result.steps, run->result.choices);
}

/* Anything less than all of them is a defect of the machine's, and said. */
static void check_stability(struct fuzz *f, const struct schedule *schedule,
                            const struct failure *failure)
{
    unsigned same = 0;

    for (unsigned i = 0; i < REPLAYS; i++) {
        fuzz_watchdog_begin(f);
        same += fuzz_target_again(f->target, schedule, failure);
    }
    f->tried += REPLAYS;
    f->stable += same;
    printf("stability: %u%% (%u of %u replays went the same way)\n",
           100 * same / REPLAYS, same, REPLAYS);
    if (same != REPLAYS) {
        printf("A run that cannot be repeated is a defect of shootdown: "
               "please report it with the file.\n");
    }
}

/* $1 is the file; what the command says goes where we write. */
static void run_command(const char *command, const char *path)
{
    g_autofree char *words = g_strdup(command);
    g_autofree char *file = g_strdup(path);
    char shell[] = "/bin/sh", option[] = "-c", name[] = "shootdown-fuzz";
    char *argv[] = {shell, option, words, name, file, NULL};
    g_autoptr(GError) error = NULL;
    int status = 0;

    (void)fflush(stdout);
    if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL,
                      &status, &error)) {
        fprintf(stderr, "shootdown: -on_bug: %s\n", error->message);
    } else if (!g_spawn_check_wait_status(status, &error)) {
        fprintf(stderr, "shootdown: -on_bug '%s': %s\n", command,
                error->message);
    }
}

static bool shrink_and_write(struct fuzz *f, struct schedule **schedule,
                             const struct failure *failure, const char *path,
                             GError **error)
{
    g_autofree char *small_path = NULL, *word = NULL;
    struct minimize_result result;
    const char *dash = strrchr(path, '-');

    printf("artifact_prefix='%s'; Test unit written to %s\n",
           f->flags->artifact_prefix ? f->flags->artifact_prefix : "./", path);
    if (f->flags->minimize_runs && failure->outcome != VM_OUTCOME_TIMEOUT &&
        shrink(f, schedule, failure, f->flags->minimize_runs, &result)) {
        print_shrunk(&result);
        if (!f->flags->exact_artifact_path) {
            small_path = write_artifact(f, *schedule, failure, "minimized-from",
                                        NULL, dash ? dash + 1 : NULL, error);
            if (!small_path) {
                return false;
            }
            printf("Small one written to %s\n", small_path);
        }
    }
    word = vm_config_word(small_path ? small_path : path);
    printf("Again: shootdown replay %s\n", word);
    if (f->flags->on_bug) {
        run_command(f->flags->on_bug, path);
    }
    return true;
}

bool fuzz_finding(struct fuzz *f, const struct fuzz_run *run, GError **error)
{
    struct failure failure = run->failure;
    struct schedule *schedule;
    g_autofree char *path = NULL;
    int64_t now = g_get_monotonic_time();

    if (is_known(f, &failure)) {
        return false;
    }
    fuzz_target_set_seed(f->target, f->flags->seed + f->number);
    schedule = fuzz_target_schedule(f->target);
    path = write_artifact(f, schedule, &failure, failure_kind(&failure),
                          f->flags->exact_artifact_path, NULL, error);
    print_finding(f, &failure, run, path);
    f->wanted = &failure;
    if (failure.outcome != VM_OUTCOME_TIMEOUT) {
        check_stability(f, schedule, &failure);
    }
    if (path) {
        (void)shrink_and_write(f, &schedule, &failure, path, error);
    }
    f->wanted = NULL;
    (void)fflush(stdout);
    g_array_append_val(f->found, failure);
    if (is_hang(&failure)) {
        f->hangs++;
        f->last_hang_us = now;
    } else {
        f->last_bug_us = now;
    }
    schedule_free(schedule);
    return true;
}

void fuzz_tell(struct fuzz *f, const struct fuzz_run *run)
{
    print_finding(f, &run->failure, run, NULL);
    if (!is_known(f, &run->failure)) {
        g_array_append_val(f->found, run->failure);
        f->hangs += is_hang(&run->failure);
    }
}

bool fuzz_minimize_file(struct fuzz *f, const char *path, GError **error)
{
    struct minimize_result result;
    struct schedule *schedule;
    struct fuzz_run run;
    g_autofree char *text = NULL, *from = NULL, *out = NULL;
    gsize length;
    bool ok;

    if (!g_file_get_contents(path, &text, &length, error)) {
        (*error)->domain = VM_ERROR;
        (*error)->code = VM_ERROR_ENVIRONMENT;
        return false;
    }
    from = fuzz_name(text, length);
    if (!fuzz_run_file(f, path, &run, error)) {
        return false;
    }
    if (!run.failed) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "%s does not fail on this target: there is nothing to "
                    "shrink",
                    path);
        return false;
    }
    print_finding(f, &run.failure, &run, NULL);
    schedule = fuzz_target_schedule(f->target);
    f->wanted = &run.failure;
    ok = shrink(f, &schedule, &run.failure,
                f->flags->has_runs && f->flags->runs != FUZZ_RUNS_ENDLESS
                    ? f->flags->runs
                    : 10000,
                &result);
    f->wanted = NULL;
    if (ok) {
        print_shrunk(&result);
        out = write_artifact(f, schedule, &run.failure, "minimized-from",
                             f->flags->exact_artifact_path, from, error);
        ok = out != NULL;
    } else {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "%s does not fail in the same way twice", path);
    }
    if (ok) {
        g_autofree char *word = vm_config_word(out);

        printf("Small one written to %s\nAgain: shootdown replay %s\n", out,
               word);
        g_array_append_val(f->found, run.failure);
        f->hangs += is_hang(&run.failure);
    }
    schedule_free(schedule);
    return ok;
}
