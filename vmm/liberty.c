/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The liberties that hardware takes, in the deterministic engines: when a
 * pending invalidation is applied, what is cached unasked or lost, how long a
 * table store stays hidden. What each may do is in docs/DETERMINISM.md.
 *
 * Called at events of the guest only, never from a micro-TLB miss that the
 * modelled TLB can answer: those are not the same in two runs.
 */
#include "det_priv.h"

#include "mmu/prefetch.h"
#include "shootdown.h"
#include "translate.h"

/* A waiting DSB lets the others make this many steps at most. */
#define WAIT_STEPS 32u
/* A store is hidden from walkers for this many steps at most. */
#define HIDDEN_STEPS 256u

/* --- where translations change --- */

static void hot_push(struct det *det, gva_t va)
{
    struct det_hot *hot = &det->hot;
    unsigned latest = (hot->next + DET_HOT - 1) % DET_HOT;

    va &= ~MMU_PAGE_MASK;
    if (hot->count && hot->va[latest] == va) {
        return;
    }
    hot->va[hot->next] = va;
    hot->next = (hot->next + 1) % DET_HOT;
    hot->count += hot->count < DET_HOT;
}

/* The i-th, the latest first. */
static gva_t hot_va(const struct det *det, unsigned i)
{
    return det->hot.va[(det->hot.next + 2 * DET_HOT - 1 - i) % DET_HOT];
}

void det_walked(struct vcpu *vcpu, gva_t va, const struct walk_result *w)
{
    struct det *det = vcpu->vm->det;
    gpa_t pa;

    if (w->tables == 0) {
        return;
    }
    pa = w->table[w->tables - 1];
    det->walked_pa[pa / 8 % DET_WALKED] = pa;
    det->walked_va[pa / 8 % DET_WALKED] = va;
    hot_push(det, va);
}

/* --- H2, H5, H11: broadcast operations --- */

void det_defer_own(struct det *det)
{
    det->defers_own = true;
}

bool det_defers_own(const struct det *det)
{
    return det->defers_own;
}

/* An issuer owes to itself too, where own operations are deferred. */
static bool owes(struct vcpu *target, const struct vcpu *issuer,
                 uint64_t ticket)
{
    return atomic_load(&target->powered) &&
           inval_owed(target->inval, issuer->id) &&
           inval_acknowledged(target->inval, issuer->id) < ticket;
}

static bool is_complete(struct det *det, const struct vcpu *issuer,
                        uint64_t ticket)
{
    for (unsigned i = 0; i < det->cpus; i++) {
        if (owes(det->vm->vcpu[i], issuer, ticket)) {
            return false;
        }
    }
    return true;
}

/* What the vCPU stored and what it may have seen of others' stores. */
static void show_stores(struct det *det, struct vcpu *vcpu)
{
    if (det->hidden && pte_buffer_drain(det->hidden, vcpu->id)) {
        event_emit(vcpu->events, vcpu->id, EVENT_pte_visible, 0, vcpu->id,
                   pte_buffer_pending(det->hidden));
    }
}

static void prefetch(struct det *det);

/*
 * All TLBIs that the DSB waits for are applied. Its stores show last: whoever
 * left out the DSB before the TLBI may see the old entry cached in between.
 */
static void complete_dsb(struct det *det, struct vcpu *vcpu)
{
    if (det->hidden && pte_buffer_pending_of(det->hidden, vcpu->id)) {
        prefetch(det);
    }
    show_stores(det, vcpu);
}

static void wake_waiting(struct det *det)
{
    for (unsigned i = 0; det->waiting && i < det->cpus; i++) {
        struct vcpu *vcpu = det->vm->vcpu[i];

        if (det->v[i].state == DET_WAITING &&
            is_complete(det, vcpu, det->v[i].wait_ticket)) {
            complete_dsb(det, vcpu);
            det_waited(det, vcpu);
        }
    }
}

void liberty_apply(struct det *det, struct vcpu *target)
{
    shootdown_apply(target);
    wake_waiting(det);
}

/* What the ticket stands for, and nothing beyond: others are not waiting. */
static void force(struct det *det, struct vcpu *issuer, uint64_t ticket)
{
    for (unsigned i = 0; i < det->cpus; i++) {
        if (owes(det->vm->vcpu[i], issuer, ticket)) {
            shootdown_apply_of(det->vm->vcpu[i], issuer->id, ticket);
        }
    }
    wake_waiting(det);
}

void liberty_force(struct det *det, struct vcpu *issuer)
{
    force(det, issuer, det->v[issuer->id].wait_ticket);
}

static bool is_prompt(const struct det *det)
{
    return det->hw->mode[HW_defer] == HW_OFF &&
           det->hw->mode[HW_repeat_tlbi] == HW_OFF &&
           det->hw->mode[HW_remote_unit] == HW_OFF;
}

void det_tlbi_posted(struct vcpu *issuer, const struct tlbi_op *op)
{
    struct det *det = issuer->vm->det;

    if (op->kind == TLBI_VA || op->kind == TLBI_VAA) {
        hot_push(det, op->va);
    }
    if (op->scope == TLBI_LOCAL) {
        return;
    }
    det->v[issuer->id].tlbi_done_ps =
        det_now_ps(det, issuer->id) + det->cost->tlbi_latency;
    if (is_prompt(det)) {
        force(det, issuer, issuer->ticket);
    }
}

/* Later, as far as these knobs go: the strongest of them counts. */
static bool applies_later(struct det *det)
{
    enum hw_knob knob = det->hw->mode[HW_defer] >= det->hw->mode[HW_repeat_tlbi]
                            ? HW_defer
                            : HW_repeat_tlbi;

    if (det->hw->mode[HW_remote_unit] > det->hw->mode[knob]) {
        knob = HW_remote_unit;
    }
    return det_liberty(det, knob, CHOICE_apply, 2) != 0;
}

/* Instruction caches take no liberties: everybody looks again now. */
static void flush_icaches(struct det *det)
{
    uint64_t micro = atomic_load(&det->vm->micro);

    for (unsigned i = 0; i < det->cpus; i++) {
        struct vcpu *vcpu = det->vm->vcpu[i];

        if (atomic_load(&vcpu->micro_seen) != micro) {
            translate_flush_micro(vcpu);
            atomic_store(&vcpu->micro_seen, micro);
        }
    }
}

void det_unit_dsb(struct vcpu *vcpu)
{
    struct det *det = vcpu->vm->det;

    if (det->hw->mode[HW_remote_unit] != HW_OFF && inval_pending(vcpu->inval)) {
        liberty_apply(det, vcpu);
    }
}

bool det_dsb(struct vcpu *vcpu, bool shows_stores, bool waits, gva_t pc,
             unsigned crm)
{
    struct det *det = vcpu->vm->det;
    struct det_vcpu *me = &det->v[vcpu->id];
    uint64_t ticket = vcpu->ticket;

    if (!waits) { /* one that waits for TLBIs is always one for stores */
        if (shows_stores) {
            show_stores(det, vcpu);
        }
        return false;
    }
    if (vcpu->icache_owed) {
        vcpu->icache_owed = 0;
        flush_icaches(det);
    }
    /* The erratum: the DSB is sure of the TLBIs before the last one only. */
    if (det->hw->mode[HW_repeat_tlbi] != HW_OFF &&
        det_liberty(det, HW_repeat_tlbi, CHOICE_wait, 2)) {
        ticket = me->errata_ticket;
    }
    me->errata_ticket = vcpu->ticket;
    /* The other erratum: it does not wait for others' units. */
    if (det->hw->mode[HW_remote_unit] != HW_OFF &&
        det_liberty(det, HW_remote_unit, CHOICE_wait, 2)) {
        vcpu->completed = vcpu->ticket;
        complete_dsb(det, vcpu);
        return false;
    }
    vcpu->completed = vcpu->ticket;
    if (det->vtime) {
        uint64_t clock = det_clock_ps(det, vcpu->id);

        if (clock < me->tlbi_done_ps) {
            me->base_ps += me->tlbi_done_ps - clock;
        }
    }
    if (is_complete(det, vcpu, ticket)) {
        complete_dsb(det, vcpu);
        return false;
    }
    if (det_liberty(det, HW_defer, CHOICE_wait, 2) == 0) {
        force(det, vcpu, ticket);
        complete_dsb(det, vcpu);
        return false;
    }
    me->state = DET_WAITING;
    me->wait_ticket = ticket;
    me->wait_until_step = det->steps + WAIT_STEPS;
    me->wait_pc = pc;
    me->wait_crm = crm;
    me->wait_from_ps = det_now_ps(det, vcpu->id);
    det->waiting++;
    return true;
}

/* --- H3: table stores and walkers --- */

void det_pte_stored(struct vcpu *vcpu, gpa_t pa, uint64_t old, uint64_t now)
{
    struct det *det = vcpu->vm->det;
    unsigned slot = pa / 8 % DET_WALKED;

    if (det->walked_pa[slot] == pa) {
        hot_push(det, det->walked_va[slot]);
    }
    if (det->hidden && det_liberty(det, HW_pte_delay, CHOICE_visible, 2) != 0) {
        if (!pte_buffer_pending(det->hidden)) {
            det->hidden_since = det->steps;
        }
        (void)pte_buffer_store(det->hidden, vcpu->id, pa, old, now);
    } else if (det->hidden) {
        /* What is hidden at this address comes before it. */
        pte_buffer_show_address(det->hidden, pa);
    }
}

void det_pte_updates(struct vcpu *vcpu, gpa_t pa)
{
    struct det *det = vcpu->vm->det;

    if (det->hidden) {
        (void)pte_buffer_show_address(det->hidden, pa);
    }
}

void liberty_observe(struct det *det, struct vcpu *vcpu)
{
    if (det->hidden && pte_buffer_pending(det->hidden)) {
        pte_buffer_observe(det->hidden, vcpu->id);
    }
}

void det_pte_read(struct vcpu *vcpu, gpa_t pa, uint64_t *inout)
{
    struct det *det = vcpu->vm->det;

    if (det->hidden) {
        (void)pte_buffer_read(det->hidden, vcpu->id, pa, inout);
    }
}

/* asks: whether it may be now; else only the bound is looked at. */
static void show_hidden(struct det *det, struct vcpu *vcpu, bool asks)
{
    if (!det->hidden || !pte_buffer_pending(det->hidden)) {
        return;
    }
    /* In the end every store is seen (the observers are coherent). */
    if (det->steps - det->hidden_since > HIDDEN_STEPS ||
        (asks && det_liberty(det, HW_pte_delay, CHOICE_visible, 2) == 0)) {
        (void)pte_buffer_show_oldest(det->hidden);
        event_emit(vcpu->events, vcpu->id, EVENT_pte_visible, 0, VM_CPUS_MAX,
                   pte_buffer_pending(det->hidden));
    }
}

/* --- H1: what is cached unasked --- */

static unsigned pick_descriptor(void *opaque, unsigned n)
{
    return det_choice(opaque, CHOICE_prefetch, n < CHOICE_MAX ? n : CHOICE_MAX);
}

/* Through one vCPU's eyes: one of the hot addresses, or any leaf there is. */
static void prefetch_drawn(struct det *det, struct vcpu *target)
{
    unsigned k = det_choice(det, CHOICE_prefetch, det->hot.count + 2);
    gva_t va;

    if (k < det->hot.count) {
        translate_prefetch(target, hot_va(det, k));
    } else if (translate_pick_leaf(target, k - det->hot.count, pick_descriptor,
                                   det, &va)) {
        translate_prefetch(target, va);
    }
}

static void prefetch(struct det *det)
{
    unsigned k;

    switch (det->hw->mode[HW_prefetch]) {
    case HW_OFF:
        break;
    case HW_RANDOM:
        k = det_choice(det, CHOICE_prefetch, det->cpus + 1);
        if (k && atomic_load(&det->vm->vcpu[k - 1]->powered)) {
            prefetch_drawn(det, det->vm->vcpu[k - 1]);
        }
        break;
    case HW_ON:
        for (unsigned i = 0; det->hot.count && i < det->cpus; i++) {
            if (atomic_load(&det->vm->vcpu[i]->powered)) {
                translate_prefetch(det->vm->vcpu[i], hot_va(det, 0));
            }
        }
        break;
    }
}

static void evict(struct det *det, struct vcpu *vcpu)
{
    unsigned k = det->hot.count ? det_liberty(det, HW_evict, CHOICE_evict,
                                              det->hot.count + 1)
                                : 0;

    if (k) {
        translate_evict(vcpu, hot_va(det, k - 1));
    }
}

void liberty_at_point(struct det *det, struct vcpu *vcpu,
                      enum choice_event event)
{
    if (inval_pending(vcpu->inval) && !applies_later(det)) {
        liberty_apply(det, vcpu);
    }
    switch (event) {
    case CHOICE_EVENT_PTE_STORE:
    case CHOICE_EVENT_TLBI:
    case CHOICE_EVENT_DSB:
    case CHOICE_EVENT_ROOT:
    case CHOICE_EVENT_NOTE:
    case CHOICE_EVENT_FAULT:
    case CHOICE_EVENT_UNKNOWN:
        show_hidden(det, vcpu, true);
        prefetch(det);
        evict(det, vcpu);
        break;
    case CHOICE_EVENT_ATOMIC: /* locks: too many, and nothing changes */
    case CHOICE_EVENT_IPI:
    case CHOICE_EVENT_SPIN:
    case CHOICE_EVENTS:
        show_hidden(det, vcpu, false);
        break;
    }
}

/* --- H4, H6, H10, H14: what stays --- */

void det_widen(struct vcpu *vcpu, struct tlbi_op *op)
{
    struct det *det = vcpu->vm->det;
    bool tables = op->last_level &&
                  det_liberty(det, HW_walk_cache, CHOICE_tables, 2) == 0;
    bool operands = (op->ttl_level || op->is_range) &&
                    det_liberty(det, HW_literal, CHOICE_literal, 2) == 0;

    if (tables || operands) {
        tlbi_widen(op, tables, operands);
    }
}

void det_asid_changes(struct vcpu *vcpu)
{
    struct det *det = vcpu->vm->det;
    const struct tlbi_op op = {.kind = TLBI_ASID, .asid = vcpu->regime.asid};

    if (det_liberty(det, HW_asid_retain, CHOICE_asid, 2) == 0) {
        translate_invalidate(vcpu, &op, vcpu->id, 0);
    }
}

/* Entries that a look-up would prefer to a block that has just come in. */
struct conflict {
    struct vcpu *vcpu;
    const struct tlb_entry *block;
    bool found; /* there is one */
    bool drop;  /* the block wins */
};

static bool in_block(void *opaque, struct tlb_entry *entry)
{
    struct conflict *c = opaque;
    const struct tlb_entry *block = c->block;

    if (entry->t.page_shift < block->t.page_shift &&
        entry->va >> block->t.page_shift == block->va >> block->t.page_shift &&
        (entry->t.global || block->t.global || entry->asid == block->asid)) {
        c->found = true;
        if (c->drop) {
            translate_drop(c->vcpu, entry);
        }
    }
    return !c->found || c->drop;
}

/*
 * Chosen when a block comes in beside smaller entries, once for all of them: a
 * look-up must not ask. A smaller one never comes in beside a block that a
 * look-up would have found, so this is all there is.
 */
void det_inserted(struct vcpu *vcpu, const struct tlb_entry *entry)
{
    struct det *det = vcpu->vm->det;
    struct conflict c = {.vcpu = vcpu, .block = entry};

    if (det->hw->mode[HW_multi_size] == HW_OFF ||
        entry->t.page_shift == MMU_PAGE_SHIFT) {
        return;
    }
    tlb_foreach(vcpu->tlb, in_block, &c);
    if (c.found && det_liberty(det, HW_multi_size, CHOICE_size, 2)) {
        c.drop = true;
        tlb_foreach(vcpu->tlb, in_block, &c);
    }
}
