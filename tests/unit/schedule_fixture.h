/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of schedules share: samples, and texts with a right hash. */
#ifndef TESTS_UNIT_SCHEDULE_FIXTURE_H
#define TESTS_UNIT_SCHEDULE_FIXTURE_H

#include "choice_fixture.h"

#include "choice/schedule.h"

static inline void add_entry(struct schedule *schedule, uint64_t index,
                             enum choice_kind kind, unsigned value, unsigned n)
{
    struct choice_entry entry = {
        .index = index, .kind = kind, .n = n, .value = value};

    g_array_append_val(schedule->entries, entry);
}

static inline void add_checkpoint(struct schedule *schedule, uint64_t index,
                                  uint64_t hash)
{
    struct schedule_checkpoint checkpoint = {.index = index,
                                             .trace_hash = hash};

    g_array_append_val(schedule->checkpoints, checkpoint);
}

/* text with its final hash line; g_free() it. */
static inline char *with_hash(const char *text, size_t length, size_t *out)
{
    char *hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256,
                                             (const guchar *)text, length);
    char *line = g_strdup_printf("hash: %s\n", hash);
    char *all = g_malloc(length + strlen(line) + 1);

    memcpy(all, text, length);
    memcpy(all + length, line, strlen(line) + 1);
    *out = length + strlen(line);
    g_free(line);
    g_free(hash);
    return all;
}

/* Up to 300 choices of all kinds, with checkpoints and odd header values. */
static inline struct schedule *random_schedule(struct prng *prng)
{
    static const char *const values[] = {"",
                                         "4",
                                         " two  spaces ",
                                         "back\\slash",
                                         "a\nb\tc\x7f",
                                         "\xc3\xa4\xff",
                                         "key: value",
                                         "\\x41"};
    struct schedule *schedule = schedule_new();
    unsigned keys = (unsigned)prng_below(prng, 5);
    unsigned total = (unsigned)prng_below(prng, 300);
    unsigned plain = 1 + (unsigned)prng_below(prng, 20);
    struct choice_entry same = {.kind = CHOICE_apply, .n = 2, .value = 1};

    for (unsigned i = 0; i < keys; i++) {
        char key[16];

        g_snprintf(key, sizeof(key), "key-%u", i);
        schedule_set(schedule, key,
                     values[prng_below(prng, G_N_ELEMENTS(values))]);
    }
    for (unsigned i = 0; i < total; i++) {
        if (prng_below(prng, 40) == 0) {
            add_checkpoint(schedule, i, prng_next(prng));
        }
        if (prng_below(prng, plain) == 0) {
            if (prng_below(prng, 3) == 0) {
                same.kind = (uint16_t)prng_below(prng, CHOICE_KINDS);
                same.n = 2 + (uint16_t)prng_below(prng, CHOICE_MAX - 1);
                same.value = 1 + (uint16_t)prng_below(prng, same.n - 1u);
            }
            add_entry(schedule, i, same.kind, same.value, same.n);
        }
    }
    if (prng_below(prng, 2)) {
        add_checkpoint(schedule, total, prng_next(prng));
    }
    schedule->total = total;
    schedule->trace_hash = prng_next(prng);
    schedule->state_hash = prng_next(prng);
    return schedule;
}

static inline void check_equal(const struct schedule *a,
                               const struct schedule *b)
{
    REQUIRE(a->keys->len == b->keys->len, "keys");
    for (guint i = 0; i < a->keys->len; i++) {
        REQUIRE(!strcmp(g_ptr_array_index(a->keys, i),
                        g_ptr_array_index(b->keys, i)) &&
                    !strcmp(g_ptr_array_index(a->values, i),
                            g_ptr_array_index(b->values, i)),
                "key %u", i);
    }
    REQUIRE(a->entries->len == b->entries->len, "%u and %u entries",
            a->entries->len, b->entries->len);
    for (guint i = 0; i < a->entries->len; i++) {
        const struct choice_entry *x =
            &g_array_index(a->entries, struct choice_entry, i);
        const struct choice_entry *y =
            &g_array_index(b->entries, struct choice_entry, i);

        REQUIRE(x->index == y->index && x->kind == y->kind && x->n == y->n &&
                    x->value == y->value,
                "entry %u", i);
    }
    REQUIRE(a->checkpoints->len == b->checkpoints->len, "checkpoints");
    for (guint i = 0; i < a->checkpoints->len; i++) {
        const struct schedule_checkpoint *x =
            &g_array_index(a->checkpoints, struct schedule_checkpoint, i);
        const struct schedule_checkpoint *y =
            &g_array_index(b->checkpoints, struct schedule_checkpoint, i);

        REQUIRE(x->index == y->index && x->trace_hash == y->trace_hash,
                "checkpoint %u", i);
    }
    REQUIRE(a->total == b->total && a->trace_hash == b->trace_hash &&
                a->state_hash == b->state_hash,
            "the numbers");
}

#endif
