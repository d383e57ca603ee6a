/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: all entries of a TLB that match one address. */
#include <check.h>
#include <stdlib.h>

#include "mmu/tlb.h"

#define VA UINT64_C(0x40000000)

static struct tlb *tlb;

static void setup(void)
{
    static const struct tlb_config config = {.sets = 4, .ways = 8};

    tlb = tlb_new(&config);
    ck_assert_ptr_nonnull(tlb);
}

static void teardown(void)
{
    tlb_free(tlb);
}

static void put(gva_t va, uint16_t asid, gpa_t base, unsigned shift,
                bool global)
{
    struct translation t = {.base = base,
                            .page_shift = (uint8_t)shift,
                            .level = (uint8_t)((39 - shift) / 9),
                            .perms = PERM_R1,
                            .global = global};

    ck_assert_ptr_nonnull(tlb_insert(tlb, va, asid, &t, NULL));
}

static void put_all_six(void)
{
    put(VA, 1, 0x5000000, 30, true);
    put(VA, 1, 0x4000000, 30, false);
    put(VA, 1, 0x3000000, 21, false);
    put(VA, 1, 0x2000000, 21, true);
    put(VA, 1, 0x1000000, 12, true);
    put(VA, 1, 0x0000000, 12, false);
}

START_TEST(one_entry_matches_or_none)
{
    struct tlb_entry *out[TLB_MATCHING_MAX];

    put(VA, 1, 0x1000, 12, false);
    ck_assert_uint_eq(tlb_matching(tlb, VA, 1, out, TLB_MATCHING_MAX), 1);
    ck_assert_ptr_eq(out[0], tlb_peek(tlb, VA, 1));
    ck_assert_uint_eq(tlb_matching(tlb, VA, 2, out, TLB_MATCHING_MAX), 0);
    ck_assert_uint_eq(tlb_matching(tlb, VA + 0x1000, 1, out, 6), 0);
    ck_assert_uint_eq(tlb_matching(tlb, VA | UINT64_C(1) << 50, 1, out, 6), 0);
    ck_assert_uint_eq(tlb_matching(tlb, VA, 1, out, 0), 0);
}
END_TEST

START_TEST(all_sizes_global_and_not_come_in_the_order_of_lookups)
{
    struct tlb_entry *out[TLB_MATCHING_MAX + 1];

    put_all_six();
    /* Strangers: another ASID, another page. */
    put(VA, 2, 0x9000000, 12, false);
    put(VA + 0x1000, 1, 0x9000000, 12, false);
    ck_assert_uint_eq(tlb_matching(tlb, VA, 1, out, TLB_MATCHING_MAX + 1),
                      TLB_MATCHING_MAX);
    /* Each is what a lookup gives when those before it are gone. */
    for (unsigned i = 0; i < TLB_MATCHING_MAX; i++) {
        ck_assert_ptr_eq(out[i], tlb_lookup(tlb, VA, 1));
        tlb_drop(tlb, out[i]);
    }
    ck_assert_ptr_null(tlb_lookup(tlb, VA, 1));
    ck_assert_uint_eq(tlb_occupancy(tlb), 2);
}
END_TEST

START_TEST(no_more_than_asked_for_are_written)
{
    struct tlb_entry *out[TLB_MATCHING_MAX];

    put_all_six();
    for (unsigned max = 0; max <= TLB_MATCHING_MAX; max++) {
        for (unsigned i = 0; i < TLB_MATCHING_MAX; i++) {
            out[i] = NULL;
        }
        ck_assert_uint_eq(tlb_matching(tlb, VA, 1, out, max), max);
        for (unsigned i = 0; i < TLB_MATCHING_MAX; i++) {
            ck_assert_int_eq(out[i] != NULL, i < max);
        }
    }
}
END_TEST

START_TEST(a_page_inside_a_block_matches_only_at_its_own_address)
{
    struct tlb_entry *out[TLB_MATCHING_MAX];

    put(VA, 1, 0x40000000, 21, false);
    put(VA + 0x3000, 1, 0x1000, 12, false);
    ck_assert_uint_eq(tlb_matching(tlb, VA + 0x3abc, 1, out, 6), 2);
    ck_assert_uint_eq(out[0]->t.page_shift, 12);
    ck_assert_uint_eq(out[1]->t.page_shift, 21);
    ck_assert_uint_eq(tlb_matching(tlb, VA + 0x4000, 1, out, 6), 1);
    ck_assert_uint_eq(out[0]->t.page_shift, 21);
}
END_TEST

START_TEST(looking_changes_neither_counters_nor_who_is_evicted)
{
    static const struct tlb_config config = {.sets = 1, .ways = 2};
    struct tlb *small = tlb_new(&config);
    struct translation t = {.page_shift = 12, .level = 3};
    struct tlb_entry *out[TLB_MATCHING_MAX], gone;
    struct tlb_counters before;

    ck_assert_ptr_nonnull(tlb_insert(small, 0x1000, 1, &t, NULL));
    ck_assert_ptr_nonnull(tlb_insert(small, 0x2000, 1, &t, NULL));
    before = *tlb_counters(small);
    ck_assert_uint_eq(tlb_matching(small, 0x1000, 1, out, 6), 1);
    ck_assert_uint_eq(tlb_counters(small)->lookups, before.lookups);
    ck_assert_uint_eq(tlb_counters(small)->hits, before.hits);
    /* Under LRU a lookup would have spared it. */
    ck_assert_ptr_nonnull(tlb_insert(small, 0x3000, 1, &t, &gone));
    ck_assert_uint_eq(gone.va, 0x1000);
    tlb_free(small);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tlb_matching");
    TCase *tc = tcase_create("tlb_matching");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_entry_matches_or_none);
    tcase_add_test(tc, all_sizes_global_and_not_come_in_the_order_of_lookups);
    tcase_add_test(tc, no_more_than_asked_for_are_written);
    tcase_add_test(tc, a_page_inside_a_block_matches_only_at_its_own_address);
    tcase_add_test(tc, looking_changes_neither_counters_nor_who_is_evicted);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
