/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Futexes: sleeping on a word of user memory. */
#ifndef KERNEL_FUTEX_H
#define KERNEL_FUTEX_H

#include "kernel/types.h"

#define FUTEX_BITSET_ANY 0xffffffffU

void futex_init(void);
/* Woken waiters, or -EFAULT. */
int64_t futex_wake(va_t addr, uint64_t max, uint32_t bitset);
int64_t sys_futex(uint64_t addr, uint64_t op, uint64_t value, uint64_t timeout,
                  uint64_t addr2, uint64_t value3);

#endif
