/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers with a printed seed: every run does the same. */
#ifndef TESTS_HOSTILE_RNG_H
#define TESTS_HOSTILE_RNG_H

#include "guest.h"

struct rng {
    uint64_t state;
};

/* xorshift64*, never 0 */
static inline uint64_t rng_next(struct rng *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545f4914f6cdd1dull;
}

#endif
