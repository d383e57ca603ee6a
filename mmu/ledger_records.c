/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's records: what was taken away, and who may still have it. Single
 * thread; see ledger_priv.h.
 */
#include <string.h>

#include "ledger_priv.h"

/* --- the frame index --- */

#define REGION_SHIFT 21u

static struct ledger_old **frame_bucket(struct ledger *l, gpa_t frame)
{
    return &l->s.frame[(frame >> REGION_SHIFT) % LEDGER_FRAME_BUCKETS];
}

struct ledger_old *ledger_olds_of(struct ledger *l, gpa_t frame)
{
    return *frame_bucket(l, frame);
}

static void index_old(struct ledger *l, struct ledger_record *r,
                      struct ledger_old *old)
{
    struct ledger_old **head;

    if (!l->full || !desc_is_leaf(desc_kind(old->desc, r->level))) {
        return;
    }
    head = r->level == 1 ? &l->s.huge
                         : frame_bucket(l, desc_output(old->desc, r->level));
    old->record = r;
    old->indexed = true;
    old->next = *head;
    old->link = head;
    if (old->next) {
        ledger_touch(l, old->next, sizeof(void *) * 2);
        old->next->link = &old->next;
    }
    *head = old;
}

static void unindex_old(struct ledger *l, struct ledger_old *old)
{
    if (!old->indexed) {
        return;
    }
    ledger_touch(l, old->link, sizeof(*old->link));
    *old->link = old->next;
    if (old->next) {
        ledger_touch(l, old->next, sizeof(void *) * 2);
        old->next->link = old->link;
    }
    old->indexed = false;
}

/* --- life of a record --- */

static void place(struct ledger_record *r, const struct ledger_table *t)
{
    r->root = t->root->page;
    r->pa = t->page + r->index * 8;
    r->level = t->level;
    r->half = t->half;
    r->va = t->va + ((gva_t)r->index << mmu_level_shift(t->level));
    r->shared = t->shared;
}

struct ledger_record *ledger_record_of(struct ledger *l, struct ledger_table *t,
                                       unsigned index)
{
    struct ledger_record *r = t->record[index];

    if (r) {
        ledger_touch(l, r, sizeof(*r));
        return r;
    }
    r = ledger_alloc(l, LEDGER_RECORD);
    if (!r) {
        return NULL;
    }
    r->table = t;
    r->index = index;
    place(r, t);
    r->next = l->s.open;
    r->link = &l->s.open;
    if (r->next) {
        ledger_touch(l, r->next, sizeof(void *) * 2);
        r->next->link = &r->next;
    }
    l->s.open = r;
    ledger_touch(l, &t->record[index], sizeof(t->record[index]));
    ledger_touch(l, &t->open, sizeof(t->open));
    t->record[index] = r;
    t->open++;
    l->s.records++;
    return r;
}

static void leave_table(struct ledger *l, struct ledger_record *r)
{
    struct ledger_table *t = r->table;

    if (t) {
        ledger_touch(l, &t->record[r->index], sizeof(t->record[r->index]));
        ledger_touch(l, &t->open, sizeof(t->open));
        t->record[r->index] = NULL;
        t->open--;
    }
    r->table = NULL;
}

void ledger_record_free(struct ledger *l, struct ledger_record *r)
{
    ledger_touch(l, r, sizeof(*r));
    ledger_touch(l, r->link, sizeof(*r->link));
    *r->link = r->next;
    if (r->next) {
        ledger_touch(l, r->next, sizeof(void *) * 2);
        r->next->link = r->link;
    }
    for (unsigned i = 0; i < r->olds; i++) {
        unindex_old(l, &r->old[i]);
    }
    leave_table(l, r);
    l->s.records--;
    ledger_release(l, LEDGER_RECORD, r);
}

void ledger_record_orphan(struct ledger *l, struct ledger_record *r)
{
    if (!l->full || !r->holders) {
        ledger_record_free(l, r);
        return;
    }
    ledger_touch(l, r, sizeof(*r));
    leave_table(l, r);
}

/* --- what breaks --- */

static void drop_oldest(struct ledger *l, struct ledger_record *r)
{
    struct ledger_table *child =
        ledger_table_child(l, r->table, r->index, r->old[0].desc);

    if (child && child->unlinked) {
        ledger_table_forget(l, child);
    }
    for (unsigned i = 0; i < r->olds; i++) {
        unindex_old(l, &r->old[i]);
    }
    memmove(&r->old[0], &r->old[1], (r->olds - 1) * sizeof(r->old[0]));
    r->olds--;
    for (unsigned i = 0; i < r->olds; i++) {
        index_old(l, r, &r->old[i]);
    }
}

/*
 * What nobody has any more is kept no longer, but for break-before-make, and
 * tables, which hang on it.
 */
static void drop_gone(struct ledger *l, struct ledger_record *r)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < r->olds; i++) {
        unindex_old(l, &r->old[i]);
    }
    for (unsigned i = 0; i < r->olds; i++) {
        if (r->old[i].holders ||
            !desc_is_leaf(desc_kind(r->old[i].desc, r->level))) {
            r->old[kept++] = r->old[i];
        }
    }
    r->olds = kept;
    for (unsigned i = 0; i < r->olds; i++) {
        index_old(l, r, &r->old[i]);
    }
}

static struct ledger_old *keep_old(struct ledger *l, struct ledger_record *r,
                                   uint64_t desc, uint64_t born)
{
    struct ledger_old *old;

    for (unsigned i = 0; i < r->olds; i++) {
        if (r->old[i].desc == desc) {
            if (!r->old[i].holders || born < r->old[i].born) {
                r->old[i].born = born;
            }
            memset(&r->old[i].asked, 0, sizeof(r->old[i].asked));
            return &r->old[i];
        }
    }
    if (r->olds == LEDGER_OLD_MAX) {
        drop_oldest(l, r);
    }
    old = &r->old[r->olds++];
    memset(old, 0, sizeof(*old));
    old->desc = desc;
    old->born = born;
    index_old(l, r, old);
    return old;
}

/* Who may have the old one: who may have anything of this root. */
static void hold(struct ledger *l, struct ledger_record *r,
                 const struct ledger_table *root, struct ledger_old *old)
{
    uint64_t holders = ledger_holders(l, root, r->tag);

    l->s.looked &= ~ledger_record_late(r); /* the tags are others now */

    r->holders |= holders;
    r->added |= holders;
    old->holders |= holders;
    old->visible = false;
    for (unsigned i = 0; !l->full && i < r->olds; i++) {
        r->old[i].holders |= holders;
        r->old[i].visible = false;
    }
}

/* What was asked for, and not waited for, goes on for those it was about. */
static void keep_asked(struct ledger_asked *asked,
                       const struct ledger_record *r)
{
    asked->local |= r->local;
    if (asked->wait.mask) {
        return; /* one at a time; at worst a debt stays */
    }
    if (r->broadcast) {
        asked->wait.issuer = (unsigned)__builtin_ctzll(r->broadcast);
        asked->wait.waited = r->waited & ledger_bit(asked->wait.issuer);
        asked->wait.mask = UINT64_MAX;
        return;
    }
    for (unsigned i = 0; i < LEDGER_WAITS && !asked->wait.mask; i++) {
        asked->wait = r->wait[i];
    }
}

static void keep_all_asked(struct ledger_record *r)
{
    for (unsigned i = 0; i < r->olds; i++) {
        if (r->old[i].holders && r->old[i].visible) {
            keep_asked(&r->old[i].asked, r);
        }
    }
    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        if (r->late[i].mask && r->late[i].visible) {
            keep_asked(&r->late[i].asked, r);
        }
    }
}

void ledger_broken(struct ledger *l, unsigned vcpu, uint64_t pc,
                   struct ledger_table *t, unsigned index, uint64_t old,
                   enum ledger_why why)
{
    struct ledger_record *r = ledger_record_of(l, t, index);
    struct ledger_table *child =
        why == LEDGER_REDUCED ? NULL : ledger_table_child(l, t, index, old);

    if (!r) {
        return;
    }
    l->counts.breaks += why != LEDGER_REDUCED;
    l->counts.reductions += why == LEDGER_REDUCED;
    if (l->full) {
        drop_gone(l, r);
        keep_all_asked(r);
    }
    r->why = why;
    r->writer = vcpu;
    r->writers = ledger_bit(vcpu);
    r->pc = pc;
    hold(l, r, t->root, keep_old(l, r, old, t->born[index]));
    r->cleaned = 0;
    r->visible = r->visible_self = false;
    memset(r->wait, 0, sizeof(r->wait));
    r->broadcast = r->local = r->waited = r->units = 0;
    r->store_kind = r->wait_kind = r->wait_by = false;
    r->store_by = 0;
    r->asid_missed = false;
    r->early = LEDGER_STEP_BREAK;
    r->miss = LEDGER_STEP_TLBI;
    r->near_tlbi.known = r->near_dsb.known = false;
    r->told = 0;
    r->hits = 0;
    if (!child) {
        return;
    }
    ledger_touch(l, &child->unlinked, sizeof(child->unlinked));
    child->unlinked = true;
    ledger_said_unlinked(l, vcpu, pc, child);
    for (unsigned i = 0; i < LEDGER_ENTRIES; i++) {
        if (desc_kind(child->desc[i], child->level) != DESC_KIND_INVALID) {
            ledger_broken(l, vcpu, pc, child, i, child->desc[i],
                          LEDGER_REMOVED);
        }
    }
}

void ledger_record_new_holder(struct ledger *l, gpa_t root, unsigned half,
                              unsigned vcpu, uint16_t asid)
{
    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        if (r->root != root || r->visible || (l->full && r->half != half)) {
            continue;
        }
        ledger_touch(l, r, sizeof(*r));
        r->holders |= ledger_bit(vcpu);
        r->added |= ledger_bit(vcpu);
        r->cleaned &= ~ledger_bit(vcpu);
        r->tag[vcpu] = asid;
        for (unsigned i = 0; i < r->olds; i++) {
            if (!r->old[i].visible) {
                r->old[i].holders |= ledger_bit(vcpu);
            }
        }
    }
}

/* --- what is gone --- */

void ledger_record_clean(struct ledger *l, struct ledger_record *r,
                         uint64_t mask)
{
    ledger_touch(l, r, sizeof(*r));
    r->cleaned |= mask;
    r->holders &= ~mask;
    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        r->late[i].mask &= ~mask;
    }
    for (unsigned i = 0; i < r->olds; i++) {
        r->old[i].holders &= ~mask;
    }
}

void ledger_record_over(struct ledger *l, struct ledger_record *r, unsigned by,
                        uint64_t mask)
{
    uint64_t units =
        l->config.own_dsb ? mask & r->holders & ~ledger_bit(by) : 0;

    ledger_touch(l, r, sizeof(*r));
    r->units |= units;
    ledger_record_clean(l, r, mask & ~units);
}

void ledger_record_emptied(struct ledger *l, unsigned by, gpa_t root,
                           uint16_t asid, bool is_all, uint64_t mask)
{
    bool changed = false;

    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        uint64_t clean = r->root == root && !r->half ? mask & r->holders : 0;

        for (uint64_t left = clean; left; left &= left - 1) {
            unsigned v = (unsigned)__builtin_ctzll(left);

            if (r->tag[v] != asid) {
                clean &= ~ledger_bit(v);
            }
        }
        for (unsigned i = 0; !is_all && i < r->olds; i++) {
            if (ledger_is_global(r->old[i].desc, r->level)) {
                clean = 0;
            }
        }
        if (clean) {
            ledger_record_over(l, r, by, clean);
            changed |= !r->holders;
        }
    }
    if (changed) {
        ledger_sweep(l);
    }
}

/* Nothing of the record, or below it, is left anywhere. */
static bool is_clean(struct ledger *l, const struct ledger_record *r)
{
    if (r->holders || (l->full && !r->visible)) {
        return false; /* who loads the root before it shows will have it */
    }
    for (unsigned i = 0; r->table && i < r->olds; i++) {
        const struct ledger_table *child =
            ledger_table_child(l, r->table, r->index, r->old[i].desc);

        if (child && child->unlinked && child->open) {
            return false;
        }
    }
    return true;
}

static void close_record(struct ledger *l, struct ledger_record *r)
{
    for (unsigned i = 0; r->table && i < r->olds; i++) {
        struct ledger_table *child =
            ledger_table_child(l, r->table, r->index, r->old[i].desc);

        if (child && child->unlinked) {
            ledger_table_forget(l, child); /* no open records: no other goes */
        }
    }
    ledger_record_free(l, r);
    l->counts.closed++;
}

void ledger_sweep(struct ledger *l)
{
    bool again = true;

    l->s.late = 0;
    l->s.looked = 0;
    while (again) {
        struct ledger_record *next;

        again = false;
        for (struct ledger_record *r = l->s.open; r; r = next) {
            next = r->next;
            if (is_clean(l, r)) {
                struct ledger_table *t = r->table;

                again |= t && t->unlinked;
                close_record(l, r);
                if (t) {
                    ledger_table_forget_idle(l, t);
                }
            } else {
                l->s.late |= ledger_record_late(r);
            }
        }
    }
}

uint8_t ledger_record_lost(const struct ledger *l,
                           const struct ledger_record *r,
                           const struct ledger_old *old)
{
    uint64_t now =
        r->table && !r->table->unlinked ? r->table->desc[r->index] : 0;

    return ledger_lost(old->desc, now, r->level, l->config.hardware_dirty);
}
