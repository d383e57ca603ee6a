/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's memory, and checkpoints of it. Single thread; see
 * ledger_priv.h.
 *
 * One arena at one address, so that pointers in it survive a rollback. Objects
 * of a size come from a list of free ones, else from the end. With a checkpoint
 * each piece of the arena is clean or in the list of dirty ones; what lies
 * behind the end that the checkpoint knew needs no copy: it is zeroed when it
 * is handed out again.
 */
#include <stdlib.h>
#include <string.h>

#include "ledger_priv.h"

#define PIECE_SHIFT 10u
#define PIECE ((size_t)1 << PIECE_SHIFT)
#define ALIGNMENT 64u

static const size_t sizes[LEDGER_CLASSES] = {
    [LEDGER_TABLE] = sizeof(struct ledger_table),
    [LEDGER_RECORD] = sizeof(struct ledger_record),
    [LEDGER_TAG_CLASS] = sizeof(struct ledger_tag),
    [LEDGER_CLEAN_CLASS] = sizeof(struct ledger_clean),
};

bool ledger_arena_init(struct ledger *l, size_t size)
{
    l->size = (size + PIECE - 1) & ~(PIECE - 1);
    l->base = calloc(1, l->size);
    l->dirty = calloc(1, l->size >> PIECE_SHIFT);
    return l->base && l->dirty;
}

void ledger_arena_free(struct ledger *l)
{
    free(l->base);
    free(l->copy);
    free(l->dirty);
    free(l->dirties);
}

void ledger_touch_pieces(struct ledger *l, size_t from, size_t to)
{
    for (size_t i = from >> PIECE_SHIFT; i <= (to - 1) >> PIECE_SHIFT; i++) {
        if (!l->dirty[i]) {
            l->dirty[i] = 1;
            l->dirties[l->dirty_count++] = (uint32_t)i;
        }
    }
}

void *ledger_reserve(struct ledger *l, size_t size)
{
    void *object = l->base + l->s.used;

    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (size > l->size - l->s.used) {
        l->counts.out_of_memory = true;
        return NULL;
    }
    l->s.used += size;
    ledger_touch(l, object, size);
    memset(object, 0, size); /* a rollback may have left something there */
    return object;
}

void *ledger_alloc(struct ledger *l, enum ledger_class c)
{
    void *object = l->s.free[c];

    if (!object) {
        return ledger_reserve(l, sizes[c]);
    }
    ledger_touch(l, object, sizes[c]);
    memcpy(&l->s.free[c], object, sizeof(void *));
    memset(object, 0, sizes[c]);
    return object;
}

void ledger_release(struct ledger *l, enum ledger_class c, void *object)
{
    ledger_touch(l, object, sizeof(void *));
    memcpy(object, &l->s.free[c], sizeof(void *));
    l->s.free[c] = object;
}

static void forget_dirties(struct ledger *l)
{
    for (size_t i = 0; i < l->dirty_count; i++) {
        l->dirty[l->dirties[i]] = 0;
    }
    l->dirty_count = 0;
}

/* The dirty pieces of what was in use when the checkpoint was made. */
static void copy_dirties(struct ledger *l, unsigned char *to,
                         const unsigned char *from, size_t used)
{
    for (size_t i = 0; i < l->dirty_count; i++) {
        size_t at = (size_t)l->dirties[i] << PIECE_SHIFT;

        if (at < used) {
            memcpy(to + at, from + at, PIECE);
        }
    }
}

bool ledger_checkpoint(struct ledger *l)
{
    if (!l->copy) {
        l->copy = malloc(l->size);
        l->dirties = malloc((l->size >> PIECE_SHIFT) * sizeof(*l->dirties));
        if (!l->copy || !l->dirties) {
            free(l->copy);
            free(l->dirties);
            l->copy = NULL;
            l->dirties = NULL;
            return false;
        }
    }
    if (l->has_saved) {
        copy_dirties(l, l->copy, l->base, l->s.used);
    } else {
        memcpy(l->copy, l->base, (l->s.used + PIECE - 1) & ~(PIECE - 1));
    }
    forget_dirties(l);
    l->saved = l->s;
    l->has_saved = true;
    return true;
}

void ledger_rollback(struct ledger *l)
{
    if (!l->has_saved) {
        return;
    }
    copy_dirties(l, l->base, l->copy, l->saved.used);
    forget_dirties(l);
    l->s = l->saved;
}

static uint64_t hash_bytes(uint64_t hash, const void *p, size_t size)
{
    const unsigned char *byte = p;

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint64_t ledger_hash(const struct ledger *l)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    hash = hash_bytes(hash, &l->s, sizeof(l->s));
    return hash_bytes(hash, l->base, l->s.used);
}
