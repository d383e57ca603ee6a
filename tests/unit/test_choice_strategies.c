/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: each strategy does on toy machines what its theory says. */
#include "choice_fixture.h"

#include <math.h>

#define UNSURE 6 /* sigmas that a count may be off */

static struct choice_stream stream;

static void setup(void)
{
    choice_stream_init(&stream, 1);
}

static void teardown(void)
{
    choice_stream_fini(&stream);
}

static struct toy_result run(const struct toy *toy,
                             struct choice_source *source)
{
    choice_stream_begin(&stream, source);
    return toy_run(toy, &stream);
}

/* A count of n tries that each succeed with probability p. */
static void check_odds(const char *what, unsigned count, unsigned n, double p)
{
    double sigma = sqrt(n * p * (1 - p));

    ck_assert_msg(fabs(count - n * p) <= UNSURE * sigma,
                  "%s: %u of %u, expected %.0f +- %.0f", what, count, n, n * p,
                  UNSURE * sigma);
}

/* --- names --- */

START_TEST(every_listed_strategy_can_be_made)
{
    const char *const *pair = choice_strategies();
    struct toy toy = toy_uniform(3, 4, CHOICE_EVENT_TLBI);
    unsigned count = 0;

    for (; *pair; pair += 2, count++) {
        struct choice_source *source = strategy(pair[0], 1);

        ck_assert(pair[1][0]);
        ck_assert_uint_eq(run(&toy, source).count, 12);
        ck_assert_ptr_null(choice_source_problem(source));
        choice_source_free(source);
    }
    ck_assert_uint_eq(count, 8);
    choice_source_free(strategy("pct:1", 1));
    choice_source_free(strategy("pct:100", 1));
    choice_source_free(strategy("icb:0", 1));
}
END_TEST

static const struct {
    const char *text, *problem;
} refused[] = {
    {"", "no strategy ''; there are plain, random, pct[:d], pos, surw, icb[:k],"
         " dfs, chaos"},
    {"pc", "no strategy 'pc'"},
    {"pctx", "no strategy 'pctx'"},
    {"pct:", "the number after 'pct:' must be from 1 to 100"},
    {"pct:0", "from 1 to 100"},
    {"pct:101", "from 1 to 100"},
    {"pct:-1", "from 1 to 100"},
    {"pct: 3", "from 1 to 100"},
    {"pct:3x", "from 1 to 100"},
    {"icb:101", "the number after 'icb:' must be from 0 to 100"},
    {"icb:99999999999999999999", "from 0 to 100"},
    {"random:3", "random takes no number"},
    {"dfs:", "dfs takes no number"},
};

START_TEST(no_other_strategy_can_be_made)
{
    GError *error = NULL;

    ck_assert_ptr_null(choice_strategy_new(refused[_i].text, 1, &error));
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strstr(error->message, refused[_i].problem) != NULL, "%s",
                  error->message);
    g_error_free(error);
}
END_TEST

START_TEST(a_plain_run_does_one_vcpu_after_the_other)
{
    struct toy toy = toy_uniform(3, 4, CHOICE_EVENT_TLBI);
    struct choice_source *source = strategy("plain", 5);

    ck_assert_str_eq(run(&toy, source).order, "000011112222");
    choice_source_free(source);
    /* Bytes that are used up, and no entries, are the same. */
    source = choice_source_bytes("\0\0", 2);
    ck_assert_str_eq(run(&toy, source).order, "000011112222");
    choice_source_free(source);
    source = choice_source_recorded(NULL, 0, 100, true);
    ck_assert_str_eq(run(&toy, source).order, "000011112222");
    choice_source_free(source);
}
END_TEST

/* --- what all strategies have in common --- */

static const char *const drawn[] = {"random", "pct:3", "pos", "surw", "chaos"};
static const char *const active[] = {"random", "pct:3", "pos", "surw",
                                     "chaos",  "icb:3", "dfs"};

START_TEST(a_seed_is_a_run_and_the_next_run_is_the_next_seed)
{
    struct choice_source *a = strategy(drawn[_i], 40);
    struct toy toy = toy_uniform(4, 8, CHOICE_EVENT_PTE_STORE);
    unsigned same = 0;

    for (unsigned i = 0; i < 20; i++) {
        /* Alike only without what the source has learned: for run 0. */
        struct choice_source *b = strategy(drawn[_i], 40 + i);
        struct toy_result left = run(&toy, a), right = run(&toy, b);

        if (i == 0 || !strcmp(drawn[_i], "random") ||
            !strcmp(drawn[_i], "pos") || !strcmp(drawn[_i], "chaos")) {
            ck_assert_str_eq(left.order, right.order);
        }
        choice_source_free(b);
        b = strategy(drawn[_i], 41 + i);
        same += !strcmp(left.order, run(&toy, b).order);
        choice_source_free(b);
        ck_assert(choice_source_next_run(a));
    }
    ck_assert_uint_lt(same, 10);
    choice_source_free(a);
}
END_TEST

/*
 * vCPU 0 waits for ever, vCPU 1 works for ever: in no strategy does 0 spin
 * twice without something of 1 in between.
 */
START_TEST(a_spinning_vcpu_never_holds_up_one_that_could_run)
{
    struct choice_source *source = strategy(active[_i], 3);
    struct choice_candidate candidates[3] = {
        {.vcpu = 0, .event = CHOICE_EVENT_SPIN},
        {.vcpu = 1, .event = CHOICE_EVENT_ATOMIC},
        {.vcpu = 2, .event = CHOICE_EVENT_SPIN},
    };

    for (unsigned pass = 0; pass < 200; pass++) {
        unsigned spins[3] = {0};

        choice_stream_begin(&stream, source);
        for (unsigned i = 0; i < 500; i++) {
            unsigned value = choice_vcpu(&stream, candidates, 3);

            if (candidates[value].vcpu == 1) {
                memset(spins, 0, sizeof(spins));
            } else {
                REQUIRE(++spins[candidates[value].vcpu] <= 1,
                        "pass %u, choice %u", pass, i);
            }
            candidates[value].object = i;
        }
        if (!choice_source_next_run(source)) {
            break;
        }
    }
    ck_assert_ptr_null(choice_source_problem(source));
    choice_source_free(source);
}
END_TEST

/* And where the others spin, the one that they wait for gets through. */
START_TEST(a_program_with_spinning_ends_in_every_strategy)
{
    struct choice_source *source = strategy(active[_i], seed_of_run());
    struct toy toy = toy_uniform(3, 5, CHOICE_EVENT_ATOMIC);

    for (unsigned v = 0; v < 3; v++) {
        /* 0 waits for 1's second step, 1 for 2's third, 2 for 0's first. */
        toy.step[v][v == 1 ? 1 : 2] =
            (struct toy_step){.event = CHOICE_EVENT_SPIN,
                              .wait_vcpu = (v + 1) % 3,
                              .wait_steps = 1 + v % 3};
    }
    toy.step[2][2].wait_steps = 1;
    for (unsigned i = 0; i < 3000; i++) {
        struct toy_result result = run(&toy, source);

        REQUIRE(result.done[0] == 5 && result.done[1] == 5 &&
                    result.done[2] == 5,
                "%s", result.order);
        if (!choice_source_next_run(source)) {
            break;
        }
    }
    ck_assert_ptr_null(choice_source_problem(source));
    choice_source_free(source);
}
END_TEST

START_TEST(a_spinning_vcpu_gets_in_before_the_others_are_done)
{
    struct choice_source *source = strategy(active[_i], 11);
    struct toy toy = toy_uniform(2, 30, CHOICE_EVENT_ATOMIC);
    unsigned early = 0;

    if (!strncmp(active[_i], "pct", 3)) {
        choice_source_free(source);
        return; /* there it stays at the bottom, by definition */
    }
    toy.step[1][0] = (struct toy_step){
        .event = CHOICE_EVENT_SPIN, .wait_vcpu = 0, .wait_steps = 5};
    for (unsigned i = 0; i < 1000; i++) {
        const char *order = run(&toy, source).order;
        const char *last = strrchr(order, '0');

        early += memchr(order, '1', (size_t)(last - order)) != NULL;
        if (!choice_source_next_run(source)) {
            break;
        }
    }
    ck_assert_uint_gt(early, 20);
    choice_source_free(source);
}
END_TEST

/* --- random --- */

START_TEST(random_has_the_documented_odds)
{
    enum { TRIES = 60000 };
    struct choice_source *source = strategy("random", seed_of_run());
    struct choice_candidate candidates[5] = {
        {.vcpu = 3}, {.vcpu = 4}, {.vcpu = 0}, {.vcpu = 1}, {.vcpu = 2}};

    choice_stream_begin(&stream, source);
    for (unsigned kind = 0; kind < CHOICE_KINDS; kind++) {
        unsigned count[5] = {0};
        double plain = kind == CHOICE_quantum     ? 1 / 2.0
                       : kind == CHOICE_operation ? 15 / 16.0
                       : kind == CHOICE_input     ? 1 / 5.0
                                                  : 3 / 4.0;

        for (unsigned i = 0; i < TRIES; i++) {
            count[kind == CHOICE_vcpu ? choice_vcpu(&stream, candidates, 5)
                                      : choice(&stream, kind, 5)]++;
        }
        check_odds(choice_kind_name(kind), count[0], TRIES, plain);
        for (unsigned value = 1; value < 5; value++) {
            check_odds(choice_kind_name(kind), count[value], TRIES,
                       (1 - plain) / 4);
        }
    }
    choice_source_free(source);
}
END_TEST

/* --- chaos --- */

START_TEST(chaos_starves_a_vcpu_for_long_but_a_fifth_of_the_time_at_most)
{
    enum { PICKS = 400000 };
    struct choice_source *source = strategy("chaos", seed_of_run());
    struct choice_candidate candidates[4];
    uint64_t last[4] = {0}, longest = 0, starved = 0;
    unsigned current = 0, lengths = 0;

    choice_stream_begin(&stream, source);
    for (uint64_t i = 1; i <= PICKS; i++) {
        for (unsigned v = 0; v < 4; v++) {
            candidates[v].vcpu = (current + v) % 4;
            candidates[v].event = CHOICE_EVENT_ATOMIC;
        }
        current = candidates[choice_vcpu(&stream, candidates, 4)].vcpu;
        /* By chance a vCPU waits about 32 picks, and hardly ever 500. */
        if (i - last[current] > 500) {
            starved += i - last[current];
            longest = MAX(longest, i - last[current]);
            lengths |= 1u << (g_bit_storage((gulong)(i - last[current])) - 1);
        }
        last[current] = i;
    }
    ck_assert_msg(longest >= 2048 && longest < 16384 + 1000, "%" PRIu64,
                  longest);
    ck_assert_msg(starved > PICKS / 50 && starved < PICKS * 3 / 10, "%" PRIu64,
                  starved);
    /* Of several orders of magnitude. */
    ck_assert_msg((lengths & (lengths - 1)) != 0, "%x", lengths);
    choice_source_free(source);
}
END_TEST

/* --- pct --- */

static struct toy depth_toy(unsigned vcpus, unsigned steps)
{
    return toy_uniform(vcpus, steps, CHOICE_EVENT_PTE_STORE);
}

/* Position of a vCPU's k-th step, from 0. */
static unsigned when(const struct toy_result *result, unsigned vcpu, unsigned k)
{
    unsigned i = 0;

    for (;; i++) {
        if (result->order[i] == (char)('0' + vcpu) && k-- == 0) {
            return i;
        }
    }
}

START_TEST(pct_finds_a_bug_of_depth_2_as_often_as_it_promises)
{
    enum { RUNS = 20000, VCPUS = 3, STEPS = 10 };
    struct choice_source *source = strategy("pct:2", seed_of_run());
    struct toy toy = depth_toy(VCPUS, STEPS);
    double promise = 1.0 / (VCPUS * VCPUS * STEPS);
    unsigned hits = 0;

    for (unsigned i = 0; i < RUNS; i++) {
        struct toy_result result = run(&toy, source);
        unsigned all = when(&result, 1, STEPS - 1);

        /* All of vCPU 1 between the fifth and the sixth step of vCPU 0. */
        hits += when(&result, 0, 4) < when(&result, 1, 0) &&
                all < when(&result, 0, 5);
        choice_source_next_run(source);
    }
    ck_assert_msg(hits >= RUNS * promise - UNSURE * sqrt(RUNS * promise),
                  "%u of %d, promised %.0f", hits, RUNS, RUNS * promise);
    choice_source_free(source);
}
END_TEST

START_TEST(pct_preempts_at_most_d_minus_1_times)
{
    for (unsigned depth = 1; depth <= 5; depth++) {
        char text[8];
        struct choice_source *source;
        struct toy toy = depth_toy(4, 12);
        unsigned most = 0;

        g_snprintf(text, sizeof(text), "pct:%u", depth);
        source = strategy(text, seed_of_run());
        for (unsigned i = 0; i < 2000; i++) {
            struct toy_result result = run(&toy, source);

            REQUIRE(result.preemptions < depth, "pct:%u: %s", depth,
                    result.order);
            most = MAX(most, result.preemptions);
            choice_source_next_run(source);
        }
        /* And it does use them: the length of a run is learned. */
        ck_assert_uint_eq(most, depth - 1);
        choice_source_free(source);
    }
}
END_TEST

START_TEST(pct_tries_all_initial_orders_alike)
{
    enum { RUNS = 24000 };
    struct choice_source *source = strategy("pct:1", seed_of_run());
    struct toy toy = depth_toy(4, 1);
    unsigned count[256] = {0}, different = 0;

    for (unsigned i = 0; i < RUNS; i++) {
        struct toy_result result = run(&toy, source);
        unsigned key = 0;

        for (unsigned k = 0; k < 4; k++) {
            key = 4 * key + (unsigned)(result.order[k] - '0');
        }
        count[key]++;
        choice_source_next_run(source);
    }
    for (unsigned i = 0; i < 256; i++) {
        if (count[i]) {
            different++;
            check_odds("order", count[i], RUNS, 1 / 24.0);
        }
    }
    ck_assert_uint_eq(different, 24);
    choice_source_free(source);
}
END_TEST

START_TEST(pct_leaves_quanta_whole_and_ends_the_turn_of_one_that_polls)
{
    struct choice_source *source = strategy("pct:1", 8);
    struct choice_candidate candidates[2] = {{.vcpu = 0}, {.vcpu = 1}};
    unsigned count[2] = {0};

    choice_stream_begin(&stream, source);
    for (unsigned i = 0; i < 100000; i++) {
        REQUIRE(choice(&stream, CHOICE_quantum, 8) == 0, "%u", i);
        count[choice_vcpu(&stream, candidates, 2)]++;
    }
    ck_assert_msg(count[0] > 40000 && count[1] > 40000, "%u and %u", count[0],
                  count[1]);
    choice_source_free(source);
}
END_TEST

/* --- pos --- */

/*
 * vCPU 0 does m private events and then one that conflicts with the only one of
 * vCPU 1: it comes first if 1's priority is the lowest of m + 2. A random walk
 * gets there with 2^-m.
 */
START_TEST(pos_reaches_late_conflicts_with_its_theoretical_odds)
{
    enum { RUNS = 20000 };
    struct choice_source *source = strategy("pos", seed_of_run());
    unsigned private = 2 + 3 * (unsigned)_i, hits = 0;
    struct toy toy = toy_uniform(2, private + 1, CHOICE_EVENT_ATOMIC);

    toy.length[1] = 1;
    toy.step[1][0].object = 7777;
    toy.step[0][private].object = 7777;
    for (unsigned i = 0; i < RUNS; i++) {
        struct toy_result result = run(&toy, source);

        hits += result.order[private + 1] == '1';
        choice_source_next_run(source);
    }
    check_odds("late conflict", hits, RUNS, 1.0 / (private + 2));
    choice_source_free(source);
}
END_TEST

/* Three stores to one object: all six orders alike, since each draws again. */
START_TEST(pos_orders_conflicting_events_evenly)
{
    enum { RUNS = 24000 };
    struct choice_source *source = strategy("pos", seed_of_run());
    struct toy toy = toy_uniform(3, 1, CHOICE_EVENT_PTE_STORE);
    unsigned count[3][3] = {{0}};

    for (unsigned v = 0; v < 3; v++) {
        toy.step[v][0].object = 5;
    }
    for (unsigned i = 0; i < RUNS; i++) {
        struct toy_result result = run(&toy, source);

        count[result.order[0] - '0'][result.order[1] - '0']++;
        choice_source_next_run(source);
    }
    for (unsigned a = 0; a < 3; a++) {
        for (unsigned b = 0; b < 3; b++) {
            if (a != b) {
                check_odds("order", count[a][b], RUNS, 1 / 6.0);
            }
        }
    }
    choice_source_free(source);
}
END_TEST

/*
 * A conflict draws again: vCPU 0 stores twice, 1 and 2 once to the same object.
 * Without new draws a vCPU with a low priority would stay behind both.
 */
START_TEST(pos_draws_again_after_a_conflict)
{
    enum { RUNS = 40000 };
    struct choice_source *source = strategy("pos", seed_of_run());
    unsigned objects = (unsigned)_i, hits = 0;
    struct toy toy = toy_uniform(2, 2, CHOICE_EVENT_PTE_STORE);

    toy.length[1] = 1;
    for (unsigned i = 0; i < 2; i++) {
        toy.step[0][i].object = 5 + i * objects;
    }
    toy.step[1][0].object = objects ? 9 : 5;
    for (unsigned i = 0; i < RUNS; i++) {
        hits += !strcmp(run(&toy, source).order, "001");
        choice_source_next_run(source);
    }
    /* All conflict: two fair draws. None does: 1 is the lowest of three. */
    check_odds("001", hits, RUNS, objects ? 1 / 3.0 : 1 / 4.0);
    choice_source_free(source);
}
END_TEST

/*
 * The one that was not picked has the lower priority of two, unless it has run
 * since where there was no choice, and is about to do another event.
 */
START_TEST(pos_notices_events_that_happened_without_a_choice)
{
    enum { RUNS = 40000 };
    struct choice_source *source = strategy("pos", seed_of_run());
    unsigned again = 0;

    for (unsigned i = 0; i < RUNS; i++) {
        struct choice_candidate candidates[2] = {
            {.vcpu = 0, .event = CHOICE_EVENT_ATOMIC, .object = 1},
            {.vcpu = 1, .event = CHOICE_EVENT_ATOMIC, .object = 2}};
        unsigned first;

        choice_stream_begin(&stream, source);
        first = choice_vcpu(&stream, candidates, 2);
        candidates[first].object = 3;
        if (_i) {
            candidates[1 - first].object = 4;
        }
        again += choice_vcpu(&stream, candidates, 2) == first;
        choice_source_next_run(source);
    }
    check_odds("again", again, RUNS, _i ? 1 / 2.0 : 2 / 3.0);
    choice_source_free(source);
}
END_TEST

/* --- surw --- */

/* How far the orders of interesting events are from uniform. */
static double chi_square(const char *text, unsigned runs)
{
    struct choice_source *source = strategy(text, seed_of_run());
    struct toy toy = toy_uniform(2, 3, CHOICE_EVENT_TLBI);
    unsigned count[64] = {0};
    double sum = 0, expected = runs / 20.0;

    /* vCPU 1 does seven uninteresting things before, between and after. */
    toy.length[1] = 10;
    for (unsigned i = 0; i < 10; i++) {
        toy.step[1][i].event = i == 2 || i == 3 || i == 8 ? CHOICE_EVENT_TLBI
                                                          : CHOICE_EVENT_ATOMIC;
    }
    for (unsigned i = 0; i < 200; i++) {
        run(&toy, source); /* learn */
        choice_source_next_run(source);
    }
    for (unsigned i = 0; i < runs; i++) {
        struct toy_result result = run(&toy, source);
        unsigned done[2] = {0}, key = 0, length = 0;

        for (unsigned k = 0; k < result.count; k++) {
            unsigned v = (unsigned)(result.order[k] - '0');

            if (toy.step[v][done[v]++].event == CHOICE_EVENT_TLBI) {
                key = 2 * key + v;
                length++;
            }
        }
        REQUIRE(length == 6, "%s", result.order);
        count[key]++;
        choice_source_next_run(source);
    }
    for (unsigned key = 0; key < 64; key++) {
        if (__builtin_popcount(key) == 3) {
            sum += (count[key] - expected) * (count[key] - expected) / expected;
        }
    }
    choice_source_free(source);
    return sum;
}

START_TEST(surw_is_uniform_over_the_orders_of_interesting_events)
{
    double surw = chi_square("surw", 20000);
    double random = chi_square("random", 20000);

    /* 19 degrees of freedom: beyond 63 once in a million times. */
    ck_assert_msg(surw < 63, "surw: chi square %.1f", surw);
    /* What a random walk does, to show that the measure measures. */
    ck_assert_msg(random > 1000, "random: chi square %.1f", random);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choice_strategies");
    TCase *tc = tcase_create("strategies");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_listed_strategy_can_be_made);
    tcase_add_loop_test(tc, no_other_strategy_can_be_made, 0,
                        G_N_ELEMENTS(refused));
    tcase_add_test(tc, a_plain_run_does_one_vcpu_after_the_other);
    tcase_add_loop_test(tc, a_seed_is_a_run_and_the_next_run_is_the_next_seed,
                        0, G_N_ELEMENTS(drawn));
    tcase_add_loop_test(tc, a_spinning_vcpu_never_holds_up_one_that_could_run,
                        0, G_N_ELEMENTS(active));
    tcase_add_loop_test(tc, a_program_with_spinning_ends_in_every_strategy, 0,
                        G_N_ELEMENTS(active));
    tcase_add_loop_test(tc, a_spinning_vcpu_gets_in_before_the_others_are_done,
                        0, G_N_ELEMENTS(active));
    tcase_add_test(tc, random_has_the_documented_odds);
    tcase_add_test(
        tc, chaos_starves_a_vcpu_for_long_but_a_fifth_of_the_time_at_most);
    tcase_add_test(tc, pct_finds_a_bug_of_depth_2_as_often_as_it_promises);
    tcase_add_test(tc, pct_preempts_at_most_d_minus_1_times);
    tcase_add_test(tc, pct_tries_all_initial_orders_alike);
    tcase_add_test(tc,
                   pct_leaves_quanta_whole_and_ends_the_turn_of_one_that_polls);
    tcase_add_loop_test(
        tc, pos_reaches_late_conflicts_with_its_theoretical_odds, 0, 4);
    tcase_add_test(tc, pos_orders_conflicting_events_evenly);
    tcase_add_loop_test(tc, pos_draws_again_after_a_conflict, 0, 2);
    tcase_add_loop_test(tc, pos_notices_events_that_happened_without_a_choice,
                        0, 2);
    tcase_add_test(tc, surw_is_uniform_over_the_orders_of_interesting_events);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
