/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scheduling points: what a vCPU reaches before an event, after a fault, at
 * the end of a quantum and when it spins; and who goes next.
 *
 * seeded: a choice. vtime: the vCPU furthest behind, no choice.
 */
#include "det_priv.h"

#include "execution.h"

/* Blocks; some 5 instructions each. */
#define QUANTUM_BLOCKS 1024u
#define QUANTUM_SHARES 9u /* of CHOICE_quantum: 1024 blocks down to 4 */
#define VTIME_BLOCKS 128u
/* vtime: how far ahead of all others a vCPU may be at an event. */
#define VTIME_SLACK_PS UINT64_C(200000)

bool det_may_run(const struct det *det, unsigned id)
{
    return det->v[id].state == DET_READY &&
           !(det->without && det->without[id / 64] >> id % 64 & 1);
}

/*
 * Those that could go, in turn after `self`; self itself first or last, if it
 * can. That order is what makes 0 the plain answer.
 */
static unsigned gather(struct det *det, unsigned self, bool self_first)
{
    unsigned n = 0;
    bool self_ready = det_may_run(det, self);

    for (unsigned i = self_first ? 0 : 1; i < det->cpus + !self_first; i++) {
        unsigned id = (self + i) % det->cpus;
        const struct det_vcpu *it = &det->v[id];

        if (id == self ? self_ready : det_may_run(det, id)) {
            det->candidates[n++] = (struct choice_candidate){
                .vcpu = id, .event = it->event, .object = it->object};
        }
    }
    return n;
}

/* Seeded. NULL: nobody can run. */
struct vcpu *det_choose(struct det *det, unsigned self, bool self_first)
{
    unsigned n, k;

    if (!det->stream) {
        /* The plain answer without making the list. */
        for (unsigned i = self_first ? 0 : 1; i < det->cpus + !self_first;
             i++) {
            unsigned id = (self + i) % det->cpus;

            if (det_may_run(det, id)) {
                return det->vm->vcpu[id];
            }
        }
        return NULL;
    }
    n = gather(det, self, self_first);
    if (n == 0) {
        return NULL;
    }
    k = n == 1 ? 0 : choice_vcpu(det->stream, det->candidates, n);
    return det->vm->vcpu[det->candidates[k].vcpu];
}

/* vtime. The READY vCPU furthest behind, the lowest number of equals. */
struct vcpu *det_furthest_behind(const struct det *det, uint64_t *out_ps)
{
    struct vcpu *best = NULL;
    uint64_t best_ps = DET_NEVER;

    for (unsigned i = 0; i < det->cpus; i++) {
        if (det_may_run(det, i)) {
            uint64_t ps = det_clock_ps(det, i);

            if (!best || ps < best_ps) {
                best = det->vm->vcpu[i];
                best_ps = ps;
            }
        }
    }
    *out_ps = best_ps;
    return best;
}

void det_count_step(struct det *det)
{
    det->steps++;
    if (det->stream) {
        execution_step(det->vm->execution);
    }
    if (det->step_limit && det->steps >= det->step_limit &&
        !atomic_load(&det->vm->stopping)) {
        vm_stop(det->vm, VM_OUTCOME_LIMIT);
    }
    if (det->waiting) {
        for (unsigned i = 0; i < det->cpus; i++) {
            if (det->v[i].state == DET_WAITING &&
                det->v[i].wait_until_step <= det->steps) {
                liberty_force(det, det->vm->vcpu[i]);
            }
        }
    }
}

/* vtime. What wakes a parked vCPU next, and when. */
uint64_t det_wakes_at(const struct det_vcpu *it)
{
    if (it->state != DET_PARKED) {
        return DET_NEVER;
    }
    return it->irq_pending && it->irq_due < it->timer_ps ? it->irq_due
                                                         : it->timer_ps;
}

/* vtime. Wakes the parked vCPUs whose interrupt or timer comes until then. */
void det_wake_until(struct det *det, uint64_t until_ps)
{
    for (unsigned i = 0; i < det->cpus; i++) {
        uint64_t ps;

        /* A timer's interrupt comes after the timer. */
        while ((ps = det_wakes_at(&det->v[i])) <= until_ps && ps != DET_NEVER) {
            det_clock_at_least(det, i, ps);
            det_deliver_due(det, i);
        }
    }
}

/* The vCPU that shall go instead of this one, or this one. */
static struct vcpu *at_point(struct det *det, struct vcpu *vcpu,
                             bool self_first)
{
    if (det->vtime) {
        struct vcpu *behind;
        uint64_t ps;

        det_wake_until(det, det_clock_ps(det, vcpu->id));
        behind = det_furthest_behind(det, &ps);

        return !behind || ps + VTIME_SLACK_PS >= det_clock_ps(det, vcpu->id)
                   ? vcpu
                   : behind;
    }
    return det_choose(det, vcpu->id, self_first);
}

bool det_before(struct vcpu *vcpu, enum choice_event event, uint64_t object,
                gva_t pc)
{
    struct det *det = vcpu->vm->det;
    struct det_vcpu *me = &det->v[vcpu->id];
    struct vcpu *next;

    if (me->passed_pc == pc) {
        me->passed_pc = VIEW_NO_PAGE;
        return false;
    }
    det_at(det, vcpu->id, DET_AT_EVENT);
    det_count_step(det);
    me->event = event;
    me->object = object;
    liberty_at_point(det, vcpu, event);
    det_deliver_due(det, vcpu->id);
    next = at_point(det, vcpu, true);
    if (!next || next == vcpu) {
        return false;
    }
    me->passed_pc = pc;
    det->next = next;
    det->preemptions++;
    return true;
}

void det_after(struct vcpu *vcpu, enum choice_event event, uint64_t object)
{
    struct det *det = vcpu->vm->det;
    struct det_vcpu *me = &det->v[vcpu->id];
    struct vcpu *next;

    det_at(det, vcpu->id, DET_AT_EVENT);
    det_count_step(det);
    me->event = event;
    me->object = object;
    liberty_at_point(det, vcpu, event);
    det_deliver_due(det, vcpu->id);
    next = at_point(det, vcpu, true);
    if (next && next != vcpu) {
        det->next = next;
        det->preemptions++;
        vcpu_request(vcpu, VCPU_REQ_YIELD);
    }
}

void det_interrupted(struct vcpu *vcpu)
{
    vcpu->vm->det->v[vcpu->id].passed_pc = VIEW_NO_PAGE;
}

uint32_t det_new_budget(struct det *det)
{
    if (det->vtime) {
        return VTIME_BLOCKS;
    }
    return QUANTUM_BLOCKS >>
           det_liberty(det, HW_preempt, CHOICE_quantum, QUANTUM_SHARES);
}

void det_quantum_over(struct sched *base, struct vcpu *vcpu)
{
    struct det *det = (struct det *)base;
    struct det_vcpu *me = &det->v[vcpu->id];
    struct vcpu *next;

    det_at(det, vcpu->id, DET_AT_QUANTUM);
    vcpu->watch->budget = det_new_budget(det);
    det_count_step(det);
    me->event = CHOICE_EVENT_UNKNOWN;
    me->object = 0;
    liberty_at_point(det, vcpu, CHOICE_EVENT_UNKNOWN);
    det_deliver_due(det, vcpu->id);
    next = at_point(det, vcpu, false);
    if (next && next != vcpu) {
        det->next = next;
        det->preemptions++;
        vcpu_request(vcpu, VCPU_REQ_YIELD);
    }
}

bool det_spin(struct sched *base, struct vcpu *vcpu)
{
    struct det *det = (struct det *)base;
    struct det_vcpu *me = &det->v[vcpu->id];
    struct vcpu *next;

    det_at(det, vcpu->id, DET_AT_SPIN);
    det_count_step(det);
    me->event = CHOICE_EVENT_SPIN;
    me->object = 0;
    liberty_at_point(det, vcpu, CHOICE_EVENT_SPIN);
    det_deliver_due(det, vcpu->id);
    next = at_point(det, vcpu, false);
    if (!next || next == vcpu) {
        return false;
    }
    det->next = next;
    return true;
}
