/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticket spinlocks. Taking a ticket is an atomic add; being served is seen with
 * a load-acquire-exclusive, whose monitor the owner's store clears: that event
 * ends WFE. A SEV after the store is not needed for that, but costs little and
 * serves hardware that does not implement the monitor event.
 */
#include "kernel/lock.h"

#include "arch/atomic.h"
#include "kernel/percpu.h"

void spin_init(struct spinlock *lock, enum lock_class class)
{
    lock->class = (uint16_t)class;
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    atomic_store_explicit(&lock->next, 0, memory_order_relaxed);
    atomic_store_explicit(&lock->holder, SPINLOCK_NO_HOLDER,
                          memory_order_relaxed);
}

static void lock_and_wait(struct spinlock *lock)
{
    /* Acquire: pairs with the release in spin_unlock() when it is our turn. */
    uint16_t ticket =
        atomic_fetch_add_explicit(&lock->next, 1, memory_order_acquire);

    if (atomic_load_explicit(&lock->owner, memory_order_acquire) != ticket) {
        sevl();
        do {
            wfe();
        } while (ldaxr_u16(&lock->owner) != ticket);
    }
    atomic_store_explicit(&lock->holder, (uint16_t)cpu_id(),
                          memory_order_relaxed);
}

void spin_lock(struct spinlock *lock)
{
    lock_order_take(lock->class, LOCK_ORDER_WAIT);
    lock_and_wait(lock);
}

void spin_lock_nested(struct spinlock *lock)
{
    lock_order_take(lock->class, LOCK_ORDER_WAIT | LOCK_ORDER_NESTED);
    lock_and_wait(lock);
}

bool spin_trylock(struct spinlock *lock)
{
    uint16_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);
    uint16_t ticket = owner;

    /* Free when the next ticket is the one being served. */
    if (!atomic_compare_exchange_strong_explicit(
            &lock->next, &ticket, (uint16_t)(owner + 1), memory_order_acquire,
            memory_order_relaxed)) {
        return false;
    }
    /*
     * owner may have moved between the load and the exchange only if the lock
     * was taken and released 65536 times meanwhile; then we hold a ticket that
     * is not served yet, and wait for it like anybody else.
     */
    while (atomic_load_explicit(&lock->owner, memory_order_acquire) != owner) {
        cpu_relax();
    }
    atomic_store_explicit(&lock->holder, (uint16_t)cpu_id(),
                          memory_order_relaxed);
    lock_order_take(lock->class, 0);
    return true;
}

void spin_unlock(struct spinlock *lock)
{
    uint16_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);

    lock_order_drop(lock->class);
    atomic_store_explicit(&lock->holder, SPINLOCK_NO_HOLDER,
                          memory_order_relaxed);
    /* Only the holder writes owner, so a plain add is enough. */
    atomic_store_explicit(&lock->owner, (uint16_t)(owner + 1),
                          memory_order_release);
    /* SEV only if somebody waits: a stale answer is made up for by the monitor.
     */
    if (atomic_load_explicit(&lock->next, memory_order_relaxed) !=
        (uint16_t)(owner + 1)) {
        sev();
    }
}

bool spin_held(const struct spinlock *lock)
{
    return atomic_load_explicit(&lock->holder, memory_order_relaxed) ==
           cpu_id();
}
