/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wait queues. A waker calls task_wake() with the queue's lock held and the
 * sleeper takes that lock before it goes on, so that a task cannot end while a
 * waker still looks at it.
 */
#include "kernel/sched.h"

void wait_queue_init(struct wait_queue *wq)
{
    spin_init(&wq->lock, LOCK_wait);
    list_init(&wq->waiters);
}

void wait_prepare_locked(struct wait_queue *wq, struct wait_entry *entry)
{
    entry->task = current();
    list_append(&wq->waiters, &entry->node);
    task_mark_blocked(entry->task);
}

void wait_finish_locked(struct wait_queue *wq, struct wait_entry *entry)
{
    (void)wq;
    task_mark_runnable(entry->task);
    list_remove(&entry->node);
}

void wait_prepare(struct wait_queue *wq, struct wait_entry *entry)
{
    uint64_t flags = spin_lock_irqsave(&wq->lock);

    wait_prepare_locked(wq, entry);
    spin_unlock_irqrestore(&wq->lock, flags);
}

void wait_finish(struct wait_queue *wq, struct wait_entry *entry)
{
    uint64_t flags;

    task_mark_runnable(current());
    /*
     * Even if a waker took the entry off: it may still be about to call
     * task_wake() under the lock, and this task must not end before.
     */
    flags = spin_lock_irqsave(&wq->lock);
    list_remove(&entry->node);
    spin_unlock_irqrestore(&wq->lock, flags);
}

void wake_up_all(struct wait_queue *wq)
{
    uint64_t flags = spin_lock_irqsave(&wq->lock);

    while (!list_empty(&wq->waiters)) {
        struct wait_entry *entry =
            list_first(&wq->waiters, struct wait_entry, node);

        list_remove(&entry->node);
        (void)task_wake(entry->task);
    }
    spin_unlock_irqrestore(&wq->lock, flags);
}

bool wake_up_one(struct wait_queue *wq)
{
    uint64_t flags = spin_lock_irqsave(&wq->lock);
    bool any = !list_empty(&wq->waiters);

    if (any) {
        struct wait_entry *entry =
            list_first(&wq->waiters, struct wait_entry, node);

        list_remove(&entry->node);
        (void)task_wake(entry->task);
    }
    spin_unlock_irqrestore(&wq->lock, flags);
    return any;
}
