/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xoshiro256** 1.0 and splitmix64, after the public-domain descriptions of
 * Blackman and Vigna; numbers below n by Lemire's multiplication.
 */
#include "choice/prng.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t rotate_left(uint64_t x, unsigned k)
{
    return x << k | x >> (64 - k);
}

/* Four successive outputs are never all 0, which would be a dead state. */
void prng_seed(struct prng *prng, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++) {
        prng->s[i] = splitmix64(&seed);
    }
}

uint64_t prng_next(struct prng *prng)
{
    uint64_t *s = prng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

__extension__ typedef unsigned __int128 uint128;

uint64_t prng_below(struct prng *prng, uint64_t n)
{
    uint128 product = (uint128)prng_next(prng) * n;

    if ((uint64_t)product < n) {
        /* 2^64 mod n: so many of the lowest products are one too many. */
        uint64_t surplus = -n % n;

        while ((uint64_t)product < surplus) {
            product = (uint128)prng_next(prng) * n;
        }
    }
    return (uint64_t)(product >> 64);
}
