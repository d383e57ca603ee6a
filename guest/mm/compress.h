/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The compressor of the swap device: a word-wise Lempel-Ziv of our own. No
 * library can be linked here without adding a foreign architecture to the
 * machine, and the kernel is freestanding. Pure functions, any context.
 *
 * Compressed form, all in host byte order and aligned to 4 bytes:
 *
 *   u16 literals, u16 controls
 *   u32 literal[literals]
 *   u16 control[controls]
 *
 *   control: 15 14       10 9          0
 *            +-+-----------+------------+
 *            |0|       n: copy n literals|   1 <= n <= 1024
 *            |1| length - 2|  distance   |   2 <= length <= 33 words
 *            +-+-----------+------------+   1 <= distance <= 1023 words
 */
#ifndef MM_COMPRESS_H
#define MM_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPRESS_PAGE 4096
#define COMPRESS_WORDS (COMPRESS_PAGE / 4)
#define COMPRESS_TABLE 1024
/*
 * m matches of 2 or more words and r <= m + 1 runs of 1 or more make at most
 * 683 controls: 2m + r <= 1024.
 */
#define COMPRESS_CONTROLS 684

struct compress_work {
    uint16_t table[COMPRESS_TABLE]; /* hash of two words -> position + 1 */
    uint16_t control[COMPRESS_CONTROLS];
    uint32_t out[COMPRESS_WORDS]; /* the result */
};

/*
 * Bytes of work->out used, a multiple of 4; 0: not smaller than max, which is
 * at most a page.
 */
size_t compress_page(struct compress_work *work, const uint32_t *src,
                     size_t max);
/* False: the input is not something compress_page() made. */
bool compress_expand(const uint32_t *in, size_t size, uint32_t *dst);

/*
 * A same-filled page: one word repeated, but for the first, where programs
 * that touch a page and do not use it write. It takes no space and little time.
 */
struct compress_fill {
    uint64_t first, rest;
};
bool compress_is_fill(const uint64_t *src, struct compress_fill *out_fill);
void compress_fill_page(const struct compress_fill *fill, uint64_t *dst);

#endif
