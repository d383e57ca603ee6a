/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property tests: a TLBI removes exactly what the naive reference says, a
 * widened one more of it, and look-ups find all that is left.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mmu/tlb.h"
#include "mmu_fixture.h"
#include "mmu_random.h"
#include "mmu_reference.h"

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

/* All that match, and in the order of preference: each page size smaller. */
static void compare_matching(const struct population *p, gva_t va,
                             uint16_t asid, const struct tlb_entry *first)
{
    struct tlb_entry *out[TLB_MATCHING_MAX + 1];
    unsigned missed = 0;
    unsigned got = tlb_matching(p->tlb, va, asid, out, TLB_MATCHING_MAX + 1);

    for (unsigned i = 0; i < p->leaves; i++) {
        const struct known_leaf *leaf = &p->leaf[i];
        unsigned shift = 39 - 9 * leaf->level;

        if (leaf->gone || va >> shift != leaf->va >> shift ||
            (!leaf->global && leaf->asid != asid)) {
            continue;
        }
        missed++;
        for (unsigned j = 0; j < got; j++) {
            if (out[j]->t.base >> 30 == i) {
                missed--;
                break;
            }
        }
    }
    REQUIRE(missed == 0, "seed %" PRIu64 ": %" PRIx64 " asid %u: %u missed",
            p->seed, va, asid, missed);
    for (unsigned j = 0; j < got; j++) {
        const struct known_leaf *leaf = &p->leaf[out[j]->t.base >> 30];
        unsigned shift = 39 - 9 * leaf->level;

        REQUIRE(!leaf->gone && va >> shift == leaf->va >> shift &&
                    (leaf->global || leaf->asid == asid) &&
                    (j == 0 || (out[j] != out[j - 1] &&
                                out[j]->t.level <= out[j - 1]->t.level)),
                "seed %" PRIu64 ": %" PRIx64 " asid %u: match %u", p->seed, va,
                asid, j);
    }
    REQUIRE(got <= TLB_MATCHING_MAX && (got ? out[0] : NULL) == first,
            "seed %" PRIu64 ": %" PRIx64 " asid %u: %u entries", p->seed, va,
            asid, got);
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
        compare_matching(p, va, asid, got);
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

struct widening {
    unsigned more_leaves, more_tables, same, kept;
};

/* The operation that a wider one amounts to, but for ranges. */
static struct ref_tlbi as_wide(struct ref_tlbi raw, bool tables, bool operands)
{
    bool by_va = raw.op2 != 0 && raw.op2 != 2;

    if (by_va && tables && raw.op2 >= 5) {
        raw.op2 -= 4;
    }
    if (by_va && operands && !ref_tlbi_is_range(&raw)) {
        raw.xt &= ~(UINT64_C(15) << 44);
    }
    return raw;
}

/* What a range removes when its bounds are not looked at. */
static bool drops_anywhere(const struct ref_tlbi *raw, uint16_t asid,
                           bool table, bool global)
{
    bool any_asid = raw->op2 == 3 || raw->op2 == 7;

    return !(table && raw->op2 >= 5) &&
           (any_asid || asid == raw->xt >> 48 || (!table && global));
}

static void compare_widened(struct rng *rng, struct widening *count)
{
    bool tables = percent(rng, 50), operands = percent(rng, 50);
    struct ref_tlbi raw =
        random_tlbi(rng, near_va(rng), (uint16_t)(1 + below(rng, 3)));
    struct ref_tlbi exact = as_wide(raw, tables, operands);
    bool anywhere = operands && ref_tlbi_is_range(&raw);
    unsigned level = 1 + below(rng, 3), shift = 39 - 9 * level;
    struct tlb_entry leaf = {
        .va = near_va(rng) >> shift << shift,
        .asid = (uint16_t)(1 + below(rng, 3)),
        .valid = true,
        .t = {.page_shift = (uint8_t)shift,
              .level = (uint8_t)level,
              .global = percent(rng, 30)},
    };
    struct walk_cache_entry table = {.va = near_va(rng),
                                     .asid = (uint16_t)(1 + below(rng, 3)),
                                     .level = (uint8_t)below(rng, 3),
                                     .valid = true};
    struct tlbi_op op;
    bool leaf_was, leaf_goes, table_was, table_goes;

    table.va &= ~((UINT64_C(1) << (39 - 9 * table.level)) - 1);
    leaf_was = ref_tlbi_drops(&raw, true, leaf.va, leaf.asid, level, false,
                              leaf.t.global);
    table_was = ref_tlbi_drops(&raw, true, table.va, table.asid, table.level,
                               true, false);
    leaf_goes = anywhere
                    ? drops_anywhere(&exact, leaf.asid, false, leaf.t.global)
                    : ref_tlbi_drops(&exact, true, leaf.va, leaf.asid, level,
                                     false, leaf.t.global);
    table_goes = anywhere ? drops_anywhere(&exact, table.asid, true, false)
                          : ref_tlbi_drops(&exact, true, table.va, table.asid,
                                           table.level, true, false);
    REQUIRE(tlbi_decode(0, 8, raw.crm, raw.op2, raw.xt, true, &op), "decode");
    tlbi_widen(&op, tables, operands);
    REQUIRE(tlbi_matches(&op, &leaf) == leaf_goes &&
                tlbi_matches_table(&op, &table) == table_goes,
            "seed %" PRIu64 ": CRm %u op2 %u xt %" PRIx64
            " widened (tables %d, operands %d)",
            base_seed, raw.crm, raw.op2, raw.xt, tables, operands);
    /* Whatever it amounts to, it removes all that was named. */
    REQUIRE(leaf_goes >= leaf_was && table_goes >= table_was,
            "seed %" PRIu64 ": CRm %u op2 %u xt %" PRIx64 " keeps more",
            base_seed, raw.crm, raw.op2, raw.xt);
    REQUIRE((op.scope == TLBI_LOCAL) == ref_tlbi_is_local(&raw),
            "seed %" PRIu64 ": scope", base_seed);
    count->more_leaves += leaf_goes && !leaf_was;
    count->more_tables += table_goes && !table_was;
    count->same += leaf_was + table_was;
    count->kept += !leaf_goes + !table_goes;
}

START_TEST(a_widened_operation_removes_what_the_exact_one_does_and_more)
{
    struct rng rng = rng_for(7000000);
    struct widening count = {0};

    for (unsigned i = 0; i < 1000000; i++) {
        compare_widened(&rng, &count);
    }
    ck_assert_uint_gt(count.more_leaves, 1000);
    ck_assert_uint_gt(count.more_tables, 1000);
    ck_assert_uint_gt(count.same, 1000);
    ck_assert_uint_gt(count.kept, 1000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_tlbi");
    TCase *tc = tcase_create("properties");
    SRunner *runner;
    int failed;

    seed_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, an_operation_removes_exactly_what_it_names);
    tcase_add_test(
        tc, a_widened_operation_removes_what_the_exact_one_does_and_more);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_VERBOSE);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
