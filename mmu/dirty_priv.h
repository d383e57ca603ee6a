/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of n things changed since a checkpoint: a bitmap, and a list of its
 * words that are not zero, so that going through a few marks does not read the
 * whole map. Private to mmu; not synchronised.
 *
 * Zeroed, it takes no marks: marking then costs a load and a branch.
 */
#ifndef MMU_DIRTY_PRIV_H
#define MMU_DIRTY_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct dirty_set {
    uint64_t *words; /* NULL: nobody wants to know */
    uint32_t *list;  /* indices of the words that are not 0, and maybe some
                      * that are, each once */
    uint32_t used;   /* of the list */
};

static inline void dirty_fini(struct dirty_set *set)
{
    free(set->words);
    free(set->list);
    *set = (struct dirty_set){0};
}

/* False, and nothing kept, when memory is short. */
static inline bool dirty_init(struct dirty_set *set, size_t things)
{
    size_t words = (things + 63) / 64;

    set->words = calloc(words, sizeof(*set->words));
    set->list = calloc(words, sizeof(*set->list));
    set->used = 0;
    if (!set->words || !set->list) {
        dirty_fini(set);
        return false;
    }
    return true;
}

static inline void dirty_mark(struct dirty_set *set, size_t index)
{
    if (__builtin_expect(set->words != NULL, 0)) {
        uint64_t *word = &set->words[index / 64];

        if (*word == 0) {
            set->list[set->used++] = (uint32_t)(index / 64);
        }
        *word |= UINT64_C(1) << index % 64;
    }
}

static inline void dirty_mark_all(struct dirty_set *set, size_t things)
{
    for (size_t i = 0; set->words && i < things; i++) {
        dirty_mark(set, i);
    }
}

/* Takes one mark away; false: there was none. No marking in between. */
static inline bool dirty_take(struct dirty_set *set, size_t *out_index)
{
    while (set->used > 0) {
        uint32_t at = set->list[set->used - 1];
        uint64_t *word = &set->words[at];

        if (*word != 0) {
            *out_index = (size_t)at * 64 + (size_t)__builtin_ctzll(*word);
            *word &= *word - 1;
            return true;
        }
        set->used--;
    }
    return false;
}

#endif
