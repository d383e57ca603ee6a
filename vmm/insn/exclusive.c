// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exclusive monitors and atomics, performed with host atomics.
 *
 * Any vCPU thread may be in here. The only shared data are the guest's bytes
 * and a table of sequence words, each standing for the 16-byte granules that
 * hash to it:
 *
 *   even  nobody is writing; the number of trapped writes so far, times two
 *   odd   a trapped writer is between its first and last step
 *
 * A trapped writer makes the word odd, performs one host atomic, and stores
 * the next even number. A load-exclusive notes the even number it saw before
 * and after its load. The store-exclusive makes the word odd only from that
 * number, so it fails if any trapped write has come between, ABA included;
 * then it compares and swaps the value, so it fails if a native plain store
 * has changed it. Holding the word odd around both makes the two checks one.
 * Two counters before and after the write, without the odd state, would not
 * do: two writers may both have counted before the load and write after it.
 *
 * Collisions in the table make a store-exclusive fail needlessly, which the
 * architecture permits, and one of the colliding parties always succeeds.
 *
 * Orders: every access to guest bytes is seq_cst, whatever the guest asked
 * for. On x86-64 only stores pay for that, and a store-release needs it: as
 * an exchange it drains the store buffer, so that a younger load-acquire
 * cannot pass it (load-acquire pairs with store-release as RCsc).
 */
#include "insn/exclusive.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "insn/exclusive_host_priv.h"

#if defined(__x86_64__)
#define exclusive_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define exclusive_pause() __asm__ volatile("isb" ::: "memory")
#else
#error "hosts are x86-64 and AArch64"
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "pairs are put together low half first");

#define EXCLUSIVE_SLOTS_LOG2 12
#define EXCLUSIVE_SLOTS (1u << EXCLUSIVE_SLOTS_LOG2)
#define EXCLUSIVE_GRANULE_LOG2 4 /* = EXCLUSIVE_ERG words of 4 bytes */
#define EXCLUSIVE_SPINS 64       /* before the holder may need our CPU */

_Static_assert(4 << EXCLUSIVE_ERG == 1 << EXCLUSIVE_GRANULE_LOG2,
               "the granule that CTR_EL0 reports is the one used");

/* One cache line each: neighbours must not slow each other down. */
struct exclusive_slot {
    _Alignas(64) uint64_t sequence; /* [atomic] see above */
};

struct exclusives {
    struct exclusive_slot slot[EXCLUSIVE_SLOTS];
};

struct exclusives *exclusives_new(void)
{
    struct exclusives *ex = aligned_alloc(64, sizeof(*ex));

    if (ex) {
        memset(ex, 0, sizeof(*ex));
    }
    return ex;
}

void exclusives_free(struct exclusives *ex)
{
    free(ex);
}

/* --- sequence words --- */

static struct exclusive_slot *exclusive_slot_of(struct exclusives *ex,
                                                uint64_t gpa)
{
    uint64_t hash =
        (gpa >> EXCLUSIVE_GRANULE_LOG2) * UINT64_C(0x9e3779b97f4a7c15);

    return &ex->slot[hash >> (64 - EXCLUSIVE_SLOTS_LOG2)];
}

static void exclusive_relax(unsigned spins)
{
    if (spins % EXCLUSIVE_SPINS == EXCLUSIVE_SPINS - 1) {
        (void)sched_yield(); /* cannot fail */
    } else {
        exclusive_pause();
    }
}

/* Acquire: pairs with the release in exclusive_unlock(). */
static uint64_t exclusive_even(struct exclusive_slot *slot)
{
    for (unsigned spins = 0;; spins++) {
        uint64_t sequence = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);

        if (!(sequence & 1)) {
            return sequence;
        }
        exclusive_relax(spins);
    }
}

/*
 * Acquire on success, which keeps the data access after it; pairs with the
 * release in exclusive_unlock(). A failure learns nothing: relaxed.
 */
static bool exclusive_try_lock(struct exclusive_slot *slot, uint64_t sequence)
{
    return __atomic_compare_exchange_n(&slot->sequence, &sequence, sequence + 1,
                                       false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static uint64_t exclusive_lock(struct exclusive_slot *slot)
{
    for (;;) {
        uint64_t sequence = exclusive_even(slot);

        if (exclusive_try_lock(slot, sequence)) {
            return sequence;
        }
    }
}

/*
 * Release: pairs with the acquires above. When nothing was written the old
 * number comes back, so that a failed compare disturbs no monitor.
 */
static void exclusive_unlock(struct exclusive_slot *slot, uint64_t sequence,
                             bool wrote)
{
    __atomic_store_n(&slot->sequence, sequence + (wrote ? 2 : 0),
                     __ATOMIC_RELEASE);
}

/* --- pairs of registers as one memory value --- */

static uint64_t insn_mask(const struct insn *insn)
{
    return insn->size_log2 == 3 ? ~UINT64_C(0)
                                : (UINT64_C(1) << (8u << insn->size_log2)) - 1;
}

/* Two 32-bit registers travel as one 64-bit value: value[1] stays 0. */
static void atomic_join(const struct insn *insn, uint64_t first,
                        uint64_t second, uint64_t out_value[2])
{
    out_value[0] = first & insn_mask(insn);
    out_value[1] = 0;
    if (insn->pair && insn->size_log2 == 2) {
        out_value[0] |= second << 32;
    } else if (insn->pair) {
        out_value[1] = second;
    }
}

static void atomic_output(struct atomic_io *io, unsigned reg, uint64_t value)
{
    io->out[io->outputs].reg = (uint8_t)reg;
    io->out[io->outputs].value = value;
    io->outputs++;
}

static void atomic_split(const struct insn *insn, const uint64_t value[2],
                         unsigned first, unsigned second, struct atomic_io *io)
{
    if (insn->pair && insn->size_log2 == 2) {
        atomic_output(io, first, (uint32_t)value[0]);
        atomic_output(io, second, value[0] >> 32);
        return;
    }
    atomic_output(io, first, value[0]);
    if (insn->pair) {
        atomic_output(io, second, value[1]);
    }
}

/* Bytes of the whole access as log2: 4 is the 128-bit pair. */
static unsigned atomic_log2(const struct insn *insn)
{
    return insn->size_log2 + (insn->pair ? 1u : 0u);
}

/*
 * The 128-bit load is two loads: LDXP promises no more unless the STXP that
 * follows succeeds, and that one compares all 128 bits.
 */
static void atomic_load(const void *host, unsigned log2, uint64_t out_value[2])
{
    if (log2 == 4) {
        out_value[0] = host_load(host, 3);
        out_value[1] = host_load((const uint64_t *)host + 1, 3);
    } else {
        out_value[0] = host_load(host, log2);
        out_value[1] = 0;
    }
}

static bool atomic_cas(void *host, unsigned log2, uint64_t expected[2],
                       const uint64_t desired[2])
{
    return log2 == 4 ? host_cas128(host, expected, desired)
                     : host_cas(host, log2, &expected[0], desired[0]);
}

/* --- the instructions --- */

static void atomic_load_exclusive(struct exclusives *ex,
                                  struct exclusive_state *state,
                                  const struct insn *insn, void *host,
                                  uint64_t gpa, struct atomic_io *io)
{
    struct exclusive_slot *slot = exclusive_slot_of(ex, gpa);
    uint64_t sequence, again;

    /*
     * Equal numbers before and after: value and number belong together. The
     * second read only avoids store-exclusives that are bound to fail; it is
     * ordered after the load of the value because that one is seq_cst.
     */
    do {
        sequence = exclusive_even(slot);
        atomic_load(host, atomic_log2(insn), state->value);
        again = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);
    } while (sequence != again);
    state->armed = true;
    state->bytes = (uint8_t)insn_bytes(insn);
    state->gpa = gpa;
    state->sequence = sequence;
    state->host = host;
    atomic_split(insn, state->value, insn->rt, insn->rt2, io);
}

static bool atomic_try_store(struct exclusives *ex,
                             struct exclusive_state *state,
                             const struct insn *insn, void *host, uint64_t gpa,
                             const struct atomic_io *io)
{
    struct exclusive_slot *slot = exclusive_slot_of(ex, gpa);
    uint64_t expected[2] = {state->value[0], state->value[1]}, desired[2];
    bool stored;

    if (!state->armed || state->gpa != gpa ||
        state->bytes != insn_bytes(insn) ||
        !exclusive_try_lock(slot, state->sequence)) {
        return false;
    }
    atomic_join(insn, io->rt, io->rt2, desired);
    stored = atomic_cas(host, atomic_log2(insn), expected, desired);
    exclusive_unlock(slot, state->sequence, stored);
    return stored;
}

static void atomic_store_exclusive(struct exclusives *ex,
                                   struct exclusive_state *state,
                                   const struct insn *insn, void *host,
                                   uint64_t gpa, struct atomic_io *io)
{
    io->failed = !atomic_try_store(ex, state, insn, host, gpa, io);
    state->armed = false;
    atomic_output(io, insn->rs, io->failed);
}

static int64_t atomic_signed(uint64_t value, unsigned log2)
{
    unsigned shift = 64 - (8u << log2);

    return (int64_t)(value << shift) >> shift;
}

static uint64_t atomic_compute(const struct insn *insn, uint64_t old,
                               uint64_t operand)
{
    unsigned log2 = insn->size_log2;
    int64_t a = atomic_signed(old, log2), b = atomic_signed(operand, log2);

    switch (insn->op) {
    case LSE_ADD:
        return old + operand;
    case LSE_CLR:
        return old & ~operand;
    case LSE_EOR:
        return old ^ operand;
    case LSE_SET:
        return old | operand;
    case LSE_SMAX:
        return (uint64_t)(a > b ? a : b);
    case LSE_SMIN:
        return (uint64_t)(a < b ? a : b);
    case LSE_UMAX:
        return old > operand ? old : operand;
    case LSE_UMIN:
        return old < operand ? old : operand;
    case LSE_SWP:
        return operand;
    }
    return operand;
}

static uint64_t atomic_fetch_op(const struct insn *insn, void *host,
                                uint64_t operand)
{
    uint64_t old;

    switch (insn->op) {
    case LSE_ADD:
        return host_add(host, insn->size_log2, operand);
    case LSE_SWP:
        return host_exchange(host, insn->size_log2, operand);
    case LSE_CLR:
    case LSE_EOR:
    case LSE_SET:
    case LSE_SMAX:
    case LSE_SMIN:
    case LSE_UMAX:
    case LSE_UMIN:
        break;
    }
    /* The word is ours, but a native plain store may still come between. */
    old = host_load(host, insn->size_log2);
    while (!host_cas(host, insn->size_log2, &old,
                     atomic_compute(insn, old, operand))) {
    }
    return old;
}

static void atomic_lse(struct exclusives *ex, const struct insn *insn,
                       void *host, uint64_t gpa, struct atomic_io *io)
{
    struct exclusive_slot *slot = exclusive_slot_of(ex, gpa);
    uint64_t sequence = exclusive_lock(slot);
    uint64_t old = atomic_fetch_op(insn, host, io->rs & insn_mask(insn));

    exclusive_unlock(slot, sequence, true);
    atomic_output(io, insn->rt, old);
}

static void atomic_compare_and_swap(struct exclusives *ex,
                                    const struct insn *insn, void *host,
                                    uint64_t gpa, struct atomic_io *io)
{
    struct exclusive_slot *slot = exclusive_slot_of(ex, gpa);
    uint64_t expected[2], desired[2], sequence;

    atomic_join(insn, io->rs, io->rs2, expected);
    atomic_join(insn, io->rt, io->rt2, desired);
    sequence = exclusive_lock(slot);
    io->failed = !atomic_cas(host, atomic_log2(insn), expected, desired);
    exclusive_unlock(slot, sequence, !io->failed);
    atomic_split(insn, expected, insn->rs, insn->rs + 1u, io);
}

static void atomic_store_release(struct exclusives *ex, const struct insn *insn,
                                 void *host, uint64_t gpa,
                                 const struct atomic_io *io)
{
    struct exclusive_slot *slot = exclusive_slot_of(ex, gpa);
    uint64_t sequence = exclusive_lock(slot);

    (void)host_exchange(host, insn->size_log2, io->rt);
    exclusive_unlock(slot, sequence, true);
}

static void atomic_load_acquire(const struct insn *insn, const void *host,
                                struct atomic_io *io)
{
    uint64_t value = host_load(host, insn->size_log2);

    if (insn->sign_bits) {
        value = (uint64_t)atomic_signed(value, insn->size_log2);
        if (insn->sign_bits == 32) {
            value = (uint32_t)value;
        }
    }
    atomic_output(io, insn->rt, value);
}

enum atomic_result atomic_perform(struct exclusives *ex,
                                  struct exclusive_state *state,
                                  const struct insn *insn, void *host,
                                  uint64_t gpa, struct atomic_io *io)
{
    io->outputs = 0;
    io->failed = false;
    if (insn->kind == INSN_CLREX) {
        exclusive_state_clear(state);
        return ATOMIC_DONE;
    }
    if (((uintptr_t)host | gpa) & (insn_bytes(insn) - 1)) {
        return ATOMIC_UNALIGNED;
    }
    if (insn->kind == INSN_LOAD_EXCLUSIVE) {
        atomic_load_exclusive(ex, state, insn, host, gpa, io);
    } else if (insn->kind == INSN_STORE_EXCLUSIVE) {
        atomic_store_exclusive(ex, state, insn, host, gpa, io);
    } else if (insn->kind == INSN_LSE) {
        atomic_lse(ex, insn, host, gpa, io);
    } else if (insn->kind == INSN_CAS) {
        atomic_compare_and_swap(ex, insn, host, gpa, io);
    } else if (insn->kind == INSN_LOAD_ACQUIRE) {
        atomic_load_acquire(insn, host, io);
    } else if (insn->kind == INSN_STORE_RELEASE) {
        atomic_store_release(ex, insn, host, gpa, io);
    } else {
        return ATOMIC_NOT_AN_ATOMIC;
    }
    return ATOMIC_DONE;
}

static uint64_t atomic_read(uint64_t (*read_x)(void *opaque, unsigned reg),
                            void *opaque, unsigned reg)
{
    return reg == 31 ? 0 : read_x(opaque, reg);
}

void atomic_gather(const struct insn *insn,
                   uint64_t (*read_x)(void *opaque, unsigned reg), void *opaque,
                   struct atomic_io *out_io)
{
    bool reads_rs = insn->kind == INSN_LSE || insn->kind == INSN_CAS;
    bool reads_rt = insn->kind == INSN_STORE_EXCLUSIVE ||
                    insn->kind == INSN_CAS || insn->kind == INSN_STORE_RELEASE;

    memset(out_io, 0, sizeof(*out_io));
    if (reads_rs) {
        out_io->rs = atomic_read(read_x, opaque, insn->rs);
        if (insn->pair) {
            out_io->rs2 = atomic_read(read_x, opaque, insn->rs + 1u);
        }
    }
    if (reads_rt) {
        out_io->rt = atomic_read(read_x, opaque, insn->rt);
        if (insn->pair) {
            out_io->rt2 = atomic_read(read_x, opaque, insn->rt2);
        }
    }
}

bool exclusive_state_holds(struct exclusives *ex,
                           const struct exclusive_state *state)
{
    struct exclusive_slot *slot;
    uint64_t value[2];
    unsigned log2 = 0;

    if (!state->armed) {
        return false;
    }
    while (1u << log2 < state->bytes) {
        log2++;
    }
    slot = exclusive_slot_of(ex, state->gpa);
    /* Acquire: a later look at the value is not older than the number. */
    if (__atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) != state->sequence) {
        return false;
    }
    atomic_load(state->host, log2, value);
    return value[0] == state->value[0] && value[1] == state->value[1];
}

void exclusives_note_write(struct exclusives *ex, uint64_t gpa, uint64_t len)
{
    uint64_t granule = gpa >> EXCLUSIVE_GRANULE_LOG2;
    uint64_t count = ((gpa & 15) + len + 15) >> EXCLUSIVE_GRANULE_LOG2;

    if (!len) {
        return;
    }
    if (count >= EXCLUSIVE_SLOTS) { /* as cheap to count for every slot */
        for (unsigned i = 0; i < EXCLUSIVE_SLOTS; i++) {
            exclusive_unlock(&ex->slot[i], exclusive_lock(&ex->slot[i]), true);
        }
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct exclusive_slot *slot =
            exclusive_slot_of(ex, (granule + i) << EXCLUSIVE_GRANULE_LOG2);

        exclusive_unlock(slot, exclusive_lock(slot), true);
    }
}
