/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Break-before-make: the tables that walks were seen to use, and the records
 * of what was taken away from them. Single thread; see bbm_priv.h.
 */
#include <stdlib.h>

#include "bbm_priv.h"

static struct bbm_table **bucket_of(struct bbm *bbm, gpa_t page)
{
    return &bbm->bucket[(page >> MMU_PAGE_SHIFT) % BBM_BUCKETS];
}

struct bbm_table *bbm_table_find(struct bbm *bbm, gpa_t pa)
{
    struct bbm_table *t = *bucket_of(bbm, pa);

    pa &= ~MMU_PAGE_MASK;
    while (t && t->page != pa) {
        t = t->next;
    }
    return t;
}

static void record_free(struct bbm *bbm, struct bbm_record *r)
{
    *r->link = r->next;
    if (r->next) {
        r->next->link = r->link;
    }
    r->table->record[r->index] = NULL;
    r->table->open--;
    bbm->counts.open--;
    free(r);
}

struct bbm_table *bbm_table_child(struct bbm *bbm, struct bbm_table *t,
                                  unsigned index, uint64_t desc)
{
    struct bbm_table *child;

    if (desc_kind(desc, t->level) != DESC_KIND_TABLE) {
        return NULL;
    }
    child = bbm_table_find(bbm, desc_next_table(desc));
    return child && child->parent == t && child->parent_index == index ? child
                                                                       : NULL;
}

void bbm_table_forget(struct bbm *bbm, struct bbm_table *t)
{
    struct bbm_table **link = bucket_of(bbm, t->page);

    for (unsigned i = 0; i < BBM_ENTRIES; i++) {
        struct bbm_table *child = bbm_table_child(bbm, t, i, t->desc[i]);

        if (child) {
            bbm_table_forget(bbm, child);
        }
        /* Those that were unlinked from here hang on the record. */
        for (unsigned j = 0; t->record[i] && j < t->record[i]->olds; j++) {
            child = bbm_table_child(bbm, t, i, t->record[i]->old[j]);
            if (child) {
                bbm_table_forget(bbm, child);
            }
        }
        if (t->record[i]) {
            record_free(bbm, t->record[i]);
        }
    }
    while (*link != t) {
        link = &(*link)->next;
    }
    *link = t->next;
    bbm->counts.tables--;
    free(t);
}

static struct bbm_table *remember(struct bbm *bbm, gpa_t page, unsigned level,
                                  struct bbm_table *parent, unsigned index)
{
    struct bbm_table *t = calloc(1, sizeof(*t));
    struct bbm_table **bucket = bucket_of(bbm, page);

    if (!t) {
        bbm->counts.out_of_memory = true;
        return NULL;
    }
    t->page = page;
    t->level = level;
    t->parent = parent;
    t->parent_index = index;
    t->root = parent ? parent->root : t;
    t->next = *bucket;
    *bucket = t;
    bbm->counts.tables++;
    for (unsigned i = 0; i < BBM_ENTRIES; i++) {
        (void)bbm->config.read64(bbm->config.opaque, page + i * 8, &t->desc[i]);
    }
    for (unsigned v = 0; !parent && v < bbm->config.vcpus; v++) {
        for (unsigned half = 0; half < 2; half++) {
            if (bbm->loaded[v][half].root == page) {
                t->ever_loaded |= bbm_bit(v);
                t->asid = bbm->loaded[v][half].asid;
            }
        }
    }
    return t;
}

void bbm_walk(struct bbm *bbm, unsigned half, gva_t va, unsigned start_level,
              const gpa_t *descriptors, unsigned count)
{
    struct bbm_table *parent = NULL;

    for (unsigned i = 0; i < count; i++) {
        unsigned level = start_level + i;
        unsigned index = parent ? (descriptors[i - 1] & MMU_PAGE_MASK) / 8 : 0;
        gpa_t page = descriptors[i] & ~MMU_PAGE_MASK;
        struct bbm_table *t = bbm_table_find(bbm, page);
        unsigned shift = mmu_level_shift(level);
        /* What descriptor 0 translates. */
        gva_t base = ((va >> shift) - (descriptors[i] & MMU_PAGE_MASK) / 8)
                     << shift;

        if (t && t->unlinked &&
            (t->parent != parent || t->parent_index != index)) {
            bbm_table_forget(bbm, t); /* reported when it was linked again */
            t = NULL;
        }
        if (!t) {
            t = remember(bbm, page, level, parent, index);
            if (!t) {
                return;
            }
            t->half = half;
            t->va = base;
        } else if (t->parent != parent || t->parent_index != index ||
                   t->half != half || t->level != level || t->va != base) {
            t->shared = true;
        }
        parent = t;
    }
}

/* --- records --- */

struct bbm_record *bbm_record_of(struct bbm *bbm, struct bbm_table *t,
                                 unsigned index)
{
    struct bbm_record *r = t->record[index];

    if (r) {
        return r;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        bbm->counts.out_of_memory = true;
        return NULL;
    }
    r->table = t;
    r->index = index;
    r->next = bbm->open;
    r->link = &bbm->open;
    if (r->next) {
        r->next->link = &r->next;
    }
    bbm->open = r;
    t->record[index] = r;
    t->open++;
    bbm->counts.open++;
    return r;
}

/* Nothing of the record, or below it, is left anywhere. */
static bool is_clean(struct bbm *bbm, const struct bbm_record *r)
{
    if (r->holders & ~r->clean) {
        return false;
    }
    for (unsigned i = 0; i < r->olds; i++) {
        const struct bbm_table *child =
            bbm_table_child(bbm, r->table, r->index, r->old[i]);

        if (child && child->unlinked && child->open) {
            return false;
        }
    }
    return true;
}

static void close_record(struct bbm *bbm, struct bbm_record *r)
{
    for (unsigned i = 0; i < r->olds; i++) {
        struct bbm_table *child =
            bbm_table_child(bbm, r->table, r->index, r->old[i]);

        if (child && child->unlinked) {
            bbm_table_forget(bbm,
                             child); /* has no open records: frees no other */
        }
    }
    record_free(bbm, r);
    bbm->counts.closed++;
}

/*
 * A root that no vCPU has loaded, and that leads nowhere, may become anything:
 * a program that frees it so owes nothing.
 */
void bbm_table_forget_idle(struct bbm *bbm, struct bbm_table *t)
{
    if (t->parent || t->open) {
        return;
    }
    for (unsigned v = 0; v < bbm->config.vcpus; v++) {
        if (bbm->loaded[v][0].root == t->page ||
            bbm->loaded[v][1].root == t->page) {
            return;
        }
    }
    for (unsigned i = 0; i < BBM_ENTRIES; i++) {
        if (t->desc[i] & DESC_VALID) {
            return;
        }
    }
    bbm_table_forget(bbm, t);
}

void bbm_sweep(struct bbm *bbm)
{
    bool again = true;

    while (again) {
        struct bbm_record *next;

        again = false;
        for (struct bbm_record *r = bbm->open; r; r = next) {
            next = r->next;
            if (is_clean(bbm, r)) {
                struct bbm_table *t = r->table;

                again |= t->unlinked;
                close_record(bbm, r);
                bbm_table_forget_idle(bbm, t);
            }
        }
    }
}
