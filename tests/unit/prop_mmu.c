/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property tests: walks, lookups and TLBIs of mmu equal the naive reference's.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mmu/tlb.h"
#include "mmu_fixture.h"
#include "mmu_random.h"
#include "mmu_reference.h"

/* --- 1: a walk equals the reference's walk --- */

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

START_TEST(a_walk_equals_the_reference_walk)
{
    struct fake_mem *mem = calloc(1, sizeof(*mem));
    struct walk_mem reader = fake_walk_mem(mem);
    unsigned seen[6][4] = {{0}};

    for (unsigned round = 0; round < 300; round++) {
        struct rng rng = rng_for(1000 + round);

        for (size_t i = 0; i < FAKE_PAGES * 512; i++) {
            mem->words[i] = random_desc(&rng);
        }
        for (unsigned i = 0; i < 4000; i++) {
            struct ref_regs regs = random_regs(&rng);
            gva_t va = random_va(&rng, &regs);
            struct ref_answer expected = ref_walk(&regs, &reader, va);
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
            seen[expected.fault][expected.level]++;
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
    free(mem);
}
END_TEST

/* --- 2: a TLBI removes exactly what its operand names --- */

#define MANY 48

/* Few values for each index, so that operands often meet entries. */
static gva_t near_va(struct rng *rng)
{
    gva_t va = 0;

    for (unsigned level = 0; level < 4; level++) {
        static const uint64_t indices[] = {0, 1, 2, 511};

        va |= indices[below(rng, 4)] << (39 - 9 * level);
    }
    return percent(rng, 40) ? va | UINT64_C(0xffff) << 48 : va;
}

struct known_leaf {
    gva_t va;
    uint16_t asid;
    unsigned level;
    bool global, gone;
};

struct population {
    struct tlb *tlb;
    struct known_leaf leaf[MANY];
    struct walk_cache_entry table[MANY];
    unsigned leaves, tables;
    uint64_t seed;
};

static void add_leaf(struct population *p, struct rng *rng)
{
    struct known_leaf *leaf = &p->leaf[p->leaves];
    struct translation t;
    struct tlb_entry old;

    leaf->level = 1 + below(rng, 3);
    leaf->va = near_va(rng) & ~((UINT64_C(1) << (39 - 9 * leaf->level)) - 1);
    leaf->asid = (uint16_t)(1 + below(rng, 3));
    leaf->global = percent(rng, 30);
    leaf->gone = false;
    t = (struct translation){.base = p->leaves * (UINT64_C(1) << 30),
                             .page_shift = (uint8_t)(39 - 9 * leaf->level),
                             .level = (uint8_t)leaf->level,
                             .perms = PERM_R1,
                             .global = leaf->global};
    REQUIRE(tlb_insert(p->tlb, leaf->va, leaf->asid, &t, &old), "refused");
    if (old.valid) {
        p->leaf[old.t.base >> 30].gone = true;
    }
    p->leaves++;
}

static void add_table(struct population *p, struct rng *rng)
{
    struct walk_cache_entry *table = &p->table[p->tables];

    table->level = (uint8_t)below(rng, 3);
    table->va = near_va(rng) & ~((UINT64_C(1) << (39 - 9 * table->level)) - 1);
    table->asid = (uint16_t)(1 + below(rng, 3));
    table->next_table = p->tables;
    for (unsigned i = 0; i < p->tables; i++) {
        if (p->table[i].va == table->va && p->table[i].asid == table->asid &&
            p->table[i].level == table->level) {
            return; /* would replace it */
        }
    }
    walk_cache_insert(tlb_walk_cache(p->tlb), table);
    p->table[p->tables].valid = true;
    p->tables++;
}

static void expect_gone(void *opaque, const struct tlb_entry *entry)
{
    struct population *p = opaque;
    struct known_leaf *leaf = &p->leaf[entry->t.base >> 30];

    REQUIRE(!leaf->gone, "seed %" PRIu64 ": dropped twice", p->seed);
    leaf->gone = true;
}

static bool expect_valid(void *opaque, const struct walk_cache_entry *entry)
{
    struct population *p = opaque;

    REQUIRE(p->table[entry->next_table].valid,
            "seed %" PRIu64 ": a table of level %u was kept", p->seed,
            entry->level);
    return true;
}

/* The naive lookup: of all entries that match, the smallest page. */
static const struct known_leaf *naive_lookup(const struct population *p,
                                             gva_t va, uint16_t asid)
{
    const struct known_leaf *best = NULL;

    for (unsigned i = 0; i < p->leaves; i++) {
        const struct known_leaf *leaf = &p->leaf[i];
        unsigned shift = 39 - 9 * leaf->level;

        if (!leaf->gone && va >> shift == leaf->va >> shift &&
            (leaf->global || leaf->asid == asid) &&
            (!best || leaf->level > best->level)) {
            best = leaf;
        }
    }
    return best;
}

static void compare_lookups(const struct population *p, struct rng *rng)
{
    for (unsigned i = 0; i < 60; i++) {
        gva_t va = near_va(rng) + below(rng, 4096);
        uint16_t asid = (uint16_t)(1 + below(rng, 3));
        const struct known_leaf *known = naive_lookup(p, va, asid);
        const struct tlb_entry *got = tlb_lookup(p->tlb, va, asid);

        REQUIRE(!known == !got && (!known || (known->va == got->va &&
                                              known->level == got->t.level)),
                "seed %" PRIu64 ": lookup of %" PRIx64 " asid %u", p->seed, va,
                asid);
    }
}

static void compare_removal(struct population *p, struct rng *rng)
{
    gva_t va = near_va(rng);
    struct ref_tlbi raw = random_tlbi(rng, va, (uint16_t)(1 + below(rng, 3)));
    struct known_leaf before[MANY];
    struct tlbi_op op;
    size_t expected = 0, tables = 0, removed;

    memcpy(before, p->leaf, sizeof(before));
    REQUIRE(tlbi_decode(0, 8, raw.crm, raw.op2, raw.xt, true, &op) &&
                (op.scope == TLBI_LOCAL) == ref_tlbi_is_local(&raw),
            "CRm %u op2 %u", raw.crm, raw.op2);
    for (unsigned i = 0; i < p->tables; i++) {
        const struct walk_cache_entry *table = &p->table[i];

        if (table->valid && ref_tlbi_drops(&raw, true, table->va, table->asid,
                                           table->level, true, false)) {
            p->table[i].valid = false;
        }
        tables += p->table[i].valid;
    }
    for (unsigned i = 0; i < p->leaves; i++) {
        before[i].gone =
            before[i].gone ||
            ref_tlbi_drops(&raw, true, before[i].va, before[i].asid,
                           before[i].level, false, before[i].global);
        expected += before[i].gone != p->leaf[i].gone;
    }
    removed = tlb_invalidate(p->tlb, &op, expect_gone, p);
    REQUIRE(removed == expected,
            "seed %" PRIu64 ": %s xt %" PRIx64 ": removed %zu, not %zu",
            p->seed, tlbi_name(&op), raw.xt, removed, expected);
    for (unsigned i = 0; i < p->leaves; i++) {
        REQUIRE(before[i].gone == p->leaf[i].gone,
                "seed %" PRIu64 ": %s xt %" PRIx64 " entry %" PRIx64
                " level %u asid %u: gone %d",
                p->seed, tlbi_name(&op), raw.xt, before[i].va, before[i].level,
                before[i].asid, p->leaf[i].gone);
    }
    walk_cache_foreach(tlb_walk_cache(p->tlb), expect_valid, p);
    REQUIRE(walk_cache_occupancy(tlb_walk_cache(p->tlb)) == tables,
            "seed %" PRIu64 ": %s xt %" PRIx64 " took too many tables", p->seed,
            tlbi_name(&op), raw.xt);
}

START_TEST(an_operation_removes_exactly_what_it_names)
{
    uint64_t removed = 0, tables = 0;

    for (unsigned round = 0; round < 3000; round++) {
        struct rng rng = rng_for(100000 + round);
        /* No set can overflow: what is missing has been removed. */
        struct tlb_config config = {.sets = 1u << below(&rng, 7),
                                    .ways = MANY,
                                    .walk_cache_entries = MANY};
        struct population p = {.tlb = tlb_new(&config), .seed = base_seed};

        for (unsigned i = 0; i < MANY; i++) {
            add_leaf(&p, &rng);
            add_table(&p, &rng);
        }
        compare_lookups(&p, &rng);
        for (unsigned i = 0; i < 8; i++) {
            compare_removal(&p, &rng);
        }
        compare_lookups(&p, &rng);
        removed += tlb_counters(p.tlb)->invalidated;
        tables += tlb_counters(p.tlb)->table_invalidated;
        tlb_free(p.tlb);
    }
    ck_assert_uint_gt(removed, 3000);
    ck_assert_uint_gt(tables, 3000);
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
    tcase_add_test(tc, an_operation_removes_exactly_what_it_names);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_VERBOSE);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
