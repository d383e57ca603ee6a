/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: dfs and icb make all runs that they should, and each once. */
#include "choice_fixture.h"

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

/* --- dfs --- */

START_TEST(dfs_makes_every_combination_once)
{
    static const unsigned alternatives[] = {2, 3, 1, 4, 2};
    struct choice_source *source = strategy("dfs", 0);
    bool seen[48] = {false};
    struct choice_search search;
    unsigned runs = 0;

    do {
        unsigned key = 0;

        choice_stream_begin(&stream, source);
        for (unsigned i = 0; i < G_N_ELEMENTS(alternatives); i++) {
            key = key * alternatives[i] +
                  choice(&stream, i % 2 ? CHOICE_evict : CHOICE_input,
                         alternatives[i]);
        }
        ck_assert_msg(runs || key == 0, "the first run is not plain");
        ck_assert(!seen[key]);
        seen[key] = true;
        runs++;
    } while (choice_source_next_run(source));
    ck_assert_uint_eq(runs, 48);
    ck_assert(choice_search_status(source, &search));
    ck_assert_uint_eq(search.runs, 48);
    ck_assert(search.complete);
    ck_assert(!choice_source_next_run(source));
    ck_assert_ptr_null(choice_source_problem(source));
    choice_source_free(source);
}
END_TEST

START_TEST(dfs_follows_a_tree_whose_shape_depends_on_the_answers)
{
    struct choice_source *source = strategy("dfs", 0);
    unsigned runs = 0, sum = 0;

    do {
        unsigned more;

        choice_stream_begin(&stream, source);
        /* 0..3 further choices of 2: 1 + 2 + 4 + 8 leaves. */
        more = choice(&stream, CHOICE_input, 4);
        for (unsigned i = 0; i < more; i++) {
            sum += choice(&stream, CHOICE_apply, 2);
        }
        runs++;
    } while (choice_source_next_run(source));
    ck_assert_uint_eq(runs, 15);
    ck_assert_uint_eq(sum, 1 + 4 + 12);
    choice_source_free(source);
}
END_TEST

START_TEST(dfs_of_a_program_without_choices_is_one_run)
{
    struct choice_source *source = strategy("dfs", 0);

    choice_stream_begin(&stream, source);
    ck_assert(!choice_source_next_run(source));
    choice_source_free(source);
}
END_TEST

/* All orders of a toy, as keys of a set; each must come once. */
static GHashTable *all_orders(const struct toy *toy, const char *text)
{
    struct choice_source *source = strategy(text, 0);
    GHashTable *orders =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    unsigned preemptions = 0;

    do {
        struct toy_result result = run(toy, source);

        REQUIRE(!g_hash_table_contains(orders, result.order), "%s twice",
                result.order);
        g_hash_table_add(orders, g_strdup(result.order));
        if (!strncmp(text, "icb", 3)) {
            struct choice_search search;

            ck_assert(choice_search_status(source, &search));
            REQUIRE(result.preemptions == search.bound,
                    "%s has %u preemptions at bound %u", result.order,
                    result.preemptions, search.bound);
            REQUIRE(result.preemptions >= preemptions, "%s is late",
                    result.order);
            preemptions = result.preemptions;
        }
    } while (choice_source_next_run(source));
    ck_assert_ptr_null(choice_source_problem(source));
    choice_source_free(source);
    return orders;
}

static unsigned choose(unsigned n, unsigned k)
{
    unsigned result = 1;

    for (unsigned i = 0; i < k; i++) {
        result = result * (n - i) / (i + 1);
    }
    return k > n ? 0 : result;
}

START_TEST(dfs_makes_all_interleavings)
{
    struct toy toy = toy_uniform(2, 5, CHOICE_EVENT_DSB);
    GHashTable *orders = all_orders(&toy, "dfs");

    ck_assert_uint_eq(g_hash_table_size(orders), choose(10, 5));
    g_hash_table_unref(orders);
    toy = toy_uniform(3, 3, CHOICE_EVENT_DSB);
    orders = all_orders(&toy, "dfs");
    ck_assert_uint_eq(g_hash_table_size(orders), 1680); /* 9! / 3!^3 */
    g_hash_table_unref(orders);
}
END_TEST

START_TEST(a_search_stops_where_runs_do_not_repeat)
{
    struct choice_source *source = strategy(_i ? "icb:2" : "dfs", 0);
    struct toy toy = toy_uniform(3, 4, CHOICE_EVENT_DSB);
    unsigned runs = 0;

    do {
        run(&toy, source);
        toy.length[0] = 2;
        toy.length[1] = 1;
        toy.length[2] = 0;
        runs++;
    } while (choice_source_next_run(source));
    ck_assert_uint_le(runs, 3);
    ck_assert_ptr_nonnull(choice_source_problem(source));
    ck_assert_msg(strstr(choice_source_problem(source), "not repeatable") !=
                      NULL,
                  "%s", choice_source_problem(source));
    choice_source_free(source);
}
END_TEST

START_TEST(a_search_refuses_runs_of_more_than_a_million_choices)
{
    struct choice_source *source = strategy(_i ? "icb:2" : "dfs", 0);
    struct choice_candidate candidates[2] = {{.vcpu = 0}, {.vcpu = 1}};

    choice_stream_begin(&stream, source);
    for (unsigned i = 0; i < CHOICE_SEARCH_DEPTH; i++) {
        choice_vcpu(&stream, candidates, 2);
    }
    ck_assert_ptr_null(choice_source_problem(source));
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_uint_eq(choice_vcpu(&stream, candidates, 2), 0);
    }
    ck_assert_str_eq(choice_source_problem(source),
                     "a run has more than 1000000 choices: too many to try "
                     "all; bound it, or use another strategy");
    ck_assert(!choice_source_next_run(source));
    choice_source_free(source);
}
END_TEST

/* --- icb --- */

/*
 * Two vCPUs of m steps: an order of b blocks has b - 2 preemptions, since the
 * last switch is one that had to be. Of b blocks one vCPU has b/2 rounded up.
 */
static unsigned orders_with(unsigned steps, unsigned preemptions)
{
    unsigned blocks = preemptions + 2;

    return 2 * choose(steps - 1, (blocks + 1) / 2 - 1) *
           choose(steps - 1, blocks / 2 - 1);
}

START_TEST(icb_makes_as_many_runs_as_the_formula_says)
{
    unsigned expected = 0;

    for (unsigned bound = 0; bound <= 6; bound++) {
        struct toy toy = toy_uniform(2, 6, CHOICE_EVENT_TLBI);
        char text[8];
        GHashTable *orders;

        g_snprintf(text, sizeof(text), "icb:%u", bound);
        orders = all_orders(&toy, text);
        expected += orders_with(6, bound);
        ck_assert_uint_eq(g_hash_table_size(orders), expected);
        g_hash_table_unref(orders);
    }
}
END_TEST

START_TEST(icb_without_a_tight_bound_makes_what_dfs_makes)
{
    struct toy toy = toy_uniform(3, 3, CHOICE_EVENT_TLBI);
    GHashTable *orders = all_orders(&toy, "icb:20"), *others;
    GHashTableIter iter;
    void *order;

    ck_assert_uint_eq(g_hash_table_size(orders), 1680);
    g_hash_table_unref(orders);
    /* And where vCPUs spin, which makes free choices in the middle. */
    toy.step[1][1] = (struct toy_step){
        .event = CHOICE_EVENT_SPIN, .wait_vcpu = 0, .wait_steps = 2};
    orders = all_orders(&toy, "icb:20");
    others = all_orders(&toy, "dfs");
    ck_assert_uint_gt(g_hash_table_size(orders), 100);
    ck_assert_uint_eq(g_hash_table_size(orders), g_hash_table_size(others));
    g_hash_table_iter_init(&iter, others);
    while (g_hash_table_iter_next(&iter, &order, NULL)) {
        ck_assert(g_hash_table_contains(orders, order));
    }
    g_hash_table_unref(others);
    g_hash_table_unref(orders);
}
END_TEST

START_TEST(icb_leaves_liberties_plain_and_tries_small_inputs)
{
    struct choice_source *source = strategy("icb:1", 0);
    unsigned count[4] = {0}, runs = 0;

    do {
        choice_stream_begin(&stream, source);
        ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 8), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_input, 9), 0);
        count[choice(&stream, CHOICE_input, 4)]++;
        runs++;
    } while (choice_source_next_run(source));
    ck_assert_uint_eq(runs, 4);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(count[i], 1);
    }
    choice_source_free(source);
}
END_TEST

START_TEST(only_searches_have_a_status)
{
    struct choice_source *source = strategy("random", 1);
    struct choice_search search;

    ck_assert(!choice_search_status(source, &search));
    choice_source_free(source);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choice_search");
    TCase *tc = tcase_create("search");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, dfs_makes_every_combination_once);
    tcase_add_test(tc, dfs_follows_a_tree_whose_shape_depends_on_the_answers);
    tcase_add_test(tc, dfs_of_a_program_without_choices_is_one_run);
    tcase_add_test(tc, dfs_makes_all_interleavings);
    tcase_add_loop_test(tc, a_search_stops_where_runs_do_not_repeat, 0, 2);
    tcase_add_loop_test(
        tc, a_search_refuses_runs_of_more_than_a_million_choices, 0, 2);
    tcase_add_test(tc, icb_makes_as_many_runs_as_the_formula_says);
    tcase_add_test(tc, icb_without_a_tight_bound_makes_what_dfs_makes);
    tcase_add_test(tc, icb_leaves_liberties_plain_and_tries_small_inputs);
    tcase_add_test(tc, only_searches_have_a_status);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
