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
#include "mm/mm.h"
#include "mm/uaccess.h"

#define WNOHANG 1

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
    task->mm = NULL;
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
    process->thread_count--;
    list_remove(&task->process_node);
    return process->thread_count == 0;
}

void process_exit_thread(int status)
{
    struct task *task = current();
    struct process *process = task->process;
    bool last;
    uint64_t flags;

    local_irq_enable();
    exit_mm(task);
    flags = spin_lock_irqsave(&process_lock);
    last = exit_leave_threads(process, task);
    if (last && !process->exiting) {
        process->exit_status = status;
    }
    spin_unlock_irqrestore(&process_lock, flags);
    if (last) {
        file_table_close_all(&process->files, false);
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
        wake_up_all(&process->parent->child_wait);
    }
    spin_unlock_irqrestore(&process_lock, flags);
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

/* process_lock held. Takes a zombie off the tree; any: is there such a child?
 */
static struct process *wait_find(struct process *parent, int64_t pid,
                                 bool *out_any)
{
    struct list *at;

    *out_any = false;
    list_for_each(at, &parent->children)
    {
        struct process *child = list_entry(at, struct process, sibling);

        if (pid > 0 && child->pid != pid) {
            continue;
        }
        *out_any = true;
        if (child->zombie) {
            list_remove(&child->sibling);
            list_remove(&child->all);
            return child;
        }
    }
    return NULL;
}

int64_t sys_wait4(int64_t pid, uint64_t status_va, uint64_t options,
                  uint64_t rusage_va)
{
    struct process *process = current()->process, *child;
    struct wait_entry entry;
    int64_t result;
    bool any;

    (void)rusage_va;
    for (;;) {
        uint64_t flags;

        wait_prepare(&process->child_wait, &entry);
        flags = spin_lock_irqsave(&process_lock);
        child = wait_find(process, pid, &any);
        spin_unlock_irqrestore(&process_lock, flags);
        if (child != NULL || !any || (options & WNOHANG) != 0 ||
            task_killed(current())) {
            break;
        }
        wait_schedule(WAIT_FOREVER);
        wait_finish(&process->child_wait, &entry);
    }
    wait_finish(&process->child_wait, &entry);
    if (child == NULL) {
        return !any ? -ECHILD : (options & WNOHANG) != 0 ? 0 : -EINTR;
    }
    result = child->pid;
    if (status_va != 0 &&
        put_user_u32(status_va, (uint32_t)child->exit_status) != 0) {
        result = -EFAULT;
    }
    process_free(child);
    return result;
}
