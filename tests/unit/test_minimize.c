/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests: shrinking, on a simulated program with a known minimum.
 *
 * vCPU 0 looks something up in its 5th step and uses it in its 8th. vCPU 1
 * invalidates it in its 4th step, which vCPU 0 notices unless the liberty
 * `apply` is taken there, and replaces it in its 7th. Using it between those
 * two is the bug. In the plain run vCPU 0 is done before vCPU 1 begins, so it
 * takes two preemptions (0 between steps 5 and 8; 1 between 4 and 7), one
 * liberty, and 8 + 4 steps. vCPUs 2 and 3 do operations that have nothing to do
 * with it, and everybody makes choices that do not matter but move the others.
 * A larger scale multiplies all these numbers.
 */
#include "choice_fixture.h"

#include "choice/minimize.h"

#define VCPUS 4
#define LOOKED_UP 5
#define USED 8
#define INVALIDATED 4
#define REPLACED 7

static const unsigned lengths[VCPUS] = {12, 10, 9, 7};

struct sim {
    unsigned done[VCPUS];
    bool stale;
    struct minimize_run result;
};

/* What the tests watch while minimize() runs. */
struct watch {
    struct choice_stream stream;
    uint64_t runs, failures, progress, last_preemptions;
    bool never_fails, no_liberty;
    unsigned scale;
};

static void one_step(struct sim *sim, struct watch *watch, unsigned vcpu)
{
    struct choice_stream *stream = &watch->stream;
    unsigned step = ++sim->done[vcpu], scale = watch->scale;

    choice(stream, CHOICE_quantum, 4);
    if (vcpu >= 2) {
        if (choice(stream, CHOICE_operation, 2)) {
            return; /* left out */
        }
        sim->result.steps++;
        /* How many of these there are depends on their answers. */
        while (choice(stream, CHOICE_evict, 3) == 2) {
        }
        choice(stream, CHOICE_input, 10);
        return;
    }
    sim->result.steps++;
    if (vcpu == 1 && step == INVALIDATED * scale) {
        bool late = choice(stream, CHOICE_apply, 2) || watch->no_liberty;

        sim->stale = late && sim->done[0] >= LOOKED_UP * scale &&
                     sim->done[0] < USED * scale;
    } else if (vcpu == 1 && step == REPLACED * scale) {
        sim->stale = false;
    } else if (vcpu == 0 && step == USED * scale) {
        sim->result.fails = sim->stale;
    } else {
        choice(stream, CHOICE_prefetch, 5);
    }
}

static void simulate(struct watch *watch, struct choice_source *source,
                     const uint64_t *without, struct minimize_run *out)
{
    struct choice_stream *stream = &watch->stream;
    struct sim sim = {0};
    unsigned current = 0;
    bool begun = false;

    choice_stream_begin(stream, source);
    while (!sim.result.fails) {
        struct choice_candidate candidates[VCPUS];
        unsigned n = 0, value;

        for (unsigned i = 0; i < VCPUS; i++) {
            unsigned v = (current + i) % VCPUS;

            if (!(without[0] >> v & 1) &&
                sim.done[v] < lengths[v] * watch->scale) {
                candidates[n++] =
                    (struct choice_candidate){.vcpu = v,
                                              .event = CHOICE_EVENT_ATOMIC,
                                              .object = sim.done[v]};
            }
        }
        if (!n) {
            break;
        }
        value = choice_vcpu(stream, candidates, n);
        if (value && candidates[0].vcpu == current && begun) {
            sim.result.preemptions++;
        }
        begun = true;
        current = candidates[value].vcpu;
        one_step(&sim, watch, current);
    }
    *out = sim.result;
    out->total = stream->count;
    out->entries = g_array_new(FALSE, FALSE, sizeof(struct choice_entry));
    if (stream->entries->len) {
        g_array_append_vals(out->entries, stream->entries->data,
                            stream->entries->len);
    }
}

static void run(void *opaque, const struct choice_entry *entries, size_t count,
                const uint64_t *without, struct minimize_run *out)
{
    struct watch *watch = opaque;
    struct choice_source *source =
        choice_source_recorded(entries, count, 0, false);

    simulate(watch, source, without, out);
    choice_source_free(source);
    watch->runs++;
    watch->failures += out->fails;
    if (watch->never_fails) {
        out->fails = false;
    }
}

static void progress(void *opaque, uint64_t runs, uint64_t preemptions,
                     uint64_t steps, const char *pass)
{
    struct watch *watch = opaque;

    ck_assert_uint_eq(runs, watch->runs);
    ck_assert_uint_gt(steps, 0);
    ck_assert(pass[0]);
    REQUIRE(preemptions <= watch->last_preemptions, "it got worse");
    watch->last_preemptions = preemptions;
    watch->progress++;
}

static const struct minimize_ops ops = {
    .run = run,
    .progress = progress,
    .vcpus = VCPUS,
};

/* A failing schedule of this strategy, as it would come from a file. */
static struct schedule *find_failure(struct watch *watch, const char *text,
                                     uint64_t seed, struct minimize_run *out)
{
    static const uint64_t nobody[8];
    struct choice_source *source = strategy(text, seed);
    struct schedule *schedule = schedule_new();

    for (unsigned i = 0; i < 200000; i++) {
        simulate(watch, source, nobody, out);
        if (out->fails) {
            break;
        }
        g_array_unref(out->entries);
        ck_assert(choice_source_next_run(source));
    }
    ck_assert_msg(out->fails, "%s never fails", text);
    choice_source_free(source);
    for (guint i = 0; i < out->entries->len; i++) {
        g_array_index(out->entries, struct choice_entry, i).ordinal = 0;
        g_array_index(out->entries, struct choice_entry, i).vcpu = 0;
    }
    g_array_unref(schedule->entries);
    schedule->entries = out->entries;
    schedule->total = out->total;
    schedule->trace_hash = 1;
    return schedule;
}

static unsigned count_kind(const struct schedule *schedule,
                           enum choice_kind kind)
{
    unsigned count = 0;

    for (guint i = 0; i < schedule->entries->len; i++) {
        count +=
            g_array_index(schedule->entries, struct choice_entry, i).kind ==
            kind;
    }
    return count;
}

/* The result, run once more, is exactly what it says. */
static void check_was_run(struct watch *watch, const struct schedule *schedule,
                          const struct minimize_result *result)
{
    struct choice_source *source = choice_source_recorded(
        (const struct choice_entry *)(void *)schedule->entries->data,
        schedule->entries->len, schedule->total, true);
    struct minimize_run again;

    simulate(watch, source, result->without, &again);
    ck_assert_ptr_null(choice_source_problem(source));
    ck_assert(again.fails);
    ck_assert_uint_eq(again.steps, result->steps);
    ck_assert_uint_eq(again.preemptions, result->preemptions);
    ck_assert_uint_eq(again.total, schedule->total);
    ck_assert_uint_eq(again.entries->len, schedule->entries->len);
    ck_assert_mem_eq(again.entries->data, schedule->entries->data,
                     again.entries->len * sizeof(struct choice_entry));
    g_array_unref(again.entries);
    choice_source_free(source);
}

static const char *const strategies[] = {"random", "chaos", "pct:3", "pos",
                                         "surw"};

START_TEST(the_known_minimum_is_reached_from_every_failure)
{
    uint64_t seed = seed_of_run(), runs = 0, preemptions = 0;

    for (unsigned i = 0; i < 60; i++) {
        struct watch watch = {.last_preemptions = UINT64_MAX, .scale = 1};
        struct minimize_result result;
        struct minimize_run first;
        struct schedule *schedule;

        choice_stream_init(&watch.stream, 1);
        schedule =
            find_failure(&watch, strategies[_i], seed + i * 1000000, &first);
        minimize(schedule, &ops, &watch, &result);
        ck_assert(result.reproduced);
        ck_assert_uint_eq(result.from_preemptions, first.preemptions);
        ck_assert_uint_eq(result.from_steps, first.steps);
        ck_assert_uint_eq(result.runs, watch.runs);
        ck_assert_msg(result.preemptions == 2 && result.steps == USED + 4,
                      "failure %u: %" PRIu64 " preemptions, %" PRIu64 " steps",
                      i, result.preemptions, result.steps);
        ck_assert_uint_eq(count_kind(schedule, CHOICE_vcpu), 2);
        ck_assert_uint_eq(count_kind(schedule, CHOICE_apply), 1);
        ck_assert_uint_eq(schedule->entries->len, 3);
        ck_assert_uint_eq(result.without[0] & 15, 12);
        ck_assert_uint_gt(watch.progress, 0);
        ck_assert_uint_eq(schedule->trace_hash, 0);
        check_was_run(&watch, schedule, &result);
        runs += result.runs;
        preemptions += first.preemptions;
        schedule_free(schedule);
        choice_stream_fini(&watch.stream);
    }
    printf("%s: from %.1f preemptions in %.0f runs\n", strategies[_i],
           (double)preemptions / 60, (double)runs / 60);
}
END_TEST

/* Nobody may be dropped here: what vCPUs 2 and 3 do must be left out. */
/* The kind of schedule that a long random run gives. */
START_TEST(a_long_schedule_of_many_preemptions_becomes_short)
{
    enum { SCALE = 40 };
    uint64_t seed = seed_of_run();

    for (unsigned i = 0; i < 5; i++) {
        struct watch watch = {.last_preemptions = UINT64_MAX, .scale = SCALE};
        struct minimize_result result;
        struct minimize_run first;
        struct schedule *schedule;

        choice_stream_init(&watch.stream, 1);
        schedule = find_failure(&watch, "random", seed + i * 1000000, &first);
        ck_assert_uint_gt(first.preemptions, 50);
        minimize(schedule, &ops, &watch, &result);
        printf("%" PRIu64 " preemptions, %" PRIu64 " steps (from %" PRIu64
               ", %" PRIu64 ") in %" PRIu64 " runs\n",
               result.preemptions, result.steps, result.from_preemptions,
               result.from_steps, result.runs);
        ck_assert_uint_eq(result.preemptions, 2);
        ck_assert_uint_eq(result.steps, (USED + INVALIDATED) * SCALE);
        ck_assert_uint_eq(schedule->entries->len, 3);
        check_was_run(&watch, schedule, &result);
        schedule_free(schedule);
        choice_stream_fini(&watch.stream);
    }
}
END_TEST

START_TEST(operations_that_do_not_matter_are_left_out)
{
    static const struct minimize_ops no_vcpus = {
        .run = run, .progress = progress, .vcpus = 0};
    uint64_t seed = seed_of_run();

    for (unsigned i = 0; i < 40; i++) {
        struct watch watch = {.last_preemptions = UINT64_MAX, .scale = 1};
        struct minimize_result result;
        struct minimize_run first;
        struct schedule *schedule;

        choice_stream_init(&watch.stream, 1);
        schedule = find_failure(&watch, "random", seed + i * 1000000, &first);
        minimize(schedule, &no_vcpus, &watch, &result);
        ck_assert_msg(result.preemptions == 2 && result.steps == USED + 4,
                      "failure %u: %" PRIu64 " preemptions, %" PRIu64 " steps",
                      i, result.preemptions, result.steps);
        ck_assert_uint_eq(
            schedule->entries->len - count_kind(schedule, CHOICE_operation), 3);
        check_was_run(&watch, schedule, &result);
        schedule_free(schedule);
        choice_stream_fini(&watch.stream);
    }
}
END_TEST

START_TEST(a_schedule_that_does_not_fail_is_left_alone)
{
    struct watch watch = {.last_preemptions = UINT64_MAX, .scale = 1};
    struct minimize_result result;
    struct minimize_run first;
    struct schedule *schedule, *before;

    choice_stream_init(&watch.stream, 1);
    schedule = find_failure(&watch, "random", 1, &first);
    before = schedule_copy(schedule);
    watch.never_fails = true;
    minimize(schedule, &ops, &watch, &result);
    ck_assert(!result.reproduced);
    ck_assert_uint_eq(watch.runs, 1);
    ck_assert_uint_eq(watch.progress, 0);
    ck_assert_uint_eq(schedule->entries->len, before->entries->len);
    ck_assert_mem_eq(schedule->entries->data, before->entries->data,
                     before->entries->len * sizeof(struct choice_entry));
    ck_assert_uint_eq(schedule->trace_hash, 1);
    schedule_free(before);
    schedule_free(schedule);
    choice_stream_fini(&watch.stream);
}
END_TEST

START_TEST(the_number_of_runs_is_bounded_and_what_was_reached_counts)
{
    for (unsigned most = 1; most < 60; most++) {
        struct watch watch = {.last_preemptions = UINT64_MAX, .scale = 1};
        struct minimize_ops bounded = ops;
        struct minimize_result result;
        struct minimize_run first;
        struct schedule *schedule;

        choice_stream_init(&watch.stream, 1);
        schedule = find_failure(&watch, "random", 7, &first);
        bounded.max_runs = most;
        minimize(schedule, &bounded, &watch, &result);
        ck_assert_uint_le(watch.runs, most);
        ck_assert(result.reproduced);
        ck_assert_uint_le(result.preemptions, first.preemptions);
        check_was_run(&watch, schedule, &result);
        schedule_free(schedule);
        choice_stream_fini(&watch.stream);
    }
}
END_TEST

START_TEST(a_failure_without_choices_is_minimal)
{
    struct watch watch = {
        .last_preemptions = UINT64_MAX, .scale = 1, .no_liberty = true};
    struct minimize_result result;
    struct minimize_run first;
    struct schedule *schedule;

    choice_stream_init(&watch.stream, 1);
    schedule = find_failure(&watch, "random", 3, &first);
    minimize(schedule, &ops, &watch, &result);
    ck_assert_uint_eq(schedule->entries->len, 2); /* no apply */
    /* Its own result does not shrink any further. */
    watch.last_preemptions = UINT64_MAX;
    watch.runs = 0;
    minimize(schedule, &ops, &watch, &result);
    ck_assert(result.reproduced);
    ck_assert_uint_eq(result.preemptions, 2);
    ck_assert_uint_eq(result.from_steps, result.steps);
    ck_assert_uint_eq(schedule->entries->len, 2);
    schedule_free(schedule);
    choice_stream_fini(&watch.stream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("minimize");
    TCase *tc = tcase_create("minimize");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, the_known_minimum_is_reached_from_every_failure, 0,
                        G_N_ELEMENTS(strategies));
    tcase_add_test(tc, a_long_schedule_of_many_preemptions_becomes_short);
    tcase_add_test(tc, operations_that_do_not_matter_are_left_out);
    tcase_add_test(tc, a_schedule_that_does_not_fail_is_left_alone);
    tcase_add_test(tc,
                   the_number_of_runs_is_bounded_and_what_was_reached_counts);
    tcase_add_test(tc, a_failure_without_choices_is_minimal);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
