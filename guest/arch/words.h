/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking at a page of memory with as few instructions as there can be: one
 * for a load of two words, one for each comparison.
 */
#ifndef ARCH_WORDS_H
#define ARCH_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#define WORDS_BLOCK 32

#define WORDS_PAIR(offset)                                                     \
    "ldp %1, %2, [%3, #" #offset "]\n"                                         \
    "ccmp %1, %4, #0, eq\n"                                                    \
    "ccmp %2, %4, #0, eq\n"

/* Are WORDS_BLOCK words from p on, aligned to a word, all equal to word? */
static inline bool words_are(const uint64_t *p, uint64_t word)
{
    uint64_t a, b;
    bool equal;

    /* clang-format off */
    __asm__("cmp xzr, xzr\n" /* eq: what the first CCMP asks for */
            WORDS_PAIR(0) WORDS_PAIR(16) WORDS_PAIR(32) WORDS_PAIR(48)
            WORDS_PAIR(64) WORDS_PAIR(80) WORDS_PAIR(96) WORDS_PAIR(112)
            WORDS_PAIR(128) WORDS_PAIR(144) WORDS_PAIR(160) WORDS_PAIR(176)
            WORDS_PAIR(192) WORDS_PAIR(208) WORDS_PAIR(224) WORDS_PAIR(240)
            : "=@cceq"(equal), "=&r"(a), "=&r"(b)
            : "r"(p), "r"(word), "m"(*(const uint64_t(*)[WORDS_BLOCK])p));
    /* clang-format on */
    return equal;
}

#endif
