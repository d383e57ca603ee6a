/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tick, and tasks that sleep until a time; run_queue.h. The tick runs only
 * while somebody waits for the CPU; a CPU that is idle, or whose task is alone,
 * takes no timer interrupts but those of sleepers.
 */
#include "kernel/run_queue.h"

#include "drivers/timer.h"
#include "kernel/percpu.h"
#include "kernel/time.h"
#include "mm/numa.h"

/* Own CPU, interrupts masked. */
static void sched_program_timer(struct run_queue *rq)
{
    uint64_t deadline = rq->tick_at;

    rq->tick_programmed = rq->tick_at;
    spin_lock(&rq->timer_lock);
    if (!list_empty(&rq->timers)) {
        struct task *first = list_first(&rq->timers, struct task, timer_node);

        deadline = min_u64(deadline, first->wake_at);
    }
    timer_set_deadline(deadline);
    spin_unlock(&rq->timer_lock);
}

void sched_update_tick(struct run_queue *rq)
{
    bool wanted = (atomic_load_explicit(&rq->count, memory_order_relaxed) > 0 ||
                   numa_balancing) &&
                  rq->current != rq->idle;

    if (wanted && rq->tick_at == UINT64_MAX) {
        rq->tick_at = time_now_ns() + NSEC_PER_TICK;
    } else if (!wanted) {
        rq->tick_at = UINT64_MAX;
    }
    /* sched_tick() holds timer_lock while it wakes, and programs at its end. */
    if (rq->tick_at != rq->tick_programmed && !rq->in_tick) {
        sched_program_timer(rq);
    }
}

void sched_tick(void)
{
    struct run_queue *rq = this_rq();
    uint64_t now = time_now_ns();

    rq->in_tick = true;
    spin_lock(&rq->timer_lock);
    while (!list_empty(&rq->timers)) {
        struct task *task = list_first(&rq->timers, struct task, timer_node);

        if (task->wake_at > now) {
            break;
        }
        list_remove(&task->timer_node);
        task->timer_armed = false;
        /* Under the lock: the sleeper cannot leave and end before. */
        (void)task_wake(task);
    }
    spin_unlock(&rq->timer_lock);
    rq->in_tick = false;
    if (now >= rq->tick_at) {
        rq->tick_at = UINT64_MAX;
        if (unlikely(numa_balancing) && rq->current != rq->idle) {
            rq->tick_at = now + NSEC_PER_TICK;
            numa_tick(rq->current);
        }
        if (atomic_load_explicit(&rq->count, memory_order_relaxed) > 0) {
            rq->tick_at = now + NSEC_PER_TICK;
            atomic_store_explicit(&this_cpu()->need_resched, 1,
                                  memory_order_relaxed);
        }
    }
    sched_program_timer(rq);
}

static void timer_arm(struct task *task, uint64_t deadline)
{
    uint64_t flags = local_irq_save();
    struct run_queue *rq = this_rq();
    struct list *at;
    bool first;

    spin_lock(&rq->timer_lock);
    task->wake_at = deadline;
    task->timer_cpu = cpu_id();
    list_for_each(at, &rq->timers)
    {
        if (list_entry(at, struct task, timer_node)->wake_at > deadline) {
            break;
        }
    }
    list_append(at, &task->timer_node);
    task->timer_armed = true;
    first = rq->timers.next == &task->timer_node;
    spin_unlock(&rq->timer_lock);
    if (first) {
        sched_program_timer(rq);
    }
    local_irq_restore(flags);
}

static void timer_cancel(struct task *task)
{
    struct run_queue *rq = &run_queues[task->timer_cpu];
    uint64_t flags = spin_lock_irqsave(&rq->timer_lock);

    if (task->timer_armed) {
        list_remove(&task->timer_node);
        task->timer_armed = false;
    }
    spin_unlock_irqrestore(&rq->timer_lock, flags);
}

void sched_reschedule_irq(void)
{
    sched_update_tick(this_rq());
}

void wait_schedule(uint64_t deadline)
{
    struct task *task = current();

    if (deadline == WAIT_FOREVER) {
        schedule();
        return;
    }
    timer_arm(task, deadline);
    schedule();
    timer_cancel(task);
}

void sched_sleep_ns(uint64_t ns)
{
    uint64_t deadline = time_now_ns() + ns;

    /* Blocked first: whoever kills a task that is not yet does not wake it. */
    task_mark_blocked(current());
    while (time_now_ns() < deadline && !task_signalled(current())) {
        wait_schedule(deadline);
        task_mark_blocked(current());
    }
    task_mark_runnable(current());
}
