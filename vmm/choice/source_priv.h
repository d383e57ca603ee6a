/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the strategies share. Not for users of sources. */
#ifndef CHOICE_SOURCE_PRIV_H
#define CHOICE_SOURCE_PRIV_H

#include "choice/choice.h"
#include "choice/prng.h"
#include "choice/source.h"

/* Tables by vCPU have this size; a number outside wraps around. */
#define SOURCE_VCPUS CHOICE_MAX

static inline unsigned source_slot(uint32_t vcpu)
{
    return vcpu % SOURCE_VCPUS;
}

/* 0..n-1 from 56 random bits, of which it uses 48: n * 2^48 fits. */
static inline unsigned source_scale(uint64_t bits56, unsigned n)
{
    return (unsigned)((bits56 >> 8) * n >> 48);
}

/*
 * Draws any kind but vcpu with the documented odds of 0, and evenly among the
 * others. One number of the PRNG each.
 */
unsigned source_draw(struct prng *prng, enum choice_kind kind, unsigned n);

/*
 * Fairness: a vCPU that spins may do so again only after another one did
 * something else, as long as there is another one that could. So a strategy
 * that lets a waiting vCPU run never hides the one that it waits for.
 */
struct fair {
    uint64_t total;              /* picks that did not spin */
    uint64_t own[SOURCE_VCPUS];  /* those of each vCPU */
    uint64_t mark[SOURCE_VCPUS]; /* 1 + the others' at its last spin, or 0 */
};

static inline bool fair_allows(const struct fair *fair,
                               const struct choice_candidate *candidate)
{
    unsigned slot = source_slot(candidate->vcpu);

    return candidate->event != CHOICE_EVENT_SPIN ||
           fair->total - fair->own[slot] + 1 != fair->mark[slot];
}

static inline void fair_picked(struct fair *fair,
                               const struct choice_candidate *candidate)
{
    unsigned slot = source_slot(candidate->vcpu);

    if (candidate->event == CHOICE_EVENT_SPIN) {
        fair->mark[slot] = fair->total - fair->own[slot] + 1;
    } else {
        fair->total++;
        fair->own[slot]++;
    }
}

/* The allowed values, or all if there are none; returns how many. */
unsigned fair_options(const struct fair *fair,
                      const struct choice_candidate *candidates, unsigned n,
                      uint16_t options[CHOICE_MAX]);
/* value if that is allowed, or one of the allowed ones at random. */
unsigned fair_amend(const struct fair *fair, struct prng *prng,
                    const struct choice_candidate *candidates, unsigned n,
                    unsigned value);

struct choice_source *source_random_new(uint64_t seed);
struct choice_source *source_chaos_new(uint64_t seed);
struct choice_source *source_pct_new(uint64_t seed, unsigned depth);
struct choice_source *source_pos_new(uint64_t seed);
struct choice_source *source_surw_new(uint64_t seed);
struct choice_source *source_dfs_new(void);
struct choice_source *source_icb_new(unsigned bound);

#endif
