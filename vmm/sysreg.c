/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System registers; see sysreg.h. */
#include "sysreg.h"

#include "translate.h"
#include "vm_priv.h"

#define ID_SPACE(key) ((key) >> 7 == SYSREG(3, 0, 0, 0, 0) >> 7)

#define SYSREG_MPIDR_EL1 SYSREG(3, 0, 0, 0, 5)
#define SYSREG_ID_AA64PFR0_EL1 SYSREG(3, 0, 0, 4, 0)
#define SYSREG_ID_AA64PFR1_EL1 SYSREG(3, 0, 0, 4, 1)
#define SYSREG_ID_AA64ZFR0_EL1 SYSREG(3, 0, 0, 4, 4)
#define SYSREG_ID_AA64DFR0_EL1 SYSREG(3, 0, 0, 5, 0)
#define SYSREG_ID_AA64ISAR0_EL1 SYSREG(3, 0, 0, 6, 0)
#define SYSREG_ID_AA64ISAR1_EL1 SYSREG(3, 0, 0, 6, 1)
#define SYSREG_ID_AA64MMFR0_EL1 SYSREG(3, 0, 0, 7, 0)
#define SYSREG_ID_AA64MMFR1_EL1 SYSREG(3, 0, 0, 7, 1)
#define SYSREG_ID_AA64MMFR2_EL1 SYSREG(3, 0, 0, 7, 2)
#define SYSREG_CTR_EL0 SYSREG(3, 3, 0, 0, 1)
#define SYSREG_DCZID_EL0 SYSREG(3, 3, 0, 0, 7)

/* One ID register: what the engine says under mask, and bits of ours. */
struct id_register {
    uint32_t key;
    uint64_t keep; /* of the engine's value */
    uint64_t set;
};

#define FIELD(shift, value) ((uint64_t)(value) << (shift))

static const struct id_register id_registers[] = {
    /* EL0 and EL1 in AArch64 only, FP and AdvSIMD as the engine, GICv3. */
    {SYSREG_ID_AA64PFR0_EL1, FIELD(16, 0xff),
     FIELD(0, 1) | FIELD(4, 1) | FIELD(24, 1)},
    /* SSBS; no MTE, and no BTI: guarded pages are not modelled. */
    {SYSREG_ID_AA64PFR1_EL1, FIELD(4, 0xf), 0},
    {SYSREG_ID_AA64ZFR0_EL1, 0, 0}, /* no SVE */
    {SYSREG_ID_AA64DFR0_EL1, 0, FIELD(0, 6) | FIELD(12, 1) | FIELD(20, 1)},
    /* All that the engine has but RNDR; FEAT_TLBIOS and FEAT_TLBIRANGE. */
    {SYSREG_ID_AA64ISAR0_EL1, UINT64_C(0x00fffffffffffff0), FIELD(56, 2)},
    {SYSREG_ID_AA64ISAR1_EL1, ~UINT64_C(0), 0},
    /* 48-bit PA, 16-bit ASIDs, 4 KiB granule only. */
    {SYSREG_ID_AA64MMFR0_EL1, 0, FIELD(0, 5) | FIELD(4, 2) | FIELD(24, 0xf)},
    /* HPDS, PAN2; hardware AF and dirty state by --hw-dbm, no VHE. */
    {SYSREG_ID_AA64MMFR1_EL1, 0, FIELD(12, 1) | FIELD(20, 2)},
    /* UAO, FEAT_TTL. */
    {SYSREG_ID_AA64MMFR2_EL1, 0, FIELD(4, 1) | FIELD(48, 1)},
};

/*
 * DIC 0: IC IVAU is needed (execution views), IDC 1: the data side needs no
 * cleaning. 64-byte lines, as access.h says for DC ZVA and the monitors.
 */
#define CTR_VALUE                                                              \
    (FIELD(31, 1) | FIELD(28, 1) | FIELD(24, 4) | FIELD(20, EXCLUSIVE_ERG) |   \
     FIELD(16, 4) | FIELD(14, 3) | FIELD(0, 4))

static bool traps(uint32_t key, bool is_read)
{
    if (is_read &&
        (ID_SPACE(key) || key == SYSREG_CTR_EL0 || key == SYSREG_ISR_EL1)) {
        return true;
    }
    switch (key) {
    case SYSREG_SCTLR_EL1:
    case SYSREG_TTBR0_EL1:
    case SYSREG_TTBR1_EL1:
    case SYSREG_TCR_EL1:
    case SYSREG_CPACR_EL1:
        return true;
    case SYSREG_TPIDR_EL0: /* its MSR is the trap word */
    case SYSREG_DAIF:
        return !is_read;
    default:
        break;
    }
    /* The timer (CRn 14) but not the PMU's part of it, and the GIC. */
    if (key >> 7 == SYSREG(3, 3, 14, 0, 0) >> 7 ||
        key >> 7 == SYSREG(3, 0, 14, 0, 0) >> 7) {
        return true;
    }
    return key == SYSREG_ICC_PMR_EL1 ||
           (key >> 7 == SYSREG(3, 0, 12, 0, 0) >> 7 && (key >> 3 & 15) >= 8);
}

const struct insn_policy *sysreg_insn_policy(void)
{
    static const struct insn_policy policy = {
#if defined(__x86_64__)
        .host_tso = true,
#endif
        .trap_dc = true,
        .sysreg_traps = traps,
    };

    return &policy;
}

bool sysreg_is_ignored(uint32_t key)
{
    unsigned op0 = key >> 14, crn = key >> 7 & 15;

    /* Debug registers, the PMU and the unallocated part of the ID space. */
    return op0 == 2 || (op0 == 3 && crn == 9 && (key >> 3 & 15) >= 12) ||
           ID_SPACE(key);
}

static bool read_id(struct vcpu *vcpu, uint32_t key, uint64_t *out)
{
    uint64_t native = 0;

    if (key == SYSREG_MPIDR_EL1) {
        *out = vcpu->mpidr | UINT64_C(1) << 31;
        return true;
    }
    (void)engine_sysreg(vcpu->engine, key, &native);
    for (unsigned i = 0; i < G_N_ELEMENTS(id_registers); i++) {
        if (id_registers[i].key == key) {
            *out = (native & id_registers[i].keep) | id_registers[i].set;
            if (key == SYSREG_ID_AA64MMFR1_EL1 && vcpu->vm->hafdbs) {
                *out |= FIELD(0, 2); /* HAFDBS: both */
            }
            return true;
        }
    }
    /* MIDR, REVIDR and the like; AArch32 and reserved ones are zero. */
    *out = (key >> 3 & 15) == 0 ? native : 0;
    return true;
}

static enum sysreg_result el0_read(struct vcpu *vcpu, uint32_t key)
{
    if (key == SYSREG_CTR_EL0) {
        return vcpu->sctlr & SCTLR_UCT ? SYSREG_OK : SYSREG_TRAPPED;
    }
    if (key >> 7 == SYSREG(3, 3, 14, 0, 0) >> 7) {
        return arch_timer_el0_allowed(vcpu->vm->timer, vcpu->id, key)
                   ? SYSREG_OK
                   : SYSREG_TRAPPED;
    }
    return key == SYSREG_TPIDR_EL0 ? SYSREG_OK : SYSREG_UNDEFINED;
}

enum sysreg_result sysreg_read(struct vcpu *vcpu, uint32_t key, bool el0,
                               uint64_t *out)
{
    struct vm *vm = vcpu->vm;

    vcpu->counters->sysreg_reads++;
    if (el0) {
        enum sysreg_result result = el0_read(vcpu, key);

        if (result != SYSREG_OK) {
            return result;
        }
    }
    switch (key) {
    case SYSREG_SCTLR_EL1:
        *out = vcpu->sctlr;
        return SYSREG_OK;
    case SYSREG_TCR_EL1:
        *out = vcpu->tcr;
        return SYSREG_OK;
    case SYSREG_CPACR_EL1:
        *out = vcpu->cpacr;
        return SYSREG_OK;
    case SYSREG_TTBR0_EL1:
        *out = vcpu->ttbr[0];
        return SYSREG_OK;
    case SYSREG_TTBR1_EL1:
        *out = vcpu->ttbr[1];
        return SYSREG_OK;
    case SYSREG_CTR_EL0:
        *out = CTR_VALUE;
        return SYSREG_OK;
    case SYSREG_ISR_EL1:
        *out = atomic_load(&vcpu->irq_line) ? PSTATE_I : 0;
        return SYSREG_OK;
    default:
        break;
    }
    if (ID_SPACE(key)) {
        return read_id(vcpu, key, out) ? SYSREG_OK : SYSREG_UNDEFINED;
    }
    if (arch_timer_sysreg_read(vm->timer, vcpu->id, key, out)) {
        return SYSREG_OK;
    }
    if (gic_sysreg_read(vm->gic, vcpu->id, key, out)) {
        if (key == SYSREG_ICC_IAR1_EL1) {
            vcpu->irq_unacknowledged = false;
            if (atomic_load(&vcpu->irq_line)) {
                vcpu_request(vcpu, VCPU_REQ_IRQ); /* there is another one */
            }
            if (*out < 16) {
                event_emit(vcpu->events, vcpu->id, EVENT_ipi_take, 0, *out);
            }
        }
        return SYSREG_OK;
    }
    if (engine_sysreg(vcpu->engine, key, out)) {
        return SYSREG_OK;
    }
    if (sysreg_is_ignored(key)) {
        vcpu->counters->unknown_sysregs++;
        *out = 0;
        return SYSREG_OK;
    }
    return SYSREG_UNDEFINED;
}

static void write_root(struct vcpu *vcpu, unsigned which, uint64_t value,
                       gva_t pc)
{
    vcpu->ttbr[which] = value;
    event_emit(vcpu->events, vcpu->id, EVENT_root_load, pc, which, value);
    translate_regime_changed(vcpu, false);
}

static bool write_gic(struct vcpu *vcpu, uint32_t key, uint64_t value, gva_t pc)
{
    struct gic_sgi sgi;

    sgi.valid = false;
    if (!gic_sysreg_write(vcpu->vm->gic, vcpu->id, key, value, &sgi)) {
        return false;
    }
    if (sgi.valid) {
        event_ipi_send(vcpu->events, vcpu->id, pc, value, sgi.intid, sgi.count);
    } else if (key == SYSREG_ICC_EOIR1_EL1 && (value & 0xffffff) < 16) {
        event_emit(vcpu->events, vcpu->id, EVENT_ipi_ack, pc, value & 0xffffff);
    }
    return true;
}

enum sysreg_result sysreg_write(struct vcpu *vcpu, uint32_t key, bool el0,
                                uint64_t value, gva_t pc)
{
    struct vm *vm = vcpu->vm;

    vcpu->counters->sysreg_writes++;
    if (key == SYSREG_TPIDR_EL0) {
        (void)engine_set_sysreg(vcpu->engine, key, value);
        return SYSREG_OK;
    }
    if (el0) {
        if (key == SYSREG_DAIF) {
            if (!(vcpu->sctlr & SCTLR_UMA)) {
                return SYSREG_TRAPPED;
            }
        } else {
            enum sysreg_result result = el0_read(vcpu, key);

            if (result != SYSREG_OK) {
                return result;
            }
        }
    }
    switch (key) {
    case SYSREG_DAIF:
        engine_set_pstate(vcpu->engine,
                          (engine_pstate(vcpu->engine) & ~PSTATE_DAIF) |
                              (value & PSTATE_DAIF));
        event_emit(vcpu->events, vcpu->id, EVENT_irq_mask, pc,
                   value & PSTATE_DAIF);
        return SYSREG_OK;
    case SYSREG_SCTLR_EL1:
        vcpu->sctlr = value;
        /*
         * The engine gets all but M: it looks at the cache, alignment and
         * authentication controls itself, translation is ours.
         */
        (void)engine_set_sysreg(vcpu->engine, key, value & ~SCTLR_M);
        translate_regime_changed(vcpu, true);
        return SYSREG_OK;
    case SYSREG_TCR_EL1:
        vcpu->tcr = value;
        /* The engine strips tags of branch targets by TBI itself. */
        (void)engine_set_sysreg(vcpu->engine, key, value);
        translate_regime_changed(vcpu, true);
        return SYSREG_OK;
    case SYSREG_CPACR_EL1:
        /* FPEN alone; the engine itself never traps FP. */
        vcpu->cpacr = value & UINT64_C(3) << 20;
        translate_flush_micro(vcpu);
        return SYSREG_OK;
    case SYSREG_TTBR0_EL1:
        write_root(vcpu, 0, value, pc);
        return SYSREG_OK;
    case SYSREG_TTBR1_EL1:
        write_root(vcpu, 1, value, pc);
        return SYSREG_OK;
    default:
        break;
    }
    if (arch_timer_sysreg_write(vm->timer, vcpu->id, key, value)) {
        vm->sched->ops->timer_changed(vm->sched, vcpu->id);
        return SYSREG_OK;
    }
    if (write_gic(vcpu, key, value, pc)) {
        return SYSREG_OK;
    }
    if (sysreg_is_ignored(key)) {
        vcpu->counters->unknown_sysregs++;
        return SYSREG_OK;
    }
    return SYSREG_UNDEFINED;
}
