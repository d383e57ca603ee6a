/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a schedule promises: each of many random runs is written down as text,
 * read, and run again from it alone, with the same trace and the same state at
 * the end.
 */
#include "det_fixture.h"

/* What a reader accepts at most; only whole self-tests are longer. */
#define TEXT_MAX (UINT64_C(64) << 20)
/* Every so manieth goes through the line for pasting as well. */
#define LINE_EVERY 25u

struct replays {
    unsigned runs;
    uint64_t choices, entries;
    size_t bytes;      /* of the longest text */
    unsigned too_long; /* texts that no reader accepts */
    GHashTable *traces;
};

static struct schedule *through_text(const struct schedule *s, bool as_line,
                                     struct replays *done)
{
    g_autofree char *text = as_line ? schedule_to_line(s) : schedule_to_text(s);
    size_t bytes = strlen(text);
    GError *error = NULL;
    struct schedule *again;

    done->bytes = MAX(done->bytes, bytes);
    if (bytes > TEXT_MAX) {
        done->too_long++;
        return schedule_copy(s);
    }
    again = as_line ? schedule_load(text, &error)
                    : schedule_from_text(text, bytes, &error);
    ck_assert_msg(again != NULL, "the schedule is not read again: %s",
                  error ? error->message : "");
    return again;
}

/* The run that m has just done, by its schedule alone. */
static void replay_last(struct det_machine *m, struct replays *done,
                        const char *what)
{
    struct schedule *recorded = execution_schedule(m->execution);
    struct schedule *s =
        through_text(recorded, done->runs % LINE_EVERY == LINE_EVERY - 1, done);
    uint64_t without[VM_CPUS_MAX / 64];
    struct det_answer was = {
        .outcome = m->execution->result.outcome,
        .trace_hash = s->trace_hash,
        .state_hash = s->state_hash,
        .events = m->execution->result.events,
        .choices = s->total,
        .steps = m->execution->result.steps,
        .preemptions = m->execution->result.preemptions,
        .virtual_ns = m->execution->result.virtual_ns,
    };
    struct choice_source *source = det_recorded(s);
    struct det_answer is;

    execution_without(s, without);
    m->execution->expected = s;
    is = det_run_source(m, source, true);
    m->execution->expected = NULL;
    ck_assert_msg(!m->execution->divergence, "%s, run %u: %s", what, done->runs,
                  m->execution->divergence);
    ck_assert_msg(det_same(&was, &is), "%s, run %u: %s", what, done->runs,
                  det_two(&was, &is));
    /* It answered the same, so it is written down the same. */
    ck_assert_uint_eq(m->execution->stream.entries->len, s->entries->len);
    done->runs++;
    done->choices += s->total;
    done->entries += s->entries->len;
    g_hash_table_add(done->traces,
                     g_memdup2(&s->trace_hash, sizeof(s->trace_hash)));
    choice_source_free(source);
    schedule_free(s);
    schedule_free(recorded);
}

static void check_replays(const char *text, const char *strategy, unsigned runs,
                          unsigned at_least_different)
{
    struct det_machine *m = det_machine_new(text);
    struct choice_source *source = det_strategy(strategy, m->config->seed);
    struct replays done = {.traces = g_hash_table_new_full(
                               g_int64_hash, g_int64_equal, g_free, NULL)};
    gint64 start = g_get_monotonic_time();
    g_autofree char *what = g_strdup_printf("%s, %s", text, strategy);

    for (unsigned i = 0; i < runs; i++) {
        struct det_answer a;

        if (i && !choice_source_next_run(source)) {
            const char *problem = choice_source_problem(source);

            ck_assert_msg(!problem, "%s: %s", what, problem);
            break;
        }
        m->execution->seed = m->config->seed + i;
        a = det_run_source(m, source, false);
        ck_assert_msg(a.outcome != VM_OUTCOME_DIVERGED &&
                          a.outcome != VM_OUTCOME_ENGINE_ERROR &&
                          a.outcome != VM_OUTCOME_NONE,
                      "%s: run %u ended with %s", what, i,
                      vm_outcome_name(a.outcome));
        ck_assert_msg(!choice_source_problem(source), "%s: run %u: %s", what, i,
                      choice_source_problem(source));
        replay_last(m, &done, what);
        if (g_getenv("DET_LONG")) {
            printf("run %u: %s, trace %016" PRIx64 ": the same\n", i,
                   vm_outcome_name(a.outcome), a.trace_hash);
        }
    }
    printf("%s: %u replays, %u different traces, %.0f choices and %.0f "
           "entries each, text of %zu bytes at most, %.2f ms each\n",
           what, done.runs, g_hash_table_size(done.traces),
           (double)done.choices / done.runs, (double)done.entries / done.runs,
           done.bytes,
           (double)(g_get_monotonic_time() - start) / 1000 / done.runs);
    if (done.too_long) {
        printf("%u texts were longer than 64 MiB: those schedules did not go "
               "through text\n",
               done.too_long);
    }
    ck_assert(!done.too_long || g_getenv("DET_LONG"));
    ck_assert_uint_ge(g_hash_table_size(done.traces),
                      MIN(at_least_different, done.runs));
    g_hash_table_destroy(done.traces);
    choice_source_free(source);
    det_machine_free(m);
}

START_TEST(a_thousand_runs_of_reclaim_race_replay)
{
    check_replays("--engine seeded " DET_RECLAIM_RACE, "random",
                  det_runs(det_is_slow_build() ? 50 : 1000), 40);
}
END_TEST

START_TEST(runs_of_swap_bench_replay)
{
    check_replays("--engine seeded --mem 32M swap_bench -- -k 1 -p 8 -t 3",
                  "random", det_runs(det_is_slow_build() ? 2 : 20), 2);
}
END_TEST

START_TEST(runs_of_the_whole_swap_bench_replay)
{
    if (g_getenv("DET_LONG")) {
        check_replays("--engine seeded --mem 32M swap_bench -- -t 3", "random",
                      det_runs(1), 1);
    }
}
END_TEST

/* Every memory call; the whole self-test is longer than a schedule's text. */
START_TEST(runs_of_race_mix_and_the_self_test_replay)
{
    check_replays(g_getenv("DET_LONG")
                      ? "--engine seeded --mem 64M selftest"
                      : "--engine seeded --mem 64M --cpus 2 race_mix -- "
                        "-r 30 -n 2 -t 2 -p 8",
                  "random", det_runs(2), 1);
}
END_TEST

/* Liberties that are taken, though not always asked about. */
static const char *const machines[] = {
    "--engine seeded --tlb ipi",
    "--engine seeded --flush sync",
    "--engine seeded --hw eager",
    "--engine seeded --hw adversarial",
    "--engine seeded --hw-shared-tlb on --hw-dbm on",
    "--engine seeded --hw-repeat-tlbi random",
    "--engine seeded --bug free-before-flush",
    "--engine seeded --bug local-instead-of-broadcast --tlb ipi",
    "--engine seeded --cpus 8",
    "--engine seeded --max-steps 500",
    "--engine vtime",
    "--engine vtime --hw random",
};

START_TEST(runs_of_other_machines_replay)
{
    g_autofree char *text =
        g_strdup_printf("%s %s", machines[_i], DET_RECLAIM_RACE);

    check_replays(text, "random", 20, 5);
}
END_TEST

static const struct {
    const char *name;
    unsigned different; /* of 40 runs, at least */
} strategies[] = {
    {"plain", 1},  {"pct:1", 2},  {"pct:3", 10}, {"pos", 30},   {"surw", 30},
    {"icb:1", 10}, {"icb:2", 10}, {"dfs", 2},    {"chaos", 30},
};

START_TEST(runs_of_every_strategy_replay)
{
    check_replays("--engine seeded " DET_RECLAIM_RACE, strategies[_i].name, 40,
                  strategies[_i].different);
}
END_TEST

/* A case each, so that CK_RUN_CASE can choose. */
static void add(Suite *suite, const char *name, const TTest *test, int count)
{
    TCase *tc = tcase_create(name);

    tcase_set_timeout(tc, det_seconds(200));
    tcase_add_loop_test(tc, test, 0, count);
    suite_add_tcase(suite, tc);
}

int main(void)
{
    Suite *suite = suite_create("replay");

    add(suite, "reclaim_race", a_thousand_runs_of_reclaim_race_replay, 1);
    add(suite, "swap_bench", runs_of_swap_bench_replay, 1);
    add(suite, "swap_bench_whole", runs_of_the_whole_swap_bench_replay, 1);
    add(suite, "race_mix", runs_of_race_mix_and_the_self_test_replay, 1);
    add(suite, "machines", runs_of_other_machines_replay,
        G_N_ELEMENTS(machines));
    add(suite, "strategies", runs_of_every_strategy_replay,
        G_N_ELEMENTS(strategies));
    return det_main(suite);
}
