/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one place where TLB look-up, table walk, insertion and faults come
 * together. Everything here runs on the thread that holds the vCPU.
 */
#ifndef VMM_TRANSLATE_H
#define VMM_TRANSLATE_H

#include "vcpu.h"

struct translate_fault {
    enum walk_fault fault; /* WALK_OK: pa is valid */
    uint8_t level;
};

/*
 * Translates va for the access, through the modelled TLB, filling it on a
 * miss. Counts and emits walk, fill, hit and evict events.
 */
struct translate_fault translate(struct vcpu *vcpu, gva_t va,
                                 const struct access *access, gpa_t *out_pa);

/*
 * As above, but nothing is looked up in or put into the TLB: for AT, whose
 * answer may come from the TLB as well, but must not be stale to be useful.
 * updates: hardware may set the access flag meanwhile.
 */
struct walk_result translate_walk(struct vcpu *vcpu, gva_t va, bool updates);

/* The engine's micro-TLB miss; fills vcpu->refused when it says false. */
bool translate_fill(void *vcpu, gva_t va, enum access_type type, gpa_t *out_pa,
                    unsigned *out_perms);

/* The view that va executes from now, or NULL. Does not fault. */
const struct exec_view *translate_view(struct vcpu *vcpu, gva_t va);
/* The guest's own instruction word at va. False: not executable RAM. */
bool translate_word(struct vcpu *vcpu, gva_t va, uint32_t *out_word);

/* Applies an invalidation to this vCPU's TLB, walk cache and micro-TLB. */
size_t translate_invalidate(struct vcpu *vcpu, const struct tlbi_op *op,
                            uint32_t issuer, uint64_t ticket);

/* Fills the TLB unasked, as speculation may; nothing happens on a fault. */
void translate_prefetch(struct vcpu *vcpu, gva_t va);
/* A valid leaf of the low (0) or high (1) half that pick() chooses. */
bool translate_pick_leaf(struct vcpu *vcpu, unsigned half,
                         unsigned (*pick)(void *opaque, unsigned n),
                         void *opaque, gva_t *out_va);
/* Forgets the entry for va, or this entry, as any TLB may at any time. */
void translate_evict(struct vcpu *vcpu, gva_t va);
void translate_drop(struct vcpu *vcpu, struct tlb_entry *entry);

/* CPACR_EL1.FPEN traps FP and AdvSIMD at this EL. */
bool translate_traps_fp(const struct vcpu *vcpu, bool el0);
/* Forgets the micro-TLB; the modelled TLB stays. */
void translate_flush_micro(struct vcpu *vcpu);
/* An interrupt waits to be unmasked, or no longer: see execview.h. */
void translate_set_eret_trap(struct vcpu *vcpu, bool on);
/*
 * Decodes SCTLR, TCR and TTBRs again after one was written. controls: it was
 * not a TTBR, so that every cached permission may be wrong.
 */
void translate_regime_changed(struct vcpu *vcpu, bool controls);

#endif
