/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one-line form: zlib, then base32 of RFC 4648 in lower case, no padding.
 */
#include <string.h>
#include <zlib.h>

#include "choice/schedule_priv.h"
#include "error.h"

static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

static void append_base32(GString *out, const uint8_t *bytes, size_t count)
{
    uint32_t held = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < count; i++) {
        held = held << 8 | bytes[i];
        for (bits += 8; bits >= 5; bits -= 5) {
            g_string_append_c(out, digits[held >> (bits - 5) & 31]);
        }
    }
    if (bits) {
        g_string_append_c(out, digits[held << (5 - bits) & 31]);
    }
}

char *schedule_to_line(const struct schedule *schedule)
{
    char *text = schedule_to_text(schedule);
    uLong length = strlen(text);
    uLongf packed_length = compressBound(length);
    uint8_t *packed = g_malloc(packed_length);
    GString *line = g_string_new(SCHEDULE_LINE_PREFIX);
    int status = compress2(packed, &packed_length, (const Bytef *)text, length,
                           Z_BEST_COMPRESSION);

    g_assert(status == Z_OK); /* it fails only for want of memory */
    append_base32(line, packed, packed_length);
    g_free(packed);
    g_free(text);
    return g_string_free(line, FALSE);
}

static void *refuse(GError **error, const char *what)
{
    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                "schedule line 'sd1:...': %s", what);
    return NULL;
}

static uint8_t *from_base32(const char *line, size_t length, size_t *out_count,
                            GError **error)
{
    uint8_t *bytes = g_malloc(length * 5 / 8 + 1);
    size_t count = 0;
    uint32_t held = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < length; i++) {
        const char *digit = line[i] ? strchr(digits, line[i]) : NULL;

        if (!digit) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "schedule line 'sd1:...': character %zu is byte 0x%02x,"
                        " expected a to z or 2 to 7",
                        i + strlen(SCHEDULE_LINE_PREFIX) + 1, (uint8_t)line[i]);
            g_free(bytes);
            return NULL;
        }
        held = held << 5 | (uint32_t)(digit - digits);
        bits += 5;
        if (bits >= 8) {
            bits -= 8;
            bytes[count++] = held >> bits & 255;
        }
    }
    /* What remains is filling: zeros, and less than a digit. */
    if (bits >= 5 || (held & ((1u << bits) - 1))) {
        g_free(bytes);
        return refuse(error, "it is cut off or has characters too many");
    }
    *out_count = count;
    return bytes;
}

/* Inflates up to the limit. */
static char *unpack(const uint8_t *bytes, size_t count, size_t *out_length,
                    GError **error)
{
    z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)count};
    GByteArray *text = g_byte_array_new();
    uint8_t buffer[16384];
    int status = inflateInit(&stream);

    g_assert(status == Z_OK);
    while (status == Z_OK && text->len <= SCHEDULE_BYTES_MAX) {
        stream.next_out = buffer;
        stream.avail_out = sizeof(buffer);
        status = inflate(&stream, Z_NO_FLUSH);
        g_byte_array_append(text, buffer,
                            (guint)(sizeof(buffer) - stream.avail_out));
    }
    inflateEnd(&stream);
    if (text->len > SCHEDULE_BYTES_MAX) {
        g_byte_array_unref(text);
        return refuse(error, "it unpacks to more than 64 MiB");
    }
    if (status != Z_STREAM_END || stream.avail_in) {
        g_byte_array_unref(text);
        return refuse(error, "it does not unpack: it is damaged, or not all "
                             "of it was pasted");
    }
    *out_length = text->len;
    return (char *)g_byte_array_free(text, FALSE);
}

char *schedule_line_to_text(const char *line, size_t length, size_t *out_length,
                            GError **error)
{
    size_t prefix = strlen(SCHEDULE_LINE_PREFIX), count;
    uint8_t *bytes;
    char *text;

    /* Pasting leaves white space at the end. */
    while (length > prefix && g_ascii_isspace(line[length - 1])) {
        length--;
    }
    if (length > 2 * SCHEDULE_BYTES_MAX) {
        return refuse(error, "it is longer than 128 MiB");
    }
    bytes = from_base32(line + prefix, length - prefix, &count, error);
    if (!bytes) {
        return NULL;
    }
    text = unpack(bytes, count, out_length, error);
    g_free(bytes);
    return text;
}
