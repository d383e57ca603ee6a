/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event stream: counting, subscription, names, threads. */
#include "obs_fixture.h"

#include <pthread.h>

#include "obs/events.h"
#include "obs/stats.h"

struct seen {
    unsigned n;
    struct event last;
};

static void remember(void *opaque, const struct event *event)
{
    struct seen *seen = opaque;

    seen->n++;
    seen->last = *event;
}

START_TEST(emitting_counts_without_any_consumer)
{
    struct events *ev = events_new(2);

    event_emit(ev, 1, EVENT_fill, 0x1000, 1, 2, 3);
    event_emit(ev, 1, EVENT_fill, 0x1000);
    event_emit(ev, 0, EVENT_isb, 0x1000);
    ck_assert_uint_eq(ev->counters[1].events[EVENT_fill], 2);
    ck_assert_uint_eq(ev->counters[0].events[EVENT_fill], 0);
    ck_assert_uint_eq(ev->counters[0].events[EVENT_isb], 1);
    ck_assert_uint_eq(ev->wanted, 0);
    events_free(ev);
}
END_TEST

START_TEST(consumer_sees_only_the_kinds_it_asked_for)
{
    struct events *ev = events_new(4);
    struct seen seen = {0};

    events_subscribe(ev, EVENT_BIT(EVENT_fill) | EVENT_BIT(EVENT_mark),
                     remember, &seen);
    event_emit(ev, 3, EVENT_walk, 1, 2);
    ck_assert_uint_eq(seen.n, 0);
    event_emit(ev, 3, EVENT_fill, 0xffff000000001234, 7, 8);
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_uint_eq(seen.last.kind, EVENT_fill);
    ck_assert_uint_eq(seen.last.vcpu, 3);
    ck_assert_uint_eq(seen.last.pc, 0xffff000000001234);
    ck_assert_uint_eq(seen.last.a[0], 7);
    ck_assert_uint_eq(seen.last.a[1], 8);
    ck_assert_uint_eq(seen.last.a[2], 0);
    event_emit(ev, 0, EVENT_mark, 0, 5);
    ck_assert_uint_eq(seen.n, 2);
    ck_assert_uint_eq(seen.last.seq, 2);
    events_free(ev);
}
END_TEST

START_TEST(every_consumer_of_a_kind_is_called)
{
    struct events *ev = events_new(1);
    struct seen a = {0}, b = {0};

    events_subscribe(ev, EVENT_ALL, remember, &a);
    events_subscribe(ev, EVENT_BIT(EVENT_dsb), remember, &b);
    event_dsb(ev, 0, 0x10, 11, 3, 4);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_uint_eq(b.n, 1);
    ck_assert_uint_eq(b.last.a[0], 11);
    ck_assert_uint_eq(b.last.a[1], 3);
    events_free(ev);
}
END_TEST

START_TEST(typed_emitters_keep_the_finer_counters)
{
    struct events *ev = events_new(1);
    struct vcpu_counters *c = events_counters(ev, 0);

    event_tlbi(ev, 0, 0x10, 3, 5, 0xabc, 0xabc000, 7, 4096, 1);
    event_dsb(ev, 0, 0x14, 10, 0, 0);
    event_dsb(ev, 0, 0x18, 27, 0, 0); /* only four bits of CRm count */
    event_dmb(ev, 0, 11);
    event_ipi_send(ev, 0, 0x20, 0x1234, 2, 3);
    event_fault(ev, 0, 0x24, UINT64_C(0x92000047), 0x5000, 0);
    event_fault(ev, 0, 0x28, UINT64_C(0x56000000), 0, 0);
    ck_assert_uint_eq(c->flush[FLUSH_TLBI(3 << 3 | 5)], 1);
    ck_assert_str_eq(tlbi_encoding_name(3 << 3 | 5), "VALE1IS");
    ck_assert_uint_eq(c->flush[FLUSH_DSB(10)], 1);
    ck_assert_uint_eq(c->flush[FLUSH_DSB(11)], 1);
    ck_assert_uint_eq(c->events[EVENT_dsb], 2);
    ck_assert_uint_eq(c->dmb[11], 1);
    ck_assert_uint_eq(c->ipis_sent, 3);
    ck_assert_uint_eq(c->events[EVENT_ipi_send], 1);
    ck_assert_uint_eq(c->faults[FAULT_TRANSLATION], 1);
    ck_assert_uint_eq(c->faults[FAULT_SVC], 1);
    events_free(ev);
}
END_TEST

START_TEST(names_and_kinds_are_inverse)
{
    for (unsigned k = 0; k < EVENT_KINDS; k++) {
        ck_assert_uint_eq(event_from_name(event_name((enum event_kind)k)), k);
    }
    ck_assert_uint_eq(event_from_name("hit-stale"), EVENT_hit_stale);
    ck_assert_uint_eq(event_from_name("nonsense"), EVENT_KINDS);
    ck_assert_ptr_null(event_field(EVENT_isb, 0));
    ck_assert_str_eq(event_field(EVENT_walk, 5), "desc");
    ck_assert_ptr_null(event_field(EVENT_walk, 6));
}
END_TEST

static const struct {
    uint64_t esr;
    enum fault_class fault_class;
} faults[] = {
    {0x96000004, FAULT_TRANSLATION},  {0x96000007, FAULT_TRANSLATION},
    {0x92000000, FAULT_ADDRESS_SIZE}, {0x9200000b, FAULT_ACCESS_FLAG},
    {0x8200000f, FAULT_PERMISSION},   {0x96000010, FAULT_EXTERNAL},
    {0x96000017, FAULT_EXTERNAL},     {0x96000021, FAULT_ALIGNMENT},
    {0x8a000000, FAULT_ALIGNMENT},    {0x02000000, FAULT_UNDEFINED},
    {0x56000000, FAULT_SVC},          {0xf2000001, FAULT_BREAKPOINT},
    {0xfe000000, FAULT_OTHER},
};

START_TEST(exception_syndrome_gives_its_class)
{
    ck_assert_msg(fault_class_from_esr(faults[_i].esr) ==
                      faults[_i].fault_class,
                  "%#llx is %s", (unsigned long long)faults[_i].esr,
                  fault_class_name(fault_class_from_esr(faults[_i].esr)));
}
END_TEST

START_TEST(sum_adds_all_vcpus)
{
    struct events *ev = events_new(3);
    struct vcpu_counters sum;

    for (unsigned v = 0; v < 3; v++) {
        events_counters(ev, v)->instructions = 10 + v;
        event_dsb(ev, v, 0, 15, 0, 0);
    }
    events_sum(ev, &sum);
    ck_assert_uint_eq(sum.instructions, 33);
    ck_assert_uint_eq(sum.flush[FLUSH_DSB(15)], 3);
    ck_assert_uint_eq(sum.events[EVENT_dsb], 3);
    events_free(ev);
}
END_TEST

#define THREADS 4
#define ROUNDS 20000

struct thread {
    struct events *ev;
    unsigned vcpu;
    uint64_t seq_sum, n;
};

/* Consumers run on the emitting thread, so each writes its own slot. */
static void add_seq(void *opaque, const struct event *event)
{
    struct thread *threads = opaque;

    threads[event->vcpu].seq_sum += event->seq;
    threads[event->vcpu].n++;
}

static void *emit_many(void *opaque)
{
    struct thread *t = opaque;

    for (unsigned i = 0; i < ROUNDS; i++) {
        event_emit(t->ev, t->vcpu, EVENT_mark, 0, i);
        event_tlbi(t->ev, t->vcpu, 0x1000 + i % 8 * 4, 3, 1, 0, 0, 0, 0, 0);
    }
    return NULL;
}

START_TEST(vcpus_on_many_threads_lose_no_event)
{
    struct events *ev = events_new(THREADS);
    struct thread threads[THREADS] = {0};
    pthread_t ids[THREADS];
    uint64_t n = 0, seq_sum = 0, all = THREADS * ROUNDS;
    GArray *sites;

    events_subscribe(ev, EVENT_BIT(EVENT_mark), add_seq, threads);
    events_attribute(ev, NULL);
    for (unsigned v = 0; v < THREADS; v++) {
        threads[v].ev = ev;
        threads[v].vcpu = v;
        ck_assert_int_eq(pthread_create(&ids[v], NULL, emit_many, &threads[v]),
                         0);
    }
    for (unsigned v = 0; v < THREADS; v++) {
        ck_assert_int_eq(pthread_join(ids[v], NULL), 0);
        n += threads[v].n;
        seq_sum += threads[v].seq_sum;
    }
    ck_assert_uint_eq(n, all);
    /* Each number from 1 to n was given once. */
    ck_assert_uint_eq(seq_sum, all * (all + 1) / 2);
    sites = events_flush_sites(ev);
    ck_assert_uint_eq(sites->len, 8);
    n = 0;
    for (guint i = 0; i < sites->len; i++) {
        n += g_array_index(sites, struct flush_site, i).count;
    }
    ck_assert_uint_eq(n, all);
    g_array_unref(sites);
    events_free(ev);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("events");

    tcase_add_test(tc, emitting_counts_without_any_consumer);
    tcase_add_test(tc, consumer_sees_only_the_kinds_it_asked_for);
    tcase_add_test(tc, every_consumer_of_a_kind_is_called);
    tcase_add_test(tc, typed_emitters_keep_the_finer_counters);
    tcase_add_test(tc, names_and_kinds_are_inverse);
    tcase_add_loop_test(tc, exception_syndrome_gives_its_class, 0,
                        G_N_ELEMENTS(faults));
    tcase_add_test(tc, sum_adds_all_vcpus);
    tcase_add_test(tc, vcpus_on_many_threads_lose_no_event);
    return fixture_main("events", tc);
}
