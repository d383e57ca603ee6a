/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue of a CPU, and what others read off it; run_queue.h. */
#include "kernel/run_queue.h"

#include "kernel/percpu.h"
#include "kernel/smp.h"
#include "kernel/time.h"

struct run_queue run_queues[MAX_CPUS];

struct run_queue *task_rq_lock(struct task *task)
{
    for (;;) {
        unsigned cpu = __atomic_load_n(&task->cpu, __ATOMIC_RELAXED);
        struct run_queue *rq = &run_queues[cpu];

        spin_lock(&rq->lock);
        if (task->cpu == cpu) {
            return rq;
        }
        spin_unlock(&rq->lock);
    }
}

void sched_init_cpu(struct cpu *cpu, struct task *idle)
{
    struct run_queue *rq = &run_queues[cpu->id];

    spin_init(&rq->lock, LOCK_run_queue);
    spin_init(&rq->timer_lock, LOCK_timer);
    list_init(&rq->tasks);
    list_init(&rq->outgoing);
    list_init(&rq->timers);
    rq->current = idle;
    rq->idle = idle;
    rq->since = time_now_ns();
    idle->run_start = rq->since;
    rq->tick_at = UINT64_MAX;
    rq->tick_programmed = UINT64_MAX;
    cpu->idle = idle;
}

void sched_cpus_of_mm(const struct mm *mm, struct cpumask *out)
{
    cpumask_zero(out);
    for (unsigned i = 0; i < cpu_count; i++) {
        uint64_t flags = spin_lock_irqsave(&run_queues[i].lock);

        if (run_queues[i].current->mm == mm) {
            cpumask_set(out, i);
        }
        spin_unlock_irqrestore(&run_queues[i].lock, flags);
    }
}

unsigned sched_runnable(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < cpu_count; i++) {
        n += atomic_load_explicit(&run_queues[i].count, memory_order_relaxed);
        n +=
            !atomic_load_explicit(&run_queues[i].is_idle, memory_order_relaxed);
    }
    return n;
}

void sched_cpu_times(unsigned cpu, uint64_t *busy_ns, uint64_t *idle_ns)
{
    struct run_queue *rq = &run_queues[cpu];
    uint64_t flags = spin_lock_irqsave(&rq->lock);
    uint64_t now = time_now_ns();

    *idle_ns = rq->idle->cpu_ns +
               (rq->current == rq->idle ? now - rq->idle->run_start : 0);
    *busy_ns = now - rq->since - *idle_ns;
    spin_unlock_irqrestore(&rq->lock, flags);
}

bool rq_is_idle(unsigned cpu)
{
    struct run_queue *rq = &run_queues[cpu];

    return atomic_load_explicit(&rq->is_idle, memory_order_relaxed) &&
           atomic_load_explicit(&rq->count, memory_order_relaxed) == 0;
}

bool rq_enqueue(struct run_queue *rq, struct task *task)
{
    uint32_t count = atomic_load_explicit(&rq->count, memory_order_relaxed);

    list_append(&rq->tasks, &task->run_node);
    task->on_queue = true;
    atomic_store_explicit(&rq->count, count + 1, memory_order_relaxed);
    /* Idle: switch now. First to wait: the tick must start. */
    return rq->current == rq->idle || count == 0;
}

void rq_dequeue(struct run_queue *rq, struct task *task)
{
    list_remove(&task->run_node);
    task->on_queue = false;
    atomic_store_explicit(
        &rq->count, atomic_load_explicit(&rq->count, memory_order_relaxed) - 1,
        memory_order_relaxed);
}
