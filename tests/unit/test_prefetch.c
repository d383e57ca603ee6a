/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: what speculation can reach from a root. */
#include <check.h>
#include <stdlib.h>

#include "mmu/prefetch.h"
#include "mmu_fixture.h"
#include "mmu_random.h"

#define PAGE (DESC_VALID | DESC_TABLE_OR_PAGE)
#define LEAF (PAGE | DESC_AF)
#define HIGH UINT64_C(0xffff000000000000)
#define NOWHERE UINT64_C(0x80000000)
#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

static struct fake_mem mem;
static struct walk_mem reader;
static gpa_t root[2];
static struct regime regime;

static void setup(void)
{
    memset(&mem, 0, sizeof(mem));
    reader = fake_walk_mem(&mem);
    root[0] = fake_page(&mem);
    root[1] = fake_page(&mem);
    regime = fake_regime(root[0], root[1], 1);
}

static void map(unsigned half, gva_t va, unsigned level, uint64_t desc)
{
    *fake_slot(&mem, root[half], va, level) = desc;
}

/* Answers from a list, then 0; remembers the questions. */
struct script {
    unsigned answer[8], asked[8];
    unsigned count;
};

static unsigned next_answer(void *opaque, unsigned n)
{
    struct script *script = opaque;

    ck_assert_uint_ge(n, 2);
    ck_assert_uint_lt(script->count, 8);
    script->asked[script->count] = n;
    return script->answer[script->count++];
}

static bool reach(unsigned half, struct script *script, gva_t *out)
{
    *out = UNTOUCHED;
    return walk_random_leaf(&regime, &reader, half, next_answer, script, out);
}

START_TEST(nothing_is_reached_from_an_empty_root)
{
    struct script script = {0};
    gva_t va;

    ck_assert(!reach(0, &script, &va));
    ck_assert(!reach(1, &script, &va));
    ck_assert_uint_eq(va, UNTOUCHED);
    ck_assert_uint_eq(script.count, 0);
    ck_assert_uint_eq(mem.reads, 1024);
}
END_TEST

START_TEST(a_single_leaf_of_any_size_is_found_without_a_question)
{
    for (unsigned level = 1; level < 4; level++) {
        for (unsigned half = 0; half < 2; half++) {
            unsigned shift = 39 - 9 * level;
            gva_t page =
                (half ? HIGH : 0) | UINT64_C(0x876543210000) >> shift << shift;
            struct script script = {0};
            gva_t va;

            setup();
            map(half, page, level, level == 3 ? LEAF : LEAF & ~2ull);
            ck_assert(reach(half, &script, &va));
            ck_assert_uint_eq(va, page);
            ck_assert_uint_eq(script.count, 0);
            ck_assert_uint_eq(mem.reads, 512 * (level + 1));
            ck_assert(!reach(!half, &script, &va));
        }
    }
}
END_TEST

START_TEST(candidates_are_numbered_by_address_at_each_level)
{
    static const struct {
        unsigned answer[2];
        gva_t va;
    } cases[] = {
        {{0, 0}, 0x1000},     {{0, 1}, 0x7000},     {{0, 2}, 0x1ff000},
        {{1, 0}, 0x40000000}, {{2, 0}, 0x80000000}, {{2, 1}, 0x80200000},
        {{9, 1}, 0x7000}, /* too large counts as 0 */
    };

    map(0, 0x1000, 3, LEAF);
    map(0, 0x7000, 3, LEAF);
    map(0, 0x1ff000, 3, LEAF);
    map(0, 0x8000, 3, PAGE); /* AF clear */
    map(0, 0x40000000, 1, LEAF & ~2ull);
    map(0, 0x80000000, 2, LEAF & ~2ull);
    map(0, 0x80200000, 2, LEAF & ~2ull);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {
            .answer = {cases[i].answer[0], cases[i].answer[1]}};
        gva_t va;

        ck_assert(reach(0, &script, &va));
        ck_assert_msg(va == cases[i].va, "case %zu", i);
        ck_assert_uint_eq(script.asked[0], 3);
        ck_assert_uint_eq(script.count, cases[i].answer[0] == 1 ? 1 : 2);
    }
}
END_TEST

START_TEST(a_clear_access_flag_counts_when_hardware_can_set_it)
{
    struct script script = {0};
    gva_t va;

    map(0, 0x1000, 3, PAGE);
    ck_assert(!reach(0, &script, &va));
    regime.ha = true;
    ck_assert(!reach(0, &script, &va));
    reader.cas64 = fake_cas64;
    ck_assert(reach(0, &script, &va));
    ck_assert_uint_eq(va, 0x1000);
    ck_assert_uint_eq(mem.swaps, 0);
    regime.ha = false;
    ck_assert(!reach(0, &script, &va));
}
END_TEST

START_TEST(dead_ends_are_told_and_not_gone_around)
{
    struct script empty = {.answer = {0}}, unreadable = {.answer = {1}};
    struct script leaf = {.answer = {2}};
    gva_t va;

    map(0, 0, 1, fake_page(&mem) | PAGE);
    map(0, 0x40000000, 1, NOWHERE | PAGE);
    map(0, 0x80000000, 1, LEAF & ~2ull);
    ck_assert(!reach(0, &empty, &va));
    ck_assert(!reach(0, &unreadable, &va));
    ck_assert_uint_eq(va, UNTOUCHED);
    ck_assert(reach(0, &leaf, &va));
    ck_assert_uint_eq(va, 0x80000000);
}
END_TEST

START_TEST(what_lies_beyond_the_output_size_is_no_candidate)
{
    struct script script = {0};
    gva_t va;

    regime.pa_bits = 40;
    map(0, 0, 1, UINT64_C(1) << 40 | PAGE);
    map(0, 0x40000000, 1, UINT64_C(1) << 40 | (LEAF & ~2ull));
    ck_assert(!reach(0, &script, &va));
    map(0, 0x80000000, 1, LEAF & ~2ull);
    ck_assert(reach(0, &script, &va));
    ck_assert_uint_eq(va, 0x80000000);
    ck_assert_uint_eq(script.count, 0);
}
END_TEST

START_TEST(a_table_that_points_to_itself_ends_at_level_3)
{
    struct script script = {0};
    gva_t va;

    /* Entry 3 of the root is the root: at level 3 it is a page. */
    map(0, UINT64_C(3) << 39, 0, root[0] | PAGE);
    ck_assert(!reach(0, &script, &va));
    map(0, UINT64_C(3) << 39, 0, root[0] | LEAF);
    ck_assert(reach(0, &script, &va));
    ck_assert_uint_eq(va, UINT64_C(3) << 39 | UINT64_C(3) << 30 |
                              UINT64_C(3) << 21 | UINT64_C(3) << 12);
    ck_assert_uint_eq(mem.reads, 2 * 4 * 512);
}
END_TEST

START_TEST(short_first_tables_are_not_read_past_their_end)
{
    /* 22 bits: a table of level 2 with two entries. */
    uint64_t tcr = UINT64_C(42) | UINT64_C(42) << 16 | UINT64_C(5) << 32;
    struct script script = {0};
    gva_t va;

    regime_decode(&regime, SCTLR_M, tcr, root[0], root[0]);
    *fake_word(&mem, root[0] + 16) = LEAF & ~2ull;
    ck_assert(!reach(0, &script, &va));
    ck_assert_uint_eq(mem.reads, 2);
    *fake_word(&mem, root[0] + 8) = LEAF & ~2ull;
    ck_assert(reach(0, &script, &va));
    ck_assert_uint_eq(va, 0x200000);
    ck_assert(reach(1, &script, &va));
    ck_assert_uint_eq(va, UINT64_C(0xffffffffffe00000));
}
END_TEST

START_TEST(a_half_that_does_not_walk_reaches_nothing)
{
    struct script script = {0};
    gva_t va;

    map(0, 0x1000, 3, LEAF);
    for (unsigned i = 0; i < 4; i++) {
        struct regime saved = regime;

        ck_assert(reach(0, &script, &va));
        mem.reads = 0;
        regime.mmu_on = i != 0;
        regime.half[0].epd = i == 1;
        regime.half[0].tsz_valid = i != 2;
        regime.half[0].base_fits = i != 3;
        ck_assert(!reach(0, &script, &va));
        ck_assert_uint_eq(mem.reads, 0);
        regime = saved;
    }
}
END_TEST

static unsigned random_answer(void *opaque, unsigned n)
{
    return below(opaque, n);
}

/* Memory full of random words: whatever is reached, a walk translates. */
START_TEST(a_walk_translates_whatever_was_reached_in_corrupted_tables)
{
    unsigned reached = 0, levels[4] = {0};

    seed_init();
    for (unsigned round = 0; round < 2000; round++) {
        struct rng rng = rng_for(9000000 + round);
        unsigned used = 1 + below(&rng, 8);
        struct ref_regs regs = {.sctlr = 1, .tcr = rng_next(&rng)};

        reader.cas64 = percent(&rng, 50) ? fake_cas64 : NULL;
        for (unsigned i = 0; i < used * 512; i++) {
            uint64_t noise = rng_next(&rng);

            mem.words[i] = noise & ~(DESC_ADDR_MASK | 1);
            if (percent(&rng, 3)) {
                mem.words[i] |=
                    (FAKE_BASE + MMU_PAGE_SIZE * below(&rng, used)) | 1;
            } else if (percent(&rng, 5)) {
                mem.words[i] = noise;
            }
        }
        regs.tcr &= ~(UINT64_C(0x3f) | UINT64_C(0x3f) << 16);
        regs.tcr |= 14 + below(&rng, 37);
        regs.tcr |= (uint64_t)(14 + below(&rng, 37)) << 16;
        for (unsigned half = 0; half < 2; half++) {
            regs.ttbr[half] = FAKE_BASE + MMU_PAGE_SIZE * below(&rng, used);
        }
        regime_decode(&regime, regs.sctlr, regs.tcr, regs.ttbr[0],
                      regs.ttbr[1]);
        for (unsigned half = 0; half < 2; half++) {
            gva_t va;
            struct walk_result r;

            mem.reads = 0;
            if (walk_random_leaf(&regime, &reader, half, random_answer, &rng,
                                 &va)) {
                ck_assert_uint_eq(regime_half_of(va), half);
                r = walk_stage1(&regime, &reader, va);
                ck_assert_msg(r.fault == WALK_OK,
                              "seed %" PRIu64 " round %u: %" PRIx64
                              " faults with %d",
                              base_seed, round, va, r.fault);
                ck_assert_uint_eq(va & ((UINT64_C(1) << r.t.page_shift) - 1),
                                  0);
                reached++;
                levels[r.t.level]++;
            }
            ck_assert_uint_le(mem.reads, 4 * 512 + 4);
        }
    }
    ck_assert_uint_gt(reached, 200);
    for (unsigned level = 1; level < 4; level++) {
        ck_assert_uint_gt(levels[level], 20);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prefetch");
    TCase *tc = tcase_create("prefetch");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, nothing_is_reached_from_an_empty_root);
    tcase_add_test(tc, a_single_leaf_of_any_size_is_found_without_a_question);
    tcase_add_test(tc, candidates_are_numbered_by_address_at_each_level);
    tcase_add_test(tc, a_clear_access_flag_counts_when_hardware_can_set_it);
    tcase_add_test(tc, dead_ends_are_told_and_not_gone_around);
    tcase_add_test(tc, what_lies_beyond_the_output_size_is_no_candidate);
    tcase_add_test(tc, a_table_that_points_to_itself_ends_at_level_3);
    tcase_add_test(tc, short_first_tables_are_not_read_past_their_end);
    tcase_add_test(tc, a_half_that_does_not_walk_reaches_nothing);
    tcase_add_test(tc,
                   a_walk_translates_whatever_was_reached_in_corrupted_tables);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
