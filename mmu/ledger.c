/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger: from what a program does to the state of its descriptors. Single
 * thread; see ledger_priv.h.
 */
#include "mmu/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "ledger_priv.h"

#define ARENA ((size_t)64 << 20)

void ledger_root_load(struct ledger *l, unsigned vcpu, uint64_t pc,
                      unsigned half, gpa_t root, uint16_t asid)
{
    struct ledger_loaded *loaded = &l->s.vcpu[vcpu].loaded[half];
    const struct ledger_loaded before = *loaded;
    struct ledger_table *t = ledger_table_find(l, root);
    bool is_tagged = l->full && half == 0;

    if (is_tagged && (before.root != root || before.asid != asid)) {
        ledger_tag_leave(l, vcpu);
    }
    ledger_touch(l, loaded, sizeof(*loaded));
    loaded->root = root;
    loaded->asid = asid;
    if (t) {
        ledger_touch(l, t->root, offsetof(struct ledger_table, desc));
        t->root->ever_loaded |= ledger_bit(vcpu);
        ledger_touch(l, t, offsetof(struct ledger_table, desc));
        t->asid = asid;
    }
    if (is_tagged) {
        ledger_tag_load(l, vcpu, pc, root, asid);
    }
    if (before.root == root && !(is_tagged && before.asid != asid)) {
        return;
    }
    ledger_record_new_holder(l, root, half, vcpu, asid);
    if (before.root == LEDGER_NO_ROOT || before.root == root) {
        return;
    }
    t = ledger_table_find(l, before.root);
    if (t) {
        ledger_table_forget_idle(l, t);
    }
}

void ledger_vcpu_off(struct ledger *l, unsigned vcpu)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    ledger_touch(l, me, sizeof(*me));
    me->loaded[0].root = me->loaded[1].root = LEDGER_NO_ROOT;
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        for (struct ledger_table *t = l->s.bucket[i]; t; t = t->next) {
            ledger_touch(l, &t->ever_loaded, sizeof(t->ever_loaded));
            t->ever_loaded &= ~ledger_bit(vcpu);
        }
    }
    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        ledger_record_clean(l, r, ledger_bit(vcpu));
        r->cleaned &= ~ledger_bit(vcpu); /* nobody flushed it */
        r->added &= ~ledger_bit(vcpu);
    }
    ledger_tag_off(l, vcpu);
    ledger_sweep(l);
}

/* --- stores --- */

static void note_fault_change(struct ledger *l, gpa_t pa)
{
    for (unsigned v = 0; v < l->config.vcpus; v++) {
        struct ledger_vcpu *me = &l->s.vcpu[v];

        if (me->fault_pa == pa) {
            ledger_touch(l, me, sizeof(*me));
            me->fault_pa = 0;
        }
    }
}

static void put(struct ledger *l, struct ledger_table *t, unsigned index,
                uint64_t now)
{
    ledger_touch(l, &t->desc[index], sizeof(t->desc[index]));
    t->desc[index] = now;
    if (l->full) {
        note_fault_change(l, t->page + index * 8);
    }
}

static void be_born(struct ledger *l, struct ledger_table *t, unsigned index)
{
    ledger_touch(l, &t->born[index], sizeof(t->born[index]));
    t->born[index] = ++l->s.seq;
    if (!t->parent && !t->filled) {
        ledger_touch(l, &t->filled, sizeof(t->filled));
        t->filled = true;
        ledger_tag_filled(l, t->page);
    }
}

/* Does it now allow less than it did, in the same place? */
static bool is_reduced(const struct ledger *l, uint64_t old, uint64_t now,
                       unsigned level)
{
    return l->full &&
           ledger_lost(old, now, level, l->config.hardware_dirty) != 0;
}

/*
 * Stores to one place are seen in one order: who finds this one does not find
 * what was there before the break, so its writer's DSB shows that one, too.
 */
static void add_writer(struct ledger *l, struct ledger_record *r, unsigned vcpu)
{
    if (!r->visible) {
        ledger_touch(l, r, sizeof(*r));
        r->writers |= ledger_bit(vcpu);
    }
}

void ledger_store(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t pa,
                  uint64_t now)
{
    struct ledger_table *t = ledger_table_find(l, pa);
    unsigned index = (pa & MMU_PAGE_MASK) / 8;
    enum ledger_change raw = LEDGER_CHANGE_NONE, change = LEDGER_CHANGE_NONE;
    bool was, is;
    uint64_t old;

    if (!t || t->desc[index] == now) {
        return;
    }
    if (t->unlinked) {
        /* Emptying it is fine; anything else is another use. */
        if (now != 0) {
            ledger_judge_reuse(l, vcpu, pc, t, index, now);
        }
        put(l, t, index, now);
        return;
    }
    old = t->desc[index];
    was = desc_kind(old, t->level) != DESC_KIND_INVALID;
    is = desc_kind(now, t->level) != DESC_KIND_INVALID;
    if (was && is) {
        raw = ledger_change(old, now, t->level);
        change = ledger_change_of(l, old, now, t->level);
    }
    if (change != LEDGER_CHANGE_NONE) {
        ledger_judge_replace(l, vcpu, pc, t, index, now, change);
    } else if (!was && is && t->record[index]) {
        ledger_judge_make(l, vcpu, pc, t->record[index], now);
    }
    l->counts.makes += !was && is;
    if (is) {
        ledger_judge_link(l, vcpu, pc, t, index, now);
    }
    put(l, t, index, now);
    if (!l->full) {
        raw = change; /* what reads the same is no change at all */
    }
    if (was && (!is || raw != LEDGER_CHANGE_NONE)) {
        ledger_broken(l, vcpu, pc, t, index, old,
                      is ? LEDGER_REPLACED : LEDGER_REMOVED);
    } else if (was && is_reduced(l, old, now, t->level)) {
        ledger_broken(l, vcpu, pc, t, index, old, LEDGER_REDUCED);
    } else if (t->record[index]) {
        add_writer(l, t->record[index], vcpu);
    }
    if (is && (!was || raw != LEDGER_CHANGE_NONE)) {
        be_born(l, t, index);
    }
    if (t->record[index] && !t->record[index]->holders) {
        ledger_sweep(l); /* what nobody can hold is clean */
    }
}

void ledger_update(struct ledger *l, gpa_t pa, uint64_t now)
{
    struct ledger_table *t = ledger_table_find(l, pa);

    if (t) {
        put(l, t, (pa & MMU_PAGE_MASK) / 8, now);
    }
}

/* --- TLBI and DSB --- */

static bool has_asid(const struct ledger_record *r)
{
    return r->half == 0 && !r->shared;
}

/*
 * What the operation does for one old descriptor. mask: for which of its
 * holders, by the ASIDs of their entries.
 */
static enum ledger_step covers_one(const struct ledger *l,
                                   const struct ledger_record *r, uint64_t desc,
                                   const struct tlbi_op *op, uint64_t *mask)
{
    const struct ledger_target target = {
        .level = r->level,
        .desc = desc,
        .has_va = !r->shared,
        .va = r->va,
        .has_asid = has_asid(r),
        .asid = l->full ? op->asid : r->table->root->asid,
    };
    enum ledger_step result = ledger_covers(op, &target);

    *mask = UINT64_MAX;
    if (result != LEDGER_STEP_TLBI_DSB || !l->full || !has_asid(r) ||
        ledger_is_global(desc, r->level) ||
        (op->kind != TLBI_VA && op->kind != TLBI_ASID)) {
        return result;
    }
    for (uint64_t left = r->holders; left; left &= left - 1) {
        unsigned v = (unsigned)__builtin_ctzll(left);

        if (r->tag[v] != op->asid) {
            *mask &= ~ledger_bit(v);
        }
    }
    return *mask & r->holders ? result : LEDGER_STEP_ASID;
}

/* And for the record: of several old ones, the least. */
static enum ledger_step covers(const struct ledger *l,
                               const struct ledger_record *r,
                               const struct tlbi_op *op, uint64_t *mask)
{
    enum ledger_step result = LEDGER_STEP_TLBI_DSB;

    *mask = UINT64_MAX;
    for (unsigned i = 0; i < r->olds && result == LEDGER_STEP_TLBI_DSB; i++) {
        uint64_t one;

        result = covers_one(l, r, r->old[i].desc, op, &one);
        *mask &= one;
    }
    return result;
}

/* --- debts that are older than the last store --- */

static void ask(struct ledger_asked *asked, unsigned vcpu,
                const struct tlbi_op *op, uint64_t mask)
{
    if (op->scope == TLBI_LOCAL) {
        asked->local |= mask & ledger_bit(vcpu);
        return;
    }
    if (asked->wait.issuer != vcpu) {
        asked->wait.mask = 0; /* one at a time; at worst a debt stays */
    }
    asked->wait.issuer = vcpu;
    asked->wait.waited = false;
    asked->wait.mask |= mask;
}

/* Is this DSB of the issuer the one that the TLBIs are over with? */
static uint64_t take_wait(struct ledger_wait *wait, struct ledger_dsb dsb)
{
    uint64_t mask = wait->mask;

    if (dsb.is_early && !wait->waited) {
        wait->waited = true;
        return 0;
    }
    wait->mask = 0;
    wait->waited = false;
    return mask;
}

static uint64_t answer(struct ledger_asked *asked, unsigned vcpu,
                       struct ledger_dsb dsb)
{
    uint64_t mask = 0;

    if (dsb.type != LEDGER_DSB_ALL) {
        return 0;
    }
    mask = asked->local & ledger_bit(vcpu);
    asked->local &= ~mask;
    if (dsb.is_wide && asked->wait.mask && asked->wait.issuer == vcpu) {
        mask |= take_wait(&asked->wait, dsb);
    }
    return mask;
}

/*
 * A TLBI may be too early for the last store, and in time for what a store
 * before took away, or for what somebody has to do before he comes back.
 */
static void ask_for_older(struct ledger *l, struct ledger_record *r,
                          unsigned vcpu, const struct tlbi_op *op)
{
    uint64_t mask;

    for (unsigned i = 0; !r->visible && i < r->olds; i++) {
        struct ledger_old *old = &r->old[i];

        if (old->visible && old->holders &&
            covers_one(l, r, old->desc, op, &mask) == LEDGER_STEP_TLBI_DSB) {
            ledger_touch(l, r, sizeof(*r));
            ask(&old->asked, vcpu, op, mask);
        }
    }
    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        struct ledger_late *late = &r->late[i];

        if (late->mask && late->visible &&
            covers_one(l, r, late->old, op, &mask) == LEDGER_STEP_TLBI_DSB) {
            ledger_touch(l, r, sizeof(*r));
            ask(&late->asked, vcpu, op, mask);
        }
    }
}

static void answer_for_older(struct ledger_record *r, unsigned vcpu,
                             struct ledger_dsb dsb)
{
    uint64_t holders = 0;

    for (unsigned i = 0; i < r->olds; i++) {
        r->old[i].holders &= ~answer(&r->old[i].asked, vcpu, dsb);
        holders |= r->old[i].holders;
    }
    r->holders &= holders;
    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        r->late[i].mask &= ~answer(&r->late[i].asked, vcpu, dsb);
    }
}

static void note_near(struct ledger_record *r, unsigned vcpu, uint64_t pc,
                      const struct tlbi_op *op, enum ledger_step step)
{
    r->near_tlbi = (struct ledger_near){
        .known = true, .vcpu = vcpu, .pc = pc, .op = *op, .step = step};
}

static void wait_for(struct ledger_record *r, unsigned vcpu, uint64_t mask)
{
    struct ledger_wait *wait = &r->wait[0];

    for (unsigned i = 0; i < LEDGER_WAITS; i++) {
        if (r->wait[i].mask && r->wait[i].issuer == vcpu) {
            wait = &r->wait[i];
            break;
        }
        if (!r->wait[i].mask) {
            wait = &r->wait[i];
        }
    }
    if (wait->issuer != vcpu) {
        wait->mask = 0;
    }
    wait->issuer = vcpu;
    wait->waited = false;
    wait->mask |= mask;
}

/* Walkers find the place as it was stored last. */
static void show(struct ledger_record *r)
{
    r->visible = true;
    for (unsigned i = 0; i < r->olds; i++) {
        r->old[i].visible = true;
    }
    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        r->late[i].visible = true;
    }
}

static void tlbi_of_record(struct ledger *l, struct ledger_record *r,
                           unsigned vcpu, uint64_t pc, const struct tlbi_op *op)
{
    bool is_local = op->scope == TLBI_LOCAL;
    uint64_t mask;
    enum ledger_step step = covers(l, r, op, &mask);

    if (l->full) {
        ask_for_older(l, r, vcpu, op);
    }
    if (step != LEDGER_STEP_TLBI_DSB) {
        /* Worth telling if it looks as if this place was meant. */
        if (step > r->miss && (step != LEDGER_STEP_VA || vcpu == r->writer)) {
            ledger_touch(l, r, sizeof(*r));
            r->miss = step;
            /* One that would do and is not waited for is nearer. */
            if (!r->near_tlbi.known ||
                r->near_tlbi.step != LEDGER_STEP_TLBI_DSB) {
                note_near(r, vcpu, pc, op, step);
            }
        }
        return;
    }
    ledger_touch(l, r, sizeof(*r));
    /* One for a single vCPU is not nearer than one for all. */
    if (!is_local || !r->near_tlbi.known ||
        r->near_tlbi.step != LEDGER_STEP_TLBI_DSB ||
        r->near_tlbi.op.scope == TLBI_LOCAL) {
        note_near(r, vcpu, pc, op, step);
    }
    if (l->full && r->store_by & ledger_bit(vcpu)) {
        /*
         * Who invalidates for it has found it done, so its DSB before showed
         * it (a DSB covers what its vCPU has seen of others).
         */
        show(r);
    }
    if (!r->visible && !(is_local && vcpu == r->writer && r->visible_self)) {
        enum ledger_step why = ledger_store_step(r);

        r->early = why == LEDGER_STEP_STORE_DSB ? LEDGER_STEP_ORDER : why;
        return;
    }
    if (is_local && l->full && !(r->holders & ledger_bit(vcpu))) {
        /* Of a place that others have, on one that has it not. */
        r->miss = LEDGER_STEP_SCOPE;
    } else if (is_local && mask & ledger_bit(vcpu)) {
        r->local |= ledger_bit(vcpu);
    } else if (is_local) {
        r->asid_missed = true;
    } else if (!(r->holders & ~mask)) {
        r->broadcast |= ledger_bit(vcpu);
        r->waited &= ~ledger_bit(vcpu);
        r->asid_missed = false;
    } else {
        wait_for(r, vcpu, mask);
        r->asid_missed = true;
    }
}

void ledger_tlbi(struct ledger *l, unsigned vcpu, uint64_t pc,
                 const struct tlbi_op *op)
{
    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        tlbi_of_record(l, r, vcpu, pc, op);
    }
    if (l->config.early_dsb && op->scope != TLBI_LOCAL) {
        ledger_touch(l, &l->s.vcpu[vcpu].tlbi, sizeof(bool));
        l->s.vcpu[vcpu].tlbi = true;
    }
    if (l->full && (op->kind == TLBI_ALL || op->kind == TLBI_ASID)) {
        ledger_big_issue(l, vcpu, op);
    }
}

static bool is_asked(const struct ledger_record *r)
{
    uint64_t asked = r->broadcast | r->local | r->units;

    for (unsigned i = 0; i < LEDGER_WAITS; i++) {
        asked |= r->wait[i].mask;
    }
    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        asked |= r->late[i].asked.local | r->late[i].asked.wait.mask;
    }
    return asked != 0;
}

/* Who is rid of the record by this DSB; notes what was tried in vain. */
static uint64_t cleaned_by(struct ledger_record *r, unsigned vcpu,
                           struct ledger_dsb dsb)
{
    bool waits_local = dsb.type == LEDGER_DSB_ALL;
    bool waits = waits_local && dsb.is_wide;
    uint64_t me = ledger_bit(vcpu), mask = 0;
    bool is_owed = (r->broadcast | r->local) != 0;
    bool by_me = ((r->broadcast | r->local) & me) != 0;

    for (unsigned i = 0; i < LEDGER_WAITS; i++) {
        struct ledger_wait *wait = &r->wait[i];

        is_owed |= wait->mask != 0;
        by_me |= wait->mask && wait->issuer == vcpu;
        if (waits && wait->mask && wait->issuer == vcpu) {
            mask |= take_wait(wait, dsb);
        }
    }
    if (waits && r->broadcast & me && dsb.is_early && !(r->waited & me)) {
        r->waited |= me;
    } else if (waits && r->broadcast & me) {
        mask = UINT64_MAX;
    }
    if (waits_local && r->local & me) {
        mask |= me;
    }
    if (mask || !is_owed) {
        return mask;
    }
    r->wait_kind |= by_me;
    r->wait_by |= waits && !by_me;
    return 0;
}

static void show_store(struct ledger_record *r, unsigned vcpu,
                       struct ledger_dsb dsb)
{
    if (!(r->writers & ledger_bit(vcpu))) {
        if (dsb.is_wide && dsb.type != LEDGER_DSB_LOADS) {
            r->store_by |= ledger_bit(vcpu);
        }
        return;
    }
    if (dsb.type == LEDGER_DSB_LOADS) {
        r->store_kind = true;
        return;
    }
    r->visible_self |= vcpu == r->writer;
    r->store_kind |= !dsb.is_wide;
    if (dsb.is_wide) {
        show(r);
    }
}

/* What a CPU with the erratum makes of it. */
static struct ledger_dsb early(struct ledger *l, unsigned vcpu,
                               struct ledger_dsb dsb)
{
    bool *tlbi = &l->s.vcpu[vcpu].tlbi;

    if (dsb.type != LEDGER_DSB_ALL || !dsb.is_wide) {
        return dsb;
    }
    dsb.is_early = true;
    if (!*tlbi) {
        dsb.type = LEDGER_DSB_STORES; /* nothing that it comes second to */
    }
    ledger_touch(l, tlbi, sizeof(*tlbi));
    *tlbi = false;
    return dsb;
}

/* Are the accesses of this vCPU's units over with it? */
static bool is_for_units(struct ledger_dsb dsb)
{
    return dsb.type == LEDGER_DSB_ALL && dsb.is_wide;
}

void ledger_dsb(struct ledger *l, unsigned vcpu, uint64_t pc,
                struct ledger_dsb dsb)
{
    bool changed = false;

    if (l->config.early_dsb) {
        dsb = early(l, vcpu, dsb);
    }
    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        uint64_t mask;

        if (r->visible && !is_asked(r)) {
            continue; /* nothing for any DSB to do */
        }
        ledger_touch(l, r, sizeof(*r));
        mask = cleaned_by(r, vcpu, dsb);
        r->near_dsb = (struct ledger_near){
            .known = true,
            .vcpu = vcpu,
            .pc = pc,
            .dsb = dsb.type | (dsb.is_wide ? 4u : 0u),
        };
        if (l->full) {
            answer_for_older(r, vcpu, dsb);
        }
        if (r->units & ledger_bit(vcpu) && is_for_units(dsb)) {
            r->units &= ~ledger_bit(vcpu);
            ledger_record_clean(l, r, ledger_bit(vcpu));
        }
        if (mask) {
            ledger_record_over(l, r, vcpu, mask);
        }
        if (!r->visible) {
            show_store(r, vcpu, dsb);
        }
        changed |= !r->holders;
    }
    if (changed || l->s.late) {
        ledger_sweep(l);
    }
    if (l->full) {
        ledger_big_wait(l, vcpu, dsb);
    }
}

/* --- the whole --- */

struct ledger *ledger_new(const struct ledger_config *config)
{
    struct ledger *l;

    if (config->vcpus == 0 || config->vcpus > LEDGER_VCPUS_MAX) {
        return NULL;
    }
    l = calloc(1, sizeof(*l));
    if (!l) {
        return NULL;
    }
    l->config = *config;
    if (!l->config.rules) {
        l->config.rules = LEDGER_RULES_ALL;
    }
    l->full = (l->config.rules & ~LEDGER_RULES_BBM) != 0;
    if (ledger_arena_init(l, config->arena ? config->arena : ARENA)) {
        l->s.vcpu = ledger_reserve(l, config->vcpus * sizeof(*l->s.vcpu));
    }
    if (l->s.vcpu) {
        l->s.op = ledger_reserve(l, LEDGER_OPS_MAX * sizeof(*l->s.op));
    }
    if (l->s.op) {
        l->s.pin = ledger_reserve(l, LEDGER_PINS_MAX * sizeof(*l->s.pin));
    }
    if (!l->s.pin) {
        ledger_free(l);
        return NULL;
    }
    for (unsigned v = 0; v < config->vcpus; v++) {
        struct ledger_vcpu *vcpu = &l->s.vcpu[v];

        vcpu->loaded[0].root = vcpu->loaded[1].root = LEDGER_NO_ROOT;
        vcpu->walked = LEDGER_NO_ROOT;
        vcpu->el = 1;
    }
    return l;
}

void ledger_free(struct ledger *l)
{
    if (l) {
        ledger_arena_free(l);
        free(l);
    }
}

void ledger_count(const struct ledger *l, struct ledger_counts *out)
{
    *out = l->counts;
    out->tables = l->s.tables;
    out->open = l->s.records;
}
