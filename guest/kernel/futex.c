/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Futexes. A waiter queues itself first and reads the word afterwards: a waker
 * changes the word and then looks at the queue, so either the waiter reads the
 * new value or the waker finds it queued. Reading may fault and sleep, hence
 * the waiter marks itself BLOCKED only after it, and only if it is still
 * queued.
 *
 * The waker calls task_wake() under the bucket lock, which the waiter takes
 * before it leaves: its task cannot end in between.
 */
#include "kernel/futex.h"

#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/lock.h"
#include "kernel/sched.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/uaccess.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP 5
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_CMD_MASK 0x7f
#define FUTEX_CLOCK_REALTIME 256

#define FUTEX_BUCKETS 256

struct futex_waiter {
    struct list node;
    uint64_t key[2];
    uint32_t bitset;
    bool queued; /* [lock: bucket of key] */
    struct task *task;
};

static struct futex_bucket {
    struct spinlock lock;
    struct list waiters;
} CACHE_ALIGNED buckets[FUTEX_BUCKETS];

void futex_init(void)
{
    for (unsigned i = 0; i < FUTEX_BUCKETS; i++) {
        spin_init(&buckets[i].lock, LOCK_futex);
        list_init(&buckets[i].waiters);
    }
}

static struct futex_bucket *futex_bucket(const uint64_t key[2])
{
    uint64_t h =
        (key[0] ^ key[1] * 0x9e3779b97f4a7c15UL) * 0xbf58476d1ce4e5b9UL;

    return &buckets[h >> 56];
}

static bool key_equal(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

/* Bucket locked. */
static void futex_wake_waiter(struct futex_waiter *waiter)
{
    list_remove(&waiter->node);
    waiter->queued = false;
    (void)task_wake(waiter->task);
}

int64_t futex_wake(va_t addr, uint64_t max, uint32_t bitset)
{
    uint64_t key[2];
    struct futex_bucket *bucket;
    struct list *at, *next;
    int64_t woken = 0;

    if (user_futex_key(addr, key) != 0) {
        return -EFAULT;
    }
    bucket = futex_bucket(key);
    spin_lock(&bucket->lock);
    list_for_each_safe(at, next, &bucket->waiters)
    {
        struct futex_waiter *waiter = list_entry(at, struct futex_waiter, node);

        if ((uint64_t)woken >= max) {
            break;
        }
        if (key_equal(waiter->key, key) && (waiter->bitset & bitset) != 0) {
            futex_wake_waiter(waiter);
            woken++;
        }
    }
    spin_unlock(&bucket->lock);
    return woken;
}

/*
 * A requeue may move the waiter to another bucket at any time: lock the bucket
 * of its key until the key stands still.
 */
static struct futex_bucket *futex_lock_waiter(struct futex_waiter *waiter)
{
    for (;;) {
        uint64_t key[2] = {__atomic_load_n(&waiter->key[0], __ATOMIC_RELAXED),
                           __atomic_load_n(&waiter->key[1], __ATOMIC_RELAXED)};
        struct futex_bucket *bucket = futex_bucket(key);

        spin_lock(&bucket->lock);
        if (bucket == futex_bucket(waiter->key)) {
            return bucket;
        }
        spin_unlock(&bucket->lock);
    }
}

/* Sleeps while queued, value checked. Returns true when it was woken. */
static bool futex_sleep(struct futex_waiter *waiter, uint64_t deadline)
{
    struct futex_bucket *bucket = futex_lock_waiter(waiter);
    bool woken;

    /* Blocked first: whoever kills the task does not take the bucket's lock. */
    task_mark_blocked(waiter->task);
    while (waiter->queued && !task_signalled(waiter->task) &&
           (deadline == WAIT_FOREVER || time_now_ns() < deadline)) {
        spin_unlock(&bucket->lock);
        wait_schedule(deadline);
        bucket = futex_lock_waiter(waiter);
        task_mark_blocked(waiter->task);
    }
    task_mark_runnable(waiter->task);
    woken = !waiter->queued;
    if (!woken) {
        list_remove(&waiter->node);
        waiter->queued = false;
    }
    spin_unlock(&bucket->lock);
    return woken;
}

static int64_t futex_wait(va_t addr, uint32_t expected, uint64_t deadline,
                          uint32_t bitset)
{
    struct futex_waiter waiter = {
        .task = current(), .bitset = bitset, .queued = true};
    struct futex_bucket *bucket;
    uint32_t value;
    int error;

    if (bitset == 0) {
        return -EINVAL;
    }
    if (user_futex_key(addr, waiter.key) != 0) {
        return -EFAULT;
    }
    bucket = futex_bucket(waiter.key);
    spin_lock(&bucket->lock);
    list_append(&bucket->waiters, &waiter.node);
    spin_unlock(&bucket->lock);
    error = get_user_u32(&value, addr);
    if (error != 0 || value != expected) {
        /* Deadline 0: only unqueue. If a wake-up was meant for us, take it. */
        return futex_sleep(&waiter, 0) ? 0 : error != 0 ? -EFAULT : -EAGAIN;
    }
    if (futex_sleep(&waiter, deadline)) {
        return 0;
    }
    /* A relative time-out would start anew: not restarted. */
    return !task_signalled(waiter.task) ? -ETIMEDOUT
           : deadline == WAIT_FOREVER   ? -ERESTARTSYS
                                        : -EINTR;
}

static int64_t futex_requeue(va_t from, va_t to, uint64_t wake, uint64_t move)
{
    uint64_t key_from[2], key_to[2];
    struct futex_bucket *a, *b;
    struct list *at, *next;
    uint64_t woken = 0, moved = 0;

    if (user_futex_key(from, key_from) != 0 ||
        user_futex_key(to, key_to) != 0) {
        return -EFAULT;
    }
    a = futex_bucket(key_from);
    b = futex_bucket(key_to);
    /* Two buckets are locked by address. */
    spin_lock(a < b ? &a->lock : &b->lock);
    if (a != b) {
        spin_lock(a < b ? &b->lock : &a->lock);
    }
    list_for_each_safe(at, next, &a->waiters)
    {
        struct futex_waiter *waiter = list_entry(at, struct futex_waiter, node);

        if (!key_equal(waiter->key, key_from)) {
            continue;
        }
        if (woken < wake) {
            futex_wake_waiter(waiter);
            woken++;
        } else if (moved < move) {
            list_remove(&waiter->node);
            __atomic_store_n(&waiter->key[0], key_to[0], __ATOMIC_RELAXED);
            __atomic_store_n(&waiter->key[1], key_to[1], __ATOMIC_RELAXED);
            list_append(&b->waiters, &waiter->node);
            moved++;
        }
    }
    if (a != b) {
        spin_unlock(&b->lock);
    }
    spin_unlock(&a->lock);
    return (int64_t)(woken + moved);
}

/* FUTEX_WAKE_OP: op 31..28, comparison 27..24, operand 23..12, cmparg 11..0 */
static int64_t futex_wake_op(va_t addr, va_t addr2, uint64_t wake,
                             uint64_t wake2, uint32_t encoded)
{
    static const enum user_rmw ops[] = {USER_RMW_SET, USER_RMW_ADD, USER_RMW_OR,
                                        USER_RMW_ANDN, USER_RMW_XOR};
    unsigned op = encoded >> 28 & 7, cmp = encoded >> 24 & 15;
    uint32_t arg = encoded >> 12 & 0xfff;
    int32_t cmparg = (int32_t)(encoded << 20) >> 20, signed_old;
    uint32_t old;
    int64_t woken, woken2;
    bool hit;

    if ((encoded & BIT(31)) != 0) {
        arg = 1U << (arg & 31);
    }
    if (op >= ARRAY_SIZE(ops) || cmp > 5) {
        return -ENOSYS;
    }
    if (rmw_user_u32(addr2, ops[op], arg, &old) != 0) {
        return -EFAULT;
    }
    woken = futex_wake(addr, wake, FUTEX_BITSET_ANY);
    signed_old = (int32_t)old;
    hit = cmp == 0   ? signed_old == cmparg
          : cmp == 1 ? signed_old != cmparg
          : cmp == 2 ? signed_old < cmparg
          : cmp == 3 ? signed_old <= cmparg
          : cmp == 4 ? signed_old > cmparg
                     : signed_old >= cmparg;
    if (!hit || woken < 0) {
        return woken;
    }
    woken2 = futex_wake(addr2, wake2, FUTEX_BITSET_ANY);
    return woken2 < 0 ? woken2 : woken + woken2;
}

/* WAIT: relative; WAIT_BITSET: absolute, on either clock. */
static int64_t futex_deadline(uint64_t timeout_va, unsigned cmd, uint64_t op,
                              uint64_t *out)
{
    int64_t error;
    uint64_t ns;

    *out = WAIT_FOREVER;
    if (timeout_va == 0) {
        return 0;
    }
    error = timespec_from_user(timeout_va, &ns);
    if (error != 0) {
        return error;
    }
    if (cmd == FUTEX_WAIT) {
        *out = time_now_ns() + ns;
    } else if ((op & FUTEX_CLOCK_REALTIME) != 0) {
        *out = ns > REALTIME_OFFSET_NS ? ns - REALTIME_OFFSET_NS : 0;
    } else {
        *out = ns;
    }
    return 0;
}

int64_t sys_futex(uint64_t addr, uint64_t op, uint64_t value, uint64_t timeout,
                  uint64_t addr2, uint64_t value3)
{
    unsigned cmd = op & FUTEX_CMD_MASK;
    uint64_t deadline;
    uint32_t now;
    int64_t error;

    if ((addr & 3) != 0) {
        return -EINVAL;
    }
    switch (cmd) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        error = futex_deadline(timeout, cmd, op, &deadline);
        if (error != 0) {
            return error;
        }
        return futex_wait(addr, (uint32_t)value, deadline,
                          cmd == FUTEX_WAIT ? FUTEX_BITSET_ANY
                                            : (uint32_t)value3);
    case FUTEX_WAKE:
        return futex_wake(addr, (uint32_t)value, FUTEX_BITSET_ANY);
    case FUTEX_WAKE_BITSET:
        return value3 == 0
                   ? -EINVAL
                   : futex_wake(addr, (uint32_t)value, (uint32_t)value3);
    case FUTEX_CMP_REQUEUE:
        if (get_user_u32(&now, addr) != 0) {
            return -EFAULT;
        }
        if (now != (uint32_t)value3) {
            return -EAGAIN;
        }
        return futex_requeue(addr, addr2, (uint32_t)value, (uint32_t)timeout);
    case FUTEX_REQUEUE:
        return futex_requeue(addr, addr2, (uint32_t)value, (uint32_t)timeout);
    case FUTEX_WAKE_OP:
        return futex_wake_op(addr, addr2, (uint32_t)value, (uint32_t)timeout,
                             (uint32_t)value3);
    default:
        return -ENOSYS;
    }
}
