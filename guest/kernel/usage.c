/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What processes used: CPU time is measured at context switches and is not
 * split, all of it counts as user time.
 */
#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/uaccess.h"

#define RUSAGE_SELF 0
#define RUSAGE_CHILDREN (-1)
#define RUSAGE_THREAD 1
#define NSEC_PER_USEC 1000UL

/* struct rusage of 64-bit architectures */
struct user_rusage {
    int64_t utime[2], stime[2];
    int64_t maxrss, ixrss, idrss, isrss, minflt, majflt, nswap, inblock,
        oublock, msgsnd, msgrcv, nsignals, nvcsw, nivcsw;
};
_Static_assert(sizeof(struct user_rusage) == 144, "struct rusage");

static void usage_of_task(const struct task *task, struct usage *out)
{
    *out = (struct usage){.cpu_ns = task->cpu_ns,
                          .faults = task->faults,
                          .switches_own = task->switches_own,
                          .switches_forced = task->switches_forced};
    if (task == current()) {
        out->cpu_ns += time_now_ns() - task->run_start;
    }
}

void usage_add(struct usage *to, const struct usage *from)
{
    to->cpu_ns += from->cpu_ns;
    to->faults += from->faults;
    to->switches_own += from->switches_own;
    to->switches_forced += from->switches_forced;
}

void usage_of(const struct process *process, struct usage *out)
{
    const struct list *at;

    *out = process->dead;
    list_for_each(at, &process->threads)
    {
        struct usage one;

        usage_of_task(list_entry(at, struct task, process_node), &one);
        usage_add(out, &one);
    }
}

uint64_t process_cpu_ns(const struct process *process)
{
    struct usage usage;

    usage_of(process, &usage);
    return usage.cpu_ns;
}

int64_t usage_to_user(const struct usage *usage, uint64_t rusage_va)
{
    struct user_rusage user = {
        .utime = {(int64_t)(usage->cpu_ns / NSEC_PER_SEC),
                  (int64_t)(usage->cpu_ns % NSEC_PER_SEC / NSEC_PER_USEC)},
        .minflt = (int64_t)usage->faults,
        .nvcsw = (int64_t)usage->switches_own,
        .nivcsw = (int64_t)usage->switches_forced};

    return copy_to_user(rusage_va, &user, sizeof(user)) != 0 ? -EFAULT : 0;
}

int64_t sys_getrusage(uint64_t who64, uint64_t buf_va)
{
    struct process *process = current()->process;
    int32_t who = (int32_t)who64;
    struct usage usage;
    uint64_t flags;

    if (who != RUSAGE_SELF && who != RUSAGE_CHILDREN && who != RUSAGE_THREAD) {
        return -EINVAL;
    }
    flags = spin_lock_irqsave(&process_lock);
    if (who == RUSAGE_SELF) {
        usage_of(process, &usage);
    } else if (who == RUSAGE_CHILDREN) {
        usage = process->waited;
    } else {
        usage_of_task(current(), &usage);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return usage_to_user(&usage, buf_va);
}

/* In clock ticks of 1/100 s. */
int64_t sys_times(uint64_t buf_va)
{
    struct process *process = current()->process;
    uint64_t flags = spin_lock_irqsave(&process_lock);
    uint64_t own = process_cpu_ns(process), children = process->waited.cpu_ns;
    uint64_t ticks[4] = {own / NSEC_PER_TICK, 0, children / NSEC_PER_TICK, 0};

    spin_unlock_irqrestore(&process_lock, flags);
    if (buf_va != 0 && copy_to_user(buf_va, ticks, sizeof(ticks)) != 0) {
        return -EFAULT;
    }
    return (int64_t)(time_now_ns() / NSEC_PER_TICK);
}
