/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory accesses that the VMM performs for the guest: atomics, unprivileged
 * loads and stores, devices. The holder's thread only.
 */
#ifndef VMM_GUEST_ACCESS_H
#define VMM_GUEST_ACCESS_H

#include "insn/insn.h"
#include "vcpu.h"

/*
 * Both return true if the instruction at pc was performed (PC is the
 * caller's); false: *out_exception is to be taken instead.
 */

/* Exclusives, LSE, load-acquire and store-release. */
bool memory_atomic(struct vcpu *vcpu, const struct insn *insn, gva_t pc,
                   struct exception *out_exception);
/*
 * Any load or store, on RAM or a device: LDTR/STTR, which are checked as EL0's
 * accesses, and whatever the engine could not do because it was no RAM.
 */
bool memory_access(struct vcpu *vcpu, uint32_t word, gva_t pc,
                   struct exception *out_exception);
/* The data abort of a load or store that the engine refused. */
struct exception memory_abort(struct vcpu *vcpu, gva_t pc,
                              const struct refused_fill *refused);
/* Register numbers as the instruction decoders read them; 31: SP. */
uint64_t memory_read_x(void *vcpu, unsigned reg);

#endif
