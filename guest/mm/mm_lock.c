/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmap_lock. Everything is in one word, so what a waiter reads after it has
 * queued itself is ordered against whoever changes the word and then wakes:
 * either the waiter sees the change, or the other sees MM_LOCK_* and wakes it.
 */
#include "mm/mm_lock.h"

#include "kernel/panic.h"
#include "kernel/sched.h"

#define UPPER (MM_LOCK_WRITER | MM_LOCK_WAITING)

void mm_lock_init(struct mm_lock *lock)
{
    atomic_init(&lock->word, 0);
    mutex_init(&lock->writers);
    wait_queue_init(&lock->wq);
}

static void read_leave(struct mm_lock *lock)
{
    uint32_t old = atomic_fetch_sub(&lock->word, 1);

    ASSERT((old & MM_LOCK_READERS) != 0);
    if ((old & MM_LOCK_WAITING) && (old & MM_LOCK_READERS) == 1) {
        wake_up_all(&lock->wq);
    }
}

static bool read_try(struct mm_lock *lock)
{
    uint32_t old = atomic_load(&lock->word);

    /* Readers that come in vain must not keep the writer from its turn. */
    if (old & UPPER) {
        return false;
    }
    old = atomic_fetch_add(&lock->word, 1);
    if (!(old & UPPER)) {
        return true;
    }
    read_leave(lock); /* the writer may have waited for this one */
    return false;
}

void mm_read_lock(struct mm_lock *lock)
{
    lock_order_take(LOCK_mmap, LOCK_ORDER_WAIT);
    if (!read_try(lock)) {
        wait_event(&lock->wq, read_try(lock));
    }
}

void mm_read_unlock(struct mm_lock *lock)
{
    lock_order_drop(LOCK_mmap);
    read_leave(lock);
}

/* Waits for the readers to leave; a reader on its way in and out counts. */
static bool write_try(struct mm_lock *lock)
{
    uint32_t expected = MM_LOCK_WAITING;

    return atomic_compare_exchange_strong(&lock->word, &expected,
                                          MM_LOCK_WRITER);
}

void mm_write_lock(struct mm_lock *lock)
{
    lock_order_take(LOCK_mmap, LOCK_ORDER_WAIT);
    mutex_lock(&lock->writers);
    atomic_fetch_or(&lock->word, MM_LOCK_WAITING);
    if (!write_try(lock)) {
        wait_event(&lock->wq, write_try(lock));
    }
}

void mm_write_unlock(struct mm_lock *lock)
{
    uint32_t old = atomic_fetch_and(&lock->word, ~MM_LOCK_WRITER);

    lock_order_drop(LOCK_mmap);
    ASSERT(old & MM_LOCK_WRITER);
    wake_up_all(&lock->wq);
    mutex_unlock(&lock->writers);
}

void mm_write_downgrade(struct mm_lock *lock)
{
    /* One writer less, one reader more. */
    uint32_t old = atomic_fetch_sub(&lock->word, MM_LOCK_WRITER - 1);

    ASSERT(old & MM_LOCK_WRITER);
    wake_up_all(&lock->wq);
    mutex_unlock(&lock->writers);
}
