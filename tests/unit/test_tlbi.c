/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: TLBI encodings, operands, and what each operation removes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "mmu/tlb.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define HIGH UINT64_C(0xffff000000000000)

static const struct {
    unsigned crm, op2;
    const char *name;
} encodings[] = {
    {7, 0, "VMALLE1"}, {3, 0, "VMALLE1IS"}, {1, 0, "VMALLE1OS"},
    {7, 1, "VAE1"},    {3, 1, "VAE1IS"},    {1, 1, "VAE1OS"},
    {7, 2, "ASIDE1"},  {3, 2, "ASIDE1IS"},  {1, 2, "ASIDE1OS"},
    {7, 3, "VAAE1"},   {3, 3, "VAAE1IS"},   {1, 3, "VAAE1OS"},
    {7, 5, "VALE1"},   {3, 5, "VALE1IS"},   {1, 5, "VALE1OS"},
    {7, 7, "VAALE1"},  {3, 7, "VAALE1IS"},  {1, 7, "VAALE1OS"},
    {6, 1, "RVAE1"},   {2, 1, "RVAE1IS"},   {5, 1, "RVAE1OS"},
    {6, 3, "RVAAE1"},  {2, 3, "RVAAE1IS"},  {5, 3, "RVAAE1OS"},
    {6, 5, "RVALE1"},  {2, 5, "RVALE1IS"},  {5, 5, "RVALE1OS"},
    {6, 7, "RVAALE1"}, {2, 7, "RVAALE1IS"}, {5, 7, "RVAALE1OS"},
};

START_TEST(encodings_have_the_architected_names)
{
    struct tlbi_op op;

    ck_assert_msg(
        tlbi_decode(0, 8, encodings[_i].crm, encodings[_i].op2, 0, true, &op),
        "%s", encodings[_i].name);
    ck_assert_str_eq(tlbi_name(&op), encodings[_i].name);
}
END_TEST

START_TEST(no_other_encoding_is_one)
{
    int found = 0;

    for (unsigned op1 = 0; op1 < 8; op1++) {
        for (unsigned crn = 0; crn < 16; crn++) {
            for (unsigned low = 0; low < 128; low++) {
                struct tlbi_op op;

                memset(&op, 0xa5, sizeof(op));
                if (tlbi_decode(op1, crn, low >> 3, low & 7, 0, true, &op)) {
                    found++;
                } else {
                    ck_assert_uint_eq(op.size, UINT64_C(0xa5a5a5a5a5a5a5a5));
                }
            }
        }
    }
    ck_assert_int_eq(found, COUNT(encodings));
}
END_TEST

/* The local form of an operation by name, with an operand. */
static struct tlbi_op operation(const char *name, uint64_t xt)
{
    struct tlbi_op op;

    for (int i = 0; i < COUNT(encodings); i++) {
        if (strcmp(encodings[i].name, name) == 0) {
            ck_assert(tlbi_decode(0, 8, encodings[i].crm, encodings[i].op2, xt,
                                  true, &op));
            return op;
        }
    }
    ck_abort_msg("no operation is called %s", name);
}

#define XT(asid, ttl, va)                                                      \
    ((uint64_t)(asid) << 48 | (uint64_t)(ttl) << 44 |                          \
     ((uint64_t)(va) >> 12 & UINT64_C(0xfffffffffff)))
#define XR(asid, tg, scale, num, ttl, va)                                      \
    ((uint64_t)(asid) << 48 | (uint64_t)(tg) << 46 | (uint64_t)(scale) << 44 | \
     (uint64_t)(num) << 39 | (uint64_t)(ttl) << 37 |                           \
     ((uint64_t)(va) >> 12 & UINT64_C(0x1fffffffff)))

static const struct {
    const char *name;
    uint64_t xt;
    uint16_t asid;
    gva_t va;
    uint64_t size;
    unsigned ttl;
} operand_cases[] = {
    {"VAE1", XT(0x1234, 0, 0x7654321000), 0x1234, 0x7654321000, 0x1000, 0},
    {"VAE1", XT(0, 0, HIGH | 0x5000), 0, HIGH | 0x5000, 0x1000, 0},
    {"VAE1", XT(0, 0, UINT64_C(1) << 54), 0, UINT64_C(1) << 54, 0x1000, 0},
    {"VAAE1", XT(0x1234, 0, 0x5000), 0, 0x5000, 0x1000, 0},
    {"VALE1", XT(1, 5, 0x5000), 1, 0x5000, 0x1000, 1},
    {"VALE1", XT(1, 6, 0x5000), 1, 0x5000, 0x1000, 2},
    {"VALE1", XT(1, 7, 0x5000), 1, 0x5000, 0x1000, 3},
    {"VALE1", XT(1, 4, 0x5000), 1, 0x5000, 0x1000, 0},
    {"VALE1", XT(1, 3, 0x5000), 1, 0x5000, 0x1000, 0},
    {"VALE1", XT(1, 8, 0x5000), 1, 0x5000, 0x1000, 0},
    {"VALE1", XT(1, 12, 0x5000), 1, 0x5000, 0x1000, 0},
    {"VALE1", XT(1, 11, 0x5000), 1, 0x5000, 0, 3},
    {"VALE1", XT(1, 15, 0x5000), 1, 0x5000, 0, 3},
    {"RVAE1", XR(9, 1, 0, 0, 0, 0x5000), 9, 0x5000, 2 * 0x1000, 0},
    {"RVAE1", XR(9, 1, 0, 31, 0, 0x5000), 9, 0x5000, 64 * 0x1000, 0},
    {"RVAE1", XR(9, 1, 1, 0, 0, 0x5000), 9, 0x5000, 64 * 0x1000, 0},
    {"RVAE1", XR(9, 1, 2, 2, 0, 0x5000), 9, 0x5000, 3 * 2048 * 0x1000, 0},
    {"RVAE1", XR(9, 1, 3, 31, 0, 0), 9, 0, UINT64_C(1) << 33, 0},
    {"RVAE1", XR(9, 1, 0, 0, 0, HIGH | 0x5000), 9, HIGH | 0x5000, 0x2000, 0},
    {"RVAAE1", XR(9, 1, 0, 0, 3, 0x5000), 0, 0x5000, 0x2000, 3},
    {"RVAE1", XR(9, 0, 0, 0, 0, 0x5000), 9, 0x5000, 0, 0},
    {"RVAE1", XR(9, 2, 0, 0, 0, 0x5000), 9, 0x5000, 0, 0},
    {"RVAE1", XR(9, 3, 0, 0, 0, 0x5000), 9, 0x5000, 0, 0},
    {"RVALE1", XR(9, 1, 1, 7, 2, 0x200000), 9, 0x200000, 0x200000, 2},
    {"RVALE1", XR(9, 1, 1, 7, 2, 0x201000), 9, 0x201000, 0, 2},
    {"RVALE1", XR(9, 1, 1, 7, 1, 0x40000000), 9, 0x40000000, 0x200000, 1},
    {"RVALE1", XR(9, 1, 1, 7, 1, 0x40200000), 9, 0x40200000, 0, 1},
};

START_TEST(operands_are_decoded)
{
    struct tlbi_op op = operation(operand_cases[_i].name, operand_cases[_i].xt);

    ck_assert_msg(op.asid == operand_cases[_i].asid, "row %d: asid", _i);
    ck_assert_msg(op.va == operand_cases[_i].va, "row %d: va %llx", _i,
                  (unsigned long long)op.va);
    ck_assert_msg(op.size == operand_cases[_i].size, "row %d: size %llx", _i,
                  (unsigned long long)op.size);
    ck_assert_msg(op.ttl_level == operand_cases[_i].ttl, "row %d: ttl", _i);
    ck_assert_int_eq(op.is_range, operand_cases[_i].name[0] == 'R');
}
END_TEST

START_TEST(asids_of_8_bits_ignore_the_upper_byte)
{
    struct tlbi_op op;

    ck_assert(tlbi_decode(0, 8, 7, 1, XT(0x1234, 0, 0), false, &op));
    ck_assert_uint_eq(op.asid, 0x34);
    ck_assert(tlbi_decode(0, 8, 7, 2, XT(0x1234, 0, 0), false, &op));
    ck_assert_uint_eq(op.asid, 0x34);
}
END_TEST

/*
 * The contents before each operation. Letters name what survives:
 *   a  page, ASID 1, at 4 MiB          b  the same page, ASID 2
 *   g  global page at 4 MiB + 4 KiB    n  page, ASID 1, at 4 MiB + 8 KiB
 *   m  2 MiB block, ASID 1, at 2 MiB   h  1 GiB block, ASID 1, at 1 GiB
 *   k  high global page at HIGH + 4 MiB
 *   0 1 2  tables over 4 MiB, ASID 1, of that level
 *   x y z  the same of ASID 2          K  high table of level 2, ASID 1
 */
#define V4M UINT64_C(0x400000)
#define V2M UINT64_C(0x200000)
#define V1G UINT64_C(0x40000000)

static const struct {
    char letter;
    gva_t va;
    uint16_t asid;
    unsigned shift;
    bool global;
} leaves[] = {
    {'a', V4M, 1, 12, false},         {'b', V4M, 2, 12, false},
    {'g', V4M + 0x1000, 1, 12, true}, {'n', V4M + 0x2000, 1, 12, false},
    {'m', V2M, 1, 21, false},         {'h', V1G, 1, 30, false},
    {'k', HIGH | V4M, 1, 12, true},
};

static const struct {
    char letter;
    gva_t va;
    uint16_t asid;
    unsigned level;
} tables[] = {
    {'0', V4M, 1, 0},        {'1', V4M, 1, 1}, {'2', V4M, 1, 2},
    {'x', V4M, 2, 0},        {'y', V4M, 2, 1}, {'z', V4M, 2, 2},
    {'K', HIGH | V4M, 1, 2},
};

static const struct {
    const char *name;
    uint64_t xt;
    const char *left;
} removal_cases[] = {
    {"VMALLE1", 0, ""},
    {"ASIDE1", XT(1, 0, 0), "bgkxyz"},
    {"ASIDE1", XT(3, 0, 0), "abgnmhk012xyzK"},
    /* A page by address. Tables above it go too, of that ASID. */
    {"VAE1", XT(1, 0, V4M), "bgnmhkxyzK"},
    {"VAE1", XT(2, 0, V4M), "agnmhk012K"},
    {"VAE1", XT(3, 0, V4M), "abgnmhk012xyzK"},
    {"VALE1", XT(1, 0, V4M), "bgnmhk012xyzK"},
    {"VAAE1", XT(0, 0, V4M), "gnmhkK"},
    {"VAALE1", XT(9, 0, V4M), "gnmhk012xyzK"},
    /* A global entry goes whatever the ASID. */
    {"VALE1", XT(9, 0, V4M + 0x1000), "abnmhk012xyzK"},
    {"VAE1", XT(1, 0, HIGH | V4M), "abgnmh012xyz"},
    /* The high table has a tag: only its own ASID or VAA removes it. */
    {"VAE1", XT(2, 0, HIGH | V4M), "abgnmh012xyzK"},
    {"VAAE1", XT(0, 0, HIGH | V4M), "abgnmh012xyz"},
    /* Any address of a block. */
    {"VALE1", XT(1, 0, V2M + 0x123000), "abgnhk012xyzK"},
    {"VALE1", XT(1, 0, V1G + 0x3ffff000), "abgnmk012xyzK"},
    {"VALE1", XT(1, 0, V1G + V1G), "abgnmhk012xyzK"},
    {"VALE1", XT(2, 0, V2M), "abgnmhk012xyzK"},
    /* A hint names the level of the leaf, and the tables above it. */
    {"VALE1", XT(1, 7, V4M), "bgnmhk012xyzK"},
    {"VALE1", XT(1, 6, V4M), "abgnmhk012xyzK"},
    {"VALE1", XT(1, 6, V2M), "abgnhk012xyzK"},
    {"VALE1", XT(1, 7, V2M), "abgnmhk012xyzK"},
    {"VALE1", XT(1, 5, V1G), "abgnmk012xyzK"},
    {"VALE1", XT(1, 6, V1G), "abgnmhk012xyzK"},
    {"VAE1", XT(1, 7, V4M), "bgnmhkxyzK"},
    {"VAE1", XT(1, 6, V4M), "abgnmhk2xyzK"},
    {"VAE1", XT(1, 5, V4M), "abgnmhk12xyzK"},
    /* A hint for another granule names nothing. */
    {"VAE1", XT(1, 11, V4M), "abgnmhk012xyzK"},
    {"VAE1", XT(1, 15, V4M), "abgnmhk012xyzK"},
    /* Two pages; sixty-four pages; then with hints. */
    {"RVAE1", XR(1, 1, 0, 0, 0, V4M), "bnmhkxyzK"},
    {"RVALE1", XR(1, 1, 0, 0, 0, V4M), "bnmhk012xyzK"},
    {"RVALE1", XR(1, 1, 0, 0, 0, V4M + 0x1000), "abmhk012xyzK"},
    {"RVALE1", XR(1, 1, 0, 0, 0, V4M - 0x1000), "bgnhk012xyzK"},
    {"RVALE1", XR(1, 1, 0, 0, 0, V4M - 0x2000), "abgnhk012xyzK"},
    {"RVALE1", XR(1, 1, 1, 0, 0, V4M), "bmhk012xyzK"},
    {"RVALE1", XR(1, 1, 1, 15, 2, V2M), "abgnhk012xyzK"},
    {"RVALE1", XR(1, 1, 1, 15, 3, V2M), "bmhk012xyzK"},
    {"RVAE1", XR(1, 1, 1, 15, 2, V2M), "abgnhk2xyzK"},
    {"RVAAE1", XR(0, 1, 1, 15, 0, V2M), "hkK"},
    {"RVAALE1", XR(0, 1, 3, 31, 0, 0), "k012xyzK"},
    {"RVAALE1", XR(0, 1, 3, 31, 0, HIGH), "abgnmh012xyzK"},
    {"RVAE1", XR(1, 2, 1, 15, 0, V2M), "abgnmhk012xyzK"},
    {"RVALE1", XR(1, 1, 1, 15, 2, V2M + 0x1000), "abgnmhk012xyzK"},
};

static bool left_table(void *opaque, const struct walk_cache_entry *entry)
{
    char *left = opaque;

    for (int i = 0; i < COUNT(tables); i++) {
        if (tables[i].asid == entry->asid && tables[i].level == entry->level &&
            tables[i].va >> 63 == entry->va >> 63) {
            left[strlen(left)] = tables[i].letter;
        }
    }
    return true;
}

static void dropped(void *opaque, const struct tlb_entry *entry)
{
    unsigned *count = opaque;

    ck_assert(entry->valid);
    ++*count;
}

/* Do two strings have the same letters? */
static bool same_letters(const char *a, const char *b)
{
    return strlen(a) == strlen(b) && strspn(a, b) == strlen(a) &&
           strspn(b, a) == strlen(b);
}

static void remove_and_compare(const struct tlbi_op *op, const char *expected,
                               int row, unsigned sets, unsigned ways)
{
    struct tlb_config config = {
        .sets = sets, .ways = ways, .walk_cache_entries = 16};
    struct tlb *tlb = tlb_new(&config);
    char left[32] = "";
    unsigned drops = 0;
    size_t removed;

    for (int i = 0; i < COUNT(leaves); i++) {
        struct translation t = {.page_shift = (uint8_t)leaves[i].shift,
                                .level = (uint8_t)((39 - leaves[i].shift) / 9),
                                .global = leaves[i].global};

        ck_assert_ptr_nonnull(
            tlb_insert(tlb, leaves[i].va, leaves[i].asid, &t, NULL));
    }
    for (int i = 0; i < COUNT(tables); i++) {
        struct walk_cache_entry entry = {.va = tables[i].va,
                                         .asid = tables[i].asid,
                                         .level = (uint8_t)tables[i].level};

        walk_cache_insert(tlb_walk_cache(tlb), &entry);
    }
    ck_assert_uint_eq(tlb_occupancy(tlb), COUNT(leaves));
    removed = tlb_invalidate(tlb, op, dropped, &drops);
    for (int i = 0; i < COUNT(leaves); i++) {
        if (tlb_peek(tlb, leaves[i].va, leaves[i].asid)) {
            left[strlen(left)] = leaves[i].letter;
        }
    }
    ck_assert_uint_eq(removed, drops);
    ck_assert_uint_eq(removed + strlen(left), COUNT(leaves));
    walk_cache_foreach(tlb_walk_cache(tlb), left_table, left);
    ck_assert_msg(same_letters(left, expected),
                  "row %d, %s, %u sets: left %s, not %s", row, tlbi_name(op),
                  sets, left, expected);
    tlb_free(tlb);
}

START_TEST(operations_remove_what_they_name_and_nothing_else)
{
    struct tlbi_op op = operation(removal_cases[_i].name, removal_cases[_i].xt);

    /* Few sets: all are looked at. Many: only those of the operand. */
    remove_and_compare(&op, removal_cases[_i].left, _i, 1, 16);
    remove_and_compare(&op, removal_cases[_i].left, _i, 64, 8);
    remove_and_compare(&op, removal_cases[_i].left, _i, 65536, 8);
}
END_TEST

static const struct {
    const char *name;
    uint64_t xt;
    bool tables, operands;
    const char *left;
} widen_cases[] = {
    {"VMALLE1", 0, true, true, ""},
    {"ASIDE1", XT(1, 0, 0), true, true, "bgkxyz"},
    /* Last level only becomes all levels. */
    {"VALE1", XT(1, 0, V4M), false, true, "bgnmhk012xyzK"},
    {"VALE1", XT(1, 0, V4M), true, false, "bgnmhkxyzK"},
    {"VAALE1", XT(1, 0, V4M), true, false, "gnmhkK"},
    {"VAE1", XT(1, 0, V4M), true, true, "bgnmhkxyzK"},
    /* A wrong hint, and one for another granule, are not looked at. */
    {"VALE1", XT(1, 6, V4M), true, false, "abgnmhk2xyzK"},
    {"VALE1", XT(1, 6, V4M), false, true, "bgnmhk012xyzK"},
    {"VALE1", XT(1, 6, V4M), true, true, "bgnmhkxyzK"},
    {"VALE1", XT(1, 15, V4M), false, true, "bgnmhk012xyzK"},
    {"VAE1", XT(1, 5, V4M), false, true, "bgnmhkxyzK"},
    /* A range becomes everything of the ASID, and what is global. */
    {"RVALE1", XR(1, 1, 0, 0, 0, V4M), true, false, "bnmhkxyzK"},
    {"RVALE1", XR(1, 1, 0, 0, 0, V4M), false, true, "b012xyzK"},
    {"RVALE1", XR(1, 1, 0, 0, 0, V4M), true, true, "bxyz"},
    {"RVALE1", XR(9, 1, 0, 0, 0, HIGH), true, true, "abnmh012xyzK"},
    {"RVAALE1", XR(0, 1, 0, 0, 0, V1G), false, true, "012xyzK"},
    {"RVAAE1", XR(0, 1, 0, 0, 0, V1G), false, true, ""},
    /* Also one that names nothing. */
    {"RVAE1", XR(1, 2, 1, 15, 0, V2M), false, true, "bxyz"},
    {"RVALE1", XR(1, 1, 1, 15, 2, V2M + 0x1000), false, true, "b012xyzK"},
    {"RVALE1", XR(1, 1, 1, 15, 2, V2M + 0x1000), false, false,
     "abgnmhk012xyzK"},
};

START_TEST(widened_operations_remove_what_less_literal_hardware_would)
{
    struct tlbi_op op = operation(widen_cases[_i].name, widen_cases[_i].xt);

    tlbi_widen(&op, widen_cases[_i].tables, widen_cases[_i].operands);
    remove_and_compare(&op, widen_cases[_i].left, _i, 1, 16);
    remove_and_compare(&op, widen_cases[_i].left, _i, 64, 8);
    remove_and_compare(&op, widen_cases[_i].left, _i, 65536, 8);
}
END_TEST

START_TEST(the_widest_range_reaches_both_ends_of_the_address_space)
{
    struct tlbi_op op = operation("RVALE1", XR(1, 1, 0, 0, 0, V4M));

    tlbi_widen(&op, false, true);
    ck_assert(tlbi_covers(&op, 0, 12));
    ck_assert(tlbi_covers(&op, UINT64_MAX - 0xfff, 12));
    ck_assert(tlbi_covers(&op, UINT64_MAX - 0x3fffffff, 30));
    ck_assert_str_eq(tlbi_name(&op), "RVALE1");
}
END_TEST

START_TEST(a_range_at_the_top_of_the_address_space_does_not_wrap)
{
    struct tlbi_op op =
        operation("RVALE1", XR(0, 1, 0, 31, 0, UINT64_MAX - 0xfff));

    ck_assert(tlbi_covers(&op, UINT64_MAX - 0xfff, 12));
    ck_assert(tlbi_covers(&op, UINT64_MAX - 0x1fffff, 21));
    ck_assert(!tlbi_covers(&op, 0, 12));
    ck_assert(!tlbi_covers(&op, UINT64_MAX - 0x1fff, 12));
}
END_TEST

START_TEST(last_level_operations_match_no_table)
{
    struct walk_cache_entry table = {.va = V4M, .asid = 1, .level = 2};
    struct tlbi_op all_levels = operation("VAE1", XT(1, 0, V4M));
    struct tlbi_op last_level = operation("VALE1", XT(1, 0, V4M));

    ck_assert(tlbi_matches_table(&all_levels, &table));
    ck_assert(!tlbi_matches_table(&last_level, &table));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tlbi");
    TCase *tc = tcase_create("tlbi");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, encodings_have_the_architected_names, 0,
                        COUNT(encodings));
    tcase_add_test(tc, no_other_encoding_is_one);
    tcase_add_loop_test(tc, operands_are_decoded, 0, COUNT(operand_cases));
    tcase_add_test(tc, asids_of_8_bits_ignore_the_upper_byte);
    tcase_add_loop_test(tc, operations_remove_what_they_name_and_nothing_else,
                        0, COUNT(removal_cases));
    tcase_add_loop_test(
        tc, widened_operations_remove_what_less_literal_hardware_would, 0,
        COUNT(widen_cases));
    tcase_add_test(tc, the_widest_range_reaches_both_ends_of_the_address_space);
    tcase_add_test(tc, last_level_operations_match_no_table);
    tcase_add_test(tc, a_range_at_the_top_of_the_address_space_does_not_wrap);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
