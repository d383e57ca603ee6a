/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PL011 output by polling, a small print(), and the verdict lines. CPU 0 only:
 * others record and let it print.
 */
#include "guest.h"

#include <stdarg.h>

#define UART_DR (BOARD_UART_BASE + 0x00)
#define UART_FR (BOARD_UART_BASE + 0x18)
#define UART_FR_TXFF (1u << 5)

static unsigned checks, failures;

static void put(char c)
{
    while (mmio_read32(UART_FR) & UART_FR_TXFF) {
    }
    mmio_write32(UART_DR, (uint8_t)c);
}

static void put_string(const char *s)
{
    while (*s) {
        put(*s++);
    }
}

static void put_number(uint64_t v, unsigned base)
{
    char digits[24];
    unsigned n = 0;

    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    while (n) {
        put(digits[--n]);
    }
}

void print(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    for (; *format; format++) {
        if (*format != '%') {
            put(*format);
            continue;
        }
        format++;
        if (*format == 's') {
            put_string(va_arg(ap, const char *));
        } else if (*format == 'c') {
            put((char)va_arg(ap, int));
        } else if (*format == 'x') {
            put_string("0x");
            put_number(va_arg(ap, uint64_t), 16);
        } else if (*format == 'u') {
            put_number(va_arg(ap, uint64_t), 10);
        } else {
            put(*format);
        }
    }
    va_end(ap);
}

bool check(bool ok, const char *text)
{
    checks++;
    failures += !ok;
    print("%s: %s\n", ok ? "PASS" : "FAIL", text);
    return ok;
}

bool check_equal(uint64_t got, uint64_t want, const char *text)
{
    if (check(got == want, text)) {
        return true;
    }
    print("  got %x, expected %x\n", got, want);
    return false;
}

void finish(const char *name)
{
    print("RESULT: %s: %u checks, %u failed\n", name, (uint64_t)checks,
          (uint64_t)failures);
    system_off();
}

/* gcc emits calls to these for struct copies and array clearing. */
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);

void *memcpy(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;

    while (n--) {
        *t++ = *f++;
    }
    return to;
}

void *memset(void *to, int c, size_t n)
{
    char *t = to;

    while (n--) {
        *t++ = (char)c;
    }
    return to;
}
