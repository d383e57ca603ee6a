/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals, minimally: a signal either ends the process or is ignored. Handlers
 * and masks are recorded, so that programs that install them run, but no
 * handler is ever called.
 */
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/printk.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/signal.h"
#include "mm/uaccess.h"

#define SIG_DFL 0
#define SIG_IGN 1

#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

/* Ignored by default: SIGCHLD 17, SIGCONT 18, SIGURG 23, SIGWINCH 28. */
#define DEFAULT_IGNORED (BIT(17) | BIT(18) | BIT(23) | BIT(28))

void signal_deliver(struct pt_regs *regs)
{
    uint32_t killed =
        atomic_load_explicit(&current()->killed, memory_order_relaxed);

    (void)regs;
    if (killed != 0) {
        /* A sibling's exit_group has set the status already. */
        process_exit_group((int)killed - 1);
    }
}

void signal_fault(const struct pt_regs *regs, int signal, const char *what,
                  uint64_t esr, uint64_t far)
{
    struct task *task = current();

    printk("%s[%d]: signal %d: %s, pc 0x%lx address 0x%lx ESR 0x%lx\n",
           task->name, task->tid, signal, what, regs->pc, far, esr);
    process_exit_group(signal);
}

/* Does the signal end the process? Sending it otherwise does nothing. */
static bool signal_is_fatal(struct process *process, int signal)
{
    uint64_t handler = process->actions[signal].handler;

    if (signal == SIGKILL) {
        return true;
    }
    if (handler == SIG_IGN) {
        return false;
    }
    return handler == SIG_DFL && (DEFAULT_IGNORED & BIT(signal)) == 0 &&
           signal != SIGSTOP;
}

int64_t sys_kill(int64_t pid, int64_t signal)
{
    struct process *process;
    int64_t error = 0;
    uint64_t flags;

    if (signal < 0 || signal > SIGNALS) {
        return -EINVAL;
    }
    if (pid <= 0) {
        pid = current()->process->pid; /* one group: the caller's process */
    }
    flags = spin_lock_irqsave(&process_lock);
    process = process_find((int32_t)pid);
    if (process == NULL) {
        error = -ESRCH;
    } else if (signal != 0 && signal_is_fatal(process, (int)signal)) {
        process_kill_locked(process, (int)signal);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return error;
}

int64_t sys_tgkill(int64_t tgid, int64_t tid, int64_t signal)
{
    struct task *task;
    int64_t error = 0;
    uint64_t flags;

    if (signal < 0 || signal > SIGNALS || tid <= 0) {
        return -EINVAL;
    }
    flags = spin_lock_irqsave(&process_lock);
    task = process_find_task((int32_t)tid);
    if (task == NULL || (tgid > 0 && task->process->pid != tgid)) {
        error = -ESRCH;
    } else if (signal != 0 && signal_is_fatal(task->process, (int)signal)) {
        process_kill_locked(task->process, (int)signal);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return error;
}

int64_t sys_rt_sigaction(int64_t signal, uint64_t new_va, uint64_t old_va,
                         uint64_t set_size)
{
    struct process *process = current()->process;
    struct signal_action new_action, old_action;

    if (signal < 1 || signal > SIGNALS || set_size != sizeof(uint64_t)) {
        return -EINVAL;
    }
    if (new_va != 0 &&
        copy_from_user(&new_action, new_va, sizeof(new_action)) != 0) {
        return -EFAULT;
    }
    if (new_va != 0 && (signal == SIGKILL || signal == SIGSTOP)) {
        return -EINVAL;
    }
    spin_lock(&process->signal_lock);
    old_action = process->actions[signal];
    if (new_va != 0) {
        process->actions[signal] = new_action;
    }
    spin_unlock(&process->signal_lock);
    if (old_va != 0 &&
        copy_to_user(old_va, &old_action, sizeof(old_action)) != 0) {
        return -EFAULT;
    }
    return 0;
}

int64_t sys_rt_sigprocmask(uint64_t how, uint64_t set_va, uint64_t old_va,
                           uint64_t set_size)
{
    struct task *task = current();
    uint64_t old = task->sigmask, set;

    if (set_size != sizeof(uint64_t)) {
        return -EINVAL;
    }
    if (set_va != 0) {
        if (get_user_u64(&set, set_va) != 0) {
            return -EFAULT;
        }
        switch (how) {
        case SIG_BLOCK:
            task->sigmask |= set;
            break;
        case SIG_UNBLOCK:
            task->sigmask &= ~set;
            break;
        case SIG_SETMASK:
            task->sigmask = set;
            break;
        default:
            return -EINVAL;
        }
    }
    return old_va != 0 ? put_user_u64(old_va, old) : 0;
}
