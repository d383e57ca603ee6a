/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wait4 and waitid: children that ended, stopped or went on. */
#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "mm/uaccess.h"

#define WNOHANG 1UL
#define WUNTRACED 2UL /* WSTOPPED */
#define WEXITED 4UL
#define WCONTINUED 8UL
#define WNOWAIT 0x01000000UL
#define WAIT4_OPTIONS (WNOHANG | WUNTRACED | WCONTINUED | 0xe0000000UL)
#define WAITID_OPTIONS (WAIT4_OPTIONS | WEXITED | WNOWAIT)

#define P_ALL 0
#define P_PID 1
#define P_PGID 2

#define STATUS_CONTINUED 0xffff

struct wait_request {
    uint64_t options;
    int64_t pid; /* > 0: that one; < -1: that group; 0: own group; -1: any */
};

struct wait_result {
    int32_t pid;
    int status; /* as wait4 says it */
    struct usage usage;
    struct process *dead; /* to be freed */
};

static bool is_wanted(const struct process *child, int64_t pid)
{
    return pid == -1 ||
           (pid > 0
                ? child->pid == pid
                : child->pgid == (pid == 0 ? current()->process->pgid : -pid));
}

static void take_dead(struct process *parent, struct process *child, bool keep,
                      struct wait_result *out)
{
    out->status = child->exit_status;
    out->usage = child->dead;
    usage_add(&out->usage, &child->waited);
    if (!keep) {
        usage_add(&parent->waited, &out->usage);
        process_unlink(child);
        out->dead = child;
    }
}

/* process_lock held. Does the child have something to tell? */
static bool look_at(struct process *parent, struct process *child,
                    uint64_t options, struct wait_result *out)
{
    bool keep = (options & WNOWAIT) != 0;

    *out = (struct wait_result){.pid = child->pid};
    if (child->zombie) {
        if ((options & WEXITED) == 0) {
            return false;
        }
        take_dead(parent, child, keep, out);
        return true;
    }
    if ((options & WUNTRACED) != 0 && child->stop_signal != 0 &&
        !child->stop_reported) {
        out->status = child->stop_signal << 8 | 0x7f;
        child->stop_reported = !keep;
        return true;
    }
    if ((options & WCONTINUED) != 0 && child->continued) {
        out->status = STATUS_CONTINUED;
        child->continued = keep;
        return true;
    }
    return false;
}

/* process_lock held. -ECHILD: nobody to wait for; 0: nothing yet; 1: out. */
static int look(struct process *parent, const struct wait_request *request,
                struct wait_result *out)
{
    int result = -ECHILD;
    struct list *at;

    list_for_each(at, &parent->children)
    {
        struct process *child = list_entry(at, struct process, sibling);

        if (is_wanted(child, request->pid)) {
            result = 0;
            if (look_at(parent, child, request->options, out)) {
                return 1;
            }
        }
    }
    return result;
}

/* 1: out; 0: nothing, with WNOHANG; -errno. */
static int wait_for_child(const struct wait_request *request,
                          struct wait_result *out)
{
    struct process *process = current()->process;
    struct wait_entry entry;
    int found;

    for (;;) {
        uint64_t flags;
        bool interrupted;

        wait_prepare(&process->child_wait, &entry);
        interrupted = task_signalled(current());
        flags = spin_lock_irqsave(&process_lock);
        found = look(process, request, out);
        spin_unlock_irqrestore(&process_lock, flags);
        if (found != 0 || (request->options & WNOHANG) != 0) {
            break;
        }
        if (interrupted) {
            found = -ERESTARTSYS;
            break;
        }
        wait_schedule(WAIT_FOREVER);
        wait_finish(&process->child_wait, &entry);
    }
    wait_finish(&process->child_wait, &entry);
    return found;
}

static void put_dead(struct wait_result *result)
{
    if (result->dead != NULL) {
        process_free(result->dead);
    }
}

int64_t sys_wait4(int64_t pid, uint64_t status_va, uint64_t options,
                  uint64_t rusage_va)
{
    struct wait_request request = {options | WEXITED, pid};
    struct wait_result result;
    int64_t error = 0;
    int found;

    options = (uint32_t)options;
    if ((options & ~WAIT4_OPTIONS) != 0) {
        return -EINVAL;
    }
    if (pid == INT32_MIN) {
        return -ESRCH;
    }
    found = wait_for_child(&request, &result);
    if (found <= 0) {
        return found;
    }
    put_dead(&result);
    if (status_va != 0) {
        error = put_user_u32(status_va, (uint32_t)result.status);
    }
    if (error == 0 && rusage_va != 0) {
        error = usage_to_user(&result.usage, rusage_va);
    }
    return error != 0 ? error : result.pid;
}

/* siginfo_t of a child: as SIGCHLD would tell it. */
static void info_of(const struct wait_result *result, struct signal_info *info)
{
    int signo = result->status & 0x7f;

    *info =
        (struct signal_info){.signo = SIGCHLD, .child = {.pid = result->pid}};
    if (result->status == STATUS_CONTINUED) {
        info->code = CLD_CONTINUED;
        info->child.status = SIGCONT;
    } else if (signo == 0x7f) {
        info->code = CLD_STOPPED;
        info->child.status = result->status >> 8;
    } else {
        info->code = signo != 0 ? CLD_KILLED : CLD_EXITED;
        info->child.status = signo != 0 ? signo : result->status >> 8 & 0xff;
    }
}

int64_t sys_waitid(uint64_t type, int64_t id, uint64_t info_va,
                   uint64_t options, uint64_t rusage_va)
{
    struct wait_request request = {(uint32_t)options, -1};
    struct signal_info info;
    struct wait_result result;
    int64_t error = 0;
    int found;

    options = (uint32_t)options;
    if ((options & ~WAITID_OPTIONS) != 0 ||
        (options & (WEXITED | WUNTRACED | WCONTINUED)) == 0 || type > P_PGID ||
        (type == P_PID && id <= 0) || (type == P_PGID && id < 0)) {
        return -EINVAL;
    }
    if (type != P_ALL) {
        request.pid = type == P_PID ? id : id == 0 ? 0 : -id;
    }
    found = wait_for_child(&request, &result);
    if (found < 0) {
        return found;
    }
    memset(&info, 0, sizeof(info));
    if (found > 0) {
        put_dead(&result);
        info_of(&result, &info);
        if (rusage_va != 0) {
            error = usage_to_user(&result.usage, rusage_va);
        }
    }
    if (error == 0 && info_va != 0) {
        error = copy_to_user(info_va, &info, sizeof(info));
    }
    return error;
}
