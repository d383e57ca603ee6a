/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's tables: those that walks were seen to use. Single thread; see
 * ledger_priv.h.
 */
#include "ledger_priv.h"

static struct ledger_table **bucket_of(struct ledger *l, gpa_t page)
{
    return &l->s.bucket[(page >> MMU_PAGE_SHIFT) % LEDGER_BUCKETS];
}

struct ledger_table *ledger_table_find(struct ledger *l, gpa_t pa)
{
    struct ledger_table *t = *bucket_of(l, pa);

    pa &= ~MMU_PAGE_MASK;
    while (t && t->page != pa) {
        t = t->next;
    }
    return t;
}

struct ledger_table *ledger_table_child(struct ledger *l,
                                        struct ledger_table *t, unsigned index,
                                        uint64_t desc)
{
    struct ledger_table *child;

    if (desc_kind(desc, t->level) != DESC_KIND_TABLE) {
        return NULL;
    }
    child = ledger_table_find(l, desc_next_table(desc));
    return child && child->parent == t && child->parent_index == index ? child
                                                                       : NULL;
}

void ledger_table_forget(struct ledger *l, struct ledger_table *t)
{
    for (unsigned i = 0; i < LEDGER_ENTRIES; i++) {
        struct ledger_table *child = ledger_table_child(l, t, i, t->desc[i]);

        if (child) {
            ledger_table_forget(l, child);
        }
        /* Those that were unlinked from here hang on the record. */
        for (unsigned j = 0; t->record[i] && j < t->record[i]->olds; j++) {
            child = ledger_table_child(l, t, i, t->record[i]->old[j].desc);
            if (child) {
                ledger_table_forget(l, child);
            }
        }
        if (t->record[i]) {
            ledger_record_orphan(l, t->record[i]);
        }
    }
    ledger_touch(l, t->link, sizeof(*t->link));
    *t->link = t->next;
    if (t->next) {
        ledger_touch(l, t->next, sizeof(void *) * 2);
        t->next->link = t->link;
    }
    l->s.tables--;
    ledger_release(l, LEDGER_TABLE, t);
}

static struct ledger_table *remember(struct ledger *l, gpa_t page,
                                     unsigned half, gva_t va, unsigned level,
                                     struct ledger_table *parent,
                                     unsigned index)
{
    struct ledger_table *t = ledger_alloc(l, LEDGER_TABLE);
    struct ledger_table **bucket = bucket_of(l, page);

    if (!t) {
        return NULL;
    }
    t->page = page;
    t->half = half;
    t->va = va;
    t->level = level;
    t->parent = parent;
    t->parent_index = index;
    t->root = parent ? parent->root : t;
    t->next = *bucket;
    t->link = bucket;
    if (t->next) {
        ledger_touch(l, t->next, sizeof(void *) * 2);
        t->next->link = &t->next;
    }
    *bucket = t;
    l->s.tables++;
    for (unsigned i = 0; i < LEDGER_ENTRIES; i++) {
        (void)l->config.read64(l->config.opaque, page + i * 8, &t->desc[i]);
        /* When it became valid is not known: as late as it can be. */
        t->born[i] = l->s.seq;
        t->filled |= (t->desc[i] & DESC_VALID) != 0;
    }
    for (unsigned v = 0; !parent && v < l->config.vcpus; v++) {
        for (unsigned h = 0; h < 2; h++) {
            if (l->s.vcpu[v].loaded[h].root == page) {
                t->ever_loaded |= ledger_bit(v);
                t->asid = l->s.vcpu[v].loaded[h].asid;
            }
        }
    }
    if (!parent && t->filled) {
        ledger_tag_filled(l, page);
    }
    return t;
}

static void note_shared(struct ledger *l, struct ledger_table *t)
{
    if (t->shared) {
        return;
    }
    ledger_touch(l, t, sizeof(*t));
    t->shared = true;
    for (unsigned i = 0; t->open && i < LEDGER_ENTRIES; i++) {
        if (t->record[i]) {
            ledger_touch(l, t->record[i], sizeof(*t->record[i]));
            t->record[i]->shared = true;
        }
    }
}

void ledger_walk(struct ledger *l, unsigned half, gva_t va,
                 unsigned start_level, const gpa_t *descriptors, unsigned count)
{
    struct ledger_table *parent = NULL;

    for (unsigned i = 0; i < count; i++) {
        unsigned level = start_level + i;
        unsigned index = parent ? (descriptors[i - 1] & MMU_PAGE_MASK) / 8 : 0;
        gpa_t page = descriptors[i] & ~MMU_PAGE_MASK;
        struct ledger_table *t = ledger_table_find(l, page);
        unsigned shift = mmu_level_shift(level);
        /* What descriptor 0 translates. */
        gva_t base = ((va >> shift) - (descriptors[i] & MMU_PAGE_MASK) / 8)
                     << shift;

        if (t && t->unlinked &&
            (t->parent != parent || t->parent_index != index)) {
            ledger_table_forget(l, t); /* reported when it was linked again */
            t = NULL;
        }
        if (!t) {
            t = remember(l, page, half, base, level, parent, index);
            if (!t) {
                return;
            }
        } else if (t->parent != parent || t->parent_index != index ||
                   t->half != half || t->level != level || t->va != base) {
            note_shared(l, t);
        }
        parent = t;
    }
}

/*
 * A root that no vCPU has loaded, and that leads nowhere, may become anything:
 * a program that frees it so owes nothing.
 */
void ledger_table_forget_idle(struct ledger *l, struct ledger_table *t)
{
    if (t->parent || t->open) {
        return;
    }
    for (unsigned v = 0; v < l->config.vcpus; v++) {
        if (l->s.vcpu[v].loaded[0].root == t->page ||
            l->s.vcpu[v].loaded[1].root == t->page) {
            return;
        }
    }
    for (unsigned i = 0; i < LEDGER_ENTRIES; i++) {
        if (t->desc[i] & DESC_VALID) {
            return;
        }
    }
    ledger_table_forget(l, t);
}

gpa_t ledger_leaf_of(struct ledger *l, gpa_t root, gva_t va, unsigned *level)
{
    struct ledger_table *t = ledger_table_find(l, root);

    while (t) {
        unsigned index = va >> mmu_level_shift(t->level) & 511;
        uint64_t desc = t->desc[index];

        if (desc_is_leaf(desc_kind(desc, t->level))) {
            *level = t->level;
            return t->page + index * 8;
        }
        t = desc_kind(desc, t->level) == DESC_KIND_TABLE
                ? ledger_table_find(l, desc_next_table(desc))
                : NULL;
    }
    return 0;
}
