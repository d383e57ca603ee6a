/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The 64-bit hash of traces and states: one multiply and one rotation a word.
 * Ours, since it is on the path of every event (a library's checksum costs
 * some hundred times as much) and must stay the same for ever. Not for
 * secrets: it finds what differs, not who wants it to look equal.
 */
#ifndef OBS_MIX_H
#define OBS_MIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MIX_START UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0xd6e8feb86659fd93);
    return hash << 29 | hash >> 35;
}

/* For the end: spreads the last words over all bits. */
static inline uint64_t mix_end(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 33;
}

/* Little-endian words; the last one is filled up with zeros. */
static inline uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    uint64_t word;

    for (; count >= 8; count -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash = mix_word(hash, word);
    }
    if (count) {
        word = 0;
        memcpy(&word, at, count);
        hash = mix_word(hash, word);
    }
    return hash;
}

#endif
