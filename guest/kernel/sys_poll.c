/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ppoll and pselect6: queue on everything that is asked for, look, sleep, look
 * again. Both keep struct pollfd; pselect6 makes them of its sets.
 */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/signal.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define POLL_ALWAYS (POLLERR | POLLHUP | POLLNVAL)
#define SELECT_IN (POLLIN | POLLRDNORM | POLLHUP | POLLERR)
#define SELECT_OUT (POLLOUT | POLLWRNORM | POLLERR)

struct user_pollfd {
    int32_t fd;
    int16_t events, revents;
};

struct poll_item {
    struct user_pollfd user;
    struct file *file; /* with a reference */
    struct wait_queue *queue;
    struct wait_entry entry;
};

static void poll_prepare(struct poll_item *items, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (items[i].queue != NULL) {
            wait_prepare(items[i].queue, &items[i].entry);
        }
    }
}

static void poll_finish(struct poll_item *items, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (items[i].queue != NULL) {
            wait_finish(items[i].queue, &items[i].entry);
        }
    }
}

/* How many have something to tell. */
static int64_t poll_look(struct poll_item *items, uint64_t n)
{
    int64_t ready = 0;

    for (uint64_t i = 0; i < n; i++) {
        struct poll_item *item = &items[i];
        unsigned wanted = (uint16_t)item->user.events | POLL_ALWAYS;
        unsigned now = 0;

        if (item->user.fd >= 0) {
            now = item->file == NULL ? POLLNVAL
                  : item->file->ops->poll != NULL
                      ? item->file->ops->poll(item->file)
                      : POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
        }
        item->user.revents = (int16_t)(now & wanted);
        ready += item->user.revents != 0;
    }
    return ready;
}

static int64_t poll_wait(struct poll_item *items, uint64_t n, uint64_t deadline)
{
    for (uint64_t i = 0; i < n; i++) {
        struct file *file =
            items[i].user.fd < 0
                ? NULL
                : file_get(my_files(), (uint64_t)items[i].user.fd);

        items[i].file = file;
        items[i].queue = file != NULL && file->ops->poll_queue != NULL
                             ? file->ops->poll_queue(file)
                             : NULL;
    }
    for (;;) {
        int64_t ready;
        bool over;

        poll_prepare(items, n);
        task_mark_blocked(current()); /* also without any queue */
        ready = poll_look(items, n);
        over = ready != 0 || task_signalled(current()) ||
               (deadline != WAIT_FOREVER && time_now_ns() >= deadline);
        if (!over) {
            wait_schedule(deadline);
        }
        task_mark_runnable(current());
        poll_finish(items, n);
        if (over) {
            return ready != 0                  ? ready
                   : task_signalled(current()) ? -ERESTARTNOHAND
                                               : 0;
        }
    }
}

static void poll_drop(struct poll_item *items, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        file_put(items[i].file);
    }
    kfree(items);
}

/* 0 and WAIT_FOREVER without one. */
static int64_t poll_deadline(uint64_t timeout_va, uint64_t *out)
{
    uint64_t ns;
    int64_t error;

    *out = WAIT_FOREVER;
    if (timeout_va == 0) {
        return 0;
    }
    error = timespec_from_user(timeout_va, &ns);
    if (error == 0 && ns < INT64_MAX) {
        *out = time_now_ns() + ns;
    }
    return error;
}

/* What is left of the time goes back to the user, as on Linux. */
static void poll_put_rest(uint64_t timeout_va, uint64_t deadline)
{
    uint64_t now = time_now_ns();

    if (timeout_va != 0 && deadline != WAIT_FOREVER) {
        (void)timespec_to_user(timeout_va, deadline > now ? deadline - now : 0);
    }
}

int64_t sys_ppoll(uint64_t fds_va, uint64_t n, uint64_t timeout_va,
                  uint64_t mask_va, uint64_t mask_size)
{
    struct poll_item *items;
    uint64_t deadline;
    int64_t result = poll_deadline(timeout_va, &deadline);

    if (result != 0) {
        return result;
    }
    if (n > my_files()->limit) {
        return -EINVAL;
    }
    result = signal_mask_for_call(mask_va, mask_size);
    if (result != 0) {
        return result;
    }
    items = kmalloc((n + 1) * sizeof(*items));
    if (items == NULL) {
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < n && result == 0; i++) {
        result = copy_from_user(&items[i].user, fds_va + i * 8, 8);
    }
    if (result == 0) {
        result = poll_wait(items, n, deadline);
    }
    for (uint64_t i = 0; i < n && result >= 0; i++) {
        if (copy_to_user(fds_va + i * 8, &items[i].user, 8) != 0) {
            result = -EFAULT;
        }
    }
    poll_drop(items, n);
    poll_put_rest(timeout_va, deadline);
    return result;
}

/* --- select: bits of descriptors --- */

#define SET_WORDS (FILES_MAX / 64)

struct fd_sets {
    uint64_t in[3][SET_WORDS], out[3][SET_WORDS];
};

static int64_t sets_from_user(struct fd_sets *sets, const uint64_t va[3],
                              uint64_t n)
{
    uint64_t bytes = ALIGN_UP(n, 64UL) / 8;

    for (unsigned k = 0; k < 3; k++) {
        if (va[k] != 0 && copy_from_user(sets->in[k], va[k], bytes) != 0) {
            return -EFAULT;
        }
    }
    return 0;
}

static int64_t select_wait(struct fd_sets *sets, uint64_t n, uint64_t deadline)
{
    static const unsigned events[3] = {SELECT_IN, SELECT_OUT, POLLPRI};
    struct poll_item *items = kmalloc((n + 1) * sizeof(*items));
    uint64_t used = 0;
    int64_t result, bits = 0;

    if (items == NULL) {
        return -ENOMEM;
    }
    for (uint64_t fd = 0; fd < n; fd++) {
        unsigned wanted = 0;

        for (unsigned k = 0; k < 3; k++) {
            wanted |= sets->in[k][fd / 64] & BIT(fd % 64) ? events[k] : 0;
        }
        if (wanted != 0) {
            items[used].user =
                (struct user_pollfd){(int32_t)fd, (int16_t)wanted, 0};
            used++;
        }
    }
    result = poll_wait(items, used, deadline);
    for (uint64_t i = 0; i < used && result >= 0; i++) {
        uint64_t fd = (uint64_t)items[i].user.fd;

        if ((items[i].user.revents & POLLNVAL) != 0) {
            result = -EBADF;
        }
        for (unsigned k = 0; k < 3; k++) {
            if ((sets->in[k][fd / 64] & BIT(fd % 64)) != 0 &&
                ((unsigned)items[i].user.revents & events[k]) != 0) {
                sets->out[k][fd / 64] |= BIT(fd % 64);
                bits++;
            }
        }
    }
    poll_drop(items, used);
    return result < 0 ? result : bits;
}

int64_t sys_pselect6(uint64_t n, const uint64_t va[3], uint64_t timeout_va,
                     uint64_t mask_pair_va)
{
    struct fd_sets *sets;
    uint64_t deadline, mask[2] = {0, 0};
    int64_t result = poll_deadline(timeout_va, &deadline);

    if (result == 0 && mask_pair_va != 0) {
        result = copy_from_user(mask, mask_pair_va, sizeof(mask));
    }
    if (result == 0 && (int64_t)n < 0) {
        result = -EINVAL;
    }
    if (result == 0) {
        result = signal_mask_for_call(mask[0], mask[1]);
    }
    if (result != 0) {
        return result;
    }
    n = min_u64(n, FILES_MAX);
    sets = kmalloc(sizeof(*sets));
    if (sets == NULL) {
        return -ENOMEM;
    }
    result = sets_from_user(sets, va, n);
    if (result == 0) {
        result = select_wait(sets, n, deadline);
    }
    for (unsigned k = 0; k < 3 && result >= 0; k++) {
        if (va[k] != 0 &&
            copy_to_user(va[k], sets->out[k], ALIGN_UP(n, 64UL) / 8) != 0) {
            result = -EFAULT;
        }
    }
    kfree(sets);
    poll_put_rest(timeout_va, deadline);
    return result;
}
