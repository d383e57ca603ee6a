/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A restore is exact: a run after one is the run before it, event by event and
 * in all that is left at the end. Whatever other runs left behind would show.
 */
#include "det_fixture.h"

#define SEEDS 7u
#define RUNS 10000u
/* The state is hashed in one of so many runs; the trace in all. */
#define STATE_EVERY 16u

struct first {
    bool known;
    struct det_answer answer;
};

/*
 * Runs of a few seeds, mixed: the same one several times in a row, and after
 * each of the others.
 */
static void check_runs(const char *text, const char *strategy, unsigned runs,
                       unsigned state_every)
{
    struct det_machine *m = det_machine_new(text);
    struct first first[SEEDS] = {0};
    GHashTable *different = g_hash_table_new(g_int64_hash, g_int64_equal);
    gint64 start = g_get_monotonic_time();
    unsigned compared = 0;

    for (unsigned i = 0; i < runs; i++) {
        /* 0 0 0 0 1 2 3 4 5 6, then from another one on */
        unsigned turn = i / 10, at = i % 10;
        unsigned seed = (turn + (at < 4 ? 0 : at - 3)) % SEEDS;
        struct first *f = &first[seed];
        struct det_answer a = det_run_strategy(
            m, strategy, 1 + seed, !f->known || i % state_every == 0);

        /* The erratum breaks what the guest relies on, and it may see that. */
        ck_assert_msg(
            det_is_good_end(a.outcome) || (a.outcome == VM_OUTCOME_FINDING &&
                                           strstr(text, "--hw-repeat-tlbi")),
            "%s: run %u ended with %s", text, i, vm_outcome_name(a.outcome));
        if (!f->known) {
            f->known = true;
            f->answer = a;
            g_hash_table_add(different, &f->answer.trace_hash);
            continue;
        }
        ck_assert_msg(det_same(&f->answer, &a),
                      "%s: run %u, of seed %u, is not what it was before: %s",
                      text, i, 1 + seed, det_two(&f->answer, &a));
        compared++;
    }
    printf("%s: %u runs were as before, %u different ones, %.2f ms each\n",
           text, compared, g_hash_table_size(different),
           (double)(g_get_monotonic_time() - start) / 1000 / runs);
    /* A machine that does nothing would pass everything above. */
    if (strstr(text, "seeded") && strcmp(strategy, "plain") != 0 &&
        runs >= 10 * SEEDS) {
        ck_assert_uint_gt(g_hash_table_size(different), 1);
    }
    g_hash_table_destroy(different);
    det_machine_free(m);
}

START_TEST(ten_thousand_restores_of_reclaim_race_are_exact)
{
    check_runs("--engine seeded " DET_RECLAIM_RACE, "random",
               det_runs(det_is_slow_build() ? RUNS / 20 : RUNS), STATE_EVERY);
}
END_TEST

/* Machines that are not the usual one. */
static const char *const machines[] = {
    "--engine seeded --tlb ipi",
    "--engine seeded --flush sync",
    "--engine seeded --hw eager",
    "--engine seeded --hw typical",
    "--engine seeded --hw adversarial",
    "--engine seeded --hw adversarial --tlb ipi",
    "--engine seeded --hw adversarial --hw-dbm on --hw-shared-tlb on "
    "--hw-repeat-tlbi on",
    "--engine seeded --hw-dbm on",
    "--engine seeded --hw-shared-tlb on",
    "--engine seeded --hw-shared-tlb on --hw-dbm on --tlb ipi",
    "--engine seeded --hw-repeat-tlbi random",
    "--engine seeded --tlb-sets 4 --tlb-ways 1 --walk-cache 1",
    "--engine seeded --tlb-replacement random",
    "--engine seeded --tlb-replacement fifo",
    "--engine seeded --cpus 1",
    "--engine seeded --cpus 8",
    "--engine vtime",
    "--engine vtime --tlb ipi",
    "--engine vtime --hw random",
    "--engine vtime --hw adversarial",
};

START_TEST(restores_are_exact_on_other_machines)
{
    g_autofree char *text =
        g_strdup_printf("%s %s", machines[_i], DET_RECLAIM_RACE);

    check_runs(text, "random", 30, 1);
}
END_TEST

/* Each liberty of hardware by itself, cruel. */
START_TEST(restores_are_exact_with_each_liberty_on)
{
    g_autofree char *text = g_strdup_printf(
        "--engine %s --hw eager --hw-%s on %s", _i % 2 ? "vtime" : "seeded",
        hw_knob_option((enum hw_knob)(_i / 2)), DET_RECLAIM_RACE);

    check_runs(text, "random", 20, 1);
}
END_TEST

static const char *const strategies[] = {"plain", "pct:3", "pos",
                                         "surw",  "icb:1", "chaos"};

START_TEST(restores_are_exact_with_each_strategy)
{
    check_runs("--engine seeded " DET_RECLAIM_RACE, strategies[_i], 20, 1);
}
END_TEST

/* The snapshot of a machine that has not begun: no table, no vCPU but one. */
START_TEST(restores_are_exact_from_the_very_start)
{
    check_runs(_i ? "--engine vtime --mem 32M hello"
                  : "--engine seeded --mem 32M hello",
               "random", 20, 1);
}
END_TEST

START_TEST(a_restore_brings_old_code_back)
{
    static const char *const engines[] = {"seeded", "vtime",
                                          "seeded --hw adversarial"};
    g_autofree char *text =
        g_strdup_printf("--engine %s --mem 16M --cpus 4 --snapshot-at 1 "
                        "--kernel %s",
                        engines[_i], g_getenv("DET_CODE_PATCH"));

    check_runs(text, "random", 60, 1);
}
END_TEST

START_TEST(a_restore_brings_registers_back)
{
    g_autofree char *text =
        g_strdup_printf("--engine %s --mem 16M --cpus 2 --snapshot-at 1 "
                        "--kernel %s",
                        _i ? "vtime" : "seeded", g_getenv("DET_RESTORE_PROBE"));

    check_runs(text, "random", 30, 1);
}
END_TEST

/* Twelve thousand code pages, more than there are execution views. */
START_TEST(a_restore_is_exact_after_much_new_code)
{
    g_autofree char *text =
        g_strdup_printf("--engine seeded --mem 16M --cpus 2 --kernel %s",
                        g_getenv("DET_CODE_CHURN"));

    check_runs(text, "random", 3, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("snapshot");

    tcase_set_timeout(tc, det_seconds(200));
    tcase_add_test(tc, ten_thousand_restores_of_reclaim_race_are_exact);
    tcase_add_loop_test(tc, restores_are_exact_on_other_machines, 0,
                        G_N_ELEMENTS(machines));
    tcase_add_loop_test(tc, restores_are_exact_with_each_liberty_on, 0,
                        2 * HW_KNOBS);
    tcase_add_loop_test(tc, restores_are_exact_with_each_strategy, 0,
                        G_N_ELEMENTS(strategies));
    tcase_add_loop_test(tc, restores_are_exact_from_the_very_start, 0, 2);
    tcase_add_loop_test(tc, a_restore_brings_old_code_back, 0, 3);
    tcase_add_loop_test(tc, a_restore_brings_registers_back, 0, 2);
    tcase_add_test(tc, a_restore_is_exact_after_much_new_code);
    return det_main_of("snapshot", tc);
}
