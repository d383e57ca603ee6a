/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults put into the TLB: their names, and what each does to an operation. By
 * how much a TLB then differs is shown with a real one. Which guest programs
 * notice is tests/system/inject.py's business.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "mmu/inject.h"
#include "mmu/tlb.h"

#define VA UINT64_C(0x400003000)

static struct tlb *filled(void)
{
    const struct tlb_config config = {
        .sets = 16, .ways = 4, .walk_cache_entries = 8};
    const struct translation page = {
        .base = 0x5000, .page_shift = 12, .level = 3, .perms = PERM_ALL};
    const struct walk_cache_entry table = {
        .va = VA, .next_table = 0x9000, .asid = 5, .level = 2};
    struct tlb *tlb = tlb_new(&config);

    ck_assert_ptr_nonnull(tlb);
    ck_assert_ptr_nonnull(tlb_insert(tlb, VA, 5, &page, NULL));
    walk_cache_insert(tlb_walk_cache(tlb), &table);
    return tlb;
}

/* What is left: bit 0 the page, bit 1 the table. */
static unsigned left_by(unsigned bits, struct tlbi_op op, bool is_own)
{
    struct tlb *tlb = filled();
    unsigned left;

    if (!bits || inject_tlbi(bits, &op, is_own)) {
        (void)tlb_invalidate(tlb, &op, NULL, NULL);
    }
    left = tlb_peek(tlb, VA, 5) ? 1 : 0;
    left |= walk_cache_occupancy(tlb_walk_cache(tlb)) ? 2 : 0;
    tlb_free(tlb);
    return left;
}

static const struct tlbi_op by_va = {
    .kind = TLBI_VA, .scope = TLBI_IS, .asid = 5, .va = VA, .size = 4096};
static const struct tlbi_op by_hint = {.kind = TLBI_VA,
                                       .scope = TLBI_IS,
                                       .asid = 5,
                                       .va = VA,
                                       .size = 4096,
                                       .ttl_level = 3};
static const struct tlbi_op by_asid = {
    .kind = TLBI_ASID, .scope = TLBI_LOCAL, .asid = 5};
static const struct tlbi_op all = {.kind = TLBI_ALL, .scope = TLBI_IS};

START_TEST(every_fault_makes_some_operation_remove_less)
{
    const struct {
        enum inject inject;
        const struct tlbi_op *op;
        bool is_own;
        unsigned left;
    } rows[] = {
        {INJECT_TLBI_NOTHING, &all, false, 3},
        {INJECT_TLBI_NOTHING, &by_va, true, 3},
        {INJECT_OWN_NOT_FLUSHED, &all, true, 3},
        {INJECT_OWN_NOT_FLUSHED, &all, false, 0},
        {INJECT_OWN_NOT_FLUSHED, &by_asid, true, 3},
        {INJECT_TTL_OTHER, &by_hint, false, 3},
        {INJECT_TTL_OTHER, &by_va, false, 0},
        {INJECT_ASID_OTHER, &by_va, false, 3},
        {INJECT_ASID_OTHER, &by_asid, false, 3},
        {INJECT_ASID_OTHER, &all, false, 0},
        {INJECT_TABLES_KEPT, &all, false, 2},
        {INJECT_TABLES_KEPT, &by_asid, false, 2},
        {INJECT_TABLES_KEPT, &by_va, false, 2},
        /* These are not about what an operation removes. */
        {INJECT_BROADCAST_LOST, &all, false, 0},
        {INJECT_FAULTING_CACHED, &all, true, 0},
        {INJECT_WRONG_COMPLETER, &all, true, 0},
        {INJECT_ISH_AS_NSH, &all, false, 0},
        {INJECT_NSH_AS_ISH, &all, false, 0},
    };

    ck_assert_uint_eq(left_by(0, by_va, true), 0);
    ck_assert_uint_eq(left_by(0, by_hint, true), 0);
    ck_assert_uint_eq(left_by(0, by_asid, true), 0);
    ck_assert_uint_eq(left_by(0, all, true), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned left =
            left_by(INJECT_BIT(rows[i].inject), *rows[i].op, rows[i].is_own);

        ck_assert_msg(left == rows[i].left, "row %zu, %s: %u is left", i,
                      inject_name(rows[i].inject), left);
    }
}
END_TEST

START_TEST(a_hint_is_always_read_as_another_level)
{
    for (uint8_t level = 1; level <= 3; level++) {
        struct tlbi_op op = by_hint;

        op.ttl_level = level;
        ck_assert(inject_tlbi(INJECT_BIT(INJECT_TTL_OTHER), &op, false));
        ck_assert_uint_ne(op.ttl_level, level);
        ck_assert_uint_ge(op.ttl_level, 1);
        ck_assert_uint_le(op.ttl_level, 3);
    }
}
END_TEST

START_TEST(names_are_read_one_or_several_or_refused)
{
    unsigned bits = 77;
    char all_names[512] = "";

    for (unsigned i = 0; i < INJECTS; i++) {
        ck_assert(inject_parse(inject_name((enum inject)i), &bits));
        ck_assert_uint_eq(bits, INJECT_BIT(i));
        ck_assert_uint_gt(strlen(inject_text((enum inject)i)), 0);
        strcat(strcat(all_names, i ? "," : ""), inject_name((enum inject)i));
    }
    ck_assert(inject_parse(all_names, &bits));
    ck_assert_uint_eq(bits, INJECT_BIT(INJECTS) - 1);
    bits = 77;
    ck_assert(!inject_parse("", &bits));
    ck_assert(!inject_parse("tlbi-nothing,", &bits));
    ck_assert(!inject_parse("tlbi", &bits));
    ck_assert(!inject_parse("tlbi-nothings", &bits));
    ck_assert(!inject_parse("tlbi-nothing;", &bits));
    ck_assert_uint_eq(bits, 77);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inject");
    TCase *tc = tcase_create("core");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 10);
    tcase_add_test(tc, every_fault_makes_some_operation_remove_less);
    tcase_add_test(tc, a_hint_is_always_read_as_another_level);
    tcase_add_test(tc, names_are_read_one_or_several_or_refused);
    suite_add_tcase(suite, tc);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
