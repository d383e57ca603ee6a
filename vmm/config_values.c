/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of options: a text in, a number or an enum out, or a refusal that
 * names the option, the value seen and what is accepted. Main thread.
 */
#include "config_priv.h"

#include <errno.h>
#include <string.h>

#include "error.h"
#include "obs/events.h"

#define MEM_GRANULE (UINT64_C(2) << 20)

bool config_usage(GError **error, const char *format, ...)
{
    va_list args;
    g_autofree char *text = NULL;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, VM_ERROR, VM_ERROR_USAGE, text);
    return false;
}

bool vm_size_parse(const char *text, uint64_t *out_bytes)
{
    char *end = NULL;
    unsigned shift = 0;
    uint64_t value;

    if (!g_ascii_isdigit(text[0])) {
        return false;
    }
    errno = 0;
    value = g_ascii_strtoull(text, &end, 10);
    if (errno != 0) {
        return false;
    }
    switch (g_ascii_toupper(*end)) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    end += shift != 0;
    if (*end != '\0' || value > UINT64_MAX >> shift) {
        return false;
    }
    *out_bytes = value << shift;
    return true;
}

bool config_number(const char *option, const char *text, uint64_t low,
                   uint64_t high, unsigned *out, GError **error)
{
    char *end = NULL;
    uint64_t value;

    if (!text) {
        return true;
    }
    errno = 0;
    value = g_ascii_strtoull(text, &end, 10);
    if (!g_ascii_isdigit(text[0]) || *end || errno || value < low ||
        value > high) {
        return config_usage(
            error,
            "%s is '%s': accepted is a number from %" G_GUINT64_FORMAT
            " to %" G_GUINT64_FORMAT,
            option, text, low, high);
    }
    *out = (unsigned)value;
    return true;
}

bool config_u64(const char *option, const char *text, uint64_t *out,
                GError **error)
{
    const char *digits = text;
    char *end = NULL;
    bool is_hex;
    uint64_t value;

    if (!text) {
        return true;
    }
    is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    digits += is_hex ? 2 : 0;
    errno = 0;
    value = g_ascii_strtoull(digits, &end, is_hex ? 16 : 10);
    /* strtoull() itself would take blanks, signs and a second 0x. */
    if (!digits[0] || *end || errno ||
        digits[strspn(digits, is_hex ? "0123456789abcdefABCDEF"
                                     : "0123456789")] != '\0') {
        return config_usage(error,
                            "%s is '%s': accepted is a number from 0 to "
                            "18446744073709551615, or in hexadecimal from 0x0 "
                            "to 0xffffffffffffffff",
                            option, text);
    }
    *out = value;
    return true;
}

bool config_choice(const char *option, const char *text,
                   const char *const *names, unsigned *out, GError **error)
{
    g_autofree char *list = NULL;

    if (!text) {
        return true;
    }
    for (unsigned i = 0; names[i]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    list = g_strjoinv(", ", (char **)names);
    return config_usage(error, "%s is '%s': accepted are %s", option, text,
                        list);
}

bool config_mem(const char *text, uint64_t *out, GError **error)
{
    uint64_t bytes;

    if (!text) {
        return true;
    }
    if (!vm_size_parse(text, &bytes)) {
        return config_usage(
            error,
            "--mem is '%s': accepted is a number of bytes, or one "
            "with K, M or G behind it, as in 512M",
            text);
    }
    if (bytes < VM_MEM_MIN || bytes > VM_MEM_MAX || bytes % MEM_GRANULE) {
        return config_usage(
            error,
            "--mem is '%s' (%" G_GUINT64_FORMAT
            " bytes): accepted are multiples of 2M from 16M to 64G",
            text, bytes);
    }
    *out = bytes;
    return true;
}

bool config_events(const char *text, uint64_t *out, GError **error)
{
    g_auto(GStrv) names = NULL;
    uint64_t events = 0;

    if (!text) {
        return true;
    }
    names = g_strsplit(text, ",", -1);
    for (char **name = names; *name; name++) {
        enum event_kind kind;

        if (strcmp(*name, "all") == 0) {
            events = EVENT_ALL;
            continue;
        }
        kind = event_from_name(*name);
        if (kind == EVENT_KINDS) {
            return config_usage(
                error,
                "--trace-events has '%s', which is no event: accepted "
                "are 'all' and the names that 'shootdown list events' "
                "shows",
                *name);
        }
        events |= EVENT_BIT(kind);
    }
    *out = events;
    return true;
}
