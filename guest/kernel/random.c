/* SPDX-License-Identifier: GPL-2.0-or-later */
/* splitmix64 over a shared atomic state. Not for secrets. */
#include "kernel/random.h"

#include <stdatomic.h>

#include "arch/sysreg.h"

static _Atomic uint64_t random_state;

uint64_t random_u64(void)
{
    uint64_t z = atomic_fetch_add_explicit(&random_state, 0x9e3779b97f4a7c15UL,
                                           memory_order_relaxed);

    z += read_cntvct_el0();
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
    return z ^ (z >> 31);
}
