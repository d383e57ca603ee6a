/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sending signals: to a process, to a task, to a parent, for a fault. */
#include "kernel/signal_priv.h"

#include "kernel/bootargs.h"
#include "kernel/printk.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/smp.h"

void signal_kick(struct task *task)
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
    signal_pending_remove(&process->pending, undone);
    list_for_each(at, &process->threads)
    {
        signal_pending_remove(
            &list_entry(at, struct task, process_node)->pending, undone);
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
        signal_pending_add(&process->pending, info);
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
        signal_pending_add(&task->pending, info);
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
    signal_pending_add(&task->pending, &info);
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
    process_exit_starved(SIGKILL);
}
