/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In-kernel tests of locks, atomics, calls between CPUs, time, scheduling and
 * the switches of scenarios.
 */
#include "abi/annot.h"
#include "abi/syscalls.h"
#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/bug.h"
#include "kernel/cpumask.h"
#include "kernel/errno.h"
#include "kernel/ktest.h"
#include "kernel/lib.h"
#include "kernel/lock.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"

#define WORKERS_MAX 8
#define ROUNDS 2000

static unsigned workers(void)
{
    return cpu_count < WORKERS_MAX ? cpu_count : WORKERS_MAX;
}

/* --- threads for tests --- */

struct gang {
    void (*fn)(unsigned index);
    struct wait_queue done_wait;
    _Atomic uint32_t running;
};

static struct gang gang = {.done_wait = WAIT_QUEUE_INIT(gang.done_wait)};

static void gang_thread(void *arg)
{
    gang.fn((unsigned)(uintptr_t)arg);
    if (atomic_fetch_sub(&gang.running, 1) == 1) {
        wake_up_all(&gang.done_wait);
    }
}

/* n threads, thread i on CPU i if pinned; returns when all have ended. */
static bool gang_run(unsigned n, bool pinned, void (*fn)(unsigned))
{
    struct task *threads[WORKERS_MAX];

    gang.fn = fn;
    atomic_store(&gang.running, n);
    for (unsigned i = 0; i < n; i++) {
        threads[i] = kthread_new("ktest", gang_thread, (void *)(uintptr_t)i);
        if (threads[i] == NULL) {
            return false; /* leaks: the free-page count says so */
        }
        if (pinned) {
            cpumask_zero(&threads[i]->affinity);
            cpumask_set(&threads[i]->affinity, i);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        task_start(threads[i]);
    }
    wait_event(&gang.done_wait, atomic_load(&gang.running) == 0);
    return true;
}

/* --- library --- */

static const char *library_formats_numbers(void)
{
    char buf[64];

    (void)snprintf(buf, sizeof(buf), "%d|%5u|%-4x|%04lx|%s|%c|%%", -7, 42, 0xbe,
                   0xafUL, "xyz", 'q');
    KTEST_CHECK(strcmp(buf, "-7|   42|be  |00af|xyz|q|%") == 0);
    KTEST_CHECK(snprintf(buf, 4, "abcdef") == 6 && strcmp(buf, "abc") == 0);
    return NULL;
}

static const char *library_copies_at_any_alignment(void)
{
    uint8_t from[96], to[96];

    for (unsigned i = 0; i < sizeof(from); i++) {
        from[i] = (uint8_t)(i * 7 + 1);
    }
    for (unsigned a = 0; a < 9; a++) {
        for (unsigned b = 0; b < 9; b++) {
            memset(to, 0, sizeof(to));
            memcpy(to + a, from + b, 80);
            KTEST_CHECK(memcmp(to + a, from + b, 80) == 0);
            KTEST_CHECK(to[a + 80] == 0);
        }
    }
    memmove(from + 3, from, 50);
    for (unsigned i = 0; i < 50; i++) {
        KTEST_CHECK(from[3 + i] == (uint8_t)(i * 7 + 1));
    }
    return NULL;
}

/* --- atomics and locks --- */

static _Atomic uint64_t shared_atomic;
static uint64_t shared_plain;
static struct spinlock shared_lock;
static struct mutex shared_mutex;
static struct rwsem shared_sem;

static void work_atomic(unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < ROUNDS; i++) {
        atomic_fetch_add_explicit(&shared_atomic, 1, memory_order_relaxed);
    }
}

static const char *atomic_adds_are_not_lost(void)
{
    atomic_store(&shared_atomic, 0);
    KTEST_CHECK(gang_run(workers(), true, work_atomic));
    KTEST_CHECK(atomic_load(&shared_atomic) == (uint64_t)ROUNDS * workers());
    return NULL;
}

static void work_spin(unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < ROUNDS; i++) {
        spin_lock(&shared_lock);
        shared_plain++;
        spin_unlock(&shared_lock);
    }
}

static const char *spinlock_excludes(void)
{
    shared_plain = 0;
    spin_init(&shared_lock, LOCK_none);
    KTEST_CHECK(gang_run(workers(), true, work_spin));
    KTEST_CHECK(shared_plain == (uint64_t)ROUNDS * workers());
    KTEST_CHECK(spin_trylock(&shared_lock));
    KTEST_CHECK(spin_held(&shared_lock));
    KTEST_CHECK(!spin_trylock(&shared_lock));
    spin_unlock(&shared_lock);
    KTEST_CHECK(!spin_held(&shared_lock));
    return NULL;
}

static void work_mutex(unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        uint64_t seen;

        mutex_lock(&shared_mutex);
        seen = shared_plain;
        if (i % 16 == 0) {
            sched_yield(); /* a mutex may be held over a sleep */
        }
        shared_plain = seen + 1;
        mutex_unlock(&shared_mutex);
    }
}

static const char *mutex_excludes_and_survives_sleeping(void)
{
    shared_plain = 0;
    mutex_init(&shared_mutex);
    KTEST_CHECK(gang_run(WORKERS_MAX, false, work_mutex));
    KTEST_CHECK(shared_plain == (uint64_t)(ROUNDS / 10) * WORKERS_MAX);
    return NULL;
}

static _Atomic uint32_t sem_readers, sem_errors;

static void work_sem(unsigned index)
{
    for (unsigned i = 0; i < ROUNDS / 20; i++) {
        if ((index + i) % 4 == 0) {
            rwsem_write_lock(&shared_sem);
            if (atomic_load(&sem_readers) != 0) {
                atomic_fetch_add(&sem_errors, 1);
            }
            shared_plain++;
            rwsem_write_unlock(&shared_sem);
        } else {
            rwsem_read_lock(&shared_sem);
            atomic_fetch_add(&sem_readers, 1);
            if (i % 8 == 0) {
                sched_yield();
            }
            atomic_fetch_sub(&sem_readers, 1);
            rwsem_read_unlock(&shared_sem);
        }
    }
}

static const char *rwsem_keeps_readers_and_writers_apart(void)
{
    shared_plain = 0;
    atomic_store(&sem_errors, 0);
    rwsem_init(&shared_sem);
    KTEST_CHECK(gang_run(WORKERS_MAX, false, work_sem));
    KTEST_CHECK(atomic_load(&sem_errors) == 0);
    KTEST_CHECK(shared_plain == ROUNDS / 20 * WORKERS_MAX / 4);
    KTEST_CHECK(rwsem_write_trylock(&shared_sem));
    KTEST_CHECK(!rwsem_read_trylock(&shared_sem));
    rwsem_write_unlock(&shared_sem);
    return NULL;
}

/* --- calls between CPUs --- */

static _Atomic uint64_t call_hits[MAX_CPUS];

static void call_hit(void *arg)
{
    (void)arg;
    if (in_irq() || local_irqs_masked()) {
        atomic_fetch_add(&call_hits[cpu_id()], 1);
    }
}

static const char *call_reaches_every_other_cpu_once(void)
{
    unsigned self;
    uint64_t total = 0;

    for (unsigned i = 0; i < cpu_count; i++) {
        atomic_store(&call_hits[i], 0);
    }
    self = cpu_id();
    smp_call_mask(&cpu_online_mask, call_hit, NULL, true);
    for (unsigned i = 0; i < cpu_count; i++) {
        total += atomic_load(&call_hits[i]);
    }
    KTEST_CHECK(atomic_load(&call_hits[self]) == 0);
    KTEST_CHECK(total == cpu_count - 1);
    return NULL;
}

static void work_call_masked(unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < ROUNDS / 40; i++) {
        /* Interrupts masked on all callers: each must serve the others. */
        uint64_t flags = local_irq_save();

        smp_call_mask(&cpu_online_mask, call_hit, NULL, true);
        local_irq_restore(flags);
    }
}

static const char *calls_with_interrupts_masked_do_not_deadlock(void)
{
    unsigned n = workers();
    uint64_t total = 0;

    for (unsigned i = 0; i < cpu_count; i++) {
        atomic_store(&call_hits[i], 0);
    }
    KTEST_CHECK(gang_run(n, true, work_call_masked));
    for (unsigned i = 0; i < cpu_count; i++) {
        total += atomic_load(&call_hits[i]);
    }
    KTEST_CHECK(total == (uint64_t)n * (ROUNDS / 40) * (cpu_count - 1));
    return NULL;
}

static const char *call_without_wait_is_not_lost(void)
{
    uint64_t total, deadline = time_now_ns() + 5 * NSEC_PER_SEC;

    for (unsigned i = 0; i < cpu_count; i++) {
        atomic_store(&call_hits[i], 0);
    }
    for (unsigned i = 0; i < 20; i++) {
        smp_call_mask(&cpu_online_mask, call_hit, NULL, false);
    }
    do {
        total = 0;
        for (unsigned i = 0; i < cpu_count; i++) {
            total += atomic_load(&call_hits[i]);
        }
        cpu_relax();
    } while (total != 20UL * (cpu_count - 1) && time_now_ns() < deadline);
    KTEST_CHECK(total == 20UL * (cpu_count - 1));
    return NULL;
}

/* --- time --- */

static const char *counter_moves_forward(void)
{
    uint64_t before = time_now_ns();

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t now = time_now_ns();

        KTEST_CHECK(now >= before);
        before = now;
    }
    KTEST_CHECK(time_ns_to_ticks(NSEC_PER_SEC) ==
                (read_cntfrq_el0() & 0xffffffff));
    return NULL;
}

static const char *sleep_lasts_at_least_its_time(void)
{
    uint64_t before = time_now_ns();

    sched_sleep_ns(20 * 1000 * 1000);
    KTEST_CHECK(time_now_ns() - before >= 20 * 1000 * 1000);
    return NULL;
}

static _Atomic uint32_t sleepers_on_time;

static void work_sleep(unsigned index)
{
    /* The later ones start with the shorter time: the list sorts them. */
    uint64_t ns = (WORKERS_MAX - index) * 3UL * 1000 * 1000;
    uint64_t before = time_now_ns();

    sched_sleep_ns(ns);
    if (time_now_ns() - before >= ns) {
        atomic_fetch_add(&sleepers_on_time, 1);
    }
}

static const char *many_sleepers_wake_on_time(void)
{
    atomic_store(&sleepers_on_time, 0);
    KTEST_CHECK(gang_run(WORKERS_MAX, false, work_sleep));
    KTEST_CHECK(atomic_load(&sleepers_on_time) == WORKERS_MAX);
    return NULL;
}

/* --- scheduler --- */

static _Atomic uint32_t wrong_cpu;

static void work_stay(unsigned index)
{
    for (unsigned i = 0; i < 50; i++) {
        if (cpu_id() != index) {
            atomic_fetch_add(&wrong_cpu, 1);
        }
        sched_yield();
    }
}

static const char *pinned_threads_stay_on_their_cpu(void)
{
    atomic_store(&wrong_cpu, 0);
    KTEST_CHECK(gang_run(workers(), true, work_stay));
    KTEST_CHECK(atomic_load(&wrong_cpu) == 0);
    return NULL;
}

static void work_tour(unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < 3 * workers(); i++) {
        struct cpumask mask;

        cpumask_zero(&mask);
        cpumask_set(&mask, i % workers());
        if (task_set_affinity(current(), &mask) != 0 ||
            cpu_id() != i % workers()) {
            atomic_fetch_add(&wrong_cpu, 1);
        }
    }
}

static const char *changing_the_affinity_moves_the_task_at_once(void)
{
    atomic_store(&wrong_cpu, 0);
    KTEST_CHECK(gang_run(WORKERS_MAX, false, work_tour));
    KTEST_CHECK(atomic_load(&wrong_cpu) == 0);
    return NULL;
}

static const char *an_empty_affinity_is_refused(void)
{
    struct cpumask mask;

    cpumask_zero(&mask);
    KTEST_CHECK(task_set_affinity(current(), &mask) != 0);
    return NULL;
}

/* Two threads hand a token to and fro through wait queues. */
static struct wait_queue token_wait = WAIT_QUEUE_INIT(token_wait);
static _Atomic uint32_t token;

static void work_token(unsigned index)
{
    for (unsigned i = 0; i < 200; i++) {
        wait_event(&token_wait, atomic_load(&token) % 2 == index);
        atomic_fetch_add(&token, 1);
        wake_up_all(&token_wait);
    }
}

static const char *wake_ups_are_not_lost(void)
{
    atomic_store(&token, 0);
    KTEST_CHECK(gang_run(2, false, work_token));
    KTEST_CHECK(atomic_load(&token) == 400);
    return NULL;
}

/* --- planted bugs and scenarios --- */

/* --- what is not started --- */

static struct wait_queue once_wait = WAIT_QUEUE_INIT(once_wait);
static _Atomic uint32_t once_runs;

static void run_once(void *arg)
{
    (void)arg;
    atomic_fetch_add(&once_runs, 1);
    wake_up_all(&once_wait);
}

/* As a signal does that finds a new task before its maker has started it. */
static const char *who_is_not_started_is_not_woken(void)
{
    struct task *task = kthread_new("once", run_once, NULL);

    KTEST_CHECK(task != NULL);
    atomic_store(&once_runs, 0);
    KTEST_CHECK(!task_wake(task));
    sched_sleep_ns(2 * NSEC_PER_TICK);
    KTEST_CHECK(atomic_load(&once_runs) == 0);
    task_start(task);
    wait_event(&once_wait, atomic_load(&once_runs) != 0);
    sched_sleep_ns(2 * NSEC_PER_TICK);
    KTEST_CHECK(atomic_load(&once_runs) == 1);
    return NULL;
}

static const char *bug_lists_are_read_or_refused(void)
{
    uint64_t bits = ~0UL;
    char wrong[16] = "unchanged";
    static char all[64 * BUGS]; /* names are shorter */
    size_t len = 0;

    KTEST_CHECK(bug_parse("free-before-flush", &bits, wrong, sizeof(wrong)));
    KTEST_CHECK(bits == BIT(BUG_free_before_flush));
    for (unsigned i = 0; i < BUGS; i++) {
        len += strlcpy(all + len, i != 0 ? "," : "", sizeof(all) - len);
        len += strlcpy(all + len, bug_name((enum bug)i), sizeof(all) - len);
    }
    KTEST_CHECK(bug_parse(all, &bits, wrong, sizeof(wrong)));
    KTEST_CHECK(bits == BIT(BUGS) - 1);
    KTEST_CHECK(strcmp(wrong, "unchanged") == 0);
    /* What is refused changes nothing and is named. */
    KTEST_CHECK(!bug_parse("free-before-flush,no", &bits, wrong, 16));
    KTEST_CHECK(bits == BIT(BUGS) - 1 && strcmp(wrong, "no") == 0);
    KTEST_CHECK(!bug_parse("", &bits, wrong, 16) && wrong[0] == '\0');
    KTEST_CHECK(!bug_parse("free-before-flush,", &bits, wrong, 16));
    KTEST_CHECK(!bug_parse("free-before", &bits, wrong, 16));
    KTEST_CHECK(!bug_parse("free-before-flushes", &bits, wrong, 16));
    KTEST_CHECK(strcmp(wrong, "free-before-flu") == 0);
    return NULL;
}

static const char *choices_stay_in_their_range(void)
{
    KTEST_CHECK(sys_scenario(SYS_SD_CHOOSE, 0) == -EINVAL);
    KTEST_CHECK(sys_scenario(SYS_SD_CHOOSE, ANNOT_CHOOSE_MAX + 1) == -EINVAL);
    KTEST_CHECK(sys_scenario(SYS_SD_LAST + 1, 1) == -ENOSYS);
    KTEST_CHECK(sys_scenario(SYS_SD_CHOOSE, 1) == 0);
    for (uint64_t n = 2; n <= ANNOT_CHOOSE_MAX; n *= 2) {
        int64_t answer = sys_scenario(SYS_SD_CHOOSE, n);

        KTEST_CHECK(answer >= 0 && answer < (int64_t)n);
    }
    return NULL;
}

static const struct ktest tests[] = {
    {"snprintf formats what it promises", library_formats_numbers, false},
    {"memcpy and memmove work at any alignment",
     library_copies_at_any_alignment, false},
    {"atomic adds from all CPUs are not lost", atomic_adds_are_not_lost, false},
    {"a spinlock excludes", spinlock_excludes, false},
    {"a mutex excludes, also over a sleep",
     mutex_excludes_and_survives_sleeping, false},
    {"a rwsem keeps readers and writers apart",
     rwsem_keeps_readers_and_writers_apart, false},
    {"a call reaches every other CPU exactly once",
     call_reaches_every_other_cpu_once, false},
    {"calls with interrupts masked do not deadlock",
     calls_with_interrupts_masked_do_not_deadlock, false},
    {"calls without waiting all happen", call_without_wait_is_not_lost, false},
    {"the counter moves forward at its frequency", counter_moves_forward,
     false},
    {"a sleep lasts at least its time", sleep_lasts_at_least_its_time, false},
    {"many sleepers wake on time", many_sleepers_wake_on_time, false},
    {"pinned threads stay on their CPU", pinned_threads_stay_on_their_cpu,
     false},
    {"changing the affinity moves the task at once",
     changing_the_affinity_moves_the_task_at_once, false},
    {"an empty affinity is refused", an_empty_affinity_is_refused, false},
    {"wake-ups are not lost", wake_ups_are_not_lost, false},
    {"who is not started is not woken", who_is_not_started_is_not_woken, false},
    {"bug lists are read or refused", bug_lists_are_read_or_refused, false},
    {"choices stay in their range", choices_stay_in_their_range, false},
};

KTEST_TABLE(ktest_core, "core", tests);
