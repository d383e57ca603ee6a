/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Break-before-make: what is a violation, and which step is the first that is
 * missing. Single thread; see bbm_priv.h.
 */
#include "bbm_priv.h"

enum bbm_step bbm_store_step(const struct bbm_record *r)
{
    return r->store_kind ? BBM_STEP_STORE_KIND
           : r->store_by ? BBM_STEP_STORE_BY
                         : BBM_STEP_STORE_DSB;
}

static enum bbm_step step_of(const struct bbm_record *r)
{
    uint64_t left = r->holders & ~r->clean;

    if (!r->visible && !(r->visible_self && left == bbm_bit(r->writer))) {
        return r->early != BBM_STEP_BREAK ? r->early : bbm_store_step(r);
    }
    if (r->broadcast || !(left & ~r->local)) {
        return r->wait_kind ? BBM_STEP_TLBI_KIND
               : r->wait_by ? BBM_STEP_TLBI_BY
                            : BBM_STEP_TLBI_DSB;
    }
    if ((r->local | r->clean) & r->holders) {
        return BBM_STEP_SCOPE;
    }
    /* A TLBI of another place tells least. */
    return r->early != BBM_STEP_BREAK && r->miss <= BBM_STEP_VA ? r->early
                                                                : r->miss;
}

struct bbm_violation bbm_describe(const struct bbm_table *t, unsigned index)
{
    return (struct bbm_violation){
        .pa = t->page + index * 8,
        .level = t->level,
        .has_va = !t->shared,
        .va = t->va + ((gva_t)index << mmu_level_shift(t->level)),
        .size = UINT64_C(1) << mmu_level_shift(t->level),
        .asid = t->root->asid,
    };
}

void bbm_tell_broken(struct bbm *bbm, struct bbm_violation *v,
                     const struct bbm_record *r)
{
    v->step = step_of(r);
    v->break_vcpu = r->writer;
    v->break_pc = r->pc;
    v->dirty = r->holders & ~r->clean;
    bbm->counts.violations++;
    bbm->config.violation(bbm->config.opaque, v);
}

struct bbm_record *bbm_dirty_below(struct bbm *bbm, struct bbm_record *r)
{
    for (unsigned i = 0; i < r->olds; i++) {
        struct bbm_table *child =
            bbm_table_child(bbm, r->table, r->index, r->old[i]);

        for (unsigned j = 0; child && child->unlinked && j < BBM_ENTRIES; j++) {
            struct bbm_record *below = child->record[j];

            if (below) {
                return below->holders & ~below->clean
                           ? below
                           : bbm_dirty_below(bbm, below);
            }
        }
    }
    return NULL;
}

static bool is_writable(const struct bbm *bbm, uint64_t desc)
{
    return !(desc & DESC_AP_READ_ONLY) ||
           (bbm->config.hardware_dirty && desc & DESC_DBM);
}

/*
 * Another output address does no harm while nobody can write to either and
 * both hold the same: a reader cannot tell which one it has.
 */
static bool reads_the_same(const struct bbm *bbm, uint64_t old, uint64_t now,
                           unsigned level)
{
    uint64_t size = UINT64_C(1) << mmu_level_shift(level);

    if (desc_kind(now, level) == DESC_KIND_TABLE || is_writable(bbm, old) ||
        is_writable(bbm, now)) {
        return false;
    }
    for (uint64_t i = 0; i < size; i += 8) {
        uint64_t was, is;

        if (!bbm->config.read64(bbm->config.opaque, desc_output(old, level) + i,
                                &was) ||
            !bbm->config.read64(bbm->config.opaque, desc_output(now, level) + i,
                                &is) ||
            was != is) {
            return false;
        }
    }
    return true;
}

enum bbm_change bbm_change_of(const struct bbm *bbm, uint64_t old, uint64_t now,
                              unsigned level)
{
    enum bbm_change change = bbm_change(old, now, level);

    return change == BBM_CHANGE_OUTPUT && reads_the_same(bbm, old, now, level)
               ? BBM_CHANGE_NONE
               : change;
}

void bbm_judge_make(struct bbm *bbm, unsigned vcpu, uint64_t pc,
                    struct bbm_record *r, uint64_t now)
{
    struct bbm_violation v = bbm_describe(r->table, r->index);
    struct bbm_record *dirty =
        r->holders & ~r->clean ? r : bbm_dirty_below(bbm, r);

    v.rule = BBM_RULE_UNCLEAN;
    v.now = now;
    v.now_vcpu = vcpu;
    v.now_pc = pc;
    for (unsigned i = 0; i < r->olds; i++) {
        enum bbm_change change =
            bbm_change_of(bbm, r->old[i], now, r->table->level);

        if (i == 0 || change != BBM_CHANGE_NONE) {
            v.change = change;
            v.old = r->old[i];
        }
    }
    if (dirty && (v.change != BBM_CHANGE_NONE || bbm->config.strict)) {
        bbm_tell_broken(bbm, &v, dirty);
    }
}

void bbm_judge_link(struct bbm *bbm, unsigned vcpu, uint64_t pc,
                    struct bbm_table *t, unsigned index, uint64_t now)
{
    struct bbm_table *child = desc_kind(now, t->level) == DESC_KIND_TABLE
                                  ? bbm_table_find(bbm, desc_next_table(now))
                                  : NULL;
    struct bbm_violation v;

    if (!child || !child->unlinked ||
        !child->parent->record[child->parent_index]) {
        return;
    }
    if (child->parent == t && child->parent_index == index) {
        child->unlinked = false;
        return;
    }
    v = bbm_describe(child->parent, child->parent_index);
    v.rule = BBM_RULE_TABLE_REUSED;
    v.change = BBM_CHANGE_OUTPUT;
    v.old = child->page | DESC_VALID | DESC_TABLE_OR_PAGE;
    v.now = now;
    v.now_vcpu = vcpu;
    v.now_pc = pc;
    bbm_tell_broken(bbm, &v, child->parent->record[child->parent_index]);
}

void bbm_judge_reuse(struct bbm *bbm, unsigned vcpu, uint64_t pc,
                     struct bbm_table *t, unsigned index, uint64_t now)
{
    struct bbm_violation v = bbm_describe(t, index);

    if (!t->parent->record[t->parent_index]) {
        return;
    }
    v.rule = BBM_RULE_TABLE_REUSED;
    v.old = t->desc[index];
    v.now = now;
    v.now_vcpu = vcpu;
    v.now_pc = pc;
    bbm_tell_broken(bbm, &v, t->parent->record[t->parent_index]);
}
