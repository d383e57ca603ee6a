/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every fuzzer builds on: bytes are a run, a run is its bytes, and the
 * coverage of the same run is the same map. With planted bugs the run ends
 * where the ledger says so, and its schedule ends there again.
 */
#include "det_fixture.h"

#include "choice/prng.h"
#include "fuzz_target.h"

static struct fuzz_target *open_target(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    GError *error = NULL;
    struct vm_config *config =
        fuzz_target_config((int)g_strv_length(words), words, &error);
    struct fuzz_target *t;

    ck_assert_msg(config != NULL, "%s", error ? error->message : "");
    t = fuzz_target_open(config, &error);
    ck_assert_msg(t != NULL, "%s", error ? error->message : "");
    vm_config_free(config);
    return t;
}

static void run_random(struct fuzz_target *t, uint64_t seed,
                       struct fuzz_run *out)
{
    struct choice_source *source = choice_strategy_new("random", seed, NULL);

    fuzz_target_run_source(t, source, 0, NULL, out);
    choice_source_free(source);
}

/* The counters themselves, and a copy of the bytes of the run. */
struct kept {
    struct fuzz_run run;
    GBytes *bytes;
    uint8_t map[FUZZ_MAP_SIZE];
};

static void keep(struct fuzz_target *t, const struct fuzz_run *run,
                 struct kept *out)
{
    out->run = *run;
    out->bytes = g_bytes_new(run->bytes, run->length);
    memcpy(out->map, fuzz_target_map(t), FUZZ_MAP_SIZE);
}

START_TEST(bytes_are_the_run)
{
    struct fuzz_target *t = open_target("--mem 32M reclaim_race");
    struct kept *kept = g_new0(struct kept, 1);
    unsigned different = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fuzz_run run;
        unsigned used = 0;

        run_random(t, seed, &run);
        keep(t, &run, kept);
        for (unsigned i = 0; i < FUZZ_MAP_SIZE; i++) {
            used += kept->map[i] != 0;
        }
        ck_assert_uint_gt(used, 100);
        fuzz_target_run(t, NULL, 0, &run); /* something else in between */
        ck_assert_uint_eq(run.length, 0);
        different += memcmp(kept->map, fuzz_target_map(t), FUZZ_MAP_SIZE) != 0;
        fuzz_target_run(t, g_bytes_get_data(kept->bytes, NULL),
                        g_bytes_get_size(kept->bytes), &run);
        ck_assert_uint_eq(run.result.trace_hash, kept->run.result.trace_hash);
        ck_assert_uint_eq(run.length, g_bytes_get_size(kept->bytes));
        ck_assert_mem_eq(run.bytes, g_bytes_get_data(kept->bytes, NULL),
                         run.length);
        ck_assert_mem_eq(kept->map, fuzz_target_map(t), FUZZ_MAP_SIZE);
        g_bytes_unref(kept->bytes);
    }
    ck_assert_uint_eq(different, 10);
    g_free(kept);
    fuzz_target_close(t);
}
END_TEST

START_TEST(any_bytes_are_a_run)
{
    struct fuzz_target *t = open_target("--mem 32M --cpus 3 drain_race");
    struct prng prng;
    uint8_t bytes[600];

    prng_seed(&prng, 1);
    fuzz_target_limit_steps(t, 20000);
    for (unsigned i = 0; i < 20; i++) {
        struct fuzz_run run;
        size_t length = prng_below(&prng, sizeof(bytes));

        for (size_t k = 0; k < length; k++) {
            bytes[k] = (uint8_t)prng_next(&prng);
        }
        fuzz_target_run(t, bytes, length, &run);
        ck_assert(!run.abandoned);
        ck_assert_uint_gt(run.result.steps, 0);
    }
    fuzz_target_close(t);
}
END_TEST

/* A map of the caller's own is written, and left alone afterwards. */
START_TEST(map_of_the_caller)
{
    struct fuzz_target *t = open_target("--mem 32M reclaim_race");
    uint8_t *map = g_malloc0(FUZZ_MAP_SIZE);
    struct fuzz_run run;
    unsigned used = 0;

    fuzz_target_set_map(t, map);
    run_random(t, 1, &run);
    fuzz_target_set_map(t, NULL);
    for (unsigned i = 0; i < FUZZ_MAP_SIZE; i++) {
        used += map[i] != 0;
    }
    ck_assert_uint_eq(used, 0); /* cleared when it was given back */
    run_random(t, 2, &run);
    for (unsigned i = 0; i < FUZZ_MAP_SIZE; i++) {
        used += map[i] != 0;
    }
    ck_assert_uint_eq(used, 0);
    fuzz_target_close(t);
    g_free(map);
}
END_TEST

START_TEST(violation_ends_the_run)
{
    struct fuzz_target *t =
        open_target("--mem 32M --bug free-before-flush reclaim_race");
    struct fuzz_run run, plain;
    unsigned found = 0;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct schedule *schedule;

        run_random(t, seed, &run);
        if (!run.failed) {
            continue;
        }
        found++;
        ck_assert_str_eq(failure_kind(&run.failure), "stale");
        ck_assert_int_eq(run.failure.outcome, VM_OUTCOME_VIOLATION);
        schedule = fuzz_target_schedule(t);
        for (unsigned i = 0; i < 3; i++) {
            ck_assert(fuzz_target_again(t, schedule, &run.failure));
        }
        fuzz_target_run(t, NULL, 0, &plain);
        schedule_free(schedule);
    }
    ck_assert_uint_gt(found, 0);
    fuzz_target_close(t);
}
END_TEST

/*
 * That the others wait for a vCPU that was never allowed to run is not the
 * hang that a schedule was about; a violation is one without it, too.
 */
START_TEST(hang_without_a_vcpu)
{
    const struct failure hang = {.outcome = VM_OUTCOME_STUCK};
    const struct failure limit = {.outcome = VM_OUTCOME_LIMIT};
    const struct failure found = {.outcome = VM_OUTCOME_FINDING, .finding = 3};
    const uint64_t all[VM_CPUS_MAX / 64] = {0}, without[VM_CPUS_MAX / 64] = {2};
    struct execution_result result = {.outcome = VM_OUTCOME_STUCK};

    ck_assert(failure_happened(&hang, &result, NULL));
    ck_assert(failure_happened(&hang, &result, all));
    ck_assert(!failure_happened(&hang, &result, without));
    ck_assert(!failure_happened(&limit, &result, all));
    result.outcome = VM_OUTCOME_LIMIT;
    ck_assert(failure_happened(&limit, &result, all));
    ck_assert(!failure_happened(&limit, &result, without));
    result = (struct execution_result){.outcome = VM_OUTCOME_FINDING,
                                       .finding = 3};
    ck_assert(failure_happened(&found, &result, without));
    result.finding = 4;
    ck_assert(!failure_happened(&found, &result, without));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fuzz_target");

    tcase_set_timeout(tc, det_seconds(100));
    tcase_add_test(tc, bytes_are_the_run);
    tcase_add_test(tc, any_bytes_are_a_run);
    tcase_add_test(tc, map_of_the_caller);
    tcase_add_test(tc, violation_ends_the_run);
    tcase_add_test(tc, hang_without_a_vcpu);
    return det_main_of("fuzz_target", tc);
}
