/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual time, timers and interrupts of the deterministic engines.
 *
 * seeded: one clock that what anybody executes moves on; a late interrupt is
 * late by a number of scheduling points. vtime: each vCPU has a clock; an
 * interrupt is due at a time.
 */
#include "det_priv.h"

/* Alternatives of CHOICE_irq: at once, or 4, 8, ... 256 points later. */
#define IRQ_DELAYS 8u
#define PS_PER_TICK (VM_TICK_NS * 1000)

uint64_t det_clock_ps(const struct det *det, unsigned id)
{
    const struct vcpu *vcpu = det->vm->vcpu[id];
    const struct vcpu_counters *c = vcpu->counters;
    uint64_t ps = det->v[id].base_ps;

    ps +=
        (c->instructions + vcpu->watch->instructions) * det->cost->instruction;
    ps += (c->wfe + c->yields) * det->cost->spin;
    for (unsigned i = 0; i < det->costly_count; i++) {
        ps += c->events[det->costly[i]] * det->cost->event[det->costly[i]];
    }
    return ps;
}

void det_clock_at_least(struct det *det, unsigned id, uint64_t ps)
{
    uint64_t clock = det_clock_ps(det, id);

    if (clock < ps) {
        det->v[id].base_ps += ps - clock;
    }
}

uint64_t det_now_ps(const struct det *det, unsigned id)
{
    if (det->vtime) {
        return det_clock_ps(det, id);
    }
    return det->current ? det->now_ps + det_clock_ps(det, det->current->id) -
                              det->slice_ps
                        : det->now_ps;
}

uint64_t det_now_ticks(struct sched *base)
{
    struct det *det = (struct det *)base;

    if (det->vtime) {
        /*
         * Clocks of vCPUs differ by up to a quantum; the counter must not be
         * seen to run backwards, so whoever reads it catches up.
         */
        det_clock_at_least(det, det->asking, det->now_ps);
        det->now_ps = det_clock_ps(det, det->asking);
        return det->now_ps / PS_PER_TICK;
    }
    return det_now_ps(det, det->asking) / PS_PER_TICK;
}

uint64_t det_time_ns(const struct det *det)
{
    uint64_t latest = det->now_ps;

    for (unsigned i = 0; det->vtime && i < det->cpus; i++) {
        uint64_t clock = det_clock_ps(det, i);

        latest = clock > latest ? clock : latest;
    }
    return latest / 1000;
}

void det_timer_changed(struct sched *base, unsigned cpu)
{
    struct det *det = (struct det *)base;
    uint64_t ticks = arch_timer_deadline(det->vm->timer, cpu);

    det->v[cpu].timer_ps =
        ticks < UINT64_MAX / PS_PER_TICK ? ticks * PS_PER_TICK : DET_NEVER;
    det->first_timer_ps = DET_NEVER;
    for (unsigned i = 0; i < det->cpus; i++) {
        det->first_timer_ps = MIN(det->first_timer_ps, det->v[i].timer_ps);
    }
}

void det_fire_timer(struct det *det, unsigned id)
{
    unsigned asking = det->asking;

    det->asking = id;
    arch_timer_update(det->vm->timer, id);
    det_timer_changed(&det->base, id);
    det->asking = asking;
}

/* --- interrupts --- */

void det_set_ready(struct det *det, struct vcpu *vcpu)
{
    struct det_vcpu *me = &det->v[vcpu->id];

    me->state = DET_READY;
    me->event = CHOICE_EVENT_UNKNOWN;
    me->object = 0;
}

void det_deliver(struct det *det, struct vcpu *vcpu)
{
    struct det_vcpu *me = &det->v[vcpu->id];

    det->irqs_pending -= me->irq_pending;
    me->irq_pending = false;
    atomic_store(&vcpu->irq_line, true);
    vcpu_request(vcpu, VCPU_REQ_IRQ);
    if (me->state == DET_PARKED) {
        det_set_ready(det, vcpu);
    }
}

void det_irq(struct sched *base, struct vcpu *vcpu, bool level)
{
    struct det *det = (struct det *)base;
    struct det_vcpu *me = &det->v[vcpu->id];
    unsigned delay;

    if (!level) {
        det->irqs_pending -= me->irq_pending;
        me->irq_pending = false;
        atomic_store(&vcpu->irq_line, false);
        return;
    }
    if (atomic_load(&vcpu->irq_line) || me->irq_pending) {
        return;
    }
    delay = det_liberty(det, HW_ipi_delay, CHOICE_irq, IRQ_DELAYS);
    if (delay == 0 && !det->vtime) {
        det_deliver(det, vcpu);
        return;
    }
    me->irq_pending = true;
    det->irqs_pending++;
    me->irq_due = det->vtime ? det_now_ps(det, det->asking) +
                                   (det->cost->irq_latency << delay)
                             : det->steps + (UINT64_C(2) << delay);
}

/* What has become due by now, for the vCPU that runs and, seeded, for all. */
void det_deliver_due(struct det *det, unsigned id)
{
    if (det->irqs_pending) {
        for (unsigned i = 0; i < det->cpus; i++) {
            struct det_vcpu *it = &det->v[i];

            if (it->irq_pending &&
                (det->vtime ? i == id && it->irq_due <= det_clock_ps(det, i)
                            : it->irq_due <= det->steps)) {
                det_deliver(det, det->vm->vcpu[i]);
            }
        }
    }
    if (det->vtime) {
        if (det->v[id].timer_ps <= det_clock_ps(det, id)) {
            det_fire_timer(det, id);
        }
        return;
    }
    if (det->first_timer_ps > det_now_ps(det, id)) {
        return;
    }
    for (unsigned i = 0; i < det->cpus; i++) {
        if (det->v[i].timer_ps <= det_now_ps(det, id)) {
            det_fire_timer(det, i);
        }
    }
}
