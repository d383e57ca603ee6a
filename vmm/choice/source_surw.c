/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * surw, selectively uniform random walk (Zhao et al., ASPLOS 2025): all orders
 * of the interesting events are about equally likely, however many others lie
 * between. One vCPU is intended to do the next interesting event, drawn in
 * proportion to how many it has left; until it does, the others go on only
 * with uninteresting ones. How many there are is learned from the runs before.
 */
#include "choice/source_priv.h"

/*
 * Picks without an interesting event after which the intention is given up:
 * the estimate was wrong, or the vCPU computes.
 */
#define SURW_PATIENCE 256u
#define NOBODY UINT32_MAX

struct surw_source {
    struct choice_source base;
    uint64_t seed;
    struct prng prng, liberties;
    struct fair fair;
    uint64_t estimate[SOURCE_VCPUS]; /* interesting events of a run */
    uint64_t left[SOURCE_VCPUS];     /* the rest of that */
    uint64_t seen[SOURCE_VCPUS];     /* interesting events of this run */
    uint32_t intended;
    unsigned idle; /* picks since the last interesting event */
};

static bool interesting(enum choice_event event)
{
    switch (event) {
    case CHOICE_EVENT_PTE_STORE:
    case CHOICE_EVENT_TLBI:
    case CHOICE_EVENT_DSB:
    case CHOICE_EVENT_ROOT:
    case CHOICE_EVENT_IPI:
    case CHOICE_EVENT_FAULT:
        return true;
    default:
        return false;
    }
}

/* One more event than estimated counts as one. */
static uint64_t weight(const struct surw_source *self,
                       const struct choice_candidate *candidate)
{
    uint64_t left = self->left[source_slot(candidate->vcpu)];

    return left ? left : interesting(candidate->event);
}

static void intend(struct surw_source *self,
                   const struct choice_candidate *candidates, unsigned n)
{
    uint64_t sum = 0, at;

    for (unsigned i = 0; i < n; i++) {
        sum += weight(self, &candidates[i]);
    }
    self->intended = NOBODY;
    if (!sum) {
        return;
    }
    at = prng_below(&self->prng, sum);
    for (unsigned i = 0; i < n; i++) {
        uint64_t w = weight(self, &candidates[i]);

        if (at < w) {
            self->intended = candidates[i].vcpu;
            return;
        }
        at -= w;
    }
}

/* Those that may go on: not an interesting event of another than intended. */
static unsigned eligible(const struct surw_source *self,
                         const struct choice_candidate *candidates, unsigned n,
                         uint16_t options[CHOICE_MAX])
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct choice_candidate *candidate = &candidates[i];

        if (fair_allows(&self->fair, candidate) &&
            (candidate->vcpu == self->intended ||
             !interesting(candidate->event))) {
            options[count++] = i;
        }
    }
    return count;
}

static bool runs_among(uint32_t vcpu, const struct choice_candidate *candidates,
                       unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (candidates[i].vcpu == vcpu) {
            return true;
        }
    }
    return false;
}

static void give_up(struct surw_source *self,
                    const struct choice_candidate *candidates, unsigned n)
{
    if (self->intended != NOBODY) {
        self->left[source_slot(self->intended)] = 0;
    }
    self->idle = 0;
    intend(self, candidates, n);
}

static void picked(struct surw_source *self,
                   const struct choice_candidate *candidate)
{
    unsigned slot = source_slot(candidate->vcpu);

    fair_picked(&self->fair, candidate);
    if (!interesting(candidate->event)) {
        self->idle++;
        return;
    }
    self->idle = 0;
    self->seen[slot]++;
    if (self->left[slot]) {
        self->left[slot]--;
    }
    self->intended = NOBODY;
}

static unsigned surw_choose(struct choice_source *source, enum choice_kind kind,
                            unsigned n, uint64_t index,
                            const struct choice_candidate *candidates)
{
    struct surw_source *self = (struct surw_source *)source;
    uint16_t options[CHOICE_MAX];
    unsigned count, value;

    (void)index;
    if (kind != CHOICE_vcpu) {
        return source_draw(&self->liberties, kind, n);
    }
    if (self->idle >= SURW_PATIENCE) {
        give_up(self, candidates, n);
    } else if (self->intended == NOBODY ||
               !runs_among(self->intended, candidates, n)) {
        intend(self, candidates, n);
    }
    count = eligible(self, candidates, n, options);
    if (!count) {
        /* The intended one waits, and perhaps for one of the held ones. */
        count = fair_options(&self->fair, candidates, n, options);
    }
    value = options[prng_below(&self->prng, count)];
    picked(self, &candidates[value]);
    return value;
}

static void begin(struct surw_source *self)
{
    prng_seed(&self->prng, self->seed);
    prng_seed(&self->liberties, ~self->seed);
    self->fair = (struct fair){0};
    self->intended = NOBODY;
    self->idle = 0;
    for (unsigned i = 0; i < SOURCE_VCPUS; i++) {
        uint64_t old = self->estimate[i];

        /*
         * What a vCPU did alone was no choice and is not in seen, so that is
         * right for all but the last one of each run: the largest number is
         * the best, but forgotten slowly where runs differ.
         */
        self->estimate[i] = MAX(self->seen[i], old - old / 16);
        self->left[i] = self->estimate[i];
        self->seen[i] = 0;
    }
}

static bool surw_next_run(struct choice_source *source)
{
    struct surw_source *self = (struct surw_source *)source;

    self->seed++;
    begin(self);
    return true;
}

static void surw_free(struct choice_source *source)
{
    g_free(source);
}

struct choice_source *source_surw_new(uint64_t seed)
{
    static const struct choice_source_ops ops = {
        .choose = surw_choose,
        .next_run = surw_next_run,
        .free = surw_free,
    };
    struct surw_source *self = g_new0(struct surw_source, 1);

    self->base.ops = &ops;
    self->seed = seed;
    begin(self);
    return &self->base;
}
