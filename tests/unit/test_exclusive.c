// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exclusives and atomics on one thread: architected results, and interleavings
 * of two vCPUs written down step by step.
 */
#include "exclusive_fixture.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>

static struct exclusives *ex;
static struct cpu a, b;
static _Alignas(16) uint64_t cell[8];

static void setup(void)
{
    ex = exclusives_new();
    ck_assert_ptr_nonnull(ex);
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    memset(cell, 0, sizeof(cell));
    a.ex = b.ex = ex;
}

static void teardown(void)
{
    exclusives_free(ex);
}

static void run(struct cpu *cpu, uint32_t word, void *host)
{
    ck_assert_int_eq(cpu_run(cpu, word, host), ATOMIC_DONE);
}

static uint64_t status_of(struct cpu *cpu, uint32_t word, void *host)
{
    cpu->x[4] = 77;
    run(cpu, word, host);
    return cpu->x[4];
}

START_TEST(a_store_exclusive_needs_an_armed_monitor_and_uses_it_up)
{
    a.x[2] = 5;
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
    ck_assert_uint_eq(cell[0], 0);
    cell[0] = 41;
    run(&a, LDXR_X, cell);
    ck_assert_uint_eq(a.x[2], 41);
    a.x[2] = 42;
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 0);
    ck_assert_uint_eq(cell[0], 42);
    a.x[2] = 43;
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
    ck_assert_uint_eq(cell[0], 42);
}
END_TEST

START_TEST(every_size_stores_its_own_bytes_only)
{
    static const struct {
        uint32_t load, store;
        unsigned bytes;
    } sizes[] = {{LDXRB, STXRB, 1},
                 {LDXRH, STXRH, 2},
                 {LDXR_W, STXR_W, 4},
                 {LDXR_X, STXR_X, 8}};

    for (unsigned i = 0; i < 4; i++) {
        uint64_t value = UINT64_C(0x8182838485868788), want = 0;

        cell[0] = UINT64_MAX;
        run(&a, sizes[i].load, cell);
        memcpy(&want, cell, sizes[i].bytes);
        ck_assert_uint_eq(a.x[2], want);
        a.x[2] = value;
        ck_assert_uint_eq(status_of(&a, sizes[i].store, cell), 0);
        want = UINT64_MAX;
        memcpy(&want, &value, sizes[i].bytes);
        ck_assert_uint_eq(cell[0], want);
    }
}
END_TEST

START_TEST(another_address_or_size_fails)
{
    run(&a, LDXR_X, cell);
    ck_assert_uint_eq(status_of(&a, STXR_X, cell + 1), 1);
    run(&a, LDXR_X, cell);
    ck_assert_uint_eq(status_of(&a, STXR_W, cell), 1);
    /* The failure has opened the monitor. */
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
}
END_TEST

START_TEST(clrex_and_exception_return_open_the_monitor)
{
    run(&a, LDXR_X, cell);
    run(&a, CLREX, NULL);
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
    run(&a, LDXR_X, cell);
    exclusive_state_clear(&a.state);
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
}
END_TEST

/* Each writes 9 and then 5 again, by another vCPU. */
static void aba_by_stlr(void)
{
    b.x[2] = 9;
    run(&b, STLR_X, cell);
    b.x[2] = 5;
    run(&b, STLR_X, cell);
}

static void aba_by_stxr(void)
{
    for (unsigned i = 0; i < 2; i++) {
        run(&b, LDXR_X, cell);
        b.x[2] = i ? 5 : 9;
        ck_assert_uint_eq(status_of(&b, STXR_X, cell), 0);
    }
}

static void aba_by_ldadd(void)
{
    b.x[3] = 4;
    run(&b, LDADDAL_X, cell);
    b.x[3] = (uint64_t)-4;
    run(&b, STADD_X, cell);
}

static void aba_by_swp_and_cas(void)
{
    b.x[3] = 9;
    run(&b, SWPAL_X, cell);
    b.x[3] = 9; /* compare */
    b.x[2] = 5;
    run(&b, CASAL_X, cell);
}

static void aba_by_casp(void)
{
    b.x[4] = 5;
    b.x[5] = 0;
    b.x[2] = 9;
    b.x[3] = 0;
    run(&b, CASPAL_X, cell);
    b.x[4] = 9;
    b.x[2] = 5;
    run(&b, CASPAL_X, cell);
}

static void aba_by_a_smaller_store(void)
{
    b.x[2] = 9;
    run(&b, STLR_W, cell);
    b.x[2] = 5;
    run(&b, STLR_W, cell);
}

START_TEST(a_store_exclusive_fails_after_5_9_5)
{
    static void (*const writers[])(void) = {
        aba_by_stlr,        aba_by_stxr, aba_by_ldadd,
        aba_by_swp_and_cas, aba_by_casp, aba_by_a_smaller_store};

    cell[0] = 5;
    run(&a, LDXR_X, cell);
    writers[_i]();
    ck_assert_uint_eq(cell[0], 5);
    a.x[2] = 6;
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
    ck_assert_uint_eq(cell[0], 5);
}
END_TEST

START_TEST(a_plain_store_is_seen_by_its_value_only)
{
    cell[0] = 5;
    run(&a, LDXR_X, cell);
    cell[0] = 9;
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
    cell[0] = 5;
    run(&a, LDXR_X, cell);
    cell[0] = 9;
    cell[0] = 5; /* the documented limit */
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 0);
}
END_TEST

START_TEST(a_failed_compare_or_store_of_another_vcpu_disturbs_nobody)
{
    cell[0] = 5;
    run(&a, LDXR_X, cell);
    b.x[3] = 1; /* compare */
    run(&b, CASAL_X, cell);
    ck_assert_uint_eq(b.x[3], 5);
    ck_assert_uint_eq(status_of(&b, STXR_X, cell), 1);
    run(&b, LDXR_X, cell);
    run(&b, LDAR_X, cell);
    ck_assert(exclusive_state_holds(ex, &a.state));
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 0);
}
END_TEST

START_TEST(pairs_of_words_are_one_doubleword)
{
    cell[0] = UINT64_C(0x1111111122222222);
    run(&a, LDXP_W, cell);
    ck_assert_uint_eq(a.x[2], 0x22222222);
    ck_assert_uint_eq(a.x[3], 0x11111111);
    a.x[2] = UINT64_C(0xdead00000003);
    a.x[3] = UINT64_C(0xbeef00000004);
    ck_assert_uint_eq(status_of(&a, STXP_W, cell), 0);
    ck_assert_uint_eq(cell[0], UINT64_C(0x0000000400000003));
    ck_assert_uint_eq(cell[1], 0);
}
END_TEST

START_TEST(pairs_of_doublewords_compare_both_halves)
{
    cell[0] = 1;
    cell[1] = 2;
    run(&a, LDXP_X, cell);
    ck_assert_uint_eq(a.x[2], 1);
    ck_assert_uint_eq(a.x[3], 2);
    a.x[2] = 3;
    a.x[3] = 4;
    ck_assert_uint_eq(status_of(&a, STLXP_X, cell), 0);
    ck_assert_uint_eq(cell[0], 3);
    ck_assert_uint_eq(cell[1], 4);
    run(&a, LDXP_X, cell);
    cell[1] = 5;
    ck_assert_uint_eq(status_of(&a, STLXP_X, cell), 1);
    /* A trapped write to the other half shares the granule. */
    run(&a, LDXP_X, cell);
    b.x[2] = 5;
    run(&b, STLR_X, cell + 1);
    ck_assert_uint_eq(status_of(&a, STLXP_X, cell), 1);
}
END_TEST

START_TEST(lse_operations_have_the_architected_results)
{
    static const struct {
        enum lse_op op;
        unsigned log2;
        uint64_t old, operand, new;
    } cases[] = {
        {LSE_ADD, 0, 0xff, 2, 0x01},
        {LSE_ADD, 3, UINT64_MAX, 2, 1},
        {LSE_CLR, 1, 0xffff, 0x0ff0, 0xf00f},
        {LSE_EOR, 2, 0xffff0000, 0x00ffff00, 0xff00ff00},
        {LSE_SET, 3, 0xf0, UINT64_C(1) << 63, UINT64_C(1) << 63 | 0xf0},
        {LSE_SMAX, 0, 0x80, 0x7f, 0x7f},
        {LSE_SMAX, 1, 0x8000, 0xffff, 0xffff},
        {LSE_SMIN, 0, 0x80, 0x7f, 0x80},
        {LSE_SMIN, 2, 0x80000000, 1, 0x80000000},
        {LSE_SMIN, 3, 1, UINT64_MAX, UINT64_MAX},
        {LSE_UMAX, 0, 0x80, 0x7f, 0x80},
        {LSE_UMAX, 3, 1, UINT64_MAX, UINT64_MAX},
        {LSE_UMIN, 2, 0x80000000, 1, 1},
        {LSE_SWP, 1, 0x1234, 0xabcd, 0xabcd},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned bytes = 1u << cases[i].log2;
        /* LD<op> x3, x2, [x1] */
        uint32_t word = 0x38230022 | cases[i].log2 << 30 | cases[i].op << 12;
        uint64_t want = UINT64_C(0x5555555555555555);

        cell[0] = want;
        memcpy(cell, &cases[i].old, bytes);
        memcpy(&want, &cases[i].new, bytes);
        /* Bits above the size must not count. */
        a.x[3] = bytes == 8 ? cases[i].operand
                            : cases[i].operand | UINT64_MAX << bytes * 8;
        run(&a, word, cell);
        ck_assert_msg(cell[0] == want, "case %u: 0x%" PRIx64, i, cell[0]);
        ck_assert_msg(a.x[2] == cases[i].old, "case %u", i);
    }
}
END_TEST

START_TEST(a_lse_load_into_the_zero_register_is_a_store)
{
    a.x[3] = 7;
    run(&a, STADD_X, cell);
    ck_assert_uint_eq(cell[0], 7);
    ck_assert_uint_eq(a.x[31], 0);
}
END_TEST

START_TEST(compare_and_swap_returns_what_was_there)
{
    cell[0] = UINT64_C(0xaaaaaaaa12345678);
    a.x[3] = UINT64_C(0xffffffff12345678); /* only the low half counts */
    a.x[2] = 1;
    run(&a, CAS_W, cell);
    ck_assert_uint_eq(cell[0], UINT64_C(0xaaaaaaaa00000001));
    ck_assert_uint_eq(a.x[3], 0x12345678);
    a.x[3] = 0x77;
    run(&a, CASB, cell);
    ck_assert_uint_eq(cell[0], UINT64_C(0xaaaaaaaa00000001));
    ck_assert_uint_eq(a.x[3], 1);
}
END_TEST

START_TEST(compare_and_swap_of_pairs)
{
    cell[0] = 1;
    cell[1] = 2;
    a.x[4] = 1;
    a.x[5] = 3; /* differs */
    a.x[2] = 10;
    a.x[3] = 11;
    run(&a, CASPAL_X, cell);
    ck_assert_uint_eq(cell[0], 1);
    ck_assert_uint_eq(a.x[4], 1);
    ck_assert_uint_eq(a.x[5], 2);
    run(&a, CASPAL_X, cell);
    ck_assert_uint_eq(cell[0], 10);
    ck_assert_uint_eq(cell[1], 11);

    cell[0] = UINT64_C(0x0000000200000001);
    a.x[4] = 1;
    a.x[5] = 2;
    run(&a, CASP_W, cell);
    ck_assert_uint_eq(cell[0], UINT64_C(0x0000000b0000000a));
    ck_assert_uint_eq(cell[1], 11);
    ck_assert_uint_eq(a.x[4], 1);
    ck_assert_uint_eq(a.x[5], 2);

    cell[0] = 6;
    cell[1] = 0;
    a.x[30] = 6;
    a.x[31] = 99; /* the stack pointer, not XZR */
    run(&a, CASP_X_ZERO, cell);
    ck_assert_uint_eq(cell[0], 10);
    ck_assert_uint_eq(cell[1], 11);
    ck_assert_uint_eq(a.x[31], 99);
}
END_TEST

START_TEST(load_acquire_extends_and_store_release_truncates)
{
    cell[0] = UINT64_C(0x1122334495969798);
    run(&a, LDAR_W, cell);
    ck_assert_uint_eq(a.x[2], 0x95969798);
    run(&a, LDAPURSB_W, cell);
    ck_assert_uint_eq(a.x[2], 0xffffff98);
    run(&a, LDAPURSB_X, cell);
    ck_assert_uint_eq(a.x[2], UINT64_C(0xffffffffffffff98));
    run(&a, LDAPURSH_W, cell);
    ck_assert_uint_eq(a.x[2], 0xffff9798);
    run(&a, LDAPURSW, cell);
    ck_assert_uint_eq(a.x[2], UINT64_C(0xffffffff95969798));
    a.x[2] = UINT64_MAX;
    cell[0] = 0;
    run(&a, STLR_W, cell);
    ck_assert_uint_eq(cell[0], 0xffffffff);
}
END_TEST

START_TEST(an_unaligned_atomic_does_nothing)
{
    static const uint32_t words[] = {LDXR_X, LDADDAL_X, CASAL_X, STLUR_X_1,
                                     LDAR_X};

    a.x[2] = a.x[3] = UINT64_MAX;
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        ck_assert_int_eq(cpu_run(&a, words[i], (char *)cell + 1),
                         ATOMIC_UNALIGNED);
    }
    ck_assert_int_eq(cpu_run(&a, LDXP_X, cell + 1), ATOMIC_UNALIGNED);
    ck_assert_int_eq(cpu_run(&a, CASPAL_X, cell + 1), ATOMIC_UNALIGNED);
    ck_assert_uint_eq(cell[0] | cell[1], 0);
    ck_assert(!a.state.armed);
    ck_assert_int_eq(cpu_run(&a, DMB_ISH, cell), ATOMIC_NOT_AN_ATOMIC);
}
END_TEST

START_TEST(a_waiter_notices_a_write_to_what_it_monitors)
{
    ck_assert(!exclusive_state_holds(ex, &a.state));
    run(&a, LDAXR_W, cell);
    ck_assert(exclusive_state_holds(ex, &a.state));
    cell[0] = UINT64_C(1) << 32; /* the word beside it */
    ck_assert(exclusive_state_holds(ex, &a.state));
    cell[0] = 1;
    ck_assert(!exclusive_state_holds(ex, &a.state));
    run(&a, LDAXR_W, cell);
    b.x[2] = 1;
    run(&b, STLR_W, cell); /* the same value, but a write */
    ck_assert(!exclusive_state_holds(ex, &a.state));
}
END_TEST

START_TEST(a_write_of_the_vmm_clears_monitors_of_its_range)
{
    uint64_t gpa = (uint64_t)(uintptr_t)cell;

    run(&a, LDXR_X, cell + 3);
    exclusives_note_write(ex, gpa + 4, 0);
    ck_assert(exclusive_state_holds(ex, &a.state));
    exclusives_note_write(ex, gpa + 4, 21); /* up to byte 24 */
    ck_assert_uint_eq(status_of(&a, STXR_X, cell + 3), 1);
    run(&a, LDXR_X, cell);
    exclusives_note_write(ex, gpa & ~UINT64_C(0xfffff), 1 << 21);
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 1);
}
END_TEST

START_TEST(two_machines_share_nothing)
{
    struct exclusives *other = exclusives_new();

    b.ex = other;
    cell[0] = 5;
    run(&a, LDXR_X, cell);
    aba_by_stlr();
    ck_assert_uint_eq(status_of(&a, STXR_X, cell), 0);
    exclusives_free(other);
    exclusives_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exclusive");
    TCase *tcase = tcase_create("results");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 30);
    tcase_add_test(tcase,
                   a_store_exclusive_needs_an_armed_monitor_and_uses_it_up);
    tcase_add_test(tcase, every_size_stores_its_own_bytes_only);
    tcase_add_test(tcase, another_address_or_size_fails);
    tcase_add_test(tcase, clrex_and_exception_return_open_the_monitor);
    tcase_add_loop_test(tcase, a_store_exclusive_fails_after_5_9_5, 0, 6);
    tcase_add_test(tcase, a_plain_store_is_seen_by_its_value_only);
    tcase_add_test(tcase,
                   a_failed_compare_or_store_of_another_vcpu_disturbs_nobody);
    tcase_add_test(tcase, pairs_of_words_are_one_doubleword);
    tcase_add_test(tcase, pairs_of_doublewords_compare_both_halves);
    tcase_add_test(tcase, lse_operations_have_the_architected_results);
    tcase_add_test(tcase, a_lse_load_into_the_zero_register_is_a_store);
    tcase_add_test(tcase, compare_and_swap_returns_what_was_there);
    tcase_add_test(tcase, compare_and_swap_of_pairs);
    tcase_add_test(tcase, load_acquire_extends_and_store_release_truncates);
    tcase_add_test(tcase, an_unaligned_atomic_does_nothing);
    tcase_add_test(tcase, a_waiter_notices_a_write_to_what_it_monitors);
    tcase_add_test(tcase, a_write_of_the_vmm_clears_monitors_of_its_range);
    tcase_add_test(tcase, two_machines_share_nothing);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
