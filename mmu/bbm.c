/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Break-before-make: from what a program does to the state of its descriptors.
 * Single thread; see bbm_priv.h.
 */
#include "mmu/bbm.h"

#include <stdlib.h>
#include <string.h>

#include "bbm_priv.h"

static void new_holder(struct bbm *bbm, gpa_t root, unsigned vcpu)
{
    for (struct bbm_record *r = bbm->open; r; r = r->next) {
        if (r->table->root->page == root && !r->visible) {
            r->holders |= bbm_bit(vcpu);
        }
    }
}

void bbm_root_load(struct bbm *bbm, unsigned vcpu, unsigned half, gpa_t root,
                   uint16_t asid)
{
    struct bbm_loaded *loaded = &bbm->loaded[vcpu][half];
    gpa_t before = loaded->root;
    struct bbm_table *t = bbm_table_find(bbm, root);

    *loaded = (struct bbm_loaded){root, asid};
    if (t) {
        t->root->ever_loaded |= bbm_bit(vcpu);
        t->asid = asid;
    }
    if (before == root) {
        return;
    }
    new_holder(bbm, root, vcpu);
    if (before == BBM_NO_ROOT) {
        return;
    }
    t = bbm_table_find(bbm, before);
    if (t) {
        bbm_table_forget_idle(bbm, t);
    }
}

void bbm_vcpu_off(struct bbm *bbm, unsigned vcpu)
{
    for (unsigned half = 0; half < 2; half++) {
        bbm->loaded[vcpu][half].root = BBM_NO_ROOT;
    }
    for (unsigned i = 0; i < BBM_BUCKETS; i++) {
        for (struct bbm_table *t = bbm->bucket[i]; t; t = t->next) {
            t->ever_loaded &= ~bbm_bit(vcpu);
        }
    }
    for (struct bbm_record *r = bbm->open; r; r = r->next) {
        r->holders &= ~bbm_bit(vcpu);
    }
    bbm_sweep(bbm);
}

/* --- stores --- */

static void keep_old(struct bbm_record *r, uint64_t old)
{
    for (unsigned i = 0; i < r->olds; i++) {
        if (r->old[i] == old) {
            return;
        }
    }
    if (r->olds == BBM_OLD_MAX) {
        /* The oldest is forgotten, and with it a table that it led to. */
        memmove(&r->old[0], &r->old[1], sizeof(r->old) - sizeof(r->old[0]));
        r->olds--;
    }
    r->old[r->olds++] = old;
}

static void broken(struct bbm *bbm, unsigned vcpu, uint64_t pc,
                   struct bbm_table *t, unsigned index, uint64_t old)
{
    struct bbm_record *r = bbm_record_of(bbm, t, index);
    struct bbm_table *child = bbm_table_child(bbm, t, index, old);

    if (!r) {
        return;
    }
    bbm->counts.breaks++;
    keep_old(r, old);
    r->writer = vcpu;
    r->pc = pc;
    r->holders |= t->root->ever_loaded;
    r->clean = 0;
    r->visible = r->visible_self = false;
    r->broadcast = r->local = 0;
    r->store_kind = r->store_by = r->wait_kind = r->wait_by = false;
    r->early = BBM_STEP_BREAK;
    r->miss = BBM_STEP_TLBI;
    if (!child) {
        return;
    }
    child->unlinked = true;
    for (unsigned i = 0; i < BBM_ENTRIES; i++) {
        if (desc_kind(child->desc[i], child->level) != DESC_KIND_INVALID) {
            broken(bbm, vcpu, pc, child, i, child->desc[i]);
        }
    }
}

void bbm_store(struct bbm *bbm, unsigned vcpu, uint64_t pc, gpa_t pa,
               uint64_t now)
{
    struct bbm_table *t = bbm_table_find(bbm, pa);
    unsigned index = (pa & MMU_PAGE_MASK) / 8;
    enum bbm_change change;
    bool was, is;
    uint64_t old;

    if (!t || t->desc[index] == now) {
        return;
    }
    if (t->unlinked) {
        /* Emptying it is fine; anything else is another use. */
        if (now != 0) {
            bbm_judge_reuse(bbm, vcpu, pc, t, index, now);
        }
        t->desc[index] = now;
        return;
    }
    old = t->desc[index];
    was = desc_kind(old, t->level) != DESC_KIND_INVALID;
    is = desc_kind(now, t->level) != DESC_KIND_INVALID;
    change =
        was && is ? bbm_change_of(bbm, old, now, t->level) : BBM_CHANGE_NONE;
    if (change != BBM_CHANGE_NONE) {
        struct bbm_violation v = bbm_describe(t, index);

        v.rule = BBM_RULE_VALID_TO_VALID;
        v.step = BBM_STEP_BREAK;
        v.change = change;
        v.old = old;
        v.now = now;
        v.break_vcpu = v.now_vcpu = vcpu;
        v.break_pc = v.now_pc = pc;
        v.dirty = t->root->ever_loaded;
        if (v.dirty) { /* else nobody can have it */
            bbm->counts.violations++;
            bbm->config.violation(bbm->config.opaque, &v);
        }
    } else if (!was && is && t->record[index]) {
        bbm_judge_make(bbm, vcpu, pc, t->record[index], now);
    }
    bbm->counts.makes += !was && is;
    if (is) {
        bbm_judge_link(bbm, vcpu, pc, t, index, now);
    }
    t->desc[index] = now;
    if (was && (!is || change != BBM_CHANGE_NONE)) {
        broken(bbm, vcpu, pc, t, index, old);
        if (!t->root->ever_loaded) {
            bbm_sweep(bbm); /* what nobody can hold is clean */
        }
    }
}

void bbm_update(struct bbm *bbm, gpa_t pa, uint64_t now)
{
    struct bbm_table *t = bbm_table_find(bbm, pa);

    if (t) {
        t->desc[(pa & MMU_PAGE_MASK) / 8] = now;
    }
}

void bbm_page_free(struct bbm *bbm, unsigned vcpu, uint64_t pc, gpa_t page)
{
    struct bbm_table *t = bbm_table_find(bbm, page);
    struct bbm_violation v;

    if (!t) {
        return;
    }
    v = t->parent ? bbm_describe(t->parent, t->parent_index)
                  : bbm_describe(t, 0);
    v.rule = BBM_RULE_TABLE_FREED;
    v.old = t->page | DESC_VALID | DESC_TABLE_OR_PAGE;
    v.now_vcpu = v.break_vcpu = vcpu;
    v.now_pc = v.break_pc = pc;
    if (t->unlinked) {
        struct bbm_record *r = t->parent->record[t->parent_index];
        struct bbm_record *dirty =
            r && !(r->holders & ~r->clean) ? bbm_dirty_below(bbm, r) : r;

        if (dirty) {
            bbm_tell_broken(bbm, &v, dirty);
        }
    } else {
        v.step = BBM_STEP_BREAK; /* a root in use, or still linked */
        for (unsigned i = 0; i < bbm->config.vcpus; i++) {
            if (bbm->loaded[i][0].root == t->root->page ||
                bbm->loaded[i][1].root == t->root->page) {
                v.dirty |= bbm_bit(i);
            }
        }
        if (v.dirty) {
            bbm->counts.violations++;
            bbm->config.violation(bbm->config.opaque, &v);
        }
    }
    bbm_table_forget(bbm, t);
    bbm_sweep(bbm);
}

/* --- TLBI and DSB --- */

/* What the operation does for a record; for several old ones, the least. */
static enum bbm_step covers(const struct bbm_record *r,
                            const struct tlbi_op *op)
{
    const struct bbm_table *t = r->table;
    enum bbm_step result = BBM_STEP_TLBI_DSB;

    for (unsigned i = 0; i < r->olds && result == BBM_STEP_TLBI_DSB; i++) {
        const struct bbm_target target = {
            .level = t->level,
            .desc = r->old[i],
            .has_va = !t->shared,
            .va = t->va + ((gva_t)r->index << mmu_level_shift(t->level)),
            .has_asid = t->half == 0 && !t->shared,
            .asid = t->root->asid,
        };

        result = bbm_covers(op, &target);
    }
    return result;
}

void bbm_tlbi(struct bbm *bbm, unsigned vcpu, const struct tlbi_op *op)
{
    for (struct bbm_record *r = bbm->open; r; r = r->next) {
        enum bbm_step step = covers(r, op);
        bool is_local = op->scope == TLBI_LOCAL;

        if (step != BBM_STEP_TLBI_DSB) {
            /* Worth telling if it looks as if this place was meant. */
            if (step > r->miss && (step != BBM_STEP_VA || vcpu == r->writer)) {
                r->miss = step;
            }
        } else if (!r->visible &&
                   !(is_local && vcpu == r->writer && r->visible_self)) {
            enum bbm_step why = bbm_store_step(r);

            r->early = why == BBM_STEP_STORE_DSB ? BBM_STEP_ORDER : why;
        } else if (is_local) {
            r->local |= bbm_bit(vcpu);
        } else {
            r->broadcast |= bbm_bit(vcpu);
        }
    }
}

void bbm_dsb(struct bbm *bbm, unsigned vcpu, struct bbm_dsb dsb)
{
    bool waits_local = dsb.type == BBM_DSB_ALL;
    bool waits = waits_local && dsb.is_wide;
    bool changed = false;

    for (struct bbm_record *r = bbm->open; r; r = r->next) {
        uint64_t me = bbm_bit(vcpu);

        if (waits && r->broadcast & me) {
            r->clean = UINT64_MAX;
        } else if (waits_local && r->local & me) {
            r->clean |= me;
        } else if ((r->broadcast | r->local) & me) {
            r->wait_kind = true;
        } else if (waits && (r->broadcast | r->local)) {
            r->wait_by = true;
        }
        changed |= !(r->holders & ~r->clean);
        if (r->visible) {
            continue;
        }
        if (vcpu != r->writer) {
            r->store_by |= dsb.is_wide && dsb.type != BBM_DSB_LOADS;
        } else if (dsb.type == BBM_DSB_LOADS) {
            r->store_kind = true;
        } else {
            r->visible_self = true;
            r->visible = dsb.is_wide;
            r->store_kind |= !dsb.is_wide;
        }
    }
    if (changed) {
        bbm_sweep(bbm);
    }
}

/* --- the whole --- */

struct bbm *bbm_new(const struct bbm_config *config)
{
    struct bbm *bbm;

    if (config->vcpus == 0 || config->vcpus > BBM_VCPUS_MAX) {
        return NULL;
    }
    bbm = calloc(1, sizeof(*bbm));
    if (!bbm) {
        return NULL;
    }
    bbm->config = *config;
    for (unsigned v = 0; v < BBM_VCPUS_MAX; v++) {
        bbm->loaded[v][0].root = bbm->loaded[v][1].root = BBM_NO_ROOT;
    }
    return bbm;
}

void bbm_free(struct bbm *bbm)
{
    if (!bbm) {
        return;
    }
    for (unsigned i = 0; i < BBM_BUCKETS; i++) {
        while (bbm->bucket[i]) {
            bbm_table_forget(bbm, bbm->bucket[i]);
        }
    }
    free(bbm);
}

void bbm_count(const struct bbm *bbm, struct bbm_counts *out)
{
    *out = bbm->counts;
}
