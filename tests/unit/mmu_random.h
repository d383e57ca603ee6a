/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the property tests of mmu share: the seed, random numbers and TLBI
 * operands, and comparisons with the reference.
 */
#ifndef TESTS_UNIT_MMU_RANDOM_H
#define TESTS_UNIT_MMU_RANDOM_H

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mmu_reference.h"

/*
 * Check's assertions write a mark to a file each time, passed or not; a
 * property that compares a million times cannot afford that.
 */
#define REQUIRE(condition, ...)                                                \
    do {                                                                       \
        if (!(condition)) {                                                    \
            ck_abort_msg(__VA_ARGS__);                                         \
        }                                                                      \
    } while (0)

static uint64_t base_seed;

/* Each run has a new seed and prints it; SHOOTDOWN_SEED=N repeats a run. */
static inline void seed_init(void)
{
    const char *given = getenv("SHOOTDOWN_SEED");

    base_seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("SHOOTDOWN_SEED=%" PRIu64 "\n", base_seed);
    fflush(stdout);
}

struct rng {
    uint64_t state;
};

static inline struct rng rng_for(uint64_t stream)
{
    return (struct rng){base_seed ^ stream * UINT64_C(0xd1342543de82ef95)};
}

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline unsigned below(struct rng *rng, unsigned n)
{
    return (unsigned)((rng_next(rng) >> 32) * n >> 32);
}

static inline bool percent(struct rng *rng, unsigned chance)
{
    return below(rng, 100) < chance;
}

static inline bool same_answer(const struct ref_answer *a,
                               const struct ref_answer *b)
{
    return a->base == b->base && a->shift == b->shift && a->level == b->level &&
           a->r1 == b->r1 && a->w1 == b->w1 && a->x1 == b->x1 &&
           a->r0 == b->r0 && a->w0 == b->w0 && a->x0 == b->x0 &&
           a->attr == b->attr && a->sh == b->sh && a->global == b->global &&
           a->clean == b->clean;
}

static inline bool same_translation(const struct ref_answer *a,
                                    const struct translation *t)
{
    unsigned perms = a->r1 * PERM_R1 | a->w1 * PERM_W1 | a->x1 * PERM_X1 |
                     a->r0 * PERM_R0 | a->w0 * PERM_W0 | a->x0 * PERM_X0;

    return t->base == a->base && t->page_shift == a->shift &&
           t->level == a->level && t->perms == perms &&
           t->attr_index == a->attr && t->sh == a->sh &&
           t->global == a->global && t->dbm == a->clean;
}

/* An operand close to `va`; hints and odd granules now and then. */
static inline struct ref_tlbi random_tlbi(struct rng *rng, gva_t va,
                                          uint16_t asid)
{
    static const unsigned crms[] = {7, 3, 1};
    static const unsigned range_crms[] = {6, 2, 5};
    static const unsigned op2s[] = {0, 2, 1, 3, 5, 7};
    static const unsigned range_op2s[] = {1, 3, 5, 7};
    struct ref_tlbi op;

    op.xt = (uint64_t)asid << 48;
    if (percent(rng, 40)) {
        unsigned scale = percent(rng, 60) ? 0 : below(rng, 4);

        op.crm = range_crms[below(rng, 3)];
        op.op2 = range_op2s[below(rng, 4)];
        va -= (gva_t)below(rng, 4) << (12 + 5 * scale);
        if (percent(rng, 40)) {
            unsigned level = 1 + below(rng, 3);

            op.xt |= (uint64_t)level << 37;
            if (percent(rng, 80)) {
                va &= ~((UINT64_C(1) << (39 - 9 * level)) - 1);
            }
        }
        op.xt |= (va >> 12) & UINT64_C(0x1fffffffff);
        op.xt |= (uint64_t)below(rng, percent(rng, 50) ? 3 : 32) << 39;
        op.xt |= (uint64_t)scale << 44;
        op.xt |= (uint64_t)(percent(rng, 93) ? 1 : below(rng, 4)) << 46;
        return op;
    }
    op.crm = crms[below(rng, 3)];
    /* Whole flushes are rare, or nothing would ever be stale. */
    op.op2 = op2s[percent(rng, 8) ? below(rng, 2) : 2 + below(rng, 4)];
    op.xt |= (va >> 12) & UINT64_C(0xfffffffffff);
    if (percent(rng, 40)) {
        op.xt |=
            (uint64_t)(percent(rng, 80) ? 4 + below(rng, 4) : below(rng, 16))
            << 44;
    }
    return op;
}

#endif
