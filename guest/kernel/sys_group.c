/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Process groups and sessions: numbers that kill and wait go by. */
#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"

/* process_lock held. 0: the caller's own. */
static struct process *find_or_self(int64_t pid)
{
    return pid == 0 ? current()->process : process_find((int32_t)pid);
}

int64_t sys_getpgid(int64_t pid)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = find_or_self(pid);
    int64_t result = process != NULL ? process->pgid : -ESRCH;

    spin_unlock_irqrestore(&process_lock, flags);
    return result;
}

int64_t sys_getsid(int64_t pid)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = find_or_self(pid);
    int64_t result = process != NULL ? process->sid : -ESRCH;

    spin_unlock_irqrestore(&process_lock, flags);
    return result;
}

/* process_lock held. Is there a group of that number in the session? */
static bool group_exists(int32_t pgid, int32_t sid)
{
    struct list *at;

    list_for_each(at, &process_list)
    {
        struct process *process = list_entry(at, struct process, all);

        if (process->pgid == pgid && process->sid == sid) {
            return true;
        }
    }
    return false;
}

static int64_t set_group(int64_t pid, int64_t pgid)
{
    struct process *self = current()->process;
    struct process *process = find_or_self(pid);

    if (process == NULL || (process != self && process->parent != self)) {
        return -ESRCH;
    }
    if (process->sid == process->pid || process->sid != self->sid) {
        return -EPERM; /* a session's leader, or another session's */
    }
    pgid = pgid == 0 ? process->pid : pgid;
    if (pgid != process->pid && !group_exists((int32_t)pgid, self->sid)) {
        return -EPERM;
    }
    process->pgid = (int32_t)pgid;
    return 0;
}

int64_t sys_setpgid(int64_t pid, int64_t pgid)
{
    uint64_t flags;
    int64_t error;

    if (pgid < 0) {
        return -EINVAL;
    }
    if (pid < 0) {
        return -ESRCH;
    }
    flags = spin_lock_irqsave(&process_lock);
    error = set_group(pid, pgid);
    spin_unlock_irqrestore(&process_lock, flags);
    return error;
}

int64_t sys_setsid(void)
{
    struct process *self = current()->process;
    uint64_t flags = spin_lock_irqsave(&process_lock);
    bool leads = self->sid == self->pid;
    struct list *at;

    list_for_each(at, &process_list)
    {
        leads |= list_entry(at, struct process, all)->pgid == self->pid;
    }
    if (!leads) {
        self->sid = self->pid;
        self->pgid = self->pid;
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return leads ? -EPERM : self->pid;
}
