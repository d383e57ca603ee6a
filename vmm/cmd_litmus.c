/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `shootdown litmus`: runs litmus tests and compares what was seen with what
 * a model says. One process a test. Main thread.
 */
#include "cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "error.h"
#include "litmus/explore.h"
#include "litmus/image.h"
#include "litmus/machine.h"
#include "litmus/pool.h"
#include "litmus/report.h"
#include "litmus/test.h"
#include "litmus/verdicts.h"
#include "progress.h"

#define DIRECTORY_DEPTH_MAX 16u

struct litmus_options {
    char *verdicts, *inject;
    gboolean json, quiet, parse_only, naive;
    int workers;
    gint64 states, seconds, random_runs, seed;
    char **paths;
};

struct litmus_run {
    const struct litmus_options *options;
    struct litmus_verdicts *verdicts;
    GPtrArray *files; /* char * */
    struct litmus_bounds bounds;
    struct progress progress;
    guint scores[LITMUS_VIOLATES + 1];
    guint failed, incomplete;
    guint reachable, reached; /* of the class ALLOWED-REACHABLE */
};

/* --- files --- */

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_path(GPtrArray *files, const char *path, unsigned depth,
                     GError **error)
{
    g_autoptr(GDir) dir = NULL;
    g_autoptr(GPtrArray) inside = NULL;
    g_autoptr(GError) problem = NULL;
    const char *name;

    if (!g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_ptr_array_add(files, g_strdup(path));
        return true;
    }
    dir = g_dir_open(path, 0, &problem);
    if (!dir || depth > DIRECTORY_DEPTH_MAX) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s",
                    problem ? problem->message : "directories too deep");
        return false;
    }
    inside = g_ptr_array_new_with_free_func(g_free);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *full = g_build_filename(path, name, NULL);

        if (g_str_has_suffix(name, ".litmus") ||
            g_file_test(full, G_FILE_TEST_IS_DIR)) {
            g_ptr_array_add(inside, g_steal_pointer(&full));
        }
    }
    g_ptr_array_sort(inside, by_name);
    for (guint i = 0; i < inside->len; i++) {
        if (!add_path(files, inside->pdata[i], depth + 1, error)) {
            return false;
        }
    }
    return true;
}

/* --- one test, in its own process --- */

static struct litmus_test *load(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) problem = NULL;
    gsize size;

    if (!g_file_get_contents(path, &text, &size, &problem)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s",
                    problem->message);
        return NULL;
    }
    if (strlen(text) != size) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "%s: a byte 0 after %zu bytes: no text", path,
                    strlen(text));
        return NULL;
    }
    return litmus_parse(text, path, error);
}

/* The first line is for finished(): S score complete class-reachable seen. */
static void put_result(struct litmus_run *run, const char *path,
                       const struct litmus_test *test,
                       const struct litmus_outcomes *o, GString *out)
{
    const struct litmus_verdict *v =
        run->verdicts ? litmus_verdicts_find(run->verdicts, path, test->name)
                      : NULL;
    g_autofree char *text = run->options->json
                                ? litmus_report_json(test, path, o, v)
                                : litmus_report_text(test, o, v);

    g_string_append_printf(out, "S %d %d %d %d\n%s", (int)litmus_score(v, o),
                           o->complete,
                           v && strcmp(v->class, "ALLOWED-REACHABLE") == 0,
                           litmus_observe(o) != LITMUS_NEVER, text);
}

static void work(void *opaque, guint job, GString *out)
{
    struct litmus_run *run = opaque;
    const char *path = run->files->pdata[job];
    g_autoptr(GError) error = NULL;
    struct litmus_outcomes outcomes = {0};
    struct litmus_machine *machine = NULL;
    struct litmus_image *image = NULL;
    struct litmus_test *test = load(path, &error);

    if (test) {
        image = litmus_image_new(test, path, &error);
    }
    if (image && !run->options->parse_only) {
        machine = litmus_machine_new(test, image, run->options->inject, &error);
    }
    if (machine && litmus_explore(machine, &run->bounds, &outcomes, &error)) {
        put_result(run, path, test, &outcomes, out);
    } else if (error) {
        g_string_printf(out, "F\n%s", error->message);
    } else {
        g_string_append_printf(out, "P\n");
    }
    litmus_outcomes_fini(&outcomes);
    litmus_machine_free(machine);
    litmus_image_free(image);
    litmus_test_free(test);
}

/* --- the whole --- */

static void complain(struct litmus_run *run, const char *path, const char *what)
{
    run->failed++;
    progress_clear(&run->progress);
    fprintf(stderr, "shootdown: %s%s%s\n", path ? path : "", path ? ": " : "",
            what);
    if (run->options->json) {
        g_autofree char *text = litmus_json_string(what);

        printf("{\"error\":%s}\n", text);
    }
}

static void finished(void *opaque, guint job, const char *text, int status)
{
    struct litmus_run *run = opaque;
    const char *path = run->files->pdata[job];
    const char *rest = text ? strchr(text, '\n') : NULL;
    int score = LITMUS_UNSCORED, complete, reachable, seen;

    if (!rest) {
        g_autofree char *what =
            WIFSIGNALED(status)
                ? g_strdup_printf("its process was ended by signal %d",
                                  WTERMSIG(status))
                : g_strdup("its process ended without a result");

        complain(run, path, what);
        return;
    }
    if (text[0] == 'F') {
        complain(run, NULL, rest + 1);
        return;
    }
    if (sscanf(text, "S %d %d %d %d", &score, &complete, &reachable, &seen) ==
        4) {
        run->scores[score]++;
        run->incomplete += !complete;
        run->reachable += (guint)reachable;
        run->reached += reachable && seen;
    }
    if (!run->options->quiet || score == LITMUS_VIOLATES) {
        progress_clear(&run->progress);
        fputs(rest + 1, stdout);
        fflush(stdout);
    }
}

static void tell_progress(void *opaque, guint done)
{
    struct litmus_run *run = opaque;

    progress_bar(&run->progress, done, run->files->len, "tests");
}

static void summarize(const struct litmus_run *run)
{
    FILE *out = run->options->json ? stderr : stdout;

    fprintf(out, "%u tests: %u failed, %u not explored to the end\n",
            run->files->len, run->failed, run->incomplete);
    if (run->verdicts) {
        fprintf(out,
                "%u agree, %u allowed but not seen, %u violations, %u without "
                "a published kind\n",
                run->scores[LITMUS_AGREES], run->scores[LITMUS_UNSEEN],
                run->scores[LITMUS_VIOLATES], run->scores[LITMUS_UNSCORED]);
    }
    if (run->reachable) {
        fprintf(out, "%u of %u reachable outcomes seen\n", run->reached,
                run->reachable);
    }
}

static GOptionContext *context_new(struct litmus_options *o)
{
    const GOptionEntry entries[] = {
        {"verdicts", 0, 0, G_OPTION_ARG_FILENAME, &o->verdicts,
         "compare with the kinds published there", "FILE"},
        {"inject", 0, 0, G_OPTION_ARG_STRING, &o->inject,
         "make TLBs faulty, to see which tests notice; as for 'run'",
         "FAULT[,...]"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o->json,
         "one JSON object a test, a line each", NULL},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &o->workers,
         "tests at a time (default 1)", "N"},
        {"states", 0, 0, G_OPTION_ARG_INT64, &o->states,
         "states that a search keeps at most", "N"},
        {"seconds", 0, 0, G_OPTION_ARG_INT64, &o->seconds,
         "time for one search, 0: no limit (default 30)", "N"},
        {"random", 0, 0, G_OPTION_ARG_INT64, &o->random_runs,
         "random runs after a search that was cut off", "N"},
        {"seed", 0, 0, G_OPTION_ARG_INT64, &o->seed, "of the random runs", "N"},
        {"naive", 0, 0, G_OPTION_ARG_NONE, &o->naive,
         "leave nothing out of the search: slow, for checking it", NULL},
        {"parse", 0, 0, G_OPTION_ARG_NONE, &o->parse_only,
         "read and assemble only", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &o->quiet,
         "violations and the summary only", NULL},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o->paths, NULL,
         NULL},
        {0},
    };
    GOptionContext *context = g_option_context_new("FILE|DIRECTORY...");

    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_summary(
        context,
        "Runs litmus tests of AArch64 virtual memory in the format of herd:\n"
        "every order of instructions, every stale translation that a TLB may\n"
        "keep, and prints the states in which they end.");
    g_option_context_set_help_enabled(context, FALSE);
    return context;
}

static bool parse(struct litmus_options *o, int argc, char **argv,
                  GError **error)
{
    GOptionContext *context = context_new(o);
    g_autoptr(GError) problem = NULL;
    g_auto(GStrv) words = g_new0(char *, (gsize)argc + 2);
    bool ok;

    words[0] = g_strdup("shootdown litmus");
    for (int i = 0; i < argc; i++) {
        words[i + 1] = g_strdup(argv[i]);
    }
    ok = g_option_context_parse_strv(context, &words, &problem);
    g_option_context_free(context);
    if (!ok) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "%s; 'shootdown litmus --help' shows the options",
                    problem->message);
    } else if (!o->paths) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "which tests? Give files or directories of .litmus files");
        ok = false;
    } else if (o->workers < 1 || o->workers > 256 || o->states < 1 ||
               o->seconds < 0 || o->random_runs < 0) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "-j is from 1 to 256, --states at least 1, --seconds and "
                    "--random at least 0");
        ok = false;
    }
    return ok;
}

char *cmd_litmus_help(void)
{
    struct litmus_options o = {0};
    GOptionContext *context = context_new(&o);
    char *text;

    g_set_prgname("shootdown litmus");
    text = g_option_context_get_help(context, TRUE, NULL);
    g_option_context_free(context);
    return text;
}

static bool prepare(struct litmus_run *run, GError **error)
{
    const struct litmus_options *o = run->options;

    for (char **path = o->paths; *path; path++) {
        if (!add_path(run->files, *path, 0, error)) {
            return false;
        }
    }
    if (o->verdicts) {
        run->verdicts = litmus_verdicts_load(o->verdicts, error);
        return run->verdicts != NULL;
    }
    return true;
}

int cmd_litmus(int argc, char **argv)
{
    static const struct pool_ops ops = {work, finished, tell_progress};
    const struct litmus_bounds usual = LITMUS_BOUNDS_DEFAULT;
    struct litmus_options o = {
        .workers = 1,
        .states = (gint64)usual.states,
        .seconds = (gint64)usual.seconds,
        .random_runs = (gint64)usual.random_runs,
        .seed = (gint64)usual.seed,
    };
    struct litmus_run run = {.options = &o};
    g_autoptr(GError) error = NULL;
    int status = EXIT_FINE;

    run.files = g_ptr_array_new_with_free_func(g_free);
    if (!parse(&o, argc, argv, &error) || !prepare(&run, &error)) {
        status = cli_fail(error);
    } else {
        run.bounds = (struct litmus_bounds){
            .states = (uint64_t)o.states,
            .seconds = (uint64_t)o.seconds,
            .random_runs = (uint64_t)o.random_runs,
            .seed = (uint64_t)o.seed,
            .naive = o.naive,
        };
        progress_init(&run.progress, !o.quiet);
        if (!pool_run(&ops, &run, run.files->len, (unsigned)o.workers,
                      &error)) {
            status = cli_fail(error);
        } else {
            progress_clear(&run.progress);
            summarize(&run);
            status = run.failed                    ? EXIT_ENVIRONMENT
                     : run.scores[LITMUS_VIOLATES] ? EXIT_BUG_FOUND
                                                   : EXIT_FINE;
        }
    }
    litmus_verdicts_free(run.verdicts);
    g_ptr_array_unref(run.files);
    g_strfreev(o.paths);
    g_free(o.verdicts);
    g_free(o.inject);
    return status;
}
