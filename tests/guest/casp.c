/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pairs are one object: a 128-bit counter whose halves must always agree,
 * moved on by CASP and by LDXP/STXP on several CPUs.
 */
#include "atomics.h"

struct pair {
    uint64_t low, high; /* high == ~low at all times */
} __attribute__((aligned(16)));

static struct pair p __attribute__((aligned(64))) = {0, ~0ull};
static struct pair q __attribute__((aligned(64))) = {0, ~0ull};
static uint32_t torn;

static bool casp(struct pair *at, struct pair *old, struct pair new)
{
    register uint64_t o0 __asm__("x4") = old->low;
    register uint64_t o1 __asm__("x5") = old->high;
    register uint64_t n0 __asm__("x6") = new.low;
    register uint64_t n1 __asm__("x7") = new.high;
    struct pair want = *old;

    __asm__ volatile(".arch armv8.1-a\n caspal x4, x5, x6, x7, [%2]"
                     : "+r"(o0), "+r"(o1)
                     : "r"(at), "r"(n0), "r"(n1)
                     : "memory");
    old->low = o0;
    old->high = o1;
    return o0 == want.low && o1 == want.high;
}

static void add_casp(unsigned cpu)
{
    struct pair old = {0, ~0ull};

    (void)cpu;
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        for (;;) {
            struct pair new = {old.low + 1, ~(old.low + 1)};

            if (casp(&p, &old, new)) {
                old = new;
                break;
            }
            if (old.high != ~old.low) {
                __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
            }
        }
    }
}

static void add_ldxp(unsigned cpu)
{
    (void)cpu;
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        uint64_t low, high;
        uint32_t failed;

        do {
            /* The halves are checked only where STXP proved them one load. */
            __asm__ volatile("ldaxp %0, %1, [%3]\n"
                             "add x9, %0, #1\n"
                             "mvn x10, x9\n"
                             "stlxp %w2, x9, x10, [%3]"
                             : "=&r"(low), "=&r"(high), "=&r"(failed)
                             : "r"(&q)
                             : "x9", "x10", "memory");
        } while (failed);
        if (high != ~low) {
            __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
        }
    }
}

int main(void)
{
    unsigned n = atomics_cpus();
    struct pair old = {1, 2};
    struct pair now_ = {7, 8};

    print("INFO: %u CPUs\n", (uint64_t)n);
    check(!casp(&now_, &old, (struct pair){9, 9}) && old.low == 7 &&
              old.high == 8 && now_.low == 7,
          "CASP that does not match returns what is there");
    check(casp(&now_, &old, (struct pair){9, 10}) && now_.low == 9 &&
              now_.high == 10,
          "CASP that matches stores both halves");
    run_on_all(n, add_casp);
    check_equal(p.low, (uint64_t)n * (ROUNDS / 4), "CASP: no increment lost");
    run_on_all(n, add_ldxp);
    check_equal(q.low, (uint64_t)n * (ROUNDS / 4),
                "LDXP/STXP: no increment lost");
    check_equal(torn, 0, "no pair was ever seen half old, half new");
    finish("casp");
}
