/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What can happen next in a litmus machine, and making it happen; the
 * explorer (explore.c) chooses.
 */
#ifndef LITMUS_EXPLORE_PRIV_H
#define LITMUS_EXPLORE_PRIV_H

#include "choice/choice.h"
#include "litmus/machine.h"

struct search;

#define EXPLORE_OWED_MAX 16u /* TLBIs of one vCPU among which one is chosen */
/*
 * For each thread a step, a store that begins and TLBIs, and in the naive
 * search a fill and a loss of each page; for each page what becomes visible.
 */
#define EXPLORE_CANDIDATES                                                     \
    (LITMUS_THREADS_MAX * (2 + EXPLORE_OWED_MAX + 2 * LITMUS_VARS_MAX) +       \
     3 * LITMUS_VARS_MAX)

struct explorer {
    struct litmus_machine *m;
    struct choice_stream stream;
    struct search *search; /* NULL: random runs */
    GHashTable *seen;      /* struct litmus_hash */
    GHashTable *finals;    /* text -> struct litmus_final */
    /* Variables that each thread may access, a bit each. */
    uint64_t reach[LITMUS_THREADS_MAX];
    bool reach_grew;
    int stored_by, stored; /* the latest step was a store to this descriptor */
    uint64_t runs, cut, steps;
    bool too_long; /* a run was given up */
    bool naive;
};

/*
 * Threads that only compute do so at once, and what need not wait shows. False:
 * given up, or failed.
 */
bool explore_run_local(struct explorer *e);
/*
 * A step of each thread, then liberties; room for EXPLORE_CANDIDATES. 0: the
 * end, after which come explore_settle()'s choices.
 */
unsigned explore_gather(struct explorer *e, struct choice_candidate *can);
/* False: the machine failed. */
bool explore_happen(struct explorer *e, const struct choice_candidate *what);
void explore_settle(struct explorer *e);

#endif
