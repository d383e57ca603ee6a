/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a debt of the ledger is paid: TLBIs, which ask its holders, and DSBs,
 * which show stores to walkers and wait for TLBIs. Single thread; see
 * ledger_priv.h.
 */
#include "ledger_priv.h"

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
        ledger_context_dsb(l, vcpu, dsb);
        ledger_big_wait(l, vcpu, dsb);
    }
}
