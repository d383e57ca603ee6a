/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The deterministic schedulers, `seeded` and `vtime`: one loop that picks a
 * vCPU and runs it until an event at which another one goes first, or until
 * its quantum of blocks is over.
 *
 * Nothing that an engine does on its own (which micro-TLB misses there are,
 * when code is translated) may reach anything here: that differs between runs.
 */
#include "det_priv.h"

#include <inttypes.h>

#include "error.h"
#include "execution.h"
#include "translate.h"

/* Table stores that walkers may not see yet, of all vCPUs. */
#define HIDDEN_STORES 64u

static struct det *det_of(struct sched *base)
{
    return (struct det *)base;
}

/* vtime: what comes before anybody can run is made to happen. */
static struct vcpu *vtime_pick(struct det *det)
{
    for (;;) {
        uint64_t first_ps;
        struct vcpu *vcpu = det_furthest_behind(det, &first_ps);
        uint64_t wake_ps = DET_NEVER;

        for (unsigned i = 0; i < det->cpus; i++) {
            wake_ps = MIN(wake_ps, det_wakes_at(&det->v[i]));
        }
        if (wake_ps >= first_ps) {
            return vcpu;
        }
        det_wake_until(det, wake_ps);
    }
}

/* seeded: nobody can run. False: nothing will ever happen. */
static bool let_time_pass(struct det *det)
{
    unsigned first = det->cpus;
    uint64_t due = DET_NEVER;

    for (unsigned i = 0; i < det->cpus; i++) {
        if (det_may_run(det, i)) {
            return true; /* counting the step ended its DSB */
        }
    }
    for (unsigned i = 0; i < det->cpus; i++) {
        if (det->v[i].state == DET_WAITING) {
            liberty_force(det, det->vm->vcpu[i]);
            return true;
        }
    }
    for (unsigned i = 0; i < det->cpus; i++) {
        if (det->v[i].irq_pending && det->v[i].irq_due < due) {
            due = det->v[i].irq_due;
            first = i;
        }
    }
    if (first < det->cpus) {
        det_deliver(det, det->vm->vcpu[first]);
        return true;
    }
    for (unsigned i = 0; i < det->cpus; i++) {
        if (det->v[i].timer_ps < due) {
            due = det->v[i].timer_ps;
            first = i;
        }
    }
    if (first == det->cpus) {
        return false;
    }
    det->now_ps = due > det->now_ps ? due : det->now_ps;
    det_fire_timer(det, first);
    return true;
}

static struct vcpu *pick(struct det *det)
{
    struct vcpu *vcpu;

    if (det->vtime) {
        vcpu = vtime_pick(det);
        for (unsigned i = 0; !vcpu && i < det->cpus; i++) {
            if (det->v[i].state == DET_WAITING) {
                liberty_force(det, det->vm->vcpu[i]);
                return pick(det);
            }
        }
        return vcpu;
    }
    det_at(det, det->last, DET_AT_REST);
    while ((vcpu = det_choose(det, det->last, false)) == NULL) {
        det_count_step(det);
        if (atomic_load(&det->vm->stopping) || !let_time_pass(det)) {
            return NULL;
        }
    }
    return vcpu;
}

static void settle(struct det *det, struct vcpu *vcpu,
                   enum vcpu_outcome outcome)
{
    struct det_vcpu *me = &det->v[vcpu->id];

    switch (outcome) {
    case VCPU_PARKED:
        me->state = atomic_load(&vcpu->irq_line) ? DET_READY : DET_PARKED;
        break;
    case VCPU_OFF:
        me->state = atomic_load(&vcpu->powered) ? DET_READY : DET_OFF;
        break;
    case VCPU_YIELDED: /* or DET_WAITING, as det_dsb() left it */
    case VCPU_STOPPED:
        break;
    }
}

static void run_slice(struct det *det, struct vcpu *vcpu)
{
    struct det_vcpu *me = &det->v[vcpu->id];
    enum vcpu_outcome outcome;

    det->next = NULL;
    det->last = vcpu->id;
    det->asking = vcpu->id;
    det->slice_ps = det_clock_ps(det, vcpu->id);
    det->current = vcpu;
    det_at(det, vcpu->id, DET_AT_REST);
    det_deliver_due(det, vcpu->id);
    liberty_observe(det, vcpu);
    vcpu->watch->budget = det_new_budget(det);
    vcpu->counters->switches++;
    event_emit(vcpu->events, vcpu->id, EVENT_sched, 0, 0);
    me->event = CHOICE_EVENT_UNKNOWN;
    outcome = vcpu_run(vcpu);
    if (!det->vtime) {
        det->now_ps += det_clock_ps(det, vcpu->id) - det->slice_ps;
    }
    det->current = NULL;
    settle(det, vcpu, outcome);
}

void det_run(struct det *det)
{
    struct vm *vm = det->vm;

    det->paused = false;
    while (!atomic_load(&vm->stopping) && !det->paused) {
        struct vcpu *vcpu = det->next;

        /* What it was chosen for may have changed by what the last one did. */
        if (!vcpu || !det_may_run(det, vcpu->id)) {
            vcpu = pick(det);
        }
        if (atomic_load(&vm->abandoned)) {
            vm_stop(vm, (enum vm_outcome)atomic_load(&vm->abandoned));
        } else if (!vcpu && !atomic_load(&vm->stopping)) {
            vm_stop(vm, VM_OUTCOME_STUCK);
        } else if (vcpu) {
            run_slice(det, vcpu);
        }
    }
}

/* --- DSB --- */

void det_waited(struct det *det, struct vcpu *vcpu)
{
    struct det_vcpu *me = &det->v[vcpu->id];

    event_dsb_done(vcpu->events, vcpu->id, me->wait_pc, me->wait_crm,
                   (det_now_ps(det, vcpu->id) - me->wait_from_ps) / 1000,
                   vcpu->ticket);
    det->waiting--;
    det_set_ready(det, vcpu);
}

/* --- the scheduler's interface --- */

static void det_wake(struct sched *base, struct vcpu *vcpu)
{
    struct det *det = det_of(base);
    struct det_vcpu *me = &det->v[vcpu->id];

    if (me->state == DET_OFF && atomic_load(&vcpu->powered)) {
        me->base_ps = 0;
        me->base_ps -= det_clock_ps(det, vcpu->id);
        me->base_ps += det_now_ps(det, det->asking);
        me->passed_pc = VIEW_NO_PAGE;
        det_set_ready(det, vcpu);
    } else if (me->state == DET_PARKED) {
        det_set_ready(det, vcpu);
    }
}

static void det_exclusive(struct sched *base, struct vcpu *self,
                          void (*fn)(void *opaque), void *opaque)
{
    (void)base; /* there is one thread, and it is here */
    (void)self;
    fn(opaque);
}

static void det_thread(void *opaque)
{
    struct det *det = opaque;

    vm_session(det->vm);
    loop_stop(det->vm->loop);
}

static bool det_start(struct sched *base, GError **error)
{
    struct det *det = det_of(base);
    int err = uv_thread_create(&det->thread, det_thread, det);

    if (err) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the thread that runs the vCPUs: %s", uv_strerror(err));
        return false;
    }
    det->started = true;
    return true;
}

static void det_join(struct sched *base)
{
    struct det *det = det_of(base);

    if (det->started) {
        uv_thread_join(&det->thread);
        det->started = false;
    }
}

static void det_stop(struct sched *base)
{
    (void)base; /* the loop looks at vm->stopping */
}

static void det_free(struct sched *base)
{
    struct det *det = det_of(base);

    pte_buffer_free(det->hidden);
    pte_buffer_free(det->hidden_saved);
    g_free(det->candidates);
    g_free(det->v);
    g_free(det);
}

static uint64_t vcpu_now_ns(void *opaque, unsigned id)
{
    return det_now_ps(opaque, id) / 1000;
}

struct sched *sched_det_new(struct vm *vm)
{
    static const struct sched_ops ops = {
        .free = det_free,
        .start = det_start,
        .join = det_join,
        .stop = det_stop,
        .wake = det_wake,
        .irq = det_irq,
        .timer_changed = det_timer_changed,
        .quantum_over = det_quantum_over,
        .spin = det_spin,
        .exclusive = det_exclusive,
        .now_ticks = det_now_ticks,
    };
    struct det *det = g_new0(struct det, 1);

    det->base.ops = &ops;
    det->vm = vm;
    det->vtime = vm->config->engine == VM_ENGINE_VTIME;
    det->cpus = vm->cpus;
    det->hw = &vm->config->hw;
    det->cost = &cost_constant;
    for (unsigned k = 0; k < EVENT_KINDS; k++) {
        if (det->cost->event[k]) {
            det->costly[det->costly_count++] = k;
        }
    }
    det->candidates = g_new0(struct choice_candidate, vm->cpus);
    det->v = g_new0(struct det_vcpu, vm->cpus);
    for (unsigned i = 0; i < vm->cpus; i++) {
        det->v[i].passed_pc = VIEW_NO_PAGE;
        det->v[i].timer_ps = DET_NEVER;
    }
    if (det->hw->mode[HW_pte_delay] != HW_OFF) {
        det->hidden = pte_buffer_new(vm->cpus, HIDDEN_STORES);
        det->hidden_saved = pte_buffer_new(vm->cpus, HIDDEN_STORES);
    }
    det->first_timer_ps = DET_NEVER;
    events_set_clock(vm->events, vcpu_now_ns, det);
    vm->det = det;
    return &det->base;
}

void det_set_stream(struct det *det, struct choice_stream *stream,
                    const uint64_t *without)
{
    det->stream = stream;
    det->without = without;
    det->steps = 0;
    det->preemptions = 0;
    det->hidden_since = 0;
    for (unsigned i = 0; i < det->cpus; i++) {
        struct det_vcpu *it = &det->v[i];

        /* Both count steps, which begin again. */
        if (it->irq_pending && !det->vtime) {
            it->irq_due = 0;
        }
        it->wait_until_step = 0;
    }
}

void det_limit_steps(struct det *det, uint64_t steps)
{
    det->step_limit = steps;
}

void det_pause_at(struct det *det, uint64_t mark)
{
    det->pause_mark = mark;
    det->pauses = true;
}

bool det_paused(const struct det *det)
{
    return det->paused;
}

void det_end_at(struct det *det, uint64_t mark)
{
    det->end_mark = mark;
    det->ends = true;
}

void det_mark(struct det *det, uint64_t value)
{
    if (det->pauses && value == det->pause_mark) {
        det->pauses = false;
        det->paused = true;
        vcpu_request(det->current, VCPU_REQ_YIELD);
    } else if (det->ends && value == det->end_mark) {
        vm_stop(det->vm, VM_OUTCOME_END);
    }
}

unsigned det_guest_choice(struct det *det, unsigned n)
{
    return det_choice(det, n == 2 ? CHOICE_operation : CHOICE_input, n);
}

unsigned det_places(const struct det *det)
{
    return det->cpus * DET_PLACES;
}

uint64_t det_steps(const struct det *det)
{
    return det->steps;
}

uint64_t det_preemptions(const struct det *det)
{
    return det->preemptions;
}

unsigned det_current(const struct det *det)
{
    return det->last;
}
