/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making and unmaking tasks. The structure lies at the bottom of the stack. */
#include "kernel/task.h"

#include "kernel/panic.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "mm/mm_debug.h"
#include "mm/page.h"

_Static_assert(sizeof(struct task) < KSTACK_SIZE / 2, "room for the stack");

void task_first_kernel(void); /* boot/switch.S */
void task_first_user(void);
void kthread_main(void);

static void task_init(struct task *task, const char *name)
{
    memset(task, 0, sizeof(*task));
    strlcpy(task->name, name, sizeof(task->name));
    task->state = TASK_NEW;
    task->cpu = 0;
    task->fp_cpu = UINT32_MAX;
    task->canary = KSTACK_CANARY;
    list_init(&task->run_node);
    list_init(&task->timer_node);
    list_init(&task->process_node);
    signal_pending_init(&task->pending);
    cpumask_copy(&task->affinity, &cpu_online_mask);
}

struct task *task_new(const char *name)
{
    struct page *stack = page_alloc(KSTACK_ORDER, 0);
    struct task *task;

    if (stack == NULL) {
        return NULL;
    }
    task = page_address(stack);
    ASSERT(((uint64_t)task & (KSTACK_SIZE - 1)) == 0);
    task_init(task, name);
    task->ctx.sp = (uint64_t)task_regs(task);
    task->ctx.lr = (uint64_t)task_first_user;
    return task;
}

struct task *kthread_new(const char *name, void (*fn)(void *), void *arg)
{
    struct task *task = task_new(name);

    if (task != NULL) {
        task->thread_fn = fn;
        task->thread_arg = arg;
        task->ctx.lr = (uint64_t)task_first_kernel;
    }
    return task;
}

struct task *task_new_idle(unsigned cpu)
{
    struct task *task = task_new("idle");

    if (task != NULL) {
        task->state = TASK_RUNNABLE;
        task->cpu = cpu;
    }
    return task;
}

void task_init_idle(struct task *task, unsigned cpu)
{
    task_init(task, "idle");
    task->state = TASK_RUNNABLE;
    task->cpu = cpu;
}

void task_start(struct task *task)
{
    task->state = TASK_RUNNABLE;
    sched_enqueue_new(task);
}

void task_free(struct task *task)
{
    mm_debug_task_gone(&task->tlb_ubc);
    signal_pending_drop(&task->pending);
    page_free(virt_to_page(task), KSTACK_ORDER);
}

void task_exit_current(void)
{
    local_irq_disable();
    /* Only schedule() of this CPU looks at it from here on. */
    current()->state = TASK_DEAD;
    schedule();
    panic("a dead task runs");
}

void kthread_main(void)
{
    struct task *task = current();

    task->thread_fn(task->thread_arg);
    task_exit_current();
}
