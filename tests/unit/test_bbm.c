/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The break-before-make checker: the rules alone, the traces in TRACES (see
 * docs/BBM.md for their format), and a random program that keeps the rules,
 * with one step left out at a time.
 */
#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mmu/bbm.h"
#include "mmu/desc.h"

#define MEMORY_WORDS 0x2000 /* 64 KiB */
#define MAX_FOUND 16u
#define WORDS 16u

struct world {
    struct bbm *bbm;
    struct bbm_config config;
    uint64_t memory[MEMORY_WORDS];
    struct bbm_violation found[MAX_FOUND];
    unsigned count;
    gpa_t root[BBM_VCPUS_MAX][2];
    uint64_t frames;
    /* Of a trace: */
    const char *name;
    unsigned line;
    struct {
        char rule[32], step[32];
    } expected[MAX_FOUND];
    unsigned expectations;
    bool is_judged; /* an "expect" was there */
};

static bool read64(void *opaque, gpa_t pa, uint64_t *out)
{
    struct world *w = opaque;

    if (pa / 8 >= MEMORY_WORDS) {
        return false;
    }
    *out = w->memory[pa / 8];
    return true;
}

static void violation(void *opaque, const struct bbm_violation *v)
{
    struct world *w = opaque;

    ck_assert_uint_lt(w->count, MAX_FOUND);
    w->found[w->count++] = *v;
}

static void world_init(struct world *w, unsigned vcpus)
{
    memset(w, 0, sizeof(*w));
    w->config = (struct bbm_config){
        .vcpus = vcpus,
        .read64 = read64,
        .violation = violation,
        .opaque = w,
    };
}

static void world_start(struct world *w)
{
    if (!w->bbm) {
        w->bbm = bbm_new(&w->config);
        ck_assert_ptr_nonnull(w->bbm);
    }
}

static void store(struct world *w, unsigned vcpu, gpa_t pa, uint64_t value)
{
    w->memory[pa / 8] = value;
    bbm_store(w->bbm, vcpu, 0x1000 + w->line, pa, value);
}

/* Four levels, as the root of that half has them. */
static void walk(struct world *w, unsigned vcpu, gva_t va)
{
    unsigned half = va >> 55 & 1;
    gpa_t table = w->root[vcpu][half], at[MMU_LEVELS];
    unsigned count = 0;

    for (unsigned level = 0; level < MMU_LEVELS; level++) {
        uint64_t desc;

        at[count] = table | (va >> mmu_level_shift(level) & 511) << 3;
        if (!read64(w, at[count], &desc)) {
            break;
        }
        count++;
        if (desc_kind(desc, level) != DESC_KIND_TABLE) {
            break;
        }
        table = desc_next_table(desc);
    }
    bbm_walk(w->bbm, half, va, 0, at, count);
}

static void load_root(struct world *w, unsigned vcpu, unsigned half, gpa_t root,
                      uint16_t asid)
{
    w->root[vcpu][half] = root;
    bbm_root_load(w->bbm, vcpu, half, root, asid);
}

/* --- traces --- */

static void refuse(const struct world *w, const char *what)
{
    ck_abort_msg("%s:%u: %s", w->name, w->line, what);
}

static uint64_t number(const struct world *w, const char *word)
{
    char *end;
    uint64_t value = word ? strtoull(word, &end, 0) : 0;

    if (!word || *word == '\0' || *end != '\0') {
        refuse(w, "a number is expected");
    }
    return value;
}

/* A number; or "page PA", "block PA", "table PA", and what they are. */
static uint64_t descriptor(const struct world *w, char **word)
{
    bool is_table, is_block;
    uint64_t value;

    if (!word[0]) {
        refuse(w, "a descriptor is expected");
    }
    if (isdigit((unsigned char)word[0][0])) {
        return number(w, word[0]);
    }
    is_table = strcmp(word[0], "table") == 0;
    is_block = strcmp(word[0], "block") == 0;
    if (!is_table && !is_block && strcmp(word[0], "page") != 0) {
        refuse(w, "a descriptor is a number, page, block or table");
    }
    value = number(w, word[1]) | DESC_VALID;
    value |= is_block ? 0 : DESC_TABLE_OR_PAGE;
    value |= is_table ? 0 : DESC_AF | DESC_NG | DESC_SH(3);
    for (word += 2; *word; word++) {
        if (strcmp(*word, "ro") == 0) {
            value |= DESC_AP_READ_ONLY;
        } else if (strcmp(*word, "noaf") == 0) {
            value &= ~DESC_AF;
        } else if (strcmp(*word, "global") == 0) {
            value &= ~DESC_NG;
        } else if (strcmp(*word, "cont") == 0) {
            value |= DESC_CONTIGUOUS;
        } else if (strcmp(*word, "attr") == 0) {
            value |= DESC_ATTR(number(w, *++word));
        } else {
            refuse(w, "of a page: ro, noaf, global, cont, attr N");
        }
    }
    return value;
}

static struct tlbi_op tlbi_named(const struct world *w, char **word)
{
    uint64_t va = 0, asid = 0, ttl = 0, pages = 0;
    struct tlbi_op op;

    for (char **p = word + 1; *p; p++) {
        if (strcmp(*p, "asid") == 0) {
            asid = number(w, *++p);
        } else if (strcmp(*p, "ttl") == 0) {
            ttl = number(w, *++p);
        } else if (strcmp(*p, "pages") == 0) {
            pages = number(w, *++p);
        } else {
            va = number(w, *p);
        }
    }
    for (unsigned crm = 0; crm < 16; crm++) {
        for (unsigned op2 = 0; op2 < 8; op2++) {
            uint64_t xt = asid << 48;
            bool known = tlbi_decode(0, 8, crm, op2, xt, true, &op);

            if (!known || strcasecmp(tlbi_name(&op), word[0]) != 0) {
                continue;
            }
            if (op.is_range) {
                if (pages < 2 || pages > 64 || pages % 2) {
                    refuse(w, "a range has 2 to 64 pages, an even number");
                }
                xt |= UINT64_C(1) << 46 | (pages / 2 - 1) << 39 | ttl << 37 |
                      (va >> 12 & ((UINT64_C(1) << 37) - 1));
            } else {
                xt |= (ttl ? 4 | ttl : 0) << 44 |
                      (va >> 12 & ((UINT64_C(1) << 44) - 1));
            }
            ck_assert(tlbi_decode(0, 8, crm, op2, xt, true, &op));
            return op;
        }
    }
    refuse(w, "no such TLBI");
    return op;
}

static struct bbm_dsb dsb_named(const struct world *w, const char *name)
{
    static const char *const names[16] = {
        [1] = "oshld", [2] = "oshst", [3] = "osh",   [5] = "nshld",
        [6] = "nshst", [7] = "nsh",   [9] = "ishld", [10] = "ishst",
        [11] = "ish",  [13] = "ld",   [14] = "st",   [15] = "sy",
    };

    for (unsigned crm = 0; name && crm < 16; crm++) {
        if (names[crm] && strcmp(names[crm], name) == 0) {
            return bbm_dsb_of_crm(crm);
        }
    }
    refuse(w, "no such DSB");
    return bbm_dsb_of_crm(0);
}

/* Root 0x1000, then 0x2000, 0x3000, 0x4000. */
static void standard_layout(struct world *w)
{
    for (gpa_t pa = 0x1000; pa < 0x4000; pa += 0x1000) {
        w->memory[pa / 8] = (pa + 0x1000) | DESC_VALID | DESC_TABLE_OR_PAGE;
    }
}

/* And all vCPUs have it, as ASID 1. */
static void standard_tables(struct world *w)
{
    standard_layout(w);
    world_start(w);
    for (unsigned v = 0; v < w->config.vcpus; v++) {
        load_root(w, v, 0, 0x1000, 1);
        walk(w, v, 0);
    }
}

static void set_up(struct world *w, char **word)
{
    if (strcmp(word[0], "expect") == 0 && word[1]) {
        w->is_judged = true;
        if (strcmp(word[1], "bad") == 0) {
            if (!word[2] || !word[3] || w->expectations == MAX_FOUND) {
                refuse(w, "expect bad RULE STEP");
            }
            (void)snprintf(w->expected[w->expectations].rule, 32, "%s",
                           word[2]);
            (void)snprintf(w->expected[w->expectations++].step, 32, "%s",
                           word[3]);
        } else if (strcmp(word[1], "good") != 0) {
            refuse(w, "expect good, or bad RULE STEP");
        }
    } else if (strcmp(word[0], "vcpus") == 0) {
        w->config.vcpus = (unsigned)number(w, word[1]);
    } else if (strcmp(word[0], "strict") == 0) {
        w->config.strict = true;
    } else if (strcmp(word[0], "mem") == 0) {
        gpa_t pa = number(w, word[1]);

        if (pa / 8 >= MEMORY_WORDS || !word[2] || strcmp(word[2], "=") != 0) {
            refuse(w, "mem PA = DESCRIPTOR, below 64 KiB");
        }
        w->memory[pa / 8] = descriptor(w, word + 3);
    } else if (strcmp(word[0], "layout") == 0) {
        standard_layout(w);
    } else if (strcmp(word[0], "tables") == 0) {
        standard_tables(w);
    } else {
        refuse(w, "not understood");
    }
}

static void event(struct world *w, unsigned vcpu, char **word)
{
    world_start(w);
    if (!word[0] || vcpu >= w->config.vcpus) {
        refuse(w, "V: EVENT");
    }
    if (strcmp(word[0], "store") == 0) {
        gpa_t pa = number(w, word[1]);

        if (pa / 8 >= MEMORY_WORDS || !word[2] || strcmp(word[2], "=") != 0) {
            refuse(w, "store PA = DESCRIPTOR, below 64 KiB");
        }
        store(w, vcpu, pa, descriptor(w, word + 3));
    } else if (strcmp(word[0], "tlbi") == 0 && word[1]) {
        struct tlbi_op op = tlbi_named(w, word + 1);

        bbm_tlbi(w->bbm, vcpu, &op);
    } else if (strcmp(word[0], "dsb") == 0) {
        bbm_dsb(w->bbm, vcpu, dsb_named(w, word[1]));
    } else if (strcmp(word[0], "root") == 0 && word[1] && word[2] && word[3] &&
               strcmp(word[3], "asid") == 0) {
        load_root(w, vcpu, (unsigned)number(w, word[1]), number(w, word[2]),
                  (uint16_t)number(w, word[4]));
    } else if (strcmp(word[0], "walk") == 0) {
        walk(w, vcpu, number(w, word[1]));
    } else if (strcmp(word[0], "free") == 0) {
        bbm_page_free(w->bbm, vcpu, 0x1000 + w->line, number(w, word[1]));
    } else if (strcmp(word[0], "off") == 0) {
        bbm_vcpu_off(w->bbm, vcpu);
    } else {
        refuse(w, "not understood");
    }
}

static void run_line(struct world *w, char *line)
{
    char *word[WORDS + 1] = {NULL}, *save = NULL;
    unsigned count = 0;

    line[strcspn(line, "#\r\n")] = '\0';
    for (char *p = strtok_r(line, " \t", &save); p && count < WORDS;
         p = strtok_r(NULL, " \t", &save)) {
        word[count++] = p;
    }
    if (count == 0) {
        return;
    }
    if (isdigit((unsigned char)word[0][0]) &&
        word[0][strlen(word[0]) - 1] == ':') {
        word[0][strlen(word[0]) - 1] = '\0';
        event(w, (unsigned)number(w, word[0]), word + 1);
    } else {
        set_up(w, word);
    }
}

static void judge(const struct world *w)
{
    ck_assert_msg(w->is_judged, "%s: no expect", w->name);
    for (unsigned i = 0; i < w->count || i < w->expectations; i++) {
        const char *rule =
            i < w->count ? bbm_rule_name(w->found[i].rule) : "nothing";
        const char *step = i < w->count ? bbm_step_name(w->found[i].step) : "";

        ck_assert_msg(i < w->expectations,
                      "%s: '%s %s' at line %" PRIu64 ", but it is good",
                      w->name, rule, step, w->found[i].now_pc - 0x1000);
        ck_assert_msg(strcmp(rule, w->expected[i].rule) == 0 &&
                          strcmp(step, w->expected[i].step) == 0,
                      "%s: found %s %s, expected %s %s", w->name, rule, step,
                      w->expected[i].rule, w->expected[i].step);
    }
}

static void run_trace(const char *folder, const char *name)
{
    static struct world w;
    char path[4096], line[256];
    struct bbm_counts counts;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    world_init(&w, 2);
    w.name = name;
    while (fgets(line, sizeof(line), file)) {
        w.line++;
        run_line(&w, line);
    }
    (void)fclose(file);
    world_start(&w);
    judge(&w);
    bbm_count(w.bbm, &counts);
    ck_assert_uint_eq(counts.violations, w.count);
    ck_assert(!counts.out_of_memory);
    /* The name says it as well, so that nobody turns one round unseen. */
    ck_assert_msg(strncmp(name, w.count ? "bad_" : "good_", w.count ? 4 : 5) ==
                      0,
                  "%s is named wrongly", name);
    bbm_free(w.bbm);
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
            run_trace(folder, entry->d_name);
            good += strncmp(entry->d_name, "good_", 5) == 0;
            bad += strncmp(entry->d_name, "bad_", 4) == 0;
        }
    }
    (void)closedir(dir);
    printf("%u good and %u bad traces\n", good, bad);
    ck_assert_uint_ge(good, 12);
    ck_assert_uint_ge(bad, 12);
}
END_TEST

/* --- what a violation tells --- */

static uint64_t page_desc(gpa_t pa)
{
    return pa | DESC_VALID | DESC_TABLE_OR_PAGE | DESC_AF | DESC_NG |
           DESC_SH(3);
}

START_TEST(a_violation_names_place_descriptors_and_culprits)
{
    static struct world w;
    const struct bbm_violation *v = &w.found[0];

    world_init(&w, 2);
    w.memory[0x4018 / 8] = page_desc(0x5000);
    standard_tables(&w);
    w.line = 1;
    store(&w, 0, 0x4018, 0);
    w.line = 2;
    store(&w, 1, 0x4018, page_desc(0x6000));
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
    ck_assert_int_eq(v->change, BBM_CHANGE_OUTPUT);
    bbm_free(w.bbm);
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
    store(&w, 0, 0x4ff8, page_desc(0x6000));
    ck_assert_uint_eq(w.count, 1);
    ck_assert_uint_eq(w.found[0].va, UINT64_C(0xfffffffffffff000));
    bbm_free(w.bbm);
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
        enum bbm_change change = bbm_change(page, page ^ bit, 3);

        if (bit & (DESC_VALID | DESC_TABLE_OR_PAGE)) {
            ck_assert_int_eq(change, BBM_CHANGE_SIZE); /* invalid, in fact */
        } else if (bit & DESC_ADDR_MASK) {
            ck_assert_int_eq(change, BBM_CHANGE_OUTPUT);
        } else if (bit & (DESC_ATTR(7) | DESC_SH(3))) {
            ck_assert_int_eq(change, BBM_CHANGE_TYPE);
        } else if (bit == DESC_NG) {
            ck_assert_int_eq(change, BBM_CHANGE_GLOBAL);
        } else if (bit == DESC_CONTIGUOUS) {
            ck_assert_int_eq(change, BBM_CHANGE_CONTIGUOUS);
        } else {
            ck_assert_int_eq(change, BBM_CHANGE_NONE);
        }
    }
    ck_assert_int_eq(bbm_change(page, page ^ free_bits, 3), BBM_CHANGE_NONE);
    ck_assert_int_eq(bbm_change(block, table, 2), BBM_CHANGE_SIZE);
    ck_assert_int_eq(bbm_change(table, table + 0x1000, 2), BBM_CHANGE_OUTPUT);
    ck_assert_int_eq(
        bbm_change(table, table | DESC_PXN_TABLE | DESC_AP_TABLE_NO_WRITE, 2),
        BBM_CHANGE_NONE);
}
END_TEST

START_TEST(a_dsb_shows_stores_or_waits_by_its_kind)
{
    for (unsigned crm = 0; crm < 16; crm++) {
        struct bbm_dsb dsb = bbm_dsb_of_crm(crm);
        static const enum bbm_dsb_type types[16] = {
            BBM_DSB_LOADS, BBM_DSB_LOADS, BBM_DSB_STORES, BBM_DSB_ALL,
            BBM_DSB_LOADS, BBM_DSB_LOADS, BBM_DSB_STORES, BBM_DSB_ALL,
            BBM_DSB_ALL,   BBM_DSB_LOADS, BBM_DSB_STORES, BBM_DSB_ALL,
            BBM_DSB_ALL,   BBM_DSB_LOADS, BBM_DSB_STORES, BBM_DSB_ALL,
        };

        ck_assert_int_eq(dsb.type, types[crm]);
        ck_assert_int_eq(dsb.is_wide, crm < 4 || crm >= 8);
    }
}
END_TEST

/* --- random programs --- */

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

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

    store(w, vcpu, 0x4000 + page * 8, 0);
    if (left != LEFT_STORE_DSB) {
        bbm_dsb(w->bbm, vcpu, bbm_dsb_of_crm(next(state) % 2 ? 10 : 11));
    }
    if (left != LEFT_TLBI) {
        bbm_tlbi(w->bbm, helper, &op);
    }
    if (left != LEFT_TLBI_DSB) {
        bbm_dsb(w->bbm, helper, bbm_dsb_of_crm(kinds[next(state) % 3]));
    }
    store(w, next(state) % 4, 0x4000 + page * 8,
          page_desc(++w->frames << 12)); /* always another one */
}

START_TEST(a_program_that_leaves_out_a_step_is_found_out)
{
    static struct world w;
    uint64_t seed = 20240607, state = seed;
    struct bbm_counts counts;

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
    bbm_count(w.bbm, &counts);
    ck_assert_uint_eq(counts.breaks, 20000);
    ck_assert_uint_eq(counts.closed, 20000);
    ck_assert_uint_eq(counts.open, 0);
    for (unsigned i = 0; i < 3000; i++) {
        enum left_out left = LEFT_STORE_DSB + next(&state) % (LEFTS - 1);

        w.count = 0;
        remap(&w, &state, left);
        ck_assert_uint_eq(w.count, 1);
        ck_assert_int_eq(w.found[0].rule, BBM_RULE_UNCLEAN);
        if (left == LEFT_TLBI) {
            ck_assert_int_eq(w.found[0].step, BBM_STEP_TLBI);
        } else if (left == LEFT_TLBI_DSB) {
            ck_assert_int_eq(w.found[0].step, BBM_STEP_TLBI_DSB);
        }
    }
    bbm_free(w.bbm);
}
END_TEST

START_TEST(numbers_of_vcpus_that_are_too_large_are_refused)
{
    static struct world w;

    world_init(&w, BBM_VCPUS_MAX + 1);
    ck_assert_ptr_null(bbm_new(&w.config));
    w.config.vcpus = 0;
    ck_assert_ptr_null(bbm_new(&w.config));
    bbm_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bbm");
    TCase *tc = tcase_create("core");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, every_trace_has_the_verdict_that_it_expects);
    tcase_add_test(tc, a_violation_names_place_descriptors_and_culprits);
    tcase_add_test(tc, addresses_of_the_high_half_are_told_as_they_are);
    tcase_add_test(tc, only_changes_of_what_is_translated_need_a_break);
    tcase_add_test(tc, a_dsb_shows_stores_or_waits_by_its_kind);
    tcase_add_test(tc, a_program_that_leaves_out_a_step_is_found_out);
    tcase_add_test(tc, numbers_of_vcpus_that_are_too_large_are_refused);
    suite_add_tcase(suite, tc);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
