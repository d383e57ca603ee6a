/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pos, partial order sampling (Yuan, Yang and Gu, CAV 2018): every pending
 * event has a random priority, the highest one happens, and the events that
 * conflict with it draw again. So two orders that differ in no conflict are not
 * told apart, and each of the others has a fair chance.
 */
#include "choice/source_priv.h"

#define FRESH_BIT (UINT64_C(1) << 63)
#define SPIN_BASE (UINT64_C(1) << 62)
/* Picks that a spinning vCPU waits at the bottom before it draws again. */
#define POS_SPIN_WAIT 64u
/*
 * Picks after which everybody draws again: of vCPUs that poll with events, one
 * is always above the lowest priority, and who has that may be the one that
 * they poll for.
 */
#define POS_REDRAW 4096u

struct pos_source {
    struct choice_source base;
    uint64_t seed;
    struct prng prng, liberties;
    struct fair fair;
    uint64_t picks, floor;
    struct choice_candidate last;    /* valid if picks */
    uint64_t priority[SOURCE_VCPUS]; /* 0: not seen yet */
    uint64_t since[SOURCE_VCPUS];    /* pick at which it was drawn */
    struct choice_candidate pending[SOURCE_VCPUS]; /* for which */
};

static bool changes_memory(enum choice_event event)
{
    return event == CHOICE_EVENT_PTE_STORE || event == CHOICE_EVENT_TLBI ||
           event == CHOICE_EVENT_ATOMIC;
}

static bool orders_walks(enum choice_event event)
{
    return event == CHOICE_EVENT_TLBI || event == CHOICE_EVENT_ROOT ||
           event == CHOICE_EVENT_DSB;
}

static bool conflict(const struct choice_candidate *a,
                     const struct choice_candidate *b)
{
    if (a->object == b->object &&
        (changes_memory(a->event) || changes_memory(b->event))) {
        return true;
    }
    return (orders_walks(a->event) && b->event == CHOICE_EVENT_PTE_STORE) ||
           (orders_walks(b->event) && a->event == CHOICE_EVENT_PTE_STORE);
}

static void draw(struct pos_source *self,
                 const struct choice_candidate *candidate, bool may_wait)
{
    unsigned slot = source_slot(candidate->vcpu);

    if (may_wait && candidate->event == CHOICE_EVENT_SPIN) {
        self->priority[slot] = --self->floor;
    } else {
        self->priority[slot] = prng_next(&self->prng) | FRESH_BIT;
    }
    self->since[slot] = self->picks;
    self->pending[slot] = *candidate;
}

/*
 * It is about to do something else than when it drew: it ran, either by the
 * last choice or where there was no choice.
 */
static bool has_moved(const struct pos_source *self,
                      const struct choice_candidate *candidate)
{
    const struct choice_candidate *pending =
        &self->pending[source_slot(candidate->vcpu)];

    return (self->picks && candidate->vcpu == self->last.vcpu) ||
           candidate->event != pending->event ||
           candidate->object != pending->object;
}

/* After last happened. */
static void redraw(struct pos_source *self,
                   const struct choice_candidate *candidate)
{
    unsigned slot = source_slot(candidate->vcpu);

    if (!self->priority[slot] || has_moved(self, candidate)) {
        draw(self, candidate, true);
    } else if (candidate->event == CHOICE_EVENT_SPIN) {
        /* An atomic may be what it waits for: a lock taken or given. */
        if (self->last.event == CHOICE_EVENT_ATOMIC ||
            self->picks - self->since[slot] >= POS_SPIN_WAIT) {
            draw(self, candidate, false);
        }
    } else if (conflict(&self->last, candidate)) {
        draw(self, candidate, false);
    }
}

static unsigned pos_choose(struct choice_source *source, enum choice_kind kind,
                           unsigned n, uint64_t index,
                           const struct choice_candidate *candidates)
{
    struct pos_source *self = (struct pos_source *)source;
    uint64_t best = 0;
    unsigned value = 0;

    (void)index;
    if (kind != CHOICE_vcpu) {
        return source_draw(&self->liberties, kind, n);
    }
    for (unsigned i = 0; i < n; i++) {
        uint64_t priority;

        if (self->picks % POS_REDRAW == POS_REDRAW - 1) {
            draw(self, &candidates[i], true);
        }
        redraw(self, &candidates[i]);
        priority = self->priority[source_slot(candidates[i].vcpu)];
        if (priority > best) {
            best = priority;
            value = i;
        }
    }
    value = fair_amend(&self->fair, &self->prng, candidates, n, value);
    fair_picked(&self->fair, &candidates[value]);
    self->last = candidates[value];
    self->picks++;
    return value;
}

static void begin(struct pos_source *self)
{
    prng_seed(&self->prng, self->seed);
    prng_seed(&self->liberties, ~self->seed);
    self->fair = (struct fair){0};
    self->picks = 0;
    self->floor = SPIN_BASE;
    for (unsigned i = 0; i < SOURCE_VCPUS; i++) {
        self->priority[i] = 0;
    }
}

static bool pos_next_run(struct choice_source *source)
{
    struct pos_source *self = (struct pos_source *)source;

    self->seed++;
    begin(self);
    return true;
}

static void pos_free(struct choice_source *source)
{
    g_free(source);
}

struct choice_source *source_pos_new(uint64_t seed)
{
    static const struct choice_source_ops ops = {
        .choose = pos_choose,
        .next_run = pos_next_run,
        .free = pos_free,
    };
    struct pos_source *self = g_new0(struct pos_source, 1);

    self->base.ops = &ops;
    self->seed = seed;
    begin(self);
    return &self->base;
}
