/* SPDX-License-Identifier: MIT */
/*
 * Words in memory that processes share: a value to wait for, asleep. The
 * kernel's futex, on memory of mmap(MAP_SHARED).
 */
#ifndef USER_SHARED_H
#define USER_SHARED_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "common.h"

/* Zeroed memory that children share; ends the program when there is none. */
static inline void *shared_map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror("mmap of shared memory");
        exit(1);
    }
    memset(p, 0, size);
    return p;
}

static inline void shared_set(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void shared_add(_Atomic uint32_t *word, uint32_t n)
{
    atomic_fetch_add(word, n);
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Until the word is at least that. */
static inline void shared_wait(_Atomic uint32_t *word, uint32_t value)
{
    uint32_t now;

    while ((now = atomic_load(word)) < value) {
        (void)syscall(SYS_futex, word, FUTEX_WAIT, now, NULL, NULL, 0);
    }
}

#endif
