/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parallel scheduler; see scheduler.h and docs/CONCURRENCY.md. */
#include "scheduler.h"

#include <stdatomic.h>
#include <sched.h>
#include <uv.h>

#include "error.h"
#include "vcpu.h"
#include "vm_priv.h"

/* A worker without work looks this often before it sleeps: a wake-up by the
 * host costs more than a short wait. */
#define IDLE_SPINS 2000u

/* The vCPU that this worker thread runs, or NULL; for sched_urge(). */
static _Thread_local const struct vcpu *running_here;

struct worker {
    struct sched *sched;
    unsigned id;
    uv_thread_t thread;
    bool started;
    _Atomic(struct vcpu *) running; /* for sched_urge() */
};

struct sched {
    struct vm *vm;         /* [init] */
    unsigned workers;      /* [init] */
    struct worker *worker; /* [init] */

    uv_mutex_t lock;
    uv_cond_t work;           /* something was queued, or the end */
    struct vcpu *head, *tail; /* [lock] */
    unsigned sleeping;        /* [lock] workers in uv_cond_wait() */
    bool ending;              /* [lock] */
    unsigned victim;          /* [lock] worker that sched_urge() asks next */
    _Atomic unsigned queued;  /* vCPUs in the queue; written under lock */
    /*
     * A vCPU runs something on the whole machine: workers take no vCPU until
     * it is over. Counted, and served one after the other under `exclusive`.
     */
    _Atomic unsigned pausing;
    uv_mutex_t exclusive;
};

struct sched *sched_new(struct vm *vm, unsigned workers)
{
    struct sched *sched = g_new0(struct sched, 1);

    sched->vm = vm;
    sched->workers = workers;
    sched->worker = g_new0(struct worker, workers);
    uv_mutex_init(&sched->lock);
    uv_mutex_init(&sched->exclusive);
    uv_cond_init(&sched->work);
    return sched;
}

void sched_free(struct sched *sched)
{
    if (!sched) {
        return;
    }
    uv_cond_destroy(&sched->work);
    uv_mutex_destroy(&sched->exclusive);
    uv_mutex_destroy(&sched->lock);
    g_free(sched->worker);
    g_free(sched);
}

static void push_locked(struct sched *sched, struct vcpu *vcpu)
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

static void unlink_locked(struct sched *sched, struct vcpu *vcpu)
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

static void push_front_locked(struct sched *sched, struct vcpu *vcpu)
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

static struct vcpu *pop_locked(struct sched *sched)
{
    struct vcpu *vcpu = sched->head;

    if (vcpu) {
        sched->head = vcpu->queue_next;
        if (!sched->head) {
            sched->tail = NULL;
        }
        vcpu->sched_state = SCHED_RUNNING;
        atomic_store(&vcpu->on_worker, true);
        vcpu->watch->budget =
            vcpu->urged ? SCHED_URGED_BLOCKS : SCHED_SLICE_BLOCKS;
        vcpu->urged = false;
        atomic_fetch_sub(&sched->queued, 1);
    }
    return vcpu;
}

/* The next vCPU for this worker; NULL at the end of the run. */
static struct vcpu *next_vcpu(struct sched *sched)
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
static void settle(struct sched *sched, struct vcpu *vcpu,
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
            push_front_locked(sched, vcpu); /* sched_urge() found it held */
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
    struct sched *sched = worker->sched;
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

bool sched_start(struct sched *sched, GError **error)
{
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

void sched_stop(struct sched *sched)
{
    uv_mutex_lock(&sched->lock);
    sched->ending = true;
    uv_cond_broadcast(&sched->work);
    uv_mutex_unlock(&sched->lock);
}

void sched_join(struct sched *sched)
{
    sched_stop(sched);
    for (unsigned i = 0; i < sched->workers; i++) {
        if (sched->worker[i].started) {
            uv_thread_join(&sched->worker[i].thread);
            sched->worker[i].started = false;
        }
    }
}

void sched_wake(struct sched *sched, struct vcpu *vcpu)
{
    uv_mutex_lock(&sched->lock);
    if (vcpu->sched_state == SCHED_PARKED ||
        (vcpu->sched_state == SCHED_OFF && atomic_load(&vcpu->powered))) {
        push_locked(sched, vcpu);
    }
    uv_mutex_unlock(&sched->lock);
}

void sched_urge(struct sched *sched, struct vcpu *vcpu)
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

bool sched_others_wait(const struct sched *sched)
{
    return atomic_load((_Atomic unsigned *)&sched->queued) != 0;
}

void sched_exclusive(struct sched *sched, struct vcpu *self,
                     void (*fn)(void *opaque), void *opaque)
{
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
