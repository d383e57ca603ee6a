/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Taking signals: the own mask, handlers, what happens without one. */
#include "kernel/signal_priv.h"

#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/time.h"
#include "mm/uaccess.h"

/* Taken first: the fault's own instruction is still the current one. */
#define FAULT_SIGNALS                                                          \
    (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) |           \
     SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSYS))

/* --- the own task's mask and pending set --- */

/* signal_lock held. */
static void recalculate_locked(struct task *task)
{
    uint64_t bits = task->pending.bits | task->process->pending.bits;

    atomic_store_explicit(&task->signalled,
                          (bits & ~task->sigmask) != 0 ||
                              task->process->stop_signal != 0,
                          memory_order_relaxed);
}

void signal_recalculate(void)
{
    struct process *process = current()->process;
    uint64_t flags = spin_lock_irqsave(&process->signal_lock);

    recalculate_locked(current());
    spin_unlock_irqrestore(&process->signal_lock, flags);
}

void signal_set_mask(uint64_t mask)
{
    struct task *task = current();
    struct process *process = task->process;
    uint64_t flags, left;
    struct list *at;

    mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    if (mask == task->sigmask) {
        return;
    }
    flags = spin_lock_irqsave(&process_lock);
    spin_lock(&process->signal_lock);
    /* What this task was meant to take and now blocks is another's. */
    left = process->pending.bits & mask & ~task->sigmask;
    task->sigmask = mask;
    recalculate_locked(task);
    spin_unlock(&process->signal_lock);
    if (left != 0) {
        list_for_each(at, &process->threads)
        {
            struct task *other = list_entry(at, struct task, process_node);

            if (other != task && (left & ~other->sigmask) != 0) {
                signal_kick(other);
            }
        }
    }
    spin_unlock_irqrestore(&process_lock, flags);
}

int64_t signal_mask_for_call(uint64_t mask_va, uint64_t size)
{
    struct task *task = current();
    uint64_t mask;

    if (mask_va == 0) {
        return 0;
    }
    if (size != sizeof(mask)) {
        return -EINVAL;
    }
    if (get_user_u64(&mask, mask_va) != 0) {
        return -EFAULT;
    }
    task->saved_mask = task->sigmask;
    task->restore_mask = true;
    signal_set_mask(mask);
    return 0;
}

/* --- taking --- */

/* Some signal to take now, if any; its action. */
static bool signal_take(struct signal_info *out, struct signal_action *action)
{
    struct task *task = current();
    struct process *process = task->process;
    uint64_t flags = spin_lock_irqsave(&process->signal_lock), own, all;
    int signo = 0;

    own = task->pending.bits & ~task->sigmask;
    all = own | (process->pending.bits & ~task->sigmask);
    if (all != 0) {
        uint64_t first = all & FAULT_SIGNALS ? all & FAULT_SIGNALS : all;

        signo = __builtin_ctzl(first) + 1;
        signal_pending_take((own & SIGNAL_BIT(signo)) != 0 ? &task->pending
                                                           : &process->pending,
                            signo, out);
        *action = process->actions[signo];
        if (action->handler > SIG_IGN && (action->flags & SA_RESETHAND) != 0) {
            process->actions[signo].handler = SIG_DFL;
        }
    }
    recalculate_locked(task);
    spin_unlock_irqrestore(&process->signal_lock, flags);
    if (signo == SIGALRM) {
        itimer_taken(process);
    }
    return signo != 0;
}

/* signal_lock held. One of the set, if it is there. */
static int take_from_set(uint64_t set, struct signal_info *out)
{
    struct task *task = current();
    uint64_t own = task->pending.bits & set;
    uint64_t all = own | (task->process->pending.bits & set);
    int signo = all == 0 ? 0 : __builtin_ctzl(all) + 1;

    if (signo != 0) {
        signal_pending_take((own & SIGNAL_BIT(signo)) != 0
                                ? &task->pending
                                : &task->process->pending,
                            signo, out);
        recalculate_locked(task);
    }
    return signo;
}

int64_t signal_wait_for(uint64_t set, uint64_t deadline,
                        struct signal_info *out)
{
    struct process *process = current()->process;

    for (;;) {
        struct wait_entry entry;
        uint64_t flags;
        bool late, interrupted;
        int signo;

        wait_prepare(&process->signal_wait, &entry);
        flags = spin_lock_irqsave(&process->signal_lock);
        signo = take_from_set(set, out);
        spin_unlock_irqrestore(&process->signal_lock, flags);
        if (signo == SIGALRM) {
            itimer_taken(process);
        }
        late = deadline != WAIT_FOREVER && time_now_ns() >= deadline;
        interrupted = task_signalled(current());
        if (signo == 0 && !late && !interrupted) {
            wait_schedule(deadline);
        }
        wait_finish(&process->signal_wait, &entry);
        if (signo != 0 || late || interrupted) {
            return signo != 0 ? signo : interrupted ? -EINTR : -EAGAIN;
        }
    }
}

/* Until SIGCONT or SIGKILL. */
static void signal_stop(int signo)
{
    struct process *process = current()->process;
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct list *at;

    if (process->stop_signal == 0 && !process->exiting) {
        process->stop_signal = signo;
        process->stop_reported = false;
        process->continued = false;
        list_for_each(at, &process->threads)
        {
            struct task *task = list_entry(at, struct task, process_node);

            if (task != current()) {
                signal_kick(task);
            }
        }
        signal_tell_parent(process, CLD_STOPPED, signo);
    }
    spin_unlock_irqrestore(&process_lock, flags);
}

static void signal_wait_stopped(void)
{
    struct process *process = current()->process;

    wait_event(&process->stop_wait,
               __atomic_load_n(&process->stop_signal, __ATOMIC_RELAXED) == 0 ||
                   task_killed(current()));
}

static void signal_default(const struct signal_info *info)
{
    uint64_t bit = SIGNAL_BIT(info->signo);

    if ((bit & IGNORED_SIGNALS) != 0) {
        return;
    }
    if (current()->process == init_process && (current()->forced & bit) == 0) {
        return;
    }
    if ((bit & STOP_SIGNALS) != 0) {
        signal_stop(info->signo);
        return;
    }
    process_exit_group(info->signo);
}

/* --- interrupted system calls --- */

static void restart_call(struct pt_regs *regs, int64_t code)
{
    struct task *task = current();

    regs->x[0] = task->call_arg0;
    if (code == -ERESTART_BLOCK) {
        regs->x[8] = 128; /* restart_syscall */
    }
    regs->pc -= 4;
}

/* The call that was interrupted, 0 if none; asked for once. */
static int64_t take_restart(struct pt_regs *regs)
{
    struct task *task = current();
    int64_t code = (int64_t)regs->x[0];

    if (!task->in_call ||
        (code != -ERESTARTSYS && code != -ERESTARTNOHAND &&
         code != -ERESTARTNOINTR && code != -ERESTART_BLOCK)) {
        return 0;
    }
    task->in_call = false;
    return code;
}

static void signal_handle(struct pt_regs *regs, const struct signal_info *info,
                          const struct signal_action *action)
{
    struct task *task = current();
    int64_t code = take_restart(regs);
    uint64_t mask = task->restore_mask ? task->saved_mask : task->sigmask;

    if (code == -ERESTARTNOINTR ||
        (code == -ERESTARTSYS && (action->flags & SA_RESTART) != 0)) {
        restart_call(regs, code);
    } else if (code != 0) {
        regs->x[0] = (uint64_t)-EINTR;
    }
    if (!signal_frame_push(regs, info, action, mask)) {
        /* No room for the frame: a SIGSEGV that cannot be handled either. */
        process_exit_group(SIGSEGV);
    }
    task->restore_mask = false;
    signal_set_mask(
        task->sigmask | action->mask |
        ((action->flags & SA_NODEFER) == 0 ? SIGNAL_BIT(info->signo) : 0));
}

void signal_deliver(struct pt_regs *regs)
{
    struct task *task = current();
    struct signal_action action;
    struct signal_info info;
    uint32_t killed;

    for (;;) {
        killed = atomic_load_explicit(&task->killed, memory_order_relaxed);
        if (killed == TASK_LEAVES) {
            process_exit_thread(0);
        }
        if (killed != 0) {
            /* A sibling's exit_group has set the status already. */
            process_exit_group((int)killed - 1);
        }
        if (__atomic_load_n(&task->process->stop_signal, __ATOMIC_RELAXED) !=
            0) {
            signal_wait_stopped();
            continue;
        }
        if (!signal_take(&info, &action)) {
            break;
        }
        if (action.handler == SIG_DFL) {
            signal_default(&info);
        } else if (action.handler != SIG_IGN) {
            signal_handle(regs, &info, &action);
        }
    }
    {
        int64_t code = take_restart(regs); /* no handler ran */

        if (code != 0) {
            restart_call(regs, code);
        }
    }
    if (task->restore_mask) {
        task->restore_mask = false;
        signal_set_mask(task->saved_mask);
        task->saved_mask = 0;
    }
}
