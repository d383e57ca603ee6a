/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Word-wise Lempel-Ziv for pages in swap; see compress.h. No dependencies.
 */
#include "mm/compress.h"

#include "arch/words.h"

#define MATCH_MIN 2
#define MATCH_MAX 33
#define CONTROL_MATCH 0x8000u
#define PAGE_WORDS (COMPRESS_PAGE / 8)

static unsigned hash_words(uint32_t a, uint32_t b)
{
    return (a * 2654435761u ^ b * 2246822519u) >> 22; /* 10 bits */
}

size_t compress_page(struct compress_work *work, const uint32_t *src,
                     size_t max)
{
    uint32_t *lit = work->out + 1;
    unsigned n_lit = 0, n_control = 0, run = 0, i = 0;

    for (unsigned h = 0; h < COMPRESS_TABLE; h++) {
        work->table[h] = 0;
    }
    while (i < COMPRESS_WORDS) {
        unsigned length = 0, pos = 0;

        if (i + 1 < COMPRESS_WORDS) {
            unsigned h = hash_words(src[i], src[i + 1]);

            pos = work->table[h];
            work->table[h] = (uint16_t)(i + 1);
            if (pos != 0) {
                pos--;
                while (length < MATCH_MAX && i + length < COMPRESS_WORDS &&
                       src[pos + length] == src[i + length]) {
                    length++;
                }
            }
        }
        if (length < MATCH_MIN) {
            lit[n_lit++] = src[i++];
            run++;
        } else {
            if (run != 0) {
                work->control[n_control++] = (uint16_t)run;
                run = 0;
            }
            work->control[n_control++] =
                (uint16_t)(CONTROL_MATCH | (length - MATCH_MIN) << 10 |
                           (i - pos));
            i += length;
        }
        /* Two more controls fit whatever comes next, or give up now. */
        if (4 + n_lit * 4 + (n_control + 2) * 2 >= max) {
            return 0;
        }
    }
    if (run != 0) {
        work->control[n_control++] = (uint16_t)run;
    }

    uint16_t *head = (uint16_t *)work->out;
    uint16_t *tail = (uint16_t *)(lit + n_lit);

    head[0] = (uint16_t)n_lit;
    head[1] = (uint16_t)n_control;
    for (unsigned c = 0; c < n_control; c++) {
        tail[c] = work->control[c];
    }
    if (n_control & 1) {
        tail[n_control] = 0;
    }
    return 4 + n_lit * 4 + ((n_control + 1) / 2) * 4;
}

bool compress_expand(const uint32_t *in, size_t size, uint32_t *dst)
{
    const uint16_t *head = (const uint16_t *)in;
    const uint32_t *lit = in + 1;
    unsigned n_lit, n_control, out = 0, used = 0;

    if (size < 4) {
        return false;
    }
    n_lit = head[0];
    n_control = head[1];
    if (4 + n_lit * 4 + n_control * 2 > size) {
        return false;
    }

    const uint16_t *control = (const uint16_t *)(lit + n_lit);

    for (unsigned c = 0; c < n_control; c++) {
        unsigned word = control[c];

        if (word & CONTROL_MATCH) {
            unsigned length = ((word >> 10) & 31) + MATCH_MIN;
            unsigned distance = word & 1023;

            if (distance == 0 || distance > out ||
                out + length > COMPRESS_WORDS) {
                return false;
            }
            for (unsigned i = 0; i < length; i++, out++) {
                dst[out] = dst[out - distance];
            }
        } else {
            if (out + word > COMPRESS_WORDS || used + word > n_lit) {
                return false;
            }
            for (unsigned i = 0; i < word; i++) {
                dst[out++] = lit[used++];
            }
        }
    }
    return out == COMPRESS_WORDS;
}

bool compress_is_fill(const uint64_t *src, struct compress_fill *out_fill)
{
    uint64_t rest = src[1];
    unsigned i;

    for (i = 1; i + WORDS_BLOCK < PAGE_WORDS; i += WORDS_BLOCK) {
        if (!words_are(src + i, rest)) {
            return false;
        }
    }
    /* The last block, less than a whole one; some words are seen again. */
    if (!words_are(src + PAGE_WORDS - WORDS_BLOCK, rest)) {
        return false;
    }
    out_fill->first = src[0];
    out_fill->rest = rest;
    return true;
}

void compress_fill_page(const struct compress_fill *fill, uint64_t *dst)
{
    uint64_t rest = fill->rest;

    for (uint64_t *p = dst; p < dst + PAGE_WORDS; p += WORDS_BLOCK) {
#pragma GCC unroll 32
        for (unsigned i = 0; i < WORDS_BLOCK; i++) {
            p[i] = rest;
        }
    }
    dst[0] = fill->first;
}
