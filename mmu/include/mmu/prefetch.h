/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What speculation may cache: some translation that is reachable from a loaded
 * root, though nobody asked for it.
 *
 * Depends on walk.h. A function of its arguments, any thread.
 */
#ifndef MMU_PREFETCH_H
#define MMU_PREFETCH_H

#include <stdbool.h>

#include "mmu/walk.h"

/* One of 0..n-1; asked only when n is 2 or more. A larger answer counts as 0.
 */
typedef unsigned walk_pick_fn(void *opaque, unsigned n);

/*
 * Descends from the root of `half` (0: TTBR0, 1: TTBR1), at each level into
 * one of the descriptors that lead on: tables, and leaves that a walk with
 * this `mem` would translate (so AF is set, or regime.ha and cas64 can set
 * it). They are numbered by rising address, so picking 0 always gives the
 * lowest one. Reads each word of at most four tables and writes nothing, also
 * not AF: the caller walks `*out_va`, the first address of the leaf, itself.
 *
 * False, and nothing written: the half is off, or a table on the way was
 * empty, unreadable or beyond the output size. Each level is tried once, so
 * tables that form a loop end at level 3.
 */
bool walk_random_leaf(const struct regime *regime, const struct walk_mem *mem,
                      unsigned half, walk_pick_fn *pick, void *opaque,
                      gva_t *out_va);

#endif
