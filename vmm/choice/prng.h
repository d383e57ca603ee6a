/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pseudo random numbers of seeded runs: xoshiro256** seeded by splitmix64.
 * Fixed for ever, since a seed must mean the same run in every version; that
 * is also why it is ours and not a library's.
 */
#ifndef CHOICE_PRNG_H
#define CHOICE_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t s[4];
};

void prng_seed(struct prng *prng, uint64_t seed);
uint64_t prng_next(struct prng *prng);
/* 0..n-1 without bias; n >= 1. */
uint64_t prng_below(struct prng *prng, uint64_t n);

#endif
