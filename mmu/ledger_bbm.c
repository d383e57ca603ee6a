/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's S10 and S8: break-before-make, and tables that are given away or
 * used again. Single thread; see ledger_priv.h.
 */
#include "ledger_priv.h"

/* --- what a change needs --- */

static bool is_writable(const struct ledger *l, uint64_t desc)
{
    return !(desc & DESC_AP_READ_ONLY) ||
           (l->config.hardware_dirty && desc & DESC_DBM);
}

/*
 * Another output address does no harm while nobody can write to either and
 * both hold the same: a reader cannot tell which one it has.
 */
static bool reads_the_same(const struct ledger *l, uint64_t old, uint64_t now,
                           unsigned level)
{
    uint64_t size = UINT64_C(1) << mmu_level_shift(level);

    if (desc_kind(now, level) == DESC_KIND_TABLE || is_writable(l, old) ||
        is_writable(l, now)) {
        return false;
    }
    for (uint64_t i = 0; i < size; i += 8) {
        uint64_t was, is;

        if (!l->config.read64(l->config.opaque, desc_output(old, level) + i,
                              &was) ||
            !l->config.read64(l->config.opaque, desc_output(now, level) + i,
                              &is) ||
            was != is) {
            return false;
        }
    }
    return true;
}

enum ledger_change ledger_change_of(const struct ledger *l, uint64_t old,
                                    uint64_t now, unsigned level)
{
    enum ledger_change change = ledger_change(old, now, level);
    bool in_place = l->config.bbm2 && (change == LEDGER_CHANGE_SIZE ||
                                       change == LEDGER_CHANGE_CONTIGUOUS);

    return in_place || (change == LEDGER_CHANGE_OUTPUT &&
                        reads_the_same(l, old, now, level))
               ? LEDGER_CHANGE_NONE
               : change;
}

/* --- records that are not clean --- */

/* One below an unlinked table: break-before-make's, any that is not clean. */
static struct ledger_record *dirty_below(struct ledger *l,
                                         struct ledger_record *r)
{
    for (unsigned i = 0; i < r->olds; i++) {
        struct ledger_table *child =
            ledger_table_child(l, r->table, r->index, r->old[i].desc);

        for (unsigned j = 0; child && child->unlinked && j < LEDGER_ENTRIES;
             j++) {
            struct ledger_record *below = child->record[j];
            struct ledger_record *found;

            if (!below) {
                continue;
            }
            found = below->holders ? below : dirty_below(l, below);
            if (found) {
                return found;
            }
        }
    }
    return NULL;
}

static struct ledger_record *dirty_of(struct ledger *l, struct ledger_record *r)
{
    return r->holders ? r : dirty_below(l, r);
}

static void tell_dirty(struct ledger *l, struct ledger_violation *v,
                       struct ledger_record *dirty)
{
    ledger_tell(l, v, dirty, ledger_see(l, dirty, dirty->holders));
}

/* --- contract points --- */

void ledger_judge_replace(struct ledger *l, unsigned vcpu, uint64_t pc,
                          struct ledger_table *t, unsigned index, uint64_t now,
                          enum ledger_change change)
{
    struct ledger_violation v = ledger_describe(t, index);
    uint16_t tag[LEDGER_VCPUS_MAX];

    v.rule = LEDGER_VALID_TO_VALID;
    v.step = LEDGER_STEP_BREAK;
    v.why = LEDGER_REPLACED;
    v.change = change;
    v.old = t->desc[index];
    v.now = now;
    v.break_vcpu = v.now_vcpu = vcpu;
    v.break_pc = v.now_pc = pc;
    v.dirty = ledger_holders(l, t->root, tag);
    if (v.dirty) { /* else nobody can have it */
        ledger_report(l, &v);
    }
}

/*
 * A page of user memory that comes back in another frame, after a break that
 * somebody has still to finish. Whoever relies on the old one being gone -
 * gives its frame away, says that nobody reaches it, reads what it holds - is
 * judged by S1, S2 and S4; both entries are of one kind and size, so that none
 * of them can be mixed up with the other.
 */
static bool is_window(const struct ledger *l, const struct ledger_record *r,
                      uint64_t now)
{
    if (!l->config.windows || r->half || r->shared) {
        return false;
    }
    for (unsigned i = 0; i < r->olds; i++) {
        uint64_t old = r->old[i].desc;
        uint64_t moved = (now & ~DESC_ADDR_MASK) | (old & DESC_ADDR_MASK);

        if (r->old[i].holders &&
            ledger_change(old, moved, r->level) != LEDGER_CHANGE_NONE) {
            return false;
        }
    }
    return desc_is_leaf(desc_kind(now, r->level));
}

void ledger_judge_make(struct ledger *l, unsigned vcpu, uint64_t pc,
                       struct ledger_record *r, uint64_t now)
{
    struct ledger_violation v = ledger_describe(r->table, r->index);
    struct ledger_record *dirty = dirty_of(l, r);
    uint64_t mask = 0; /* who has one that the new one differs from */

    v.rule = LEDGER_UNCLEAN;
    v.now = now;
    v.now_vcpu = vcpu;
    v.now_pc = pc;
    for (unsigned i = 0; i < r->olds; i++) {
        enum ledger_change change =
            ledger_change_of(l, r->old[i].desc, now, r->level);

        if (i == 0 || change != LEDGER_CHANGE_NONE) {
            v.change = change;
            v.old = r->old[i].desc;
        }
        if (change != LEDGER_CHANGE_NONE) {
            mask |= r->old[i].holders;
        }
    }
    if (l->full && dirty == r && !l->config.strict) {
        if (mask && is_window(l, r, now)) {
            l->counts.windows++;
        } else if (mask) {
            ledger_tell(l, &v, r, ledger_see(l, r, mask));
        }
        return;
    }
    if (dirty && (v.change != LEDGER_CHANGE_NONE || l->config.strict)) {
        tell_dirty(l, &v, dirty);
    }
}

void ledger_judge_link(struct ledger *l, unsigned vcpu, uint64_t pc,
                       struct ledger_table *t, unsigned index, uint64_t now)
{
    struct ledger_table *child =
        desc_kind(now, t->level) == DESC_KIND_TABLE
            ? ledger_table_find(l, desc_next_table(now))
            : NULL;
    struct ledger_violation v;

    if (!child || !child->unlinked ||
        !child->parent->record[child->parent_index]) {
        return;
    }
    if (child->parent == t && child->parent_index == index) {
        ledger_touch(l, &child->unlinked, sizeof(child->unlinked));
        child->unlinked = false;
        return;
    }
    v = ledger_describe(child->parent, child->parent_index);
    v.rule = LEDGER_TABLE_REUSED;
    v.change = LEDGER_CHANGE_OUTPUT;
    v.old = child->page | DESC_VALID | DESC_TABLE_OR_PAGE;
    v.now = now;
    v.now_vcpu = vcpu;
    v.now_pc = pc;
    tell_dirty(l, &v, child->parent->record[child->parent_index]);
}

void ledger_judge_reuse(struct ledger *l, unsigned vcpu, uint64_t pc,
                        struct ledger_table *t, unsigned index, uint64_t now)
{
    struct ledger_record *r = t->parent->record[t->parent_index];
    struct ledger_violation v = ledger_describe(t, index);

    if (!r) {
        return;
    }
    v.rule = LEDGER_TABLE_REUSED;
    v.old = t->desc[index];
    v.now = now;
    v.now_vcpu = vcpu;
    v.now_pc = pc;
    tell_dirty(l, &v, r);
}

static uint64_t users_of(const struct ledger *l, gpa_t root)
{
    uint64_t users = 0;

    for (unsigned v = 0; v < l->config.vcpus; v++) {
        const struct ledger_loaded *loaded = l->s.vcpu[v].loaded;

        if (loaded[0].root == root || loaded[1].root == root) {
            users |= ledger_bit(v);
        }
    }
    return users;
}

void ledger_judge_table_free(struct ledger *l, unsigned vcpu, uint64_t pc,
                             gpa_t page)
{
    struct ledger_table *t = ledger_table_find(l, page);
    struct ledger_violation v;

    if (!t) {
        return;
    }
    v = t->parent ? ledger_describe(t->parent, t->parent_index)
                  : ledger_describe(t, 0);
    v.rule = LEDGER_TABLE_FREED;
    v.old = t->page | DESC_VALID | DESC_TABLE_OR_PAGE;
    v.now_vcpu = v.break_vcpu = vcpu;
    v.now_pc = v.break_pc = pc;
    if (t->unlinked) {
        struct ledger_record *r = t->parent->record[t->parent_index];

        /* What is left of the pages below does not need the table. */
        if (r && !(l->full && !r->holders)) {
            r = dirty_of(l, r);
        }
        if (r && (!l->full || r->holders)) {
            tell_dirty(l, &v, r);
        }
    } else {
        v.step = LEDGER_STEP_BREAK; /* a root in use, or still linked */
        v.dirty = users_of(l, t->root->page);
        if (v.dirty) {
            ledger_report(l, &v);
        }
    }
    ledger_table_forget(l, t);
    ledger_sweep(l);
}
