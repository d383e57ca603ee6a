/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scalar types, page geometry and the few macros every file wants. */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses say in their type which translation already happened. */
typedef uint64_t pa_t; /* guest physical */
typedef uint64_t va_t; /* virtual, kernel or user */

#define PAGE_SHIFT 12
#define PAGE_SIZE (1UL << PAGE_SHIFT)
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define BLOCK_SHIFT 21 /* what one level-2 descriptor maps */
#define BLOCK_SIZE (1UL << BLOCK_SHIFT)
#define GIB (1UL << 30)

/* Linear map: VA = LINEAR_BASE + PA. The kernel image runs inside it. */
#define LINEAR_BASE 0xffff000000000000UL
/* First address that is not a user address (48-bit TTBR0 half). */
#define USER_END (1UL << 48)

#define ALIGN_UP(x, a) (((x) + ((a)-1)) & ~((a)-1))
#define ALIGN_DOWN(x, a) ((x) & ~((a)-1))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1UL << (n))
#define container_of(ptr, type, member)                                        \
    ((type *)((char *)(ptr)-offsetof(type, member)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define CACHE_LINE 64
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE)))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
#define WEAK __attribute__((weak))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
