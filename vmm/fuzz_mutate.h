/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mutations of schedules. They work on the choices that were not plain, each
 * known by its place ("vCPU 2 at its 7th event"), so that a change in one
 * vCPU's schedule does not shift what was chosen for the others, as a change
 * in the middle of a byte string would. Pure.
 */
#ifndef VMM_FUZZ_MUTATE_H
#define VMM_FUZZ_MUTATE_H

#include <stdint.h>
#include <glib.h>

#include "choice/choice.h"
#include "choice/prng.h"

struct fuzz_mutation {
    GArray *entries; /* struct choice_entry */
    uint64_t tail;   /* from this choice on a strategy answers; or none */
    char names[64];  /* "Flip-Splice-", as libFuzzer writes them */
    unsigned count;
};

#define FUZZ_NO_TAIL UINT64_MAX

/*
 * One to four changes of a; b (may be a itself) is spliced in. The caller
 * frees out->entries.
 */
void fuzz_mutate(const GArray *a, const GArray *b, unsigned vcpus,
                 struct prng *prng, struct fuzz_mutation *out);
/* What makes such a run; `strategy` is borrowed, and asked from tail on. */
struct choice_source *fuzz_mutation_source(const struct fuzz_mutation *m,
                                           struct choice_source *strategy);

#endif
