/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the passes of minimize() share. */
#ifndef CHOICE_MINIMIZE_PRIV_H
#define CHOICE_MINIMIZE_PRIV_H

#include "choice/minimize.h"
#include "choice/prng.h"

#define MINIMIZE_VCPUS_MAX 512u

struct minimize_cost {
    uint64_t preemptions, entries, steps, values;
};

struct minimizer {
    struct prng prng; /* of guesses: always the same */
    const struct minimize_ops *ops;
    void *opaque;
    struct minimize_result *out;
    const char *pass;
    GArray *entries; /* of the best run */
    uint64_t total;
    struct minimize_cost cost;
    uint64_t without[8];
    GHashTable *tried; /* digests of candidates: runs are repeatable */
};

static inline struct choice_entry *minimize_entry(const GArray *entries,
                                                  guint i)
{
    return &g_array_index(entries, struct choice_entry, i);
}

/*
 * Runs a candidate, and adopts what it did if that is better. fewer_vcpus: not
 * more preemptions is good enough. Frees candidate. last: if not NULL, becomes
 * the highest ordinal that an operation left out had in the run, whatever came
 * of it, or 0.
 */
bool minimize_try_all(struct minimizer *m, GArray *candidate,
                      const uint64_t *without, bool fewer_vcpus,
                      uint64_t *last);
/* The same with the vCPUs that there are. */
bool minimize_try(struct minimizer *m, GArray *candidate);
/* A candidate to begin with: the entries of the best run. */
GArray *minimize_copy(const struct minimizer *m);

/* Passes over vCPUs and their slices: did they make the run better? */
bool minimize_drop_vcpus(struct minimizer *m);
bool minimize_merge_slices(struct minimizer *m);
bool minimize_slide(struct minimizer *m);
bool minimize_shorten(struct minimizer *m);

#endif
