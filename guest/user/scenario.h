/* SPDX-License-Identifier: MIT */
/*
 * What scenario programs share: small races for the deterministic engines,
 * which stop and reorder them. Protocol: set up, mark BEGIN, race, check, mark
 * END; a finding is told at once. On other kernels and without the machine's
 * device the calls do nothing and every choice is 0.
 */
#ifndef USER_SCENARIO_H
#define USER_SCENARIO_H

#include <stdatomic.h>

#include "abi/annot.h"
#include "abi/syscalls.h"
#include "common.h"

/* By hand: no errno, no detour through the C library within a race. */
static inline long scenario_call(long nr, unsigned long arg)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = (long)arg;

    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8) : "memory");
    return x0;
}

static inline void scenario_mark(unsigned long value)
{
    (void)scenario_call(SYS_SD_MARK, value);
}

static inline void scenario_finding(unsigned long code)
{
    (void)scenario_call(SYS_SD_FINDING, code);
}

/* 0..n-1, chosen by the machine; 0 where there is nobody to choose. */
static inline unsigned long scenario_choose(unsigned long n)
{
    long answer = scenario_call(SYS_SD_CHOOSE, n);

    return answer > 0 ? (unsigned long)answer : 0;
}

/* 1: the program leaves its next operation out. */
static inline int scenario_skips(void)
{
    return scenario_choose(2) == 1;
}

/*
 * Meeting points in memory. Each thread says in a word of its own how far it
 * is, and only it writes that word; the others wait until it has come to a
 * step. YIELD tells the machine that this CPU waits. crowded: threads share
 * CPUs, so a waiter lets the others run.
 */
struct scenario_step {
    _Atomic uint32_t at;
} __attribute__((aligned(64)));

static inline void scenario_arrive(struct scenario_step *mine, uint32_t step)
{
    atomic_store_explicit(&mine->at, step, memory_order_release);
}

static inline void scenario_wait(struct scenario_step *other, uint32_t step,
                                 int crowded)
{
    while (atomic_load_explicit(&other->at, memory_order_acquire) < step) {
        if (crowded) {
            sched_yield();
        } else {
            __asm__ volatile("yield");
        }
    }
}

#endif
