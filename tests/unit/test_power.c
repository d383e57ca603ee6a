/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU_ON by two threads at once: one of them starts the vCPU, with its own
 * entry and context. The vCPU is nobody's: it has no engine and never runs.
 */
#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

#include "vcpu.h"
#include "vm_priv.h"

#define ROUNDS 300000u
#define HOLD_MS 300
#define SECONDS 2 /* or as many rounds as fit */
#define SPINS 2000
#define LEAD_MAX 64
#define OVER (~0u)

static atomic_uint wakes;

static void count_wake(struct sched *sched, struct vcpu *vcpu)
{
    (void)sched;
    (void)vcpu;
    atomic_fetch_add(&wakes, 1);
}

static const struct sched_ops ops = {.wake = count_wake};
static struct sched sched = {.ops = &ops};
static struct vm vm = {.sched = &sched};
static struct vcpu *vcpu;

static void setup(void)
{
    atomic_store(&wakes, 0);
    vcpu = g_new0(struct vcpu, 1);
    vcpu->vm = &vm;
    uv_mutex_init(&vcpu->power_lock);
}

static void teardown(void)
{
    uv_mutex_destroy(&vcpu->power_lock);
    g_free(vcpu);
}

START_TEST(a_vcpu_that_is_off_is_started_once)
{
    ck_assert(vcpu_power_on(vcpu, 0x40000000, 1));
    ck_assert(atomic_load(&vcpu->powered));
    ck_assert(atomic_load(&vcpu->reset_pending));
    ck_assert(!vcpu_power_on(vcpu, 0x50000000, 2));
    ck_assert_uint_eq(vcpu->boot_entry, 0x40000000);
    ck_assert_uint_eq(vcpu->boot_context, 1);
    ck_assert_uint_eq(atomic_load(&wakes), 1);
}
END_TEST

/* The other thread; each has its own entry and context. */
static struct {
    bool won;
    atomic_uint opened, answered; /* rounds */
} other;

static void await_round(atomic_uint *round, unsigned n)
{
    for (unsigned spins = 0; atomic_load(round) < n; spins++) {
        if (spins > SPINS) {
            sched_yield();
        }
    }
}

static void other_main(void *arg)
{
    (void)arg;
    for (unsigned i = 1;; i++) {
        await_round(&other.opened, i);
        if (atomic_load(&other.opened) == OVER) {
            return;
        }
        other.won = vcpu_power_on(vcpu, 2, 2);
        atomic_store(&other.answered, i);
    }
}

static void once_main(void *arg)
{
    (void)arg;
    other.won = vcpu_power_on(vcpu, 2, 2);
    atomic_store(&other.answered, 1);
}

START_TEST(who_starts_it_while_another_does_waits_and_finds_it_on)
{
    uv_thread_t thread;

    uv_mutex_lock(&vcpu->power_lock);
    ck_assert_int_eq(uv_thread_create(&thread, once_main, NULL), 0);
    uv_sleep(HOLD_MS);
    ck_assert_uint_eq(atomic_load(&other.answered), 0);
    /* What the first one does under the lock. */
    vcpu->boot_entry = 1;
    vcpu->boot_context = 1;
    atomic_store(&vcpu->powered, true);
    uv_mutex_unlock(&vcpu->power_lock);
    uv_thread_join(&thread);
    ck_assert(!other.won);
    ck_assert_uint_eq(vcpu->boot_entry, 1);
    ck_assert_uint_eq(vcpu->boot_context, 1);
    ck_assert_uint_eq(atomic_load(&wakes), 0);
}
END_TEST

START_TEST(of_two_threads_that_start_it_at_once_one_does)
{
    uint64_t end = uv_hrtime() + SECONDS * UINT64_C(1000000000);
    uv_thread_t thread;
    unsigned i = 0;

    ck_assert_int_eq(uv_thread_create(&thread, other_main, NULL), 0);
    while (i < ROUNDS && uv_hrtime() < end) {
        bool won;
        unsigned winner;

        atomic_store(&vcpu->powered, false);
        atomic_store(&other.opened, ++i);
        /* Now a little earlier, now a little later than the other. */
        for (volatile unsigned k = i % LEAD_MAX; k; k--) {
        }
        won = vcpu_power_on(vcpu, 1, 1);
        await_round(&other.answered, i);
        ck_assert_msg(won != other.won, "round %u: started by %s", i,
                      won ? "both" : "neither");
        winner = won ? 1 : 2;
        ck_assert_msg(vcpu->boot_entry == winner &&
                          vcpu->boot_context == winner,
                      "round %u: started by %u, as the other said", i, winner);
    }
    atomic_store(&other.opened, OVER);
    uv_thread_join(&thread);
    ck_assert_uint_eq(atomic_load(&wakes), i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("power");
    TCase *tc = tcase_create("power");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, a_vcpu_that_is_off_is_started_once);
    tcase_add_test(tc, who_starts_it_while_another_does_waits_and_finds_it_on);
    tcase_add_test(tc, of_two_threads_that_start_it_at_once_one_does);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
