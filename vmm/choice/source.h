/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sources of choices. Each `new` gives a source that choice_source_free()
 * ends; seeds are any 64-bit number. See docs/DETERMINISM.md for what each
 * strategy does and where it is from.
 */
#ifndef CHOICE_SOURCE_H
#define CHOICE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>

#include "choice/choice.h"

/* Always 0: the plain run. */
struct choice_source *choice_source_plain(void);
/*
 * Bytes in, choices out: the value is a byte modulo n (two bytes, little
 * endian, where n > 256), in the order of asking; 0 when they are used up.
 */
struct choice_source *choice_source_bytes(const void *bytes, size_t count);
/*
 * What was recorded, entries sorted by index. strict: a choice whose kind or
 * alternatives differ from the entry at its index, or that the file does not
 * have (index >= total), is a problem(), and the run goes on plainly. Otherwise
 * entries are found by (kind, ordinal within the kind) and cut to n, which is
 * what shrinking needs; one that does not know its ordinal, by index and kind.
 * There a vCPU choice that knows whom it named names that one again, at whatever
 * place, or 0 if it cannot run. The entries are copied.
 */
struct choice_source *choice_source_recorded(const struct choice_entry *entries,
                                             size_t count, uint64_t total,
                                             bool strict);

/*
 * Strategies, by text: plain, random, pct[:d], pos, surw, icb[:k], dfs, chaos. The
 * vcpu choices are what they differ in; all but icb and dfs draw the hardware
 * liberties from the PRNG. NULL and error (a usage text): no such strategy, or
 * its number is out of range.
 *
 * Run i of a source that next_run() moves on draws what one with seed + i
 * draws; pct and surw also use what they learned of the runs before.
 */
struct choice_source *choice_strategy_new(const char *text, uint64_t seed,
                                          GError **error);
/* A line for each strategy, for help; NULL-terminated pairs name, text. */
const char *const *choice_strategies(void);

/* How far an exhaustive strategy is. */
struct choice_search {
    uint64_t runs;  /* different runs finished, as of the last next_run() */
    unsigned bound; /* icb: preemptions of the runs it is at; dfs: 0 */
    bool complete;  /* all within the bound were run */
};

/* Nodes of one run, and runs that icb remembers, at most. */
#define CHOICE_SEARCH_DEPTH 1000000u
#define CHOICE_SEARCH_RUNS 16000000u

/* False: the source is neither icb nor dfs. */
bool choice_search_status(const struct choice_source *source,
                          struct choice_search *out);

#endif
