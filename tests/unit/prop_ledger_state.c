/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's state and random programs: a rollback is as if nothing had
 * happened, and memory that is short is said to be.
 */
#include "ledger_program.h"

/* --- rollback --- */

/* As step(), but now and then one of them is left out, or doubled. */
static void careless_step(struct machine *m)
{
    struct task *t = &m->task[draw(m, VCPUS)];

    if (t->busy && t->step > 1 && t->step < 7 && draw(m, 20) == 0) {
        t->step++;
    }
    step(m);
    if (draw(m, 100) == 0) {
        unsigned v = draw(m, VCPUS);

        /* A table goes, and comes back. */
        store(m->w, v, 1, roots[0] + 0x2000, 0);
        if (draw(m, 2)) {
            ledger_frame_free(m->w->ledger, v, 1, roots[0] + 0x3000);
        }
        store(m->w, v, 1, roots[0] + 0x2000,
              (roots[0] + 0x3000) | DESC_VALID | DESC_TABLE_OR_PAGE);
        walk(m->w, v, 0);
    }
    if (draw(m, 300) == 0) {
        unsigned v = draw(m, VCPUS);

        ledger_vcpu_off(m->w->ledger, v);
        go(m, v, 0);
    }
    if (draw(m, 10) == 0) {
        ledger_fault(m->w->ledger, draw(m, VCPUS), 1, address(0, draw(m, 2)));
        ledger_hit(m->w->ledger, draw(m, VCPUS), address(0, draw(m, 4)));
    }
}

/* What happens in so many steps, as a number. */
static uint64_t trail(struct machine *m, unsigned steps)
{
    uint64_t sum = 14695981039346656037u;

    for (unsigned i = 0; i < steps; i++) {
        m->w->count = 0;
        careless_step(m);
        for (unsigned j = 0; j < m->w->count; j++) {
            const struct ledger_violation *v = &m->w->found[j];
            const uint64_t words[] = {
                i,           v->rule,     v->step,    v->pa,
                v->asid,     v->dirty,    v->dormant, v->old,
                v->now,      v->now_vcpu, v->frame,   v->break_vcpu,
                v->is_late,  v->op,       v->hits,    v->tlbi.vcpu,
                v->dsb.vcpu,
            };

            for (unsigned k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
                sum = (sum ^ words[k]) * UINT64_C(0x100000001b3);
            }
        }
    }
    return sum;
}

START_TEST(after_a_rollback_all_is_as_it_was)
{
    static struct world w, before_world;
    static struct machine m, before;
    uint64_t found = 0;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct ledger_counts counts, again;

        start(&m, &w, seed, seed & 1);
        trail(&m, 500);
        ledger_rollback(w.ledger); /* without a checkpoint: nothing */
        for (unsigned point = 0; point < 6; point++) {
            uint64_t hash, first;

            ck_assert(ledger_checkpoint(w.ledger));
            hash = ledger_hash(w.ledger);
            before_world = w;
            before = m;
            ledger_count(w.ledger, &counts);
            first = trail(&m, 400);
            found += first != 14695981039346656037u;
            for (unsigned run = 0; run < 3; run++) {
                w = before_world;
                m = before;
                ledger_rollback(w.ledger);
                ck_assert_uint_eq(ledger_hash(w.ledger), hash);
                ledger_count(w.ledger, &again);
                ck_assert_uint_eq(again.open, counts.open);
                ck_assert_uint_eq(again.tables, counts.tables);
                ck_assert_uint_ge(again.breaks, counts.breaks);
                if (run == 1) {
                    trail(&m, 50); /* another way in between */
                    continue;
                }
                ck_assert_uint_eq(trail(&m, 400), first);
            }
            w = before_world;
            m = before;
            ledger_rollback(w.ledger);
            m.state += point;
            trail(&m, 300);
        }
        ledger_free(w.ledger);
    }
    ck_assert_uint_gt(found, 20); /* there was something to tell */
}
END_TEST

/* --- the memory --- */

START_TEST(when_memory_is_short_it_says_so)
{
    static struct world w;
    struct ledger_counts counts;

    world_init(&w, 2);
    w.config.rules = LEDGER_RULES_ALL;
    w.config.arena = 64 << 10;
    for (unsigned i = 0; i < 512; i++) {
        w.memory[0x4000 / 8 + i] = page_desc(0x10000000 + i * 0x1000);
    }
    standard_tables(&w);
    for (unsigned i = 0; i < 512; i++) {
        store(&w, 0, 1, 0x4000 + i * 8, 0);
    }
    ledger_count(w.ledger, &counts);
    ck_assert(counts.out_of_memory);
    ledger_free(w.ledger);
    w.config.arena = 1024;
    w.config.vcpus = LEDGER_VCPUS_MAX;
    ck_assert_ptr_null(ledger_new(&w.config));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_ledger_state");
    TCase *tc = tcase_create("core");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, after_a_rollback_all_is_as_it_was);
    tcase_add_test(tc, when_memory_is_short_it_says_so);
    suite_add_tcase(suite, tc);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
