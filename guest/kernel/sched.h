/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scheduler: per-CPU run queues, round robin at 100 Hz, affinity, wake-ups
 * with a reschedule SGI. User code is preempted at any interrupt; the kernel
 * only at preempt_point() and where it sleeps.
 */
#ifndef KERNEL_SCHED_H
#define KERNEL_SCHED_H

#include "kernel/lock.h"
#include "kernel/percpu.h"
#include "kernel/task.h"
#include "kernel/types.h"

void sched_init_cpu(struct cpu *cpu, struct task *idle);
void sched_idle(void) NORETURN; /* the idle task's loop */

/* Gives the CPU away if somebody is due. No spinlock held, interrupts on. */
void schedule(void);
static inline void preempt_point(void)
{
    if (unlikely(atomic_load_explicit(&this_cpu()->need_resched,
                                      memory_order_relaxed))) {
        schedule();
    }
}
void sched_yield(void);
void sched_tick(void);           /* timer interrupt */
void sched_reschedule_irq(void); /* SGI_RESCHEDULE */
/* Runnable tasks of all CPUs, for sysinfo and tests; a snapshot. */
unsigned sched_runnable(void);
/* Since the CPU came up, to the nanosecond where its task last changed. */
void sched_cpu_times(unsigned cpu, uint64_t *busy_ns, uint64_t *idle_ns);
struct mm;
/* CPUs whose running task uses mm, each seen under its run-queue lock. */
void sched_cpus_of_mm(const struct mm *mm, struct cpumask *out);
void sched_enqueue_new(struct task *task); /* task_start() */

/* --- any context --- */
/* Makes a blocked task runnable; false if it was not blocked. */
bool task_wake(struct task *task);
/* Moves the task away if its CPU is no longer allowed. */
int task_set_affinity(struct task *task, const struct cpumask *mask);

/* --- waiting; task context --- */
struct wait_entry {
    struct list node;
    struct task *task;
};

#define WAIT_FOREVER UINT64_MAX

/* Own task, for waiting without a wait queue. */
void task_mark_blocked(struct task *task);
void task_mark_runnable(struct task *task);
void wait_queue_init(struct wait_queue *wq);
/* Queue the entry and mark this task BLOCKED; then test the condition. */
void wait_prepare(struct wait_queue *wq, struct wait_entry *entry);
/* Runnable again and off the queue, whoever woke us. */
void wait_finish(struct wait_queue *wq, struct wait_entry *entry);
/* The same with wq->lock held and interrupts masked. */
void wait_prepare_locked(struct wait_queue *wq, struct wait_entry *entry);
void wait_finish_locked(struct wait_queue *wq, struct wait_entry *entry);
/* Sleep if still BLOCKED, at most until deadline (time_now_ns()). */
void wait_schedule(uint64_t deadline);
void wake_up_all(struct wait_queue *wq);
bool wake_up_one(struct wait_queue *wq);

/* Somebody wants this task to die: leave the kernel early. */
static inline bool task_killed(struct task *task)
{
    return atomic_load_explicit(&task->killed, memory_order_relaxed) != 0;
}

/* The same, or there is a signal that it does not block. */
static inline bool task_signalled(struct task *task)
{
    return task_killed(task) ||
           atomic_load_explicit(&task->signalled, memory_order_relaxed) != 0;
}

/* Sleeps until cond; not interruptible. */
#define wait_event(wq, cond)                                                   \
    do {                                                                       \
        struct wait_entry entry_;                                              \
        for (;;) {                                                             \
            wait_prepare((wq), &entry_);                                       \
            if (cond) {                                                        \
                break;                                                         \
            }                                                                  \
            wait_schedule(WAIT_FOREVER);                                       \
            wait_finish((wq), &entry_);                                        \
        }                                                                      \
        wait_finish((wq), &entry_);                                            \
    } while (0)

/*
 * The same until cond, or until the task has a signal to take: 0, or then
 * -ERESTARTSYS.
 */
#define wait_event_interruptible(wq, cond)                                     \
    ({                                                                         \
        struct wait_entry entry_;                                              \
        int error_ = 0;                                                        \
        for (;;) {                                                             \
            wait_prepare((wq), &entry_);                                       \
            if (cond) {                                                        \
                break;                                                         \
            }                                                                  \
            if (task_signalled(current())) {                                   \
                error_ = -ERESTARTSYS;                                         \
                break;                                                         \
            }                                                                  \
            wait_schedule(WAIT_FOREVER);                                       \
            wait_finish((wq), &entry_);                                        \
        }                                                                      \
        wait_finish((wq), &entry_);                                            \
        error_;                                                                \
    })

void sched_sleep_ns(uint64_t ns);

#endif
