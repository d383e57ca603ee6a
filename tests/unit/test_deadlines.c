/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: the deadlines of the guest's timers. */
#include <check.h>
#include <stdlib.h>

#include "deadlines.h"
#include "dev/arch_timer.h"

START_TEST(the_earliest_of_all_cpus_is_found)
{
    struct deadlines *d = deadlines_new(3);

    ck_assert_uint_eq(deadlines_earliest(d), ARCH_TIMER_NONE);
    ck_assert(deadlines_note(d, 1, 100));
    ck_assert(deadlines_note(d, 2, 50));
    ck_assert_uint_eq(deadlines_earliest(d), 50);
    deadlines_expired(d, 2, 50, ARCH_TIMER_NONE);
    ck_assert_uint_eq(deadlines_earliest(d), 100);
    deadlines_free(d);
}
END_TEST

START_TEST(only_an_earlier_deadline_asks_for_another_look)
{
    struct deadlines *d = deadlines_new(1);

    ck_assert(deadlines_note(d, 0, 100));
    ck_assert(!deadlines_note(d, 0, 100));
    ck_assert(!deadlines_note(d, 0, 200));
    ck_assert(deadlines_note(d, 0, 199));
    ck_assert_uint_eq(deadlines_of(d, 0), 199);
    deadlines_free(d);
}
END_TEST

/* The vCPU took the interrupt and set its timer before the loop was done. */
START_TEST(a_deadline_noted_while_the_loop_takes_off_the_last_one_stays)
{
    struct deadlines *d = deadlines_new(1);
    uint64_t seen, next;

    deadlines_note(d, 0, 100);
    seen = deadlines_of(d, 0);
    next = ARCH_TIMER_NONE;
    deadlines_note(d, 0, 300);
    deadlines_expired(d, 0, seen, next);
    ck_assert_uint_eq(deadlines_earliest(d), 300);
    deadlines_free(d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deadlines");
    TCase *tc = tcase_create("deadlines");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, the_earliest_of_all_cpus_is_found);
    tcase_add_test(tc, only_an_earlier_deadline_asks_for_another_look);
    tcase_add_test(
        tc, a_deadline_noted_while_the_loop_takes_off_the_last_one_stays);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
