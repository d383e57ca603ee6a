/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger: the rules alone, the traces in TRACES (see docs/BBM.md and
 * docs/LEDGER.md for their format), and a random program that keeps
 * break-before-make, with one step left out at a time.
 */
#include <dirent.h>

#include "ledger_fixture.h"

/* What has only the rules of break-before-make is also tried with all. */
static bool run_trace(const char *folder, const char *name, uint32_t rules)
{
    static struct world w;
    char path[4096], line[256];
    struct ledger_counts counts;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    world_init(&w, 2);
    w.config.rules = rules;
    w.name = name;
    while (fgets(line, sizeof(line), file)) {
        w.line++;
        run_line(&w, line);
    }
    (void)fclose(file);
    world_start(&w);
    judge(&w);
    ledger_count(w.ledger, &counts);
    ck_assert_uint_eq(counts.violations, w.count);
    ck_assert(!counts.out_of_memory);
    /* The name says it as well, so that nobody turns one round unseen. */
    ck_assert_msg(strncmp(name, w.count ? "bad_" : "good_", w.count ? 4 : 5) ==
                      0,
                  "%s is named wrongly", name);
    ledger_free(w.ledger);
    return w.config.rules != rules;
}

START_TEST(every_trace_has_the_verdict_that_it_expects)
{
    const char *folder = getenv("TRACES");
    unsigned good = 0, bad = 0;
    struct dirent *entry;
    DIR *dir;

    ck_assert_msg(folder != NULL, "TRACES is not set");
    dir = opendir(folder);
    ck_assert_msg(dir != NULL, "%s cannot be read", folder);
    while ((entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);

        if (length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0) {
            if (!run_trace(folder, entry->d_name, LEDGER_RULES_BBM)) {
                (void)run_trace(folder, entry->d_name, LEDGER_RULES_ALL);
            }
            good += strncmp(entry->d_name, "good_", 5) == 0;
            bad += strncmp(entry->d_name, "bad_", 4) == 0;
        }
    }
    (void)closedir(dir);
    printf("%u good and %u bad traces\n", good, bad);
    ck_assert_uint_ge(good, 70);
    ck_assert_uint_ge(bad, 90);
}
END_TEST

/* --- what a violation tells --- */

START_TEST(a_violation_names_place_descriptors_and_culprits)
{
    static struct world w;
    const struct ledger_violation *v = &w.found[0];

    world_init(&w, 2);
    w.memory[0x4018 / 8] = page_desc(0x5000);
    standard_tables(&w);
    store(&w, 0, 0x1001, 0x4018, 0);
    store(&w, 1, 0x1002, 0x4018, page_desc(0x6000));
    ck_assert_uint_eq(w.count, 1);
    ck_assert_uint_eq(v->pa, 0x4018);
    ck_assert_uint_eq(v->level, 3);
    ck_assert(v->has_va);
    ck_assert_uint_eq(v->va, 0x3000);
    ck_assert_uint_eq(v->size, 0x1000);
    ck_assert_uint_eq(v->asid, 1);
    ck_assert_uint_eq(v->old, page_desc(0x5000));
    ck_assert_uint_eq(v->now, page_desc(0x6000));
    ck_assert_uint_eq(v->break_vcpu, 0);
    ck_assert_uint_eq(v->now_vcpu, 1);
    ck_assert_uint_eq(v->break_pc, 0x1001);
    ck_assert_uint_eq(v->now_pc, 0x1002);
    ck_assert_uint_eq(v->dirty, 3);
    ck_assert_int_eq(v->change, LEDGER_CHANGE_OUTPUT);
    ledger_free(w.ledger);
}
END_TEST

START_TEST(addresses_of_the_high_half_are_told_as_they_are)
{
    static struct world w;

    world_init(&w, 1);
    for (gpa_t pa = 0x1000; pa < 0x4000; pa += 0x1000) {
        w.memory[pa / 8 + 511] =
            (pa + 0x1000) | DESC_VALID | DESC_TABLE_OR_PAGE;
    }
    w.memory[0x4000 / 8 + 511] = page_desc(0x5000);
    world_start(&w);
    load_root(&w, 0, 1, 0x1000, 0);
    walk(&w, 0, UINT64_C(0xfffffffffffff000));
    store(&w, 0, 0x1000, 0x4ff8, page_desc(0x6000));
    ck_assert_uint_eq(w.count, 1);
    ck_assert_uint_eq(w.found[0].va, UINT64_C(0xfffffffffffff000));
    ledger_free(w.ledger);
}
END_TEST

/* --- the rules alone --- */

START_TEST(only_changes_of_what_is_translated_need_a_break)
{
    const uint64_t page = page_desc(0x5000);
    const uint64_t table = 0x9000 | DESC_VALID | DESC_TABLE_OR_PAGE;
    const uint64_t block = page & ~DESC_TABLE_OR_PAGE;
    const uint64_t free_bits = DESC_AP_EL0 | DESC_AP_READ_ONLY | DESC_AF |
                               DESC_DBM | DESC_PXN | DESC_UXN |
                               UINT64_C(15) << 55;

    for (unsigned i = 0; i < 64; i++) {
        uint64_t bit = UINT64_C(1) << i;
        enum ledger_change change = ledger_change(page, page ^ bit, 3);

        if (bit & (DESC_VALID | DESC_TABLE_OR_PAGE)) {
            ck_assert_int_eq(change, LEDGER_CHANGE_SIZE); /* invalid, in fact */
        } else if (bit & DESC_ADDR_MASK) {
            ck_assert_int_eq(change, LEDGER_CHANGE_OUTPUT);
        } else if (bit & (DESC_ATTR(7) | DESC_SH(3))) {
            ck_assert_int_eq(change, LEDGER_CHANGE_TYPE);
        } else if (bit == DESC_NG) {
            ck_assert_int_eq(change, LEDGER_CHANGE_GLOBAL);
        } else if (bit == DESC_CONTIGUOUS) {
            ck_assert_int_eq(change, LEDGER_CHANGE_CONTIGUOUS);
        } else {
            ck_assert_int_eq(change, LEDGER_CHANGE_NONE);
        }
    }
    ck_assert_int_eq(ledger_change(page, page ^ free_bits, 3),
                     LEDGER_CHANGE_NONE);
    ck_assert_int_eq(ledger_change(block, table, 2), LEDGER_CHANGE_SIZE);
    ck_assert_int_eq(ledger_change(table, table + 0x1000, 2),
                     LEDGER_CHANGE_OUTPUT);
    ck_assert_int_eq(
        ledger_change(table, table | DESC_PXN_TABLE | DESC_AP_TABLE_NO_WRITE,
                      2),
        LEDGER_CHANGE_NONE);
}
END_TEST

START_TEST(what_a_change_takes_away)
{
    const uint64_t rw = page_desc(0x5000) | DESC_AP_EL0 | DESC_PXN;
    const uint64_t ro = rw | DESC_AP_READ_ONLY;
    const uint64_t clean = ro | DESC_DBM, dirty = rw | DESC_DBM;
    const uint8_t w = PERM_W0 | PERM_W1;
    const uint8_t all = PERM_R0 | PERM_R1 | PERM_X0 | w;

    ck_assert_uint_eq(ledger_lost(rw, ro, 3, false), w);
    ck_assert_uint_eq(ledger_lost(ro, rw, 3, false), 0);
    ck_assert_uint_eq(ledger_lost(rw, rw & ~DESC_AF, 3, false), 0);
    ck_assert_uint_eq(ledger_lost(rw, rw | DESC_UXN, 3, false), PERM_X0);
    /* What may be executed only stays so. */
    ck_assert_uint_eq(ledger_lost(rw, rw & ~DESC_AP_EL0, 3, false),
                      PERM_R0 | PERM_W0);
    ck_assert_uint_eq(ledger_lost(dirty, clean, 3, true), w);
    ck_assert_uint_eq(ledger_lost(clean, dirty, 3, true), 0);
    ck_assert_uint_eq(ledger_lost(clean, 0, 3, true) & w, 0);
    ck_assert_uint_eq(ledger_lost(rw, 0, 3, false), all);
    ck_assert_uint_eq(ledger_lost(rw, rw + 0x1000, 3, false), all);
    ck_assert_uint_eq(ledger_lost(rw, rw | DESC_ATTR(3), 3, false), all);
    ck_assert_uint_eq(ledger_lost(rw, rw & ~DESC_NG, 3, false), all);
    /* Executable at EL1 until it may be written at EL0: nobody's loss. */
    ck_assert_uint_eq(ledger_lost(ro & ~DESC_PXN, rw & ~DESC_PXN, 3, false), 0);
    ck_assert_uint_eq(ledger_lost(ro & ~DESC_PXN, ro, 3, false), PERM_X1);
    /* A table has no permissions of its own. */
    ck_assert_uint_eq(ledger_lost(0x9000 | 3, 0, 2, false), 0);
}
END_TEST

START_TEST(a_dsb_shows_stores_or_waits_by_its_kind)
{
    for (unsigned crm = 0; crm < 16; crm++) {
        struct ledger_dsb dsb = ledger_dsb_of_crm(crm);
        static const enum ledger_dsb_type types[16] = {
            LEDGER_DSB_LOADS,  LEDGER_DSB_LOADS,  LEDGER_DSB_STORES,
            LEDGER_DSB_ALL,    LEDGER_DSB_LOADS,  LEDGER_DSB_LOADS,
            LEDGER_DSB_STORES, LEDGER_DSB_ALL,    LEDGER_DSB_ALL,
            LEDGER_DSB_LOADS,  LEDGER_DSB_STORES, LEDGER_DSB_ALL,
            LEDGER_DSB_ALL,    LEDGER_DSB_LOADS,  LEDGER_DSB_STORES,
            LEDGER_DSB_ALL,
        };

        ck_assert_int_eq(dsb.type, types[crm]);
        ck_assert_int_eq(dsb.is_wide, crm < 4 || crm >= 8);
    }
}
END_TEST

/* --- random programs --- */

enum left_out { LEFT_NOTHING, LEFT_STORE_DSB, LEFT_TLBI, LEFT_TLBI_DSB, LEFTS };

/* Remaps random pages by the rules, several vCPUs at once. */
static void remap(struct world *w, uint64_t *state, enum left_out left)
{
    static const unsigned kinds[] = {11, 15, 3};
    unsigned vcpu = next(state) % 4, helper = next(state) % 4;
    unsigned page = next(state) % 512;
    struct tlbi_op op = {
        .kind = (enum tlbi_kind)(next(state) % 4),
        .scope = TLBI_IS,
        .va = (gva_t)page << 12,
        .size = 4096,
        .asid = 1,
        .last_level = next(state) % 2,
        .ttl_level = next(state) % 2 ? 3 : 0,
    };

    store(w, vcpu, 1, 0x4000 + page * 8, 0);
    if (left != LEFT_STORE_DSB) {
        ledger_dsb(w->ledger, vcpu, 1,
                   ledger_dsb_of_crm(next(state) % 2 ? 10 : 11));
    }
    if (left != LEFT_TLBI) {
        ledger_tlbi(w->ledger, helper, 1, &op);
    }
    if (left != LEFT_TLBI_DSB) {
        ledger_dsb(w->ledger, helper, 1,
                   ledger_dsb_of_crm(kinds[next(state) % 3]));
    }
    store(w, next(state) % 4, 1, 0x4000 + page * 8,
          page_desc(++w->frames << 12)); /* always another one */
}

START_TEST(a_program_that_leaves_out_a_step_is_found_out)
{
    static struct world w;
    uint64_t seed = 20240607, state = seed;
    struct ledger_counts counts;

    printf("seed %" PRIu64 "\n", seed);
    world_init(&w, 4);
    for (unsigned i = 0; i < 512; i++) {
        w.memory[0x4000 / 8 + i] = page_desc(0x10000000 + i * 0x1000);
    }
    standard_tables(&w);
    for (unsigned i = 0; i < 20000; i++) {
        remap(&w, &state, LEFT_NOTHING);
        ck_assert_uint_eq(w.count, 0);
    }
    ledger_count(w.ledger, &counts);
    ck_assert_uint_eq(counts.breaks, 20000);
    ck_assert_uint_eq(counts.closed, 20000);
    ck_assert_uint_eq(counts.open, 0);
    for (unsigned i = 0; i < 3000; i++) {
        enum left_out left = LEFT_STORE_DSB + next(&state) % (LEFTS - 1);

        w.count = 0;
        remap(&w, &state, left);
        ck_assert_uint_eq(w.count, 1);
        ck_assert_int_eq(w.found[0].rule, LEDGER_UNCLEAN);
        if (left == LEFT_TLBI) {
            ck_assert_int_eq(w.found[0].step, LEDGER_STEP_TLBI);
        } else if (left == LEFT_TLBI_DSB) {
            ck_assert_int_eq(w.found[0].step, LEDGER_STEP_TLBI_DSB);
        }
    }
    ledger_free(w.ledger);
}
END_TEST

START_TEST(the_end_of_an_address_space_leaves_nothing_behind)
{
    static struct world w;
    struct ledger_counts counts;

    world_init(&w, 2);
    w.config.rules = LEDGER_RULES_ALL;
    w.memory[0x4018 / 8] = page_desc(0x50000);
    standard_tables(&w);
    load_root(&w, 0, 0, 0xd000, 0);
    load_root(&w, 1, 0, 0xd000, 0);
    store(&w, 0, 1, 0x4018, 0);
    ledger_frame_free(w.ledger, 0, 1, 0x50000);
    ck_assert_uint_eq(ledger_late(w.ledger), 3);
    for (gpa_t pa = 0x3000; pa >= 0x1000; pa -= 0x1000) {
        store(&w, 0, 1, pa, 0);
        ledger_frame_free(w.ledger, 0, 1, pa + 0x1000);
    }
    ledger_count(w.ledger, &counts);
    ck_assert_uint_gt(counts.open, 0); /* somebody may come back */
    ledger_frame_free(w.ledger, 0, 1, 0x1000);
    ledger_count(w.ledger, &counts);
    ck_assert_uint_eq(counts.open, 0);
    ck_assert_uint_eq(counts.tables, 0);
    ck_assert_uint_eq(ledger_late(w.ledger), 0);
    ck_assert_uint_eq(w.count, 0);
    ledger_free(w.ledger);
}
END_TEST

START_TEST(numbers_of_vcpus_that_are_too_large_are_refused)
{
    static struct world w;

    world_init(&w, LEDGER_VCPUS_MAX + 1);
    ck_assert_ptr_null(ledger_new(&w.config));
    w.config.vcpus = 0;
    ck_assert_ptr_null(ledger_new(&w.config));
    ledger_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ledger");
    TCase *tc = tcase_create("core");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, every_trace_has_the_verdict_that_it_expects);
    tcase_add_test(tc, a_violation_names_place_descriptors_and_culprits);
    tcase_add_test(tc, addresses_of_the_high_half_are_told_as_they_are);
    tcase_add_test(tc, only_changes_of_what_is_translated_need_a_break);
    tcase_add_test(tc, what_a_change_takes_away);
    tcase_add_test(tc, a_dsb_shows_stores_or_waits_by_its_kind);
    tcase_add_test(tc, a_program_that_leaves_out_a_step_is_found_out);
    tcase_add_test(tc, the_end_of_an_address_space_leaves_nothing_behind);
    tcase_add_test(tc, numbers_of_vcpus_that_are_too_large_are_refused);
    suite_add_tcase(suite, tc);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
