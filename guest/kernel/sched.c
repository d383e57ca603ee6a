/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scheduler. Longer than most files: run queue, timers and switch share
 * struct run_queue, which nobody else may see.
 *
 * A task's state, cpu and queue membership change only under the run-queue lock
 * of the CPU in task->cpu. schedule() takes that lock before it switches and
 * the next task releases it after the switch, so nobody can wake a task onto
 * another CPU while it still stands on its stack.
 *
 * The tick runs only while somebody waits for the CPU; a CPU that is idle, or
 * whose task is alone, takes no timer interrupts but those of sleepers.
 * Lock order: wait queue, timer list, run queue. All with interrupts masked.
 */
#include "kernel/sched.h"

#include "arch/sysreg.h"
#include "drivers/timer.h"
#include "kernel/bug.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/counters.h"
#include "mm/mm.h"
#include "mm/numa.h"

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

static struct run_queue run_queues[MAX_CPUS];

/* boot/switch.S */
void cpu_switch_to(struct task *prev, struct task *next);
void cpu_switch_to_no_dsb(struct task *prev, struct task *next);
void fp_save(struct fp_state *fp);
void fp_load(const struct fp_state *fp);
void sched_finish_first_switch(void);

static struct run_queue *this_rq(void)
{
    return &run_queues[cpu_id()];
}

/* Interrupts masked. */
static struct run_queue *task_rq_lock(struct task *task)
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

/* --- timer --- */

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

/* Own CPU, interrupts masked: start or stop the tick as the queue demands. */
static void sched_update_tick(struct run_queue *rq)
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

/* --- placement --- */

static bool rq_is_idle(unsigned cpu)
{
    struct run_queue *rq = &run_queues[cpu];

    return atomic_load_explicit(&rq->is_idle, memory_order_relaxed) &&
           atomic_load_explicit(&rq->count, memory_order_relaxed) == 0;
}

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

/* rq locked. Returns whether its CPU must be told. */
static bool rq_enqueue(struct run_queue *rq, struct task *task)
{
    uint32_t count = atomic_load_explicit(&rq->count, memory_order_relaxed);

    list_append(&rq->tasks, &task->run_node);
    task->on_queue = true;
    atomic_store_explicit(&rq->count, count + 1, memory_order_relaxed);
    /* Idle: switch now. First to wait: the tick must start. */
    return rq->current == rq->idle || count == 0;
}

static void rq_dequeue(struct run_queue *rq, struct task *task)
{
    list_remove(&task->run_node);
    task->on_queue = false;
    atomic_store_explicit(
        &rq->count, atomic_load_explicit(&rq->count, memory_order_relaxed) - 1,
        memory_order_relaxed);
}

/* RUNNABLE, on no queue, not running, no lock held. Interrupts masked. */
static void sched_place(struct task *task)
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

void sched_reschedule_irq(void)
{
    sched_update_tick(this_rq());
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

/* --- switching --- */

/* An idle CPU looks for work elsewhere. rq locked; only tries others' locks. */
static struct task *sched_steal(struct run_queue *rq)
{
    unsigned self = cpu_id();

    for (unsigned i = 1; i < cpu_count; i++) {
        struct run_queue *from = &run_queues[(self + i) % cpu_count];
        struct list *at;
        struct task *found = NULL;

        if (atomic_load_explicit(&from->count, memory_order_relaxed) == 0 ||
            from->idle == NULL || !spin_trylock(&from->lock)) {
            continue;
        }
        list_for_each(at, &from->tasks)
        {
            struct task *task = list_entry(at, struct task, run_node);

            if (cpumask_test(&task->affinity, self)) {
                found = task;
                break;
            }
        }
        if (found != NULL) {
            rq_dequeue(from, found);
            __atomic_store_n(&found->cpu, self, __ATOMIC_RELAXED);
        }
        spin_unlock(&from->lock);
        if (found != NULL) {
            return found;
        }
    }
    (void)rq;
    return NULL;
}

/* rq locked. Tasks that may not run here any more go to rq->outgoing. */
static struct task *sched_pick(struct run_queue *rq)
{
    unsigned self = cpu_id();

    while (!list_empty(&rq->tasks)) {
        struct task *task = list_first(&rq->tasks, struct task, run_node);

        rq_dequeue(rq, task);
        if (cpumask_test(&task->affinity, self)) {
            return task;
        }
        list_append(&rq->outgoing, &task->run_node);
    }

    struct task *stolen = sched_steal(rq);

    return stolen != NULL ? stolen : rq->idle;
}

/*
 * After the switch, on the new task's stack: release the lock that the old
 * task took, and see to the tasks that it left behind.
 */
static void sched_finish_switch(void)
{
    struct run_queue *rq = this_rq();
    struct task *dead = rq->dead;
    struct list outgoing;

    rq->dead = NULL;
    list_init(&outgoing);
    while (!list_empty(&rq->outgoing)) {
        struct list *node = rq->outgoing.next;

        list_remove(node);
        list_append(&outgoing, node);
    }
    spin_unlock(&rq->lock);
    sched_update_tick(rq);
    while (!list_empty(&outgoing)) {
        struct task *task = list_first(&outgoing, struct task, run_node);

        list_remove(&task->run_node);
        sched_place(task);
    }
    mm_switch_finish();
    if (dead != NULL) {
        task_free(dead);
    }
}

void sched_finish_first_switch(void)
{
    sched_finish_switch();
    local_irq_enable();
}

/* User registers that the kernel does not use itself: TLS and FP. */
static void switch_user_state(struct task *prev, struct task *next)
{
    struct cpu *cpu = this_cpu();

    if (prev->process != NULL) {
        prev->tls = read_tpidr_el0();
        fp_save(&prev->fp);
        cpu->fp_owner = prev;
        prev->fp_cpu = cpu->id;
    }
    if (next->process != NULL) {
        write_tpidr_el0(next->tls);
        /* Still in the registers if nobody else used them since. */
        if (cpu->fp_owner != next || next->fp_cpu != cpu->id) {
            fp_load(&next->fp);
            cpu->fp_owner = next;
            next->fp_cpu = cpu->id;
        }
    }
}

/* CPU time, and whether prev wanted to go. */
static void sched_account(struct task *prev, struct task *next)
{
    uint64_t now = time_now_ns();

    prev->cpu_ns += now - prev->run_start;
    next->run_start = now;
    if (prev->state == TASK_RUNNABLE) {
        prev->switches_forced++;
    } else {
        prev->switches_own++;
    }
}

void schedule(void)
{
    struct task *prev = current(), *next;
    uint64_t flags = local_irq_save();
    struct run_queue *rq = this_rq();

    ASSERT(!in_irq());
    ASSERT_MSG(prev->canary == KSTACK_CANARY, "stack overflow in %s",
               prev->name);
    spin_lock(&rq->lock);
    atomic_store_explicit(&this_cpu()->need_resched, 0, memory_order_relaxed);
    if (prev != rq->idle) {
        if (prev->state == TASK_RUNNABLE) {
            (void)rq_enqueue(rq, prev);
        } else if (prev->state == TASK_DEAD) {
            rq->dead = prev;
        }
    }
    next = sched_pick(rq);
    rq->current = next;
    atomic_store_explicit(&rq->is_idle, next == rq->idle, memory_order_relaxed);
    if (next != prev) {
        sched_account(prev, next);
        counter_inc(context_switches);
        rq->tick_at = UINT64_MAX; /* a whole slice for the next */
        mm_switch(prev->mm, next->mm);
        switch_user_state(prev, next);
        if (bug_is(BUG_no_switch_dsb)) {
            cpu_switch_to_no_dsb(prev, next);
        } else {
            counter_inc(dsb_switch);
            cpu_switch_to(prev, next);
        }
    }
    sched_finish_switch();
    local_irq_restore(flags);
}

void sched_yield(void)
{
    schedule();
}

void sched_idle(void)
{
    struct cpu *cpu = this_cpu();
    struct run_queue *rq = this_rq();

    atomic_store_explicit(&rq->is_idle, true, memory_order_relaxed);
    for (;;) {
        /*
         * Masked from the test to WFI: an interrupt in between stays pending
         * and ends the WFI, and is taken when unmasked.
         */
        local_irq_disable();
        if (atomic_load_explicit(&cpu->need_resched, memory_order_relaxed) ==
                0 &&
            atomic_load_explicit(&rq->count, memory_order_relaxed) == 0) {
            wfi();
        }
        local_irq_enable();
        isb();
        if (atomic_load_explicit(&cpu->need_resched, memory_order_relaxed) !=
                0 ||
            atomic_load_explicit(&rq->count, memory_order_relaxed) != 0) {
            schedule();
        }
    }
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

/* --- sleeping --- */

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
