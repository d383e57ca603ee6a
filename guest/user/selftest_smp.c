/* SPDX-License-Identifier: MIT */
/* selftest: affinity, registers over switches, atomics, memory ordering. */
#define _GNU_SOURCE
#include "selftest.h"

#include <stdatomic.h>
#include <sys/syscall.h>

#include "litmus.h"

#define MAX_VISIT 64

static bool affinity(void)
{
    unsigned cpus = cpus_allowed();
    cpu_set_t set;

    CHECK_EQ(cpus, sysconf(_SC_NPROCESSORS_ONLN));
    for (unsigned cpu = 0; cpu < cpus && cpu < MAX_VISIT; cpu++) {
        CHECK_EQ(pin_to_cpu(cpu), 0);
        CHECK_EQ(sched_getcpu(), cpu);
        CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
        CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set));
    }
    CPU_ZERO(&set);
    errno = 0;
    CHECK(sched_setaffinity(0, sizeof(set), &set) == -1 && errno == EINVAL);
    return true;
}

static atomic_bool moved_stop;
static _Atomic unsigned moved_tid;

static void *moved_thread(void *arg)
{
    atomic_store(&moved_tid, (unsigned)syscall(SYS_gettid));
    while (!atomic_load_explicit(&moved_stop, memory_order_relaxed)) {
        shared->words[0] = (uint64_t)sched_getcpu();
    }
    return arg;
}

/* Another thread, which spins, is moved from CPU to CPU. */
static bool moving_a_running_thread(void)
{
    unsigned cpus = cpus_allowed();
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, moved_thread, NULL), 0);
    while (atomic_load(&moved_tid) == 0) {
        sched_yield();
    }
    for (unsigned i = 0; i < 12; i++) {
        unsigned cpu = i % cpus;
        uint64_t deadline = now_ns() + 20000000000ULL;
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        CHECK_EQ(sched_setaffinity((pid_t)atomic_load(&moved_tid), sizeof(set),
                                   &set),
                 0);
        while (shared->words[0] != cpu && now_ns() < deadline) {
            sched_yield();
        }
        CHECK_EQ(shared->words[0], cpu);
    }
    atomic_store(&moved_stop, true);
    pthread_join(thread, NULL);
    return true;
}

/* Fills V8..V15 and V31, yields, and looks whether they are still there. */
static bool registers_survive(uint64_t seed, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t a, b, c;

        __asm__ volatile("dup v8.2d, %3\n"
                         "add v15.2d, v8.2d, v8.2d\n"
                         "fmov d31, %3\n"
                         "mov x8, #124\n" /* sched_yield */
                         "svc #0\n"
                         "umov %0, v8.d[1]\n"
                         "umov %1, v15.d[0]\n"
                         "fmov %2, d31\n"
                         : "=&r"(a), "=&r"(b), "=&r"(c)
                         : "r"(seed + i)
                         : "x0", "x8", "v8", "v15", "v31", "memory");
        if (a != seed + i || b != 2 * (seed + i) || c != seed + i) {
            return false;
        }
    }
    return true;
}

static void *registers_thread(void *arg)
{
    return registers_survive((uint64_t)(uintptr_t)arg << 32, 200) ? NULL : arg;
}

static bool fp_registers(void)
{
    pthread_t threads[6];
    bool ok;

    for (size_t i = 0; i < 6; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, registers_thread,
                                (void *)(i + 1)),
                 0);
    }
    ok = registers_survive(99UL << 40, 200);
    for (unsigned i = 0; i < 6; i++) {
        void *result;

        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK(result == NULL);
    }
    CHECK(ok);
    return true;
}

static void *spinner(void *arg)
{
    (void)pin_to_cpu(0);
    while (!atomic_load_explicit(&moved_stop, memory_order_relaxed)) {
        shared->words[(uintptr_t)arg]++;
    }
    return NULL;
}

/* Three threads that never give the CPU away share CPU 0. */
static bool preemption(void)
{
    pthread_t threads[3];
    uint64_t deadline;

    for (size_t i = 0; i < 3; i++) {
        shared->words[i] = 0;
        CHECK_EQ(pthread_create(&threads[i], NULL, spinner, (void *)i), 0);
    }
    deadline = now_ns() + 60000000000ULL;
    while ((shared->words[0] == 0 || shared->words[1] == 0 ||
            shared->words[2] == 0) &&
           now_ns() < deadline) {
        usleep(5000);
    }
    atomic_store(&moved_stop, true);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(shared->words[i] > 0);
    }
    return true;
}

static bool increments(bool use_ldadd)
{
    CHECK_EQ(increments_run(4, 5000, use_ldadd), 20000);
    return true;
}

static bool increments_by_ldxr(void)
{
    return increments(false);
}

static bool increments_by_ldadd(void)
{
    return have_lse() ? increments(true) : test_skip("no LSE");
}

static bool store_buffering(enum sb_kind kind)
{
    static struct sb sb;

    if (cpus_allowed() < 2) {
        return test_skip("needs two CPUs");
    }
    sb_run(&sb, kind, 8192);
    CHECK_EQ(sb.outcomes[0], 0);
    return true;
}

static bool ordering_by_dmb(void)
{
    return store_buffering(SB_DMB);
}

static bool ordering_by_stlr(void)
{
    return store_buffering(SB_STLR);
}

static bool membarrier_returns(void)
{
    if (syscall(SYS_membarrier, 16, 0, 0) != 0) {
        return test_skip("no membarrier");
    }
    for (unsigned i = 0; i < 20; i++) {
        CHECK_EQ(syscall(SYS_membarrier, 8, 0, 0), 0);
    }
    errno = 0;
    CHECK(syscall(SYS_membarrier, 12345, 0, 0) == -1 && errno == EINVAL);
    return true;
}

static const struct test tests[] = {
    {"a thread runs where its affinity says", affinity},
    {"a running thread can be moved", moving_a_running_thread},
    {"vector registers survive switches", fp_registers},
    {"spinning threads share a CPU", preemption},
    {"increments with LDXR and STXR are not lost", increments_by_ldxr},
    {"increments with LDADD are not lost", increments_by_ldadd},
    {"DMB ISH orders a store before a load", ordering_by_dmb},
    /* QEMU on x86 hosts does not keep this one: the checkers know its name. */
    {"STLR then LDAR stay in order", ordering_by_stlr},
    {"membarrier returns", membarrier_returns},
};

TEST_TABLE(tests_smp, "smp", tests);
