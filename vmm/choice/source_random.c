/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random walks: `random` stays with the plain vCPU three times of four, `chaos`
 * is plainer but starves one vCPU for long from time to time, which is what
 * rr's chaos mode found to work.
 */
#include "choice/source_priv.h"

/* Odds of the plain vCPU, of 256. */
#define RANDOM_STAY 192
#define CHAOS_STAY 224

/* Picks for which a vCPU starves: 2^4 to 2^14; the pause is four times that. */
#define CHAOS_SHORTEST 4
#define CHAOS_LONGEST 14
#define CHAOS_PAUSES 4

struct random_source {
    struct choice_source base;
    uint64_t seed;
    struct prng prng;
    struct fair fair;
    /* chaos: */
    uint64_t picks, change; /* at pick number `change`, begin or end */
    uint64_t length;        /* of the current hunger or pause */
    bool starving;
    uint32_t victim;
};

static unsigned walk(struct random_source *self, unsigned stay,
                     const struct choice_candidate *candidates, unsigned n)
{
    uint64_t r = prng_next(&self->prng);

    if (candidates[0].event == CHOICE_EVENT_SPIN) {
        return source_scale(r >> 8, n);
    }
    return (r & 255) < stay ? 0 : 1 + source_scale(r >> 8, n - 1);
}

static unsigned random_choose(struct choice_source *source,
                              enum choice_kind kind, unsigned n, uint64_t index,
                              const struct choice_candidate *candidates)
{
    struct random_source *self = (struct random_source *)source;
    unsigned value;

    (void)index;
    if (kind != CHOICE_vcpu) {
        return source_draw(&self->prng, kind, n);
    }
    value = walk(self, RANDOM_STAY, candidates, n);
    value = fair_amend(&self->fair, &self->prng, candidates, n, value);
    fair_picked(&self->fair, &candidates[value]);
    return value;
}

/* Small lengths as likely as large ones. */
static uint64_t draw_length(struct random_source *self)
{
    return UINT64_C(1) << (CHAOS_SHORTEST +
                           prng_below(&self->prng,
                                      CHAOS_LONGEST - CHAOS_SHORTEST + 1));
}

/*
 * The victim runs only if all others wait, and those that may spin once more
 * have done so: it may be the one that they wait for.
 */
static unsigned starve(struct random_source *self,
                       const struct choice_candidate *candidates, unsigned n,
                       unsigned value)
{
    uint16_t options[CHOICE_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        if (candidates[i].vcpu != self->victim &&
            fair_allows(&self->fair, &candidates[i])) {
            if (i == value) {
                return value;
            }
            options[count++] = i;
        }
    }
    return count ? options[prng_below(&self->prng, count)] : value;
}

static unsigned chaos_choose(struct choice_source *source,
                             enum choice_kind kind, unsigned n, uint64_t index,
                             const struct choice_candidate *candidates)
{
    struct random_source *self = (struct random_source *)source;
    unsigned value;

    (void)index;
    if (kind != CHOICE_vcpu) {
        return source_draw(&self->prng, kind, n);
    }
    if (self->picks++ == self->change) {
        self->starving = !self->starving;
        if (self->starving) {
            self->length = draw_length(self);
            self->victim = candidates[prng_below(&self->prng, n)].vcpu;
        } else {
            self->length *= CHAOS_PAUSES;
        }
        self->change += self->length;
    }
    value = walk(self, CHAOS_STAY, candidates, n);
    if (self->starving) {
        value = starve(self, candidates, n, value);
    }
    value = fair_amend(&self->fair, &self->prng, candidates, n, value);
    fair_picked(&self->fair, &candidates[value]);
    return value;
}

static void begin(struct random_source *self)
{
    prng_seed(&self->prng, self->seed);
    self->fair = (struct fair){0};
    self->picks = 0;
    self->starving = false;
    self->change = prng_below(&self->prng, 4u << CHAOS_SHORTEST);
}

static bool random_next_run(struct choice_source *source)
{
    struct random_source *self = (struct random_source *)source;

    self->seed++;
    begin(self);
    return true;
}

static void random_free(struct choice_source *source)
{
    g_free(source);
}

static struct choice_source *source_new(const struct choice_source_ops *ops,
                                        uint64_t seed)
{
    struct random_source *self = g_new0(struct random_source, 1);

    self->base.ops = ops;
    self->seed = seed;
    begin(self);
    return &self->base;
}

struct choice_source *source_random_new(uint64_t seed)
{
    static const struct choice_source_ops ops = {
        .choose = random_choose,
        .next_run = random_next_run,
        .free = random_free,
    };

    return source_new(&ops, seed);
}

struct choice_source *source_chaos_new(uint64_t seed)
{
    static const struct choice_source_ops ops = {
        .choose = chaos_choose,
        .next_run = random_next_run,
        .free = random_free,
    };

    return source_new(&ops, seed);
}
