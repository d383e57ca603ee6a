/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticket spinlocks (WFE while waiting, holder recorded) and sleeping locks.
 *
 * The kernel is not preemptible between preempt_point()s, so a plain
 * spin_lock() needs no preemption count. Use the _irqsave forms for a lock that
 * an interrupt handler takes too. Do not call smp_call_mask(..., wait=true)
 * while holding a lock that others take with interrupts masked: they could not
 * answer.
 */
#ifndef KERNEL_LOCK_H
#define KERNEL_LOCK_H

#include <stdatomic.h>

#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/lib.h"
#include "kernel/lock_order.h"
#include "kernel/types.h"

#define SPINLOCK_NO_HOLDER 0xffffU

struct spinlock {
    _Atomic uint16_t owner;  /* ticket being served */
    _Atomic uint16_t next;   /* next ticket to hand out */
    _Atomic uint16_t holder; /* CPU, for messages; not part of the protocol */
    uint16_t class;          /* [init] enum lock_class */
};

#define SPINLOCK_INIT(class)                                                   \
    {                                                                          \
        0, 0, SPINLOCK_NO_HOLDER, (class)                                      \
    }

void spin_init(struct spinlock *lock, enum lock_class class);
void spin_lock(struct spinlock *lock);
/* While another lock of its class is held; the caller knows why it may. */
void spin_lock_nested(struct spinlock *lock);
bool spin_trylock(struct spinlock *lock);
void spin_unlock(struct spinlock *lock);
/* Held by this CPU? For assertions. */
bool spin_held(const struct spinlock *lock);

static inline uint64_t spin_lock_irqsave(struct spinlock *lock)
{
    uint64_t flags = local_irq_save();

    spin_lock(lock);
    return flags;
}

static inline void spin_unlock_irqrestore(struct spinlock *lock, uint64_t flags)
{
    spin_unlock(lock);
    local_irq_restore(flags);
}

/* --- sleeping locks: task context, interrupts on --- */

struct wait_queue {
    struct spinlock lock;
    struct list waiters; /* struct wait_entry, kernel/sched.h */
};

#define WAIT_QUEUE_INIT(name)                                                  \
    {                                                                          \
        SPINLOCK_INIT(LOCK_wait), LIST_INIT((name).waiters)                               \
    }

struct task;

/* Not recursive. Hand-over is FIFO. */
struct mutex {
    struct wait_queue wq;
    struct task *owner; /* [lock: wq.lock] */
    uint16_t class;     /* [init] enum lock_class, a sleeping one */
};

void mutex_init(struct mutex *m); /* of class LOCK_mutex */
void mutex_init_class(struct mutex *m, enum lock_class class);
void mutex_lock(struct mutex *m);
bool mutex_trylock(struct mutex *m);
void mutex_unlock(struct mutex *m);

/* Many readers or one writer; a waiting writer stops new readers. */
struct rwsem {
    struct wait_queue wq;
    int32_t active;           /* readers, or -1; [lock: wq.lock] */
    uint32_t waiting_writers; /* [lock: wq.lock] */
};

void rwsem_init(struct rwsem *s);
void rwsem_read_lock(struct rwsem *s);
bool rwsem_read_trylock(struct rwsem *s);
void rwsem_read_unlock(struct rwsem *s);
void rwsem_write_lock(struct rwsem *s);
bool rwsem_write_trylock(struct rwsem *s);
void rwsem_write_unlock(struct rwsem *s);

#endif
