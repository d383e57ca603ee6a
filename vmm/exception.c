/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exception entry and return; see exception.h. */
#include "exception.h"

#include "det.h"
#include "sysreg.h"
#include "vm_priv.h"

#define PSTATE_NZCV (UINT64_C(0xf) << 28)
#define PSTATE_BTYPE (UINT64_C(3) << 10)
#define PSTATE_TCO_DIT_SSBS                                                    \
    (UINT64_C(1) << 25 | UINT64_C(1) << 24 | UINT64_C(1) << 12)
#define PSTATE_M4 (UINT64_C(1) << 4)

/* Offsets from VBAR: from where, then of what. */
#define VECTOR_SAME_SP0 0x000u
#define VECTOR_SAME_SPX 0x200u
#define VECTOR_LOWER 0x400u
#define VECTOR_IRQ 0x080u

/* Fault status codes without the level. */
#define FSC_ADDRESS_SIZE 0x00u
#define FSC_TRANSLATION 0x04u
#define FSC_ACCESS_FLAG 0x08u
#define FSC_PERMISSION 0x0cu
#define FSC_EXTERNAL 0x10u
#define FSC_EXTERNAL_WALK 0x14u
#define FSC_ALIGNMENT 0x21u

static void enter(struct vcpu *vcpu, gva_t elr, unsigned vector)
{
    struct engine *engine = vcpu->engine;
    uint64_t old = engine_pstate(engine);
    uint64_t pstate = (old & (PSTATE_NZCV | PSTATE_TCO_DIT_SSBS | PSTATE_PAN)) |
                      PSTATE_DAIF | PSTATE_EL1H;
    uint64_t vbar = 0;

    if (vcpu->vm->det) {
        det_interrupted(vcpu);
    }
    if (!(vcpu->sctlr & SCTLR_SPAN)) {
        pstate |= PSTATE_PAN;
    }
    if (pstate_el(old) == 0) {
        vector += VECTOR_LOWER;
    } else {
        vector += old & 1 ? VECTOR_SAME_SPX : VECTOR_SAME_SP0;
    }
    (void)engine_sysreg(engine, SYSREG_VBAR_EL1, &vbar);
    (void)engine_set_sysreg(engine, SYSREG_ELR_EL1, elr);
    /* The engine has BTI, the machine (ID_AA64PFR1_EL1.BT) has not. */
    (void)engine_set_sysreg(engine, SYSREG_SPSR_EL1, old & ~PSTATE_BTYPE);
    /*
     * The architecture clears the monitor at the return; nobody tells us of a
     * native ERET, and clearing it early may only make a store fail.
     */
    exclusive_state_clear(&vcpu->monitor);
    engine_switch_pstate(engine, pstate);
    engine_set_pc(engine, (vbar & ~UINT64_C(0x7ff)) + vector);
}

void exception_take(struct vcpu *vcpu, const struct exception *exception)
{
    uint64_t pstate = engine_pstate(vcpu->engine);

    (void)engine_set_sysreg(vcpu->engine, SYSREG_ESR_EL1, exception->esr);
    if (exception->has_far) {
        (void)engine_set_sysreg(vcpu->engine, SYSREG_FAR_EL1, exception->far);
    }
    event_fault(vcpu->events, vcpu->id, exception->elr, exception->esr,
                exception->has_far ? exception->far : 0, pstate_el(pstate));
    enter(vcpu, exception->elr, 0);
}

void exception_take_irq(struct vcpu *vcpu)
{
    gva_t pc = engine_pc(vcpu->engine);

    event_emit(vcpu->events, vcpu->id, EVENT_irq_take, pc,
               pstate_el(engine_pstate(vcpu->engine)));
    enter(vcpu, pc, VECTOR_IRQ);
}

void exception_return(struct vcpu *vcpu)
{
    struct engine *engine = vcpu->engine;
    uint64_t elr = 0, spsr = 0;

    (void)engine_sysreg(engine, SYSREG_ELR_EL1, &elr);
    (void)engine_sysreg(engine, SYSREG_SPSR_EL1, &spsr);
    exclusive_state_clear(&vcpu->monitor);
    if (spsr & PSTATE_M4 || (spsr >> 2 & 3) > 1 ||
        ((spsr >> 2 & 3) == 0 && spsr & 1)) {
        /* Illegal return: stay here, with PSTATE.IL (AArch64.ExceptionReturn,
         * SetPSTATEFromPSR). */
        engine_set_pstate(
            engine, (engine_pstate(engine) & ~(PSTATE_NZCV | PSTATE_DAIF)) |
                        (spsr & (PSTATE_NZCV | PSTATE_DAIF)) | PSTATE_IL);
        (void)engine_set_sysreg(engine, SYSREG(3, 0, 5, 1, 0), 0);
    } else {
        engine_switch_pstate(engine, spsr);
    }
    engine_set_pc(engine, elr);
}

struct exception exception_undefined(gva_t pc)
{
    return (struct exception){.esr = ESR_EC(EC_UNKNOWN) | ESR_IL, .elr = pc};
}

struct exception exception_svc(gva_t after, uint16_t imm)
{
    return (struct exception){.esr = ESR_EC(EC_SVC64) | ESR_IL | imm,
                              .elr = after};
}

struct exception exception_brk(gva_t pc, uint16_t imm)
{
    return (struct exception){.esr = ESR_EC(EC_BRK64) | ESR_IL | imm,
                              .elr = pc};
}

/* CV = 1, COND = 0xe, as for every AArch64 instruction. */
#define ISS_ALWAYS (UINT32_C(1) << 24 | UINT32_C(0xe) << 20)

struct exception exception_fp(gva_t pc)
{
    return (struct exception){.esr = ESR_EC(EC_FP) | ESR_IL | ISS_ALWAYS,
                              .elr = pc};
}

struct exception exception_illegal_state(gva_t pc)
{
    return (struct exception){.esr = ESR_EC(EC_ILLEGAL_STATE) | ESR_IL,
                              .elr = pc};
}

struct exception exception_wfx(gva_t pc, bool is_wfe)
{
    return (struct exception){
        .esr = ESR_EC(EC_WFX) | ESR_IL | ISS_ALWAYS | is_wfe,
        .elr = pc,
    };
}

struct exception exception_sysreg(gva_t pc, uint32_t word)
{
    uint32_t iss = (word >> 19 & 3) << 20 | (word >> 5 & 7) << 17 |
                   (word >> 16 & 7) << 14 | (word >> 12 & 15) << 10 |
                   (word & 31) << 5 | (word >> 8 & 15) << 1 | (word >> 21 & 1);

    return (struct exception){.esr = ESR_EC(EC_SYSREG) | ESR_IL | iss,
                              .elr = pc};
}

static uint32_t fault_status(enum walk_fault fault, unsigned level,
                             bool on_access)
{
    switch (fault) {
    case WALK_FAULT_ADDRESS_SIZE:
        return FSC_ADDRESS_SIZE | level;
    case WALK_FAULT_ACCESS_FLAG:
        return FSC_ACCESS_FLAG | level;
    case WALK_FAULT_PERMISSION:
        return FSC_PERMISSION | level;
    case WALK_FAULT_EXTERNAL:
        return on_access ? FSC_EXTERNAL : FSC_EXTERNAL_WALK | level;
    case WALK_OK:
    case WALK_FAULT_TRANSLATION:
        break;
    }
    return FSC_TRANSLATION | level;
}

struct exception exception_instruction_abort(gva_t pc, bool el0,
                                             enum walk_fault fault,
                                             unsigned level, bool on_access)
{
    return (struct exception){
        .esr = ESR_EC(el0 ? EC_IABT_LOWER : EC_IABT_SAME) | ESR_IL |
               fault_status(fault, level, on_access),
        .far = pc,
        .has_far = true,
        .elr = pc,
    };
}

struct exception exception_pc_alignment(gva_t pc)
{
    return (struct exception){
        .esr = ESR_EC(EC_PC_ALIGNMENT) | ESR_IL,
        .far = pc,
        .has_far = true,
        .elr = pc,
    };
}

struct exception exception_data_abort(const struct data_abort *abort)
{
    uint32_t status =
        abort->alignment
            ? FSC_ALIGNMENT
            : fault_status(abort->fault, abort->level, abort->on_access);

    return (struct exception){
        .esr = ESR_EC(abort->el0 ? EC_DABT_LOWER : EC_DABT_SAME) | ESR_IL |
               status | (uint32_t)abort->write << 6 |
               (uint32_t)abort->cache_op << 8,
        .far = abort->far,
        .has_far = true,
        .elr = abort->pc,
    };
}
