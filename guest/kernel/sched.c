/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The switch from a task to the next; run_queue.h. */
#include "kernel/run_queue.h"

#include "arch/sysreg.h"
#include "kernel/bug.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/counters.h"
#include "mm/mm.h"

/* boot/switch.S */
void cpu_switch_to(struct task *prev, struct task *next);
void cpu_switch_to_no_dsb(struct task *prev, struct task *next);
void fp_save(struct fp_state *fp);
void fp_load(const struct fp_state *fp);
void sched_finish_first_switch(void);

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
