/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The deterministic schedulers. One loop picks a vCPU and runs it until an
 * event at which another one goes first, or until its quantum of blocks is
 * over.
 *
 * seeded: who goes is a choice at each scheduling point; time is one clock that
 * what anybody executes moves on.
 * vtime: each vCPU has a clock; the one furthest behind goes, no choice.
 *
 * Nothing that an engine does on its own (which micro-TLB misses there are,
 * when code is translated) may reach anything here: that differs between runs.
 */
#include "det_priv.h"

#include <inttypes.h>

#include "error.h"
#include "execution.h"
#include "translate.h"

/* Blocks; some 5 instructions each. */
#define QUANTUM_BLOCKS 1024u
#define QUANTUM_SHARES 9u /* of CHOICE_quantum: 1024 blocks down to 4 */
#define VTIME_BLOCKS 128u
/* vtime: how far ahead of all others a vCPU may be at an event. */
#define VTIME_SLACK_PS UINT64_C(200000)
/* Alternatives of CHOICE_irq: at once, or 4, 8, ... 256 steps later. */
#define IRQ_DELAYS 8u
/* Table stores that walkers may not see yet, of all vCPUs. */
#define HIDDEN_STORES 64u
#define PS_PER_TICK (VM_TICK_NS * 1000)

static struct det *det_of(struct sched *base)
{
    return (struct det *)base;
}

/* --- time --- */

uint64_t det_clock_ps(const struct det *det, unsigned id)
{
    const struct vcpu *vcpu = det->vm->vcpu[id];
    const struct vcpu_counters *c = vcpu->counters;
    uint64_t ps = det->v[id].base_ps;

    ps += (c->instructions + vcpu->watch->instructions) *
          det->cost->instruction;
    ps += (c->wfe + c->yields) * det->cost->spin;
    for (unsigned i = 0; i < det->costly_count; i++) {
        ps += c->events[det->costly[i]] * det->cost->event[det->costly[i]];
    }
    return ps;
}

static void clock_at_least(struct det *det, unsigned id, uint64_t ps)
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
    return det->current
               ? det->now_ps + det_clock_ps(det, det->current->id) -
                     det->slice_ps
               : det->now_ps;
}

static uint64_t det_now_ticks(struct sched *base)
{
    struct det *det = det_of(base);

    if (det->vtime) {
        /*
         * Clocks of vCPUs differ by up to a quantum; the counter must not be
         * seen to run backwards, so whoever reads it catches up.
         */
        clock_at_least(det, det->asking, det->now_ps);
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

static void det_timer_changed(struct sched *base, unsigned cpu)
{
    struct det *det = det_of(base);
    uint64_t ticks = arch_timer_deadline(det->vm->timer, cpu);

    det->v[cpu].timer_ps = ticks < UINT64_MAX / PS_PER_TICK
                               ? ticks * PS_PER_TICK
                               : DET_NEVER;
    det->first_timer_ps = DET_NEVER;
    for (unsigned i = 0; i < det->cpus; i++) {
        det->first_timer_ps = MIN(det->first_timer_ps, det->v[i].timer_ps);
    }
}

static void fire_timer(struct det *det, unsigned id)
{
    unsigned asking = det->asking;

    det->asking = id;
    arch_timer_update(det->vm->timer, id);
    det_timer_changed(&det->base, id);
    det->asking = asking;
}

/* --- interrupts --- */

static void set_ready(struct det *det, struct vcpu *vcpu)
{
    struct det_vcpu *me = &det->v[vcpu->id];

    me->state = DET_READY;
    me->event = CHOICE_EVENT_UNKNOWN;
    me->object = 0;
}

static void deliver(struct det *det, struct vcpu *vcpu)
{
    struct det_vcpu *me = &det->v[vcpu->id];

    det->irqs_pending -= me->irq_pending;
    me->irq_pending = false;
    atomic_store(&vcpu->irq_line, true);
    vcpu_request(vcpu, VCPU_REQ_IRQ);
    if (me->state == DET_PARKED) {
        set_ready(det, vcpu);
    }
}

static void det_irq(struct sched *base, struct vcpu *vcpu, bool level)
{
    struct det *det = det_of(base);
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
        deliver(det, vcpu);
        return;
    }
    me->irq_pending = true;
    det->irqs_pending++;
    me->irq_due = det->vtime ? det_now_ps(det, det->asking) +
                                   (det->cost->irq_latency << delay)
                             : det->steps + (UINT64_C(2) << delay);
}

/* What has become due by now, for the vCPU that runs and, seeded, for all. */
static void deliver_due(struct det *det, unsigned id)
{
    if (det->irqs_pending) {
        for (unsigned i = 0; i < det->cpus; i++) {
            struct det_vcpu *it = &det->v[i];

            if (it->irq_pending &&
                (det->vtime ? i == id && it->irq_due <= det_clock_ps(det, i)
                            : it->irq_due <= det->steps)) {
                deliver(det, det->vm->vcpu[i]);
            }
        }
    }
    if (det->vtime) {
        if (det->v[id].timer_ps <= det_clock_ps(det, id)) {
            fire_timer(det, id);
        }
        return;
    }
    if (det->first_timer_ps > det_now_ps(det, id)) {
        return;
    }
    for (unsigned i = 0; i < det->cpus; i++) {
        if (det->v[i].timer_ps <= det_now_ps(det, id)) {
            fire_timer(det, i);
        }
    }
}

/* --- who goes next --- */

static bool may_run(const struct det *det, unsigned id)
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
    bool self_ready = may_run(det, self);

    for (unsigned i = self_first ? 0 : 1; i < det->cpus + !self_first; i++) {
        unsigned id = (self + i) % det->cpus;
        const struct det_vcpu *it = &det->v[id];

        if (id == self ? self_ready : may_run(det, id)) {
            det->candidates[n++] = (struct choice_candidate){
                .vcpu = id, .event = it->event, .object = it->object};
        }
    }
    return n;
}

/* Seeded. NULL: nobody can run. */
static struct vcpu *choose(struct det *det, unsigned self, bool self_first)
{
    unsigned n, k;

    if (!det->stream) {
        /* The plain answer without making the list. */
        for (unsigned i = self_first ? 0 : 1; i < det->cpus + !self_first;
             i++) {
            unsigned id = (self + i) % det->cpus;

            if (may_run(det, id)) {
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
static struct vcpu *furthest_behind(const struct det *det, uint64_t *out_ps)
{
    struct vcpu *best = NULL;
    uint64_t best_ps = DET_NEVER;

    for (unsigned i = 0; i < det->cpus; i++) {
        if (may_run(det, i)) {
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

static void count_step(struct det *det)
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
static uint64_t wakes_at(const struct det_vcpu *it)
{
    if (it->state != DET_PARKED) {
        return DET_NEVER;
    }
    return it->irq_pending && it->irq_due < it->timer_ps ? it->irq_due
                                                         : it->timer_ps;
}

/* vtime. Wakes the parked vCPUs whose interrupt or timer comes until then. */
static void wake_until(struct det *det, uint64_t until_ps)
{
    for (unsigned i = 0; i < det->cpus; i++) {
        uint64_t ps;

        /* A timer's interrupt comes after the timer. */
        while ((ps = wakes_at(&det->v[i])) <= until_ps && ps != DET_NEVER) {
            clock_at_least(det, i, ps);
            deliver_due(det, i);
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

        wake_until(det, det_clock_ps(det, vcpu->id));
        behind = furthest_behind(det, &ps);

        return !behind || ps + VTIME_SLACK_PS >= det_clock_ps(det, vcpu->id)
                   ? vcpu
                   : behind;
    }
    return choose(det, vcpu->id, self_first);
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
    count_step(det);
    me->event = event;
    me->object = object;
    liberty_at_point(det, vcpu, event);
    deliver_due(det, vcpu->id);
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
    count_step(det);
    me->event = event;
    me->object = object;
    liberty_at_point(det, vcpu, event);
    deliver_due(det, vcpu->id);
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

static uint32_t new_budget(struct det *det)
{
    if (det->vtime) {
        return VTIME_BLOCKS;
    }
    return QUANTUM_BLOCKS >>
           det_liberty(det, HW_preempt, CHOICE_quantum, QUANTUM_SHARES);
}

static void det_quantum_over(struct sched *base, struct vcpu *vcpu)
{
    struct det *det = det_of(base);
    struct det_vcpu *me = &det->v[vcpu->id];
    struct vcpu *next;

    det_at(det, vcpu->id, DET_AT_QUANTUM);
    vcpu->watch->budget = new_budget(det);
    count_step(det);
    me->event = CHOICE_EVENT_UNKNOWN;
    me->object = 0;
    liberty_at_point(det, vcpu, CHOICE_EVENT_UNKNOWN);
    deliver_due(det, vcpu->id);
    next = at_point(det, vcpu, false);
    if (next && next != vcpu) {
        det->next = next;
        det->preemptions++;
        vcpu_request(vcpu, VCPU_REQ_YIELD);
    }
}

static bool det_spin(struct sched *base, struct vcpu *vcpu)
{
    struct det *det = det_of(base);
    struct det_vcpu *me = &det->v[vcpu->id];
    struct vcpu *next;

    det_at(det, vcpu->id, DET_AT_SPIN);
    count_step(det);
    me->event = CHOICE_EVENT_SPIN;
    me->object = 0;
    liberty_at_point(det, vcpu, CHOICE_EVENT_SPIN);
    deliver_due(det, vcpu->id);
    next = at_point(det, vcpu, false);
    if (!next || next == vcpu) {
        return false;
    }
    det->next = next;
    return true;
}

/* --- the loop --- */

/* vtime: what comes before anybody can run is made to happen. */
static struct vcpu *vtime_pick(struct det *det)
{
    for (;;) {
        uint64_t first_ps;
        struct vcpu *vcpu = furthest_behind(det, &first_ps);
        uint64_t wake_ps = DET_NEVER;

        for (unsigned i = 0; i < det->cpus; i++) {
            wake_ps = MIN(wake_ps, wakes_at(&det->v[i]));
        }
        if (wake_ps >= first_ps) {
            return vcpu;
        }
        wake_until(det, wake_ps);
    }
}

/* seeded: nobody can run. False: nothing will ever happen. */
static bool let_time_pass(struct det *det)
{
    unsigned first = det->cpus;
    uint64_t due = DET_NEVER;

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
        deliver(det, det->vm->vcpu[first]);
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
    fire_timer(det, first);
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
    while ((vcpu = choose(det, det->last, false)) == NULL) {
        count_step(det);
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
        me->state =
            atomic_load(&vcpu->irq_line) ? DET_READY : DET_PARKED;
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
    deliver_due(det, vcpu->id);
    liberty_observe(det, vcpu);
    vcpu->watch->budget = new_budget(det);
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
        if (!vcpu || !may_run(det, vcpu->id)) {
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
    set_ready(det, vcpu);
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
        set_ready(det, vcpu);
    } else if (me->state == DET_PARKED) {
        set_ready(det, vcpu);
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
