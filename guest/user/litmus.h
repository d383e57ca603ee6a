/* SPDX-License-Identifier: MIT */
/*
 * Small concurrency experiments shared by atomics.c, storebuf.c and
 * selftest.c: counters incremented by several threads, and store buffering.
 */
#ifndef USER_LITMUS_H
#define USER_LITMUS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/auxv.h>

#include "common.h"

#ifndef HWCAP_ATOMICS
#define HWCAP_ATOMICS (1 << 8)
#endif

/* --- increments --- */

static inline void increment_ldxr(uint64_t *counter)
{
    uint64_t value;
    uint32_t failed;

    __asm__ volatile("1: ldxr %0, [%2]\n"
                     "   add %0, %0, #1\n"
                     "   stxr %w1, %0, [%2]\n"
                     "   cbnz %w1, 1b\n"
                     : "=&r"(value), "=&r"(failed)
                     : "r"(counter)
                     : "memory");
}

static inline void increment_ldadd(uint64_t *counter)
{
    uint64_t value;

    __asm__ volatile(".arch_extension lse\n"
                     "ldadd %2, %0, [%1]\n"
                     : "=&r"(value)
                     : "r"(counter), "r"(1UL)
                     : "memory");
}

static inline bool have_lse(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ATOMICS) != 0;
}

struct increments {
    pthread_t thread;
    unsigned cpu;
    unsigned long rounds;
    bool use_ldadd;
    uint64_t *counter;
};

static inline void *increments_thread(void *arg)
{
    const struct increments *inc = arg;

    (void)pin_to_cpu(inc->cpu);
    for (unsigned long i = 0; i < inc->rounds; i++) {
        if (inc->use_ldadd) {
            increment_ldadd(inc->counter);
        } else {
            increment_ldxr(inc->counter);
        }
    }
    return NULL;
}

/* The final value of a counter that each thread increments `rounds` times. */
static inline uint64_t increments_run(unsigned threads, unsigned long rounds,
                                      bool use_ldadd)
{
    struct increments inc[64];
    uint64_t counter __attribute__((aligned(128))) = 0;
    unsigned cpus = cpus_allowed();

    for (unsigned i = 0; i < threads && i < 64; i++) {
        inc[i] = (struct increments){.cpu = i % cpus,
                                     .rounds = rounds,
                                     .use_ldadd = use_ldadd,
                                     .counter = &counter};
        if (pthread_create(&inc[i].thread, NULL, increments_thread, &inc[i]) !=
            0) {
            perror("pthread_create");
            exit(1);
        }
    }
    for (unsigned i = 0; i < threads && i < 64; i++) {
        pthread_join(inc[i].thread, NULL);
    }
    return counter;
}

/* --- store buffering: x = 1; r0 = y  ||  y = 1; r1 = x --- */

enum sb_kind {
    SB_PLAIN, /* both zero is allowed */
    SB_DMB,   /* DMB ISH between: forbidden */
    SB_STLR,  /* STLR and LDAR: forbidden */
};

#define SB_SLOTS 1024 /* one experiment each, then both threads meet */
#define SB_GROUP 4    /* the two wait for each other before so many slots */
#define SB_LINE 64
#define SB_HINT 100   /* spins between hints to the machine */
#define SB_SPINS 2000 /* then let another thread run: CPUs may be few */

struct sb_slot {
    uint64_t x __attribute__((aligned(SB_LINE)));
    uint64_t y __attribute__((aligned(SB_LINE)));
};

struct sb {
    struct sb_slot slots[SB_SLOTS];
    uint64_t result[2][SB_SLOTS];
    /* The next slot of each side: a hint that keeps the two close together. */
    volatile uint64_t at[2][SB_LINE / 8];
    pthread_barrier_t barrier;
    enum sb_kind kind;
    unsigned long batches;
    unsigned cpus;
    unsigned long outcomes[4]; /* index r0 + 2 * r1 */
};

static inline uint64_t sb_access(enum sb_kind kind, uint64_t *mine,
                                 uint64_t *other)
{
    uint64_t value;

    switch (kind) {
    case SB_PLAIN:
        __asm__ volatile("str %2, [%1]\n ldr %0, [%3]"
                         : "=&r"(value)
                         : "r"(mine), "r"(1UL), "r"(other)
                         : "memory");
        return value;
    case SB_DMB:
        __asm__ volatile("str %2, [%1]\n dmb ish\n ldr %0, [%3]"
                         : "=&r"(value)
                         : "r"(mine), "r"(1UL), "r"(other)
                         : "memory");
        return value;
    case SB_STLR:
        __asm__ volatile("stlr %2, [%1]\n ldar %0, [%3]"
                         : "=&r"(value)
                         : "r"(mine), "r"(1UL), "r"(other)
                         : "memory");
        return value;
    }
    return 0;
}

/* Returns when the other side is about to do the same slot. */
static inline void sb_meet(struct sb *sb, unsigned side, uint64_t slot)
{
    sb->at[side][0] = slot;
    for (unsigned spins = 1; sb->at[!side][0] < slot; spins++) {
        if (spins % SB_SPINS == 0) {
            sched_yield();
        } else if (spins % SB_HINT == 0) {
            __asm__ volatile("yield"); /* an emulator may run the other CPU */
        }
    }
}

static inline void sb_side(struct sb *sb, unsigned side)
{
    for (unsigned i = 0; i < SB_SLOTS; i++) {
        struct sb_slot *slot = &sb->slots[i];

        if (i % SB_GROUP == 0) {
            sb_meet(sb, side, i + 1);
        }
        sb->result[side][i] = side == 0
                                  ? sb_access(sb->kind, &slot->x, &slot->y)
                                  : sb_access(sb->kind, &slot->y, &slot->x);
    }
}

static inline void *sb_thread(void *arg)
{
    struct sb *sb = arg;

    (void)pin_to_cpu(1 % sb->cpus);
    for (unsigned long b = 0; b < sb->batches; b++) {
        pthread_barrier_wait(&sb->barrier);
        sb_side(sb, 1);
        pthread_barrier_wait(&sb->barrier);
    }
    return NULL;
}

/* At least `rounds` experiments; fills outcomes. Pins the caller to CPU 0. */
static inline void sb_run(struct sb *sb, enum sb_kind kind,
                          unsigned long rounds)
{
    pthread_t thread;

    memset(sb, 0, sizeof(*sb));
    sb->kind = kind;
    sb->batches = (rounds + SB_SLOTS - 1) / SB_SLOTS;
    sb->cpus = cpus_allowed();
    pthread_barrier_init(&sb->barrier, NULL, 2);
    if (pthread_create(&thread, NULL, sb_thread, sb) != 0) {
        perror("pthread_create");
        exit(1);
    }
    (void)pin_to_cpu(0);
    for (unsigned long b = 0; b < sb->batches; b++) {
        memset(sb->slots, 0, sizeof(sb->slots));
        sb->at[0][0] = sb->at[1][0] = 0;
        pthread_barrier_wait(&sb->barrier);
        sb_side(sb, 0);
        pthread_barrier_wait(&sb->barrier);
        for (unsigned i = 0; i < SB_SLOTS; i++) {
            sb->outcomes[sb->result[0][i] + 2 * sb->result[1][i]]++;
        }
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&sb->barrier);
}

#endif
