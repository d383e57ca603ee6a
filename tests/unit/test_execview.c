/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Execution views: content, invalidation, variants, a full region. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "execview.h"

#define PAGES 64u
#define SLOTS 16u
#define NOP 0xd503201fu
#define LDXR 0xc85f7c20u /* ldxr x0, [x1] */
#define DSB_ISH 0xd5033b9fu
#define ERET 0xd69f03e0u
#define FADD 0x1e602800u  /* fadd d0, d0, d0 */
#define LDR_Q 0x3dc00020u /* ldr q0, [x1] */
/* AdvSIMD three same, half precision, with an opcode that nothing has. */
#define UNALLOCATED_HALF 0x0e402c00u

static struct exec_views *views;
static struct disas *disas;
static uint32_t ram[PAGES][EXEC_VIEW_WORDS];

static void setup(void)
{
    views = exec_views_new(PAGES, SLOTS, NULL);
    disas = disas_new();
    ck_assert(views && disas);
    for (unsigned p = 0; p < PAGES; p++) {
        for (unsigned i = 0; i < EXEC_VIEW_WORDS; i++) {
            ram[p][i] = NOP;
        }
    }
}

static void teardown(void)
{
    exec_views_free(views);
    disas_free(disas);
}

static const struct exec_view *get(unsigned page)
{
    bool made;

    return exec_views_get(views, page, ram[page], disas, &made);
}

static uint32_t slot_word(gpa_t slot, unsigned index)
{
    const uint32_t *host = exec_views_host(views);

    return host[(slot - EXEC_VIEW_BASE) / 4 + index];
}

START_TEST(sensitive_words_trap_and_the_rest_is_native)
{
    const struct exec_view *view;

    ram[0][3] = LDXR;
    ram[0][1023] = DSB_ISH;
    view = get(0);
    ck_assert_uint_eq(slot_word(view->slot, 3), ENGINE_TRAP_WORD);
    ck_assert_uint_eq(slot_word(view->slot, 1023), ENGINE_TRAP_WORD);
    ck_assert_uint_eq(slot_word(view->slot, 4), NOP);
    ck_assert_int_eq(exec_view_insn(view, 3)->kind, INSN_LOAD_EXCLUSIVE);
    ck_assert_int_eq(exec_view_insn(view, 1023)->kind, INSN_DSB);
    ck_assert_ptr_null(exec_view_insn(view, 4));
    ck_assert_uint_eq(view->words[3], LDXR);
}
END_TEST

START_TEST(the_trap_word_of_a_guest_traps_too)
{
    ram[0][0] = ENGINE_TRAP_WORD;
    ck_assert_int_eq(exec_view_insn(get(0), 0)->kind, INSN_MSR);
}
END_TEST

START_TEST(pages_with_the_same_bytes_share_a_view)
{
    ram[0][0] = LDXR;
    ram[1][0] = LDXR;
    ck_assert_ptr_eq(get(0), get(1));
    ck_assert_ptr_ne(get(0), get(2));
}
END_TEST

START_TEST(a_store_shows_only_after_invalidation)
{
    const struct exec_view *before = get(0);

    ram[0][0] = LDXR;
    ck_assert_ptr_eq(get(0), before);
    exec_views_invalidate_page(views, 1);
    ck_assert_ptr_eq(get(0), before);
    exec_views_invalidate_page(views, 0);
    ck_assert_ptr_ne(get(0), before);
    before = get(0);
    ram[0][0] = NOP;
    exec_views_invalidate_all(views);
    ck_assert_ptr_ne(get(0), before);
}
END_TEST

START_TEST(invalidation_without_a_change_keeps_the_view)
{
    const struct exec_view *before = get(0);

    exec_views_invalidate_all(views);
    ck_assert_ptr_eq(get(0), before);
}
END_TEST

START_TEST(only_pages_with_an_eret_have_a_variant_that_traps_it)
{
    gpa_t variant;

    ram[0][7] = ERET;
    ck_assert_uint_eq(get(1)->slot,
                      exec_views_variant(views, get(1), EXEC_TRAP_ERET));
    variant = exec_views_variant(views, get(0), EXEC_TRAP_ERET);
    ck_assert_uint_ne(get(0)->slot, variant);
    ck_assert_uint_eq(slot_word(get(0)->slot, 7), ERET);
    ck_assert_uint_eq(slot_word(variant, 7), ENGINE_TRAP_WORD);
    ck_assert_ptr_null(exec_view_insn(get(0), 7));
    ck_assert_uint_eq(variant,
                      exec_views_variant(views, get(0), EXEC_TRAP_ERET));
}
END_TEST

START_TEST(fp_is_undefined_in_its_variant_and_native_otherwise)
{
    gpa_t variant;

    ram[0][1] = FADD;
    ram[0][2] = LDR_Q;
    ram[0][3] = LDXR;
    variant = exec_views_variant(views, get(0), EXEC_TRAP_FP);
    ck_assert_uint_eq(slot_word(get(0)->slot, 1), FADD);
    ck_assert_uint_eq(slot_word(variant, 1), ENGINE_UNDEFINED_WORD);
    ck_assert_uint_eq(slot_word(variant, 2), ENGINE_UNDEFINED_WORD);
    ck_assert_uint_eq(slot_word(variant, 3), ENGINE_TRAP_WORD);
    ck_assert_uint_eq(slot_word(variant, 4), NOP);
}
END_TEST

START_TEST(words_that_abort_the_engine_are_undefined)
{
    ram[0][0] = UNALLOCATED_HALF;
    ck_assert_uint_eq(slot_word(get(0)->slot, 0), ENGINE_UNDEFINED_WORD);
    ck_assert_uint_eq(get(0)->words[0], UNALLOCATED_HALF);
}
END_TEST

START_TEST(a_full_region_says_so_and_works_again_after_a_reset)
{
    unsigned made = 0;

    for (unsigned p = 0; p < PAGES; p++) {
        ram[p][0] = LDXR + (p << 5 & 0x3e0);
        ram[p][1] = p;
    }
    while (made < PAGES && get(made)) {
        made++;
    }
    ck_assert_uint_ge(made, SLOTS / 2);
    ck_assert_uint_lt(made, SLOTS + 1);
    ck_assert_ptr_nonnull(get(0));
    exec_views_reset(views);
    ck_assert_ptr_nonnull(get(made));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("execview");
    TCase *tcase = tcase_create("views");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, sensitive_words_trap_and_the_rest_is_native);
    tcase_add_test(tcase, the_trap_word_of_a_guest_traps_too);
    tcase_add_test(tcase, pages_with_the_same_bytes_share_a_view);
    tcase_add_test(tcase, a_store_shows_only_after_invalidation);
    tcase_add_test(tcase, invalidation_without_a_change_keeps_the_view);
    tcase_add_test(tcase, only_pages_with_an_eret_have_a_variant_that_traps_it);
    tcase_add_test(tcase, fp_is_undefined_in_its_variant_and_native_otherwise);
    tcase_add_test(tcase, words_that_abort_the_engine_are_undefined);
    tcase_add_test(tcase, a_full_region_says_so_and_works_again_after_a_reset);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
