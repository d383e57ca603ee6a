/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A source of choices (choice/choice.h) that tries every combination, depth
 * first, and lets the asker end a run at any choice.
 */
#ifndef LITMUS_SEARCH_H
#define LITMUS_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "choice/choice.h"

struct search {
    struct choice_source base; /* first */
    GArray *nodes;             /* of the present run */
    guint next;                /* to be answered */
};

/* choice_source_free(&search->base) ends it. */
struct search *search_new(void);
/* From the very beginning. */
void search_restart(struct search *search);

/* Whatever is asked now was never asked before. */
static inline bool search_is_new(const struct search *search)
{
    return search->next == search->nodes->len;
}

#endif
