/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PSCI: decoding, parameter checks, result codes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "dev/psci.h"

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

struct machine {
    unsigned ons, infos, offs, system_offs, resets, suspends;
    uint64_t mpidr, entry, ctx;
    unsigned level, cpu;
    int answer;
};

static int machine_cpu_on(void *opaque, uint64_t mpidr, uint64_t entry,
                          uint64_t ctx)
{
    struct machine *m = opaque;

    m->ons++;
    m->mpidr = mpidr;
    m->entry = entry;
    m->ctx = ctx;
    return m->answer;
}

static int machine_affinity_info(void *opaque, uint64_t mpidr, unsigned level)
{
    struct machine *m = opaque;

    m->infos++;
    m->mpidr = mpidr;
    m->level = level;
    return m->answer;
}

static void machine_cpu_off(void *opaque, unsigned cpu)
{
    struct machine *m = opaque;

    m->offs++;
    m->cpu = cpu;
}

static void machine_system_off(void *opaque)
{
    ((struct machine *)opaque)->system_offs++;
}

static void machine_system_reset(void *opaque)
{
    ((struct machine *)opaque)->resets++;
}

static void machine_cpu_suspend(void *opaque, unsigned cpu)
{
    struct machine *m = opaque;

    m->suspends++;
    m->cpu = cpu;
}

static const struct psci_ops ops = {
    .cpu_on = machine_cpu_on,
    .affinity_info = machine_affinity_info,
    .cpu_off = machine_cpu_off,
    .system_off = machine_system_off,
    .system_reset = machine_system_reset,
    .cpu_suspend = machine_cpu_suspend,
};

static struct machine m;

static void setup(void)
{
    memset(&m, 0, sizeof(m));
}

static int64_t call(uint64_t fn, uint64_t a, uint64_t b, uint64_t c)
{
    return (int64_t)psci_call(&ops, &m, 5, (uint64_t[4]){fn, a, b, c});
}

START_TEST(version_is_1_1_whatever_the_upper_half_of_x0_holds)
{
    ck_assert_int_eq(call(0x84000000, 0, 0, 0), 0x10001);
    ck_assert_int_eq(call(0xdead000084000000ull, 0, 0, 0), 0x10001);
}
END_TEST

static const struct {
    uint64_t fn;
    int64_t answer;
} features[] = {
    {0x84000000, 0},  {0x84000001, 0},  {0xc4000001, 0},  {0x84000002, 0},
    {0xc4000002, -1}, {0x84000003, 0},  {0xc4000003, 0},  {0x84000004, 0},
    {0xc4000004, 0},  {0x84000005, -1}, {0xc4000005, -1}, {0x84000006, 0},
    {0x84000007, -1}, {0x84000008, 0},  {0x84000009, 0},  {0x8400000a, 0},
    {0x8400000e, -1}, {0xc4000012, -1}, {0x80000000, 0},  {0xc4000000, -1},
    {0, -1},
};

START_TEST(features_names_exactly_what_is_there)
{
    ck_assert_msg(call(0x8400000a, features[_i].fn, 0, 0) ==
                      features[_i].answer,
                  "function 0x%lx", (unsigned long)features[_i].fn);
}
END_TEST

START_TEST(cpu_on_passes_64_bit_arguments_and_returns_the_code)
{
    m.answer = PSCI_ALREADY_ON;
    ck_assert_int_eq(call(0xc4000003, 0x0100, 0x1234567840080000ull, ~0ull),
                     -4);
    ck_assert_uint_eq(m.ons, 1);
    ck_assert_uint_eq(m.mpidr, 0x100);
    ck_assert_uint_eq(m.entry, 0x1234567840080000ull);
    ck_assert_uint_eq(m.ctx, ~0ull);
}
END_TEST

START_TEST(cpu_on_in_32_bit_form_uses_the_lower_halves)
{
    ck_assert_int_eq(call(0x84000003, 0xffffffff00000002ull,
                          0xabcdef0040080000ull, 0x1ffffffffull),
                     0);
    ck_assert_uint_eq(m.mpidr, 2);
    ck_assert_uint_eq(m.entry, 0x40080000);
    ck_assert_uint_eq(m.ctx, 0xffffffff);
}
END_TEST

START_TEST(cpu_on_refuses_reserved_mpidr_bits_and_odd_entries)
{
    /* MPIDR_EL1 as read, bit 31 set, is not an affinity. */
    ck_assert_int_eq(call(0xc4000003, 0x80000001, 0x40080000, 0), -2);
    ck_assert_int_eq(call(0xc4000003, 1ull << 40, 0x40080000, 0), -2);
    ck_assert_int_eq(call(0xc4000003, 1, 0x40080002, 0), -9);
    ck_assert_uint_eq(m.ons, 0);
}
END_TEST

START_TEST(affinity_info_checks_level_and_passes_the_answer)
{
    m.answer = PSCI_AFFINITY_ON_PENDING;
    ck_assert_int_eq(call(0xc4000004, 0x1f0f, 0, 0), 2);
    ck_assert_uint_eq(m.mpidr, 0x1f0f);
    ck_assert_int_eq(call(0xc4000004, 0x1f0f, 4, 0), -2);
    ck_assert_uint_eq(m.infos, 1);
    ck_assert_int_eq(call(0xc4000004, 0, 3, 0), 2);
    ck_assert_uint_eq(m.level, 3);
}
END_TEST

START_TEST(arguments_of_32_bits_are_lower_halves_in_the_64_bit_form_too)
{
    ck_assert_int_eq(call(0xc4000001, 0x5eed000000001234ull, 0, 0), 0);
    ck_assert_uint_eq(m.suspends, 1);
    ck_assert_int_eq(call(0xc4000001, 0x5eed000080000000ull, 0, 0), -2);
    ck_assert_uint_eq(m.suspends, 1);
    ck_assert_int_eq(call(0xc4000004, 0x1f0f, 0x5eed000000000001ull, 0), 0);
    ck_assert_uint_eq(m.infos, 1);
    ck_assert_uint_eq(m.level, 1);
    ck_assert_int_eq(call(0xc4000004, 0x1f0f, 0x5eed000000000004ull, 0), -2);
    ck_assert_uint_eq(m.infos, 1);
}
END_TEST

START_TEST(cpu_off_reaches_the_calling_cpu_only)
{
    ck_assert_int_eq(call(0x84000002, 0, 0, 0), 0);
    ck_assert_uint_eq(m.offs, 1);
    ck_assert_uint_eq(m.cpu, 5);
    ck_assert_int_eq(call(0xc4000002, 0, 0, 0), -1); /* no 64-bit form */
    ck_assert_uint_eq(m.offs, 1);
}
END_TEST

START_TEST(cpu_suspend_is_standby_and_power_down_is_refused)
{
    ck_assert_int_eq(call(0xc4000001, 0x1, 0x40000000, 0), 0);
    ck_assert_uint_eq(m.suspends, 1);
    ck_assert_int_eq(call(0xc4000001, 0x10000, 0x40000000, 0), -2);
    ck_assert_int_eq(call(0xc4000001, 0x04000000, 0, 0), -2);
    ck_assert_uint_eq(m.suspends, 1);
}
END_TEST

START_TEST(system_off_and_reset_reach_the_machine)
{
    (void)call(0x84000008, 0, 0, 0);
    ck_assert_uint_eq(m.system_offs, 1);
    (void)call(0x84000009, 0, 0, 0);
    ck_assert_uint_eq(m.resets, 1);
}
END_TEST

START_TEST(migration_is_not_required)
{
    ck_assert_int_eq(call(0x84000006, 0, 0, 0), 2);
    ck_assert_int_eq(call(0x84000005, 0, 0, 0), -1);
    ck_assert_int_eq(call(0x84000007, 0, 0, 0), -1);
}
END_TEST

START_TEST(smccc_version_is_1_1_and_no_workaround_is_claimed)
{
    ck_assert_int_eq(call(0x80000000, 0, 0, 0), 0x10001);
    ck_assert_int_eq(call(0x80000001, 0x80000000, 0, 0), 0);
    ck_assert_int_eq(call(0x80000001, 0x80008000, 0, 0), -1);
}
END_TEST

START_TEST(unknown_functions_are_not_supported)
{
    static const uint64_t fns[] = {0,          0x84000010, 0xc4000000,
                                   0xffffffff, 0x04000003, 0x86000001,
                                   0x95c1ba60};

    for (unsigned i = 0; i < N_ELEMENTS(fns); i++) {
        ck_assert_int_eq(call(fns[i], 0, 0x40080000, 0), -1);
    }
    ck_assert_uint_eq(m.ons + m.offs + m.system_offs + m.resets, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("psci");
    TCase *tc = tcase_create("psci");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, version_is_1_1_whatever_the_upper_half_of_x0_holds);
    tcase_add_loop_test(tc, features_names_exactly_what_is_there, 0,
                        N_ELEMENTS(features));
    tcase_add_test(tc, cpu_on_passes_64_bit_arguments_and_returns_the_code);
    tcase_add_test(tc, cpu_on_in_32_bit_form_uses_the_lower_halves);
    tcase_add_test(tc, cpu_on_refuses_reserved_mpidr_bits_and_odd_entries);
    tcase_add_test(tc, affinity_info_checks_level_and_passes_the_answer);
    tcase_add_test(
        tc, arguments_of_32_bits_are_lower_halves_in_the_64_bit_form_too);
    tcase_add_test(tc, cpu_off_reaches_the_calling_cpu_only);
    tcase_add_test(tc, cpu_suspend_is_standby_and_power_down_is_refused);
    tcase_add_test(tc, system_off_and_reset_reach_the_machine);
    tcase_add_test(tc, migration_is_not_required);
    tcase_add_test(tc, smccc_version_is_1_1_and_no_workaround_is_claimed);
    tcase_add_test(tc, unknown_functions_are_not_supported);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
