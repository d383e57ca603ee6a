/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: the TLB and its walk cache as containers. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "mmu/tlb.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define HIGH UINT64_C(0xffff000000000000)

static struct tlb *make(unsigned sets, unsigned ways,
                        enum tlb_replacement replacement, unsigned tables)
{
    struct tlb_config config = {.sets = sets,
                                .ways = ways,
                                .replacement = replacement,
                                .walk_cache_entries = tables,
                                .seed = 7};
    struct tlb *tlb = tlb_new(&config);

    ck_assert_ptr_nonnull(tlb);
    return tlb;
}

static struct translation leaf(gpa_t base, unsigned shift, bool global)
{
    return (struct translation){.base = base,
                                .page_shift = (uint8_t)shift,
                                .level = (uint8_t)((39 - shift) / 9),
                                .perms = PERM_R1,
                                .global = global};
}

static struct tlb_entry put(struct tlb *tlb, gva_t va, uint16_t asid,
                            gpa_t base, unsigned shift, bool global)
{
    struct translation t = leaf(base, shift, global);
    struct tlb_entry evicted;

    ck_assert_ptr_nonnull(tlb_insert(tlb, va, asid, &t, &evicted));
    return evicted;
}

START_TEST(an_entry_answers_for_its_page_and_asid_only)
{
    struct tlb *tlb = make(16, 2, TLB_LRU, 0);
    struct tlb_entry *entry;

    put(tlb, 0x12345678, 3, 0x80000000, 12, false);
    entry = tlb_lookup(tlb, 0x12345fff, 3);
    ck_assert_ptr_nonnull(entry);
    ck_assert_uint_eq(entry->va, 0x12345000);
    ck_assert_uint_eq(entry->t.base, 0x80000000);
    ck_assert_uint_eq(entry->asid, 3);
    ck_assert_uint_eq(entry->owner_tag, 0);
    ck_assert_ptr_null(tlb_lookup(tlb, 0x12346000, 3));
    ck_assert_ptr_null(tlb_lookup(tlb, 0x12344fff, 3));
    ck_assert_ptr_null(tlb_lookup(tlb, 0x12345000, 4));
    ck_assert_ptr_null(tlb_lookup(tlb, 0x12345000 | HIGH, 3));
    ck_assert_ptr_null(tlb_lookup(tlb, 0x12345000 | UINT64_C(1) << 40, 3));
    tlb_free(tlb);
}
END_TEST

START_TEST(a_global_entry_answers_for_every_asid)
{
    struct tlb *tlb = make(16, 2, TLB_LRU, 0);

    put(tlb, HIGH | 0x1000, 3, 0x80000000, 12, true);
    ck_assert_ptr_nonnull(tlb_lookup(tlb, HIGH | 0x1000, 0));
    ck_assert_ptr_nonnull(tlb_lookup(tlb, HIGH | 0x1000, 0xffff));
    ck_assert_ptr_null(tlb_lookup(tlb, 0x1000, 3));
    tlb_free(tlb);
}
END_TEST

START_TEST(asid_bits_are_all_compared)
{
    struct tlb *tlb = make(1, 8, TLB_LRU, 0);

    put(tlb, 0x1000, 0, 0x80000000, 12, false);
    for (unsigned bit = 0; bit < 16; bit++) {
        ck_assert_ptr_null(tlb_lookup(tlb, 0x1000, (uint16_t)(1u << bit)));
    }
    tlb_free(tlb);
}
END_TEST

START_TEST(address_bits_are_all_compared)
{
    struct tlb *tlb = make(1, 8, TLB_LRU, 0);

    put(tlb, 0x40000000, 1, 0x80000000, 30, false);
    put(tlb, 0, 1, 0x80000000, 12, false);
    for (unsigned bit = 12; bit < 64; bit++) {
        if (bit != 30) {
            ck_assert_ptr_null(tlb_lookup(tlb, UINT64_C(1) << bit, 1));
        }
    }
    tlb_free(tlb);
}
END_TEST

START_TEST(block_entries_answer_for_the_whole_block)
{
    static const unsigned shifts[] = {12, 21, 30};
    struct tlb *tlb = make(4, 2, TLB_LRU, 0);
    unsigned shift = shifts[_i];
    gva_t va = UINT64_C(0x5555) << 30, last = (UINT64_C(1) << shift) - 1;

    put(tlb, va | (last & 0x123456), 1, 0, shift, false);
    ck_assert_ptr_nonnull(tlb_lookup(tlb, va, 1));
    ck_assert_ptr_nonnull(tlb_lookup(tlb, va + last, 1));
    ck_assert_uint_eq(tlb_lookup(tlb, va + last / 2, 1)->va, va);
    ck_assert_ptr_null(tlb_lookup(tlb, va - 1, 1));
    ck_assert_ptr_null(tlb_lookup(tlb, va + last + 1, 1));
    tlb_free(tlb);
}
END_TEST

START_TEST(entries_of_several_sizes_coexist_and_the_smallest_wins)
{
    struct tlb *tlb = make(4, 4, TLB_LRU, 0);

    put(tlb, 0x40000000, 1, UINT64_C(0x1000000000), 30, false);
    put(tlb, 0x40000000, 1, 0x80000000, 21, false);
    put(tlb, 0x40000000, 1, 0x90000000, 12, false);
    ck_assert_uint_eq(tlb_occupancy(tlb), 3);
    ck_assert_uint_eq(tlb_lookup(tlb, 0x40000000, 1)->t.page_shift, 12);
    ck_assert_uint_eq(tlb_lookup(tlb, 0x40001000, 1)->t.page_shift, 21);
    ck_assert_uint_eq(tlb_lookup(tlb, 0x40200000, 1)->t.page_shift, 30);
    tlb_free(tlb);
}
END_TEST

START_TEST(what_a_tlb_cannot_hold_is_refused)
{
    struct tlb *tlb = make(4, 4, TLB_LRU, 0);
    struct tlb_entry evicted = {.valid = true};
    struct translation t = leaf(0x80000000, 12, true);

    t.flat = true;
    ck_assert_ptr_null(tlb_insert(tlb, 0x1000, 0, &t, &evicted));
    ck_assert(!evicted.valid);
    t.flat = false;
    ck_assert_ptr_null(tlb_insert(tlb, UINT64_C(1) << 48, 0, &t, NULL));
    t.page_shift = 0;
    ck_assert_ptr_null(tlb_insert(tlb, 0x1000, 0, &t, NULL));
    ck_assert_uint_eq(tlb_occupancy(tlb), 0);
    tlb_free(tlb);
}
END_TEST

START_TEST(addresses_that_are_not_canonical_never_hit)
{
    struct tlb *tlb = make(1, 8, TLB_LRU, 0);

    put(tlb, 0x1000, 1, 0x80000000, 12, false);
    put(tlb, HIGH | 0x1000, 1, 0x80000000, 12, false);
    for (unsigned bit = 48; bit < 64; bit++) {
        gva_t flip = UINT64_C(1) << bit;

        ck_assert_ptr_null(tlb_lookup(tlb, 0x1000 ^ flip, 1));
        ck_assert_ptr_null(tlb_lookup(tlb, (HIGH | 0x1000) ^ flip, 1));
    }
    tlb_free(tlb);
}
END_TEST

START_TEST(inserting_the_same_page_again_replaces_and_reports_the_old_entry)
{
    struct tlb *tlb = make(4, 4, TLB_LRU, 0);
    struct tlb_entry old;

    old = put(tlb, 0x1000, 1, 0x80000000, 12, false);
    ck_assert(!old.valid);
    tlb_lookup(tlb, 0x1000, 1)->owner_tag = 99;
    old = put(tlb, 0x1000, 1, 0x90000000, 12, false);
    ck_assert(old.valid);
    ck_assert_uint_eq(old.t.base, 0x80000000);
    ck_assert_uint_eq(old.owner_tag, 99);
    ck_assert_uint_eq(tlb_occupancy(tlb), 1);
    ck_assert_uint_eq(tlb_lookup(tlb, 0x1000, 1)->t.base, 0x90000000);
    ck_assert_uint_eq(tlb_lookup(tlb, 0x1000, 1)->owner_tag, 0);
    ck_assert_uint_eq(tlb_counters(tlb)->evictions, 0);
    tlb_free(tlb);
}
END_TEST

START_TEST(a_full_set_evicts_and_other_sets_do_not)
{
    struct tlb *tlb = make(2, 2, TLB_LRU, 0);
    struct tlb_entry out;

    put(tlb, 0x0000, 1, 0, 12, false);
    put(tlb, 0x2000, 1, 0, 12, false);
    out = put(tlb, 0x1000, 1, 0, 12, false);
    ck_assert(!out.valid);
    out = put(tlb, 0x4000, 1, 0, 12, false);
    ck_assert(out.valid);
    ck_assert_uint_eq(out.va, 0x0000);
    ck_assert_ptr_null(tlb_lookup(tlb, 0x0000, 1));
    ck_assert_ptr_nonnull(tlb_lookup(tlb, 0x2000, 1));
    ck_assert_uint_eq(tlb_occupancy(tlb), 3);
    ck_assert_uint_eq(tlb_counters(tlb)->evictions, 1);
    tlb_free(tlb);
}
END_TEST

START_TEST(lru_spares_what_was_used_fifo_does_not)
{
    static const struct {
        enum tlb_replacement replacement;
        gva_t victim;
    } cases[] = {{TLB_LRU, 0x2000}, {TLB_FIFO, 0x1000}};
    struct tlb *tlb = make(1, 3, cases[_i].replacement, 0);
    struct tlb_entry out;

    put(tlb, 0x1000, 1, 0, 12, false);
    put(tlb, 0x2000, 1, 0, 12, false);
    put(tlb, 0x3000, 1, 0, 12, false);
    ck_assert_ptr_nonnull(tlb_lookup(tlb, 0x1000, 1));
    /* Looking without touching spares nothing. */
    ck_assert_ptr_nonnull(tlb_peek(tlb, 0x2000, 1));
    out = put(tlb, 0x4000, 1, 0, 12, false);
    ck_assert_uint_eq(out.va, cases[_i].victim);
    tlb_free(tlb);
}
END_TEST

START_TEST(random_replacement_repeats_with_the_seed_and_uses_every_way)
{
    struct tlb *a = make(1, 4, TLB_RANDOM, 0);
    struct tlb *b = make(1, 4, TLB_RANDOM, 0);
    unsigned age[64] = {0}, evictions = 0;

    for (unsigned i = 0; i < 400; i++) {
        struct tlb_entry x = put(a, (gva_t)i << 12, 1, 0, 12, false);
        struct tlb_entry y = put(b, (gva_t)i << 12, 1, 0, 12, false);

        ck_assert_int_eq(x.valid, y.valid);
        ck_assert_uint_eq(x.va, y.va);
        if (x.valid && i - (x.va >> 12) < 64) {
            age[i - (x.va >> 12)]++;
            evictions++;
        }
    }
    /* FIFO or LRU would evict the age of 4 always. */
    ck_assert_uint_gt(evictions, 300);
    for (unsigned i = 1; i < 8; i++) {
        ck_assert_uint_gt(age[i], 0);
        ck_assert_uint_lt(age[i], evictions);
    }
    tlb_free(a);
    tlb_free(b);
}
END_TEST

START_TEST(the_whole_capacity_is_usable)
{
    struct tlb *tlb = make(8, 4, TLB_LRU, 0);

    ck_assert_uint_eq(tlb_capacity(tlb), 32);
    for (gva_t page = 0; page < 32; page++) {
        struct tlb_entry out = put(tlb, page << 12, 1, page << 20, 12, false);

        ck_assert(!out.valid);
    }
    ck_assert_uint_eq(tlb_occupancy(tlb), 32);
    for (gva_t page = 0; page < 32; page++) {
        ck_assert_uint_eq(tlb_lookup(tlb, page << 12, 1)->t.base, page << 20);
    }
    ck_assert_uint_eq(tlb_counters(tlb)->hits, 32);
    tlb_free(tlb);
}
END_TEST

START_TEST(occupancy_counts_entries_of_every_size_in_and_out)
{
    static const unsigned shifts[] = {12, 21, 30};
    struct tlb *tlb = make(4, 4, TLB_LRU, 0);
    struct tlbi_op all = {.kind = TLBI_ALL};

    for (size_t i = 0; i < 3; i++) {
        put(tlb, 0x40000000, 1, 0, shifts[i], false);
        ck_assert_uint_eq(tlb_occupancy(tlb), i + 1);
    }
    for (size_t i = 0; i < 3; i++) {
        tlb_drop(tlb, tlb_lookup(tlb, 0x40000000, 1));
        ck_assert_uint_eq(tlb_occupancy(tlb), 2 - i);
    }
    for (size_t i = 0; i < 3; i++) {
        put(tlb, 0x40000000, 1, 0, shifts[i], false);
    }
    ck_assert_uint_eq(tlb_invalidate(tlb, &all, NULL, NULL), 3);
    ck_assert_uint_eq(tlb_occupancy(tlb), 0);
    tlb_free(tlb);
}
END_TEST

static bool count_to_two(void *opaque, struct tlb_entry *entry)
{
    unsigned *count = opaque;

    ck_assert(entry->valid);
    return ++*count < 2;
}

static bool count_all(void *opaque, struct tlb_entry *entry)
{
    unsigned *count = opaque;

    (void)entry;
    ++*count;
    return true;
}

START_TEST(foreach_visits_valid_entries_until_told_to_stop)
{
    struct tlb *tlb = make(8, 4, TLB_LRU, 0);
    unsigned count = 0;

    for (gva_t page = 0; page < 5; page++) {
        put(tlb, page << 12, 1, 0, 12, false);
    }
    tlb_drop(tlb, tlb_lookup(tlb, 0x1000, 1));
    ck_assert_ptr_null(tlb_lookup(tlb, 0x1000, 1));
    ck_assert_uint_eq(tlb_occupancy(tlb), 4);
    tlb_foreach(tlb, count_all, &count);
    ck_assert_uint_eq(count, 4);
    count = 0;
    tlb_foreach(tlb, count_to_two, &count);
    ck_assert_uint_eq(count, 2);
    tlb_free(tlb);
}
END_TEST

START_TEST(a_copy_goes_on_like_the_original)
{
    struct tlb *a = make(1, 4, TLB_RANDOM, 4);
    struct tlb *b = make(1, 4, TLB_RANDOM, 4);
    struct tlb *other = make(1, 2, TLB_RANDOM, 4);
    struct walk_cache_entry table = {
        .va = 0x40000000, .next_table = 0x50000000, .asid = 1, .level = 1};

    for (gva_t page = 0; page < 9; page++) {
        put(a, page << 12, 1, 0, 12, false);
    }
    walk_cache_insert(tlb_walk_cache(a), &table);
    ck_assert(!tlb_copy(other, a));
    ck_assert(tlb_copy(b, a));
    ck_assert_uint_eq(tlb_occupancy(b), 4);
    ck_assert_ptr_nonnull(walk_cache_lookup(tlb_walk_cache(b), 0x40000000, 1));
    for (gva_t page = 9; page < 30; page++) {
        struct tlb_entry x = put(a, page << 12, 1, 0, 12, false);
        struct tlb_entry y = put(b, page << 12, 1, 0, 12, false);

        ck_assert_uint_eq(x.va, y.va);
    }
    tlb_free(a);
    tlb_free(b);
    tlb_free(other);
}
END_TEST

static const struct {
    struct tlb_config config;
    bool usable;
} config_cases[] = {
    {{.sets = 1, .ways = 1}, true},
    {{.sets = 65536, .ways = 1}, true},
    {{.sets = 1, .ways = 64}, true},
    {{.sets = 0, .ways = 1}, false},
    {{.sets = 3, .ways = 1}, false},
    {{.sets = 131072, .ways = 1}, false},
    {{.sets = 1, .ways = 0}, false},
    {{.sets = 1, .ways = 65}, false},
    {{.sets = 1, .ways = 1, .walk_cache_entries = 1024}, true},
    {{.sets = 1, .ways = 1, .walk_cache_entries = 1025}, false},
    {{.sets = 1, .ways = 1, .replacement = (enum tlb_replacement)3}, false},
};

START_TEST(unusable_configurations_are_refused_with_a_reason)
{
    struct tlb *tlb = tlb_new(&config_cases[_i].config);

    ck_assert_msg((tlb != NULL) == config_cases[_i].usable, "row %d", _i);
    ck_assert_int_eq(tlb_config_problem(&config_cases[_i].config) == NULL,
                     config_cases[_i].usable);
    tlb_free(tlb);
}
END_TEST

static void put_table(struct walk_cache *wc, gva_t va, uint16_t asid,
                      unsigned level, gpa_t next)
{
    struct walk_cache_entry entry = {
        .va = va, .next_table = next, .asid = asid, .level = (uint8_t)level};

    walk_cache_insert(wc, &entry);
}

START_TEST(the_walk_cache_gives_the_deepest_table_of_the_asid)
{
    struct tlb *tlb = make(1, 1, TLB_LRU, 8);
    struct walk_cache *wc = tlb_walk_cache(tlb);
    gva_t va = UINT64_C(0x123456789000);

    put_table(wc, va, 1, 2, 0x3000);
    put_table(wc, va, 1, 0, 0x1000);
    put_table(wc, va, 1, 1, 0x2000);
    ck_assert_uint_eq(walk_cache_lookup(wc, va, 1)->next_table, 0x3000);
    ck_assert_uint_eq(walk_cache_lookup(wc, va ^ 0x1ff000, 1)->next_table,
                      0x3000);
    ck_assert_uint_eq(walk_cache_lookup(wc, va ^ 0x200000, 1)->next_table,
                      0x2000);
    ck_assert_uint_eq(walk_cache_lookup(wc, va ^ 0x40000000, 1)->next_table,
                      0x1000);
    ck_assert_ptr_null(walk_cache_lookup(wc, va ^ UINT64_C(1) << 39, 1));
    ck_assert_ptr_null(walk_cache_lookup(wc, va, 2));
    ck_assert_ptr_null(walk_cache_lookup(wc, va | HIGH, 1));
    ck_assert_ptr_null(walk_cache_lookup(wc, va | UINT64_C(1) << 50, 1));
    tlb_free(tlb);
}
END_TEST

START_TEST(the_walk_cache_replaces_the_same_table_and_evicts_the_oldest)
{
    struct tlb *tlb = make(1, 1, TLB_LRU, 2);
    struct walk_cache *wc = tlb_walk_cache(tlb);

    put_table(wc, 0x00000000, 1, 1, 0x1000);
    put_table(wc, 0x40000000, 1, 1, 0x2000);
    put_table(wc, 0x00000000, 1, 1, 0x3000);
    ck_assert_uint_eq(walk_cache_occupancy(wc), 2);
    ck_assert_uint_eq(walk_cache_lookup(wc, 0, 1)->next_table, 0x3000);
    /* Inserted earlier, but used later. */
    ck_assert_uint_eq(walk_cache_lookup(wc, 0x40000000, 1)->next_table, 0x2000);
    put_table(wc, 0x80000000, 1, 1, 0x4000);
    ck_assert_ptr_null(walk_cache_lookup(wc, 0, 1));
    ck_assert_ptr_nonnull(walk_cache_lookup(wc, 0x40000000, 1));
    ck_assert_uint_eq(tlb_counters(tlb)->table_evictions, 1);
    tlb_free(tlb);
}
END_TEST

START_TEST(a_tlb_may_have_no_walk_cache)
{
    struct tlb *tlb = make(1, 1, TLB_LRU, 0);
    struct tlbi_op op = {.kind = TLBI_ALL};

    ck_assert_ptr_null(tlb_walk_cache(tlb));
    ck_assert_uint_eq(tlb_invalidate(tlb, &op, NULL, NULL), 0);
    tlb_free(tlb);
    tlb_free(NULL);
}
END_TEST

START_TEST(a_rollback_brings_entries_back_as_never_granted)
{
    struct tlb *tlb = make(4, 2, TLB_LRU, 4);
    struct walk_cache_entry table = {.va = 0x200000, .asid = 1, .level = 2};
    struct tlbi_op all = {.kind = TLBI_ALL};
    uint64_t lookups;

    put(tlb, 0x1000, 1, 0x80000000, 12, false);
    put(tlb, 0x2000, 1, 0x90000000, 12, false);
    tlb_lookup(tlb, 0x1000, 1)->owner_tag = 99;
    walk_cache_insert(tlb_walk_cache(tlb), &table);
    ck_assert(tlb_checkpoint(tlb));
    for (unsigned round = 0; round < 3; round++) {
        tlb_lookup(tlb, 0x2000, 1)->owner_tag = 98;
        tlb_invalidate(tlb, &all, NULL, NULL);
        put(tlb, 0x1000, 1, 0xa0000000, 12, false);
        lookups = tlb_counters(tlb)->lookups;
        tlb_rollback(tlb);
        ck_assert_uint_eq(tlb_counters(tlb)->lookups, lookups);
        ck_assert_uint_eq(tlb_occupancy(tlb), 2);
        ck_assert_uint_eq(tlb_peek(tlb, 0x1000, 1)->t.base, 0x80000000);
        ck_assert_uint_eq(tlb_peek(tlb, 0x1000, 1)->owner_tag, 0);
        ck_assert_uint_eq(tlb_peek(tlb, 0x2000, 1)->owner_tag, 0);
        ck_assert_uint_eq(walk_cache_occupancy(tlb_walk_cache(tlb)), 1);
    }
    tlb_free(tlb);
}
END_TEST

START_TEST(a_rollback_without_a_checkpoint_does_nothing)
{
    struct tlb *tlb = make(4, 2, TLB_LRU, 4);

    put(tlb, 0x1000, 1, 0x80000000, 12, false);
    tlb_rollback(tlb);
    ck_assert_ptr_nonnull(tlb_lookup(tlb, 0x1000, 1));
    tlb_free(tlb);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tlb");
    TCase *tc = tcase_create("tlb");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, an_entry_answers_for_its_page_and_asid_only);
    tcase_add_test(tc, a_global_entry_answers_for_every_asid);
    tcase_add_test(tc, asid_bits_are_all_compared);
    tcase_add_test(tc, address_bits_are_all_compared);
    tcase_add_loop_test(tc, block_entries_answer_for_the_whole_block, 0, 3);
    tcase_add_test(tc, entries_of_several_sizes_coexist_and_the_smallest_wins);
    tcase_add_test(tc, what_a_tlb_cannot_hold_is_refused);
    tcase_add_test(tc, addresses_that_are_not_canonical_never_hit);
    tcase_add_test(
        tc, inserting_the_same_page_again_replaces_and_reports_the_old_entry);
    tcase_add_test(tc, a_full_set_evicts_and_other_sets_do_not);
    tcase_add_loop_test(tc, lru_spares_what_was_used_fifo_does_not, 0, 2);
    tcase_add_test(tc,
                   random_replacement_repeats_with_the_seed_and_uses_every_way);
    tcase_add_test(tc, the_whole_capacity_is_usable);
    tcase_add_test(tc, occupancy_counts_entries_of_every_size_in_and_out);
    tcase_add_test(tc, foreach_visits_valid_entries_until_told_to_stop);
    tcase_add_test(tc, a_copy_goes_on_like_the_original);
    tcase_add_loop_test(tc, unusable_configurations_are_refused_with_a_reason,
                        0, COUNT(config_cases));
    tcase_add_test(tc, the_walk_cache_gives_the_deepest_table_of_the_asid);
    tcase_add_test(
        tc, the_walk_cache_replaces_the_same_table_and_evicts_the_oldest);
    tcase_add_test(tc, a_tlb_may_have_no_walk_cache);
    tcase_add_test(tc, a_rollback_brings_entries_back_as_never_granted);
    tcase_add_test(tc, a_rollback_without_a_checkpoint_does_nothing);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
