/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which CPU a task comes to: when it is new, when it is woken, and when its
 * affinity changes; run_queue.h.
 */
#include "kernel/run_queue.h"

#include "kernel/percpu.h"
#include "kernel/smp.h"

/* Where it ran, if idle; any idle CPU; else the shortest queue. */
static unsigned sched_select_cpu(const struct task *task)
{
    unsigned last = task->cpu;
    unsigned best = MAX_CPUS, best_load = UINT32_MAX;

    if (cpumask_test(&task->affinity, last) && rq_is_idle(last)) {
        return last;
    }
    for (unsigned i = 0, cpu = last; i < cpu_count; i++) {
        unsigned load;

        if (cpumask_test(&task->affinity, cpu) &&
            cpumask_test(&cpu_online_mask, cpu)) {
            if (rq_is_idle(cpu)) {
                return cpu;
            }
            load = atomic_load_explicit(&run_queues[cpu].count,
                                        memory_order_relaxed);
            if (load < best_load) {
                best = cpu;
                best_load = load;
            }
        }
        cpu = cpu + 1 == cpu_count ? 0 : cpu + 1;
    }
    return best == MAX_CPUS ? 0 : best;
}

void sched_place(struct task *task)
{
    unsigned cpu = sched_select_cpu(task);
    struct run_queue *rq = &run_queues[cpu];
    bool tell, to_idle;

    spin_lock(&rq->lock);
    __atomic_store_n(&task->cpu, cpu, __ATOMIC_RELAXED);
    tell = rq_enqueue(rq, task);
    to_idle = rq->current == rq->idle;
    spin_unlock(&rq->lock);
    if (!tell) {
        return;
    }
    if (to_idle) {
        atomic_store_explicit(&cpus[cpu].need_resched, 1, memory_order_relaxed);
    }
    if (cpu == cpu_id()) {
        sched_update_tick(rq);
    } else {
        smp_send_reschedule(cpu);
    }
}

void sched_enqueue_new(struct task *task)
{
    uint64_t flags = local_irq_save();

    task->cpu = cpu_id();
    sched_place(task);
    local_irq_restore(flags);
}

bool task_wake(struct task *task)
{
    uint64_t flags = local_irq_save();
    struct run_queue *rq = task_rq_lock(task);
    bool blocked = task->state == TASK_BLOCKED;
    bool running = rq->current == task;

    if (blocked) {
        task->state = TASK_RUNNABLE;
    }
    spin_unlock(&rq->lock);
    /*
     * Between here and sched_place() the task is RUNNABLE on no queue: other
     * wakers see nothing to do, and task_set_affinity() only sets the mask.
     */
    if (blocked && !running) {
        sched_place(task);
    }
    local_irq_restore(flags);
    return blocked;
}

int task_set_affinity(struct task *task, const struct cpumask *mask)
{
    struct cpumask allowed;
    uint64_t flags;
    struct run_queue *rq;
    bool move_queued, move_running;

    cpumask_copy(&allowed, mask);
    cpumask_and(&allowed, &cpu_online_mask);
    if (cpumask_empty(&allowed)) {
        return -1;
    }
    flags = local_irq_save();
    rq = task_rq_lock(task);
    cpumask_copy(&task->affinity, &allowed);
    move_queued = task->on_queue && !cpumask_test(&allowed, task->cpu);
    move_running = rq->current == task && !cpumask_test(&allowed, task->cpu);
    if (move_queued) {
        rq_dequeue(rq, task);
    }
    if (move_running) {
        atomic_store_explicit(&cpus[task->cpu].need_resched, 1,
                              memory_order_relaxed);
        if (task->cpu != cpu_id()) {
            smp_send_reschedule(task->cpu);
        }
    }
    spin_unlock(&rq->lock);
    if (move_queued) {
        sched_place(task);
    }
    local_irq_restore(flags);
    if (task == current() && move_running) {
        schedule();
    }
    return 0;
}

/* Own task: from here a wake-up is remembered as RUNNABLE. */
void task_mark_blocked(struct task *task)
{
    uint64_t flags = local_irq_save();
    struct run_queue *rq = task_rq_lock(task);

    task->state = TASK_BLOCKED;
    spin_unlock_irqrestore(&rq->lock, flags);
}

void task_mark_runnable(struct task *task)
{
    uint64_t flags = local_irq_save();
    struct run_queue *rq = task_rq_lock(task);

    task->state = TASK_RUNNABLE;
    spin_unlock_irqrestore(&rq->lock, flags);
}
