/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order in which locks are taken, watched with debug=locks: every time a
 * class is waited for while others are held, that is an edge; an edge that
 * closes a cycle is reported, and so is a class that interrupt handlers take
 * and threads hold with interrupts on. One run finds what a deadlock would need
 * luck for. A report is a line on the console and a finding of the machine.
 *
 * Off, each lock operation costs one load and one branch.
 */
#ifndef KERNEL_LOCK_ORDER_H
#define KERNEL_LOCK_ORDER_H

#include "kernel/types.h"

enum lock_class {
    LOCK_none, /* not watched */
#define LOCK(id, what) LOCK_##id,
#include "kernel/lock_classes.inc"
#undef LOCK
    LOCK_CLASSES
};

/* The finding's code in the annotation device's FINDING register. */
#define LOCK_ORDER_FINDING 0x10c

extern bool lock_order_on; /* [init] debug=locks */

/* What a task or a CPU holds, per class. */
struct lock_held {
    uint64_t classes; /* bit n: count[n] != 0 */
    uint16_t count[LOCK_CLASSES];
};

enum lock_order_how {
    LOCK_ORDER_WAIT = 1,   /* the caller may have to wait for it */
    LOCK_ORDER_NESTED = 2, /* another of its class may be held */
};

void lock_order_init(void); /* after annot_init() */

/* Slow halves of the inline functions below. */
void lock_order_take_slow(unsigned class, unsigned how, uint64_t from);
void lock_order_drop_slow(unsigned class);

/* A spinlock or, for the classes above shmem in the list, a sleeping lock. */
static inline void lock_order_take(unsigned class, unsigned how)
{
    if (unlikely(lock_order_on) && class != LOCK_none) {
        lock_order_take_slow(class, how,
                             (uint64_t)__builtin_return_address(0));
    }
}
static inline void lock_order_drop(unsigned class)
{
    if (unlikely(lock_order_on) && class != LOCK_none) {
        lock_order_drop_slow(class);
    }
}

/* "held taken" lines: the edges seen so far. For /proc/lock_order. */
size_t lock_order_text(char *buf, size_t size);
/* Reports so far. */
unsigned lock_order_reports(void);

#endif
