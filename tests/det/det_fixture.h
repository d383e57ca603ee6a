/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the tests of the deterministic engines: a machine in this process, with
 * the bundled guest that SHOOTDOWN_GUEST_DIR names, and its runs. The test's
 * thread is the one that runs the vCPUs; there is no console.
 */
#ifndef DET_FIXTURE_H
#define DET_FIXTURE_H

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>

#include "choice/schedule.h"
#include "choice/source.h"
#include "config.h"
#include "execution.h"
#include "snapshot.h"
#include "vm_priv.h"

/* Little memory: what a restore looks at, and how long a state hash takes. */
#define DET_RECLAIM_RACE "--mem 32M --snapshot-at 1 reclaim_race"

struct det_machine {
    struct vm_config *config;
    struct events *events;
    struct vm *vm;
    struct execution *execution;
};

/* What two runs that are the same have in common. */
struct det_answer {
    enum vm_outcome outcome;
    uint64_t trace_hash, state_hash;
    uint64_t events, choices, steps, preemptions, virtual_ns;
};

/* text: a command line after `run`. subscribe: before the machine is made. */
static inline struct det_machine *
det_machine_listened(const char *text,
                     void (*subscribe)(struct events *events, void *opaque),
                     void *opaque)
{
    struct det_machine *m = g_new0(struct det_machine, 1);
    GError *error = NULL;

    m->config = vm_config_from_text(text, &error);
    ck_assert_msg(m->config != NULL, "%s", error ? error->message : "");
    m->config->quiet = true;
    m->events = events_new(m->config->cpus);
    if (subscribe) {
        subscribe(m->events, opaque);
    }
    m->vm = vm_new(m->config, m->events, &error);
    ck_assert_msg(m->vm != NULL, "%s: %s", text, error ? error->message : "");
    m->execution = execution_new(m->vm, true, &error);
    ck_assert_msg(m->execution != NULL, "%s: %s", text,
                  error ? error->message : "");
    return m;
}

static inline struct det_machine *det_machine_new(const char *text)
{
    return det_machine_listened(text, NULL, NULL);
}

static inline void det_machine_free(struct det_machine *m)
{
    execution_free(m->execution);
    vm_free(m->vm);
    events_free(m->events);
    vm_config_free(m->config);
    g_free(m);
}

static inline struct choice_source *det_strategy(const char *text,
                                                 uint64_t seed)
{
    GError *error = NULL;
    struct choice_source *source = choice_strategy_new(text, seed, &error);

    ck_assert_msg(source != NULL, "%s: %s", text, error ? error->message : "");
    return source;
}

static inline struct choice_source *
det_recorded(const struct schedule *schedule)
{
    return choice_source_recorded(
        (const struct choice_entry *)(void *)schedule->entries->data,
        schedule->entries->len, schedule->total, true);
}

/* One run. The state hash takes longer than a short run: 0 unless asked. */
static inline struct det_answer det_run_source(struct det_machine *m,
                                               struct choice_source *source,
                                               bool with_state)
{
    const struct execution_result *r =
        execution_run(m->execution, source, NULL);

    return (struct det_answer){
        .outcome = r->outcome,
        .trace_hash = r->trace_hash,
        .state_hash = with_state ? vm_state_hash(m->vm) : 0,
        .events = r->events,
        .choices = r->choices,
        .steps = r->steps,
        .preemptions = r->preemptions,
        .virtual_ns = r->virtual_ns,
    };
}

static inline struct det_answer det_run_strategy(struct det_machine *m,
                                                 const char *strategy,
                                                 uint64_t seed, bool with_state)
{
    struct choice_source *source = det_strategy(strategy, seed);
    struct det_answer a;

    m->execution->seed = seed;
    a = det_run_source(m, source, with_state);
    choice_source_free(source);
    return a;
}

static inline bool det_is_good_end(enum vm_outcome outcome)
{
    return outcome == VM_OUTCOME_END || outcome == VM_OUTCOME_OFF;
}

/* Without state hashes where either has none. */
static inline bool det_same(const struct det_answer *a,
                            const struct det_answer *b)
{
    return a->outcome == b->outcome && a->trace_hash == b->trace_hash &&
           (!a->state_hash || !b->state_hash ||
            a->state_hash == b->state_hash) &&
           a->events == b->events && a->choices == b->choices &&
           a->steps == b->steps && a->preemptions == b->preemptions &&
           a->virtual_ns == b->virtual_ns;
}

/* Both on one line each, for messages; the buffer is static. */
static inline const char *det_two(const struct det_answer *a,
                                  const struct det_answer *b)
{
    static char text[512];
    size_t used = 0;
    const struct det_answer *const both[] = {a, b};

    for (unsigned i = 0; i < 2; i++) {
        used += (size_t)g_snprintf(
            text + used, sizeof(text) - used,
            "\n  %s, trace %016" PRIx64 ", state %016" PRIx64 ", %" PRIu64
            " events, %" PRIu64 " choices, %" PRIu64 " steps, %" PRIu64 " ns",
            vm_outcome_name(both[i]->outcome), both[i]->trace_hash,
            both[i]->state_hash, both[i]->events, both[i]->choices,
            both[i]->steps, both[i]->virtual_ns);
    }
    return text;
}

/* How many runs: DET_RUNS, where it is set, for those that scale. */
static inline unsigned det_runs(unsigned otherwise)
{
    const char *text = g_getenv("DET_RUNS");
    guint64 n = otherwise;

    if (text && !g_ascii_string_to_unsigned(text, 10, 1, 100000000, &n, NULL)) {
        ck_abort_msg("DET_RUNS is '%s': a number from 1 on is needed", text);
    }
    return (unsigned)n;
}

/* Sanitizers make everything slower; DET_RUNS does as well. */
static inline double det_seconds(double seconds)
{
    const char *scale = g_getenv("TEST_TIME_SCALE");

    if (g_getenv("DET_RUNS")) {
        return 86400;
    }
    return seconds * (scale ? g_ascii_strtod(scale, NULL) : 1);
}

static inline bool det_is_slow_build(void)
{
    return g_getenv("TEST_TIME_SCALE") != NULL;
}

static inline int det_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    setvbuf(stdout, NULL, _IOLBF, 0);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int det_main_of(const char *name, TCase *tc)
{
    Suite *suite = suite_create(name);

    suite_add_tcase(suite, tc);
    return det_main(suite);
}

#endif
