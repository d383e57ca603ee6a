/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: access flag and dirty state managed by hardware (FEAT_HAFDBS). */
#include <check.h>
#include <stdlib.h>

#include "mmu/names.h"
#include "mmu/tlb.h"
#include "mmu_fixture.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define VA UINT64_C(0x0000123456789abc)
#define OUT UINT64_C(0x0000008765432000)
#define OTHER UINT64_C(0x0000001111111000)
#define PAGE (DESC_VALID | DESC_TABLE_OR_PAGE)
#define RO DESC_AP_READ_ONLY
#define EL0 DESC_AP_EL0
/* Writable-clean, its access flag set; and what it is when written to. */
#define CLEAN (OUT | PAGE | DESC_AF | DESC_DBM | RO | EL0)
#define DIRTY (CLEAN & ~RO)

static struct fake_mem mem;
static struct walk_mem updatable;
static gpa_t root;
static struct regime regime;
static struct tlb *tlb;

static const struct access write0 = {.type = ACCESS_WRITE, .el0 = true};
static const struct access write1 = {.type = ACCESS_WRITE};

static void setup(void)
{
    static const struct tlb_config config = {
        .sets = 4, .ways = 4, .walk_cache_entries = 8};

    memset(&mem, 0, sizeof(mem));
    updatable = fake_updatable(&mem);
    root = fake_page(&mem);
    regime = fake_regime(root, fake_page(&mem), 5);
    regime.ha = regime.hd = true;
    tlb = tlb_new(&config);
    ck_assert_ptr_nonnull(tlb);
}

static void teardown(void)
{
    tlb_free(tlb);
}

/* VA's descriptor at `level`. */
static uint64_t *slot(unsigned level)
{
    return fake_slot(&mem, root, VA, level);
}

static struct walk_result walk_now(void)
{
    return walk_stage1(&regime, &updatable, VA);
}

/* --- the access flag --- */

static const struct {
    unsigned level;
    bool ha, can_update;
    enum walk_fault fault;
} af_cases[] = {
    {3, true, true, WALK_OK},
    {2, true, true, WALK_OK},
    {1, true, true, WALK_OK},
    {3, false, true, WALK_FAULT_ACCESS_FLAG},
    {3, true, false, WALK_FAULT_ACCESS_FLAG},
    {1, true, false, WALK_FAULT_ACCESS_FLAG},
};

START_TEST(a_clear_access_flag_is_set_in_memory_or_faults)
{
    unsigned level = af_cases[_i].level;
    uint64_t desc = OUT | DESC_VALID | (level == 3 ? DESC_TABLE_OR_PAGE : 0);
    struct walk_result r;

    *slot(level) = desc;
    regime.ha = af_cases[_i].ha;
    updatable.cas64 = af_cases[_i].can_update ? fake_cas64 : NULL;
    r = walk_now();
    ck_assert_int_eq(r.fault, af_cases[_i].fault);
    ck_assert_uint_eq(r.level, level);
    ck_assert_uint_eq(r.tables, level + 1);
    ck_assert_uint_eq(r.desc, desc);
    ck_assert_ptr_eq(fake_word(&mem, r.desc_address), slot(level));
    if (r.fault == WALK_OK) {
        ck_assert(walk_updated(&r));
        ck_assert_uint_eq(r.new_desc, desc | DESC_AF);
        ck_assert_uint_eq(*slot(level), desc | DESC_AF);
        ck_assert_uint_eq(r.t.page_shift, 39 - 9 * level);
        r = walk_now();
        ck_assert_int_eq(r.fault, WALK_OK);
        ck_assert(!walk_updated(&r));
        ck_assert_uint_eq(r.desc, desc | DESC_AF);
        ck_assert_uint_eq(mem.swaps, 1);
    } else {
        ck_assert(!walk_updated(&r));
        ck_assert_uint_eq(*slot(level), desc);
        ck_assert_uint_eq(mem.swaps, 0);
    }
}
END_TEST

START_TEST(a_leaf_that_faults_otherwise_is_not_updated)
{
    *slot(3) = UINT64_C(1) << 40 | PAGE;
    regime.pa_bits = 40;
    ck_assert_int_eq(walk_now().fault, WALK_FAULT_ADDRESS_SIZE);
    *slot(3) = OUT | DESC_VALID;
    ck_assert_int_eq(walk_now().fault, WALK_FAULT_TRANSLATION);
    ck_assert_uint_eq(mem.swaps, 0);
}
END_TEST

START_TEST(the_access_flag_is_set_through_the_walk_cache_too)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);
    struct walk_result r;

    *slot(3) = OUT | PAGE | DESC_AF;
    (void)walk_stage1_from(&regime, &updatable, wc, VA);
    *slot(3) = OUT | PAGE;
    r = walk_stage1_from(&regime, &updatable, wc, VA);
    ck_assert_int_eq(r.fault, WALK_OK);
    ck_assert_uint_eq(r.tables, 1);
    ck_assert_uint_eq(*slot(3), OUT | PAGE | DESC_AF);
}
END_TEST

/* Someone else stores between the walker's read and its swap. */
static const struct {
    const char *name;
    uint64_t rival[2];
    unsigned rivals;
    enum walk_fault fault;
    uint64_t desc, left; /* as last read; in memory at the end */
    unsigned swaps;
} race_cases[] = {
    {"unmapped", {0}, 1, WALK_FAULT_TRANSLATION, 0, 0, 1},
    {"another page",
     {OTHER | PAGE},
     1,
     WALK_OK,
     OTHER | PAGE,
     OTHER | PAGE | DESC_AF,
     2},
    {"another walker was faster",
     {OUT | PAGE | DESC_AF},
     1,
     WALK_OK,
     OUT | PAGE | DESC_AF,
     OUT | PAGE | DESC_AF,
     1},
    {"twice",
     {OTHER | PAGE, OUT | PAGE | EL0},
     2,
     WALK_OK,
     OUT | PAGE | EL0,
     OUT | PAGE | EL0 | DESC_AF,
     3},
    {"the same value again",
     {OUT | PAGE},
     1,
     WALK_OK,
     OUT | PAGE,
     OUT | PAGE | DESC_AF,
     1},
};

START_TEST(a_lost_race_is_decided_by_what_is_in_memory_then)
{
    struct walk_result r;

    *slot(3) = OUT | PAGE;
    memcpy(mem.rival, race_cases[_i].rival, sizeof(race_cases[_i].rival));
    mem.rivals = race_cases[_i].rivals;
    r = walk_now();
    ck_assert_msg(r.fault == race_cases[_i].fault, "%s: %s",
                  race_cases[_i].name, walk_fault_name(r.fault));
    ck_assert_msg(r.desc == race_cases[_i].desc, "%s", race_cases[_i].name);
    ck_assert_msg(*slot(3) == race_cases[_i].left, "%s", race_cases[_i].name);
    ck_assert_msg(mem.swaps == race_cases[_i].swaps, "%s: %u swaps",
                  race_cases[_i].name, mem.swaps);
    ck_assert_uint_eq(r.tables, 4);
    if (r.fault == WALK_OK) {
        ck_assert_uint_eq(r.t.base, r.desc & DESC_ADDR_MASK);
        ck_assert_int_eq(walk_updated(&r), r.desc != race_cases[_i].left);
    }
}
END_TEST

START_TEST(a_block_that_becomes_a_table_meanwhile_is_walked_into)
{
    gpa_t table = fake_page(&mem);
    struct walk_result r;

    *fake_word(&mem, table + (VA >> 12 & 511) * 8) = OTHER | PAGE;
    *slot(2) = OUT | DESC_VALID;
    mem.rival[0] = table | PAGE;
    mem.rivals = 1;
    r = walk_now();
    ck_assert_int_eq(r.fault, WALK_OK);
    ck_assert_uint_eq(r.t.base, OTHER);
    ck_assert_uint_eq(r.t.level, 3);
    ck_assert_uint_eq(r.tables, 4);
    ck_assert_uint_eq(*slot(2), table | PAGE);
    ck_assert_uint_eq(*slot(3), OTHER | PAGE | DESC_AF);
}
END_TEST

START_TEST(memory_that_takes_no_update_is_an_external_fault_in_the_end)
{
    struct walk_result r;

    *slot(3) = OUT | PAGE;
    mem.stubborn = true;
    r = walk_now();
    ck_assert_int_eq(r.fault, WALK_FAULT_EXTERNAL);
    ck_assert_uint_eq(r.level, 3);
    ck_assert_uint_eq(r.tables, 4);
    ck_assert_uint_eq(mem.swaps, WALK_UPDATE_TRIES);
    ck_assert(!walk_updated(&r));
}
END_TEST

/* --- dirty state --- */

static const struct {
    uint64_t desc, table;
    bool wxn, hd;
    bool dbm;
    const char *perms, *dirty; /* before and after a write */
} perm_cases[] = {
    {DESC_DBM | RO | EL0, 0, false, true, true, "r--/r-x", "rw-/rwx"},
    {DESC_DBM | RO, 0, false, true, true, "r-x/--x", "rwx/--x"},
    {DESC_DBM | RO | EL0, 0, true, true, true, "r--/r--", "rw-/rw-"},
    {DESC_DBM | RO, 0, true, true, true, "r--/--x", "rw-/--x"},
    {DESC_DBM | RO | EL0 | DESC_UXN, 0, false, true, true, "r--/r--",
     "rw-/rw-"},
    {DESC_DBM | RO | EL0, DESC_AP_TABLE_NO_EL0, false, true, true, "r-x/--x",
     "rwx/--x"},
    /* The tables say read-only: DBM means nothing. */
    {DESC_DBM | RO | EL0, DESC_AP_TABLE_NO_WRITE, true, true, false, "r-x/r-x",
     NULL},
    {DESC_DBM | EL0, DESC_AP_TABLE_NO_WRITE, false, true, false, "r-x/r-x",
     NULL},
    /* Dirty already; not managed; not enabled. */
    {DESC_DBM | EL0, 0, false, true, false, "rw-/rwx", NULL},
    {RO | EL0, 0, false, true, false, "r-x/r-x", NULL},
    {DESC_DBM | RO | EL0, 0, false, false, false, "r-x/r-x", NULL},
};

START_TEST(a_clean_page_has_all_permissions_of_a_dirty_one_but_w)
{
    struct access access = {.type = ACCESS_WRITE};
    uint64_t desc = OUT | PAGE | DESC_AF | perm_cases[_i].desc;
    char text[PERM_TEXT_SIZE];
    struct walk_result r;

    *slot(3) = desc;
    *slot(1) |= perm_cases[_i].table;
    regime.wxn = perm_cases[_i].wxn;
    regime.hd = perm_cases[_i].hd;
    r = walk_now();
    perm_text(r.t.perms, text);
    ck_assert_msg(strcmp(text, perm_cases[_i].perms) == 0, "row %d: %s", _i,
                  text);
    ck_assert_msg(r.t.dbm == perm_cases[_i].dbm, "row %d: dbm %d", _i, r.t.dbm);
    /* A walk, speculative or for a read, leaves it clean. */
    ck_assert_uint_eq(*slot(3), desc);
    ck_assert_uint_eq(mem.swaps, 0);
    ck_assert_int_eq(translation_needs_dirty(&r.t, &access), r.t.dbm);
    if (perm_cases[_i].dirty) {
        ck_assert_int_eq(
            walk_mark_dirty(&regime, &updatable, NULL, VA, &access, &r),
            WALK_OK);
        perm_text(r.t.perms, text);
        ck_assert_msg(strcmp(text, perm_cases[_i].dirty) == 0, "row %d: %s", _i,
                      text);
        ck_assert(!r.t.dbm);
        ck_assert_uint_eq(*slot(3), desc & ~RO);
    }
}
END_TEST

START_TEST(hpd_frees_a_clean_page_of_what_the_tables_forbid)
{
    *slot(3) = CLEAN;
    *slot(1) |= DESC_AP_TABLE_NO_WRITE;
    regime.half[0].hpd = true;
    ck_assert(walk_now().t.dbm);
}
END_TEST

static const struct {
    uint8_t perms;
    bool dbm;
    struct access access;
    bool needs;
} needs_cases[] = {
    {PERM_R1 | PERM_R0, true, {ACCESS_WRITE, false, false}, true},
    {PERM_R1 | PERM_R0, true, {ACCESS_WRITE, true, false}, true},
    {PERM_R1 | PERM_R0, false, {ACCESS_WRITE, true, false}, false},
    {PERM_R1 | PERM_R0, true, {ACCESS_READ, true, false}, false},
    {PERM_R1 | PERM_R0, true, {ACCESS_EXEC, true, false}, false},
    /* EL0 has no access at all; PAN keeps EL1 out. */
    {PERM_R1 | PERM_X0, true, {ACCESS_WRITE, true, false}, false},
    {PERM_R1 | PERM_R0, true, {ACCESS_WRITE, false, true}, false},
    {PERM_R1, true, {ACCESS_WRITE, false, true}, true},
};

START_TEST(only_a_write_that_is_allowed_needs_a_dirty_page)
{
    struct translation t = {.perms = needs_cases[_i].perms,
                            .page_shift = 12,
                            .dbm = needs_cases[_i].dbm};

    ck_assert_msg(translation_needs_dirty(&t, &needs_cases[_i].access) ==
                      needs_cases[_i].needs,
                  "row %d", _i);
    if (needs_cases[_i].access.type == ACCESS_WRITE) {
        ck_assert_int_eq(translation_check(&t, &needs_cases[_i].access),
                         WALK_FAULT_PERMISSION);
    }
}
END_TEST

/* What memory has when the write through a clean entry gets there. */
static const struct {
    const char *name;
    uint64_t now;
    struct access access;
    enum walk_fault fault;
    uint64_t left;
} mark_cases[] = {
    {"still clean, EL0", CLEAN, {ACCESS_WRITE, true, false}, WALK_OK, DIRTY},
    {"still clean, EL1", CLEAN, {ACCESS_WRITE, false, false}, WALK_OK, DIRTY},
    {"dirty by now", DIRTY, {ACCESS_WRITE, true, false}, WALK_OK, DIRTY},
    {"writable without DBM",
     DIRTY & ~DESC_DBM,
     {ACCESS_WRITE, true, false},
     WALK_OK,
     DIRTY & ~DESC_DBM},
    {"AF cleared meanwhile",
     CLEAN & ~DESC_AF,
     {ACCESS_WRITE, true, false},
     WALK_OK,
     DIRTY},
    {"unmapped", 0, {ACCESS_WRITE, true, false}, WALK_FAULT_TRANSLATION, 0},
    {"unmapped, the rest left",
     CLEAN & ~DESC_VALID,
     {ACCESS_WRITE, true, false},
     WALK_FAULT_TRANSLATION,
     CLEAN & ~DESC_VALID},
    {"DBM cleared: write-protected",
     CLEAN & ~DESC_DBM,
     {ACCESS_WRITE, true, false},
     WALK_FAULT_PERMISSION,
     CLEAN & ~DESC_DBM},
    {"taken from EL0",
     CLEAN & ~EL0,
     {ACCESS_WRITE, true, false},
     WALK_FAULT_PERMISSION,
     CLEAN & ~EL0},
    {"PAN", CLEAN, {ACCESS_WRITE, false, true}, WALK_FAULT_PERMISSION, CLEAN},
    {"write-protected, AF clear",
     CLEAN & ~DESC_DBM & ~DESC_AF,
     {ACCESS_WRITE, true, false},
     WALK_FAULT_PERMISSION,
     CLEAN & ~DESC_DBM},
    {"another page",
     CLEAN ^ OUT ^ OTHER,
     {ACCESS_WRITE, true, false},
     WALK_OK,
     DIRTY ^ OUT ^ OTHER},
    {"a read", CLEAN, {ACCESS_READ, true, false}, WALK_OK, CLEAN},
};

START_TEST(marking_dirty_obeys_the_descriptor_in_memory)
{
    struct walk_result r;
    unsigned swaps = mark_cases[_i].now != mark_cases[_i].left;

    *slot(3) = mark_cases[_i].now;
    ck_assert_msg(walk_mark_dirty(&regime, &updatable, NULL, VA,
                                  &mark_cases[_i].access,
                                  &r) == mark_cases[_i].fault,
                  "%s: %s", mark_cases[_i].name, walk_fault_name(r.fault));
    ck_assert_int_eq(r.fault, mark_cases[_i].fault);
    ck_assert_msg(*slot(3) == mark_cases[_i].left, "%s: left",
                  mark_cases[_i].name);
    ck_assert_uint_eq(r.level, 3);
    ck_assert_uint_eq(r.desc, mark_cases[_i].now);
    ck_assert_uint_eq(r.new_desc, mark_cases[_i].left);
    ck_assert_ptr_eq(fake_word(&mem, r.desc_address), slot(3));
    /* AF and AP[2] in one step. */
    ck_assert_msg(mem.swaps == swaps, "%s: %u swaps", mark_cases[_i].name,
                  mem.swaps);
    if (r.fault == WALK_OK) {
        ck_assert_uint_eq(r.t.base, mark_cases[_i].left & DESC_ADDR_MASK);
        ck_assert_int_eq(translation_check(&r.t, &mark_cases[_i].access),
                         WALK_OK);
    }
}
END_TEST

static const struct {
    const char *name;
    uint64_t rival;
    enum walk_fault fault;
    uint64_t left;
} mark_races[] = {
    {"unmapped", 0, WALK_FAULT_TRANSLATION, 0},
    {"write-protected", CLEAN & ~DESC_DBM, WALK_FAULT_PERMISSION,
     CLEAN & ~DESC_DBM},
    {"marked by another", DIRTY, WALK_OK, DIRTY},
    {"aged", CLEAN & ~DESC_AF, WALK_OK, DIRTY},
    {"moved", CLEAN ^ OUT ^ OTHER, WALK_OK, DIRTY ^ OUT ^ OTHER},
};

START_TEST(marking_dirty_loses_a_race_as_if_it_had_come_later)
{
    struct walk_result r;

    *slot(3) = CLEAN;
    mem.rival[0] = mark_races[_i].rival;
    mem.rivals = 1;
    ck_assert_msg(walk_mark_dirty(&regime, &updatable, NULL, VA, &write0, &r) ==
                      mark_races[_i].fault,
                  "%s: %s", mark_races[_i].name, walk_fault_name(r.fault));
    ck_assert_msg(*slot(3) == mark_races[_i].left, "%s: left",
                  mark_races[_i].name);
    ck_assert_uint_eq(r.desc, mark_races[_i].rival);
    ck_assert_uint_eq(r.new_desc, mark_races[_i].left);
}
END_TEST

START_TEST(blocks_are_marked_dirty_as_a_whole)
{
    for (unsigned level = 1; level < 3; level++) {
        struct walk_result r;

        *slot(level) = CLEAN & ~DESC_TABLE_OR_PAGE;
        ck_assert_int_eq(
            walk_mark_dirty(&regime, &updatable, NULL, VA, &write1, &r),
            WALK_OK);
        ck_assert_uint_eq(*slot(level), DIRTY & ~DESC_TABLE_OR_PAGE);
        ck_assert_uint_eq(r.t.page_shift, 39 - 9 * level);
        *slot(level) = 0;
    }
}
END_TEST

START_TEST(without_hd_or_a_swap_a_clean_page_is_read_only)
{
    struct walk_result r;

    *slot(3) = CLEAN;
    updatable.cas64 = NULL;
    ck_assert_int_eq(
        walk_mark_dirty(&regime, &updatable, NULL, VA, &write0, &r),
        WALK_FAULT_PERMISSION);
    ck_assert(r.t.dbm);
    updatable.cas64 = fake_cas64;
    regime.hd = false;
    ck_assert_int_eq(
        walk_mark_dirty(&regime, &updatable, NULL, VA, &write0, &r),
        WALK_FAULT_PERMISSION);
    ck_assert(!r.t.dbm);
    ck_assert_uint_eq(*slot(3), CLEAN);
}
END_TEST

START_TEST(with_the_mmu_off_every_write_is_allowed_and_nothing_updated)
{
    struct walk_result r;

    regime.mmu_on = false;
    ck_assert_int_eq(
        walk_mark_dirty(&regime, &updatable, NULL, 0x1234, &write1, &r),
        WALK_OK);
    ck_assert(r.t.flat && !r.t.dbm);
    ck_assert_uint_eq(mem.swaps, 0);
}
END_TEST

START_TEST(a_stale_table_sends_the_update_to_a_stale_descriptor)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);
    uint64_t *stale = slot(3);
    struct walk_result r;

    *stale = CLEAN;
    (void)walk_stage1_from(&regime, &updatable, wc, VA);
    /* The table is unlinked and replaced, its page freed: no TLBI. */
    *slot(2) = fake_page(&mem) | PAGE;
    *slot(3) = CLEAN ^ OUT ^ OTHER;
    ck_assert_int_eq(walk_mark_dirty(&regime, &updatable, wc, VA, &write0, &r),
                     WALK_OK);
    ck_assert_uint_eq(r.t.base, OUT);
    ck_assert_ptr_eq(fake_word(&mem, r.desc_address), stale);
    ck_assert_uint_eq(*stale, DIRTY);
    ck_assert_uint_eq(*slot(3), CLEAN ^ OUT ^ OTHER);
}
END_TEST

/* A write as a processor does it: look up, walk, mark dirty, keep. */
static enum walk_fault do_write(void)
{
    struct tlb_entry *entry = tlb_lookup(tlb, VA, regime.asid);
    struct walk_result r;

    if (!entry) {
        r = walk_now();
        if (r.fault != WALK_OK) {
            return r.fault;
        }
        entry = tlb_insert(tlb, VA, regime.asid, &r.t, NULL);
    }
    if (translation_needs_dirty(&entry->t, &write0)) {
        tlb_drop(tlb, entry);
        if (walk_mark_dirty(&regime, &updatable, NULL, VA, &write0, &r) !=
            WALK_OK) {
            return r.fault;
        }
        entry = tlb_insert(tlb, VA, regime.asid, &r.t, NULL);
    }
    return translation_check(&entry->t, &write0);
}

START_TEST(a_dirty_entry_does_not_mark_the_page_again_until_invalidated)
{
    struct tlbi_op op = {.kind = TLBI_VA,
                         .asid = 5,
                         .va = VA & ~MMU_PAGE_MASK,
                         .size = MMU_PAGE_SIZE};

    *slot(3) = CLEAN | DESC_NG;
    ck_assert_int_eq(do_write(), WALK_OK);
    ck_assert_uint_eq(*slot(3), DIRTY | DESC_NG);
    /* Software cleans the page and forgets the TLBI: writes go unseen. */
    *slot(3) = CLEAN | DESC_NG;
    ck_assert_int_eq(do_write(), WALK_OK);
    ck_assert_uint_eq(*slot(3), CLEAN | DESC_NG);
    ck_assert_uint_eq(mem.swaps, 1);
    /* Also when it takes the page away altogether. */
    *slot(3) = 0;
    ck_assert_int_eq(do_write(), WALK_OK);
    *slot(3) = CLEAN | DESC_NG;
    ck_assert_uint_eq(tlb_invalidate(tlb, &op, NULL, NULL), 1);
    ck_assert_int_eq(do_write(), WALK_OK);
    ck_assert_uint_eq(*slot(3), DIRTY | DESC_NG);
    ck_assert_uint_eq(mem.swaps, 2);
}
END_TEST

START_TEST(a_clean_entry_does_not_outlive_its_descriptor_for_writes)
{
    struct walk_result r;

    *slot(3) = CLEAN | DESC_NG;
    r = walk_now();
    ck_assert_ptr_nonnull(tlb_insert(tlb, VA, regime.asid, &r.t, NULL));
    /* Unmapped without a TLBI: reads still hit, the write walks and faults. */
    *slot(3) = 0;
    ck_assert_ptr_nonnull(tlb_lookup(tlb, VA, regime.asid));
    ck_assert_int_eq(do_write(), WALK_FAULT_TRANSLATION);
    ck_assert_uint_eq(*slot(3), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hafdbs");
    TCase *tc = tcase_create("hafdbs");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_clear_access_flag_is_set_in_memory_or_faults, 0,
                        COUNT(af_cases));
    tcase_add_test(tc, a_leaf_that_faults_otherwise_is_not_updated);
    tcase_add_test(tc, the_access_flag_is_set_through_the_walk_cache_too);
    tcase_add_loop_test(tc, a_lost_race_is_decided_by_what_is_in_memory_then, 0,
                        COUNT(race_cases));
    tcase_add_test(tc, a_block_that_becomes_a_table_meanwhile_is_walked_into);
    tcase_add_test(tc,
                   memory_that_takes_no_update_is_an_external_fault_in_the_end);
    tcase_add_loop_test(tc,
                        a_clean_page_has_all_permissions_of_a_dirty_one_but_w,
                        0, COUNT(perm_cases));
    tcase_add_test(tc, hpd_frees_a_clean_page_of_what_the_tables_forbid);
    tcase_add_loop_test(tc, only_a_write_that_is_allowed_needs_a_dirty_page, 0,
                        COUNT(needs_cases));
    tcase_add_loop_test(tc, marking_dirty_obeys_the_descriptor_in_memory, 0,
                        COUNT(mark_cases));
    tcase_add_loop_test(tc, marking_dirty_loses_a_race_as_if_it_had_come_later,
                        0, COUNT(mark_races));
    tcase_add_test(tc, blocks_are_marked_dirty_as_a_whole);
    tcase_add_test(tc, without_hd_or_a_swap_a_clean_page_is_read_only);
    tcase_add_test(tc,
                   with_the_mmu_off_every_write_is_allowed_and_nothing_updated);
    tcase_add_test(tc, a_stale_table_sends_the_update_to_a_stale_descriptor);
    tcase_add_test(
        tc, a_dirty_entry_does_not_mark_the_page_again_until_invalidated);
    tcase_add_test(tc,
                   a_clean_entry_does_not_outlive_its_descriptor_for_writes);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
