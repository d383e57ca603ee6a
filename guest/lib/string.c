/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory and string functions. The compiler calls the four mem functions by
 * itself. General registers only: the kernel must not touch the FP registers,
 * which belong to user programs.
 */
#include "kernel/lib.h"

/* Eight bytes at any address; -mstrict-align keeps that away from memory. */
static bool aligned8(const void *a, const void *b)
{
    return (((uintptr_t)a | (uintptr_t)b) & 7) == 0;
}

void *memcpy(void *dst, const void *src, size_t n)
{
    uint8_t *d = dst;
    const uint8_t *s = src;

    if (aligned8(d, s)) {
        uint64_t *d8 = (uint64_t *)d;
        const uint64_t *s8 = (const uint64_t *)s;

        for (; n >= 64; n -= 64, d8 += 8, s8 += 8) {
            uint64_t a = s8[0], b = s8[1], c = s8[2], e = s8[3];
            uint64_t f = s8[4], g = s8[5], h = s8[6], i = s8[7];

            d8[0] = a;
            d8[1] = b;
            d8[2] = c;
            d8[3] = e;
            d8[4] = f;
            d8[5] = g;
            d8[6] = h;
            d8[7] = i;
        }
        for (; n >= 8; n -= 8) {
            *d8++ = *s8++;
        }
        d = (uint8_t *)d8;
        s = (const uint8_t *)s8;
    }
    while (n-- > 0) {
        *d++ = *s++;
    }
    return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
    uint8_t *d = dst;
    const uint8_t *s = src;

    if ((uintptr_t)d - (uintptr_t)s >= n) {
        return memcpy(dst, src, n);
    }
    while (n-- > 0) {
        d[n] = s[n];
    }
    return dst;
}

void *memset(void *dst, int byte, size_t n)
{
    uint8_t *d = dst;

    while (n > 0 && ((uintptr_t)d & 7) != 0) {
        *d++ = (uint8_t)byte;
        n--;
    }

    uint64_t word = (uint8_t)byte * 0x0101010101010101UL;
    uint64_t *d8 = (uint64_t *)d;

    for (; n >= 64; n -= 64, d8 += 8) {
        d8[0] = word;
        d8[1] = word;
        d8[2] = word;
        d8[3] = word;
        d8[4] = word;
        d8[5] = word;
        d8[6] = word;
        d8[7] = word;
    }
    for (; n >= 8; n -= 8) {
        *d8++ = word;
    }
    d = (uint8_t *)d8;
    while (n-- > 0) {
        *d++ = (uint8_t)byte;
    }
    return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *x = a, *y = b;

    for (; n > 0; n--, x++, y++) {
        if (*x != *y) {
            return *x < *y ? -1 : 1;
        }
    }
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;

    while (s[n] != '\0') {
        n++;
    }
    return n;
}

size_t strnlen(const char *s, size_t max)
{
    size_t n = 0;

    while (n < max && s[n] != '\0') {
        n++;
    }
    return n;
}

int strcmp(const char *a, const char *b)
{
    for (; *a != '\0' && *a == *b; a++, b++) {
    }
    return (uint8_t)*a - (uint8_t)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n > 0; n--, a++, b++) {
        if (*a != *b || *a == '\0') {
            return (uint8_t)*a - (uint8_t)*b;
        }
    }
    return 0;
}

char *strchr(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c) {
            return (char *)(uintptr_t)s;
        }
        if (*s == '\0') {
            return NULL;
        }
    }
}

size_t strlcpy(char *dst, const char *src, size_t size)
{
    size_t len = strlen(src);
    size_t n = len < size - 1 ? len : size - 1;

    memcpy(dst, src, n);
    dst[n] = '\0';
    return len;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return 16;
}

bool str_to_u64(const char *s, uint64_t *out_value)
{
    unsigned base = 10;
    uint64_t value = 0;

    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    }
    if (*s == '\0') {
        return false;
    }
    for (; *s != '\0'; s++) {
        unsigned digit = (unsigned)digit_value(*s);

        if (digit >= base || value > (UINT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    *out_value = value;
    return true;
}

bool str_to_size(const char **at, uint64_t *out)
{
    static const char suffixes[] = "kmgt";
    const char *p = *at;
    uint64_t value = 0;

    if (*p < '0' || *p > '9') {
        return false;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        if (value > (UINT64_MAX - 9) / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(*p - '0');
    }
    for (unsigned i = 0; i < 4; i++) {
        if ((*p | 0x20) == suffixes[i]) {
            value = value > UINT64_MAX >> (10 * (i + 1))
                        ? UINT64_MAX
                        : value << (10 * (i + 1));
            p++;
            break;
        }
    }
    *at = p;
    *out = value;
    return true;
}
