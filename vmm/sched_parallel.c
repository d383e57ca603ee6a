/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `parallel` scheduler: as many worker threads as asked for, one run queue
 * of vCPUs, each worker running one vCPU's engine at a time. A vCPU in WFI
 * parks and costs nothing. Where others wait, a slice ends after a number of
 * blocks; counting blocks needs no timer and costs one decrement. See
 * docs/CONCURRENCY.md.
 */
#include "scheduler.h"

#include <stdatomic.h>
#include <sched.h>
#include <uv.h>

#include "error.h"
#include "shootdown.h"
#include "vcpu.h"
#include "vm_priv.h"

/* Some 50 to 100 us of guest code; a switch costs about 1 us. */
#define SLICE_BLOCKS 8192u
/* A worker without work looks this often before it sleeps: a wake-up by the
 * host costs more than a short wait. */
#define IDLE_SPINS 2000u

/* The vCPU that this worker thread runs, or NULL; for urge(). */
static _Thread_local const struct vcpu *running_here;

struct worker {
    struct parallel *sched;
    unsigned id;
    uv_thread_t thread;
    bool started;
    _Atomic(struct vcpu *) running; /* for urge() */
};

struct parallel {
    struct sched base;
    struct vm *vm;         /* [init] */
    unsigned workers;      /* [init] */
    struct worker *worker; /* [init] */

    uv_mutex_t lock;
    uv_cond_t work;           /* something was queued, or the end */
    struct vcpu *head, *tail; /* [lock] */
    unsigned sleeping;        /* [lock] workers in uv_cond_wait() */
    bool ending;              /* [lock] */
    unsigned victim;          /* [lock] worker that urge() asks next */
    _Atomic unsigned queued;  /* vCPUs in the queue; written under lock */
    /*
     * A vCPU runs something on the whole machine: workers take no vCPU until
     * it is over. Counted, and served one after the other under `exclusive`.
     */
    _Atomic unsigned pausing;
    uv_mutex_t exclusive;
};

static void push_locked(struct parallel *sched, struct vcpu *vcpu)
{
    vcpu->sched_state = SCHED_QUEUED;
    vcpu->queue_next = NULL;
    if (sched->tail) {
        sched->tail->queue_next = vcpu;
    } else {
        sched->head = vcpu;
    }
    sched->tail = vcpu;
    atomic_fetch_add(&sched->queued, 1);
    if (sched->sleeping) {
        uv_cond_signal(&sched->work);
    }
}

static void unlink_locked(struct parallel *sched, struct vcpu *vcpu)
{
    struct vcpu **at = &sched->head;
    struct vcpu *before = NULL;

    while (*at != vcpu) {
        before = *at;
        at = &before->queue_next;
    }
    *at = vcpu->queue_next;
    if (sched->tail == vcpu) {
        sched->tail = before;
    }
    atomic_fetch_sub(&sched->queued, 1);
}

static void push_front_locked(struct parallel *sched, struct vcpu *vcpu)
{
    vcpu->sched_state = SCHED_QUEUED;
    vcpu->urged = true;
    vcpu->queue_next = sched->head;
    sched->head = vcpu;
    if (!sched->tail) {
        sched->tail = vcpu;
    }
    atomic_fetch_add(&sched->queued, 1);
    if (sched->sleeping) {
        uv_cond_signal(&sched->work);
    }
}

static struct vcpu *pop_locked(struct parallel *sched)
{
    struct vcpu *vcpu = sched->head;

    if (vcpu) {
        sched->head = vcpu->queue_next;
        if (!sched->head) {
            sched->tail = NULL;
        }
        vcpu->sched_state = SCHED_RUNNING;
        atomic_store(&vcpu->on_worker, true);
        vcpu->watch->budget = vcpu->urged ? SCHED_URGED_BLOCKS : SLICE_BLOCKS;
        vcpu->urged = false;
        atomic_fetch_sub(&sched->queued, 1);
    }
    return vcpu;
}

/* The next vCPU for this worker; NULL at the end of the run. */
static struct vcpu *next_vcpu(struct parallel *sched)
{
    struct vcpu *vcpu = NULL;

    for (;;) {
        for (unsigned i = 0; i < IDLE_SPINS; i++) {
            if (atomic_load(&sched->queued) ||
                atomic_load(&sched->vm->stopping)) {
                break;
            }
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        uv_mutex_lock(&sched->lock);
        while (!sched->ending && !sched->head) {
            sched->sleeping++;
            uv_cond_wait(&sched->work, &sched->lock);
            sched->sleeping--;
        }
        vcpu = sched->ending ? NULL : pop_locked(sched);
        uv_mutex_unlock(&sched->lock);
        return vcpu;
    }
}

/* Puts the vCPU where its outcome says. It is not held any more. */
static void settle(struct parallel *sched, struct vcpu *vcpu,
                   enum vcpu_outcome outcome)
{
    uv_mutex_lock(&sched->lock);
    /*
     * First say that nobody runs it, then look whether something came: a waker
     * first says what came, then looks whether somebody runs it (all of this
     * seq_cst), so one of the two sees the other.
     */
    atomic_store(&vcpu->on_worker, false);
    switch (outcome) {
    case VCPU_PARKED:
        vcpu->sched_state = SCHED_PARKED;
        if (atomic_load(&vcpu->irq_line) || atomic_load(&vcpu->requests)) {
            push_locked(sched, vcpu);
        }
        break;
    case VCPU_OFF:
        vcpu->sched_state = SCHED_OFF;
        if (atomic_load(&vcpu->powered)) {
            push_locked(sched, vcpu); /* CPU_ON came in the meantime */
        }
        break;
    case VCPU_YIELDED:
    case VCPU_STOPPED:
        if (atomic_load(&vcpu->requests) & VCPU_REQ_IRQ) {
            push_front_locked(sched, vcpu); /* urge() found it held */
        } else {
            push_locked(sched, vcpu);
        }
        break;
    }
    uv_mutex_unlock(&sched->lock);
}

static void hold(struct vcpu *vcpu)
{
    /* A claimer holds it for the time of a few invalidations. */
    while (!vcpu_claim(vcpu)) {
        sched_yield();
    }
}

static void worker_main(void *opaque)
{
    struct worker *worker = opaque;
    struct parallel *sched = worker->sched;
    struct vcpu *vcpu;

    while ((vcpu = next_vcpu(sched)) != NULL) {
        enum vcpu_outcome outcome;

        hold(vcpu);
        if (atomic_load(&sched->pausing)) {
            vcpu_release(vcpu);
            settle(sched, vcpu, VCPU_YIELDED);
            sched_yield();
            continue;
        }
        atomic_store(&worker->running, vcpu);
        running_here = vcpu;
        vcpu->counters->switches++;
        event_emit(vcpu->events, vcpu->id, EVENT_sched, 0, worker->id);
        outcome = vcpu_run(vcpu);
        running_here = NULL;
        atomic_store(&worker->running, NULL);
        vcpu_release(vcpu);
        settle(sched, vcpu, outcome);
    }
}

static bool parallel_start(struct sched *base, GError **error)
{
    struct parallel *sched = (struct parallel *)base;

    for (unsigned i = 0; i < sched->workers; i++) {
        struct worker *worker = &sched->worker[i];
        int err;

        worker->sched = sched;
        worker->id = i;
        err = uv_thread_create(&worker->thread, worker_main, worker);
        if (err) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "worker thread %u of %u: %s; try fewer --workers", i,
                        sched->workers, uv_strerror(err));
            return false;
        }
        worker->started = true;
    }
    return true;
}

static void parallel_stop(struct sched *base)
{
    struct parallel *sched = (struct parallel *)base;

    uv_mutex_lock(&sched->lock);
    sched->ending = true;
    uv_cond_broadcast(&sched->work);
    uv_mutex_unlock(&sched->lock);
}

static void parallel_join(struct sched *base)
{
    struct parallel *sched = (struct parallel *)base;

    parallel_stop(base);
    for (unsigned i = 0; i < sched->workers; i++) {
        if (sched->worker[i].started) {
            uv_thread_join(&sched->worker[i].thread);
            sched->worker[i].started = false;
        }
    }
}

static void parallel_wake(struct sched *base, struct vcpu *vcpu)
{
    struct parallel *sched = (struct parallel *)base;

    uv_mutex_lock(&sched->lock);
    if (vcpu->sched_state == SCHED_PARKED ||
        (vcpu->sched_state == SCHED_OFF && atomic_load(&vcpu->powered))) {
        push_locked(sched, vcpu);
    }
    uv_mutex_unlock(&sched->lock);
}

/*
 * An interrupt came for a vCPU that no worker runs: it is the next to run, and
 * if every worker is busy one of them, not the caller's, is asked to yield.
 * Without it the sender of an IPI would wait for whole slices of others.
 */
static void urge(struct parallel *sched, struct vcpu *vcpu)
{
    struct vcpu *preempted = NULL;
    bool queued;

    uv_mutex_lock(&sched->lock);
    if (vcpu->sched_state == SCHED_QUEUED) {
        unlink_locked(sched, vcpu);
        push_front_locked(sched, vcpu);
    } else if (vcpu->sched_state == SCHED_PARKED) {
        push_front_locked(sched, vcpu);
    }
    queued = vcpu->sched_state == SCHED_QUEUED && !sched->sleeping;
    for (unsigned i = 0; queued && i < sched->workers; i++) {
        struct worker *worker =
            &sched->worker[(sched->victim + i) % sched->workers];
        struct vcpu *running = atomic_load(&worker->running);

        if (running && running != running_here) {
            preempted = running;
            sched->victim = (worker->id + 1) % sched->workers;
            break;
        }
    }
    uv_mutex_unlock(&sched->lock);
    if (preempted) {
        vcpu_request(preempted, VCPU_REQ_YIELD);
    }
}

static void parallel_irq(struct sched *base, struct vcpu *vcpu, bool level)
{
    struct parallel *sched = (struct parallel *)base;

    atomic_store(&vcpu->irq_line, level);
    if (!level) {
        return;
    }
    vcpu_request(vcpu, VCPU_REQ_IRQ);
    if (!atomic_load(&vcpu->on_worker)) {
        urge(sched, vcpu); /* parked or queued */
    }
}

static void parallel_timer_changed(struct sched *base, unsigned cpu)
{
    struct parallel *sched = (struct parallel *)base;

    loop_timer_changed(sched->vm->loop, cpu);
}

static void parallel_quantum_over(struct sched *base, struct vcpu *vcpu)
{
    struct parallel *sched = (struct parallel *)base;

    vcpu->watch->budget = SLICE_BLOCKS;
    if (atomic_load(&sched->queued)) {
        vcpu_request(vcpu, VCPU_REQ_YIELD);
    }
}

static bool parallel_spin(struct sched *base, struct vcpu *vcpu)
{
    struct parallel *sched = (struct parallel *)base;

    (void)vcpu;
    return atomic_load(&sched->queued) != 0;
}

/*
 * Whoever is waited for may wait, in a DSB, for one that is held already: the
 * holder does what that one owes.
 */
static void serve(struct vm *vm, unsigned claimed)
{
    for (unsigned i = 0; i < claimed; i++) {
        shootdown_serve_claimed(vm->vcpu[i]);
    }
}

static void parallel_exclusive(struct sched *base, struct vcpu *self,
                               void (*fn)(void *opaque), void *opaque)
{
    struct parallel *sched = (struct parallel *)base;
    struct vm *vm = sched->vm;

    atomic_fetch_add(&sched->pausing, 1);
    /*
     * Two vCPUs that both want it: each holds itself, so the second one lets
     * go of itself while it waits for the first.
     */
    vcpu_release(self);
    uv_mutex_lock(&sched->exclusive);
    for (unsigned i = 0; i < vm->cpus; i++) {
        while (!vcpu_claim(vm->vcpu[i])) {
            vcpu_request(vm->vcpu[i], VCPU_REQ_YIELD);
            serve(vm, i);
            sched_yield();
        }
    }
    fn(opaque);
    for (unsigned i = 0; i < vm->cpus; i++) {
        vcpu_release(vm->vcpu[i]);
    }
    uv_mutex_unlock(&sched->exclusive);
    atomic_fetch_sub(&sched->pausing, 1);
    hold(self);
}

static uint64_t parallel_now_ticks(struct sched *base)
{
    const struct parallel *sched = (struct parallel *)base;

    return (uv_hrtime() - sched->vm->epoch_ns) / VM_TICK_NS;
}

static void parallel_free(struct sched *base)
{
    struct parallel *sched = (struct parallel *)base;

    uv_cond_destroy(&sched->work);
    uv_mutex_destroy(&sched->exclusive);
    uv_mutex_destroy(&sched->lock);
    g_free(sched->worker);
    g_free(sched);
}

struct sched *sched_parallel_new(struct vm *vm, unsigned workers)
{
    static const struct sched_ops ops = {
        .free = parallel_free,
        .start = parallel_start,
        .join = parallel_join,
        .stop = parallel_stop,
        .wake = parallel_wake,
        .irq = parallel_irq,
        .timer_changed = parallel_timer_changed,
        .quantum_over = parallel_quantum_over,
        .spin = parallel_spin,
        .exclusive = parallel_exclusive,
        .now_ticks = parallel_now_ticks,
    };
    struct parallel *sched = g_new0(struct parallel, 1);

    sched->base.ops = &ops;
    sched->vm = vm;
    sched->workers = workers;
    sched->worker = g_new0(struct worker, workers);
    uv_mutex_init(&sched->lock);
    uv_mutex_init(&sched->exclusive);
    uv_cond_init(&sched->work);
    return &sched->base;
}
