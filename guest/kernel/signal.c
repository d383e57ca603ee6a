/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sending signals, taking them, and what happens without a handler. */
#include "kernel/signal.h"

#include "kernel/bootargs.h"
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/printk.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define STOP_SIGNALS                                                           \
    (SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) |         \
     SIGNAL_BIT(SIGTTOU))
#define IGNORED_SIGNALS                                                        \
    (SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) |          \
     SIGNAL_BIT(SIGWINCH))
/* Taken first: the fault's own instruction is still the current one. */
#define FAULT_SIGNALS                                                          \
    (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) |           \
     SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSYS))

struct signal_queued {
    struct list node;
    struct signal_info info;
};

void signal_pending_init(struct signal_pending *pending)
{
    pending->bits = 0;
    list_init(&pending->queue);
}

/* Forgets those of the set. */
static void pending_remove(struct signal_pending *pending, uint64_t set)
{
    struct list *at, *next;

    pending->bits &= ~set;
    list_for_each_safe(at, next, &pending->queue)
    {
        struct signal_queued *queued =
            list_entry(at, struct signal_queued, node);

        if ((SIGNAL_BIT(queued->info.signo) & set) != 0) {
            list_remove(at);
            kfree(queued);
        }
    }
}

void signal_pending_drop(struct signal_pending *pending)
{
    pending_remove(pending, ~0UL);
}

static void pending_add(struct signal_pending *pending,
                        const struct signal_info *info)
{
    uint64_t bit = SIGNAL_BIT(info->signo);
    struct signal_queued *queued;

    if (info->signo < SIGRTMIN && (pending->bits & bit) != 0) {
        return; /* one of a kind is enough */
    }
    pending->bits |= bit;
    queued = kmalloc(sizeof(*queued));
    if (queued != NULL) { /* else it arrives without its story */
        queued->info = *info;
        list_append(&pending->queue, &queued->node);
    }
}

/* The first of that number; its bit goes with the last. */
static void pending_take(struct signal_pending *pending, int signo,
                         struct signal_info *out)
{
    struct signal_queued *found = NULL;
    bool more = false;
    struct list *at;

    list_for_each(at, &pending->queue)
    {
        struct signal_queued *queued =
            list_entry(at, struct signal_queued, node);

        if (queued->info.signo == signo) {
            more = found != NULL;
            if (more) {
                break;
            }
            found = queued;
        }
    }
    if (!more) {
        pending->bits &= ~SIGNAL_BIT(signo);
    }
    memset(out, 0, sizeof(*out));
    out->signo = signo;
    if (found != NULL) {
        *out = found->info;
        list_remove(&found->node);
        kfree(found);
    }
}

/* --- sending --- */

/* Makes the task look: it may sleep, or run user code on another CPU. */
static void signal_kick(struct task *task)
{
    atomic_store_explicit(&task->signalled, 1, memory_order_relaxed);
    (void)task_wake(task);
    if (task != current()) {
        unsigned cpu = __atomic_load_n(&task->cpu, __ATOMIC_RELAXED);

        if (cpu != cpu_id()) {
            smp_send_reschedule(cpu);
        }
    }
}

/* signal_lock held. Nobody would ever notice it. */
static bool signal_is_ignored(const struct process *process, uint64_t blocked,
                              int signo)
{
    uint64_t handler = process->actions[signo].handler;

    if ((blocked & SIGNAL_BIT(signo)) != 0) {
        return false;
    }
    /* The first process gets only what it asked for. */
    return handler == SIG_IGN ||
           (handler == SIG_DFL && ((SIGNAL_BIT(signo) & IGNORED_SIGNALS) != 0 ||
                                   process == init_process));
}

static void process_continue(struct process *process)
{
    bool was_stopped = process->stop_signal != 0;

    process->stop_signal = 0;
    process->stop_reported = true;
    wake_up_all(&process->stop_wait);
    if (was_stopped) {
        process->continued = true;
        signal_tell_parent(process, CLD_CONTINUED, SIGCONT);
    }
}

/* Both locks held: SIGCONT and the stopping ones undo each other. */
static void signal_prepare(struct process *process, int signo)
{
    uint64_t undone = signo == SIGCONT ? STOP_SIGNALS
                      : (SIGNAL_BIT(signo) & STOP_SIGNALS) != 0
                          ? SIGNAL_BIT(SIGCONT)
                          : 0;
    struct list *at;

    if (undone == 0) {
        return;
    }
    pending_remove(&process->pending, undone);
    list_for_each(at, &process->threads)
    {
        pending_remove(&list_entry(at, struct task, process_node)->pending,
                       undone);
    }
}

void signal_send_process(struct process *process,
                         const struct signal_info *info)
{
    int signo = info->signo;
    struct task *target = NULL;
    struct list *at;
    uint64_t blocked = ~0UL;

    if (process->zombie || list_empty(&process->threads)) {
        return;
    }
    if (signo == SIGKILL) {
        process_kill_locked(process, SIGKILL);
        return;
    }
    if (signo == SIGCONT) {
        process_continue(process);
    }
    spin_lock(&process->signal_lock);
    signal_prepare(process, signo);
    list_for_each(at, &process->threads)
    {
        struct task *task = list_entry(at, struct task, process_node);

        blocked &= task->sigmask;
        if (target == NULL && (task->sigmask & SIGNAL_BIT(signo)) == 0) {
            target = task;
        }
    }
    if (signal_is_ignored(process, blocked, signo)) {
        target = NULL;
    } else {
        pending_add(&process->pending, info);
    }
    spin_unlock(&process->signal_lock);
    if (target != NULL) {
        signal_kick(target);
    }
    wake_up_all(&process->signal_wait);
}

void signal_send_task(struct task *task, const struct signal_info *info)
{
    struct process *process = task->process;
    int signo = info->signo;
    bool tell = false;

    if (signo == SIGKILL) {
        process_kill_locked(process, SIGKILL);
        return;
    }
    if (signo == SIGCONT) {
        process_continue(process);
    }
    spin_lock(&process->signal_lock);
    signal_prepare(process, signo);
    if (!signal_is_ignored(process, task->sigmask, signo)) {
        pending_add(&task->pending, info);
        tell = (task->sigmask & SIGNAL_BIT(signo)) == 0;
    }
    spin_unlock(&process->signal_lock);
    if (tell) {
        signal_kick(task);
    }
    wake_up_all(&process->signal_wait);
}

void signal_tell_parent(struct process *child, int code, int status)
{
    struct process *parent = child->parent;
    struct signal_info info = {
        .signo = child->exit_signal,
        .code = code,
        .child = {.pid = child->pid,
                  .status = status,
                  .utime = process_cpu_ns(child) / 10000000}};

    if (parent == NULL) {
        return;
    }
    if (info.signo != 0 &&
        !((code == CLD_STOPPED || code == CLD_CONTINUED) &&
          (parent->actions[SIGCHLD].flags & SA_NOCLDSTOP) != 0)) {
        signal_send_process(parent, &info);
    }
    wake_up_all(&parent->child_wait);
}

void signal_send_self(int signo)
{
    struct signal_info info = {.signo = signo,
                               .code = SI_USER,
                               .from = {.pid = current()->process->pid}};
    uint64_t flags = spin_lock_irqsave(&process_lock);

    signal_send_task(current(), &info);
    spin_unlock_irqrestore(&process_lock, flags);
}

void signal_fault(const struct pt_regs *regs, int signo, int code,
                  const char *what, uint64_t esr, uint64_t far)
{
    struct task *task = current();
    struct process *process = task->process;
    struct signal_info info = {
        .signo = signo, .code = code, .fault = {.addr = far}};
    struct signal_action *action = &process->actions[signo];
    uint64_t flags;
    bool fatal;

    task->fault_address = far;
    task->fault_esr = esr;
    flags = spin_lock_irqsave(&process_lock);
    spin_lock(&process->signal_lock);
    if (action->handler == SIG_IGN ||
        (task->sigmask & SIGNAL_BIT(signo)) != 0) {
        /* It cannot be put off: the instruction would only fault again. */
        action->handler = SIG_DFL;
        task->sigmask &= ~SIGNAL_BIT(signo);
    }
    fatal = action->handler == SIG_DFL;
    pending_add(&task->pending, &info);
    atomic_store_explicit(&task->signalled, 1, memory_order_relaxed);
    if (fatal) {
        task->forced |= SIGNAL_BIT(signo); /* also the first process dies */
    }
    spin_unlock(&process->signal_lock);
    spin_unlock_irqrestore(&process_lock, flags);
    if (fatal && bootargs_debug("faults")) {
        printk("%s[%d]: signal %d: %s, pc 0x%lx address 0x%lx ESR 0x%lx\n",
               task->name, task->tid, signo, what, regs->pc, far, esr);
    }
}

void signal_out_of_memory(uint64_t far)
{
    struct task *task = current();

    if (bootargs_debug("faults")) {
        printk("%s[%d]: out of memory, address 0x%lx\n", task->name, task->tid,
               far);
    }
    process_exit_group(SIGKILL);
}

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
        pending_take((own & SIGNAL_BIT(signo)) != 0 ? &task->pending
                                                    : &process->pending,
                     signo, out);
        *action = process->actions[signo];
        if (action->handler > SIG_IGN && (action->flags & SA_RESETHAND) != 0) {
            process->actions[signo].handler = SIG_DFL;
        }
    }
    recalculate_locked(task);
    spin_unlock_irqrestore(&process->signal_lock, flags);
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
        pending_take((own & SIGNAL_BIT(signo)) != 0 ? &task->pending
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
