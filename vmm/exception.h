/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exceptions: the only file that builds ESR and FAR and enters vectors.
 * AArch64.TakeException to EL1; the holder's thread only.
 */
#ifndef VMM_EXCEPTION_H
#define VMM_EXCEPTION_H

#include "vcpu.h"

/* Exception classes, ESR_ELx.EC. */
enum esr_class {
    EC_UNKNOWN = 0x00,
    EC_WFX = 0x01,
    EC_FP = 0x07,
    EC_ILLEGAL_STATE = 0x0e,
    EC_SVC64 = 0x15,
    EC_SYSREG = 0x18,
    EC_IABT_LOWER = 0x20,
    EC_IABT_SAME = 0x21,
    EC_PC_ALIGNMENT = 0x22,
    EC_DABT_LOWER = 0x24,
    EC_DABT_SAME = 0x25,
    EC_BRK64 = 0x3c,
};

#define PSTATE_IL (UINT64_C(1) << 20)
#define ESR_IL (UINT32_C(1) << 25)
#define ESR_EC(ec) ((uint32_t)(ec) << 26)

/* Enters EL1 for a synchronous exception. Sets PC. */
void exception_take(struct vcpu *vcpu, const struct exception *exception);
/* Enters EL1 for an IRQ; PC is where it goes on. */
void exception_take_irq(struct vcpu *vcpu);
/* Performs ERET: PC and PSTATE from ELR_EL1 and SPSR_EL1. */
void exception_return(struct vcpu *vcpu);

/* --- builders; el0: the exception comes from EL0 --- */

struct exception exception_undefined(gva_t pc);
struct exception exception_svc(gva_t after, uint16_t imm);
struct exception exception_brk(gva_t pc, uint16_t imm);
struct exception exception_fp(gva_t pc);
struct exception exception_illegal_state(gva_t pc);
/* A WFI or WFE at EL0 that SCTLR_EL1.nTWI or nTWE traps. */
struct exception exception_wfx(gva_t pc, bool is_wfe);
/* word: the MSR, MRS or SYS instruction that was trapped. */
struct exception exception_sysreg(gva_t pc, uint32_t word);
/* on_access: as of data_abort. */
struct exception exception_instruction_abort(gva_t pc, bool el0,
                                             enum walk_fault fault,
                                             unsigned level, bool on_access);
struct exception exception_pc_alignment(gva_t pc);
struct data_abort {
    gva_t pc, far;
    bool el0, write, cache_op, alignment;
    bool on_access; /* WALK_FAULT_EXTERNAL: of the access, not of a walk */
    enum walk_fault fault;
    unsigned level;
};
struct exception exception_data_abort(const struct data_abort *abort);

#endif
