/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources that need no strategy: plain, bytes, and what was recorded. */
#include <stdlib.h>
#include <string.h>

#include "choice/source.h"

/* --- plain --- */

static unsigned plain_choose(struct choice_source *source,
                             enum choice_kind kind, unsigned n, uint64_t index,
                             const struct choice_candidate *candidates)
{
    (void)source;
    (void)kind;
    (void)n;
    (void)index;
    (void)candidates;
    return 0;
}

static void plain_free(struct choice_source *source)
{
    g_free(source);
}

struct choice_source *choice_source_plain(void)
{
    static const struct choice_source_ops ops = {
        .choose = plain_choose,
        .free = plain_free,
    };
    struct choice_source *source = g_new0(struct choice_source, 1);

    source->ops = &ops;
    return source;
}

/* --- bytes --- */

struct bytes_source {
    struct choice_source base;
    uint8_t *bytes;
    size_t count, next;
};

static unsigned bytes_take(struct bytes_source *self)
{
    return self->next < self->count ? self->bytes[self->next++] : 0;
}

static unsigned bytes_choose(struct choice_source *source,
                             enum choice_kind kind, unsigned n, uint64_t index,
                             const struct choice_candidate *candidates)
{
    struct bytes_source *self = (struct bytes_source *)source;
    unsigned number;

    (void)kind;
    (void)candidates;
    if (index == 0) {
        self->next = 0;
    }
    number = bytes_take(self);
    if (n > 256) {
        number |= bytes_take(self) << 8;
    }
    return number % n;
}

static void bytes_free(struct choice_source *source)
{
    struct bytes_source *self = (struct bytes_source *)source;

    g_free(self->bytes);
    g_free(self);
}

struct choice_source *choice_source_bytes(const void *bytes, size_t count)
{
    static const struct choice_source_ops ops = {
        .choose = bytes_choose,
        .free = bytes_free,
    };
    struct bytes_source *self = g_new0(struct bytes_source, 1);

    self->base.ops = &ops;
    self->bytes = g_memdup2(bytes, count);
    self->count = count;
    return &self->base;
}

/* --- recorded --- */

struct recorded_source {
    struct choice_source base;
    bool strict;
    uint64_t total;
    /*
     * Entries looked up by index (all when strict, else those without an
     * ordinal), then those of each kind by ordinal; each part sorted.
     */
    struct choice_entry *entries;
    size_t first[CHOICE_KINDS + 2]; /* part 0: by index, 1 + kind: by kind */
    size_t next; /* in part 0 */
    char *problem;
};

static unsigned part_of(const struct choice_entry *entry, bool strict)
{
    return strict || !entry->ordinal ? 0 : 1u + entry->kind;
}

static int by_index(const void *a, const void *b)
{
    const struct choice_entry *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

/* Place and ordinal as one number to sort and search by. */
static uint64_t key_of(unsigned place, uint32_t ordinal)
{
    return (uint64_t)place << 32 | ordinal;
}

static int by_ordinal(const void *a, const void *b)
{
    const struct choice_entry *x = a, *y = b;
    uint64_t x_key = key_of(x->place, x->ordinal);
    uint64_t y_key = key_of(y->place, y->ordinal);

    return (x_key > y_key) - (x_key < y_key);
}

static void recorded_rewind(struct recorded_source *self)
{
    self->next = 0;
    g_clear_pointer(&self->problem, g_free);
}

/* The entry of this kind at this place and ordinal, or NULL. */
static const struct choice_entry *search(struct recorded_source *self,
                                         unsigned kind, uint64_t key)
{
    size_t low = self->first[1 + kind], high = self->first[2 + kind];

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct choice_entry *entry = &self->entries[middle];
        uint64_t its_key = key_of(entry->place, entry->ordinal);

        if (its_key == key) {
            return entry;
        }
        if (its_key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* The entry at this index, or NULL; indexes are asked for in order. */
static const struct choice_entry *find(struct recorded_source *self,
                                       uint64_t index)
{
    for (; self->next < self->first[1]; self->next++) {
        const struct choice_entry *entry = &self->entries[self->next];

        if (entry->index >= index) {
            return entry->index == index ? entry : NULL;
        }
    }
    return NULL;
}

static unsigned choose_strictly(struct recorded_source *self,
                                enum choice_kind kind, unsigned n,
                                uint64_t index)
{
    const struct choice_entry *entry = find(self, index);

    if (self->problem) {
        return 0;
    }
    if (index >= self->total) {
        self->problem = g_strdup_printf(
            "choice %" G_GUINT64_FORMAT " (%s, of %u) is one more than the "
            "recorded %" G_GUINT64_FORMAT,
            index, choice_kind_name(kind), n, self->total);
        return 0;
    }
    if (!entry) {
        return 0;
    }
    if (entry->kind != kind || entry->n != n) {
        self->problem = g_strdup_printf(
            "choice %" G_GUINT64_FORMAT " is %s of %u, but %s of %u was "
            "recorded",
            index, choice_kind_name(kind), n, choice_kind_name(entry->kind),
            entry->n);
        return 0;
    }
    return entry->value;
}

/* Whom the entry named, or if that is not known the place where it was. */
static unsigned fit(const struct choice_entry *entry, unsigned n,
                    const struct choice_candidate *candidates)
{
    if (!candidates || !entry->vcpu) {
        return MIN(entry->value, n - 1);
    }
    for (unsigned i = 0; i < n; i++) {
        if (candidates[i].vcpu + 1 == entry->vcpu) {
            return i;
        }
    }
    return 0;
}

static unsigned recorded_choose(struct choice_source *source,
                                enum choice_kind kind, unsigned n,
                                uint64_t index,
                                const struct choice_candidate *candidates)
{
    struct recorded_source *self = (struct recorded_source *)source;
    const struct choice_entry *entry;

    if (index == 0) {
        recorded_rewind(self);
    }
    if (self->strict) {
        return choose_strictly(self, kind, n, index);
    }
    entry = search(self, kind,
                   key_of(source->stream->place, source->stream->ordinal));
    if (!entry) {
        entry = find(self, index);
        if (!entry || entry->kind != kind) {
            return 0;
        }
    }
    return fit(entry, n, candidates);
}

static const char *recorded_problem(struct choice_source *source)
{
    return ((struct recorded_source *)source)->problem;
}

static void recorded_free(struct choice_source *source)
{
    struct recorded_source *self = (struct recorded_source *)source;

    g_free(self->entries);
    g_free(self->problem);
    g_free(self);
}

struct choice_source *choice_source_recorded(const struct choice_entry *entries,
                                             size_t count, uint64_t total,
                                             bool strict)
{
    static const struct choice_source_ops ops = {
        .choose = recorded_choose,
        .problem = recorded_problem,
        .free = recorded_free,
    };
    struct recorded_source *self = g_new0(struct recorded_source, 1);
    size_t at[CHOICE_KINDS + 1];

    self->base.ops = &ops;
    self->strict = strict;
    self->total = total;
    self->entries = g_new(struct choice_entry, count);
    for (size_t i = 0; i < count; i++) {
        self->first[part_of(&entries[i], strict) + 1]++;
    }
    for (unsigned part = 0; part <= CHOICE_KINDS; part++) {
        self->first[part + 1] += self->first[part];
    }
    memcpy(at, self->first, sizeof(at));
    for (size_t i = 0; i < count; i++) {
        self->entries[at[part_of(&entries[i], strict)]++] = entries[i];
    }
    for (unsigned part = 0; part <= CHOICE_KINDS; part++) {
        size_t first = self->first[part], n = self->first[part + 1] - first;

        if (n > 1) {
            qsort(&self->entries[first], n, sizeof(*entries),
                  part ? by_ordinal : by_index);
        }
    }
    recorded_rewind(self);
    return &self->base;
}
