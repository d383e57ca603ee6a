/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host atomics on guest bytes, by log2 of the size. For exclusive.c only.
 *
 * Always seq_cst, whatever the guest asked for; exclusive.c says why. The
 * caller has checked the alignment.
 */
#ifndef INSN_EXCLUSIVE_HOST_PRIV_H
#define INSN_EXCLUSIVE_HOST_PRIV_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 host_u128;

static inline uint64_t host_load(const void *host, unsigned log2)
{
    switch (log2) {
    case 0:
        return __atomic_load_n((const uint8_t *)host, __ATOMIC_SEQ_CST);
    case 1:
        return __atomic_load_n((const uint16_t *)host, __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_load_n((const uint32_t *)host, __ATOMIC_SEQ_CST);
    default:
        return __atomic_load_n((const uint64_t *)host, __ATOMIC_SEQ_CST);
    }
}

static inline uint64_t host_exchange(void *host, unsigned log2, uint64_t value)
{
    switch (log2) {
    case 0:
        return __atomic_exchange_n((uint8_t *)host, (uint8_t)value,
                                   __ATOMIC_SEQ_CST);
    case 1:
        return __atomic_exchange_n((uint16_t *)host, (uint16_t)value,
                                   __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_exchange_n((uint32_t *)host, (uint32_t)value,
                                   __ATOMIC_SEQ_CST);
    default:
        return __atomic_exchange_n((uint64_t *)host, value, __ATOMIC_SEQ_CST);
    }
}

static inline uint64_t host_add(void *host, unsigned log2, uint64_t value)
{
    switch (log2) {
    case 0:
        return __atomic_fetch_add((uint8_t *)host, (uint8_t)value,
                                  __ATOMIC_SEQ_CST);
    case 1:
        return __atomic_fetch_add((uint16_t *)host, (uint16_t)value,
                                  __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_fetch_add((uint32_t *)host, (uint32_t)value,
                                  __ATOMIC_SEQ_CST);
    default:
        return __atomic_fetch_add((uint64_t *)host, value, __ATOMIC_SEQ_CST);
    }
}

#define HOST_CAS(type)                                                         \
    do {                                                                       \
        type old = (type)*expected;                                            \
        bool done = __atomic_compare_exchange_n(                               \
            (type *)host, &old, (type)desired, false, __ATOMIC_SEQ_CST,        \
            __ATOMIC_SEQ_CST);                                                 \
        *expected = old;                                                       \
        return done;                                                           \
    } while (0)

/* *expected becomes what was there. */
static inline bool host_cas(void *host, unsigned log2, uint64_t *expected,
                            uint64_t desired)
{
    switch (log2) {
    case 0:
        HOST_CAS(uint8_t);
    case 1:
        HOST_CAS(uint16_t);
    case 2:
        HOST_CAS(uint32_t);
    default:
        HOST_CAS(uint64_t);
    }
}

/*
 * The __sync form is inline cmpxchg16b with -mcx16 (and LDXP/STXP or CASP on
 * AArch64); the __atomic form would call libatomic.
 */
static inline bool host_cas128(void *host, uint64_t expected[2],
                               const uint64_t desired[2])
{
    host_u128 old = (host_u128)expected[1] << 64 | expected[0];
    host_u128 new = (host_u128)desired[1] << 64 | desired[0];
    host_u128 seen = __sync_val_compare_and_swap((host_u128 *)host, old, new);

    expected[0] = (uint64_t)seen;
    expected[1] = (uint64_t)(seen >> 64);
    return seen == old;
}

#endif
