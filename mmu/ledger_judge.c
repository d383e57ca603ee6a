/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's contract points: frames given away (S1), operations that end
 * (S2), contents that are read (S4), faults (S15); who can use a record's
 * entry; and what is told. Single thread; see ledger_priv.h.
 */
#include "ledger_priv.h"

/* --- who --- */

bool ledger_is_live(const struct ledger *l, const struct ledger_record *r,
                    unsigned vcpu)
{
    const struct ledger_loaded *loaded = &l->s.vcpu[vcpu].loaded[r->half];

    if (!l->full) {
        return true;
    }
    for (unsigned i = 0; i < r->olds; i++) {
        /* Entries that are global need neither root nor ASID. */
        if (r->old[i].holders & ledger_bit(vcpu) &&
            ledger_is_global(r->old[i].desc, r->level)) {
            return l->s.vcpu[vcpu].loaded[0].root != LEDGER_NO_ROOT ||
                   l->s.vcpu[vcpu].loaded[1].root != LEDGER_NO_ROOT;
        }
    }
    return loaded->root == r->root && (r->half || loaded->asid == r->tag[vcpu]);
}

static bool is_table(const struct ledger_record *r)
{
    for (unsigned i = 0; i < r->olds; i++) {
        if (desc_kind(r->old[i].desc, r->level) == DESC_KIND_TABLE) {
            return true;
        }
    }
    return false;
}

unsigned ledger_el_of(const struct ledger *l, unsigned vcpu)
{
    return l->config.el ? l->config.el(l->config.opaque, vcpu)
                        : l->s.vcpu[vcpu].el;
}

struct ledger_sight ledger_see(const struct ledger *l,
                               const struct ledger_record *r, uint64_t mask)
{
    struct ledger_sight sight = {mask, 0};
    bool at_once;

    if (!l->full) {
        return sight;
    }
    at_once = r->half || is_table(r) ||
              (!l->config.ipi && !ledger_is_dying(l, r->root));
    for (uint64_t left = mask; left; left &= left - 1) {
        unsigned v = (unsigned)__builtin_ctzll(left);

        if (!ledger_is_live(l, r, v) || (!at_once && ledger_el_of(l, v) != 0)) {
            sight.now &= ~ledger_bit(v);
            sight.later |= ledger_bit(v);
        }
    }
    return sight;
}

/* --- what is missing --- */

enum ledger_step ledger_store_step(const struct ledger_record *r)
{
    return r->store_kind ? LEDGER_STEP_STORE_KIND
           : r->store_by ? LEDGER_STEP_STORE_BY
                         : LEDGER_STEP_STORE_DSB;
}

/* A TLBI that nobody waited for. */
static enum ledger_step wait_step(const struct ledger_record *r, unsigned user)
{
    uint64_t issuers = r->broadcast | r->local;

    for (unsigned i = 0; i < LEDGER_WAITS; i++) {
        if (r->wait[i].mask) {
            issuers |= ledger_bit(r->wait[i].issuer);
        }
    }
    /* Who issued others meanwhile executed DSBs for their stores. */
    if (r->wait_by && (!r->wait_kind || !(issuers & ledger_bit(user)))) {
        return LEDGER_STEP_TLBI_BY;
    }
    return r->wait_kind ? LEDGER_STEP_TLBI_KIND : LEDGER_STEP_TLBI_DSB;
}

/* For those of its holders; user: who relies on it. */
static enum ledger_step step_of(const struct ledger_record *r, uint64_t left,
                                unsigned user)
{
    uint64_t asked = r->broadcast ? UINT64_MAX : r->local;

    if (!r->visible && !(r->visible_self && left == ledger_bit(r->writer))) {
        return r->early != LEDGER_STEP_BREAK ? r->early : ledger_store_step(r);
    }
    for (unsigned i = 0; i < LEDGER_WAITS; i++) {
        asked |= r->wait[i].mask;
    }
    if (r->units && !(left & ~r->units)) {
        return LEDGER_STEP_OWN_DSB;
    }
    if (!(left & ~asked)) {
        return wait_step(r, user);
    }
    if (r->asid_missed) {
        return LEDGER_STEP_ASID;
    }
    if ((asked | r->cleaned) & r->added) {
        return LEDGER_STEP_SCOPE;
    }
    /* A TLBI of another place tells least. */
    return r->early != LEDGER_STEP_BREAK && r->miss <= LEDGER_STEP_VA ? r->early
                                                                      : r->miss;
}

/* --- what is told --- */

void ledger_report(struct ledger *l, struct ledger_violation *v)
{
    if (l->config.rules & LEDGER_S(ledger_rule_number(v->rule))) {
        l->counts.violations++;
        l->config.violation(l->config.opaque, v);
    }
}

struct ledger_violation ledger_describe(const struct ledger_table *t,
                                        unsigned index)
{
    return (struct ledger_violation){
        .pa = t->page + index * 8,
        .level = t->level,
        .has_va = !t->shared,
        .va = t->va + ((gva_t)index << mmu_level_shift(t->level)),
        .size = UINT64_C(1) << mmu_level_shift(t->level),
        .asid = t->root->asid,
    };
}

static void complete(struct ledger_violation *v, const struct ledger_record *r,
                     uint64_t who)
{
    v->step = step_of(r, who, v->now_vcpu);
    v->why = r->why;
    v->break_vcpu = r->writer;
    v->break_pc = r->pc;
    v->dirty = who;
    v->tlbi = r->near_tlbi;
    v->dsb = r->near_dsb;
    v->hits = r->hits;
}

/* The same again, or a free one; NULL: the first ones are enough. */
static struct ledger_late *late_for(struct ledger_record *r,
                                    const struct ledger_violation *v)
{
    struct ledger_late *free = NULL;

    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        struct ledger_late *late = &r->late[i];

        if (late->mask && late->rule == v->rule && late->old == v->old) {
            return late;
        }
        if (!late->mask && !free) {
            free = late;
        }
    }
    return free;
}

static void keep_late(struct ledger *l, const struct ledger_violation *v,
                      struct ledger_record *r, uint64_t mask)
{
    struct ledger_late *late = late_for(r, v);

    if (!late) {
        return;
    }
    if (!late->mask) {
        late->rule = v->rule;
        late->vcpu = v->now_vcpu;
        late->pc = v->now_pc;
        late->frame = v->frame;
        late->op = v->op;
        late->contract = v->contract;
        late->old = v->old;
        late->now = v->now;
        late->change = v->change;
        late->visible = r->visible;
        late->asked = (struct ledger_asked){0};
    }
    late->mask |= mask;
    l->s.late |= mask;
    l->s.looked &= ~mask;
}

void ledger_tell(struct ledger *l, struct ledger_violation *v,
                 struct ledger_record *r, struct ledger_sight sight)
{
    if (l->full) {
        if (r->told & UINT32_C(1) << v->rule) {
            return;
        }
        ledger_touch(l, r, sizeof(*r));
        if (!sight.now) {
            keep_late(l, v, r, sight.later);
            return;
        }
        r->told |= UINT32_C(1) << v->rule;
    }
    complete(v, r, sight.now);
    v->dormant = sight.later;
    ledger_report(l, v);
}

/* A record of which the table may be gone. */
static struct ledger_violation describe(const struct ledger_record *r)
{
    return (struct ledger_violation){
        .pa = r->pa,
        .level = r->level,
        .has_va = !r->shared,
        .va = r->va,
        .size = UINT64_C(1) << mmu_level_shift(r->level),
    };
}

static void judge_late(struct ledger *l, struct ledger_record *r,
                       struct ledger_late *late, unsigned vcpu)
{
    struct ledger_violation v = describe(r);

    ledger_touch(l, r, sizeof(*r));
    late->mask &= ~ledger_bit(vcpu);
    if (r->told & UINT32_C(1) << late->rule) {
        return;
    }
    v.rule = late->rule;
    v.is_late = true;
    v.old = late->old;
    v.now = late->now;
    v.change = late->change;
    v.asid = r->tag[vcpu];
    v.now_vcpu = late->vcpu;
    v.now_pc = late->pc;
    v.frame = late->frame;
    v.op = late->op;
    v.contract = late->contract;
    complete(&v, r, ledger_bit(vcpu));
    r->told |= UINT32_C(1) << v.rule;
    ledger_report(l, &v);
}

/* It came back without a flush: what it was not to be able to do, it can. */
static void judge_lates(struct ledger *l, struct ledger_record *r,
                        unsigned vcpu)
{
    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        if (r->late[i].mask & ledger_bit(vcpu)) {
            judge_late(l, r, &r->late[i], vcpu);
        }
    }
}

/*
 * This is asked at each event while somebody is late. Whoever was looked at is
 * not again before the root changes, or what is owed: with 8,192 pages that
 * idle CPUs had still to flush, half of the time went to looking again.
 */
void ledger_el(struct ledger *l, unsigned vcpu, unsigned el)
{
    ledger_touch(l, &l->s.vcpu[vcpu].el, sizeof(l->s.vcpu[vcpu].el));
    l->s.vcpu[vcpu].el = el;
    if (el == 0 && l->s.clash & ledger_bit(vcpu)) {
        ledger_tag_back(l, vcpu);
    }
    if (el != 0 || !(l->s.late & ~l->s.looked & ledger_bit(vcpu))) {
        return;
    }
    l->s.late = 0;
    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        uint64_t late = ledger_record_late(r);

        if (late & ledger_bit(vcpu) && ledger_is_live(l, r, vcpu)) {
            judge_lates(l, r, vcpu);
            late = ledger_record_late(r);
        }
        l->s.late |= late;
    }
    l->s.looked |= ledger_bit(vcpu);
}

uint64_t ledger_late(const struct ledger *l)
{
    return (l->s.late & ~l->s.looked) | l->s.clash;
}

/* --- S1 and S4: frames --- */

struct contract {
    enum ledger_rule rule;
    uint8_t perms; /* what nobody may have left */
    unsigned vcpu;
    uint64_t pc;
    gpa_t frame;
};

static void judge_old(struct ledger *l, const struct contract *c,
                      const struct ledger_old *old)
{
    struct ledger_record *r = old->record;
    struct ledger_violation v;
    gpa_t output = desc_output(old->desc, r->level);

    if (!old->holders || c->frame < output ||
        c->frame - output >= UINT64_C(1) << mmu_level_shift(r->level) ||
        !(ledger_record_lost(l, r, old) & c->perms)) {
        return;
    }
    v = describe(r);
    v.rule = c->rule;
    v.asid = r->tag[__builtin_ctzll(old->holders)];
    v.old = old->desc;
    v.now = r->table ? r->table->desc[r->index] : 0;
    v.now_vcpu = c->vcpu;
    v.now_pc = c->pc;
    v.frame = c->frame;
    ledger_tell(l, &v, r, ledger_see(l, r, old->holders));
}

static void judge_frame(struct ledger *l, const struct contract *c)
{
    for (struct ledger_old *o = ledger_olds_of(l, c->frame); o; o = o->next) {
        judge_old(l, c, o);
    }
    for (struct ledger_old *o = l->s.huge; o; o = o->next) {
        judge_old(l, c, o);
    }
}

/* Nobody can load the root again: who has its tags is S9's. */
static void drop_orphans(struct ledger *l, gpa_t root)
{
    struct ledger_record *next;
    bool changed = false;

    for (struct ledger_record *r = l->s.open; r; r = next) {
        next = r->next;
        if (!r->table && r->root == root) {
            ledger_record_free(l, r);
            changed = true;
        }
    }
    if (changed) {
        ledger_sweep(l);
    }
}

void ledger_frame_free(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t page)
{
    page &= ~MMU_PAGE_MASK;
    ledger_judge_table_free(l, vcpu, pc, page);
    if (l->full) {
        const struct contract c = {LEDGER_FREE, PERM_ALL, vcpu, pc, page};

        judge_frame(l, &c);
        ledger_said_free(l, vcpu, pc, page);
        ledger_tag_root_gone(l, page);
        drop_orphans(l, page);
    }
}

void ledger_frame_alloc(struct ledger *l, unsigned vcpu, uint64_t pc,
                        gpa_t page)
{
    const struct contract c = {LEDGER_FREE, PERM_ALL, vcpu, pc,
                               page & ~MMU_PAGE_MASK};

    if (l->full) {
        judge_frame(l, &c);
    }
}

void ledger_copy_begin(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t page)
{
    const struct contract c = {LEDGER_READER, PERM_W0 | PERM_W1, vcpu, pc,
                               page & ~MMU_PAGE_MASK};

    if (l->full) {
        judge_frame(l, &c);
    }
}

void ledger_io_begin(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t page)
{
    ledger_copy_begin(l, vcpu, pc, page);
    ledger_frame_clean(l, vcpu, pc, page); /* as it is there, at last */
}

/* --- S2: operations --- */

void ledger_op_begin(struct ledger *l, unsigned vcpu, uint64_t task,
                     unsigned kind, gva_t start, gva_t end,
                     enum ledger_contract contract)
{
    struct ledger_operation *op = &l->s.op[0];

    for (unsigned i = 1; i < LEDGER_OPS_MAX && op->begin; i++) {
        if (l->s.op[i].begin < op->begin) {
            op = &l->s.op[i]; /* a free one, or the oldest */
        }
    }
    ledger_touch(l, op, sizeof(*op));
    op->task = task;
    op->vcpu = vcpu;
    op->kind = kind;
    op->contract = contract;
    op->root = l->s.vcpu[vcpu].loaded[0].root;
    op->start = start;
    op->end = end;
    op->begin = ++l->s.seq;
}

static struct ledger_operation *find_op(struct ledger *l, unsigned vcpu,
                                        uint64_t task, unsigned kind)
{
    struct ledger_operation *found = NULL;

    for (unsigned i = 0; i < LEDGER_OPS_MAX; i++) {
        struct ledger_operation *op = &l->s.op[i];

        if (op->begin && op->kind == kind && op->task == task &&
            (task || op->vcpu == vcpu) &&
            (!found || op->begin > found->begin)) {
            found = op;
        }
    }
    return found;
}

static void judge_range(struct ledger *l, unsigned vcpu, uint64_t pc,
                        const struct ledger_operation *op,
                        struct ledger_record *r)
{
    uint8_t perms =
        op->contract == LEDGER_CONTRACT_NOWRITE ? PERM_W0 | PERM_W1 : PERM_ALL;

    for (unsigned i = 0; i < r->olds; i++) {
        const struct ledger_old *old = &r->old[i];
        struct ledger_violation v;

        if (!old->holders || old->born >= op->begin ||
            !(ledger_record_lost(l, r, old) & perms)) {
            continue;
        }
        v = describe(r);
        v.rule = LEDGER_RETURN;
        v.asid = r->tag[__builtin_ctzll(old->holders)];
        v.old = old->desc;
        v.now = r->table ? r->table->desc[r->index] : 0;
        v.now_vcpu = vcpu;
        v.now_pc = pc;
        v.op = op->kind;
        v.contract = op->contract;
        ledger_tell(l, &v, r, ledger_see(l, r, old->holders));
    }
}

void ledger_op_end(struct ledger *l, unsigned vcpu, uint64_t pc, uint64_t task,
                   unsigned kind)
{
    struct ledger_operation *op = find_op(l, vcpu, task, kind);

    if (!op) {
        return;
    }
    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        gva_t last = r->va + ((UINT64_C(1) << mmu_level_shift(r->level)) - 1);

        if (l->full && op->contract != LEDGER_CONTRACT_NONE &&
            r->root == op->root && !r->half && !r->shared && r->va < op->end &&
            last >= op->start) {
            judge_range(l, vcpu, pc, op, r);
        }
    }
    ledger_touch(l, op, sizeof(*op));
    op->begin = 0;
}

/* --- S15 and S3 --- */

void ledger_fault(struct ledger *l, unsigned vcpu, uint64_t pc, gva_t va)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];
    unsigned level = 0;
    gpa_t pa =
        l->full ? ledger_leaf_of(l, me->loaded[va >> 55 & 1].root, va, &level)
                : 0;
    struct ledger_violation v;

    if (!l->full) {
        return;
    }
    ledger_touch(l, me, sizeof(*me));
    va &= ~(gva_t)MMU_PAGE_MASK;
    if (!pa || pa != me->fault_pa || va != me->fault_va) {
        me->faults = 0;
    }
    me->fault_pa = pa;
    me->fault_va = va;
    if (!pa || ++me->faults != LEDGER_LIVE_FAULTS) {
        return;
    }
    v = (struct ledger_violation){
        .rule = LEDGER_LIVELOCK,
        .step = LEDGER_STEP_BREAK,
        .pa = pa,
        .level = level,
        .has_va = true,
        .va = va,
        .size = UINT64_C(1) << mmu_level_shift(level),
        .asid = me->loaded[0].asid,
        .break_vcpu = vcpu,
        .break_pc = pc,
        .now_vcpu = vcpu,
        .now_pc = pc,
        .dirty = ledger_bit(vcpu),
    };
    (void)l->config.read64(l->config.opaque, pa, &v.now);
    v.old = v.now;
    ledger_report(l, &v);
}

void ledger_progress(struct ledger *l, unsigned vcpu)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    if (me->faults) {
        ledger_touch(l, me, sizeof(*me));
        me->faults = 0;
    }
}

void ledger_hit(struct ledger *l, unsigned vcpu, gva_t va)
{
    unsigned half = va >> 55 & 1;

    for (struct ledger_record *r = l->s.open; l->full && r; r = r->next) {
        uint64_t size = UINT64_C(1) << mmu_level_shift(r->level);

        if (r->half != half || r->shared || !(r->holders & ledger_bit(vcpu)) ||
            va < r->va || va - r->va >= size || !ledger_is_live(l, r, vcpu)) {
            continue;
        }
        ledger_touch(l, r, sizeof(*r));
        r->hits++;
        /* Wherever it runs: it was not to use this any more. */
        judge_lates(l, r, vcpu);
    }
}
