/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: the stage 1 walk, its faults and the permission check. */
#include <check.h>
#include <stdlib.h>

#include "mmu/names.h"
#include "mmu/tlb.h"
#include "mmu_fixture.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define VA UINT64_C(0x0000123456789abc)
#define HIGH_VA (VA | UINT64_C(0xffff) << 48)
#define OUT UINT64_C(0x0000008765432000)

static struct fake_mem mem;
static struct walk_mem reader;
static gpa_t root0, root1;
static struct regime regime;
static struct tlb *tlb; /* for its walk cache */

static void setup(void)
{
    static const struct tlb_config config = {
        .sets = 1, .ways = 1, .walk_cache_entries = 8};

    memset(&mem, 0, sizeof(mem));
    reader = fake_walk_mem(&mem);
    root0 = fake_page(&mem);
    root1 = fake_page(&mem);
    regime = fake_regime(root0, root1, 5);
    tlb = tlb_new(&config);
    ck_assert_ptr_nonnull(tlb);
}

static void teardown(void)
{
    tlb_free(tlb);
}

/* Writes `desc` at `level` of VA's walk and walks. */
static struct walk_result walk_of(unsigned level, uint64_t desc)
{
    *fake_slot(&mem, root0, VA, level) = desc;
    return walk_stage1(&regime, &reader, VA);
}

#define PAGE (DESC_VALID | DESC_TABLE_OR_PAGE)
#define BLOCK DESC_VALID
#define BEYOND_40 (UINT64_C(1) << 40)

static const struct {
    const char *name;
    unsigned level;
    uint64_t desc;
    unsigned pa_bits;
    enum walk_fault fault;
    gpa_t base;
} leaf_cases[] = {
    {"an invalid entry at level 0", 0, 0, 48, WALK_FAULT_TRANSLATION, 0},
    {"an invalid entry at level 1", 1, OUT | DESC_AF, 48,
     WALK_FAULT_TRANSLATION, 0},
    {"bit 1 alone is invalid, level 2", 2, DESC_TABLE_OR_PAGE | DESC_AF, 48,
     WALK_FAULT_TRANSLATION, 0},
    {"an invalid entry at level 3", 3, 0, 48, WALK_FAULT_TRANSLATION, 0},
    {"a block at level 0 is reserved", 0, BLOCK | DESC_AF, 48,
     WALK_FAULT_TRANSLATION, 0},
    {"a block at level 3 is reserved", 3, OUT | BLOCK | DESC_AF, 48,
     WALK_FAULT_TRANSLATION, 0},
    {"a 1 GiB block", 1, OUT | BLOCK | DESC_AF, 48, WALK_OK,
     OUT & ~UINT64_C(0x3fffffff)},
    {"a 2 MiB block", 2, OUT | BLOCK | DESC_AF, 48, WALK_OK,
     OUT & ~UINT64_C(0x1fffff)},
    {"a page", 3, OUT | PAGE | DESC_AF, 48, WALK_OK, OUT},
    {"a contiguous page is one page", 3, OUT | PAGE | DESC_AF | DESC_CONTIGUOUS,
     48, WALK_OK, OUT},
    {"bits 51:48 are RES0", 3, OUT | PAGE | DESC_AF | UINT64_C(15) << 48, 48,
     WALK_OK, OUT},
    {"the access flag of a 1 GiB block", 1, OUT | BLOCK, 48,
     WALK_FAULT_ACCESS_FLAG, 0},
    {"the access flag of a 2 MiB block", 2, OUT | BLOCK, 48,
     WALK_FAULT_ACCESS_FLAG, 0},
    {"the access flag of a page", 3, OUT | PAGE, 48, WALK_FAULT_ACCESS_FLAG, 0},
    {"an output beyond IPS, level 1", 1, BEYOND_40 | BLOCK | DESC_AF, 40,
     WALK_FAULT_ADDRESS_SIZE, 0},
    {"an output beyond IPS, level 2", 2, BEYOND_40 | BLOCK | DESC_AF, 40,
     WALK_FAULT_ADDRESS_SIZE, 0},
    {"an output beyond IPS, level 3", 3, BEYOND_40 | PAGE | DESC_AF, 40,
     WALK_FAULT_ADDRESS_SIZE, 0},
    {"the output just inside IPS", 3, (BEYOND_40 >> 1) | PAGE | DESC_AF, 40,
     WALK_OK, BEYOND_40 >> 1},
    {"address size goes before access flag", 3, BEYOND_40 | PAGE, 40,
     WALK_FAULT_ADDRESS_SIZE, 0},
    {"a table beyond IPS, level 0", 0, BEYOND_40 | PAGE, 40,
     WALK_FAULT_ADDRESS_SIZE, 0},
    {"a table beyond IPS, level 2", 2, BEYOND_40 | PAGE, 40,
     WALK_FAULT_ADDRESS_SIZE, 0},
};

START_TEST(descriptors_give_a_translation_or_a_fault_at_their_level)
{
    struct walk_result r;
    unsigned level = leaf_cases[_i].level;

    regime.pa_bits = (uint8_t)leaf_cases[_i].pa_bits;
    r = walk_of(level, leaf_cases[_i].desc);
    ck_assert_msg(r.fault == leaf_cases[_i].fault, "%s: fault %s",
                  leaf_cases[_i].name, walk_fault_name(r.fault));
    ck_assert_msg(r.level == level, "%s: level %u", leaf_cases[_i].name,
                  r.level);
    ck_assert_uint_eq(r.tables, level + 1);
    ck_assert_uint_eq(r.desc, leaf_cases[_i].desc);
    if (r.fault == WALK_OK) {
        ck_assert_msg(r.t.base == leaf_cases[_i].base, "%s: base",
                      leaf_cases[_i].name);
        ck_assert_uint_eq(r.t.level, level);
        ck_assert_uint_eq(r.t.page_shift, 39 - 9 * level);
        ck_assert_uint_eq(translation_pa(&r.t, VA),
                          leaf_cases[_i].base |
                              (VA & ((UINT64_C(1) << r.t.page_shift) - 1)));
    }
}
END_TEST

START_TEST(a_walk_reports_the_addresses_of_the_descriptors_it_read)
{
    struct walk_result r = walk_of(3, OUT | PAGE | DESC_AF);

    for (unsigned level = 0; level < 4; level++) {
        uint64_t *word = fake_slot(&mem, root0, VA, level);

        ck_assert_ptr_eq(fake_word(&mem, r.table[level]), word);
    }
}
END_TEST

START_TEST(attributes_and_ng_are_copied)
{
    struct walk_result r =
        walk_of(3, OUT | PAGE | DESC_AF | DESC_ATTR(5) | DESC_SH(3) | DESC_NG);

    ck_assert_uint_eq(r.t.attr_index, 5);
    ck_assert_uint_eq(r.t.sh, 3);
    ck_assert(!r.t.global && !r.t.flat);
    r = walk_of(3, OUT | PAGE | DESC_AF | DESC_SH(2));
    ck_assert_uint_eq(r.t.attr_index, 0);
    ck_assert_uint_eq(r.t.sh, 2);
    ck_assert(r.t.global);
}
END_TEST

START_TEST(an_unreadable_descriptor_is_an_external_fault_at_its_level)
{
    /* Row 0: the root; row n: the table that level n - 1 points to. */
    unsigned level = (unsigned)_i;
    struct walk_result r;

    if (level == 0) {
        regime.half[0].base = UINT64_C(0x80000000);
        r = walk_stage1(&regime, &reader, VA);
    } else {
        r = walk_of(level - 1, UINT64_C(0x80000000) | PAGE);
    }
    ck_assert_int_eq(r.fault, WALK_FAULT_EXTERNAL);
    ck_assert_uint_eq(r.level, level);
}
END_TEST

START_TEST(addresses_outside_the_halves_are_translation_faults_at_level_0)
{
    static const gva_t bad[] = {
        UINT64_C(1) << 48,
        UINT64_C(0xfffe) << 48,
        UINT64_C(0x0100) << 48,
        UINT64_C(0x7fff) << 48,
    };

    for (int i = 0; i < COUNT(bad); i++) {
        struct walk_result r = walk_stage1(&regime, &reader, bad[i]);

        ck_assert_int_eq(r.fault, WALK_FAULT_TRANSLATION);
        ck_assert_uint_eq(r.level, 0);
        ck_assert_uint_eq(r.tables, 0);
    }
}
END_TEST

START_TEST(epd_stops_the_walk_of_its_half_only)
{
    *fake_slot(&mem, root0, VA, 3) = OUT | PAGE | DESC_AF;
    *fake_slot(&mem, root1, HIGH_VA, 3) = OUT | PAGE | DESC_AF;
    for (unsigned half = 0; half < 2; half++) {
        struct walk_result low, high;

        regime.half[0].epd = half == 0;
        regime.half[1].epd = half == 1;
        low = walk_stage1(&regime, &reader, VA);
        high = walk_stage1(&regime, &reader, HIGH_VA);
        ck_assert_int_eq(low.fault, half == 0 ? WALK_FAULT_TRANSLATION : 0);
        ck_assert_int_eq(high.fault, half == 1 ? WALK_FAULT_TRANSLATION : 0);
        ck_assert_uint_eq((half ? high : low).level, 0);
    }
}
END_TEST

START_TEST(a_base_beyond_ips_is_an_address_size_fault_at_level_0)
{
    struct walk_result r;

    regime_decode(&regime, SCTLR_M, FAKE_TCR & ~(TCR_IPS_MASK << 32),
                  UINT64_C(1) << 33, root1);
    r = walk_stage1(&regime, &reader, VA);
    ck_assert_int_eq(r.fault, WALK_FAULT_ADDRESS_SIZE);
    ck_assert_uint_eq(r.level, 0);
    ck_assert_uint_eq(r.tables, 0);
}
END_TEST

START_TEST(smaller_halves_start_lower_and_do_not_index_with_the_sign)
{
    /* 36 bits: level 1 with 6 index bits. 22 bits: level 2 with one. */
    static const struct {
        unsigned tsz, level;
        gva_t va;
        unsigned index;
    } cases[] = {
        {28, 1, 0xfffffff840000000, 33},
        {28, 1, 0x0000000840000000, 33},
        {42, 2, 0xffffffffffe00000, 1},
        {45, 3, 0xfffffffffffc0000, 64},
    };

    for (int i = 0; i < COUNT(cases); i++) {
        uint64_t tcr = (uint64_t)cases[i].tsz | (uint64_t)cases[i].tsz << 16 |
                       UINT64_C(5) << 32;
        struct walk_result r;

        regime_decode(&regime, SCTLR_M, tcr, root0, root0);
        r = walk_stage1(&regime, &reader, cases[i].va);
        ck_assert_int_eq(r.fault, WALK_FAULT_TRANSLATION);
        ck_assert_uint_eq(r.level, cases[i].level);
        ck_assert_uint_eq(r.table[0], root0 + 8 * cases[i].index);
    }
}
END_TEST

START_TEST(tags_are_ignored_under_tbi_only)
{
    gva_t tagged = VA | UINT64_C(0xa5) << 56;

    (void)walk_of(3, OUT | PAGE | DESC_AF);
    ck_assert_int_eq(walk_stage1(&regime, &reader, tagged).fault,
                     WALK_FAULT_TRANSLATION);
    regime.half[0].tbi = true;
    ck_assert_int_eq(walk_stage1(&regime, &reader, tagged).fault, WALK_OK);
}
END_TEST

START_TEST(with_the_mmu_off_addresses_are_flat_up_to_48_bits)
{
    struct walk_result r;

    regime.mmu_on = false;
    r = walk_stage1(&regime, &reader, UINT64_C(0xfedcba987654));
    ck_assert_int_eq(r.fault, WALK_OK);
    ck_assert_uint_eq(r.t.base, UINT64_C(0xfedcba987000));
    ck_assert_uint_eq(r.t.page_shift, 12);
    ck_assert_uint_eq(r.t.perms, PERM_ALL);
    ck_assert(r.t.flat);
    r = walk_stage1(&regime, &reader, UINT64_C(1) << 48);
    ck_assert_int_eq(r.fault, WALK_FAULT_ADDRESS_SIZE);
    ck_assert_uint_eq(r.level, 0);
    r = walk_stage1(&regime, &reader, HIGH_VA);
    ck_assert_int_eq(r.fault, WALK_FAULT_ADDRESS_SIZE);
    regime.half[0].tbi = true;
    r = walk_stage1(&regime, &reader, UINT64_C(0xa500000000001234));
    ck_assert_int_eq(r.fault, WALK_OK);
    ck_assert_uint_eq(translation_pa(&r.t, 0x1234), 0x1234);
    ck_assert_uint_eq(mem.reads, 0);
}
END_TEST

#define RO DESC_AP_READ_ONLY
#define EL0 DESC_AP_EL0
#define T_NO_EL0 DESC_AP_TABLE_NO_EL0
#define T_NO_WRITE DESC_AP_TABLE_NO_WRITE

static const struct {
    uint64_t desc, table;
    bool wxn;
    const char *perms;
} perm_cases[] = {
    {0, 0, false, "rwx/--x"},
    {EL0, 0, false, "rw-/rwx"},
    {RO, 0, false, "r-x/--x"},
    {RO | EL0, 0, false, "r-x/r-x"},
    {DESC_UXN, 0, false, "rwx/---"},
    {DESC_PXN, 0, false, "rw-/--x"},
    {EL0 | DESC_UXN, 0, false, "rw-/rw-"},
    {RO | EL0 | DESC_PXN, 0, false, "r--/r-x"},
    {RO | EL0 | DESC_UXN, 0, false, "r-x/r--"},
    {0, 0, true, "rw-/--x"},
    {EL0, 0, true, "rw-/rw-"},
    {RO, 0, true, "r-x/--x"},
    {RO | EL0, 0, true, "r-x/r-x"},
    {EL0, T_NO_EL0, false, "rwx/--x"},
    {EL0, T_NO_WRITE, false, "r-x/r-x"},
    {EL0, T_NO_EL0 | T_NO_WRITE, false, "r-x/--x"},
    {0, T_NO_WRITE, true, "r-x/--x"},
    {0, DESC_UXN_TABLE, false, "rwx/---"},
    {0, DESC_PXN_TABLE, false, "rw-/--x"},
    {RO | EL0, DESC_UXN_TABLE | DESC_PXN_TABLE, false, "r--/r--"},
    {0, DESC_NS_TABLE, false, "rwx/--x"},
};

START_TEST(permissions_follow_ap_xn_wxn_and_the_tables)
{
    char text[PERM_TEXT_SIZE];

    regime.wxn = perm_cases[_i].wxn;
    (void)walk_of(3, OUT | PAGE | DESC_AF | perm_cases[_i].desc);
    /* A limit counts at whichever level it stands. */
    for (unsigned level = 0; level < 3; level++) {
        uint64_t *slot = fake_slot(&mem, root0, VA, level);
        struct walk_result r;

        *slot |= perm_cases[_i].table;
        r = walk_stage1(&regime, &reader, VA);
        perm_text(r.t.perms, text);
        ck_assert_msg(strcmp(text, perm_cases[_i].perms) == 0,
                      "row %d, level %u: %s, not %s", _i, level, text,
                      perm_cases[_i].perms);
        *slot &= ~perm_cases[_i].table;
    }
}
END_TEST

START_TEST(limits_of_several_tables_add_up_and_hpd_ignores_them)
{
    char text[PERM_TEXT_SIZE];
    struct walk_result r;

    (void)walk_of(3, OUT | PAGE | DESC_AF | EL0);
    *fake_slot(&mem, root0, VA, 0) |= T_NO_WRITE;
    *fake_slot(&mem, root0, VA, 1) |= DESC_UXN_TABLE;
    *fake_slot(&mem, root0, VA, 2) |= DESC_PXN_TABLE;
    r = walk_stage1(&regime, &reader, VA);
    perm_text(r.t.perms, text);
    ck_assert_str_eq(text, "r--/r--");
    regime.half[1].hpd = true;
    r = walk_stage1(&regime, &reader, VA);
    perm_text(r.t.perms, text);
    ck_assert_str_eq(text, "r--/r--");
    regime.half[0].hpd = true;
    r = walk_stage1(&regime, &reader, VA);
    perm_text(r.t.perms, text);
    ck_assert_str_eq(text, "rw-/rwx");
}
END_TEST

static const struct {
    uint8_t perms;
    enum access_type type;
    bool el0, pan, allowed;
} check_cases[] = {
    {PERM_R1, ACCESS_READ, false, false, true},
    {PERM_ALL & ~PERM_R1, ACCESS_READ, false, false, false},
    {PERM_W1, ACCESS_WRITE, false, false, true},
    {PERM_ALL & ~PERM_W1, ACCESS_WRITE, false, false, false},
    {PERM_X1, ACCESS_EXEC, false, false, true},
    {PERM_ALL & ~PERM_X1, ACCESS_EXEC, false, false, false},
    {PERM_R0, ACCESS_READ, true, false, true},
    {PERM_ALL & ~PERM_R0, ACCESS_READ, true, false, false},
    {PERM_W0, ACCESS_WRITE, true, false, true},
    {PERM_ALL & ~PERM_W0, ACCESS_WRITE, true, false, false},
    {PERM_X0, ACCESS_EXEC, true, false, true},
    {PERM_ALL & ~PERM_X0, ACCESS_EXEC, true, false, false},
    /* PAN: EL1, data, and something EL0 can read. */
    {PERM_R1 | PERM_R0, ACCESS_READ, false, true, false},
    {PERM_R1 | PERM_W1 | PERM_R0, ACCESS_WRITE, false, true, false},
    {PERM_R1 | PERM_X0, ACCESS_READ, false, true, true},
    {PERM_X1 | PERM_R0, ACCESS_EXEC, false, true, true},
    {PERM_R1 | PERM_R0, ACCESS_READ, true, true, true},
};

START_TEST(accesses_are_checked_by_level_kind_and_pan)
{
    struct translation t = {.perms = check_cases[_i].perms, .page_shift = 12};
    struct access access = {.type = check_cases[_i].type,
                            .el0 = check_cases[_i].el0,
                            .pan = check_cases[_i].pan};

    ck_assert_msg(
        translation_check(&t, &access) ==
            (check_cases[_i].allowed ? WALK_OK : WALK_FAULT_PERMISSION),
        "row %d", _i);
}
END_TEST

START_TEST(pan_does_not_stop_accesses_through_the_flat_map)
{
    struct access access = {.type = ACCESS_WRITE, .pan = true};
    struct walk_result r;

    regime.mmu_on = false;
    r = walk_stage1(&regime, &reader, 0x1000);
    ck_assert_int_eq(translation_check(&r.t, &access), WALK_OK);
}
END_TEST

START_TEST(the_second_walk_starts_at_the_deepest_cached_table)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);
    struct walk_result r;

    (void)walk_of(3, OUT | PAGE | DESC_AF | EL0);
    *fake_slot(&mem, root0, VA, 0) |= T_NO_WRITE;
    r = walk_stage1_from(&regime, &reader, wc, VA);
    ck_assert_uint_eq(r.tables, 4);
    ck_assert_uint_eq(walk_cache_occupancy(wc), 3);
    r = walk_stage1_from(&regime, &reader, wc, VA);
    ck_assert_uint_eq(r.tables, 1);
    ck_assert_uint_eq(r.level, 3);
    ck_assert_uint_eq(r.t.perms & (PERM_W1 | PERM_W0), 0);
    /* A neighbour 2 MiB on shares the tables of levels 0 and 1. */
    r = walk_stage1_from(&regime, &reader, wc, VA + 0x200000);
    ck_assert_uint_eq(r.tables, 1);
    ck_assert_uint_eq(r.level, 2);
}
END_TEST

START_TEST(a_cached_table_is_used_although_memory_has_changed)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);

    (void)walk_of(3, OUT | PAGE | DESC_AF);
    (void)walk_stage1_from(&regime, &reader, wc, VA);
    *fake_slot(&mem, root0, VA, 1) = 0;
    ck_assert_int_eq(walk_stage1(&regime, &reader, VA).fault,
                     WALK_FAULT_TRANSLATION);
    ck_assert_int_eq(walk_stage1_from(&regime, &reader, wc, VA).fault, WALK_OK);
    regime.asid = 6;
    ck_assert_int_eq(walk_stage1_from(&regime, &reader, wc, VA).fault,
                     WALK_FAULT_TRANSLATION);
}
END_TEST

START_TEST(epd_stops_a_walk_that_the_cache_could_shorten)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);

    (void)walk_of(3, OUT | PAGE | DESC_AF);
    (void)walk_stage1_from(&regime, &reader, wc, VA);
    regime.half[0].epd = true;
    ck_assert_int_eq(walk_stage1_from(&regime, &reader, wc, VA).fault,
                     WALK_FAULT_TRANSLATION);
}
END_TEST

START_TEST(hpd_keeps_limits_out_of_the_walk_cache)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);
    struct walk_result r;

    (void)walk_of(3, OUT | PAGE | DESC_AF | EL0);
    *fake_slot(&mem, root0, VA, 1) |= T_NO_WRITE;
    regime.half[0].hpd = true;
    (void)walk_stage1_from(&regime, &reader, wc, VA);
    r = walk_stage1_from(&regime, &reader, wc, VA);
    ck_assert_uint_eq(r.tables, 1);
    ck_assert(r.t.perms & PERM_W0);
}
END_TEST

START_TEST(descriptors_that_fault_are_not_put_into_the_walk_cache)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);

    (void)walk_of(2, 0);
    (void)walk_stage1_from(&regime, &reader, wc, VA);
    ck_assert_uint_eq(walk_cache_occupancy(wc), 2);
    regime.pa_bits = 40;
    (void)walk_of(2, BEYOND_40 | PAGE);
    (void)walk_stage1_from(&regime, &reader, wc, VA);
    ck_assert_uint_eq(walk_cache_occupancy(wc), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("walk");
    TCase *tc = tcase_create("walk");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(
        tc, descriptors_give_a_translation_or_a_fault_at_their_level, 0,
        COUNT(leaf_cases));
    tcase_add_test(tc, a_walk_reports_the_addresses_of_the_descriptors_it_read);
    tcase_add_test(tc, attributes_and_ng_are_copied);
    tcase_add_loop_test(
        tc, an_unreadable_descriptor_is_an_external_fault_at_its_level, 0, 4);
    tcase_add_test(
        tc, addresses_outside_the_halves_are_translation_faults_at_level_0);
    tcase_add_test(tc, epd_stops_the_walk_of_its_half_only);
    tcase_add_test(tc, a_base_beyond_ips_is_an_address_size_fault_at_level_0);
    tcase_add_test(tc,
                   smaller_halves_start_lower_and_do_not_index_with_the_sign);
    tcase_add_test(tc, tags_are_ignored_under_tbi_only);
    tcase_add_test(tc, with_the_mmu_off_addresses_are_flat_up_to_48_bits);
    tcase_add_loop_test(tc, permissions_follow_ap_xn_wxn_and_the_tables, 0,
                        COUNT(perm_cases));
    tcase_add_test(tc, limits_of_several_tables_add_up_and_hpd_ignores_them);
    tcase_add_loop_test(tc, accesses_are_checked_by_level_kind_and_pan, 0,
                        COUNT(check_cases));
    tcase_add_test(tc, pan_does_not_stop_accesses_through_the_flat_map);
    tcase_add_test(tc, the_second_walk_starts_at_the_deepest_cached_table);
    tcase_add_test(tc, a_cached_table_is_used_although_memory_has_changed);
    tcase_add_test(tc, epd_stops_a_walk_that_the_cache_could_shorten);
    tcase_add_test(tc, hpd_keeps_limits_out_of_the_walk_cache);
    tcase_add_test(tc, descriptors_that_fault_are_not_put_into_the_walk_cache);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
