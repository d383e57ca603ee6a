/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmap_lock: many readers or one writer, sleeping. Readers take and leave it
 * with one atomic add each when there is no writer, so that faults and user
 * copies on many CPUs do not meet on a spinlock. A waiting writer stops new
 * readers: not recursive.
 */
#ifndef MM_MM_LOCK_H
#define MM_MM_LOCK_H

#include "kernel/lock.h"

#define MM_LOCK_WRITER (1U << 31)  /* held for writing */
#define MM_LOCK_WAITING (1U << 30) /* a writer waits: readers queue up */
#define MM_LOCK_READERS (MM_LOCK_WAITING - 1)

struct mm_lock {
    _Atomic uint32_t word;
    struct mutex writers; /* who may set the upper bits */
    struct wait_queue wq; /* readers, and the one writer that waits */
};

void mm_lock_init(struct mm_lock *lock);
void mm_read_lock(struct mm_lock *lock);
void mm_read_unlock(struct mm_lock *lock);
void mm_write_lock(struct mm_lock *lock);
void mm_write_unlock(struct mm_lock *lock);
/* From writing to reading, with no other writer in between. */
void mm_write_downgrade(struct mm_lock *lock);

#endif
