/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of clocks and sleeping. */
#include "kernel/errno.h"
#include "kernel/sched.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/uaccess.h"

#define CLOCK_REALTIME 0
#define CLOCK_REALTIME_COARSE 5
#define CLOCK_LAST 11
#define TIMER_ABSTIME 1

struct user_timespec {
    int64_t sec, nsec;
};

int64_t timespec_from_user(uint64_t va, uint64_t *out_ns)
{
    struct user_timespec ts;

    if (copy_from_user(&ts, va, sizeof(ts)) != 0) {
        return -EFAULT;
    }
    if (ts.sec < 0 || ts.nsec < 0 || ts.nsec >= (int64_t)NSEC_PER_SEC) {
        return -EINVAL;
    }
    /* 292 years are for ever. */
    *out_ns = (uint64_t)ts.sec > INT64_MAX / NSEC_PER_SEC - 1
                  ? INT64_MAX
                  : (uint64_t)ts.sec * NSEC_PER_SEC + (uint64_t)ts.nsec;
    return 0;
}

int64_t timespec_to_user(uint64_t va, uint64_t ns)
{
    struct user_timespec ts = {(int64_t)(ns / NSEC_PER_SEC),
                               (int64_t)(ns % NSEC_PER_SEC)};

    return copy_to_user(va, &ts, sizeof(ts)) != 0 ? -EFAULT : 0;
}

static bool clock_is_real(uint64_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ||
           clock == CLOCK_LAST;
}

/* All clocks run with the counter; CPU-time clocks do too. */
int64_t sys_clock_gettime(uint64_t clock, uint64_t ts_va)
{
    uint64_t now = time_now_ns();

    if (clock > CLOCK_LAST) {
        return -EINVAL;
    }
    return timespec_to_user(
        ts_va, clock_is_real(clock) ? now + REALTIME_OFFSET_NS : now);
}

int64_t sys_clock_getres(uint64_t clock, uint64_t ts_va)
{
    if (clock > CLOCK_LAST) {
        return -EINVAL;
    }
    return ts_va == 0 ? 0 : timespec_to_user(ts_va, 1);
}

int64_t sys_gettimeofday(uint64_t tv_va)
{
    uint64_t now = time_now_ns() + REALTIME_OFFSET_NS;
    struct user_timespec tv = {(int64_t)(now / NSEC_PER_SEC),
                               (int64_t)(now % NSEC_PER_SEC / 1000)};

    if (tv_va == 0) {
        return 0;
    }
    return copy_to_user(tv_va, &tv, sizeof(tv)) != 0 ? -EFAULT : 0;
}

/*
 * Until deadline. A signal whose handler runs ends it with EINTR and the rest
 * at rest_va; without a handler the call goes on through restart_syscall.
 */
static int64_t sleep_until(uint64_t deadline, uint64_t rest_va)
{
    struct task *task = current();
    uint64_t now = time_now_ns();

    if (deadline > now) {
        sched_sleep_ns(deadline - now);
    }
    now = time_now_ns();
    if (now >= deadline || !task_signalled(task)) {
        return 0;
    }
    if (rest_va != 0 && timespec_to_user(rest_va, deadline - now) != 0) {
        return -EFAULT;
    }
    task->call_deadline = deadline;
    task->call_rest_va = rest_va;
    return -ERESTART_BLOCK;
}

int64_t sys_restart_syscall(void)
{
    return sleep_until(current()->call_deadline, current()->call_rest_va);
}

int64_t sys_nanosleep(uint64_t request_va, uint64_t rest_va)
{
    uint64_t ns;
    int64_t error = timespec_from_user(request_va, &ns);

    return error != 0 ? error : sleep_until(time_now_ns() + ns, rest_va);
}

int64_t sys_clock_nanosleep(uint64_t clock, uint64_t flags, uint64_t request_va,
                            uint64_t remain_va)
{
    uint64_t ns;
    int64_t error = timespec_from_user(request_va, &ns);

    if (error != 0 || clock > CLOCK_LAST) {
        return error != 0 ? error : -EINVAL;
    }
    if ((flags & TIMER_ABSTIME) == 0) {
        return sys_nanosleep(request_va, remain_va);
    }
    if (clock_is_real(clock)) {
        ns = ns > REALTIME_OFFSET_NS ? ns - REALTIME_OFFSET_NS : 0;
    }
    error = sleep_until(ns, 0);
    return error == -ERESTART_BLOCK ? -ERESTARTNOHAND : error;
}
