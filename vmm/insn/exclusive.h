/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exclusive monitors and the atomics of guest memory.
 *
 * One struct exclusives is shared by all vCPUs of a machine, one struct
 * exclusive_state belongs to each vCPU. Every trapped instruction that writes
 * takes the sequence word of its 16-byte granule, so a store-exclusive sees
 * any trapped write since its load-exclusive, even one that put the old value
 * back (ABA). A native plain store is seen by its value only: a plain store
 * that restores the old value goes unnoticed.
 */
#ifndef INSN_EXCLUSIVE_H
#define INSN_EXCLUSIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "insn/insn.h"

/* log2 of the reservation granule in words: what CTR_EL0.ERG must say. */
#define EXCLUSIVE_ERG 2

struct exclusives;

/* The local monitor of one vCPU. Zeroed = open. [vcpu] */
struct exclusive_state {
    bool armed;
    uint8_t bytes;
    uint64_t gpa;
    uint64_t sequence;
    uint64_t value[2];
    void *host; /* what gpa was at the time of the load */
};

enum atomic_result {
    ATOMIC_DONE = 0,
    ATOMIC_UNALIGNED,    /* nothing done: alignment fault */
    ATOMIC_NOT_AN_ATOMIC /* insn->kind is none of ours */
};

struct atomic_io {
    /* In: register values; XZR reads as 0. Pairs: CASP rs2 is rs + 1. */
    uint64_t rs, rs2, rt, rt2;
    /* Out: registers to write, 31 = discard. Loads are already extended. */
    unsigned outputs; /* 0..2 */
    struct {
        uint8_t reg;
        uint64_t value;
    } out[2];
    bool failed; /* STXR family: status was 1; CAS: did not match */
};

struct exclusives *exclusives_new(void);
void exclusives_free(struct exclusives *ex);

/* --- any thread; the state is the calling vCPU's --- */

/* Fills io->rs.. from the registers that @insn reads; 31 reads as zero. */
void atomic_gather(const struct insn *insn,
                   uint64_t (*read_x)(void *opaque, unsigned reg), void *opaque,
                   struct atomic_io *out_io);

/*
 * Performs one exclusive, LSE, CAS, load-acquire or store-release on ordinary
 * RAM. @host is the address of the guest's bytes, writable for all but the
 * load-acquires; @gpa names the same place to the monitors. The caller has
 * translated and checked permissions before: nothing here can fault.
 * INSN_CLREX is accepted with host NULL.
 */
enum atomic_result atomic_perform(struct exclusives *ex,
                                  struct exclusive_state *state,
                                  const struct insn *insn, void *host,
                                  uint64_t gpa, struct atomic_io *io);

/*
 * CLREX, exception return, reset; and snapshots, when they are taken and when
 * they are restored. The sequence words are not part of a snapshot and need
 * not be: a word's number is never a result, it is only compared with the one
 * that an armed monitor noted. While every monitor is open nothing refers to
 * the past of the words, and from then on each answer depends on what is
 * written after the load-exclusive alone. (Which granules share a word depends
 * on addresses only.)
 */
static inline void exclusive_state_clear(struct exclusive_state *state)
{
    state->armed = false;
}

/*
 * False once another trapped write or a changed value has cleared the
 * monitor: an event for WFE. Also false if the monitor was never armed.
 */
bool exclusive_state_holds(struct exclusives *ex,
                           const struct exclusive_state *state);

/*
 * The VMM itself has just written @len bytes at @gpa (a debugger, a buffer
 * that a device filled): store-exclusives to them fail from now on.
 */
void exclusives_note_write(struct exclusives *ex, uint64_t gpa, uint64_t len);

#endif
