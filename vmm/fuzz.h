/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `shootdown fuzz`: what its files share. A campaign is one target, one corpus
 * and what was found. One thread does it all but for the watchdog, which only
 * looks at the clock and the signals.
 *
 * Nothing but -max_total_time, -exit_on_time, -timeout and -reload looks at
 * the clock, and rates and times in lines for people: with one seed, one corpus
 * and one process everything else is the same each time.
 */
#ifndef VMM_FUZZ_H
#define VMM_FUZZ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "fuzz_corpus.h"
#include "fuzz_flags.h"
#include "fuzz_target.h"

struct fuzz_watchdog;

struct fuzz {
    struct fuzz_flags *flags; /* borrowed */
    char *const *inputs;      /* files and directories; borrowed */
    struct fuzz_target *target;
    struct fuzz_corpus *corpus;
    struct fuzz_watchdog *watchdog;
    GArray *found;          /* struct failure, different ones */
    bool every_time;        /* a failure that was found before ends a run */
    struct failure *wanted; /* the one failure that is repeated now, or NULL */
    char *first_dir;        /* where new inputs go; NULL: nowhere */
    char *command;          /* the command line, for statistics */

    uint64_t runs;          /* executions so far, the corpus's included */
    uint64_t number;        /* of the present one in all shards, from 0 */
    unsigned hangs;         /* of found; the rest are bugs */
    unsigned imported;      /* inputs of others, by -reload */
    unsigned kept;          /* inputs found */
    uint64_t steps;         /* of all runs */
    unsigned tried, stable; /* replays of findings */
    int64_t start_us, last_new_us, last_bug_us, last_hang_us;
    int64_t saved_us; /* statistics were written last */
    FILE *plot;       /* plot_data, or NULL */
};

/* Nothing to do with the clock: the time a run began, for -timeout. */
void fuzz_watchdog_begin(struct fuzz *fuzz);
bool fuzz_interrupted(const struct fuzz *fuzz);
struct fuzz_watchdog *fuzz_watchdog_new(struct fuzz *fuzz);
void fuzz_watchdog_free(struct fuzz_watchdog *watchdog);

/* --- fuzz_loop.c --- */

/* Runs what a file holds: a schedule, its line, or bytes. */
bool fuzz_run_file(struct fuzz *fuzz, const char *path, struct fuzz_run *out,
                   GError **error);
/* One execution, counted. */
void fuzz_run(struct fuzz *fuzz, struct choice_source *source,
              struct fuzz_run *out);
/* Runs the files of a directory that were not run yet, and keeps what is new.
 */
bool fuzz_load_directory(struct fuzz *fuzz, const char *directory,
                         GError **error);
/* Until -runs, a time, a finding or a signal ends it. */
bool fuzz_loop(struct fuzz *fuzz, GError **error);
/* -merge=1: the first directory gets what the others add. */
bool fuzz_merge(struct fuzz *fuzz, GError **error);

/* --- fuzz_finding.c --- */

/*
 * The last run failed: report it unless it is known, repeat it, write it to a
 * file, shrink it. True: it was a new one.
 */
bool fuzz_finding(struct fuzz *fuzz, const struct fuzz_run *run,
                  GError **error);
/* The last run failed: said, counted, and no more. */
void fuzz_tell(struct fuzz *fuzz, const struct fuzz_run *run);
/* -minimize_crash=1 */
bool fuzz_minimize_file(struct fuzz *fuzz, const char *path, GError **error);
/* The directories of -artifact_prefix and -exact_artifact_path. */
bool fuzz_make_directories(const struct fuzz_flags *flags, GError **error);
bool fuzz_stops_at(void *fuzz, const struct ledger_site *site);
/* 0, -error_exitcode, -timeout_exitcode */
int fuzz_exit_status(const struct fuzz *fuzz);

/* --- fuzz_stats.c --- */

/* "#12	NEW    tlb: ..."; more (may be NULL) is put at the end. */
void fuzz_status(struct fuzz *fuzz, const char *what, const char *more);
void fuzz_final_stats(const struct fuzz *fuzz);
/* -campaign: makes the directories; then what is in there, now and then. */
bool fuzz_campaign_begin(struct fuzz *fuzz, GError **error);
void fuzz_campaign_save(struct fuzz *fuzz, bool is_end);

/* --- fuzz_jobs.c --- */

/*
 * -jobs, -fork: the processes, to their end. shared: a directory for inputs
 * that argv does not name, or NULL. The exit status.
 */
int fuzz_jobs(const struct fuzz_flags *flags, int argc, char *const *argv,
              const char *shared);

#endif
