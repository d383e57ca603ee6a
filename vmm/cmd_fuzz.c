/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `shootdown fuzz`: schedules of a scenario, guided by what they cover. Chooses
 * among fuzzing, repeating files, merging and shrinking. Main thread, which
 * also runs the vCPUs.
 */
#include "cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "choice/source.h"
#include "config_priv.h"
#include "error.h"
#include "fuzz.h"

static const char usage[] =
    "Usage:\n"
    "  shootdown fuzz [OPTIONS] [-FLAG=VALUE ...] TARGET [FILE|DIRECTORY ...]\n"
    "  shootdown fuzz [OPTIONS] [-FLAG=VALUE ...] --kernel FILE [...]\n"
    "\n"
    "Runs one scenario under thousands of schedules, from a snapshot of its\n"
    "beginning, and looks for one that breaks a rule of the ledger, or that "
    "the\n"
    "guest, a hang or a panic gives away. TARGET is a workload with a mark at "
    "its\n"
    "beginning: reclaim_race, drain_race and others. Directories hold inputs; "
    "new\n"
    "ones go to the first. Files are run once each, without fuzzing.\n"
    "\n";

static const char examples[] =
    "Examples:\n"
    "  shootdown fuzz reclaim_race --bug free-before-flush -seed=1\n"
    "      a planted bug; leaves stale-<sha1>, for 'shootdown replay'\n"
    "  shootdown fuzz drain_race --mem 64M corpus -max_total_time=60\n"
    "      a minute, with a directory of inputs to begin with and to add to\n"
    "  shootdown fuzz drain_race --mem 64M stale-<sha1>\n"
    "      one input again: is the bug still there?\n"
    "  shootdown fuzz reclaim_race -fork=4 -campaign=out\n"
    "      four processes; afl-whatsup and afl-plot read the statistics\n"
    "\n"
    "Exit status:\n"
    "  0 nothing found, 77 a bug, 70 only hangs, 1 usage, 2 environment, 130\n"
    "  interrupted\n";

char *cmd_fuzz_help(void)
{
    g_autofree char *flags = fuzz_flags_help();
    g_autofree char *machine = vm_config_help(VM_COMMAND_FUZZ);

    return g_strconcat(usage, flags, machine, examples, NULL);
}

/* --- what is to be done --- */

enum task { TASK_FUZZ, TASK_FILES, TASK_MERGE, TASK_MINIMIZE };

static bool choose_task(const struct fuzz_flags *f, char *const *inputs,
                        enum task *out, GError **error)
{
    unsigned files = 0, directories = 0;

    for (char *const *path = inputs; *path; path++) {
        bool is_directory = g_file_test(*path, G_FILE_TEST_IS_DIR);

        if (!is_directory && !g_file_test(*path, G_FILE_TEST_EXISTS)) {
            return config_usage(error, "'%s' is neither a file nor a directory",
                                *path);
        }
        files += !is_directory;
        directories += is_directory;
    }
    if (files && directories) {
        return config_usage(error, "files are run once, directories are for "
                                   "fuzzing: give one or the other");
    }
    if (f->minimize_crash && (files != 1 || directories)) {
        return config_usage(error, "-minimize_crash=1 needs one file");
    }
    if (f->merge && directories < 2) {
        return config_usage(error, "-merge=1 needs two directories or more: "
                                   "the first one is added to");
    }
    *out = f->minimize_crash ? TASK_MINIMIZE
           : f->merge        ? TASK_MERGE
           : files           ? TASK_FILES
                             : TASK_FUZZ;
    if (*out != TASK_FUZZ && (f->jobs || f->fork)) {
        return config_usage(error, "-jobs and -fork are for fuzzing, not for "
                                   "files, -merge or -minimize_crash");
    }
    return true;
}

static bool check_strategy(const struct fuzz_flags *f, GError **error)
{
    g_autoptr(GError) reason = NULL;
    struct choice_source *source;
    bool whole;

    if (strcmp(f->strategy, "portfolio") == 0) {
        return true;
    }
    source = choice_strategy_new(f->strategy, 1, &reason);
    if (!source) {
        return config_usage(error, "-strategy is '%s': %s, portfolio",
                            f->strategy, reason->message);
    }
    choice_source_free(source);
    whole = g_str_has_prefix(f->strategy, "icb") ||
            g_str_has_prefix(f->strategy, "dfs");
    if (whole && (f->shard_count > 1 || f->jobs || f->fork)) {
        return config_usage(error,
                            "-strategy '%s' goes through all runs in their "
                            "order, which cannot be divided among shards",
                            f->strategy);
    }
    return true;
}

/* --- doing it --- */

static bool run_files(struct fuzz *f, GError **error)
{
    f->every_time = true;
    for (char *const *path = f->inputs; *path && !fuzz_interrupted(f); path++) {
        int64_t start = g_get_monotonic_time();
        struct fuzz_run run;

        printf("Running: %s\n", *path);
        if (!fuzz_run_file(f, *path, &run, error)) {
            return false;
        }
        printf("Executed %s in %" PRId64 " ms\n", *path,
               (g_get_monotonic_time() - start) / 1000);
        if (run.failed) {
            fuzz_tell(f, &run);
        }
    }
    printf("***\n*** NOTE: fuzzing was not performed, these files were run "
           "once each.\n***\n");
    return true;
}

/* The plain run is an input, too: as with libFuzzer's empty one. */
static bool begin_corpus(struct fuzz *f, GError **error)
{
    struct choice_source *plain = choice_source_plain();
    struct fuzz_run run;

    fuzz_run(f, plain, &run);
    choice_source_free(plain);
    if (run.failed) {
        (void)fuzz_finding(f, &run, error);
    } else if (!run.abandoned) {
        (void)fuzz_corpus_add(
            f->corpus, &run, fuzz_target_entries(f->target),
            fuzz_corpus_learn(f->corpus, fuzz_target_cover(f->target)), 0);
    }
    for (char *const *dir = f->inputs; (!error || !*error) && *dir; dir++) {
        GPtrArray *names = fuzz_list_files(*dir, error);

        if (names) {
            printf("INFO: %8u files found in %s\n", names->len, *dir);
            g_ptr_array_unref(names);
            (void)fuzz_load_directory(f, *dir, error);
        }
    }
    if (!*f->inputs && f->first_dir && (!error || !*error)) {
        (void)fuzz_load_directory(f, f->first_dir, error);
    }
    fuzz_status(f, "INITED", NULL);
    return !error || !*error;
}

static bool run_fuzz(struct fuzz *f, GError **error)
{
    if (!fuzz_campaign_begin(f, error)) {
        return false;
    }
    if (!begin_corpus(f, error) || !fuzz_loop(f, error)) {
        return false;
    }
    fuzz_status(f, "DONE", NULL);
    fuzz_campaign_save(f, true);
    return true;
}

static bool run_task(struct fuzz *f, enum task task, GError **error)
{
    bool ok = false;

    switch (task) {
    case TASK_FUZZ:
        ok = run_fuzz(f, error);
        break;
    case TASK_FILES:
        ok = run_files(f, error);
        break;
    case TASK_MERGE:
        ok = fuzz_merge(f, error);
        break;
    case TASK_MINIMIZE:
        ok = fuzz_minimize_file(f, f->inputs[0], error);
        break;
    }
    if (ok && f->flags->print_final_stats) {
        fuzz_final_stats(f);
    }
    return ok;
}

static bool fuzz_open(struct fuzz *f, const struct vm_config *config,
                      GError **error)
{
    g_autofree char *text = vm_config_to_text(config);

    f->start_us = g_get_monotonic_time();
    f->corpus = fuzz_corpus_new();
    f->corpus->is_named = f->first_dir != NULL;
    f->found = g_array_new(FALSE, FALSE, sizeof(struct failure));
    f->target = fuzz_target_open(config, error);
    if (!f->target) {
        return false;
    }
    fuzz_target_stop_at(f->target, fuzz_stops_at, f);
    f->watchdog = fuzz_watchdog_new(f);
    printf("INFO: Target: %s\n"
           "INFO: Booted to its beginning in %" PRId64 " ms; %u counters of "
           "coverage\n",
           text, (g_get_monotonic_time() - f->start_us) / 1000, FUZZ_MAP_SIZE);
    (void)fflush(stdout);
    f->start_us = g_get_monotonic_time();
    if (!f->watchdog) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "no thread for the watchdog");
    }
    return f->watchdog != NULL;
}

static void fuzz_close(struct fuzz *f)
{
    fuzz_watchdog_free(f->watchdog);
    fuzz_target_close(f->target);
    fuzz_corpus_free(f->corpus);
    if (f->found) {
        g_array_unref(f->found);
    }
    if (f->plot) {
        (void)fclose(f->plot);
    }
    g_free(f->first_dir);
    g_free(f->command);
}

/* Where new inputs go; the directory is made where it is the campaign's. */
static bool choose_first(const struct fuzz_flags *flags, char *const *inputs,
                         enum task task, char **out, GError **error)
{
    *out = NULL;
    if (task == TASK_MERGE || (task == TASK_FUZZ && inputs[0])) {
        *out = g_strdup(inputs[0]);
    } else if (task == TASK_FUZZ && flags->campaign) {
        *out = g_build_filename(flags->campaign, "queue", NULL);
        if (g_mkdir_with_parents(*out, 0777) != 0) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "%s cannot be made", *out);
            return false;
        }
    }
    return true;
}

static int fuzz(struct fuzz_flags *flags, struct vm_config *config, int argc,
                char **argv)
{
    struct fuzz f = {.flags = flags, .inputs = config->inputs};
    g_autoptr(GError) error = NULL;
    enum task task = TASK_FUZZ;
    int status;

    config->max_steps = flags->max_steps;
    f.command = g_strjoinv(" ", argv);
    if (!check_strategy(flags, &error) ||
        !choose_task(flags, f.inputs, &task, &error) ||
        !fuzz_make_directories(flags, &error) ||
        !choose_first(flags, f.inputs, task, &f.first_dir, &error)) {
        status = cli_fail(error);
    } else {
        printf("INFO: Seed: %" PRIu64 "\n", flags->seed);
        (void)fflush(stdout);
        if (flags->jobs || flags->fork) {
            status =
                fuzz_jobs(flags, argc, argv, f.inputs[0] ? NULL : f.first_dir);
        } else if (!fuzz_open(&f, config, &error) ||
                   !run_task(&f, task, &error)) {
            (void)fflush(stdout);
            status = cli_fail(error);
        } else {
            status = fuzz_interrupted(&f) && !f.found->len
                         ? EXIT_INTERRUPTED
                         : fuzz_exit_status(&f);
        }
    }
    fuzz_close(&f);
    return status;
}

int cmd_fuzz(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autofree char **words = NULL;
    struct fuzz_flags flags;
    struct vm_config *config = NULL;
    int status;

    if (!fuzz_flags_parse(&flags, argc, argv, &words, &error) ||
        !(config =
              fuzz_target_config((int)g_strv_length(words), words, &error))) {
        status = cli_fail(error);
    } else {
        if (flags.seed == 0) {
            flags.seed = g_random_int();
            flags.seed += flags.seed == 0;
        }
        status = fuzz(&flags, config, argc, argv);
    }
    vm_config_free(config);
    fuzz_flags_fini(&flags);
    return status;
}
