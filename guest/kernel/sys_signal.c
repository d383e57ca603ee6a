/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of signals. */
#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/signal.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/uaccess.h"

#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
#define MIN_STACK 5120UL /* MINSIGSTKSZ of arm64 */

/* To one process, a group (pid < -1, 0: our own), or all but the first. */
static int64_t kill_many(int64_t pid, const struct signal_info *info)
{
    struct process *self = current()->process;
    int32_t group = pid == 0 ? self->pgid : (int32_t)-pid;
    bool any = false;
    struct list *at;

    list_for_each(at, &process_list)
    {
        struct process *process = list_entry(at, struct process, all);

        if (pid == -1 ? process->pid > 1 && process != self
                      : process->pgid == group) {
            any = true;
            if (info->signo != 0) {
                signal_send_process(process, info);
            }
        }
    }
    return any ? 0 : -ESRCH;
}

static int64_t kill_info(int64_t pid, const struct signal_info *info)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process;
    int64_t error = 0;

    if (pid <= 0) {
        error = kill_many(pid, info);
    } else {
        process = process_find((int32_t)pid);
        if (process == NULL) {
            struct task *task = process_find_task((int32_t)pid);

            process = task != NULL ? task->process : NULL;
        }
        if (process == NULL) {
            error = -ESRCH;
        } else if (info->signo != 0) {
            signal_send_process(process, info);
        }
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return error;
}

int64_t sys_kill(int64_t pid, int64_t signo)
{
    struct signal_info info = {.signo = (int32_t)signo,
                               .code = SI_USER,
                               .from = {.pid = current()->process->pid}};

    if (signo < 0 || signo > SIGNALS) {
        return -EINVAL;
    }
    return pid == INT32_MIN ? -ESRCH : kill_info(pid, &info);
}

int64_t sys_rt_sigqueueinfo(int64_t pid, int64_t signo, uint64_t info_va)
{
    struct signal_info info;

    if (copy_from_user(&info, info_va, sizeof(info)) != 0) {
        return -EFAULT;
    }
    if (signo < 0 || signo > SIGNALS || pid <= 0) {
        return -EINVAL;
    }
    /* Only the kernel may say that it was the kernel. */
    if ((info.code >= 0 || info.code == SI_TKILL) &&
        pid != current()->process->pid) {
        return -EPERM;
    }
    info.signo = (int32_t)signo;
    return kill_info(pid, &info);
}

int64_t sys_tgkill(int64_t tgid, int64_t tid, int64_t signo)
{
    struct signal_info info = {.signo = (int32_t)signo,
                               .code = SI_TKILL,
                               .from = {.pid = current()->process->pid}};
    struct task *task;
    int64_t error = 0;
    uint64_t flags;

    if (signo < 0 || signo > SIGNALS || tid <= 0) {
        return -EINVAL;
    }
    flags = spin_lock_irqsave(&process_lock);
    task = process_find_task((int32_t)tid);
    if (task == NULL || (tgid > 0 && task->process->pid != tgid)) {
        error = -ESRCH;
    } else if (signo != 0) {
        signal_send_task(task, &info);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return error;
}

int64_t sys_rt_sigaction(int64_t signo, uint64_t new_va, uint64_t old_va,
                         uint64_t set_size)
{
    struct process *process = current()->process;
    struct signal_action new_action, old_action;
    uint64_t flags;

    if (set_size != sizeof(uint64_t)) {
        return -EINVAL;
    }
    if (new_va != 0 &&
        copy_from_user(&new_action, new_va, sizeof(new_action)) != 0) {
        return -EFAULT;
    }
    if (signo < 1 || signo > SIGNALS ||
        (new_va != 0 && (signo == SIGKILL || signo == SIGSTOP))) {
        return -EINVAL;
    }
    flags = spin_lock_irqsave(&process->signal_lock);
    old_action = process->actions[signo];
    if (new_va != 0) {
        new_action.mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
        process->actions[signo] = new_action;
    }
    spin_unlock_irqrestore(&process->signal_lock, flags);
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
            signal_set_mask(old | set);
            break;
        case SIG_UNBLOCK:
            signal_set_mask(old & ~set);
            break;
        case SIG_SETMASK:
            signal_set_mask(set);
            break;
        default:
            return -EINVAL;
        }
    }
    return old_va != 0 ? put_user_u64(old_va, old) : 0;
}

int64_t sys_rt_sigpending(uint64_t set_va, uint64_t set_size)
{
    struct task *task = current();
    uint64_t flags, set;

    if (set_size > sizeof(uint64_t)) {
        return -EINVAL;
    }
    flags = spin_lock_irqsave(&task->process->signal_lock);
    set = (task->pending.bits | task->process->pending.bits) & task->sigmask;
    spin_unlock_irqrestore(&task->process->signal_lock, flags);
    return copy_to_user(set_va, &set, set_size);
}

int64_t sys_rt_sigsuspend(uint64_t set_va, uint64_t set_size)
{
    int64_t error;

    if (set_size != sizeof(uint64_t)) {
        return -EINVAL;
    }
    error = set_va == 0 ? -EFAULT : signal_mask_for_call(set_va, set_size);
    while (error == 0 && !task_signalled(current())) {
        task_mark_blocked(current());
        if (!task_signalled(current())) {
            wait_schedule(WAIT_FOREVER);
        }
        task_mark_runnable(current());
    }
    return error != 0 ? error : -ERESTARTNOHAND;
}

int64_t sys_rt_sigtimedwait(uint64_t set_va, uint64_t info_va,
                            uint64_t timeout_va, uint64_t set_size)
{
    struct signal_info info;
    uint64_t set, ns, deadline = WAIT_FOREVER;
    int64_t error = 0;

    if (set_size != sizeof(uint64_t)) {
        return -EINVAL;
    }
    if (get_user_u64(&set, set_va) != 0) {
        return -EFAULT;
    }
    if (timeout_va != 0) {
        error = timespec_from_user(timeout_va, &ns);
        if (error != 0) {
            return error;
        }
        deadline = ns < INT64_MAX ? time_now_ns() + ns : WAIT_FOREVER;
    }
    set &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    error = signal_wait_for(set, deadline, &info);
    if (error > 0 && info_va != 0 &&
        copy_to_user(info_va, &info, sizeof(info)) != 0) {
        return -EFAULT;
    }
    return error;
}

int64_t sys_sigaltstack(uint64_t new_va, uint64_t old_va)
{
    struct task *task = current();
    uint64_t sp = task_regs(task)->sp;
    struct signal_stack now = task->altstack, wanted;
    bool on = task->altstack.size != 0 && signal_on_stack(task, sp);

    now.flags = task->altstack.size == 0 ? SS_DISABLE : on ? SS_ONSTACK : 0;
    if (new_va != 0) {
        if (copy_from_user(&wanted, new_va, sizeof(wanted)) != 0) {
            return -EFAULT;
        }
        if (on) {
            return -EPERM;
        }
        if (wanted.flags != 0 && wanted.flags != SS_DISABLE &&
            wanted.flags != SS_ONSTACK) {
            return -EINVAL;
        }
        if (wanted.flags == SS_DISABLE) {
            wanted.sp = 0;
            wanted.size = 0;
        } else if (wanted.size < MIN_STACK) {
            return -ENOMEM;
        }
        task->altstack = wanted;
    }
    return old_va != 0 ? copy_to_user(old_va, &now, sizeof(now)) : 0;
}
