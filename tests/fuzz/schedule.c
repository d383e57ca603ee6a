/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The schedule reader. The input is a schedule's text without its last line:
 * the hash is added here, or no changed file would get past it. An input that
 * has a hash line of its own is read as it is as well. What is accepted must
 * come back the same from the text and from the line that are made of it.
 */
#include "fuzz.h"

#include <string.h>

#include "choice/schedule_priv.h"

/* A few bytes may ask for 50,000,000 choices: legal, but slow to repeat. */
#define ENTRIES_LOOKED_AT 100000u

static void same_again(const struct schedule *schedule, const char *text)
{
    GError *error = NULL;
    char *again;
    struct schedule *copy = schedule_from_text(text, strlen(text), &error);

    FUZZ_CHECK(copy, "what was written is refused: %s", error->message);
    again = schedule_to_text(copy);
    FUZZ_CHECK(strcmp(again, text) == 0, "written twice:\n%s\n%s", text, again);
    FUZZ_CHECK(copy->total == schedule->total &&
                   copy->entries->len == schedule->entries->len,
               "choices lost");
    g_free(again);
    schedule_free(copy);
}

static void read_one(const char *text, size_t length)
{
    GError *error = NULL;
    struct schedule *schedule = schedule_from_text(text, length, &error);

    FUZZ_CHECK_ERROR(schedule != NULL, error);
    if (!schedule) {
        g_error_free(error);
        return;
    }
    for (guint i = 0; i < schedule->entries->len; i++) {
        const struct choice_entry *entry =
            &g_array_index(schedule->entries, struct choice_entry, i);

        FUZZ_CHECK(entry->kind < CHOICE_KINDS && entry->value >= 1 &&
                       entry->value < entry->n && entry->n <= CHOICE_MAX &&
                       entry->index < schedule->total,
                   "entry %u", i);
    }
    if (schedule->entries->len <= ENTRIES_LOOKED_AT) {
        char *written = schedule_to_text(schedule);

        same_again(schedule, written);
        g_free(written);
    }
    schedule_free(schedule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, size);
    char *tail = g_strdup_printf("hash: %s\n", hash);
    char *whole = g_malloc(size + strlen(tail));

    read_one(text, size);
    memcpy(whole, text, size);
    memcpy(whole + size, tail, strlen(tail));
    read_one(whole, size + strlen(tail));
    g_free(whole);
    g_free(tail);
    g_free(hash);
    g_free(text);
    return 0;
}
