/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk cache: table descriptors by address prefix, ASID and level.
 *
 * Fully associative, least recently used out first. Owned by a TLB, used by
 * the TLB's owner thread.
 */
#include <stdlib.h>
#include <string.h>

#include "mmu/tlb.h"
#include "dirty_priv.h"
#include "tlb_priv.h"

struct walk_cache_saved {
    unsigned used;
    uint64_t clock;
    uint64_t *tags, *stamps;
    struct walk_cache_entry *entries;
};

struct walk_cache {
    unsigned capacity;
    unsigned used; /* slots [used, capacity) have never been filled */
    uint64_t clock;
    uint64_t *tags; /* 0: free */
    uint64_t *stamps;
    struct walk_cache_entry *entries;
    struct tlb_counters *counters;
    struct walk_cache_saved *saved; /* NULL: no checkpoint */
    struct dirty_set dirty;         /* slots that differ from it, maybe more */
};

struct walk_cache *walk_cache_new(unsigned entries,
                                  struct tlb_counters *counters)
{
    struct walk_cache *wc = calloc(1, sizeof(*wc));

    if (!wc) {
        return NULL;
    }
    wc->capacity = entries;
    wc->counters = counters;
    wc->tags = calloc(entries, sizeof(*wc->tags));
    wc->stamps = calloc(entries, sizeof(*wc->stamps));
    wc->entries = calloc(entries, sizeof(*wc->entries));
    if (!wc->tags || !wc->stamps || !wc->entries) {
        walk_cache_free(wc);
        return NULL;
    }
    return wc;
}

static void saved_free(struct walk_cache *wc)
{
    if (wc->saved) {
        free(wc->saved->tags);
        free(wc->saved->stamps);
        free(wc->saved->entries);
        free(wc->saved);
        wc->saved = NULL;
    }
    dirty_fini(&wc->dirty);
}

void walk_cache_free(struct walk_cache *wc)
{
    if (wc) {
        saved_free(wc);
        free(wc->tags);
        free(wc->stamps);
        free(wc->entries);
        free(wc);
    }
}

size_t walk_cache_capacity(const struct walk_cache *wc)
{
    return wc ? wc->capacity : 0;
}

void walk_cache_copy(struct walk_cache *to, const struct walk_cache *from)
{
    to->used = from->used;
    to->clock = from->clock;
    memcpy(to->tags, from->tags, from->capacity * sizeof(*to->tags));
    memcpy(to->stamps, from->stamps, from->capacity * sizeof(*to->stamps));
    memcpy(to->entries, from->entries, from->capacity * sizeof(*to->entries));
    dirty_mark_all(&to->dirty, to->capacity);
}

static uint64_t table_tag(gva_t va, uint16_t asid, unsigned level)
{
    return tag_va(va, mmu_level_shift(level)) | tag_asid(asid) | (level + 1);
}

const struct walk_cache_entry *walk_cache_lookup(struct walk_cache *wc,
                                                 gva_t va, uint16_t asid)
{
    uint64_t want[3];
    unsigned found[3], best;

    wc->counters->table_lookups++;
    if (!tag_can_hold(va)) {
        return NULL;
    }
    for (unsigned level = 0; level < 3; level++) {
        want[level] = table_tag(va, asid, level);
        found[level] = wc->used;
    }
    /* Each tag is in one slot at most. No branches: see tlb.c, find(). */
    for (unsigned i = 0; i < wc->used; i++) {
        uint64_t tag = wc->tags[i];

        found[0] = tag == want[0] ? i : found[0];
        found[1] = tag == want[1] ? i : found[1];
        found[2] = tag == want[2] ? i : found[2];
    }
    best = found[2] < wc->used   ? found[2]
           : found[1] < wc->used ? found[1]
                                 : found[0];
    if (best == wc->used) {
        return NULL;
    }
    wc->counters->table_hits++;
    wc->stamps[best] = ++wc->clock;
    dirty_mark(&wc->dirty, best);
    return &wc->entries[best];
}

static unsigned choose_slot(struct walk_cache *wc, uint64_t tag)
{
    unsigned oldest = 0, slot = wc->capacity;

    for (unsigned i = 0; i < wc->used; i++) {
        if (wc->tags[i] == tag) {
            return i;
        }
        if (wc->tags[i] == 0) {
            slot = i;
        }
        if (wc->stamps[i] < wc->stamps[oldest]) {
            oldest = i;
        }
    }
    if (slot < wc->capacity) {
        return slot;
    }
    if (wc->used < wc->capacity) {
        return wc->used++;
    }
    wc->counters->table_evictions++;
    return oldest;
}

void walk_cache_insert(struct walk_cache *wc,
                       const struct walk_cache_entry *entry)
{
    uint64_t tag = table_tag(entry->va, entry->asid, entry->level);
    unsigned shift = mmu_level_shift(entry->level);
    unsigned slot;

    if (!tag_can_hold(entry->va) || entry->level > 2) {
        return;
    }
    slot = choose_slot(wc, tag);
    dirty_mark(&wc->dirty, slot);
    wc->tags[slot] = tag;
    wc->stamps[slot] = ++wc->clock;
    wc->entries[slot] = *entry;
    wc->entries[slot].va = entry->va >> shift << shift;
    wc->entries[slot].valid = true;
    wc->counters->table_inserts++;
}

void walk_cache_invalidate(struct walk_cache *wc, const struct tlbi_op *op)
{
    /* The commonest operations leave tables alone: do not even look. */
    if (op->last_level) {
        return;
    }
    for (unsigned i = 0; i < wc->used; i++) {
        if (wc->tags[i] && tlbi_matches_table(op, &wc->entries[i])) {
            dirty_mark(&wc->dirty, i);
            wc->tags[i] = 0;
            wc->entries[i].valid = false;
            wc->counters->table_invalidated++;
        }
    }
    if (op->kind == TLBI_ALL) {
        wc->used = 0;
    }
}

size_t walk_cache_occupancy(const struct walk_cache *wc)
{
    size_t count = 0;

    for (unsigned i = 0; i < wc->used; i++) {
        count += wc->tags[i] != 0;
    }
    return count;
}

void walk_cache_foreach(const struct walk_cache *wc,
                        bool (*each)(void *opaque,
                                     const struct walk_cache_entry *entry),
                        void *opaque)
{
    for (unsigned i = 0; i < wc->used; i++) {
        if (wc->tags[i] && !each(opaque, &wc->entries[i])) {
            return;
        }
    }
}

/* --- checkpoints --- */

static bool saved_new(struct walk_cache *wc)
{
    struct walk_cache_saved *saved = calloc(1, sizeof(*saved));

    if (!saved) {
        return false;
    }
    wc->saved = saved;
    saved->tags = calloc(wc->capacity, sizeof(*saved->tags));
    saved->stamps = calloc(wc->capacity, sizeof(*saved->stamps));
    saved->entries = calloc(wc->capacity, sizeof(*saved->entries));
    if (!saved->tags || !saved->stamps || !saved->entries ||
        !dirty_init(&wc->dirty, wc->capacity)) {
        saved_free(wc);
        return false;
    }
    return true;
}

bool walk_cache_checkpoint(struct walk_cache *wc)
{
    size_t slot;

    if (!wc->saved) {
        if (!saved_new(wc)) {
            return false;
        }
        dirty_mark_all(&wc->dirty, wc->used);
    }
    while (dirty_take(&wc->dirty, &slot)) {
        wc->saved->tags[slot] = wc->tags[slot];
        wc->saved->stamps[slot] = wc->stamps[slot];
        wc->saved->entries[slot] = wc->entries[slot];
    }
    wc->saved->used = wc->used;
    wc->saved->clock = wc->clock;
    return true;
}

void walk_cache_rollback(struct walk_cache *wc)
{
    const struct walk_cache_saved *saved = wc->saved;
    size_t slot;

    while (dirty_take(&wc->dirty, &slot)) {
        wc->tags[slot] = saved->tags[slot];
        wc->stamps[slot] = saved->stamps[slot];
        wc->entries[slot] = saved->entries[slot];
    }
    wc->used = saved->used;
    wc->clock = saved->clock;
}
