/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 0 is the plain answer: a run of zero bytes is the plain run, which takes the
 * vCPUs in turn.
 */
#include "det_fixture.h"

static const char *const machines[] = {
    "--engine seeded " DET_RECLAIM_RACE,
    "--engine seeded --tlb ipi " DET_RECLAIM_RACE,
    "--engine seeded --hw eager " DET_RECLAIM_RACE,
    "--engine seeded --hw adversarial " DET_RECLAIM_RACE,
    "--engine seeded --mem 32M hello",
    "--engine seeded --mem 32M --cpus 1 hello",
    "--engine vtime " DET_RECLAIM_RACE,
    "--engine vtime --hw random --mem 32M hello",
};

static struct choice_source *zero_source(unsigned which)
{
    static const uint8_t zeros[1000000];

    switch (which) {
    case 0:
        return choice_source_plain();
    case 1:
        return choice_source_bytes(zeros, sizeof(zeros));
    case 2:
        return choice_source_bytes(zeros, 1); /* used up, then 0 */
    case 3:
        return choice_source_bytes(NULL, 0);
    case 4:
        return choice_source_recorded(NULL, 0, UINT64_MAX, true);
    case 5:
        return choice_source_recorded(NULL, 0, UINT64_MAX, false);
    default:
        return det_strategy("plain", which);
    }
}

START_TEST(zeros_in_whatever_form_are_the_plain_run)
{
    struct det_machine *m = det_machine_new(machines[_i]);
    struct det_answer plain = {0};

    for (unsigned which = 0; which < 8; which++) {
        struct choice_source *source = zero_source(which);
        struct det_answer a = det_run_source(m, source, true);
        struct schedule *s = execution_schedule(m->execution);

        ck_assert_msg(det_is_good_end(a.outcome), "%s: ended with %s",
                      machines[_i], vm_outcome_name(a.outcome));
        plain = which ? plain : a;
        ck_assert_msg(det_same(&plain, &a), "%s: zeros of form %u: %s",
                      machines[_i], which, det_two(&plain, &a));
        ck_assert_uint_eq(m->execution->stream.entries->len, 0);
        ck_assert_uint_eq(s->entries->len, 0);
        ck_assert_uint_eq(s->total, a.choices);
        schedule_free(s);
        choice_source_free(source);
    }
    /* In between, another run, and back. */
    (void)det_run_strategy(m, "random", 7, false);
    ck_assert_uint_gt(plain.events, 0);
    if (strstr(machines[_i], "seeded") && m->config->cpus > 1) {
        struct det_answer a = det_run_strategy(m, "random", 7, false);

        ck_assert_msg(a.trace_hash != plain.trace_hash,
                      "%s: a random run is the plain one", machines[_i]);
        a = det_run_strategy(m, "plain", 7, true);
        ck_assert_msg(det_same(&plain, &a), "%s: after a random run: %s",
                      machines[_i], det_two(&plain, &a));
    }
    det_machine_free(m);
}
END_TEST

/* Who was scheduled, in this order. */
static void note_sched(void *opaque, const struct event *event)
{
    g_array_append_val((GArray *)opaque, event->vcpu);
}

static void listen_to_sched(struct events *events, void *opaque)
{
    events_subscribe(events, EVENT_BIT(EVENT_sched), note_sched, opaque);
}

/* Four CPUs that loop and never do anything else. */
START_TEST(the_plain_run_takes_the_vcpus_in_turn)
{
    GArray *order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree char *text = g_strdup_printf(
        "--engine seeded --hw eager --mem 16M --cpus 4 --max-steps 400 "
        "--kernel %s",
        g_getenv("DET_MASKED_LOOP"));
    struct det_machine *m = det_machine_listened(text, listen_to_sched, order);
    struct choice_source *source = choice_source_bytes(NULL, 0);
    struct det_answer a = det_run_source(m, source, false);
    unsigned turns = 0;

    ck_assert_int_eq(a.outcome, VM_OUTCOME_LIMIT);
    ck_assert_uint_ge(order->len, 100);
    /* Until all are up it is for CPU 0 to say who can run. */
    for (guint i = order->len - 80; i < order->len; i++) {
        uint32_t before = g_array_index(order, uint32_t, i - 1);

        ck_assert_uint_eq(g_array_index(order, uint32_t, i), (before + 1) % 4);
        turns++;
    }
    printf("%u slices in turn, of %u\n", turns, order->len);
    choice_source_free(source);
    det_machine_free(m);
    g_array_unref(order);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("zeros");

    tcase_set_timeout(tc, det_seconds(60));
    tcase_add_loop_test(tc, zeros_in_whatever_form_are_the_plain_run, 0,
                        G_N_ELEMENTS(machines));
    tcase_add_test(tc, the_plain_run_takes_the_vcpus_in_turn);
    return det_main_of("zeros", tc);
}
