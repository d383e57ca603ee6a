/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text form of a schedule, out. */
#include <inttypes.h>
#include <string.h>

#include "choice/schedule_priv.h"

#define BODY_COLUMNS 78u

/* A value is one line: backslashes and control characters are escaped. */
static void append_value(GString *out, const char *value)
{
    for (; *value; value++) {
        uint8_t c = (uint8_t)*value;

        if (c == '\\') {
            g_string_append(out, "\\\\");
        } else if (c < ' ' || c == 127) {
            g_string_append_printf(out, "\\x%02x", c);
        } else {
            g_string_append_c(out, (char)c);
        }
    }
}

struct body {
    GString *out;
    size_t line; /* where the current line begins */
    uint64_t at; /* choices written */
};

static void append_token(struct body *body, const char *token)
{
    size_t used = body->out->len - body->line;

    if (used && used + 1 + strlen(token) > BODY_COLUMNS) {
        g_string_append_c(body->out, '\n');
        body->line = body->out->len;
    } else if (used) {
        g_string_append_c(body->out, ' ');
    }
    g_string_append(body->out, token);
}

static void append_zeros(struct body *body, uint64_t until)
{
    char token[32];

    g_assert(until >= body->at);
    if (until > body->at) {
        g_snprintf(token, sizeof(token), "%" PRIu64, until - body->at);
        append_token(body, token);
        body->at = until;
    }
}

static bool repeats(const struct choice_entry *a, const struct choice_entry *b)
{
    return a->kind == b->kind && a->n == b->n && a->value == b->value;
}

/* Writes the entry and those equal to it right behind it, up to `until`. */
static guint append_entries(struct body *body, const GArray *entries, guint i,
                            uint64_t until)
{
    const struct choice_entry *entry =
        &g_array_index(entries, struct choice_entry, i);
    guint count = 1;
    char token[48];
    int length;

    append_zeros(body, entry->index);
    while (i + count < entries->len && entry->index + count < until &&
           entry[count].index == entry->index + count &&
           repeats(entry, &entry[count])) {
        count++;
    }
    length =
        g_snprintf(token, sizeof(token), "%c%u/%u",
                   choice_kind_letter(entry->kind), entry->value, entry->n);
    if (count > 1) {
        g_snprintf(token + length, sizeof(token) - (gulong)length, "*%u",
                   count);
    }
    append_token(body, token);
    body->at += count;
    return count;
}

static void append_body(GString *out, const struct schedule *schedule)
{
    const GArray *entries = schedule->entries;
    const GArray *checkpoints = schedule->checkpoints;
    struct body body = {.out = out, .line = out->len};
    char token[32];
    guint i = 0;

    for (guint c = 0; c <= checkpoints->len; c++) {
        const struct schedule_checkpoint *checkpoint =
            c < checkpoints->len
                ? &g_array_index(checkpoints, struct schedule_checkpoint, c)
                : NULL;
        uint64_t until = checkpoint ? checkpoint->index : schedule->total;

        while (i < entries->len &&
               g_array_index(entries, struct choice_entry, i).index < until) {
            i += append_entries(&body, entries, i, until);
        }
        append_zeros(&body, until);
        if (checkpoint) {
            g_snprintf(token, sizeof(token), "@%016" PRIx64,
                       checkpoint->trace_hash);
            append_token(&body, token);
        }
    }
    g_assert(i == entries->len);
    if (out->len > body.line) {
        g_string_append_c(out, '\n');
    }
}

char *schedule_to_text(const struct schedule *schedule)
{
    GString *out = g_string_new(NULL);
    char *hash;

    g_string_append_printf(out, SCHEDULE_FIRST_KEY ": %d\n", SCHEDULE_FORMAT);
    for (guint i = 0; i < schedule->keys->len; i++) {
        g_string_append(out, g_ptr_array_index(schedule->keys, i));
        g_string_append(out, ": ");
        append_value(out, g_ptr_array_index(schedule->values, i));
        g_string_append_c(out, '\n');
    }
    g_string_append_printf(out,
                           "choices: %" PRIu64 "\n"
                           "trace-hash: %016" PRIx64 "\n"
                           "state-hash: %016" PRIx64 "\n\n",
                           schedule->total, schedule->trace_hash,
                           schedule->state_hash);
    append_body(out, schedule);
    hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256,
                                       (const guchar *)out->str, out->len);
    g_string_append_printf(out, "hash: %s\n", hash);
    g_free(hash);
    return g_string_free(out, FALSE);
}
