/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TLBI and DSB between vCPUs; see shootdown.h and docs/CONCURRENCY.md. */
#include "shootdown.h"

#include <sched.h>

#include "det.h"
#include "mmu/inject.h"
#include "translate.h"
#include "vm_priv.h"

/* Spins before a waiting DSB gives its host core to others. */
#define SPINS_BEFORE_YIELD 200u

static void relax(unsigned spins)
{
    if (spins % SPINS_BEFORE_YIELD == SPINS_BEFORE_YIELD - 1) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Applies what was taken from the vCPU's queue. */
static void apply(struct vcpu *vcpu, const struct inval_item *item)
{
    size_t n =
        translate_invalidate(vcpu, &item->op, item->issuer, item->ticket);

    event_emit(vcpu->events, vcpu->id, EVENT_apply, 0, item->issuer,
               item->ticket, item->op.kind, n);
    /* Acknowledged only now: whoever reads it may free the frame. */
    uv_mutex_lock(&vcpu->inval_lock);
    inval_acknowledge(vcpu->inval, item->issuer, item->ticket);
    uv_mutex_unlock(&vcpu->inval_lock);
}

void shootdown_apply(struct vcpu *vcpu)
{
    struct inval_item item;
    bool more;

    for (;;) {
        uv_mutex_lock(&vcpu->inval_lock);
        more = inval_take(vcpu->inval, &item);
        uv_mutex_unlock(&vcpu->inval_lock);
        if (!more) {
            return;
        }
        apply(vcpu, &item);
    }
}

void shootdown_apply_of(struct vcpu *vcpu, uint32_t issuer, uint64_t ticket)
{
    struct inval_item item;
    bool more;

    for (;;) {
        uv_mutex_lock(&vcpu->inval_lock);
        more = inval_acknowledged(vcpu->inval, issuer) < ticket &&
               inval_take_of(vcpu->inval, issuer, &item);
        uv_mutex_unlock(&vcpu->inval_lock);
        if (!more) {
            return;
        }
        apply(vcpu, &item);
    }
}

void shootdown_drain(struct vcpu *vcpu)
{
    uint64_t micro = atomic_load(&vcpu->vm->micro);

    if (atomic_load(&vcpu->micro_seen) != micro) {
        translate_flush_micro(vcpu);
        atomic_store(&vcpu->micro_seen, micro);
    }
    if (!vcpu->vm->det) { /* there it is a choice */
        shootdown_apply(vcpu);
    }
}

static void post(struct vcpu *target, uint32_t issuer, uint64_t ticket,
                 const struct tlbi_op *op)
{
    uv_mutex_lock(&target->inval_lock);
    (void)inval_post(target->inval, issuer, ticket, op); /* overflow: counted */
    uv_mutex_unlock(&target->inval_lock);
}

bool shootdown_tlbi(struct vcpu *vcpu, const struct insn *insn,
                    uint64_t operand, gva_t pc)
{
    struct vm *vm = vcpu->vm;
    struct tlbi_op op;

    if (!tlbi_decode(insn_op1(insn), insn_crn(insn), insn_crm(insn),
                     insn_op2(insn), operand, vcpu->regime.asid16, &op)) {
        return false;
    }
    vcpu->ticket++;
    event_tlbi(vcpu->events, vcpu->id, pc, insn_crm(insn), insn_op2(insn),
               operand, op.va, op.asid, op.size, vcpu->ticket);
    if (op.scope != TLBI_LOCAL && vm->broadcast) {
        for (unsigned i = 0; i < vm->cpus; i++) {
            struct vcpu *target = vm->vcpu[i];

            /*
             * A vCPU that is off has an empty TLB and gets it again at
             * CPU_ON, see reset() in vcpu.c.
             */
            if (target != vcpu && atomic_load(&target->powered)) {
                post(target, vcpu->id, vcpu->ticket, &op);
            }
        }
    }
    if (vm->det && det_defers_own(vm->det)) {
        post(vcpu, vcpu->id, vcpu->ticket, &op);
    } else {
        translate_invalidate(vcpu, &op, vcpu->id, vcpu->ticket);
    }
    if (vm->det) {
        det_tlbi_posted(vcpu, &op);
    }
    return true;
}

static bool owed_by(struct vcpu *target, const struct vcpu *issuer)
{
    bool owed;

    uv_mutex_lock(&target->inval_lock);
    owed = inval_owed(target->inval, issuer->id);
    uv_mutex_unlock(&target->inval_lock);
    return owed || atomic_load(&target->micro_seen) < issuer->icache_owed;
}

void shootdown_serve_claimed(struct vcpu *target)
{
    /* Its engine is another thread's: the next run flushes the micro-TLB. */
    target->micro_stale = true;
    shootdown_drain(target);
}

bool shootdown_serve(struct vcpu *target)
{
    if (!vcpu_claim(target)) {
        return false;
    }
    shootdown_serve_claimed(target);
    vcpu_release(target);
    return true;
}

static unsigned count_owed(struct vcpu *vcpu)
{
    unsigned owed = 0;

    for (unsigned i = 0; i < vcpu->vm->cpus; i++) {
        struct vcpu *target = vcpu->vm->vcpu[i];

        owed += target != vcpu && atomic_load(&target->powered) &&
                owed_by(target, vcpu);
    }
    return owed;
}

static void wait_for(struct vcpu *vcpu, struct vcpu *target)
{
    bool asked = false;

    for (unsigned spins = 0; owed_by(target, vcpu); spins++) {
        if (atomic_load(&vcpu->vm->stopping) ||
            !atomic_load(&target->powered)) {
            return; /* nobody will look any more, nor run */
        }
        if (shootdown_serve(target)) {
            continue;
        }
        if (!asked) {
            vcpu_request(target, VCPU_REQ_DRAIN);
            asked = true;
        }
        shootdown_drain(vcpu); /* they may be waiting for us */
        relax(spins);
    }
}

static void wait_for_all(struct vcpu *vcpu)
{
    struct vm *vm = vcpu->vm;

    /* First set everybody going, then wait for one after the other. */
    for (unsigned i = 0; i < vm->cpus; i++) {
        struct vcpu *target = vm->vcpu[i];

        if (target != vcpu && atomic_load(&target->powered) &&
            owed_by(target, vcpu) && !shootdown_serve(target)) {
            vcpu_request(target, VCPU_REQ_DRAIN);
        }
    }
    for (unsigned i = 0; i < vm->cpus; i++) {
        if (vm->vcpu[i] != vcpu) {
            wait_for(vcpu, vm->vcpu[i]);
        }
    }
    vcpu->completed = vcpu->ticket;
    vcpu->icache_owed = 0;
}

/* --inject: how far this DSB reaches, and whether it leaves anything to do. */
static bool injected_wide(struct vcpu *vcpu, bool is_wide)
{
    struct vm *vm = vcpu->vm;

    for (unsigned i = 0;
         vm->inject & INJECT_BIT(INJECT_WRONG_COMPLETER) && i < vm->cpus; i++) {
        if (vm->vcpu[i] != vcpu) {
            vm->vcpu[i]->completed = vm->vcpu[i]->ticket;
        }
    }
    return is_wide ? !(vm->inject & INJECT_BIT(INJECT_ISH_AS_NSH))
                   : (vm->inject & INJECT_BIT(INJECT_NSH_AS_ISH)) != 0;
}

void shootdown_dsb(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    bool is_wide = insn_barrier_domain(insn) != BARRIER_NSH;
    bool listened = event_wanted(vcpu->events, EVENT_dsb) ||
                    event_wanted(vcpu->events, EVENT_dsb_done);
    uint64_t start = 0;
    bool waits;

    if (vcpu->vm->inject) {
        is_wide = injected_wide(vcpu, is_wide);
    }
    waits = insn_barrier_type(insn) == BARRIER_ALL && is_wide &&
            (vcpu->completed != vcpu->ticket || vcpu->icache_owed);
    event_dsb(vcpu->events, vcpu->id, pc, insn->barrier_crm,
              listened && waits ? count_owed(vcpu) : 0, vcpu->ticket);
    if (vcpu->vm->det) {
        if (!is_wide && insn_barrier_type(insn) == BARRIER_ALL) {
            shootdown_apply_of(vcpu, vcpu->id, vcpu->ticket);
        } else if (insn_barrier_type(insn) == BARRIER_ALL) {
            det_unit_dsb(vcpu);
        }
        if (det_dsb(vcpu, is_wide && insn_barrier_type(insn) != BARRIER_LOADS,
                    waits, pc, insn->barrier_crm)) {
            vcpu_stop_for(vcpu, ACTION_YIELD); /* det_waited() ends it */
        } else {
            event_dsb_done(vcpu->events, vcpu->id, pc, insn->barrier_crm, 0,
                           vcpu->ticket);
        }
        return;
    }
    start = listened ? uv_hrtime() : 0;
    /* The guest's own stores are visible before anybody is asked to look. */
    atomic_thread_fence(memory_order_seq_cst);
    if (waits) {
        wait_for_all(vcpu);
        atomic_thread_fence(memory_order_seq_cst);
    }
    event_dsb_done(vcpu->events, vcpu->id, pc, insn->barrier_crm,
                   listened ? uv_hrtime() - start : 0, vcpu->ticket);
}

void shootdown_icache(struct vcpu *vcpu)
{
    uint64_t generation = atomic_fetch_add(&vcpu->vm->micro, 1) + 1;

    vcpu->icache_owed = generation;
    translate_flush_micro(vcpu);
    /*
     * Not marked as seen: another vCPU's operation may have come in between,
     * and the next drain costs one more flush at most.
     */
}
