/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TLB: sets and ways, lookup, insertion, removal.
 *
 * Lookup is on the path of every micro-TLB refill, so tags are kept apart from
 * entries (a set of 8 ways is one cache line of tags) and page sizes of which
 * no entry exists are not probed.
 */
#include "mmu/tlb.h"

#include <stdlib.h>
#include <string.h>

#include "dirty_priv.h"
#include "tlb_priv.h"

#define SIZES 3

static const uint8_t size_shift[SIZES] = {12, 21, 30};

/* What a checkpoint remembers. Ways that are free in it are zero. */
struct tlb_saved {
    size_t of_size[SIZES];
    uint64_t clock, random;
    uint64_t *tags, *stamps;
    struct tlb_entry *entries;
};

struct tlb {
    struct tlb_config config;
    unsigned set_mask;
    size_t of_size[SIZES]; /* entries of each page size */
    uint64_t clock;        /* of the stamps */
    uint64_t random;
    uint64_t *tags;   /* 0: free way */
    uint64_t *stamps; /* last use (LRU) or insertion (FIFO); oldest goes */
    struct tlb_entry *entries;
    uint64_t *filled;       /* a bit each set; 0: it has no entry */
    struct dirty_set dirty; /* ways that differ from `saved`, maybe more */
    struct walk_cache *walk_cache;
    struct tlb_counters counters;
    struct tlb_saved *saved; /* NULL: no checkpoint */
};

const char *tlb_config_problem(const struct tlb_config *config)
{
    if (config->sets == 0 || config->sets > TLB_MAX_SETS ||
        (config->sets & (config->sets - 1))) {
        return "the number of TLB sets must be a power of two, 1 to 65536";
    }
    if (config->ways == 0 || config->ways > TLB_MAX_WAYS) {
        return "the number of TLB ways must be 1 to 64";
    }
    if (config->walk_cache_entries > TLB_MAX_WALK_CACHE) {
        return "the walk cache must have at most 1024 entries";
    }
    if ((unsigned)config->replacement > TLB_RANDOM) {
        return "unknown TLB replacement policy";
    }
    return NULL;
}

struct tlb *tlb_new(const struct tlb_config *config)
{
    struct tlb *tlb;
    size_t count;

    if (tlb_config_problem(config)) {
        return NULL;
    }
    tlb = calloc(1, sizeof(*tlb));
    if (!tlb) {
        return NULL;
    }
    count = (size_t)config->sets * config->ways;
    tlb->config = *config;
    tlb->set_mask = config->sets - 1;
    tlb->random = config->seed;
    tlb->tags = calloc(count, sizeof(*tlb->tags));
    tlb->stamps = calloc(count, sizeof(*tlb->stamps));
    tlb->entries = calloc(count, sizeof(*tlb->entries));
    tlb->filled = calloc((config->sets + 63) / 64, sizeof(*tlb->filled));
    if (config->walk_cache_entries) {
        tlb->walk_cache =
            walk_cache_new(config->walk_cache_entries, &tlb->counters);
    }
    if (!tlb->tags || !tlb->stamps || !tlb->entries || !tlb->filled ||
        (config->walk_cache_entries && !tlb->walk_cache)) {
        tlb_free(tlb);
        return NULL;
    }
    return tlb;
}

static void saved_free(struct tlb *tlb)
{
    if (tlb->saved) {
        free(tlb->saved->tags);
        free(tlb->saved->stamps);
        free(tlb->saved->entries);
        free(tlb->saved);
        tlb->saved = NULL;
    }
    dirty_fini(&tlb->dirty);
}

void tlb_free(struct tlb *tlb)
{
    if (tlb) {
        saved_free(tlb);
        walk_cache_free(tlb->walk_cache);
        free(tlb->tags);
        free(tlb->stamps);
        free(tlb->entries);
        free(tlb->filled);
        free(tlb);
    }
}

static void note_filled(struct tlb *tlb, size_t index)
{
    size_t set = index / tlb->config.ways;

    tlb->filled[set / 64] |= UINT64_C(1) << set % 64;
}

bool tlb_copy(struct tlb *to, const struct tlb *from)
{
    size_t count = tlb_capacity(from);

    if (to->config.sets != from->config.sets ||
        to->config.ways != from->config.ways ||
        to->config.replacement != from->config.replacement ||
        walk_cache_capacity(to->walk_cache) !=
            walk_cache_capacity(from->walk_cache)) {
        return false;
    }
    memcpy(to->of_size, from->of_size, sizeof(to->of_size));
    to->clock = from->clock;
    to->random = from->random;
    to->counters = from->counters;
    memcpy(to->tags, from->tags, count * sizeof(*to->tags));
    memcpy(to->stamps, from->stamps, count * sizeof(*to->stamps));
    memcpy(to->entries, from->entries, count * sizeof(*to->entries));
    memcpy(to->filled, from->filled,
           (from->config.sets + 63) / 64 * sizeof(*to->filled));
    dirty_mark_all(&to->dirty, count);
    if (to->walk_cache) {
        walk_cache_copy(to->walk_cache, from->walk_cache);
    }
    return true;
}

static inline size_t set_of(const struct tlb *tlb, gva_t va, unsigned shift)
{
    return ((va >> shift) & tlb->set_mask) * tlb->config.ways;
}

#define NOT_FOUND SIZE_MAX

static inline size_t find(const struct tlb *tlb, gva_t va, uint16_t asid)
{
    if (!tag_can_hold(va)) {
        return NOT_FOUND;
    }
    for (unsigned size = 0; size < SIZES; size++) {
        unsigned shift = size_shift[size];
        uint64_t page, own, global, hits;
        size_t set;

        if (!tlb->of_size[size]) {
            continue;
        }
        page = tag_va(va, shift) | (size + 1);
        own = page | tag_asid(asid);
        global = page | TAG_GLOBAL;
        set = set_of(tlb, va, shift);
        /*
         * All ways, without a branch that depends on which one matches: a
         * mispredicted branch costs more than a set of compares.
         */
        hits = 0;
        for (unsigned way = 0; way < tlb->config.ways; way++) {
            uint64_t tag = tlb->tags[set + way];

            hits |= (uint64_t)((tag == own) | (tag == global)) << way;
        }
        if (hits) {
            return set + (size_t)__builtin_ctzll(hits);
        }
    }
    return NOT_FOUND;
}

struct tlb_entry *tlb_lookup(struct tlb *tlb, gva_t va, uint16_t asid)
{
    size_t index = find(tlb, va, asid);

    tlb->counters.lookups++;
    if (index == NOT_FOUND) {
        return NULL;
    }
    tlb->counters.hits++;
    if (tlb->config.replacement == TLB_LRU) {
        tlb->stamps[index] = ++tlb->clock;
        dirty_mark(&tlb->dirty, index);
    }
    return &tlb->entries[index];
}

const struct tlb_entry *tlb_peek(const struct tlb *tlb, gva_t va, uint16_t asid)
{
    size_t index = find(tlb, va, asid);

    return index == NOT_FOUND ? NULL : &tlb->entries[index];
}

unsigned tlb_matching(struct tlb *tlb, gva_t va, uint16_t asid,
                      struct tlb_entry **out, unsigned max)
{
    unsigned count = 0;

    if (!tag_can_hold(va)) {
        return 0;
    }
    for (unsigned size = 0; size < SIZES; size++) {
        unsigned shift = size_shift[size];
        uint64_t page = tag_va(va, shift) | (size + 1);
        size_t set = set_of(tlb, va, shift);

        for (size_t i = set; i < set + tlb->config.ways && count < max; i++) {
            if (tlb->tags[i] == (page | tag_asid(asid)) ||
                tlb->tags[i] == (page | TAG_GLOBAL)) {
                out[count++] = &tlb->entries[i];
            }
        }
    }
    return count;
}

/* SplitMix64: any seed will do, also 0. */
static uint64_t next_random(struct tlb *tlb)
{
    uint64_t z = tlb->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t choose_way(struct tlb *tlb, size_t set, uint64_t tag)
{
    size_t free_way = NOT_FOUND, oldest = set;

    for (size_t i = set; i < set + tlb->config.ways; i++) {
        if (tlb->tags[i] == tag) {
            return i;
        }
        if (tlb->tags[i] == 0 && free_way == NOT_FOUND) {
            free_way = i;
        }
        if (tlb->stamps[i] < tlb->stamps[oldest]) {
            oldest = i;
        }
    }
    if (free_way != NOT_FOUND) {
        return free_way;
    }
    if (tlb->config.replacement == TLB_RANDOM) {
        return set + (next_random(tlb) >> 32) % tlb->config.ways;
    }
    return oldest;
}

static unsigned size_index(unsigned shift)
{
    return (shift - MMU_PAGE_SHIFT) / MMU_LEVEL_BITS;
}

static void remove_at(struct tlb *tlb, size_t index)
{
    struct tlb_entry *entry = &tlb->entries[index];

    dirty_mark(&tlb->dirty, index);
    tlb->of_size[size_index(entry->t.page_shift)]--;
    tlb->tags[index] = 0;
    entry->valid = false;
}

struct tlb_entry *tlb_insert(struct tlb *tlb, gva_t va, uint16_t asid,
                             const struct translation *t,
                             struct tlb_entry *out_evicted)
{
    unsigned shift = t->page_shift;
    struct tlb_entry *entry;
    uint64_t tag;
    size_t index;

    if (out_evicted) {
        *out_evicted = (struct tlb_entry){0};
    }
    if (t->flat || !tag_can_hold(va) ||
        (shift != 12 && shift != 21 && shift != 30)) {
        return NULL;
    }
    tag = tag_va(va, shift) | (size_index(shift) + 1) |
          (t->global ? TAG_GLOBAL : tag_asid(asid));
    index = choose_way(tlb, set_of(tlb, va, shift), tag);
    entry = &tlb->entries[index];
    if (tlb->tags[index]) {
        if (out_evicted) {
            *out_evicted = *entry;
        }
        tlb->counters.evictions += tlb->tags[index] != tag;
        remove_at(tlb, index);
    }
    *entry = (struct tlb_entry){
        .va = va >> shift << shift,
        .asid = asid,
        .valid = true,
        .t = *t,
    };
    dirty_mark(&tlb->dirty, index);
    note_filled(tlb, index);
    tlb->tags[index] = tag;
    tlb->stamps[index] = ++tlb->clock;
    tlb->of_size[size_index(shift)]++;
    tlb->counters.inserts++;
    return entry;
}

struct sweep {
    struct tlb *tlb;
    const struct tlbi_op *op;
    tlb_dropped_fn *dropped;
    void *opaque;
    size_t removed;
};

static void sweep_entry(struct sweep *sweep, size_t index)
{
    struct tlb *tlb = sweep->tlb;
    struct tlb_entry copy;

    if (!tlbi_matches(sweep->op, &tlb->entries[index])) {
        return;
    }
    copy = tlb->entries[index];
    remove_at(tlb, index);
    sweep->removed++;
    if (sweep->dropped) {
        sweep->dropped(sweep->opaque, &copy);
    }
}

/*
 * The first way of the next set that may have an entry, from *set on, which
 * moves past it; NOT_FOUND: there is none. Sets found empty are not looked at
 * again until something comes in: most of a large TLB is empty.
 */
static size_t next_filled(struct tlb *tlb, size_t *set)
{
    unsigned ways = tlb->config.ways;

    while (*set < tlb->config.sets) {
        uint64_t word = tlb->filled[*set / 64] >> *set % 64, any = 0;
        size_t first;

        if (!word) {
            *set = (*set / 64 + 1) * 64;
            continue;
        }
        *set += (size_t)__builtin_ctzll(word);
        first = *set * ways;
        for (unsigned way = 0; way < ways; way++) {
            any |= tlb->tags[first + way];
        }
        if (!any) {
            tlb->filled[*set / 64] &= ~(UINT64_C(1) << *set % 64);
        }
        ++*set;
        if (any) {
            return first;
        }
    }
    return NOT_FOUND;
}

static void sweep_all(struct sweep *sweep)
{
    struct tlb *tlb = sweep->tlb;
    size_t set = 0, first;

    while ((first = next_filled(tlb, &set)) != NOT_FOUND) {
        for (unsigned way = 0; way < tlb->config.ways; way++) {
            if (tlb->tags[first + way]) {
                sweep_entry(sweep, first + way);
            }
        }
    }
}

/* Only the entries of one page; the tag tells, but for the ASID. */
static void sweep_page(struct sweep *sweep, gva_t va, unsigned shift)
{
    const struct tlb *tlb = sweep->tlb;
    uint64_t page = tag_va(va, shift) | (size_index(shift) + 1);
    size_t set = set_of(tlb, va, shift);

    for (size_t i = set; i < set + tlb->config.ways; i++) {
        if ((tlb->tags[i] & TAG_PAGE_MASK) == page) {
            sweep_entry(sweep, i);
        }
    }
}

/*
 * Entries of one page size that overlap the operand are in the sets of the
 * pages it names; when those are at least as many as there are sets, looking
 * at every set once is cheaper.
 */
static void sweep_by_va(struct sweep *sweep, unsigned shift)
{
    const struct tlbi_op *op = sweep->op;
    gva_t end = op->va + (op->size - 1);
    uint64_t pages;

    if (end < op->va) {
        end = UINT64_MAX;
    }
    pages = (end >> shift) - (op->va >> shift) + 1;
    if (pages > 1 && pages >= sweep->tlb->config.sets) {
        sweep_all(sweep);
        return;
    }
    for (gva_t page = op->va >> shift; pages > 0; page++, pages--) {
        sweep_page(sweep, page << shift, shift);
    }
}

size_t tlb_invalidate(struct tlb *tlb, const struct tlbi_op *op,
                      tlb_dropped_fn *dropped, void *opaque)
{
    struct sweep sweep = {
        .tlb = tlb, .op = op, .dropped = dropped, .opaque = opaque};

    if (tlb->walk_cache) {
        walk_cache_invalidate(tlb->walk_cache, op);
    }
    if (op->kind == TLBI_ALL || op->kind == TLBI_ASID) {
        if (tlb_occupancy(tlb)) {
            sweep_all(&sweep);
        }
    } else if (op->size) {
        for (unsigned size = 0; size < SIZES; size++) {
            if (tlb->of_size[size]) {
                sweep_by_va(&sweep, size_shift[size]);
            }
        }
    }
    tlb->counters.invalidated += sweep.removed;
    return sweep.removed;
}

void tlb_drop(struct tlb *tlb, struct tlb_entry *entry)
{
    if (entry->valid) {
        remove_at(tlb, (size_t)(entry - tlb->entries));
    }
}

size_t tlb_occupancy(const struct tlb *tlb)
{
    return tlb->of_size[0] + tlb->of_size[1] + tlb->of_size[2];
}

size_t tlb_capacity(const struct tlb *tlb)
{
    return (size_t)tlb->config.sets * tlb->config.ways;
}

void tlb_foreach(struct tlb *tlb,
                 bool (*each)(void *opaque, struct tlb_entry *entry),
                 void *opaque)
{
    size_t set = 0, first;

    while ((first = next_filled(tlb, &set)) != NOT_FOUND) {
        for (unsigned way = 0; way < tlb->config.ways; way++) {
            size_t i = first + way;

            if (tlb->tags[i] && !each(opaque, &tlb->entries[i])) {
                return;
            }
        }
    }
}

const struct tlb_counters *tlb_counters(const struct tlb *tlb)
{
    return &tlb->counters;
}

struct walk_cache *tlb_walk_cache(struct tlb *tlb)
{
    return tlb->walk_cache;
}

/* --- checkpoints --- */

static bool saved_new(struct tlb *tlb)
{
    size_t count = tlb_capacity(tlb);
    struct tlb_saved *saved = calloc(1, sizeof(*saved));

    if (!saved) {
        return false;
    }
    tlb->saved = saved;
    saved->tags = calloc(count, sizeof(*saved->tags));
    saved->stamps = calloc(count, sizeof(*saved->stamps));
    saved->entries = calloc(count, sizeof(*saved->entries));
    if (!saved->tags || !saved->stamps || !saved->entries ||
        !dirty_init(&tlb->dirty, count)) {
        saved_free(tlb);
        return false;
    }
    return true;
}

static void save_way(struct tlb *tlb, size_t index)
{
    struct tlb_saved *saved = tlb->saved;

    saved->tags[index] = tlb->tags[index];
    saved->stamps[index] = tlb->stamps[index];
    saved->entries[index] = tlb->entries[index];
    saved->entries[index].owner_tag = 0;
}

bool tlb_checkpoint(struct tlb *tlb)
{
    bool first = !tlb->saved;
    size_t index;

    if (first && !saved_new(tlb)) {
        return false;
    }
    if (tlb->walk_cache && !walk_cache_checkpoint(tlb->walk_cache)) {
        saved_free(tlb); /* fails the first time only */
        return false;
    }
    /* Free ways stay the zeros that they are: no memory is touched for them. */
    for (size_t i = 0; first && i < tlb_capacity(tlb); i++) {
        if (tlb->tags[i]) {
            save_way(tlb, i);
        }
    }
    while (dirty_take(&tlb->dirty, &index)) {
        save_way(tlb, index);
    }
    memcpy(tlb->saved->of_size, tlb->of_size, sizeof(tlb->of_size));
    tlb->saved->clock = tlb->clock;
    tlb->saved->random = tlb->random;
    return true;
}

void tlb_rollback(struct tlb *tlb)
{
    const struct tlb_saved *saved = tlb->saved;
    size_t index;

    if (!saved) {
        return;
    }
    while (dirty_take(&tlb->dirty, &index)) {
        tlb->tags[index] = saved->tags[index];
        if (tlb->tags[index]) {
            note_filled(tlb, index);
        }
        tlb->stamps[index] = saved->stamps[index];
        tlb->entries[index] = saved->entries[index];
    }
    memcpy(tlb->of_size, saved->of_size, sizeof(tlb->of_size));
    tlb->clock = saved->clock;
    tlb->random = saved->random;
    if (tlb->walk_cache) {
        walk_cache_rollback(tlb->walk_cache);
    }
}
