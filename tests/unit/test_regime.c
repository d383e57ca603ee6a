/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: the decoded EL1&0 regime. */
#include <check.h>
#include <stdlib.h>

#include "mmu/regime.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static struct regime decode(uint64_t tcr, uint64_t ttbr0, uint64_t ttbr1)
{
    struct regime regime;

    regime_decode(&regime, SCTLR_M, tcr, ttbr0, ttbr1);
    return regime;
}

static const struct {
    unsigned tsz;
    bool valid;
    unsigned level;
    uint64_t base; /* of an all-ones TTBR address field, 48-bit output */
} start_cases[] = {
    {15, false, 0, 0},
    {16, true, 0, 0xfffffffff000},
    {17, true, 0, 0xfffffffff800},
    {24, true, 0, 0xfffffffffff0},
    {25, true, 1, 0xfffffffff000},
    {32, true, 1, 0xffffffffffe0},
    {33, true, 1, 0xfffffffffff0},
    {34, true, 2, 0xfffffffff000},
    {39, true, 2, 0xffffffffff80},
    {42, true, 2, 0xfffffffffff0},
    {43, true, 3, 0xfffffffff000},
    {48, true, 3, 0xffffffffff80},
    {49, false, 0, 0},
    {63, false, 0, 0},
};

START_TEST(tsz_gives_the_start_level_and_the_alignment_of_the_first_table)
{
    unsigned tsz = start_cases[_i].tsz;
    uint64_t tcr = (uint64_t)tsz << TCR_T0SZ_SHIFT |
                   (uint64_t)tsz << TCR_T1SZ_SHIFT |
                   UINT64_C(5) << TCR_IPS_SHIFT;
    struct regime r =
        decode(tcr, UINT64_C(0x0000ffffffffffff), UINT64_C(0x0000ffffffffffff));

    for (unsigned half = 0; half < 2; half++) {
        ck_assert_msg(r.half[half].tsz_valid == start_cases[_i].valid,
                      "TxSZ %u: valid %d", tsz, r.half[half].tsz_valid);
        if (start_cases[_i].valid) {
            ck_assert_uint_eq(r.half[half].start_level, start_cases[_i].level);
            ck_assert_uint_eq(r.half[half].base, start_cases[_i].base);
        }
    }
}
END_TEST

static const struct {
    uint64_t tcr;
    uint16_t asid;
} asid_cases[] = {
    {0, 0x34},
    {TCR_AS, 0x1234},
    {TCR_A1, 0x78},
    {TCR_A1 | TCR_AS, 0x5678},
};

START_TEST(asid_comes_from_the_ttbr_that_a1_names_with_the_width_of_as)
{
    struct regime r = decode(asid_cases[_i].tcr, UINT64_C(0x1234) << 48,
                             UINT64_C(0x5678) << 48);

    ck_assert_uint_eq(r.asid, asid_cases[_i].asid);
    ck_assert_uint_eq(r.asid16, (asid_cases[_i].tcr & TCR_AS) != 0);
}
END_TEST

static const unsigned ips_bits[8] = {32, 36, 40, 42, 44, 48, 48, 48};

START_TEST(ips_gives_the_output_size_and_the_limit_of_the_base)
{
    uint64_t tcr =
        UINT64_C(16) | UINT64_C(16) << 16 | (uint64_t)_i << TCR_IPS_SHIFT;
    unsigned bits = ips_bits[_i];
    struct regime r =
        decode(tcr, (UINT64_C(1) << (bits - 1)), UINT64_C(1) << 47);

    ck_assert_uint_eq(r.pa_bits, bits);
    ck_assert(r.half[0].base_fits);
    ck_assert_int_eq(r.half[1].base_fits, bits == 48);
}
END_TEST

START_TEST(bits_of_each_half_are_kept_apart)
{
    static const struct {
        uint64_t tcr0, tcr1;
        size_t offset;
    } bits[] = {
        {TCR_EPD0, TCR_EPD1, offsetof(struct regime_half, epd)},
        {TCR_TBI0, TCR_TBI1, offsetof(struct regime_half, tbi)},
        {TCR_HPD0, TCR_HPD1, offsetof(struct regime_half, hpd)},
    };

    for (int i = 0; i < COUNT(bits); i++) {
        for (unsigned half = 0; half < 2; half++) {
            struct regime r = decode(half ? bits[i].tcr1 : bits[i].tcr0, 0, 0);
            const char *own = (const char *)&r.half[half];
            const char *other = (const char *)&r.half[!half];

            ck_assert_int_eq(own[bits[i].offset], 1);
            ck_assert_int_eq(other[bits[i].offset], 0);
        }
    }
}
END_TEST

START_TEST(mmu_and_wxn_come_from_sctlr)
{
    struct regime r;

    regime_decode(&r, 0, 0, 0, 0);
    ck_assert(!r.mmu_on && !r.wxn);
    regime_decode(&r, SCTLR_M, 0, 0, 0);
    ck_assert(r.mmu_on && !r.wxn);
    regime_decode(&r, SCTLR_WXN, 0, 0, 0);
    ck_assert(!r.mmu_on && r.wxn);
}
END_TEST

static const struct {
    uint64_t tcr;
    bool ha, hd;
} hafdbs_cases[] = {
    {0, false, false},
    {TCR_HA, true, false},
    {TCR_HD, false, false},
    {TCR_HA | TCR_HD, true, true},
    {~(TCR_HA | TCR_HD), false, false},
};

START_TEST(dirty_state_is_managed_only_together_with_the_access_flag)
{
    struct regime r = decode(hafdbs_cases[_i].tcr, 0, 0);

    ck_assert_int_eq(r.ha, hafdbs_cases[_i].ha);
    ck_assert_int_eq(r.hd, hafdbs_cases[_i].hd);
}
END_TEST

#define TBI_NONE 0
#define TBI_LOW TCR_TBI0
#define TBI_HIGH TCR_TBI1

static const struct {
    const char *name;
    unsigned tsz;
    uint64_t tbi;
    gva_t va, canonical;
    int half; /* -1: neither */
} select_cases[] = {
    {"zero is low", 16, TBI_NONE, 0, 0, 0},
    {"the last low address", 16, TBI_NONE, 0xffffffffffff, 0xffffffffffff, 0},
    {"one past the low half", 16, TBI_NONE, UINT64_C(1) << 48,
     UINT64_C(1) << 48, -1},
    {"the first high address", 16, TBI_NONE, 0xffff000000000000,
     0xffff000000000000, 1},
    {"one below the high half", 16, TBI_NONE, 0xfffeffffffffffff,
     0xfffeffffffffffff, -1},
    {"a low tag without TBI", 16, TBI_HIGH, 0x0100000000001000,
     0x0100000000001000, -1},
    {"a low tag with TBI", 16, TBI_LOW, 0xa500000000001000, 0x1000, 0},
    {"a high tag without TBI", 16, TBI_LOW, 0x12ff000000001000,
     0x12ff000000001000, -1},
    {"a high tag with TBI", 16, TBI_HIGH, 0x12ff000000001000,
     0xffff000000001000, 1},
    {"bit 55 against the others", 16, TBI_NONE, UINT64_C(1) << 55,
     UINT64_C(1) << 55, -1},
    {"bit 55 alone with TBI", 16, TBI_HIGH, UINT64_C(1) << 55,
     0xff80000000000000, -1},
    {"TBI does not free bit 54", 16, TBI_LOW, UINT64_C(1) << 54,
     UINT64_C(1) << 54, -1},
    {"the last of 39 bits", 25, TBI_NONE, 0x7fffffffff, 0x7fffffffff, 0},
    {"past 39 bits", 25, TBI_NONE, 0x8000000000, 0x8000000000, -1},
    {"the first of the high 39 bits", 25, TBI_NONE, 0xffffff8000000000,
     0xffffff8000000000, 1},
    {"below the high 39 bits", 25, TBI_NONE, 0xffffff7fffffffff,
     0xffffff7fffffffff, -1},
    {"any address of a reserved TxSZ", 15, TBI_NONE, 0, 0, -1},
};

START_TEST(addresses_select_a_half_or_none)
{
    uint64_t tcr = (uint64_t)select_cases[_i].tsz |
                   (uint64_t)select_cases[_i].tsz << 16 | select_cases[_i].tbi;
    struct regime r = decode(tcr, 0, 0);
    const struct regime_half *half = NULL;
    bool found = regime_select(&r, select_cases[_i].va, &half);

    ck_assert_msg(regime_canonical(&r, select_cases[_i].va) ==
                      select_cases[_i].canonical,
                  "%s: canonical", select_cases[_i].name);
    ck_assert_msg(found == (select_cases[_i].half >= 0), "%s: found",
                  select_cases[_i].name);
    if (found) {
        ck_assert_msg(half == &r.half[select_cases[_i].half], "%s: half",
                      select_cases[_i].name);
    } else {
        ck_assert_msg(half == NULL, "%s: written on failure",
                      select_cases[_i].name);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("regime");
    TCase *tc = tcase_create("decode");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(
        tc, tsz_gives_the_start_level_and_the_alignment_of_the_first_table, 0,
        COUNT(start_cases));
    tcase_add_loop_test(
        tc, asid_comes_from_the_ttbr_that_a1_names_with_the_width_of_as, 0,
        COUNT(asid_cases));
    tcase_add_loop_test(tc, ips_gives_the_output_size_and_the_limit_of_the_base,
                        0, 8);
    tcase_add_test(tc, bits_of_each_half_are_kept_apart);
    tcase_add_test(tc, mmu_and_wxn_come_from_sctlr);
    tcase_add_loop_test(
        tc, dirty_state_is_managed_only_together_with_the_access_flag, 0,
        COUNT(hafdbs_cases));
    tcase_add_loop_test(tc, addresses_select_a_half_or_none, 0,
                        COUNT(select_cases));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
