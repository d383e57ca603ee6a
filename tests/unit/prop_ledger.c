/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger and random programs: one that keeps all rules is not blamed,
 * whatever its vCPUs' steps are mixed like; with one step left out it is blamed
 * for the right rule and cause.
 */
#include "ledger_program.h"

static void run_silently(bool ipi)
{
    static struct world w;
    static struct machine m;
    struct ledger_counts counts;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        start(&m, &w, seed, ipi);
        for (unsigned i = 0; i < 10000; i++) {
            step(&m);
            ck_assert_msg(w.count == 0, "seed %" PRIu64 ", step %u: %s %s",
                          seed, i, ledger_rule_name(w.found[0].rule),
                          ledger_step_name(w.found[0].step));
        }
        ledger_count(w.ledger, &counts);
        ck_assert_uint_gt(counts.breaks, 500);
        ck_assert_uint_gt(counts.reductions, 100);
        ck_assert(!counts.out_of_memory);
        ledger_free(w.ledger);
    }
}

START_TEST(a_program_that_keeps_the_rules_is_not_blamed)
{
    run_silently(false);
}
END_TEST

START_TEST(nor_one_whose_vcpus_flush_when_they_are_asked)
{
    run_silently(true);
}
END_TEST

/* --- a step left out --- */

enum left_out {
    LEFT_STORE_DSB,
    LEFT_ORDER, /* the TLBI comes first */
    LEFT_TLBI,
    LEFT_SCOPE,
    LEFT_ASID,
    LEFT_VA,
    LEFT_LEVEL,
    LEFT_WAIT,
    LEFT_WAIT_BY,
    LEFT_WAIT_KIND,
    LEFTS
};

static const struct {
    enum ledger_step step;
    unsigned cause;
} expected[LEFTS] = {
    [LEFT_STORE_DSB] = {LEDGER_STEP_ORDER, 7},
    [LEFT_ORDER] = {LEDGER_STEP_ORDER, 7},
    [LEFT_TLBI] = {LEDGER_STEP_TLBI, 0},
    [LEFT_SCOPE] = {LEDGER_STEP_SCOPE, 6},
    [LEFT_ASID] = {LEDGER_STEP_ASID, 6},
    [LEFT_VA] = {LEDGER_STEP_VA, 6},
    [LEFT_LEVEL] = {LEDGER_STEP_LEVEL, 6},
    [LEFT_WAIT] = {LEDGER_STEP_TLBI_DSB, 5},
    [LEFT_WAIT_BY] = {LEDGER_STEP_TLBI_BY, 5},
    [LEFT_WAIT_KIND] = {LEDGER_STEP_TLBI_KIND, 5},
};

static void wrong_flush(struct machine *m, unsigned v, gva_t va,
                        enum left_out left)
{
    struct ledger *l = m->w->ledger;
    struct tlbi_op op = {
        .kind = TLBI_VA,
        .scope = left == LEFT_SCOPE ? TLBI_LOCAL : TLBI_IS,
        .va = left == LEFT_VA ? va + 4096 : va,
        .size = 4096,
        .asid = m->asid[0] ^ (left == LEFT_ASID ? 8 : 0),
        .last_level = true,
        .ttl_level = left == LEFT_LEVEL ? 2 : 0,
    };

    if (left == LEFT_ORDER) {
        ledger_tlbi(l, v, 1, &op);
    }
    if (left != LEFT_STORE_DSB) {
        dsb(m, v, 10);
    }
    if (left != LEFT_TLBI && left != LEFT_ORDER) {
        ledger_tlbi(l, v, 1, &op);
    }
    if (left == LEFT_WAIT_BY) {
        dsb(m, (v + 1) % VCPUS, 11);
    } else if (left == LEFT_WAIT_KIND) {
        dsb(m, v, 10);
    } else if (left != LEFT_WAIT) {
        dsb(m, v, 11);
    }
}

static void check_blame(struct machine *m, enum ledger_rule rule,
                        enum left_out left, gpa_t at)
{
    const struct ledger_violation *v = &m->w->found[0];

    ck_assert_uint_eq(m->w->count, 1);
    ck_assert_int_eq(v->rule, rule);
    ck_assert_msg(v->step == expected[left].step, "%u: %s", left,
                  ledger_step_name(v->step));
    ck_assert_uint_eq(ledger_cause(v->step), expected[left].cause);
    ck_assert_uint_eq(v->pa, at);
    ck_assert_uint_eq(v->asid, m->asid[0]);
}

START_TEST(a_program_that_leaves_out_a_step_is_blamed_for_it)
{
    static struct world w;
    static struct machine m;
    static const enum ledger_rule rules[] = {LEDGER_FREE, LEDGER_RETURN,
                                             LEDGER_READER, LEDGER_UNCLEAN};

    for (unsigned i = 0; i < 4000; i++) {
        enum ledger_rule rule = rules[i % 4];
        enum left_out left;
        unsigned v, page;
        uint64_t frame;
        gpa_t at;
        gva_t va;

        start(&m, &w, i + 1, false);
        rollover(&m);
        for (v = 0; v < VCPUS; v++) {
            go(&m, v, 0);
        }
        left = (enum left_out)draw(&m, LEFTS);
        v = draw(&m, VCPUS);
        page = draw(&m, PAGES);
        at = place(v, 0, page);
        va = address(v, page);
        frame = w.memory[at / 8] & DESC_ADDR_MASK;
        ledger_op_begin(w.ledger, v, 0, 2, va, va + 4096,
                        LEDGER_CONTRACT_NOACCESS);
        store(&w, v, 1, at, 0);
        wrong_flush(&m, v, va, left);
        if (rule == LEDGER_FREE) {
            ledger_frame_free(w.ledger, v, 2, frame);
        } else if (rule == LEDGER_RETURN) {
            ledger_op_end(w.ledger, v, 2, 0, 2);
        } else if (rule == LEDGER_READER) {
            ledger_io_begin(w.ledger, v, 2, frame);
        } else {
            store(&w, v, 2, at, user_page(++m.frames));
        }
        check_blame(&m, rule, left, at);
        ck_assert_uint_eq(w.found[0].now_pc, 2);
        ck_assert_uint_eq(w.found[0].break_pc, 1);
        ck_assert_uint_eq(w.found[0].frame,
                          rule == LEDGER_FREE || rule == LEDGER_READER ? frame
                                                                       : 0);
        ledger_free(w.ledger);
    }
}
END_TEST

/* Who is not in user mode, or does not have the root, is told when he is. */
START_TEST(a_debt_is_told_when_the_debtor_comes_back)
{
    static struct world w;
    static struct machine m;

    for (unsigned i = 0; i < 400; i++) {
        bool ipi = i & 1, pays = i & 2;
        unsigned v, debtor;

        start(&m, &w, i + 1, ipi);
        for (v = 0; v < VCPUS; v++) {
            go(&m, v, 0);
        }
        v = draw(&m, VCPUS);
        debtor = (v + 1 + draw(&m, VCPUS - 1)) % VCPUS;
        for (unsigned o = 0; o < VCPUS; o++) {
            if (!ipi || o != v) {
                go(&m, o, o == debtor ? (ipi ? 0 : 1) : -1);
            }
        }
        store(&w, v, 1, place(0, 0, 0), 0);
        dsb(&m, v, 11);
        for (unsigned o = 0; o < VCPUS; o++) {
            if (o != debtor) {
                flush_all_here(&m, o);
            }
        }
        ledger_frame_free(w.ledger, v, 2, 0x101000);
        ck_assert_uint_eq(w.count, 0);
        ck_assert(ledger_late(w.ledger) >> debtor & 1);
        ck_assert(!(ledger_late(w.ledger) >> v & 1));
        go(&m, debtor, 0);
        if (pays) {
            flush_all_here(&m, debtor);
            ck_assert(!(ledger_late(w.ledger) >> debtor & 1));
        }
        ledger_el(w.ledger, debtor, 0);
        ck_assert_uint_eq(w.count, pays ? 0 : 1);
        if (!pays) {
            ck_assert(w.found[0].is_late);
            ck_assert_int_eq(w.found[0].rule, LEDGER_FREE);
            ck_assert_uint_eq(w.found[0].dirty, UINT64_C(1) << debtor);
            ck_assert_uint_eq(w.found[0].now_vcpu, v);
            ck_assert_uint_eq(w.found[0].now_pc, 2);
            ck_assert_uint_eq(w.found[0].frame, 0x101000);
        }
        ledger_free(w.ledger);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_ledger");
    TCase *tc = tcase_create("core");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_program_that_keeps_the_rules_is_not_blamed);
    tcase_add_test(tc, nor_one_whose_vcpus_flush_when_they_are_asked);
    tcase_add_test(tc, a_program_that_leaves_out_a_step_is_blamed_for_it);
    tcase_add_test(tc, a_debt_is_told_when_the_debtor_comes_back);
    suite_add_tcase(suite, tc);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
