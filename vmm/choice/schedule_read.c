/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text form of a schedule, in. The reader trusts nothing: it goes through
 * the text once, left to right, and every number has a bound.
 */
#include <inttypes.h>
#include <string.h>

#include "choice/schedule_priv.h"
#include "error.h"

#define HASH_DIGITS 64u

struct reader {
    const char *text; /* of the current line */
    const char *end;  /* of all that the final hash covers */
    const char *line;
    const char *line_end; /* its newline */
    unsigned number;      /* of the line, from 1 */
    struct schedule *schedule;
    uint64_t at; /* choices read */
    GError **error;
};

/* What is there, printable and short. */
static char *shown(const char *text, const char *end)
{
    size_t length = (size_t)(end - text);
    char *part = g_strndup(text, MIN(length, 32));
    char *escaped = g_strescape(part, NULL);
    char *all = g_strdup_printf("'%s%s'", escaped, length > 32 ? "..." : "");

    g_free(escaped);
    g_free(part);
    return all;
}

/* At `found` (up to `end`) of the current line there should be `expected`. */
static bool refuse(struct reader *reader, const char *found, const char *end,
                   const char *expected)
{
    char *text = shown(found, end);

    g_set_error(reader->error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                "schedule, line %u, column %zu: found %s, expected %s",
                reader->number, (size_t)(found - reader->line) + 1,
                found == end ? "the end of the line" : text, expected);
    g_free(text);
    return false;
}

/* To the next line; false at the end. Every line before the hash ends in \n. */
static bool next_line(struct reader *reader)
{
    if (reader->text == reader->end) {
        return false;
    }
    reader->number++;
    reader->line = reader->text;
    reader->line_end =
        memchr(reader->text, '\n', (size_t)(reader->end - reader->text));
    reader->text = reader->line_end + 1;
    return true;
}

/*
 * Decimal without leading zeros from low to high; moves *at behind it. False:
 * it is something else, and *at stays.
 */
static bool parse_decimal(const char **at, const char *end, uint64_t low,
                          uint64_t high, uint64_t *out)
{
    const char *p = *at;
    uint64_t value = 0;

    while (p < end && *p >= '0' && *p <= '9') {
        value = 10 * value + (uint64_t)(*p++ - '0');
        if (value > high) {
            return false;
        }
    }
    if (p == *at || value < low || (**at == '0' && p - *at > 1)) {
        return false;
    }
    *at = p;
    *out = value;
    return true;
}

static bool parse_hex(const char **at, const char *end, unsigned count,
                      uint64_t *out)
{
    const char *p = *at;
    uint64_t value = 0;

    if (end - p < (ptrdiff_t)count) {
        return false;
    }
    for (unsigned i = 0; i < count; i++, p++) {
        if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f')) {
            value = value << 4 | (uint64_t)g_ascii_xdigit_value(*p);
        } else {
            return false;
        }
    }
    *at = p;
    *out = value;
    return true;
}

/* The value at [at, line_end) without escapes; NULL: refused. */
static char *parse_value(struct reader *reader, const char *at)
{
    const char *end = reader->line_end;
    GString *value;

    if (end - at > (ptrdiff_t)SCHEDULE_VALUE_MAX) {
        refuse(reader, at, end, "a value of at most 65536 bytes");
        return NULL;
    }
    value = g_string_new(NULL);
    while (at < end) {
        uint8_t c = (uint8_t)*at;
        const char *behind = at + 1;
        uint64_t code = c;

        if (c == '\\' && behind < end && *behind == '\\') {
            behind++;
        } else if (c == '\\') {
            if (behind == end || *behind++ != 'x' ||
                !parse_hex(&behind, end, 2, &code) || code == 0 ||
                (code >= ' ' && code != 127)) {
                refuse(reader, at, end,
                       "\\\\ or \\x with the two hex digits of a control "
                       "character");
                g_string_free(value, TRUE);
                return NULL;
            }
        } else if (c < ' ' || c == 127) {
            refuse(reader, at, end, "no control character");
            g_string_free(value, TRUE);
            return NULL;
        }
        g_string_append_c(value, (char)code);
        at = behind;
    }
    return g_string_free(value, FALSE);
}

/* "key: " at the start of the line; moves *at behind it. */
static bool has_key(const struct reader *reader, const char *key,
                    const char **at)
{
    size_t length = strlen(key);

    if (reader->line_end - reader->line < (ptrdiff_t)length + 2 ||
        memcmp(reader->line, key, length) ||
        memcmp(reader->line + length, ": ", 2)) {
        return false;
    }
    *at = reader->line + length + 2;
    return true;
}

static bool read_first(struct reader *reader)
{
    const char *at, *value;
    uint64_t version;

    if (!next_line(reader) || !has_key(reader, SCHEDULE_FIRST_KEY, &value)) {
        return refuse(reader, reader->line, reader->line_end,
                      "'" SCHEDULE_FIRST_KEY ": 1'");
    }
    at = value;
    if (!parse_decimal(&at, reader->line_end, 1, 1000000, &version) ||
        at != reader->line_end || version != SCHEDULE_FORMAT) {
        return refuse(reader, value, reader->line_end,
                      "format 1, the only one that this version reads");
    }
    return true;
}

/* A line of the header that is not one of the last three. */
static bool read_pair(struct reader *reader)
{
    struct schedule *schedule = reader->schedule;
    const char *line = reader->line;
    const char *colon = memchr(line, ':', (size_t)(reader->line_end - line));
    char *key, *value;
    bool fine = false;

    if (!colon || colon - line > 64 || colon + 1 >= reader->line_end ||
        colon[1] != ' ') {
        return refuse(reader, line, reader->line_end,
                      "'key: value', or 'choices: ' and a number");
    }
    if (schedule->keys->len == SCHEDULE_KEYS_MAX) {
        return refuse(reader, line, reader->line_end,
                      "at most 1000 header lines");
    }
    key = g_strndup(line, (size_t)(colon - line));
    if (strlen(key) != (size_t)(colon - line) || !schedule_key_ok(key)) {
        refuse(reader, line, colon,
               "a key of small letters, digits and dashes");
    } else if (schedule_get(schedule, key)) {
        refuse(reader, line, colon, "a key that was not there before");
    } else {
        value = parse_value(reader, colon + 2);
        if (value) {
            schedule_set(schedule, key, value);
            g_free(value);
            fine = true;
        }
    }
    g_free(key);
    return fine;
}

static bool read_hash(struct reader *reader, const char *key, uint64_t *out)
{
    const char *at = reader->line;

    if (!next_line(reader)) {
        return refuse(reader, reader->line_end, reader->line_end,
                      "another line, with a hash");
    }
    if (!has_key(reader, key, &at) ||
        !parse_hex(&at, reader->line_end, 16, out) || at != reader->line_end) {
        char *expected = g_strdup_printf("'%s: ' and 16 hex digits", key);

        refuse(reader, reader->line, reader->line_end, expected);
        g_free(expected);
        return false;
    }
    return true;
}

static bool read_header(struct reader *reader)
{
    struct schedule *schedule = reader->schedule;
    const char *at, *value;

    if (!read_first(reader)) {
        return false;
    }
    for (;;) {
        if (!next_line(reader)) {
            return refuse(reader, reader->line_end, reader->line_end,
                          "another line, 'choices: ' and a number");
        }
        if (has_key(reader, "choices", &value)) {
            break;
        }
        if (!read_pair(reader)) {
            return false;
        }
    }
    at = value;
    if (!parse_decimal(&at, reader->line_end, 0, SCHEDULE_TOTAL_MAX - 1,
                       &schedule->total) ||
        at != reader->line_end) {
        return refuse(reader, value, reader->line_end,
                      "a number of choices below 2^40");
    }
    if (!read_hash(reader, "trace-hash", &schedule->trace_hash) ||
        !read_hash(reader, "state-hash", &schedule->state_hash)) {
        return false;
    }
    if (!next_line(reader)) {
        return refuse(reader, reader->line_end, reader->line_end,
                      "an empty line after the header");
    }
    if (reader->line != reader->line_end) {
        return refuse(reader, reader->line, reader->line_end,
                      "an empty line after the header");
    }
    return true;
}

/* A decimal number: so many choices were plain. */
static bool read_zeros(struct reader *reader, const char **at)
{
    uint64_t room = reader->schedule->total - reader->at, count;

    if (!parse_decimal(at, reader->line_end, 1, room, &count)) {
        return refuse(reader, *at, reader->line_end,
                      "a number from 1 to what remains of 'choices'");
    }
    reader->at += count;
    return true;
}

static bool read_checkpoint(struct reader *reader, const char **at)
{
    GArray *checkpoints = reader->schedule->checkpoints;
    struct schedule_checkpoint checkpoint = {.index = reader->at};
    const char *token = (*at)++;

    if (!parse_hex(at, reader->line_end, 16, &checkpoint.trace_hash)) {
        return refuse(reader, token, reader->line_end, "'@' and 16 hex digits");
    }
    if (checkpoints->len &&
        g_array_index(checkpoints, struct schedule_checkpoint,
                      checkpoints->len - 1)
                .index == reader->at) {
        return refuse(reader, token, reader->line_end,
                      "choices between two checkpoints");
    }
    g_array_append_val(checkpoints, checkpoint);
    return true;
}

/* v1/3 or v1/3*20 */
static bool read_entry(struct reader *reader, const char **at)
{
    struct schedule *schedule = reader->schedule;
    const char *token = *at, *end = reader->line_end;
    enum choice_kind kind = choice_kind_from_letter(*token);
    uint64_t value, n, count = 1;
    uint64_t room = MIN(schedule->total - reader->at,
                        SCHEDULE_ENTRIES_MAX - schedule->entries->len);

    if (kind == CHOICE_KINDS) {
        return refuse(reader, token, end,
                      "a number, '@', or the letter of a kind of choice");
    }
    (*at)++;
    if (!parse_decimal(at, end, 1, CHOICE_MAX - 1, &value) || *at == end ||
        *(*at)++ != '/' || !parse_decimal(at, end, value + 1, CHOICE_MAX, &n)) {
        return refuse(reader, token, end,
                      "VALUE/ALTERNATIVES with 1 <= VALUE < ALTERNATIVES <= "
                      "1024 after the letter");
    }
    if (*at < end && **at == '*') {
        (*at)++;
        if (!parse_decimal(at, end, 2, SCHEDULE_ENTRIES_MAX, &count)) {
            return refuse(reader, token, end,
                          "a number from 2 to 50000000 after the '*'");
        }
    }
    if (count > room) {
        return refuse(reader, token, end,
                      "no more choices than 'choices' says, and at most "
                      "50000000 that are not plain");
    }
    for (uint64_t i = 0; i < count; i++) {
        struct choice_entry entry = {
            .index = reader->at++,
            .kind = kind,
            .n = (uint16_t)n,
            .value = (uint16_t)value,
        };

        g_array_append_val(schedule->entries, entry);
    }
    return true;
}

static bool read_token(struct reader *reader, const char **at)
{
    if (*at == reader->line_end) {
        return refuse(reader, *at, *at, "choices");
    }
    if (**at >= '0' && **at <= '9') {
        return read_zeros(reader, at);
    }
    return **at == '@' ? read_checkpoint(reader, at) : read_entry(reader, at);
}

static bool read_body(struct reader *reader)
{
    while (next_line(reader)) {
        const char *at = reader->line;

        for (;;) {
            if (!read_token(reader, &at)) {
                return false;
            }
            if (at == reader->line_end) {
                break;
            }
            if (*at++ != ' ') {
                return refuse(reader, at - 1, reader->line_end,
                              "a space or the end of the line");
            }
        }
    }
    if (reader->at != reader->schedule->total) {
        g_set_error(reader->error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "schedule, line %u: the choices end after %" PRIu64
                    ", expected %" PRIu64 " as the header says",
                    reader->number, reader->at, reader->schedule->total);
        return false;
    }
    return true;
}

/*
 * Finds the last line and compares its hash with what is before it; sets
 * reader->end to where that line begins.
 */
static bool check_hash(struct reader *reader, const char *text, size_t length)
{
    static const char key[] = "hash: ";
    size_t last = strlen(key) + HASH_DIGITS + 1;
    const char *line;
    char *hash;
    bool same;

    if (length > SCHEDULE_BYTES_MAX) {
        g_set_error(reader->error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "schedule: %zu bytes, expected at most 64 MiB", length);
        return false;
    }
    reader->number = 1;
    for (size_t i = 0; i + 1 < length; i++) {
        reader->number += text[i] == '\n';
    }
    line = length > last ? text + length - last : text;
    reader->line = line;
    if (length < last + 1 || line[-1] != '\n' ||
        memcmp(line, key, strlen(key)) || text[length - 1] != '\n') {
        g_set_error(reader->error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "schedule, line %u: expected 'hash: ', %u hex digits and a "
                    "newline as the last line: this is no schedule, or the end "
                    "is cut off",
                    reader->number, HASH_DIGITS);
        return false;
    }
    hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text,
                                       (gsize)(line - text));
    same = !memcmp(hash, line + strlen(key), HASH_DIGITS);
    if (!same) {
        g_set_error(reader->error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "schedule, line %u: the hash does not fit the lines before "
                    "it, expected %s: the file is damaged or was edited",
                    reader->number, hash);
    }
    g_free(hash);
    reader->end = line;
    return same;
}

struct schedule *schedule_from_text(const char *text, size_t length,
                                    GError **error)
{
    struct reader reader = {.text = text, .error = error};

    if (!check_hash(&reader, text, length)) {
        return NULL;
    }
    reader.number = 0;
    reader.schedule = schedule_new();
    if (!read_header(&reader) || !read_body(&reader)) {
        schedule_free(reader.schedule);
        return NULL;
    }
    return reader.schedule;
}
