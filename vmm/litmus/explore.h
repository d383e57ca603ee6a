/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All final states of a litmus test: a depth-first search over what can
 * happen, then, where that was cut off, random runs.
 *
 * Every decision is a choice of the choice stream (choice/choice.h), so a run
 * is its choices here as everywhere. See docs/LITMUS.md for what the search
 * leaves out and why nothing is lost by it.
 */
#ifndef LITMUS_EXPLORE_H
#define LITMUS_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "litmus/machine.h"

struct litmus_bounds {
    uint64_t states;      /* different ones that the search keeps */
    uint64_t seconds;     /* of the search; 0: no limit */
    uint64_t random_runs; /* where the search was cut off */
    uint64_t seed;
    /*
     * Nothing is left out: every liberty at every moment, every order of
     * instructions. For tests of the search itself.
     */
    bool naive;
};

/* What ended a search before its end. */
enum litmus_bound {
    LITMUS_UNBOUND,
    LITMUS_BOUND_STATES,
    LITMUS_BOUND_SECONDS,
    LITMUS_BOUND_DEPTH, /* some run was too long and given up */
};

#define LITMUS_BOUNDS_DEFAULT                                                  \
    {                                                                          \
        .states = 2000000, .seconds = 30, .random_runs = 20000, .seed = 1      \
    }

struct litmus_final {
    char *text;
    uint64_t runs;
    bool holds; /* the formula */
};

struct litmus_outcomes {
    GPtrArray *finals;       /* struct litmus_final *, by text */
    bool complete;           /* nothing else can be seen in this machine */
    enum litmus_bound bound; /* not complete: why */
    uint64_t runs, cut, states, steps;
    double seconds;
};

/* False and error: the machine failed. */
bool litmus_explore(struct litmus_machine *m,
                    const struct litmus_bounds *bounds,
                    struct litmus_outcomes *out, GError **error);
void litmus_outcomes_fini(struct litmus_outcomes *out);

#endif
