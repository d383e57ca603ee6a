/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A text that grows while it is written: what the files of /proc and /sys say.
 * Without memory the rest is dropped and `failed` is set.
 */
#ifndef KERNEL_TEXT_H
#define KERNEL_TEXT_H

#include "kernel/types.h"

struct text {
    char *buf; /* NULL: nothing yet */
    size_t len, size;
    bool failed;
};

void text_printf(struct text *text, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_append(struct text *text, const char *bytes, size_t n);
/* Blanks up to column `column` of the last line that began at `start`. */
void text_pad_to(struct text *text, size_t start, size_t column);
void text_free(struct text *text);

#endif
