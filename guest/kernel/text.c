/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growing texts. Thread context: they come from kmalloc(). */
#include "kernel/text.h"

#include "kernel/lib.h"
#include "mm/page.h"

#define TEXT_FIRST_SIZE 1024UL

/* Room for n more bytes and a NUL. */
static bool text_reserve(struct text *text, size_t n)
{
    size_t size = text->size == 0 ? TEXT_FIRST_SIZE : text->size;
    char *buf;

    if (text->failed) {
        return false;
    }
    if (text->len + n < text->size) {
        return true;
    }
    while (size <= text->len + n) {
        size *= 2;
    }
    buf = kmalloc(size);
    if (buf == NULL) {
        text->failed = true;
        return false;
    }
    if (text->buf != NULL) {
        memcpy(buf, text->buf, text->len);
        kfree(text->buf);
    }
    text->buf = buf;
    text->size = size;
    return true;
}

void text_append(struct text *text, const char *bytes, size_t n)
{
    if (text_reserve(text, n)) {
        memcpy(text->buf + text->len, bytes, n);
        text->len += n;
    }
}

void text_printf(struct text *text, const char *fmt, ...)
{
    va_list args, again;
    size_t len;

    if (!text_reserve(text, 80)) {
        return;
    }
    va_start(args, fmt);
    va_copy(again, args);
    len = (size_t)vsnprintf(text->buf + text->len, text->size - text->len, fmt,
                            args);
    if (len >= text->size - text->len && text_reserve(text, len)) {
        (void)vsnprintf(text->buf + text->len, text->size - text->len, fmt,
                        again);
    }
    va_end(again);
    va_end(args);
    if (!text->failed) {
        text->len += len;
    }
}

void text_pad_to(struct text *text, size_t start, size_t column)
{
    while (!text->failed && text->len < start + column) {
        text_append(text, " ", 1);
    }
}

void text_free(struct text *text)
{
    kfree(text->buf);
    *text = (struct text){0};
}
