/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run queues, which nobody but the scheduler's four files may see:
 *
 *   run_queue.c    the queue of a CPU, and what is read off it
 *   wake.c         which CPU a task comes to: wake-up, affinity
 *   sched_timer.c  the tick, and tasks that sleep until a time
 *   sched.c        the switch from a task to the next
 *
 * A task's state, cpu and queue membership change only under the run-queue lock
 * of the CPU in task->cpu. schedule() takes that lock before it switches and
 * the next task releases it after the switch, so nobody can wake a task onto
 * another CPU while it still stands on its stack.
 *
 * Lock order: wait queue, timer list, run queue. All with interrupts masked.
 */
#ifndef KERNEL_RUN_QUEUE_H
#define KERNEL_RUN_QUEUE_H

#include "kernel/sched.h"

struct run_queue {
    struct spinlock lock;
    struct list tasks;        /* runnable, not running; [lock] */
    _Atomic uint32_t count;   /* of tasks; written under lock */
    struct task *current;     /* [lock] */
    struct task *idle;        /* [init] */
    struct task *dead;        /* switched out for the last time; [lock] */
    struct list outgoing;     /* no longer allowed here; [lock] */
    uint64_t tick_at;         /* [own CPU] next tick, UINT64_MAX: none */
    uint64_t tick_programmed; /* [own CPU] tick_at the timer knows of */
    uint64_t since;           /* [init] when the CPU came up, ns */
    bool in_tick;             /* [own CPU] sched_tick() holds timer_lock */
    _Atomic bool is_idle;     /* a hint for placement */
    struct spinlock timer_lock;
    struct list timers; /* by wake_at; [lock: timer_lock] */
} CACHE_ALIGNED;

extern struct run_queue run_queues[MAX_CPUS];

static inline struct run_queue *this_rq(void)
{
    return &run_queues[cpu_id()];
}

/* Interrupts masked. The queue of the task's CPU. */
struct run_queue *task_rq_lock(struct task *task);
/* rq locked. Returns whether its CPU must be told. */
bool rq_enqueue(struct run_queue *rq, struct task *task);
/* rq locked. */
void rq_dequeue(struct run_queue *rq, struct task *task);
/* A hint: nobody runs there and nobody waits. */
bool rq_is_idle(unsigned cpu);

/* --- wake.c --- */
/* RUNNABLE, on no queue, not running, no lock held. Interrupts masked. */
void sched_place(struct task *task);

/* --- sched_timer.c --- */
/* Own CPU, interrupts masked: start or stop the tick as the queue demands. */
void sched_update_tick(struct run_queue *rq);

#endif
