/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modelled TLB of one vCPU and its walk cache.
 *
 * Set-associative; pages of 4 KiB, 2 MiB and 1 GiB share the sets. Entries of
 * several sizes, and a global beside a non-global one, may exist for one
 * address, as in hardware when break-before-make was skipped; the smallest
 * page wins, then the lower way. Not synchronised: one owner thread at a time.
 * Memory is allocated in tlb_new() and in the first tlb_checkpoint().
 */
#ifndef MMU_TLB_H
#define MMU_TLB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mmu/addr.h"
#include "mmu/regime.h"
#include "mmu/tlbi.h"
#include "mmu/walk.h"

#define TLB_MAX_SETS 65536u
#define TLB_MAX_WAYS 64u
#define TLB_MAX_WALK_CACHE 1024u

enum tlb_replacement {
    TLB_LRU = 0,
    TLB_FIFO,
    TLB_RANDOM, /* deterministic, from the seed */
};

struct tlb_config {
    unsigned sets; /* power of two, 1..TLB_MAX_SETS */
    unsigned ways; /* 1..TLB_MAX_WAYS */
    enum tlb_replacement replacement;
    unsigned walk_cache_entries; /* 0: none; fully associative, LRU */
    uint64_t seed;
};

struct tlb_entry {
    gva_t va;      /* canonical, aligned to the page */
    uint16_t asid; /* meaningless when t.global */
    bool valid;
    struct translation t;
    uint64_t owner_tag; /* 0 at insertion; for the owner's use */
};

/*
 * A cached table descriptor: where walks of addresses below `va` go on. Always
 * tagged with the ASID, even for the high half: table entries have no nG bit,
 * and operations by ASID match them as if it were set.
 */
struct walk_cache_entry {
    gva_t va;           /* aligned to what one descriptor of `level` spans */
    gpa_t next_table;   /* of level + 1 */
    uint64_t hierarchy; /* DESC_*_TABLE bits so far; 0 under HPD */
    uint16_t asid;
    uint8_t level; /* of the descriptor, 0..2 */
    bool valid;
};

struct tlb_counters {
    uint64_t lookups, hits, inserts, evictions, invalidated;
    uint64_t table_lookups, table_hits, table_inserts, table_evictions;
    uint64_t table_invalidated;
};

struct tlb;

/* NULL if the configuration is usable, else what is wrong with it. */
const char *tlb_config_problem(const struct tlb_config *config);
/* NULL for an unusable configuration or when memory is short. */
struct tlb *tlb_new(const struct tlb_config *config);
void tlb_free(struct tlb *tlb);

/*
 * Makes `to` equal to `from` (entries, replacement state, walk cache,
 * counters). False, and nothing done, when the geometries differ.
 */
bool tlb_copy(struct tlb *to, const struct tlb *from);

/*
 * A checkpoint remembers the present contents: entries, replacement state,
 * walk cache. A rollback makes them so again, as often as wanted, and costs
 * only what changed since. Counters go on: they tell what happened. There is
 * one checkpoint; a second one replaces it, and copies only what changed. The
 * first allocates; false, and no checkpoint, when memory is short.
 *
 * Entries that come back have owner_tag 0. One that was neither changed nor
 * looked up keeps the tag that its owner gave it: tags must not be used again.
 */
bool tlb_checkpoint(struct tlb *tlb);
/* Nothing without a checkpoint. */
void tlb_rollback(struct tlb *tlb);

/*
 * The entry that translates `va` (canonical) for `asid`, or NULL. Updates
 * replacement state and counters; the pointer is good until the next insert
 * or invalidation. The owner may change owner_tag through it, nothing else.
 */
struct tlb_entry *tlb_lookup(struct tlb *tlb, gva_t va, uint16_t asid);

/* The same answer without touching any state. */
const struct tlb_entry *tlb_peek(const struct tlb *tlb, gva_t va,
                                 uint16_t asid);

/*
 * All entries that translate `va` (canonical) for `asid`: several sizes, and
 * of each a global beside a non-global one. In the order in which tlb_lookup()
 * prefers them, its own answer first; at most `max`, of which
 * TLB_MATCHING_MAX are always enough. Touches no state. Returns how many were
 * written; pointers as of tlb_lookup().
 */
#define TLB_MATCHING_MAX 6u
unsigned tlb_matching(struct tlb *tlb, gva_t va, uint16_t asid,
                      struct tlb_entry **out, unsigned max);

/*
 * Adds the translation of `va` (canonical). An entry of the same page, size
 * and tag is replaced, otherwise a free way is used or a victim chosen.
 * `out_evicted` (may be NULL) is always written; .valid tells whether anything
 * left. Returns NULL, and inserts nothing, for what a TLB cannot hold: a flat
 * translation or a non-canonical address.
 */
struct tlb_entry *tlb_insert(struct tlb *tlb, gva_t va, uint16_t asid,
                             const struct translation *t,
                             struct tlb_entry *out_evicted);

/* Called for each entry that leaves; the entry is a copy. */
typedef void tlb_dropped_fn(void *opaque, const struct tlb_entry *entry);

/*
 * Removes what the operation names and nothing else, from the TLB and, by its
 * own rules, from the walk cache. `dropped` may be NULL. Returns the number of
 * TLB entries removed (tables are counted in the counters only).
 */
size_t tlb_invalidate(struct tlb *tlb, const struct tlbi_op *op,
                      tlb_dropped_fn *dropped, void *opaque);

/* Removes the entry that tlb_lookup() or tlb_foreach() gave. */
void tlb_drop(struct tlb *tlb, struct tlb_entry *entry);

size_t tlb_occupancy(const struct tlb *tlb);
size_t tlb_capacity(const struct tlb *tlb);
/* In order of set and way. False from `each` stops. */
void tlb_foreach(struct tlb *tlb,
                 bool (*each)(void *opaque, struct tlb_entry *entry),
                 void *opaque);
const struct tlb_counters *tlb_counters(const struct tlb *tlb);

/* NULL if the TLB was made without one. */
struct walk_cache *tlb_walk_cache(struct tlb *tlb);

/* --- the walk cache; used by the walker, the TLBIs and tests --- */

/* The deepest entry for `va` (canonical) and `asid`, or NULL. */
const struct walk_cache_entry *walk_cache_lookup(struct walk_cache *wc,
                                                 gva_t va, uint16_t asid);
/* `entry->va` need not be aligned. */
void walk_cache_insert(struct walk_cache *wc,
                       const struct walk_cache_entry *entry);
size_t walk_cache_occupancy(const struct walk_cache *wc);
void walk_cache_foreach(const struct walk_cache *wc,
                        bool (*each)(void *opaque,
                                     const struct walk_cache_entry *entry),
                        void *opaque);

#endif
