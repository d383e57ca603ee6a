/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ending threads and processes, and waiting for children. The last thread of a
 * process makes it a zombie; wait4() frees it. The end of the first process is
 * the end of the machine.
 */
#include "kernel/annot.h"
#include "kernel/errno.h"
#include "kernel/futex.h"
#include "kernel/panic.h"
#include "kernel/power.h"
#include "kernel/printk.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/memcg.h"
#include "mm/mm.h"
#include "mm/uaccess.h"

static void machine_end(int wait_status) NORETURN;
static void machine_end(int wait_status)
{
    int signal = wait_status & 0x7f;
    int status = signal != 0 ? 128 + signal : wait_status >> 8 & 0xff;

    annot_write(ANNOT_REG_EXIT_STATUS, (uint64_t)status);
    printk("init: exit status %d\n", status);
    power_off();
}

void process_vfork_release(struct process *process)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);

    process->vfork_done = true;
    /* Under the lock: the parent frees nothing before it has seen us done. */
    wake_up_all(&process->vfork_wait);
    spin_unlock_irqrestore(&process_lock, flags);
}

/* Drops the address space; afterwards this is a kernel thread in a process. */
static void exit_mm(struct task *task)
{
    struct mm *mm = task->mm;
    uint64_t flags;

    if (task->clear_child_tid != 0) {
        /* The joiner may have unmapped it already: then nobody waits. */
        (void)put_user_u32(task->clear_child_tid, 0);
        (void)futex_wake(task->clear_child_tid, 1, FUTEX_BITSET_ANY);
    }
    flags = local_irq_save();
    /* Under the lock: who sees task->mm under it may take a reference. */
    spin_lock(&process_lock);
    task->mm = NULL;
    spin_unlock(&process_lock);
    mm_switch(mm, NULL);
    mm_switch_finish();
    local_irq_restore(flags);
    mm_put(mm);
}

/* process_lock held: init adopts the children; zombies among them too. */
static void exit_reparent(struct process *process)
{
    while (!list_empty(&process->children)) {
        struct process *child =
            list_first(&process->children, struct process, sibling);

        list_remove(&child->sibling);
        child->parent = init_process;
        list_append(&init_process->children, &child->sibling);
    }
    if (init_process != process) {
        wake_up_all(&init_process->child_wait);
    }
}

/* process_lock held: one thread less; is it the last? */
static bool exit_leave_threads(struct process *process, struct task *task)
{
    struct usage usage = {.cpu_ns = task->cpu_ns,
                          .faults = task->faults,
                          .switches_own = task->switches_own,
                          .switches_forced = task->switches_forced};

    usage.cpu_ns += time_now_ns() - task->run_start;
    usage_add(&process->dead, &usage);
    process->thread_count--;
    list_remove(&task->process_node);
    wake_up_all(&process->thread_wait);
    return process->thread_count == 0;
}

/*
 * process_lock held. A parent that ignores SIGCHLD does not wait: true, and the
 * zombie is off the tree.
 */
static bool exit_tell_parent(struct process *process)
{
    struct process *parent = process->parent;
    const struct signal_action *action = &parent->actions[SIGCHLD];
    int signo = process->exit_status & 0x7f;
    bool unwanted =
        process->exit_signal == SIGCHLD &&
        (action->handler == SIG_IGN || (action->flags & SA_NOCLDWAIT) != 0);

    if (unwanted) {
        usage_add(&parent->waited, &process->dead);
        usage_add(&parent->waited, &process->waited);
        process_unlink(process);
    }
    signal_tell_parent(process, signo != 0 ? CLD_KILLED : CLD_EXITED,
                       signo != 0 ? signo : process->exit_status >> 8 & 0xff);
    return unwanted;
}

int process_leave_alone(void)
{
    struct task *task = current();
    struct process *process = task->process;
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct list *at;

    if (process->exiting || process->exec_task != NULL) {
        spin_unlock_irqrestore(&process_lock, flags);
        return -EINTR; /* somebody else was first: this thread is to end */
    }
    process->exec_task = task;
    list_for_each(at, &process->threads)
    {
        struct task *other = list_entry(at, struct task, process_node);

        if (other != task) {
            task_kill_locked(other, TASK_LEAVES - 1);
        }
    }
    spin_unlock_irqrestore(&process_lock, flags);
    wait_event(&process->thread_wait,
               __atomic_load_n(&process->thread_count, __ATOMIC_RELAXED) == 1 ||
                   task_killed(task));
    flags = spin_lock_irqsave(&process_lock);
    process->exec_task = NULL;
    if (process->thread_count == 1) {
        task->tid = process->pid; /* whoever had it before is gone */
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return task_killed(task) ? -EINTR : 0;
}

void process_exit_thread(int status)
{
    struct task *task = current();
    struct process *process = task->process;
    bool last, unwanted = false;
    uint64_t flags;

    local_irq_enable();
    exit_mm(task);
    flags = spin_lock_irqsave(&process_lock);
    last = exit_leave_threads(process, task);
    if (last && !process->exiting) {
        process->exit_status = status;
    }
    if (last) {
        itimer_stop(process);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    if (last) {
        file_table_close_all(&process->files, false);
        memcg_leave(process);
        process_vfork_release(process);
        if (process == init_process) {
            machine_end(process->exit_status);
        }
    }
    flags = spin_lock_irqsave(&process_lock);
    task->process = NULL; /* its FP registers are not worth saving */
    if (last) {
        exit_reparent(process);
        process->zombie = true;
        unwanted = exit_tell_parent(process);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    if (unwanted) {
        process_free(process);
    }
    task_exit_current();
}

void task_kill_locked(struct task *task, int signal)
{
    uint32_t none = 0;

    (void)atomic_compare_exchange_strong(&task->killed, &none,
                                         (uint32_t)signal + 1);
    (void)task_wake(task);
    /* Running user code elsewhere: an interrupt makes it look. */
    if (task != current()) {
        unsigned cpu = __atomic_load_n(&task->cpu, __ATOMIC_RELAXED);

        if (cpu != cpu_id()) {
            smp_send_reschedule(cpu);
        }
    }
}

void process_kill_locked(struct process *process, int signal)
{
    struct list *at;

    if (!process->exiting) {
        process->exiting = true;
        process->exit_status = signal;
    }
    list_for_each(at, &process->threads)
    {
        task_kill_locked(list_entry(at, struct task, process_node), signal);
    }
}

void process_exit_group(int status)
{
    struct process *process = current()->process;
    uint64_t flags = spin_lock_irqsave(&process_lock);

    if (!process->exiting) {
        process_kill_locked(process, status);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    process_exit_thread(status);
}

void process_exit_starved(int status)
{
    struct process *process = current()->process;
    uint64_t flags = spin_lock_irqsave(&process_lock);
    unsigned threads = process->thread_count;

    if (!process->exiting) {
        process_kill_locked(process, status);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    mm_reap(current()->mm, threads);
    process_exit_thread(status);
}
