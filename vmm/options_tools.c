/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options and help pages of `replay` and `minimize`, which take a schedule and
 * need no other configuration. Main thread.
 */
#include "options.h"

#include <string.h>

#include "config_priv.h"
#include "options_priv.h"

static const char replay_usage[] =
    "Usage:\n"
    "  shootdown replay [OPTIONS] SCHEDULE\n"
    "\n"
    "Repeats a run that was recorded: the same instructions, the same TLBs, "
    "the\n"
    "same end. SCHEDULE is a file of 'run --record' or 'minimize --output', or "
    "the\n"
    "line beginning with sd1: that a failing run printed. Configuration, "
    "workload\n"
    "and choices come from it; the hashes in it are checked on the way, and "
    "the\n"
    "first difference is named.\n";

static const char replay_examples[] =
    "Examples:\n"
    "  shootdown run swap_bench --engine seeded --seed 7 --record run.sd\n"
    "  shootdown replay run.sd\n"
    "      the same run once more\n"
    "  shootdown replay run.sd --quiet --trace - --trace-events "
    "pte_store,tlbi\n"
    "      what happened in it, as JSON Lines\n"
    "\n"
    "Exit status:\n"
    "  that of the run: 0 fine, 3 guest panic, 4 the workload failed, 77 a bug "
    "was\n"
    "  found; 2 the schedule is not intact, or the run went another way; 1 "
    "usage\n";

static const char minimize_usage[] =
    "Usage:\n"
    "  shootdown minimize [OPTIONS] SCHEDULE\n"
    "\n"
    "Shrinks the schedule of a run that failed to one that a person can read:\n"
    "drops vCPUs, choices and guest operations, merges slices, and runs every\n"
    "candidate to see that it still fails in the same way. SCHEDULE is a file "
    "or\n"
    "the line beginning with sd1: that a failing run printed.\n";

static const char minimize_examples[] =
    "Examples:\n"
    "  shootdown minimize found.sd --output small.sd\n"
    "      prints what was left: preemptions, steps, and a table of them\n"
    "  shootdown replay small.sd\n"
    "      the small run, to look at\n"
    "\n"
    "Exit status:\n"
    "  0 it still fails and is as small as it gets; 2 the schedule is not "
    "intact\n"
    "  or does not fail when it is repeated; 1 usage; 130 interrupted\n";

/* --- what both do --- */

/* o->schedule from the only word that is no option. */
static bool take_schedule(const char *command, char **rest, char **out_schedule,
                          GError **error)
{
    if (!rest || !rest[0]) {
        return config_usage(error,
                            "what shall '%s' work on? Give the file of a "
                            "schedule, or its line sd1:...",
                            command);
    }
    if (rest[1]) {
        return config_usage(error,
                            "'%s' is one word too many: '%s' takes one "
                            "schedule, and the workload's arguments are in it",
                            rest[1], command);
    }
    *out_schedule = g_strdup(rest[0]);
    return true;
}

/* Frees the context. */
static bool parse_words(GOptionContext *context, const char *command, int argc,
                        char *const *argv, GError **error)
{
    g_autoptr(GError) parse_error = NULL;
    g_auto(GStrv) words = g_new0(char *, (gsize)argc + 2);
    bool ok;

    words[0] = g_strdup("shootdown");
    for (int i = 0; i < argc; i++) {
        words[i + 1] = g_strdup(argv[i]);
    }
    ok = g_option_context_parse_strv(context, &words, &parse_error);
    g_option_context_free(context);
    return ok ||
           config_usage(error, "%s; 'shootdown %s --help' shows the options",
                        parse_error->message, command);
}

/* --- replay --- */

static GOptionContext *replay_context(struct replay_options *o, char ***rest)
{
    GOptionContext *context = g_option_context_new(NULL);
    const GOptionEntry entries[] = {
        OPTION_FILE("stats", 's', stats,
                    "counts as one JSON line (- is stdout)", "FILE"),
        OPTION_FILE("trace", 0, trace, "events as JSON Lines (- is stdout)",
                    "FILE"),
        OPTION_TEXT("trace-events", 0, trace_events,
                    "which: all, or names (no block)", "LIST"),
        OPTION_FILES("plugin", 'p', plugins, "load a plugin; may be repeated",
                     "FILE[,k=v]"),
        OPTION_FILE("report", 0, report,
                    "the ledger's findings as JSON Lines (- is stdout)",
                    "FILE"),
        OPTION_FLAG("quiet", 'q', quiet, "no guest console, no summary"),
        OPTION_FLAG("verbose", 'v', verbose,
                    "a summary of the counts at the end"),
        OPTION_END};
    const GOptionEntry schedule[] = {{G_OPTION_REMAINING, 0, 0,
                                      G_OPTION_ARG_FILENAME_ARRAY, rest, NULL,
                                      NULL},
                                     OPTION_END};

    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_add_main_entries(context, schedule, NULL);
    (void)options_add_group(context, "output", "What one sees:", entries);
    return context;
}

gboolean replay_options_apply(const struct replay_options *o,
                              struct vm_config *config, GError **error)
{
    const struct config_output output = {
        .stats = o->stats,
        .report = o->report,
        .trace = o->trace,
        .trace_events = o->trace_events,
        .plugins = o->plugins,
        .quiet = o->quiet,
        .verbose = o->verbose,
    };

    return config_take_output(config, &output, error);
}

gboolean replay_options_parse(struct replay_options *o, int argc,
                              char *const *argv, GError **error)
{
    g_auto(GStrv) rest = NULL;
    struct vm_config *scratch;
    bool ok;

    memset(o, 0, sizeof(*o));
    if (!parse_words(replay_context(o, &rest), "replay", argc, argv, error) ||
        !take_schedule("replay", rest, &o->schedule, error)) {
        return FALSE;
    }
    /* Refused now, not when the schedule was read and the machine is there. */
    scratch = g_new0(struct vm_config, 1);
    ok = replay_options_apply(o, scratch, error);
    vm_config_free(scratch);
    return ok;
}

void replay_options_fini(struct replay_options *o)
{
    g_free(o->schedule);
    g_free(o->trace);
    g_free(o->trace_events);
    g_free(o->stats);
    g_free(o->report);
    g_strfreev(o->plugins);
    memset(o, 0, sizeof(*o));
}

char *replay_options_help(void)
{
    struct replay_options o = {0};
    char **rest = NULL;

    return options_help(replay_context(&o, &rest), replay_usage,
                        replay_examples);
}

/* --- minimize --- */

static GOptionContext *minimize_context(struct minimize_options *o,
                                        char **max_runs, char ***rest)
{
    GOptionContext *context = g_option_context_new(NULL);
    const GOptionEntry entries[] = {
        OPTION_FILE("output", 'o', output, "write the small schedule there",
                    "FILE"),
        {"max-runs", 0, 0, G_OPTION_ARG_STRING, max_runs,
         "candidates to run (default " G_STRINGIFY(MINIMIZE_RUNS_DEFAULT) ")",
         "N"},
        {"no-table", 0, G_OPTION_FLAG_REVERSE, G_OPTION_ARG_NONE, &o->table,
         "do not print the steps per vCPU", NULL},
        OPTION_FLAG("quiet", 'q', quiet,
                    "print the small schedule's line only"),
        OPTION_FLAG("verbose", 'v', verbose, "tell each improvement"),
        OPTION_END};
    const GOptionEntry schedule[] = {{G_OPTION_REMAINING, 0, 0,
                                      G_OPTION_ARG_FILENAME_ARRAY, rest, NULL,
                                      NULL},
                                     OPTION_END};

    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_add_main_entries(context, schedule, NULL);
    (void)options_add_group(context, "minimize", "Options:", entries);
    return context;
}

gboolean minimize_options_parse(struct minimize_options *o, int argc,
                                char *const *argv, GError **error)
{
    g_auto(GStrv) rest = NULL;
    g_autofree char *max_runs = NULL;

    memset(o, 0, sizeof(*o));
    o->table = TRUE;
    o->max_runs = MINIMIZE_RUNS_DEFAULT;
    if (!parse_words(minimize_context(o, &max_runs, &rest), "minimize", argc,
                     argv, error) ||
        !take_schedule("minimize", rest, &o->schedule, error)) {
        return FALSE;
    }
    if (o->quiet && o->verbose) {
        return config_usage(error, "--quiet and --verbose exclude each other");
    }
    o->table = o->table && !o->quiet;
    return config_number("--max-runs", max_runs, 1, VM_RUNS_MAX, &o->max_runs,
                         error);
}

void minimize_options_fini(struct minimize_options *o)
{
    g_free(o->schedule);
    g_free(o->output);
    memset(o, 0, sizeof(*o));
}

char *minimize_options_help(void)
{
    struct minimize_options o = {0};
    char *max_runs = NULL, **rest = NULL;

    return options_help(minimize_context(&o, &max_runs, &rest), minimize_usage,
                        minimize_examples);
}
