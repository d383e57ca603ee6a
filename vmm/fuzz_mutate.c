/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutations of schedules; see fuzz_mutate.h. */
#include "fuzz_mutate.h"

#include <string.h>

#include "choice/source.h"

/* Changes of one input at most. */
#define STACKED 4u
/* Entries taken out or repeated at once, at most. */
#define BLOCK 16u
#define REPEATS 4u
#define SHIFT 4u

static struct choice_entry *at(const GArray *entries, guint i)
{
    return &g_array_index(entries, struct choice_entry, i);
}

static guint pick(const GArray *entries, struct prng *prng)
{
    return (guint)prng_below(prng, entries->len);
}

static void drop(GArray *entries, struct prng *prng)
{
    guint size = 1 + (guint)prng_below(prng, MIN(BLOCK, entries->len));
    guint begin = (guint)prng_below(prng, entries->len - size + 1);

    g_array_remove_range(entries, begin, size);
}

/* Another value, or for a switch another vCPU. */
static void flip(GArray *entries, unsigned vcpus, struct prng *prng)
{
    struct choice_entry *e = at(entries, pick(entries, prng));

    if (e->kind == CHOICE_vcpu) {
        e->vcpu = (uint16_t)(1 + prng_below(prng, vcpus));
    } else {
        e->value = (uint16_t)(1 + prng_below(prng, e->n - 1u));
    }
}

/* The same, a little earlier or later at its place: a slice's length. */
static void slide(GArray *entries, struct prng *prng)
{
    struct choice_entry *e = at(entries, pick(entries, prng));
    uint32_t by = 1 + (uint32_t)prng_below(prng, SHIFT);

    if (prng_below(prng, 2) && e->ordinal > by) {
        e->ordinal -= by;
    } else {
        e->ordinal += by;
    }
}

/* A choice that was made once is made again near by. */
static void insert(GArray *entries, unsigned vcpus, struct prng *prng)
{
    struct choice_entry e = *at(entries, pick(entries, prng));
    uint32_t by = 1 + (uint32_t)prng_below(prng, 8 * SHIFT);

    e.ordinal =
        prng_below(prng, 2) && e.ordinal > by ? e.ordinal - by : e.ordinal + by;
    if (e.kind == CHOICE_vcpu) {
        e.vcpu = (uint16_t)(1 + prng_below(prng, vcpus));
    }
    g_array_append_val(entries, e);
}

/* A preemption happens at the next points of that place, too. */
static void repeat(GArray *entries, struct prng *prng)
{
    struct choice_entry e = *at(entries, pick(entries, prng));
    uint64_t times = 1 + prng_below(prng, REPEATS);

    for (uint64_t i = 0; i < times; i++) {
        e.ordinal++;
        g_array_append_val(entries, e);
    }
}

/* What one half of the places did in a, and the other half in b. */
static void splice_places(GArray *entries, const GArray *b, struct prng *prng)
{
    uint64_t mask = prng_next(prng);
    guint kept = 0;

    for (guint i = 0; i < entries->len; i++) {
        if (mask >> at(entries, i)->place % 64 & 1) {
            *at(entries, kept++) = *at(entries, i);
        }
    }
    g_array_set_size(entries, kept);
    for (guint i = 0; i < b->len; i++) {
        if (!(mask >> at(b, i)->place % 64 & 1)) {
            g_array_append_val(entries, *at(b, i));
        }
    }
}

/* a's beginning and b's end. */
static void splice_time(GArray *entries, const GArray *b, struct prng *prng)
{
    uint64_t cut = at(entries, pick(entries, prng))->index;
    guint kept = 0;

    for (guint i = 0; i < entries->len; i++) {
        if (at(entries, i)->index < cut) {
            *at(entries, kept++) = *at(entries, i);
        }
    }
    g_array_set_size(entries, kept);
    for (guint i = 0; i < b->len; i++) {
        if (at(b, i)->index >= cut) {
            g_array_append_val(entries, *at(b, i));
        }
    }
}

static const char *change(GArray *entries, const GArray *b, unsigned vcpus,
                          struct prng *prng, uint64_t *tail)
{
    if (entries->len == 0) {
        *tail = 0;
        return "Tail";
    }
    switch (prng_below(prng, 10)) {
    case 0:
        drop(entries, prng);
        return "Drop";
    case 1:
    case 2:
        insert(entries, vcpus, prng);
        return "Insert";
    case 3:
    case 4:
        flip(entries, vcpus, prng);
        return "Flip";
    case 5:
    case 6:
        slide(entries, prng);
        return "Slide";
    case 7:
        repeat(entries, prng);
        return "Repeat";
    case 8:
        if (prng_below(prng, 2)) {
            splice_places(entries, b, prng);
        } else {
            splice_time(entries, b, prng);
        }
        return "Splice";
    default:
        *tail = at(entries, pick(entries, prng))->index;
        return "Tail";
    }
}

void fuzz_mutate(const GArray *a, const GArray *b, unsigned vcpus,
                 struct prng *prng, struct fuzz_mutation *out)
{
    *out = (struct fuzz_mutation){
        .tail = FUZZ_NO_TAIL,
        .count = 1 + (unsigned)prng_below(prng, STACKED),
    };
    out->entries = g_array_sized_new(FALSE, FALSE, sizeof(struct choice_entry),
                                     a->len + 8);
    if (a->len) {
        g_array_append_vals(out->entries, a->data, a->len);
    }
    for (unsigned i = 0; i < out->count; i++) {
        g_strlcat(out->names, change(out->entries, b, vcpus, prng, &out->tail),
                  sizeof(out->names));
        g_strlcat(out->names, "-", sizeof(out->names));
    }
}

/* --- the run --- */

struct mutation_source {
    struct choice_source base;
    struct choice_source *kept, *strategy;
    uint64_t tail;
};

static unsigned mutation_choose(struct choice_source *source,
                                enum choice_kind kind, unsigned n,
                                uint64_t index,
                                const struct choice_candidate *candidates)
{
    struct mutation_source *self = (struct mutation_source *)source;
    struct choice_source *whose =
        index < self->tail ? self->kept : self->strategy;

    whose->stream = source->stream;
    return whose->ops->choose(whose, kind, n, index, candidates);
}

static void mutation_free(struct choice_source *source)
{
    struct mutation_source *self = (struct mutation_source *)source;

    choice_source_free(self->kept);
    g_free(self);
}

struct choice_source *fuzz_mutation_source(const struct fuzz_mutation *m,
                                           struct choice_source *strategy)
{
    static const struct choice_source_ops ops = {
        .choose = mutation_choose,
        .free = mutation_free,
    };
    struct mutation_source *self = g_new0(struct mutation_source, 1);

    self->base.ops = &ops;
    self->kept = choice_source_recorded(
        (const struct choice_entry *)(void *)m->entries->data, m->entries->len,
        UINT64_MAX, false);
    self->strategy = strategy;
    self->tail = strategy ? m->tail : FUZZ_NO_TAIL;
    return &self->base;
}
