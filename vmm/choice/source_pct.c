/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pct:d, probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010):
 * vCPUs have random priorities and the highest one runs; at d-1 random picks
 * the one that would run falls below all initial priorities. A bug of depth d
 * among n vCPUs and k picks is found with probability 1 / (n k^(d-1)) at least.
 *
 * Liberties come from a second PRNG, so that the priorities of a seed do not
 * depend on how many of them there are.
 */
#include <stdlib.h>

#include "choice/source_priv.h"

#define PCT_DEPTH_MAX 100u
/* Picks of a run nobody has seen yet. */
#define PCT_LENGTH 1000u
/*
 * A vCPU picked so often in a row while others could run waits for them
 * without saying so, by polling: it is treated as if it spun.
 */
#define PCT_STREAK 4096u

/*
 * Initial priorities have the top bit. Change i gives CHANGE_BASE - i, and
 * whoever spins gets ever lower numbers from SPIN_BASE down.
 */
#define INITIAL_BIT (UINT64_C(1) << 63)
#define CHANGE_BASE (UINT64_C(1) << 62)
#define SPIN_BASE (UINT64_C(1) << 61)

struct pct_source {
    struct choice_source base;
    uint64_t seed;
    unsigned depth;
    struct prng prng, liberties;
    uint64_t picks, length;
    uint64_t change[PCT_DEPTH_MAX - 1]; /* pick numbers, rising */
    unsigned changed;                   /* how many are behind us */
    uint64_t floor;                     /* the last priority of a spinner */
    uint64_t priority[SOURCE_VCPUS];    /* 0: not seen yet */
    uint32_t last;
    unsigned streak;
};

static uint64_t *priority_of(struct pct_source *self,
                             const struct choice_candidate *candidate)
{
    uint64_t *priority = &self->priority[source_slot(candidate->vcpu)];

    if (!*priority) {
        *priority = prng_next(&self->prng) | INITIAL_BIT;
    }
    return priority;
}

static unsigned highest(struct pct_source *self,
                        const struct choice_candidate *candidates, unsigned n)
{
    uint64_t best = 0;
    unsigned value = 0;

    for (unsigned i = 0; i < n; i++) {
        uint64_t priority = *priority_of(self, &candidates[i]);

        if (priority > best) {
            best = priority;
            value = i;
        }
    }
    return value;
}

/* Only the one that ran last can have come to a new event. */
static void demote_spinner(struct pct_source *self,
                           const struct choice_candidate *candidates,
                           unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t *priority = priority_of(self, &candidates[i]);

        if (candidates[i].vcpu != self->last) {
            continue;
        }
        if (candidates[i].event == CHOICE_EVENT_SPIN ||
            self->streak >= PCT_STREAK) {
            *priority = --self->floor;
            self->streak = 0;
        }
    }
}

static unsigned pct_choose(struct choice_source *source, enum choice_kind kind,
                           unsigned n, uint64_t index,
                           const struct choice_candidate *candidates)
{
    struct pct_source *self = (struct pct_source *)source;
    unsigned value;

    (void)index;
    if (kind == CHOICE_quantum) {
        return 0;
    }
    if (kind != CHOICE_vcpu) {
        return source_draw(&self->liberties, kind, n);
    }
    demote_spinner(self, candidates, n);
    value = highest(self, candidates, n);
    while (self->changed < self->depth - 1 &&
           self->change[self->changed] <= self->picks) {
        self->changed++;
        *priority_of(self, &candidates[value]) = CHANGE_BASE - self->changed;
        value = highest(self, candidates, n);
    }
    self->picks++;
    self->streak = candidates[value].vcpu == self->last ? self->streak + 1 : 1;
    self->last = candidates[value].vcpu;
    return value;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void begin(struct pct_source *self)
{
    prng_seed(&self->prng, self->seed);
    prng_seed(&self->liberties, ~self->seed);
    for (unsigned i = 0; i + 1 < self->depth; i++) {
        self->change[i] = prng_below(&self->prng, self->length);
    }
    qsort(self->change, self->depth - 1, sizeof(self->change[0]), by_value);
    for (unsigned i = 0; i < SOURCE_VCPUS; i++) {
        self->priority[i] = 0;
    }
    self->picks = 0;
    self->changed = 0;
    self->floor = SPIN_BASE;
    self->last = UINT32_MAX;
    self->streak = 0;
}

static bool pct_next_run(struct choice_source *source)
{
    struct pct_source *self = (struct pct_source *)source;

    self->length = MAX(self->picks, 1);
    self->seed++;
    begin(self);
    return true;
}

static void pct_free(struct choice_source *source)
{
    g_free(source);
}

struct choice_source *source_pct_new(uint64_t seed, unsigned depth)
{
    static const struct choice_source_ops ops = {
        .choose = pct_choose,
        .next_run = pct_next_run,
        .free = pct_free,
    };
    struct pct_source *self = g_new0(struct pct_source, 1);

    self->base.ops = &ops;
    self->seed = seed;
    self->depth = depth;
    self->length = PCT_LENGTH;
    begin(self);
    return &self->base;
}
