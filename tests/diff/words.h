/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the differential programs share: command line, chance, hashes. */
#ifndef TESTS_DIFF_WORDS_H
#define TESTS_DIFF_WORDS_H

#include "guest.h"

/* The first property of that name in the device tree, whichever node has it;
 * "" if none has. Needs boot_x0. */
const char *words_property(const char *name);
/* The device tree's bootargs; "" if there are none. Needs boot_x0. */
const char *words_get(void);
/* The number after NAME= in words, or `otherwise`. */
uint64_t words_number(const char *words, const char *name, uint64_t otherwise);

/* --- random numbers: a function of a seed and of how many came before --- */

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* For case `number` of `seed`, whatever came before. */
static inline void rng_start(struct rng *r, uint64_t seed, uint64_t number)
{
    r->state = seed * 0xd1342543de82ef95ull + number;
    r->state = rng_next(r);
}

/* 0..n-1 */
static inline unsigned rng_below(struct rng *r, unsigned n)
{
    return (unsigned)((rng_next(r) >> 32) * n >> 32);
}

static inline bool rng_one_in(struct rng *r, unsigned n)
{
    return rng_below(r, n) == 0;
}

static inline void mix(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * 0x9e3779b97f4a7c15ull;
    *hash ^= *hash >> 29;
}

#endif
