/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The generic timer: compare, views, masks, deadlines, lines. */
#include <check.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "dev/arch_timer.h"

#define CPUS 4
#define VIRT 27
#define PHYS 30

struct world {
    uint64_t now;
    bool level[CPUS][32];
    unsigned changes;
    struct arch_timer *timer;
};

static uint64_t world_now(void *opaque)
{
    return ((struct world *)opaque)->now;
}

static void world_line(void *opaque, unsigned cpu, unsigned intid, bool level)
{
    struct world *world = opaque;

    ck_assert_uint_lt(cpu, CPUS);
    ck_assert(world->level[cpu][intid] != level);
    world->level[cpu][intid] = level;
    world->changes++;
}

static const struct arch_timer_callbacks callbacks = {world_now, world_line};
static struct world world;

static void setup(void)
{
    memset(&world, 0, sizeof(world));
    world.now = 1000;
    world.timer = arch_timer_new(CPUS, 62500000, &callbacks, &world);
    ck_assert_ptr_nonnull(world.timer);
}

static void teardown(void)
{
    arch_timer_free(world.timer);
}

static uint64_t get(unsigned cpu, uint32_t key)
{
    uint64_t value = 0;

    ck_assert(arch_timer_sysreg_read(world.timer, cpu, key, &value));
    return value;
}

static void set(unsigned cpu, uint32_t key, uint64_t value)
{
    ck_assert(arch_timer_sysreg_write(world.timer, cpu, key, value));
}

/* The registers of the two timers, for tests that hold for both. */
static const struct {
    uint32_t ctl, cval, tval;
    unsigned intid;
} regs[] = {
    {SYSREG_CNTV_CTL_EL0, SYSREG_CNTV_CVAL_EL0, SYSREG_CNTV_TVAL_EL0, VIRT},
    {SYSREG_CNTP_CTL_EL0, SYSREG_CNTP_CVAL_EL0, SYSREG_CNTP_TVAL_EL0, PHYS},
};

START_TEST(counters_and_frequency_read_as_given)
{
    ck_assert_uint_eq(get(0, SYSREG_CNTFRQ_EL0), 62500000);
    ck_assert_uint_eq(get(0, SYSREG_CNTVCT_EL0), 1000);
    world.now = 0x123456789abcdefull;
    ck_assert_uint_eq(get(3, SYSREG_CNTPCT_EL0), 0x123456789abcdefull);
    ck_assert_uint_eq(get(3, SYSREG_CNTVCTSS_EL0), 0x123456789abcdefull);
    set(1, SYSREG_CNTFRQ_EL0, 0x1000000ffull);
    ck_assert_uint_eq(get(1, SYSREG_CNTFRQ_EL0), 0xff);
    ck_assert_uint_eq(get(0, SYSREG_CNTFRQ_EL0), 62500000);
}
END_TEST

START_TEST(line_rises_when_the_counter_reaches_cval_and_not_before)
{
    set(1, regs[_i].cval, 2000);
    set(1, regs[_i].ctl, 1);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 1), 2000);
    world.now = 1999;
    arch_timer_update(world.timer, 1);
    ck_assert(!world.level[1][regs[_i].intid]);
    ck_assert_uint_eq(get(1, regs[_i].ctl), 1);
    world.now = 2000;
    ck_assert_uint_eq(get(1, regs[_i].ctl), 5);
    arch_timer_update(world.timer, 1);
    ck_assert(world.level[1][regs[_i].intid]);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 1), ARCH_TIMER_NONE);
    ck_assert_uint_eq(world.changes, 1);
}
END_TEST

START_TEST(line_falls_when_cval_moves_into_the_future)
{
    set(0, regs[_i].cval, 500);
    set(0, regs[_i].ctl, 1);
    ck_assert(world.level[0][regs[_i].intid]);
    set(0, regs[_i].tval, 100);
    ck_assert(!world.level[0][regs[_i].intid]);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 0), 1100);
}
END_TEST

START_TEST(imask_hides_the_line_but_not_istatus)
{
    set(0, regs[_i].cval, 500);
    set(0, regs[_i].ctl, 3);
    ck_assert(!world.level[0][regs[_i].intid]);
    ck_assert_uint_eq(get(0, regs[_i].ctl), 7);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 0), ARCH_TIMER_NONE);
    set(0, regs[_i].ctl, 1);
    ck_assert(world.level[0][regs[_i].intid]);
    set(0, regs[_i].ctl, 3);
    ck_assert(!world.level[0][regs[_i].intid]);
}
END_TEST

START_TEST(disabled_timer_has_no_status_line_or_deadline)
{
    set(0, regs[_i].cval, 500);
    set(0, regs[_i].ctl, 0);
    ck_assert_uint_eq(get(0, regs[_i].ctl), 0);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 0), ARCH_TIMER_NONE);
    ck_assert_uint_eq(world.changes, 0);
    set(0, regs[_i].ctl, 0xfffffff8); /* reserved bits and ISTATUS: ignored */
    ck_assert_uint_eq(get(0, regs[_i].ctl), 0);
    set(0, regs[_i].ctl, 4);
    ck_assert_uint_eq(get(0, regs[_i].ctl), 0);
}
END_TEST

static const struct {
    uint64_t now, tval, cval;
} tvals[] = {
    {1000, 0, 1000},
    {1000, 1, 1001},
    {1000, 0x7fffffff, 1000 + 0x7fffffffull},
    {1000, 0xffffffff, 999}, /* -1 */
    {0x200000000ull, 0x80000000, 0x180000000ull},
    {1000, 0xffffffff00000005ull, 1005}, /* the upper half is ignored */
    {0, 0xffffffff, UINT64_MAX},         /* below zero: never */
    {0xfffffffffffffff0ull, 0x20, 0x10}, /* wraps */
};

START_TEST(tval_is_a_signed_32_bit_distance)
{
    world.now = tvals[_i].now;
    set(2, SYSREG_CNTV_TVAL_EL0, tvals[_i].tval);
    ck_assert_uint_eq(get(2, SYSREG_CNTV_CVAL_EL0), tvals[_i].cval);
    ck_assert_uint_eq(get(2, SYSREG_CNTV_TVAL_EL0),
                      tvals[_i].tval & 0xffffffff);
}
END_TEST

START_TEST(tval_counts_down_through_zero)
{
    set(0, SYSREG_CNTV_TVAL_EL0, 10);
    world.now += 4;
    ck_assert_uint_eq(get(0, SYSREG_CNTV_TVAL_EL0), 6);
    world.now += 7;
    ck_assert_uint_eq(get(0, SYSREG_CNTV_TVAL_EL0), 0xffffffff);
}
END_TEST

START_TEST(comparison_is_unsigned)
{
    set(0, SYSREG_CNTV_CVAL_EL0, UINT64_MAX);
    set(0, SYSREG_CNTV_CTL_EL0, 1);
    ck_assert_uint_eq(get(0, SYSREG_CNTV_CTL_EL0), 1);
    set(0, SYSREG_CNTV_CVAL_EL0, 0);
    ck_assert_uint_eq(get(0, SYSREG_CNTV_CTL_EL0), 5);
}
END_TEST

START_TEST(deadline_is_the_earlier_of_both_timers)
{
    set(0, SYSREG_CNTV_CVAL_EL0, 3000);
    set(0, SYSREG_CNTV_CTL_EL0, 1);
    set(0, SYSREG_CNTP_CVAL_EL0, 2500);
    set(0, SYSREG_CNTP_CTL_EL0, 1);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 0), 2500);
    world.now = 2600;
    arch_timer_update(world.timer, 0);
    ck_assert(world.level[0][PHYS] && !world.level[0][VIRT]);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 0), 3000);
    set(0, SYSREG_CNTV_CTL_EL0, 3);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 0), ARCH_TIMER_NONE);
}
END_TEST

START_TEST(cpus_do_not_share_timers)
{
    set(1, SYSREG_CNTV_CVAL_EL0, 10);
    set(1, SYSREG_CNTV_CTL_EL0, 1);
    ck_assert(world.level[1][VIRT]);
    ck_assert(!world.level[0][VIRT]);
    ck_assert_uint_eq(get(0, SYSREG_CNTV_CTL_EL0), 0);
}
END_TEST

START_TEST(reset_lowers_the_lines)
{
    set(1, SYSREG_CNTV_CTL_EL0, 1);
    ck_assert(world.level[1][VIRT]);
    set(1, SYSREG_CNTKCTL_EL1, 3);
    arch_timer_reset_cpu(world.timer, 1);
    ck_assert(!world.level[1][VIRT]);
    ck_assert_uint_eq(get(1, SYSREG_CNTKCTL_EL1), 0);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 1), ARCH_TIMER_NONE);
}
END_TEST

static const struct {
    uint32_t key;
    uint64_t bits;
} el0_rules[] = {
    {SYSREG_CNTPCT_EL0, 1},         {SYSREG_CNTVCT_EL0, 2},
    {SYSREG_CNTFRQ_EL0, 3},         {SYSREG_CNTV_CTL_EL0, 1 << 8},
    {SYSREG_CNTV_CVAL_EL0, 1 << 8}, {SYSREG_CNTP_TVAL_EL0, 1 << 9},
    {SYSREG_CNTKCTL_EL1, 0},
};

START_TEST(cntkctl_decides_what_el0_may_use)
{
    for (unsigned bit = 0; bit < 10; bit++) {
        set(0, SYSREG_CNTKCTL_EL1, 1u << bit);
        ck_assert_msg(
            arch_timer_el0_allowed(world.timer, 0, el0_rules[_i].key) ==
                ((el0_rules[_i].bits >> bit & 1) != 0),
            "key %d bit %u", _i, bit);
    }
}
END_TEST

START_TEST(registers_of_others_and_read_only_ones_are_refused)
{
    uint64_t value = 7;

    ck_assert(!arch_timer_sysreg_write(world.timer, 0, SYSREG_CNTVCT_EL0, 1));
    ck_assert(!arch_timer_sysreg_write(world.timer, 0, SYSREG_CNTPCT_EL0, 1));
    ck_assert(
        !arch_timer_sysreg_read(world.timer, 0, SYSREG(3, 0, 1, 0, 0), &value));
    /* CNTPS_CTL_EL1: secure only */
    ck_assert(!arch_timer_sysreg_read(world.timer, 0, SYSREG(3, 7, 14, 2, 1),
                                      &value));
    ck_assert(
        !arch_timer_sysreg_read(world.timer, CPUS, SYSREG_CNTVCT_EL0, &value));
    ck_assert_uint_eq(value, 7);
}
END_TEST

/* A listener that acknowledges from within: reprograms the timer. */
static void rearming_line(void *opaque, unsigned cpu, unsigned intid,
                          bool level)
{
    struct world *w = opaque;

    world_line(opaque, cpu, intid, level);
    if (level) {
        ck_assert(
            arch_timer_sysreg_write(w->timer, cpu, SYSREG_CNTV_TVAL_EL0, 50));
    }
}

START_TEST(listener_may_change_the_timer)
{
    static const struct arch_timer_callbacks rearm = {world_now, rearming_line};

    arch_timer_free(world.timer);
    world.timer = arch_timer_new(CPUS, 62500000, &rearm, &world);
    set(0, SYSREG_CNTV_CTL_EL0, 1);
    ck_assert(!world.level[0][VIRT]);
    ck_assert_uint_eq(world.changes, 2);
    ck_assert_uint_eq(arch_timer_deadline(world.timer, 0), 1050);
}
END_TEST

START_TEST(impossible_configurations_give_no_timer)
{
    ck_assert_ptr_null(arch_timer_new(0, 1, &callbacks, NULL));
    ck_assert_ptr_null(arch_timer_new(513, 1, &callbacks, NULL));
    ck_assert_ptr_null(arch_timer_new(1, 0, &callbacks, NULL));
    ck_assert_ptr_null(arch_timer_new(1, 1ull << 32, &callbacks, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arch_timer");
    TCase *tc = tcase_create("arch_timer");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, counters_and_frequency_read_as_given);
    tcase_add_loop_test(
        tc, line_rises_when_the_counter_reaches_cval_and_not_before, 0, 2);
    tcase_add_loop_test(tc, line_falls_when_cval_moves_into_the_future, 0, 2);
    tcase_add_loop_test(tc, imask_hides_the_line_but_not_istatus, 0, 2);
    tcase_add_loop_test(tc, disabled_timer_has_no_status_line_or_deadline, 0,
                        2);
    tcase_add_loop_test(tc, tval_is_a_signed_32_bit_distance, 0,
                        G_N_ELEMENTS(tvals));
    tcase_add_test(tc, tval_counts_down_through_zero);
    tcase_add_test(tc, comparison_is_unsigned);
    tcase_add_test(tc, deadline_is_the_earlier_of_both_timers);
    tcase_add_test(tc, cpus_do_not_share_timers);
    tcase_add_test(tc, reset_lowers_the_lines);
    tcase_add_loop_test(tc, cntkctl_decides_what_el0_may_use, 0,
                        G_N_ELEMENTS(el0_rules));
    tcase_add_test(tc, registers_of_others_and_read_only_ones_are_refused);
    tcase_add_test(tc, listener_may_change_the_timer);
    tcase_add_test(tc, impossible_configurations_give_no_timer);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
