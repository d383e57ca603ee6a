/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trapped instructions, performed; see trap.h. */
#include "trap.h"

#include "det.h"
#include "exception.h"
#include "guest_access.h"
#include "shootdown.h"
#include "sysreg.h"
#include "translate.h"
#include "vm_priv.h"

#define HVC_WORD_MASK UINT32_C(0xffe0001f)
#define HVC_WORD UINT32_C(0xd4000002)
#define ERET_MASK UINT32_C(0xfffff3ff)
#define ERET_WORD UINT32_C(0xd69f03e0)
#define SYS_OP_MASK UINT32_C(0xffc00000) /* MSR, MRS, SYS, hints, barriers */
#define SYS_OP UINT32_C(0xd5000000)

/* A short wait is not worth the switch to another vCPU. */
#define WFE_SPINS 64u

#define SYSREG_IC_IALLUIS SYSREG(1, 0, 7, 1, 0)
#define SYSREG_IC_IALLU SYSREG(1, 0, 7, 5, 0)
#define SYSREG_IC_IVAU SYSREG(1, 3, 7, 5, 1)

static void raise_exception(struct vcpu *vcpu, struct exception exception)
{
    vcpu->exception = exception;
    vcpu_stop_for(vcpu, ACTION_EXCEPTION);
}

static uint64_t operand_x(struct vcpu *vcpu, unsigned reg)
{
    return reg == 31 ? 0 : engine_x(vcpu->engine, reg);
}

static bool at_el0(struct vcpu *vcpu)
{
    return pstate_el(engine_pstate(vcpu->engine)) == 0;
}

static void do_mrs(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    uint64_t value = 0;

    switch (sysreg_read(vcpu, insn->sysreg, at_el0(vcpu), &value)) {
    case SYSREG_OK:
        if (insn->rt != 31) {
            engine_set_x(vcpu->engine, insn->rt, value);
        }
        break;
    case SYSREG_UNDEFINED:
        raise_exception(vcpu, exception_undefined(pc));
        break;
    case SYSREG_TRAPPED:
        raise_exception(vcpu, exception_sysreg(pc, insn->word));
        break;
    }
}

static void do_msr(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    switch (sysreg_write(vcpu, insn->sysreg, at_el0(vcpu),
                         operand_x(vcpu, insn->rt), pc)) {
    case SYSREG_OK:
        break;
    case SYSREG_UNDEFINED:
        raise_exception(vcpu, exception_undefined(pc));
        break;
    case SYSREG_TRAPPED:
        raise_exception(vcpu, exception_sysreg(pc, insn->word));
        break;
    }
}

/* MSR DAIFClr: the only immediate form that can unmask. */
static void do_msr_imm(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    uint64_t pstate = engine_pstate(vcpu->engine);

    if (pstate_el(pstate) == 0 && !(vcpu->sctlr & SCTLR_UMA)) {
        raise_exception(vcpu, exception_sysreg(pc, insn->word));
        return;
    }
    pstate &= ~((uint64_t)insn->imm << 6 & PSTATE_DAIF);
    engine_set_pstate(vcpu->engine, pstate);
    event_emit(vcpu->events, vcpu->id, EVENT_irq_mask, pc,
               pstate & PSTATE_DAIF);
}

/* DC by address, and IC IVAU, are checked as reads and abort as writes. */
static bool maintain(struct vcpu *vcpu, gva_t va, gva_t pc, gpa_t *out_pa)
{
    bool el0 = at_el0(vcpu);
    struct access access = {.type = ACCESS_READ, .el0 = el0};
    struct translate_fault fault = translate(vcpu, va, &access, out_pa);

    if (fault.fault == WALK_OK) {
        return true;
    }
    raise_exception(vcpu, exception_data_abort(&(struct data_abort){
                              .pc = pc,
                              .far = va,
                              .el0 = el0,
                              .write = true,
                              .cache_op = true,
                              .fault = fault.fault,
                              .level = fault.level,
                          }));
    return false;
}

static void do_dc(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    bool el0 = at_el0(vcpu);
    gpa_t pa;

    if (el0 && insn_op1(insn) != 3) {
        raise_exception(vcpu, exception_undefined(pc));
    } else if (el0 && !(vcpu->sctlr & SCTLR_UCI)) {
        raise_exception(vcpu, exception_sysreg(pc, insn->word));
    } else if (insn_op1(insn) == 3 || insn_op2(insn) == 1) {
        /* By address. Memory is coherent: the check is all there is to it. */
        (void)maintain(vcpu, operand_x(vcpu, insn->rt), pc, &pa);
    }
}

static void do_ic(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    struct vm *vm = vcpu->vm;
    bool el0 = at_el0(vcpu);
    gpa_t pa;

    if (el0 && insn->sysreg != SYSREG_IC_IVAU) {
        raise_exception(vcpu, exception_undefined(pc));
        return;
    }
    if (el0 && !(vcpu->sctlr & SCTLR_UCI)) {
        raise_exception(vcpu, exception_sysreg(pc, insn->word));
        return;
    }
    vcpu->counters->ic_invalidates++;
    if (insn->sysreg == SYSREG_IC_IVAU) {
        if (!maintain(vcpu, operand_x(vcpu, insn->rt), pc, &pa)) {
            return;
        }
        if (vm_ram_at(vm, pa, 4)) {
            exec_views_invalidate_page(vm->views,
                                       (pa - vm->ram.base) >> MMU_PAGE_SHIFT);
        }
    } else {
        exec_views_invalidate_all(vm->views);
    }
    shootdown_icache(vcpu);
}

/* AT S1E1R, S1E1W, S1E0R, S1E0W, S1E1RP, S1E1WP. */
static void do_at(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    uint64_t pstate = engine_pstate(vcpu->engine);
    bool pan_form = insn_crm(insn) == 9;
    unsigned op2 = insn_op2(insn);
    struct access access = {
        .type = op2 & 1 ? ACCESS_WRITE : ACCESS_READ,
        .el0 = op2 & 2,
        .pan = pan_form && pstate & PSTATE_PAN,
    };
    gva_t va = operand_x(vcpu, insn->rt);
    struct walk_result w;
    enum walk_fault fault;
    unsigned level;
    uint64_t par, mair = 0;

    if (pstate_el(pstate) == 0 || insn_op1(insn) != 0 || op2 > 3 ||
        (insn_crm(insn) != 8 && !(pan_form && op2 < 2))) {
        raise_exception(vcpu, exception_undefined(pc));
        return;
    }
    vcpu->counters->address_translates++;
    w = translate_walk(vcpu, va, true);
    fault = w.fault;
    level = w.level;
    if (fault == WALK_OK) {
        fault = translation_needs_dirty(&w.t, &access)
                    ? WALK_OK
                    : translation_check(&w.t, &access);
        level = w.t.level;
    }
    if (fault == WALK_FAULT_EXTERNAL) {
        /* The one kind that is taken and not reported in PAR_EL1. */
        raise_exception(vcpu, exception_data_abort(&(struct data_abort){
                                  .pc = pc,
                                  .far = va,
                                  .write = true,
                                  .cache_op = true,
                                  .fault = fault,
                                  .level = level,
                              }));
        return;
    }
    if (fault == WALK_OK) {
        uint64_t attr;

        (void)engine_sysreg(vcpu->engine, SYSREG_MAIR_EL1, &mair);
        attr = w.t.flat ? 0x00 : (mair >> w.t.attr_index * 8 & 0xff);

        /*
         * PAR_EL1 with F = 0: ATTR, PA, NS 1, SH, RES1. SH is 0b10 for Device
         * and for Normal Non-cacheable, whatever the descriptor says.
         */
        par = (translation_pa(&w.t, va) & UINT64_C(0x0000fffffffff000)) |
              attr << 56 | UINT64_C(1) << 11 | UINT64_C(1) << 9 |
              (uint64_t)(attr < 0x10 || attr == 0x44 ? 2 : w.t.sh) << 7;
    } else {
        struct exception e = exception_data_abort(&(struct data_abort){
            .fault = fault,
            .level = level,
        });

        par = (uint64_t)(e.esr & 0x3f) << 1 | UINT64_C(1) << 11 | 1;
    }
    (void)engine_set_sysreg(vcpu->engine, SYSREG_PAR_EL1, par);
}

/* True if SCTLR traps it at EL0. */
static bool wait_is_trapped(struct vcpu *vcpu, gva_t pc, bool is_wfe)
{
    if (!at_el0(vcpu) || vcpu->sctlr & (is_wfe ? SCTLR_NTWE : SCTLR_NTWI)) {
        return false;
    }
    raise_exception(vcpu, exception_wfx(pc, is_wfe));
    return true;
}

static void do_wfi(struct vcpu *vcpu)
{
    vcpu->counters->wfi++;
    if (!atomic_load(&vcpu->irq_line)) {
        vcpu->counters->wfi_parks++;
        vcpu_stop_for(vcpu, ACTION_PARK);
    }
}

static void give_way(struct vcpu *vcpu)
{
    struct sched *sched = vcpu->vm->sched;

    if (sched->ops->spin(sched, vcpu)) {
        vcpu_stop_for(vcpu, ACTION_YIELD);
    }
}

static void do_wfe(struct vcpu *vcpu)
{
    vcpu->counters->wfe++;
    if (vcpu->event_register) {
        vcpu->event_register = false;
        return;
    }
    /*
     * Any wake-up is allowed to be spurious, so a WFE is a yield: whoever the
     * guest waits for may be a vCPU that has no host core now.
     */
    if (vcpu->vm->det || ++vcpu->wfe_spins >= WFE_SPINS) {
        vcpu->wfe_spins = 0;
        give_way(vcpu);
    }
}

static void do_yield(struct vcpu *vcpu)
{
    vcpu->counters->yields++;
    give_way(vcpu);
}

static void do_memory(struct vcpu *vcpu, const struct insn *insn, gva_t pc,
                      bool atomic)
{
    struct exception exception;

    if (atomic ? !memory_atomic(vcpu, insn, pc, &exception)
               : !memory_access(vcpu, insn->word, pc, &exception)) {
        raise_exception(vcpu, exception);
    }
}

static void perform(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    switch (insn->kind) {
    case INSN_LOAD_EXCLUSIVE:
    case INSN_STORE_EXCLUSIVE:
    case INSN_LSE:
    case INSN_CAS:
    case INSN_LOAD_ACQUIRE:
    case INSN_STORE_RELEASE:
        do_memory(vcpu, insn, pc, true);
        break;
    case INSN_CLREX:
        vcpu->counters->clrex++;
        exclusive_state_clear(&vcpu->monitor);
        break;
    case INSN_LOAD_UNPRIV:
    case INSN_STORE_UNPRIV:
        do_memory(vcpu, insn, pc, false);
        break;
    case INSN_DMB:
        event_dmb(vcpu->events, vcpu->id, insn->barrier_crm);
        atomic_thread_fence(memory_order_seq_cst);
        break;
    case INSN_DSB:
        shootdown_dsb(vcpu, insn, pc);
        break;
    case INSN_ISB:
    case INSN_SB:
        event_emit(vcpu->events, vcpu->id, EVENT_isb, pc);
        break;
    case INSN_WFI:
    case INSN_WFIT:
        if (!wait_is_trapped(vcpu, pc, false)) {
            do_wfi(vcpu);
        }
        break;
    case INSN_WFE:
    case INSN_WFET:
        if (!wait_is_trapped(vcpu, pc, true)) {
            do_wfe(vcpu);
        }
        break;
    case INSN_YIELD:
        do_yield(vcpu);
        break;
    case INSN_SEV: /* WFE never sleeps: nobody has to be woken */
    case INSN_SEVL:
        vcpu->event_register = true;
        break;
    case INSN_TLBI:
        if (at_el0(vcpu) ||
            !shootdown_tlbi(vcpu, insn, operand_x(vcpu, insn->rt), pc)) {
            raise_exception(vcpu, exception_undefined(pc));
        }
        break;
    case INSN_IC:
        do_ic(vcpu, insn, pc);
        break;
    case INSN_AT:
        do_at(vcpu, insn, pc);
        break;
    case INSN_MRS:
        do_mrs(vcpu, insn, pc);
        break;
    case INSN_MSR:
        do_msr(vcpu, insn, pc);
        break;
    case INSN_MSR_IMM:
        do_msr_imm(vcpu, insn, pc);
        break;
    case INSN_DC:
        do_dc(vcpu, insn, pc);
        break;
    case INSN_SYS:
    case INSN_NONE:
    case INSN_KINDS:
        raise_exception(vcpu, exception_undefined(pc));
        break;
    }
}

/* Deterministic engines: what the instruction is to a scheduler. */
static enum choice_event event_of(struct vcpu *vcpu, const struct insn *insn,
                                  uint64_t *out_object)
{
    *out_object = 0;
    switch ((int)insn->kind) {
    case INSN_STORE_EXCLUSIVE:
    case INSN_LSE:
    case INSN_CAS:
    case INSN_STORE_RELEASE:
        *out_object =
            (engine_x(vcpu->engine, insn->rn) + (uint64_t)insn->offset) &
            ~UINT64_C(15);
        return CHOICE_EVENT_ATOMIC;
    case INSN_DSB:
        return CHOICE_EVENT_DSB;
    case INSN_TLBI:
        *out_object = operand_x(vcpu, insn->rt) << MMU_PAGE_SHIFT;
        return CHOICE_EVENT_TLBI;
    case INSN_MSR:
        switch (insn->sysreg) {
        case SYSREG_TTBR0_EL1:
        case SYSREG_TTBR1_EL1:
        case SYSREG_TCR_EL1:
        case SYSREG_SCTLR_EL1:
            return CHOICE_EVENT_ROOT;
        case SYSREG_ICC_SGI1R_EL1:
        case SYSREG_ICC_EOIR1_EL1:
            return CHOICE_EVENT_IPI;
        default:
            return CHOICE_EVENT_UNKNOWN;
        }
    case INSN_MRS:
        return insn->sysreg == SYSREG_ICC_IAR1_EL1 ? CHOICE_EVENT_IPI
                                                   : CHOICE_EVENT_UNKNOWN;
    default:
        return CHOICE_EVENT_UNKNOWN;
    }
}

/* True: another vCPU goes first, this one comes back to the instruction. */
static bool another_first(struct vcpu *vcpu, const struct insn *insn, gva_t pc)
{
    uint64_t object;
    enum choice_event event = event_of(vcpu, insn, &object);

    if (event == CHOICE_EVENT_UNKNOWN || !det_before(vcpu, event, object, pc)) {
        return false;
    }
    vcpu->watch->instructions--;
    vcpu->action_pc = pc;
    vcpu_stop_for(vcpu, ACTION_YIELD);
    return true;
}

void trap_instruction(void *opaque, gva_t pc)
{
    struct vcpu *vcpu = opaque;
    const struct exec_view *view;
    const struct insn *insn;
    uint32_t word;

    vcpu->watch->block_bytes = 0; /* the trap word ends its block */
    vcpu->counters->traps++;
    view = translate_view(vcpu, pc);
    word = view ? view->words[(pc & MMU_PAGE_MASK) / 4] : 0;
    insn = view ? exec_view_insn(view, (pc & MMU_PAGE_MASK) / 4) : NULL;
    if (insn) {
        if (vcpu->vm->det && another_first(vcpu, insn, pc)) {
            return;
        }
        perform(vcpu, insn, pc);
    } else if ((word & ERET_MASK) == ERET_WORD) {
        if (at_el0(vcpu)) {
            raise_exception(vcpu, exception_undefined(pc));
            return;
        }
        vcpu_stop_for(vcpu, ACTION_ERET);
        return;
    } else {
        raise_exception(vcpu, exception_undefined(pc));
        return;
    }
    vcpu_check_irq(vcpu);
}

/*
 * MSR DAIFSet, MRS DAIF and DC ZVA at EL0: a control bit decides, EC is not 0.
 */
static bool is_trapped_at_el0(struct vcpu *vcpu, uint32_t word)
{
    if ((word & UINT32_C(0xfffff0ff)) == UINT32_C(0xd50340df) ||
        (word & UINT32_C(0xffffffe0)) == UINT32_C(0xd53b4220)) {
        return !(vcpu->sctlr & SCTLR_UMA);
    }
    return (word & UINT32_C(0xffffffe0)) == UINT32_C(0xd50b7420) &&
           !(vcpu->sctlr & SCTLR_DZE);
}

/* What an instruction does that the engine calls undefined. */
static bool undefined(struct vcpu *vcpu, gva_t pc, struct exception *out)
{
    uint32_t word = 0;
    uint32_t key;

    if (pc & 3) {
        *out = exception_pc_alignment(pc);
        return false;
    }
    if (engine_pstate(vcpu->engine) & PSTATE_IL) {
        *out = exception_illegal_state(pc);
        return false;
    }
    if (!translate_word(vcpu, pc, &word)) {
        *out = exception_undefined(pc);
        return false;
    }
    if ((word & HVC_WORD_MASK) == HVC_WORD && !at_el0(vcpu)) {
        machine_psci(vcpu);
        return true;
    }
    key = word >> 5 & 0xffff;
    if ((word & SYS_OP_MASK) == SYS_OP && key >> 14 >= 2 && !at_el0(vcpu) &&
        sysreg_is_ignored(key)) {
        vcpu->counters->unknown_sysregs++;
        if (word & UINT32_C(1) << 21 && (word & 31) != 31) {
            engine_set_x(vcpu->engine, word & 31, 0);
        }
        return true;
    }
    if (at_el0(vcpu) && is_trapped_at_el0(vcpu, word)) {
        *out = exception_sysreg(pc, word);
        return false;
    }
    *out = exec_view_is_fp(word) && translate_traps_fp(vcpu, at_el0(vcpu))
               ? exception_fp(pc)
               : exception_undefined(pc);
    return false;
}

static uint16_t immediate16(struct vcpu *vcpu, gva_t pc)
{
    uint32_t word = 0;

    (void)translate_word(vcpu, pc, &word);
    return (uint16_t)(word >> 5);
}

void trap_exception(void *opaque, enum engine_exception kind, gva_t pc)
{
    struct vcpu *vcpu = opaque;
    struct exception exception;

    vcpu_block_ended_at(vcpu, kind == ENGINE_SVC ? pc : pc + 4);
    switch (kind) {
    case ENGINE_SVC:
        exception = exception_svc(pc, immediate16(vcpu, pc - 4));
        break;
    case ENGINE_BREAKPOINT:
        exception = exception_brk(pc, immediate16(vcpu, pc));
        break;
    case ENGINE_ALIGNMENT:
        exception = memory_abort(vcpu, pc,
                                 &(struct refused_fill){
                                     .fault = WALK_OK,
                                     .page = VIEW_NO_PAGE,
                                 });
        exception.esr = (exception.esr & ~UINT32_C(0x3f)) | 0x21;
        break;
    case ENGINE_UNDEFINED:
        if (undefined(vcpu, pc, &exception)) {
            /* Not both: a PC write makes the engine forget a stop. */
            if (vcpu->action == ACTION_NONE) {
                engine_set_pc(vcpu->engine, pc + 4);
            } else {
                vcpu->action_pc = pc + 4;
            }
            return;
        }
        break;
    case ENGINE_OTHER:
    default:
        exception = exception_undefined(pc);
        break;
    }
    exception_take(vcpu, &exception);
}
