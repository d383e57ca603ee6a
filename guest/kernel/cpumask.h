/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of CPUs. The plain operations are for a mask only one CPU writes at a
 * time; the _atomic ones for shared masks (relaxed unless said otherwise).
 */
#ifndef KERNEL_CPUMASK_H
#define KERNEL_CPUMASK_H

#include <stdatomic.h>

#include "abi/board.h"
#include "kernel/types.h"

#define MAX_CPUS BOARD_MAX_CPUS
#define CPUMASK_WORDS (MAX_CPUS / 64)

struct cpumask {
    _Atomic uint64_t bits[CPUMASK_WORDS];
};

/*
 * Words that CPUs of this machine are in, at least 1; all of them until the
 * CPUs are counted. What lies behind is neither read nor kept.
 */
extern unsigned cpumask_words; /* [init] */

static inline uint64_t cpumask_word(const struct cpumask *m, unsigned word)
{
    return atomic_load_explicit(&m->bits[word], memory_order_relaxed);
}

static inline void cpumask_set_word(struct cpumask *m, unsigned word,
                                    uint64_t value)
{
    atomic_store_explicit(&m->bits[word], value, memory_order_relaxed);
}

static inline bool cpumask_test(const struct cpumask *m, unsigned cpu)
{
    return (cpumask_word(m, cpu / 64) >> (cpu % 64)) & 1;
}

static inline void cpumask_set(struct cpumask *m, unsigned cpu)
{
    cpumask_set_word(m, cpu / 64, cpumask_word(m, cpu / 64) | BIT(cpu % 64));
}

static inline void cpumask_clear(struct cpumask *m, unsigned cpu)
{
    cpumask_set_word(m, cpu / 64, cpumask_word(m, cpu / 64) & ~BIT(cpu % 64));
}

static inline void cpumask_zero(struct cpumask *m)
{
    for (unsigned i = 0; i < cpumask_words; i++) {
        cpumask_set_word(m, i, 0);
    }
}

static inline void cpumask_copy(struct cpumask *dst, const struct cpumask *src)
{
    for (unsigned i = 0; i < cpumask_words; i++) {
        cpumask_set_word(dst, i, cpumask_word(src, i));
    }
}

static inline void cpumask_or(struct cpumask *dst, const struct cpumask *src)
{
    for (unsigned i = 0; i < cpumask_words; i++) {
        cpumask_set_word(dst, i, cpumask_word(dst, i) | cpumask_word(src, i));
    }
}

static inline void cpumask_and(struct cpumask *dst, const struct cpumask *src)
{
    for (unsigned i = 0; i < cpumask_words; i++) {
        cpumask_set_word(dst, i, cpumask_word(dst, i) & cpumask_word(src, i));
    }
}

static inline bool cpumask_empty(const struct cpumask *m)
{
    for (unsigned i = 0; i < cpumask_words; i++) {
        if (cpumask_word(m, i) != 0) {
            return false;
        }
    }
    return true;
}

static inline unsigned cpumask_weight(const struct cpumask *m)
{
    unsigned n = 0;

    for (unsigned i = 0; i < cpumask_words; i++) {
        /* By hand: the builtin wants SIMD registers or a library call. */
        for (uint64_t w = cpumask_word(m, i); w != 0; w &= w - 1) {
            n++;
        }
    }
    return n;
}

/* First member >= from, or MAX_CPUS. */
static inline unsigned cpumask_next(const struct cpumask *m, unsigned from)
{
    for (unsigned i = from / 64; i < cpumask_words; i++) {
        uint64_t w = cpumask_word(m, i);

        if (i == from / 64) {
            w &= ~0UL << (from % 64);
        }
        if (w != 0) {
            return i * 64 + (unsigned)__builtin_ctzl(w);
        }
    }
    return MAX_CPUS;
}

#define for_each_cpu(cpu, mask)                                                \
    for ((cpu) = cpumask_next((mask), 0); (cpu) < MAX_CPUS;                    \
         (cpu) = cpumask_next((mask), (cpu) + 1))

/* Atomic; returns whether it was set before. A full barrier, as all RMWs here.
 */
static inline bool cpumask_test_and_set_atomic(struct cpumask *m, unsigned cpu)
{
    return (atomic_fetch_or(&m->bits[cpu / 64], BIT(cpu % 64)) >> (cpu % 64)) &
           1;
}

static inline bool cpumask_test_and_clear_atomic(struct cpumask *m,
                                                 unsigned cpu)
{
    return (atomic_fetch_and(&m->bits[cpu / 64], ~BIT(cpu % 64)) >>
            (cpu % 64)) &
           1;
}

#endif
