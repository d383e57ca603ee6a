/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clone: threads, forked processes (copy on write), vfork. */
#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "mm/mm.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#include "arch/sysreg.h"

#define CLONE_VM 0x00000100UL
#define CLONE_SIGHAND 0x00000800UL
#define CLONE_VFORK 0x00004000UL
#define CLONE_PARENT 0x00008000UL
#define CLONE_NEW 0x7e020080UL /* name spaces */
#define CLONE_THREAD 0x00010000UL
#define CLONE_SETTLS 0x00080000UL
#define CLONE_PARENT_SETTID 0x00100000UL
#define CLONE_CHILD_CLEARTID 0x00200000UL
#define CLONE_CHILD_SETTID 0x01000000UL

struct clone_args {
    uint64_t flags, stack, parent_tid_va, tls, child_tid_va;
};

void fp_save(struct fp_state *fp); /* boot/switch.S */

/* Registers, FP and scheduling of the parent, as of this system call. */
static void clone_copy_task(struct task *child, const struct clone_args *args)
{
    struct task *parent = current();
    struct pt_regs *regs = task_regs(child);

    *regs = *task_regs(parent);
    regs->x[0] = 0;
    if (args->stack != 0) {
        regs->sp = args->stack;
    }
    fp_save(&child->fp); /* the parent's are live: it made the call */
    child->tls = (args->flags & CLONE_SETTLS) ? args->tls : read_tpidr_el0();
    child->sigmask = parent->sigmask;
    child->mempolicy = parent->mempolicy;
    if ((args->flags & (CLONE_VM | CLONE_VFORK)) != CLONE_VM) {
        child->altstack = parent->altstack;
    }
    child->cpu = parent->cpu;
    cpumask_copy(&child->affinity, &parent->affinity);
    if ((args->flags & CLONE_CHILD_CLEARTID) != 0) {
        child->clear_child_tid = args->child_tid_va;
    }
}

static int clone_mm(struct task *child, const struct clone_args *args)
{
    struct mm *mm = current()->mm;

    if ((args->flags & CLONE_VM) != 0) {
        mm_get(mm);
        child->mm = mm;
    } else {
        child->mm = mm_fork(mm);
    }
    return child->mm == NULL ? -ENOMEM : 0;
}

static struct process *clone_process(const struct clone_args *args)
{
    struct process *parent = current()->process;
    struct process *process = process_new(
        (args->flags & CLONE_PARENT) != 0 ? parent->parent : parent);
    char *exe;
    uint64_t flags;

    if (process == NULL) {
        return NULL;
    }
    spin_lock(&parent->files.lock);
    process->cwd = inode_get(parent->cwd);
    spin_unlock(&parent->files.lock);
    process->umask = parent->umask;
    process->exit_signal = (int)(args->flags & 0xff);
    process->arg_start = parent->arg_start;
    process->arg_end = parent->arg_end;
    process->env_end = parent->env_end;
    exe = kmalloc(strlen(parent->exe) + 1);
    if (exe == NULL || !file_table_copy(&process->files, &parent->files)) {
        kfree(exe);
        file_table_close_all(&process->files, false);
        flags = spin_lock_irqsave(&process_lock);
        process_unlink(process);
        spin_unlock_irqrestore(&process_lock, flags);
        process_free(process);
        return NULL;
    }
    strlcpy(exe, parent->exe, strlen(parent->exe) + 1);
    process->exe = exe;
    flags = spin_lock_irqsave(&parent->signal_lock);
    memcpy(process->actions, parent->actions, sizeof(process->actions));
    spin_unlock_irqrestore(&parent->signal_lock, flags);
    return process;
}

/* process_lock taken: a process that is ending gets no new threads. */
static bool clone_may_start(struct process *process)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    bool may = !process->exiting && process->exec_task == NULL;

    spin_unlock_irqrestore(&process_lock, flags);
    return may;
}

static void clone_set_tids(struct task *child, const struct clone_args *args)
{
    uint32_t tid = (uint32_t)child->tid;

    /* As on Linux, a bad address here is not an error. */
    if ((args->flags & CLONE_PARENT_SETTID) != 0) {
        (void)put_user_u32(args->parent_tid_va, tid);
    }
    if ((args->flags & CLONE_CHILD_SETTID) != 0) {
        (void)copy_to_mm(child->mm, args->child_tid_va, &tid, sizeof(tid));
    }
}

static void clone_wait_vfork(struct process *process)
{
    /* The child's process cannot go away: only we could wait for it. */
    wait_event(&process->vfork_wait,
               __atomic_load_n(&process->vfork_done, __ATOMIC_ACQUIRE));
    /* process_vfork_release() wakes under this lock; let it finish. */
    uint64_t flags = spin_lock_irqsave(&process_lock);

    spin_unlock_irqrestore(&process_lock, flags);
}

int64_t sys_clone(uint64_t flags, uint64_t stack, uint64_t parent_tid_va,
                  uint64_t tls, uint64_t child_tid_va)
{
    const struct clone_args args = {flags, stack, parent_tid_va, tls,
                                    child_tid_va};
    struct task *parent = current(), *child;
    struct process *process = parent->process;
    bool thread = (flags & CLONE_THREAD) != 0;
    int64_t tid;

    if ((thread && (flags & CLONE_SIGHAND) == 0) ||
        ((flags & CLONE_SIGHAND) != 0 && (flags & CLONE_VM) == 0)) {
        return -EINVAL;
    }
    if ((flags & CLONE_NEW) != 0) {
        return -EPERM; /* no name spaces */
    }
    if (task_signalled(parent) && !thread) {
        return -ERESTARTNOINTR; /* take it first, then again */
    }
    if (!clone_may_start(process)) {
        return -EAGAIN;
    }
    child = task_new(parent->name);
    if (child == NULL) {
        return -ENOMEM;
    }
    clone_copy_task(child, &args);
    if (clone_mm(child, &args) != 0) {
        task_free(child);
        return -ENOMEM;
    }
    if (!thread) {
        process = clone_process(&args);
        if (process == NULL) {
            mm_put(child->mm);
            task_free(child);
            return -ENOMEM;
        }
    }
    process_add_thread(process, child);
    clone_set_tids(child, &args);
    tid = child->tid;
    /* From here on the child may have ended and been freed at any time. */
    task_start(child);
    if (!thread && (flags & CLONE_VFORK) != 0) {
        clone_wait_vfork(process);
    }
    return tid;
}
