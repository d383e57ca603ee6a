/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scenario made ready to be run thousands of times: booted to its beginning,
 * remembered there, with the ledger and schedule coverage listening. One
 * execution puts it back and runs one schedule to the scenario's end, or to
 * the first thing that is wrong.
 *
 * `shootdown fuzz` is one user; the entry points for libFuzzer and AFL++ are
 * others: open it once, hand in each input's bytes, look at the coverage map.
 * Any bytes are a schedule (choice_source_bytes()), so none is refused.
 *
 * One thread; it runs the vCPUs. Nothing here prints unless asked to. The
 * guest's console is not shown.
 */
#ifndef VMM_FUZZ_TARGET_H
#define VMM_FUZZ_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <glib.h>

#include "choice/choice.h"
#include "choice/schedule.h"
#include "config.h"
#include "execution.h"
#include "failure.h"
#include "fuzz_cover.h"

struct fuzz_target;

struct fuzz_run {
    bool failed;
    struct failure failure; /* where failed; failure_kind() names it */
    bool abandoned;         /* fuzz_target_abandon(), but not for a time-out */
    struct execution_result result;
    /*
     * The choices that the run made, as bytes that make the same run again.
     * The target's, until the next run. Zeros at the end are left out.
     */
    const uint8_t *bytes;
    size_t length;
};

/*
 * The configuration of a target from words as the command line has them:
 * options of `run` and a workload or --kernel FILE; engine, snapshot and ledger
 * are set to what fuzzing needs. NULL and error: VM_ERROR_*. vm_config_free().
 */
struct vm_config *fuzz_target_config(int argc, char *const *argv,
                                     GError **error);

/*
 * Boots to the scenario's beginning. config (copied) must be of
 * fuzz_target_config(). NULL and error: no image, no memory, or a guest that
 * never marks its beginning.
 */
struct fuzz_target *fuzz_target_open(const struct vm_config *config,
                                     GError **error);
void fuzz_target_close(struct fuzz_target *target);

/* One execution. bytes may be NULL if length is 0: the plain run. */
void fuzz_target_run(struct fuzz_target *target, const uint8_t *bytes,
                     size_t length, struct fuzz_run *out);
/*
 * The same with any source. max_choices: all after so many are 0; 0: no limit.
 * without (may be NULL): vCPUs that are never scheduled, word i / 64.
 */
void fuzz_target_run_source(struct fuzz_target *target,
                            struct choice_source *source, uint64_t max_choices,
                            const uint64_t *without, struct fuzz_run *out);
/*
 * The run of the last schedule again, strictly: every choice must fit. False:
 * it went another way, which is an error of the machine's.
 */
bool fuzz_target_again(struct fuzz_target *target,
                       const struct schedule *schedule,
                       const struct failure *failure);

/*
 * FUZZ_MAP_SIZE counters of the last run. fuzz_target_set_map() has them kept
 * in memory of the caller's, say of a fuzzer that looks there, from the next
 * run on; each run begins with clearing what the last one set.
 */
uint8_t *fuzz_target_map(struct fuzz_target *target);
void fuzz_target_set_map(struct fuzz_target *target, uint8_t *map);
struct fuzz_cover *fuzz_target_cover(struct fuzz_target *target);

/* Of the last run: to be written to a file that `replay` takes. */
struct schedule *fuzz_target_schedule(struct fuzz_target *target);
/* seed: what the schedule's run line says from now on. */
void fuzz_target_set_seed(struct fuzz_target *target, uint64_t seed);
/*
 * What the ledger has to say of the last run; nothing if it is content. path:
 * where its schedule is, for the line that shows it again; NULL: in no file,
 * the line has all of it.
 */
void fuzz_target_report(struct fuzz_target *target, const char *path,
                        FILE *out);
/* Choices of the last run that were not 0: struct choice_entry. Borrowed. */
const GArray *fuzz_target_entries(const struct fuzz_target *target);
const struct vm_config *fuzz_target_of(const struct fuzz_target *target);
/* Scheduling points after which a run is over; 0: no limit. */
void fuzz_target_limit_steps(struct fuzz_target *target, uint64_t steps);

/*
 * Only violations for which this says true end a run and are failures; NULL
 * (from the beginning on): all.
 */
void fuzz_target_stop_at(struct fuzz_target *target,
                         bool (*stops)(void *opaque,
                                       const struct ledger_site *site),
                         void *opaque);

/*
 * Another thread ends the run that is going on. is_timeout: it is a failure.
 */
void fuzz_target_abandon(struct fuzz_target *target, bool is_timeout);

#endif
