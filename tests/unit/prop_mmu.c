/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property tests: walks, and writes through them, equal the naive reference's,
 * with and without hardware management of AF and dirty state.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mmu_fixture.h"
#include "mmu_random.h"
#include "mmu_reference.h"

/* Bits that mean something, in unusual company: [51:48], [58:55], DBM... */
static uint64_t random_desc(struct rng *rng)
{
    uint64_t noise = rng_next(rng);
    uint64_t desc = noise & ~(DESC_ADDR_MASK | 3);
    unsigned kind = below(rng, 100);

    if (percent(rng, 90)) {
        desc |= DESC_AF;
    }
    if (kind < 10) {
        return desc | (noise & DESC_ADDR_MASK) | (noise >> 62 & 2);
    }
    if (kind < 75) {
        /* As a table: mostly one that exists. At level 3 it is a page. */
        desc |= FAKE_BASE + MMU_PAGE_SIZE * below(rng, FAKE_PAGES);
        if (percent(rng, 6)) {
            desc |= UINT64_C(1) << (32 + below(rng, 16));
        }
        return desc | 3;
    }
    desc |= rng_next(rng) & DESC_ADDR_MASK;
    if (percent(rng, 60)) {
        desc &= UINT64_C(0xffff0000ffffffff);
    }
    return desc | (percent(rng, 70) ? 1 : 3);
}

static uint64_t random_ttbr(struct rng *rng)
{
    uint64_t ttbr = rng_next(rng) & UINT64_C(0xffff000000000fff);

    ttbr |= FAKE_BASE + MMU_PAGE_SIZE * below(rng, FAKE_PAGES);
    if (percent(rng, 5)) {
        ttbr |= UINT64_C(1) << (32 + below(rng, 16));
    }
    return ttbr;
}

static struct ref_regs random_regs(struct rng *rng)
{
    struct ref_regs regs;

    regs.sctlr = rng_next(rng) | 1;
    if (percent(rng, 3)) {
        regs.sctlr &= ~UINT64_C(1);
    }
    regs.tcr = rng_next(rng) &
               ~(TCR_TSZ_MASK | TCR_TSZ_MASK << 16 | TCR_EPD0 | TCR_EPD1);
    for (unsigned half = 0; half < 2; half++) {
        uint64_t tsz = percent(rng, 4) ? below(rng, 64) : 16 + below(rng, 33);

        regs.tcr |= tsz << (16 * half);
        if (percent(rng, 3)) {
            regs.tcr |= half ? TCR_EPD1 : TCR_EPD0;
        }
        regs.ttbr[half] = random_ttbr(rng);
    }
    return regs;
}

static gva_t random_va(struct rng *rng, const struct ref_regs *regs)
{
    gva_t va = rng_next(rng);
    unsigned half = below(rng, 2);
    unsigned bits = 64 - ((regs->tcr >> (16 * half)) & 63);

    if (percent(rng, 5)) {
        return va;
    }
    va = bits > 63 ? va : va & ((UINT64_C(1) << bits) - 1);
    if (half && bits < 64) {
        va |= UINT64_MAX << bits;
    }
    if (percent(rng, 5)) {
        va ^= UINT64_C(1) << below(rng, 64);
    }
    if (percent(rng, 10)) {
        va ^= (gva_t)below(rng, 256) << 56;
    }
    return va;
}

/* One word holds what it should, and it is the only one touched. */
static void check_update(struct fake_mem *mem, unsigned swaps,
                         const struct ref_answer *expected,
                         const struct walk_result *got, unsigned round)
{
    bool update = expected->new_desc != expected->desc;

    REQUIRE(mem->swaps - swaps == update && walk_updated(got) == update,
            "seed %" PRIu64 " round %u: %u swaps for a leaf %" PRIx64,
            base_seed, round, mem->swaps - swaps, expected->desc);
    if (update) {
        uint64_t *word = fake_word(mem, expected->address);

        REQUIRE(*word == expected->new_desc &&
                    got->desc_address == expected->address &&
                    got->desc == expected->desc &&
                    got->new_desc == expected->new_desc,
                "seed %" PRIu64 " round %u: %" PRIx64 " became %" PRIx64
                ", not %" PRIx64,
                base_seed, round, expected->desc, *word, expected->new_desc);
        *word = expected->desc; /* keep the memory as random as it was */
    }
}

START_TEST(a_walk_equals_the_reference_walk)
{
    struct fake_mem *mem = calloc(1, sizeof(*mem));
    unsigned seen[6][4] = {{0}}, updates = 0, clean = 0;

    for (unsigned round = 0; round < 300; round++) {
        struct rng rng = rng_for(1000 + round);

        for (size_t i = 0; i < FAKE_PAGES * 512; i++) {
            mem->words[i] = random_desc(&rng);
        }
        for (unsigned i = 0; i < 4000; i++) {
            struct ref_regs regs = random_regs(&rng);
            struct walk_mem reader =
                percent(&rng, 40) ? fake_updatable(mem) : fake_walk_mem(mem);
            gva_t va = random_va(&rng, &regs);
            struct ref_answer expected = ref_walk(&regs, &reader, va);
            unsigned swaps = mem->swaps;
            struct regime regime;
            struct walk_result got;

            regime_decode(&regime, regs.sctlr, regs.tcr, regs.ttbr[0],
                          regs.ttbr[1]);
            got = walk_stage1(&regime, &reader, va);
            REQUIRE(got.fault == expected.fault &&
                        (got.fault == WALK_OK
                             ? same_translation(&expected, &got.t)
                             : got.level == expected.level) &&
                        regime.asid == ref_asid(&regs),
                    "seed %" PRIu64 " round %u: tcr %" PRIx64 " va %" PRIx64
                    ": fault %d level %u, not %d %u",
                    base_seed, round, regs.tcr, va, got.fault, got.level,
                    expected.fault, expected.level);
            check_update(mem, swaps, &expected, &got, round);
            seen[expected.fault][expected.level]++;
            updates += walk_updated(&got);
            clean += expected.clean;
        }
    }
    /* The generator reaches every outcome that exists, many times. */
    for (unsigned level = 0; level < 4; level++) {
        ck_assert_uint_gt(seen[WALK_FAULT_TRANSLATION][level], 50);
        ck_assert_uint_gt(seen[WALK_FAULT_ADDRESS_SIZE][level], 50);
        ck_assert_uint_gt(seen[WALK_OK][level], 50);
        if (level > 0) {
            ck_assert_uint_gt(seen[WALK_FAULT_ACCESS_FLAG][level], 50);
            ck_assert_uint_gt(seen[WALK_FAULT_EXTERNAL][level], 50);
        }
    }
    ck_assert_uint_gt(updates, 1000);
    ck_assert_uint_gt(clean, 1000);
    free(mem);
}
END_TEST

/* What a processor does about a write: walk, check, mark dirty. */
static struct walk_result write_through(const struct regime *regime,
                                        const struct walk_mem *mem, gva_t va,
                                        const struct access *access)
{
    struct walk_result r = walk_stage1(regime, mem, va);
    struct walk_result dirty;

    if (r.fault != WALK_OK) {
        return r;
    }
    if (mem->cas64 && translation_needs_dirty(&r.t, access)) {
        (void)walk_mark_dirty(regime, mem, NULL, va, access, &dirty);
        /* As one update, if the walk has set AF before. */
        if (walk_updated(&r)) {
            dirty.desc = r.desc;
        }
        return dirty;
    }
    r.fault = translation_check(&r.t, access);
    return r;
}

START_TEST(a_write_equals_the_reference_write)
{
    struct fake_mem *mem = calloc(1, sizeof(*mem));
    unsigned allowed = 0, refused = 0, marked = 0, both = 0;

    for (unsigned round = 0; round < 300; round++) {
        struct rng rng = rng_for(5000000 + round);

        for (size_t i = 0; i < FAKE_PAGES * 512; i++) {
            mem->words[i] = random_desc(&rng);
        }
        for (unsigned i = 0; i < 4000; i++) {
            struct ref_regs regs = random_regs(&rng);
            struct walk_mem reader =
                percent(&rng, 80) ? fake_updatable(mem) : fake_walk_mem(mem);
            struct access access = {.type = ACCESS_WRITE,
                                    .el0 = percent(&rng, 50),
                                    .pan = percent(&rng, 30)};
            bool at_once = percent(&rng, 50);
            gva_t va = random_va(&rng, &regs);
            struct ref_answer expected;
            unsigned swaps = mem->swaps;
            struct regime regime;
            struct walk_result got;

            regs.tcr |= percent(&rng, 70) ? TCR_HA | TCR_HD : 0;
            expected = ref_write(&regs, &reader, va, access.el0, access.pan);
            regime_decode(&regime, regs.sctlr, regs.tcr, regs.ttbr[0],
                          regs.ttbr[1]);
            if (at_once) {
                (void)walk_mark_dirty(&regime, &reader, NULL, va, &access,
                                      &got);
            } else {
                got = write_through(&regime, &reader, va, &access);
                /* In two steps it may take two swaps. */
                if (mem->swaps - swaps == 2) {
                    swaps++;
                    both++;
                }
            }
            REQUIRE(
                got.fault == expected.fault &&
                    (got.fault == WALK_OK || got.fault == WALK_FAULT_PERMISSION
                         ? same_translation(&expected, &got.t)
                         : got.level == expected.level),
                "seed %" PRIu64 " round %u: tcr %" PRIx64 " va %" PRIx64
                " leaf %" PRIx64 ": write fault %d, not %d",
                base_seed, round, regs.tcr, va, expected.desc, got.fault,
                expected.fault);
            check_update(mem, swaps, &expected, &got, round);
            allowed += got.fault == WALK_OK;
            refused += got.fault == WALK_FAULT_PERMISSION;
            marked += (got.desc ^ got.new_desc) >> 7 & 1;
        }
    }
    ck_assert_uint_gt(allowed, 10000);
    ck_assert_uint_gt(refused, 10000);
    ck_assert_uint_gt(marked, 10000);
    ck_assert_uint_gt(both, 100);
    free(mem);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_mmu");
    TCase *tc = tcase_create("properties");
    SRunner *runner;
    int failed;

    seed_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_walk_equals_the_reference_walk);
    tcase_add_test(tc, a_write_equals_the_reference_write);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_VERBOSE);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
