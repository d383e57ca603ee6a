/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutex and reader-writer semaphore. Task context, no spinlock held. */
#include "kernel/lock.h"
#include "kernel/panic.h"
#include "kernel/sched.h"

void mutex_init(struct mutex *m)
{
    mutex_init_class(m, LOCK_mutex);
}

void mutex_init_class(struct mutex *m, enum lock_class class)
{
    m->class = (uint16_t) class;
    wait_queue_init(&m->wq);
    m->owner = NULL;
}

bool mutex_trylock(struct mutex *m)
{
    uint64_t flags = spin_lock_irqsave(&m->wq.lock);
    bool free = m->owner == NULL;

    if (free) {
        m->owner = current();
        lock_order_take(m->class, 0);
    }
    spin_unlock_irqrestore(&m->wq.lock, flags);
    return free;
}

void mutex_lock(struct mutex *m)
{
    uint64_t flags;

    lock_order_take(m->class, LOCK_ORDER_WAIT);
    flags = spin_lock_irqsave(&m->wq.lock);
    ASSERT_MSG(m->owner != current(), "%s locks a mutex twice",
               current()->name);
    if (m->owner == NULL) {
        m->owner = current();
    }
    /* mutex_unlock() makes the first waiter the owner before it wakes it. */
    while (m->owner != current()) {
        struct wait_entry entry;

        wait_prepare_locked(&m->wq, &entry);
        spin_unlock_irqrestore(&m->wq.lock, flags);
        schedule();
        flags = spin_lock_irqsave(&m->wq.lock);
        wait_finish_locked(&m->wq, &entry);
    }
    spin_unlock_irqrestore(&m->wq.lock, flags);
}

void mutex_unlock(struct mutex *m)
{
    uint64_t flags = spin_lock_irqsave(&m->wq.lock);

    lock_order_drop(m->class);
    ASSERT_MSG(m->owner == current(), "%s unlocks a mutex it does not own",
               current()->name);
    m->owner = NULL;
    if (!list_empty(&m->wq.waiters)) {
        struct wait_entry *entry =
            list_first(&m->wq.waiters, struct wait_entry, node);

        list_remove(&entry->node);
        m->owner = entry->task;
        (void)task_wake(entry->task);
    }
    spin_unlock_irqrestore(&m->wq.lock, flags);
}

void rwsem_init(struct rwsem *s)
{
    wait_queue_init(&s->wq);
    s->active = 0;
    s->waiting_writers = 0;
}

/* wq.lock held. A waiting writer keeps new readers out. */
static bool rwsem_may_read(const struct rwsem *s)
{
    return s->active >= 0 && s->waiting_writers == 0;
}

static void rwsem_wait(struct rwsem *s, uint64_t *flags)
{
    struct wait_entry entry;

    wait_prepare_locked(&s->wq, &entry);
    spin_unlock_irqrestore(&s->wq.lock, *flags);
    schedule();
    *flags = spin_lock_irqsave(&s->wq.lock);
    wait_finish_locked(&s->wq, &entry);
}

/* wq.lock held: everybody looks again. */
static void rwsem_wake(struct rwsem *s)
{
    while (!list_empty(&s->wq.waiters)) {
        struct wait_entry *entry =
            list_first(&s->wq.waiters, struct wait_entry, node);

        list_remove(&entry->node);
        (void)task_wake(entry->task);
    }
}

bool rwsem_read_trylock(struct rwsem *s)
{
    uint64_t flags = spin_lock_irqsave(&s->wq.lock);
    bool may = rwsem_may_read(s);

    if (may) {
        s->active++;
        lock_order_take(LOCK_rwsem, 0);
    }
    spin_unlock_irqrestore(&s->wq.lock, flags);
    return may;
}

void rwsem_read_lock(struct rwsem *s)
{
    uint64_t flags;

    lock_order_take(LOCK_rwsem, LOCK_ORDER_WAIT);
    flags = spin_lock_irqsave(&s->wq.lock);
    while (!rwsem_may_read(s)) {
        rwsem_wait(s, &flags);
    }
    s->active++;
    spin_unlock_irqrestore(&s->wq.lock, flags);
}

void rwsem_read_unlock(struct rwsem *s)
{
    uint64_t flags = spin_lock_irqsave(&s->wq.lock);

    lock_order_drop(LOCK_rwsem);
    s->active--;
    if (s->active == 0) {
        rwsem_wake(s);
    }
    spin_unlock_irqrestore(&s->wq.lock, flags);
}

bool rwsem_write_trylock(struct rwsem *s)
{
    uint64_t flags = spin_lock_irqsave(&s->wq.lock);
    bool may = s->active == 0;

    if (may) {
        s->active = -1;
        lock_order_take(LOCK_rwsem, 0);
    }
    spin_unlock_irqrestore(&s->wq.lock, flags);
    return may;
}

void rwsem_write_lock(struct rwsem *s)
{
    uint64_t flags;

    lock_order_take(LOCK_rwsem, LOCK_ORDER_WAIT);
    flags = spin_lock_irqsave(&s->wq.lock);
    while (s->active != 0) {
        s->waiting_writers++;
        rwsem_wait(s, &flags);
        s->waiting_writers--;
    }
    s->active = -1;
    spin_unlock_irqrestore(&s->wq.lock, flags);
}

void rwsem_write_unlock(struct rwsem *s)
{
    uint64_t flags = spin_lock_irqsave(&s->wq.lock);

    lock_order_drop(LOCK_rwsem);
    s->active = 0;
    rwsem_wake(s);
    spin_unlock_irqrestore(&s->wq.lock, flags);
}
