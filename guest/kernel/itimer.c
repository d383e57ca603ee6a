/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * setitimer(ITIMER_REAL): one alarm a process, by the monotonic clock. Armed
 * ones stand in a list in the order of their times, guarded by process_lock; a
 * kernel thread, made by the first call, sleeps until the first of them and
 * sends SIGALRM. So no signal is sent by an interrupt.
 *
 * As on Linux an alarm with an interval goes on when its signal is taken, not
 * when it is sent: who blocks SIGALRM gets one, who ignores it no more. fork
 * does not hand it on, execve keeps it.
 */
#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/uaccess.h"

#define ITIMER_REAL 0
#define ITIMER_PROF 2
#define USEC_PER_SEC 1000000
#define NSEC_PER_USEC 1000UL

struct user_itimerval {
    struct {
        int64_t sec, usec;
    } interval, value;
};

static struct list alarms = LIST_INIT(alarms); /* [process_lock] */
static struct wait_queue alarm_wait = {
    .lock = SPINLOCK_INIT(LOCK_wait), .waiters = LIST_INIT(alarm_wait.waiters)};
static _Atomic bool thread_made;

/* process_lock held, as for all of these. */
static void disarm(struct process *process)
{
    if (process->alarm.at != 0) {
        list_remove(&process->alarm.node);
        process->alarm.at = 0;
    }
}

static void arm(struct process *process, uint64_t at)
{
    struct list *place;

    list_for_each(place, &alarms)
    {
        if (list_entry(place, struct process, alarm.node)->alarm.at > at) {
            break;
        }
    }
    process->alarm.at = at;
    list_append(place, &process->alarm.node);
    if (alarms.next == &process->alarm.node) {
        wake_up_all(&alarm_wait);
    }
}

/* Sends what is due; when to look again. */
static uint64_t send_due(void)
{
    const struct signal_info info = {.signo = SIGALRM, .code = SI_KERNEL};
    uint64_t now = time_now_ns();

    while (!list_empty(&alarms)) {
        struct process *process =
            list_first(&alarms, struct process, alarm.node);

        if (process->alarm.at > now) {
            return process->alarm.at;
        }
        process->alarm.last = process->alarm.at;
        disarm(process);
        signal_send_process(process, &info);
    }
    return WAIT_FOREVER;
}

static void alarm_main(void *arg)
{
    (void)arg;
    for (;;) {
        struct wait_entry entry;
        uint64_t flags, next;

        wait_prepare(&alarm_wait, &entry);
        flags = spin_lock_irqsave(&process_lock);
        next = send_due();
        spin_unlock_irqrestore(&process_lock, flags);
        wait_schedule(next);
        wait_finish(&alarm_wait, &entry);
    }
}

static bool make_thread(void)
{
    struct task *task;

    if (atomic_exchange(&thread_made, true)) {
        return true;
    }
    task = kthread_new("alarms", alarm_main, NULL);
    if (task == NULL) {
        atomic_store(&thread_made, false);
        return false;
    }
    task_start(task);
    return true;
}

void itimer_taken(struct process *process)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    uint64_t every = process->alarm.interval, now = time_now_ns();

    if (every != 0 && process->alarm.at == 0 && !process->zombie) {
        uint64_t at = process->alarm.last + every;

        /* What went by while nobody took the signal is not made up for. */
        arm(process, at > now ? at : at + ((now - at) / every + 1) * every);
    }
    spin_unlock_irqrestore(&process_lock, flags);
}

void itimer_stop(struct process *process)
{
    disarm(process);
    process->alarm.interval = 0;
}

/* --- system calls --- */

static int64_t time_from_user(int64_t sec, int64_t usec, uint64_t *out_ns)
{
    if (sec < 0 || usec < 0 || usec >= USEC_PER_SEC) {
        return -EINVAL;
    }
    /* 292 years are for ever. */
    *out_ns =
        (uint64_t)sec > INT64_MAX / NSEC_PER_SEC - 1
            ? INT64_MAX
            : (uint64_t)sec * NSEC_PER_SEC + (uint64_t)usec * NSEC_PER_USEC;
    return 0;
}

static void get_locked(const struct process *process,
                       struct user_itimerval *out)
{
    uint64_t now = time_now_ns(), at = process->alarm.at, left = 0;

    if (at != 0) {
        left = at > now + NSEC_PER_USEC ? at - now : NSEC_PER_USEC;
    }
    out->value.sec = (int64_t)(left / NSEC_PER_SEC);
    out->value.usec = (int64_t)(left % NSEC_PER_SEC / NSEC_PER_USEC);
    out->interval.sec = (int64_t)(process->alarm.interval / NSEC_PER_SEC);
    out->interval.usec =
        (int64_t)(process->alarm.interval % NSEC_PER_SEC / NSEC_PER_USEC);
}

/* The two that count CPU time are not there. */
static int64_t which_error(uint64_t which)
{
    which = (uint32_t)which;
    return which > ITIMER_PROF ? -EINVAL : which != ITIMER_REAL ? -ENOSYS : 0;
}

int64_t sys_getitimer(uint64_t which, uint64_t value_va)
{
    struct user_itimerval now;
    int64_t error = which_error(which);
    uint64_t flags;

    if (error != 0) {
        return error;
    }
    flags = spin_lock_irqsave(&process_lock);
    get_locked(current()->process, &now);
    spin_unlock_irqrestore(&process_lock, flags);
    return copy_to_user(value_va, &now, sizeof(now)) != 0 ? -EFAULT : 0;
}

int64_t sys_setitimer(uint64_t which, uint64_t value_va, uint64_t old_va)
{
    struct process *process = current()->process;
    struct user_itimerval new = {0}, old;
    uint64_t value, interval, flags;
    int64_t error;

    if (value_va != 0 && copy_from_user(&new, value_va, sizeof(new)) != 0) {
        return -EFAULT;
    }
    error = time_from_user(new.value.sec, new.value.usec, &value);
    if (error == 0) {
        error = time_from_user(new.interval.sec, new.interval.usec, &interval);
    }
    error = error != 0 ? error : which_error(which);
    if (error != 0) {
        return error;
    }
    if (value != 0 && !make_thread()) {
        return -ENOMEM;
    }
    flags = spin_lock_irqsave(&process_lock);
    get_locked(process, &old);
    itimer_stop(process);
    if (value != 0) {
        process->alarm.interval = interval;
        arm(process, time_now_ns() + value);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return old_va != 0 && copy_to_user(old_va, &old, sizeof(old)) != 0 ? -EFAULT
                                                                       : 0;
}
