/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What <stdatomic.h> does not give: loads that arm the exclusive monitor for
 * WFE. Everything else in the kernel uses C11 atomics with explicit orders.
 */
#ifndef ARCH_ATOMIC_H
#define ARCH_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

#include "arch/barrier.h"

/*
 * Load-acquire-exclusive: a later store by another CPU to the location clears
 * this CPU's monitor, which is an event that ends WFE.
 */
static inline uint16_t ldaxr_u16(const _Atomic uint16_t *p)
{
    uint32_t value;

    __asm__ volatile("ldaxrh %w0, [%1]" : "=r"(value) : "r"(p) : "memory");
    return (uint16_t)value;
}

static inline uint32_t ldaxr_u32(const _Atomic uint32_t *p)
{
    uint32_t value;

    __asm__ volatile("ldaxr %w0, [%1]" : "=r"(value) : "r"(p) : "memory");
    return value;
}

#endif
