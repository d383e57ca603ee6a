// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Classification of sensitive instructions: tables, policies, page scans.
 * Over 500 lines because the tables of small cases stay with their tests.
 */
#include "insn/insn.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE_WORDS 1024

enum flags {
    ACQ = 1,
    REL = 2,
    LIM = 4,
    RCPC = 8,
    PAIR = 16,
    NXS = 32,
    READ = 64,
    S32 = 128,
    S64 = 256,
};

struct row {
    const char *text;
    uint32_t word;
    enum insn_kind kind; /* INSN_NONE: native */
    unsigned size_log2, rt, rt2, rs, rn, crm, sysreg, flags;
    enum lse_op op;
};

/* clang-format off */
static const struct row rows[] = {
#define MEMORY(t, w, k, s, a, b, c, d, f, o) \
    {.text = t, .word = w, .kind = INSN_##k, .size_log2 = s, .rt = a, \
     .rt2 = b, .rs = c, .rn = d, .flags = f, .op = o},
#define SYSTEM(t, w, k, m, a, key, f) \
    {.text = t, .word = w, .kind = INSN_##k, .crm = m, .rt = a, \
     .sysreg = key, .flags = f},
#define NATIVE(t, w) {.text = t, .word = w, .kind = INSN_NONE},
#include "insn_words.inc"
#undef MEMORY
#undef SYSTEM
#undef NATIVE
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define GROUP 32

static bool any_sysreg(uint32_t key, bool is_read)
{
    (void)key;
    (void)is_read;
    return true;
}

static const struct insn_policy everything = {
    .trap_isb = true,
    .trap_dc = true,
    .pstate_traps = UINT64_MAX,
    .sysreg_traps = any_sysreg,
};

static struct disas *disas;

static void setup(void)
{
    disas = disas_new();
    ck_assert_ptr_nonnull(disas);
}

static void teardown(void)
{
    disas_free(disas);
}

static bool is_memory(enum insn_kind kind)
{
    return kind >= INSN_LOAD_EXCLUSIVE && kind <= INSN_STORE_UNPRIV &&
           kind != INSN_CLREX;
}

static unsigned flags_of(const struct insn *in)
{
    return (in->acquire ? ACQ : 0) | (in->release ? REL : 0) |
           (in->limited ? LIM : 0) | (in->rcpc ? RCPC : 0) |
           (in->pair ? PAIR : 0) | (in->nxs ? NXS : 0) |
           (in->is_read ? READ : 0) | (in->sign_bits == 32 ? S32 : 0) |
           (in->sign_bits == 64 ? S64 : 0);
}

static void check_row(const struct row *row)
{
    struct insn in;
    bool trapped = insn_classify(disas, row->word, &everything, &in);

    ck_assert_msg(trapped == (row->kind != INSN_NONE), "%s", row->text);
    if (!trapped) {
        return;
    }
    ck_assert_msg(in.kind == row->kind, "%s is %s", row->text,
                  insn_kind_name(in.kind));
    ck_assert_msg(in.word == row->word && in.rt == row->rt, "%s", row->text);
    ck_assert_msg(flags_of(&in) == row->flags, "%s: flags %#x", row->text,
                  flags_of(&in));
    ck_assert_msg(!in.disputed, "%s", row->text);
    if (is_memory(row->kind)) {
        ck_assert_msg(in.size_log2 == row->size_log2, "%s", row->text);
        ck_assert_msg(in.rn == row->rn && in.rs == row->rs, "%s", row->text);
        ck_assert_msg(in.rt2 == row->rt2, "%s: rt2 %u", row->text, in.rt2);
        ck_assert_msg(in.op == row->op, "%s", row->text);
    } else if (row->sysreg) {
        ck_assert_msg(in.sysreg == row->sysreg, "%s: key %#x", row->text,
                      in.sysreg);
    } else if (row->kind != INSN_CLREX) {
        ck_assert_msg(in.barrier_crm == row->crm, "%s", row->text);
    }
}
/* Rows go in groups: a process for each would cost more than the work. */
START_TEST(each_encoding_is_classified_with_its_operands)
{
    for (unsigned i = (unsigned)_i * GROUP; i < ROWS && i < (_i + 1u) * GROUP;
         i++) {
        check_row(&rows[i]);
    }
}
END_TEST

START_TEST(classification_needs_no_disassembler)
{
    for (unsigned i = 0; i < ROWS; i++) {
        struct insn in;

        ck_assert_msg(insn_classify(NULL, rows[i].word, &everything, &in) ==
                          (rows[i].kind != INSN_NONE),
                      "%s", rows[i].text);
    }
}
END_TEST

START_TEST(offsets_of_unscaled_forms_are_signed)
{
    struct insn in;

    /* ldtr x1, [x2, #-8]; stlur w1, [x2, #255]; ldapursw x1, [x2, #-256] */
    ck_assert(insn_classify(disas, 0xf85f8841, &everything, &in));
    ck_assert_int_eq(in.offset, -8);
    ck_assert(insn_classify(disas, 0x990ff041, &everything, &in));
    ck_assert_int_eq(in.offset, 255);
    ck_assert(insn_classify(disas, 0x99900041, &everything, &in));
    ck_assert_int_eq(in.offset, -256);
}
END_TEST

START_TEST(unallocated_neighbours_are_not_sensitive)
{
    static const uint32_t words[] = {
        0x48207c01, /* CASP with an odd Rt */
        0x48217c02, /* CASP with an odd Rs */
        0x08a10461, /* CAS with Rt2 != 31 */
        0xf8a0c3fb, /* LDAPR with Rs != 31 */
        0xf8209020, /* ST64B is no feature of the machine */
        0xf8900841, /* LDTRS of 64 bits to 64 */
        0xb8d00841, /* LDTRS of 32 bits to 32 */
        0x99d00041, /* LDAPURS of 32 bits to 32 */
        0x3c400841, /* LDTR group with V set */
        0xd503333f, /* DSB nXS with CRm = 0011 */
        0xd50331ff, /* SB with CRm = 1 */
        0xd5033f9e, /* DSB with Rt != 31 */
        0xd5232000, /* op0 = 0 with L = 1 */
    };

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct insn in;

        ck_assert_msg(!insn_classify(disas, words[i], &everything, &in),
                      "0x%08x is %s", words[i], insn_kind_name(in.kind));
    }
}
END_TEST

static bool traps(uint32_t word, const struct insn_policy *policy)
{
    struct insn in;

    return insn_classify(disas, word, policy, &in);
}

START_TEST(a_tso_host_keeps_load_acquire_and_one_sided_dmb_native)
{
    static const struct insn_policy tso = {.host_tso = true}, weak = {0};
    static const struct {
        uint32_t word;
        bool on_tso;
    } cases[] = {
        {0x88dffc20, false}, /* ldar w0, [x1] */
        {0xc8df7c20, false}, /* ldlar x0, [x1] */
        {0x38bfc020, false}, /* ldaprb w0, [x1] */
        {0x995f0020, false}, /* ldapur w0, [x1, #-16] */
        {0x889ffc20, true},  /* stlr w0, [x1] */
        {0x889f7c20, true},  /* stllr w0, [x1] */
        {0x99000020, true},  /* stlur w0, [x1] */
        {0xd50339bf, false}, /* dmb ishld */
        {0xd5033abf, false}, /* dmb ishst */
        {0xd50335bf, false}, /* dmb nshld */
        {0xd50332bf, false}, /* dmb oshst */
        {0xd5033ebf, false}, /* dmb st */
        {0xd5033bbf, true},  /* dmb ish */
        {0xd5033fbf, true},  /* dmb sy */
        {0xd50337bf, true},  /* dmb nsh */
        {0xd50333bf, true},  /* dmb osh */
        {0xd50330bf, true},  /* dmb #0, reserved: full */
        {0xd503399f, true},  /* dsb ishld */
        {0xd5033a9f, true},  /* dsb ishst */
        {0xd5033b9f, true},  /* dsb ish */
        {0xc85ffc20, true},  /* ldaxr x0, [x1] */
        {0xb8200041, true},  /* ldadd w0, w1, [x2] */
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(traps(cases[i].word, &weak), "0x%08x", cases[i].word);
        ck_assert_msg(traps(cases[i].word, &tso) == cases[i].on_tso, "0x%08x",
                      cases[i].word);
    }
}
END_TEST

static bool only_ttbr0_writes(uint32_t key, bool is_read)
{
    return key == insn_sysreg_key(3, 0, 2, 0, 0) && !is_read;
}

START_TEST(the_policy_decides_on_isb_dc_pstate_and_registers)
{
    static const struct insn_policy none = {0};
    static const struct insn_policy some = {
        .trap_isb = true,
        .trap_dc = true,
        .pstate_traps = INSN_PSTATE_PAN | INSN_PSTATE_SPSEL,
        .sysreg_traps = only_ttbr0_writes,
    };
    static const struct {
        uint32_t word;
        bool with_none, with_some;
    } cases[] = {
        {0xd5033fdf, false, true},  /* isb */
        {0xd50330ff, false, true},  /* sb */
        {0xd5087625, false, true},  /* dc ivac, x5 */
        {0xd50b7a25, false, true},  /* dc cvac, x5 */
        {0xd50b7425, false, false}, /* dc zva, x5 */
        {0xd5034fff, true, true},   /* msr daifclr, #15 */
        {0xd50342df, false, false}, /* msr daifset, #2 */
        {0xd500419f, false, true},  /* msr pan, #1 */
        {0xd50040bf, false, true},  /* msr spsel, #0 */
        {0xd500417f, false, false}, /* msr uao, #1 */
        {0xd5182003, false, true},  /* msr ttbr0_el1, x3 */
        {0xd5382003, false, false}, /* mrs x3, ttbr0_el1 */
        {0xd5182023, false, false}, /* msr ttbr1_el1, x3 */
        {0xd50b7384, false, false}, /* cfp rctx, x4 */
        {0xd5087800, true, true},   /* at s1e1r, x0 */
        {0xd508751f, true, true},   /* ic iallu */
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(traps(cases[i].word, &none) == cases[i].with_none,
                      "0x%08x", cases[i].word);
        ck_assert_msg(traps(cases[i].word, &some) == cases[i].with_some,
                      "0x%08x", cases[i].word);
    }
}
END_TEST

START_TEST(barrier_helpers_read_domain_and_type)
{
    struct insn in;

    ck_assert(insn_classify(disas, 0xd5033a9f, &everything, &in)); /* ishst */
    ck_assert_int_eq(insn_barrier_domain(&in), BARRIER_ISH);
    ck_assert_int_eq(insn_barrier_type(&in), BARRIER_STORES);
    ck_assert(insn_classify(disas, 0xd503379f, &everything, &in)); /* nsh */
    ck_assert_int_eq(insn_barrier_domain(&in), BARRIER_NSH);
    ck_assert_int_eq(insn_barrier_type(&in), BARRIER_ALL);
    ck_assert(insn_classify(disas, 0xd503389f, &everything, &in)); /* #8 */
    ck_assert_int_eq(insn_barrier_domain(&in), BARRIER_SY);
    ck_assert_int_eq(insn_barrier_type(&in), BARRIER_ALL);
    ck_assert(insn_classify(disas, 0xd503323f, &everything, &in)); /* oshnXS */
    ck_assert_int_eq(insn_barrier_domain(&in), BARRIER_OSH);
    ck_assert_int_eq(insn_barrier_type(&in), BARRIER_ALL);
}
END_TEST

/* --- the whole encoding space of the groups, against Capstone --- */

static bool starts(const char *text, const char *const *names)
{
    for (; *names; names++) {
        if (!strncmp(text, *names, strlen(*names))) {
            return true;
        }
    }
    return false;
}

static bool mnemonic_is_sensitive(const char *mnemonic, uint32_t word)
{
    static const char *const memory[] = {
        "ldx",    "ldax",  "stx",  "stlx",  "ldadd", "ldclr", "ldeor", "ldset",
        "ldsmax", "ldsm",  "ldum", "stadd", "stclr", "steor", "stset", "stsm",
        "stum",   "swp",   "cas",  "ldar",  "ldlar", "stlr",  "stllr", "ldapr",
        "ldapu",  "stlur", "ldtr", "sttr",  NULL};
    static const char *const barrier[] = {"clrex", "dmb",   "dsb", "ssbb",
                                          "pssbb", "dfb",   "isb", "wfi",
                                          "wfe",   "yield", "sev", NULL};
    static const char *const system[] = {"tlbi", "ic", "at", "dc", "sys", NULL};
    static const char *const reg[] = {"msr", "mrs", NULL};

    if (word >> 24 != 0xd5) {
        return starts(mnemonic, memory);
    }
    if (starts(mnemonic, barrier) || !strcmp(mnemonic, "sb")) {
        return true;
    }
    if ((word & 0xfffff800) == 0xd50b7000 && (word & 0x700) == 0x400) {
        return false; /* the DC ZVA corner, never trapped */
    }
    /* op0 = 0 is printed as MSR even where nothing is allocated. */
    return starts(mnemonic, system) ||
           ((word & 0x00180000) && starts(mnemonic, reg));
}

static void check_against_capstone(uint32_t word, unsigned *known)
{
    char mnemonic[DISAS_MNEMONIC_MAX];
    struct insn in;
    bool trapped;

    if (!disas_mnemonic(disas, word, mnemonic)) {
        return;
    }
    ++*known;
    trapped = insn_classify(disas, word, &everything, &in);
    /* Check's assertions write to a pipe each time: only on a failure here. */
    if (mnemonic_is_sensitive(mnemonic, word) && !trapped) {
        ck_abort_msg("missed 0x%08x %s", word, mnemonic);
    }
    if (trapped && word >> 24 != 0xd5 &&
        !mnemonic_is_sensitive(mnemonic, word)) {
        ck_abort_msg("0x%08x %s taken for %s", word, mnemonic,
                     insn_kind_name(in.kind));
    }
    if (trapped && in.disputed) {
        ck_abort_msg("0x%08x %s", word, mnemonic);
    }
}

START_TEST(no_word_that_capstone_calls_sensitive_is_missed)
{
    unsigned known = 0;

    /* All of bits 31..21 and 15..10 with two choices of registers. */
    for (uint32_t i = 0; i < 1u << 17; i++) {
        uint32_t word = i >> 6 << 21 | (i & 63) << 10;

        if (word >> 24 != 0xd5) {
            check_against_capstone(word | 2u << 16 | 3u << 5 | 6, &known);
            check_against_capstone(word | 31u << 16 | 3u << 5 | 4, &known);
        }
    }
    /* All system instructions, with and without a register. */
    for (uint32_t i = 0; i < 1u << 17; i++) {
        check_against_capstone(0xd5000000 | i << 5 | 31, &known);
        check_against_capstone(0xd5000000 | i << 5 | 7, &known);
    }
    ck_assert_uint_gt(known, 200000);
    ck_assert_uint_eq(disas_disagreements(disas), 0);
}
END_TEST

/* --- page scans --- */

struct found {
    unsigned count;
    unsigned index[PAGE_WORDS];
    uint32_t word[PAGE_WORDS];
};

static void note(void *opaque, unsigned index, const struct insn *in)
{
    struct found *found = opaque;

    found->index[found->count] = index;
    found->word[found->count++] = in->word;
}

START_TEST(a_scan_finds_exactly_the_sensitive_words_of_a_page)
{
    unsigned seed = (unsigned)time(NULL);
    uint32_t page[PAGE_WORDS];
    bool sensitive[PAGE_WORDS];
    struct found found;

    printf("scan: seed %u\n", seed);
    srand(seed);
    for (unsigned round = 0; round < 50; round++) {
        unsigned expected = 0, next = 0;

        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            const struct row *row = &rows[(unsigned)rand() % ROWS];

            page[i] = row->word;
            sensitive[i] = row->kind != INSN_NONE;
            expected += sensitive[i];
        }
        found.count = 0;
        ck_assert_uint_eq(
            insn_scan_page(disas, page, PAGE_WORDS, &everything, note, &found),
            expected);
        ck_assert_uint_eq(found.count, expected);
        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            if (sensitive[i]) {
                ck_assert_uint_eq(found.index[next], i);
                ck_assert_uint_eq(found.word[next++], page[i]);
            }
        }
    }
}
END_TEST

START_TEST(a_scan_without_a_callback_counts)
{
    static const uint32_t words[] = {0xd503201f, 0xd5033b9f, 0xc85ffc20};

    ck_assert_uint_eq(insn_scan_page(disas, words, 3, &everything, NULL, NULL),
                      2);
    ck_assert_uint_eq(insn_scan_page(disas, words, 0, &everything, NULL, NULL),
                      0);
}
END_TEST

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

START_TEST(a_scan_of_a_page_with_few_candidates_is_cheap)
{
    uint32_t page[PAGE_WORDS];
    double best = 1e9;

    for (unsigned i = 0; i < PAGE_WORDS; i++) {
        const struct row *row;

        do {
            row = &rows[(unsigned)rand() % ROWS];
        } while ((row->kind != INSN_NONE) != (i % 128 == 0));
        page[i] = row->word;
    }
    for (unsigned i = 0; i < 50; i++) {
        double start = now_us();

        ck_assert_uint_eq(
            insn_scan_page(disas, page, PAGE_WORDS, &everything, NULL, NULL),
            PAGE_WORDS / 128);
        best = now_us() - start < best ? now_us() - start : best;
    }
    printf("scan of 1024 words, 8 sensitive: %.1f us\n", best);
    /* The aim is 50 us; sanitizers and a busy machine get the rest. */
    ck_assert(best < 1000);
}
END_TEST

START_TEST(text_of_unknown_and_known_words)
{
    char text[64], tiny[4];

    disas_text(disas, 0xc85ffc20, 0, text, sizeof(text));
    ck_assert_str_eq(text, "ldaxr x0, [x1]");
    disas_text(disas, 0xf83f82ba, 0, text, sizeof(text));
    ck_assert_str_eq(text, "swp xzr, x26, [x21]");
    disas_text(disas, 0xb8e103e2, 0, text, sizeof(text));
    ck_assert_str_eq(text, "ldaddal w1, w2, [sp]");
    disas_text(disas, 0x78a05041, 0, text, sizeof(text));
    ck_assert_str_eq(text, "ldsminah w0, w1, [x2]");
    disas_text(disas, 0xc8e3fc45, 0, text, sizeof(text));
    ck_assert_str_eq(text, "casal x3, x5, [x2]");
    disas_text(disas, 0xf8bfc041, 0, text, sizeof(text)); /* LDAPR */
    ck_assert_ptr_null(strstr(text, "swp"));
    disas_text(disas, 0xffffffff, 0, text, sizeof(text));
    ck_assert_str_eq(text, ".inst 0xffffffff");
    disas_text(disas, 0xc85ffc20, 0, tiny, sizeof(tiny));
    ck_assert_str_eq(tiny, "lda");
    disas_version(text, sizeof(text));
    ck_assert_ptr_nonnull(strchr(text, '.'));
}
END_TEST

START_TEST(every_kind_has_a_name)
{
    for (unsigned k = 0; k < INSN_KINDS; k++) {
        ck_assert_ptr_nonnull(insn_kind_name((enum insn_kind)k));
    }
    ck_assert_str_eq(insn_kind_name(INSN_KINDS), "unknown");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("insn");
    TCase *tcase = tcase_create("classify");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, classification_needs_no_disassembler);
    tcase_add_test(tcase, offsets_of_unscaled_forms_are_signed);
    tcase_add_test(tcase, unallocated_neighbours_are_not_sensitive);
    tcase_add_test(tcase,
                   a_tso_host_keeps_load_acquire_and_one_sided_dmb_native);
    tcase_add_test(tcase, the_policy_decides_on_isb_dc_pstate_and_registers);
    tcase_add_test(tcase, barrier_helpers_read_domain_and_type);
    tcase_add_test(tcase, no_word_that_capstone_calls_sensitive_is_missed);
    tcase_add_test(tcase, a_scan_finds_exactly_the_sensitive_words_of_a_page);
    tcase_add_test(tcase, a_scan_without_a_callback_counts);
    tcase_add_test(tcase, a_scan_of_a_page_with_few_candidates_is_cheap);
    tcase_add_test(tcase, text_of_unknown_and_known_words);
    tcase_add_test(tcase, every_kind_has_a_name);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("table");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, each_encoding_is_classified_with_its_operands, 0,
                        (int)((ROWS + GROUP - 1) / GROUP));
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
