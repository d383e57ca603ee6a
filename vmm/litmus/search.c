/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every combination of choices, depth first; see search.h. */
#include "litmus/search.h"

struct node {
    uint16_t value, n;
};

static unsigned search_choose(struct choice_source *base, enum choice_kind kind,
                              unsigned n, uint64_t index,
                              const struct choice_candidate *candidates)
{
    struct search *s = (struct search *)base;
    struct node node = {.n = (uint16_t)n};

    (void)kind;
    (void)index;
    (void)candidates;
    if (s->next == s->nodes->len) {
        g_array_append_val(s->nodes, node);
    }
    return g_array_index(s->nodes, struct node, s->next++).value;
}

/* The next combination; false: there is none. */
static bool search_next(struct choice_source *base)
{
    struct search *s = (struct search *)base;

    s->next = 0;
    while (s->nodes->len) {
        struct node *last =
            &g_array_index(s->nodes, struct node, s->nodes->len - 1);

        if (++last->value < last->n) {
            return true;
        }
        g_array_set_size(s->nodes, s->nodes->len - 1);
    }
    return false;
}

static void search_free(struct choice_source *base)
{
    struct search *s = (struct search *)base;

    g_array_unref(s->nodes);
    g_free(s);
}

struct search *search_new(void)
{
    static const struct choice_source_ops ops = {
        .choose = search_choose,
        .next_run = search_next,
        .free = search_free,
    };
    struct search *s = g_new0(struct search, 1);

    s->base.ops = &ops;
    s->nodes = g_array_new(FALSE, FALSE, sizeof(struct node));
    return s;
}

void search_restart(struct search *search)
{
    g_array_set_size(search->nodes, 0);
    search->next = 0;
}
