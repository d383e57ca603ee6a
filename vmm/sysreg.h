/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System registers that the engine must not handle alone: identification,
 * translation control, the GIC's and the timer's. All others stay native.
 */
#ifndef VMM_SYSREG_H
#define VMM_SYSREG_H

#include "dev/sysreg_key.h"
#include "insn/insn.h"
#include "vcpu.h"

#define SYSREG_SCTLR_EL1 SYSREG(3, 0, 1, 0, 0)
#define SYSREG_TTBR0_EL1 SYSREG(3, 0, 2, 0, 0)
#define SYSREG_TTBR1_EL1 SYSREG(3, 0, 2, 0, 1)
#define SYSREG_TCR_EL1 SYSREG(3, 0, 2, 0, 2)
#define SYSREG_SPSR_EL1 SYSREG(3, 0, 4, 0, 0)
#define SYSREG_ELR_EL1 SYSREG(3, 0, 4, 0, 1)
#define SYSREG_ESR_EL1 SYSREG(3, 0, 5, 2, 0)
#define SYSREG_FAR_EL1 SYSREG(3, 0, 6, 0, 0)
#define SYSREG_PAR_EL1 SYSREG(3, 0, 7, 4, 0)
#define SYSREG_VBAR_EL1 SYSREG(3, 0, 12, 0, 0)
#define SYSREG_ISR_EL1 SYSREG(3, 0, 12, 1, 0)
#define SYSREG_DAIF SYSREG(3, 3, 4, 2, 1)
#define SYSREG_TPIDR_EL0 SYSREG(3, 3, 13, 0, 2)
#define SYSREG_CPACR_EL1 SYSREG(3, 0, 1, 0, 2)
#define SYSREG_MAIR_EL1 SYSREG(3, 0, 10, 2, 0)

#define SCTLR_A (UINT64_C(1) << 1)
#define SCTLR_SPAN (UINT64_C(1) << 23)
#define SCTLR_UCT (UINT64_C(1) << 15)
#define SCTLR_UMA (UINT64_C(1) << 9)
#define SCTLR_DZE (UINT64_C(1) << 14)
#define SCTLR_NTWI (UINT64_C(1) << 16)
#define SCTLR_NTWE (UINT64_C(1) << 18)
#define SCTLR_UCI (UINT64_C(1) << 26)

/* What traps, for execution views; the same for every machine. */
const struct insn_policy *sysreg_insn_policy(void);

enum sysreg_result {
    SYSREG_OK,
    SYSREG_UNDEFINED, /* EC 0 */
    SYSREG_TRAPPED,   /* EC 0x18: allowed at EL0 but for a control bit */
};

/* --- the holder's thread only --- */

enum sysreg_result sysreg_read(struct vcpu *vcpu, uint32_t key, bool el0,
                               uint64_t *out);
enum sysreg_result sysreg_write(struct vcpu *vcpu, uint32_t key, bool el0,
                                uint64_t value, gva_t pc);
/*
 * Registers that neither the engine nor we have: true if they read as zero
 * and ignore writes (counted), false if they are undefined.
 */
bool sysreg_is_ignored(uint32_t key);

#endif
