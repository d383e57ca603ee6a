/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formatting into a buffer; the conversions are listed in kernel/lib.h. */
#include "kernel/lib.h"

struct out {
    char *buf;
    size_t size, len;
};

static void out_char(struct out *out, char c)
{
    if (out->len + 1 < out->size) {
        out->buf[out->len] = c;
    }
    out->len++;
}

struct conversion {
    bool left, zero;
    int width, precision; /* precision < 0: not given */
    int longs;
};

static void out_text(struct out *out, const char *s, int len,
                     const struct conversion *conv)
{
    int pad = conv->width - len;

    for (; !conv->left && pad > 0; pad--) {
        out_char(out, ' ');
    }
    for (int i = 0; i < len; i++) {
        out_char(out, s[i]);
    }
    for (; pad > 0; pad--) {
        out_char(out, ' ');
    }
}

static void out_number(struct out *out, uint64_t value, unsigned base,
                       bool negative, const char *digits,
                       const struct conversion *conv)
{
    char text[24];
    int n = sizeof(text);

    do {
        text[--n] = digits[value % base];
        value /= base;
    } while (value != 0);

    int len = (int)sizeof(text) - n;

    if (conv->zero && !conv->left) {
        if (negative) {
            out_char(out, '-');
        }
        for (int pad = conv->width - len - (negative ? 1 : 0); pad > 0; pad--) {
            out_char(out, '0');
        }
        struct conversion plain = {.precision = -1};

        out_text(out, text + n, len, &plain);
        return;
    }
    if (negative) {
        text[--n] = '-';
        len++;
    }
    out_text(out, text + n, len, conv);
}

static uint64_t next_unsigned(va_list *args, int longs)
{
    return longs > 0 ? va_arg(*args, uint64_t) : va_arg(*args, uint32_t);
}

static int64_t next_signed(va_list *args, int longs)
{
    return longs > 0 ? va_arg(*args, int64_t) : va_arg(*args, int32_t);
}

static const char *parse_conversion(const char *p, struct conversion *conv,
                                    va_list *args)
{
    *conv = (struct conversion){.precision = -1};
    for (;; p++) {
        if (*p == '-') {
            conv->left = true;
        } else if (*p == '0') {
            conv->zero = true;
        } else {
            break;
        }
    }
    if (*p == '*') {
        conv->width = va_arg(*args, int);
        p++;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        conv->width = conv->width * 10 + (*p - '0');
    }
    if (*p == '.') {
        p++;
        conv->precision = 0;
        if (*p == '*') {
            conv->precision = va_arg(*args, int);
            p++;
        }
        for (; *p >= '0' && *p <= '9'; p++) {
            conv->precision = conv->precision * 10 + (*p - '0');
        }
    }
    for (; *p == 'l' || *p == 'z'; p++) {
        conv->longs++;
    }
    return p;
}

int vsnprintf(char *buf, size_t size, const char *fmt, va_list args_in)
{
    static const char lower[] = "0123456789abcdef";
    static const char upper[] = "0123456789ABCDEF";
    struct out out = {buf, size, 0};
    va_list args;

    va_copy(args, args_in);
    for (const char *p = fmt; *p != '\0'; p++) {
        struct conversion conv;

        if (*p != '%') {
            out_char(&out, *p);
            continue;
        }
        p = parse_conversion(p + 1, &conv, &args);
        switch (*p) {
        case 'd':
        case 'i': {
            int64_t value = next_signed(&args, conv.longs);
            uint64_t magnitude =
                value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

            out_number(&out, magnitude, 10, value < 0, lower, &conv);
            break;
        }
        case 'u':
            out_number(&out, next_unsigned(&args, conv.longs), 10, false, lower,
                       &conv);
            break;
        case 'x':
            out_number(&out, next_unsigned(&args, conv.longs), 16, false, lower,
                       &conv);
            break;
        case 'o':
            out_number(&out, next_unsigned(&args, conv.longs), 8, false, lower,
                       &conv);
            break;
        case 'X':
            out_number(&out, next_unsigned(&args, conv.longs), 16, false, upper,
                       &conv);
            break;
        case 'p':
            conv.zero = true;
            conv.width = 16;
            out_number(&out, (uintptr_t)va_arg(args, void *), 16, false, lower,
                       &conv);
            break;
        case 'c': {
            char c = (char)va_arg(args, int);

            out_text(&out, &c, 1, &conv);
            break;
        }
        case 's': {
            const char *s = va_arg(args, const char *);

            s = s == NULL ? "(null)" : s;
            out_text(&out, s,
                     (int)(conv.precision >= 0
                               ? strnlen(s, (size_t)conv.precision)
                               : strlen(s)),
                     &conv);
            break;
        }
        case '\0':
            p--;
            break;
        default:
            out_char(&out, *p);
            break;
        }
    }
    va_end(args);
    if (size > 0) {
        buf[out.len < size ? out.len : size - 1] = '\0';
    }
    return (int)out.len;
}

int snprintf(char *buf, size_t size, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(buf, size, fmt, args);
    va_end(args);
    return len;
}
