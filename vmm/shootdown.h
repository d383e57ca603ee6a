/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLBI and DSB between vCPUs, on the invalidation queues of mmu/inval.h.
 *
 * A broadcast TLBI posts one operation to the queue of every other vCPU and
 * goes on. It is applied there when that vCPU next looks, or by whoever holds
 * the vCPU then. Only the issuer's own DSB waits for it (R_YNJCP). A waiting
 * vCPU goes on serving its own queue, so two DSBs cannot wait for each other.
 */
#ifndef VMM_SHOOTDOWN_H
#define VMM_SHOOTDOWN_H

#include "insn/insn.h"
#include "vcpu.h"

/* --- the holder's thread only --- */

/* A TLBI instruction at pc; operand is Xt. False: no TLBI of EL1. */
bool shootdown_tlbi(struct vcpu *vcpu, const struct insn *insn,
                    uint64_t operand, gva_t pc);
/* A DSB instruction at pc: returns when all that it waits for is done. */
void shootdown_dsb(struct vcpu *vcpu, const struct insn *insn, gva_t pc);
/* Applies what is owed by this vCPU, instruction cache included. */
void shootdown_drain(struct vcpu *vcpu);
/* Applies the invalidations that this vCPU owes, now. */
void shootdown_apply(struct vcpu *vcpu);
/* Those that this issuer asked for, up to this ticket, and no others. */
void shootdown_apply_of(struct vcpu *vcpu, uint32_t issuer, uint64_t ticket);
/*
 * Applies what another vCPU owes, if no worker runs it. False: it is held.
 */
bool shootdown_serve(struct vcpu *target);
/* The same for one that the caller holds, and whose engine is not running. */
void shootdown_serve_claimed(struct vcpu *target);
/* An IC operation was performed by this vCPU; others follow by its DSB. */
void shootdown_icache(struct vcpu *vcpu);

#endif
