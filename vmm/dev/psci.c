/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PSCI 1.1 (Arm DEN 0022): function decode and parameter checks. Any thread,
 * no state.
 */
#include "dev/psci.h"

#include <stdbool.h>

#include "abi/board.h"

/* MIGRATE_INFO_TYPE: there is no trusted OS that could need migration. */
#define MIGRATE_NOT_REQUIRED 2

/* power_state bits that must be zero: StateType (power down) is not offered,
 * the rest is reserved in the original format. Bits 25:24 are the level. */
#define POWER_STATE_BAD 0xfcff0000u

#define AFFINITY_LEVEL_MAX 3

static bool fn_has_64_bit_form(uint32_t fn)
{
    switch (fn) {
    case PSCI_FN_CPU_SUSPEND:
    case PSCI_FN_CPU_ON:
    case PSCI_FN_AFFINITY_INFO:
        return true;
    default:
        return false;
    }
}

static int psci_features(uint32_t fn)
{
    uint32_t base = fn & ~PSCI_FN_64;

    if ((fn & PSCI_FN_64) != 0 && !fn_has_64_bit_form(base)) {
        return PSCI_NOT_SUPPORTED;
    }
    switch (base) {
    case PSCI_FN_VERSION:
    case PSCI_FN_CPU_SUSPEND: /* 0: original format, no OS-initiated mode */
    case PSCI_FN_CPU_OFF:
    case PSCI_FN_CPU_ON:
    case PSCI_FN_AFFINITY_INFO:
    case PSCI_FN_MIGRATE_INFO_TYPE:
    case PSCI_FN_SYSTEM_OFF:
    case PSCI_FN_SYSTEM_RESET:
    case PSCI_FN_FEATURES:
    case SMCCC_FN_VERSION:
        return PSCI_SUCCESS;
    default:
        return PSCI_NOT_SUPPORTED;
    }
}

static int smccc_arch_features(uint32_t fn)
{
    return fn == SMCCC_FN_VERSION || fn == SMCCC_FN_ARCH_FEATURES
               ? PSCI_SUCCESS
               : PSCI_NOT_SUPPORTED;
}

static bool mpidr_is_valid(uint64_t mpidr)
{
    return (mpidr & ~BOARD_MPIDR_AFFINITY_MASK) == 0;
}

static int psci_cpu_on(const struct psci_ops *ops, void *opaque, uint64_t mpidr,
                       uint64_t entry, uint64_t ctx)
{
    if (!mpidr_is_valid(mpidr)) {
        return PSCI_INVALID_PARAMETERS;
    }
    /* A64 code is word aligned. */
    if ((entry & 3) != 0) {
        return PSCI_INVALID_ADDRESS;
    }
    return ops->cpu_on(opaque, mpidr, entry, ctx);
}

static int psci_affinity_info(const struct psci_ops *ops, void *opaque,
                              uint64_t mpidr, uint32_t level)
{
    if (!mpidr_is_valid(mpidr) || level > AFFINITY_LEVEL_MAX) {
        return PSCI_INVALID_PARAMETERS;
    }
    return ops->affinity_info(opaque, mpidr, level);
}

static int psci_cpu_suspend(const struct psci_ops *ops, void *opaque,
                            unsigned cpu, uint32_t power_state)
{
    if ((power_state & POWER_STATE_BAD) != 0) {
        return PSCI_INVALID_PARAMETERS;
    }
    ops->cpu_suspend(opaque, cpu);
    return PSCI_SUCCESS;
}

static int psci_dispatch(const struct psci_ops *ops, void *opaque, unsigned cpu,
                         uint32_t fn, const uint64_t arg[3])
{
    /* power_state and the affinity level have 32 bits in both forms. */
    switch (fn) {
    case PSCI_FN_VERSION:
        return PSCI_VERSION_1_1;
    case PSCI_FN_FEATURES:
        return psci_features((uint32_t)arg[0]);
    case PSCI_FN_CPU_SUSPEND:
        return psci_cpu_suspend(ops, opaque, cpu, (uint32_t)arg[0]);
    case PSCI_FN_CPU_OFF:
        ops->cpu_off(opaque, cpu);
        return PSCI_SUCCESS;
    case PSCI_FN_CPU_ON:
        return psci_cpu_on(ops, opaque, arg[0], arg[1], arg[2]);
    case PSCI_FN_AFFINITY_INFO:
        return psci_affinity_info(ops, opaque, arg[0], (uint32_t)arg[1]);
    case PSCI_FN_MIGRATE_INFO_TYPE:
        return MIGRATE_NOT_REQUIRED;
    case PSCI_FN_SYSTEM_OFF:
        ops->system_off(opaque);
        return PSCI_SUCCESS;
    case PSCI_FN_SYSTEM_RESET:
        ops->system_reset(opaque);
        return PSCI_SUCCESS;
    case SMCCC_FN_VERSION:
        return 0x00010001;
    case SMCCC_FN_ARCH_FEATURES:
        return smccc_arch_features((uint32_t)arg[0]);
    default:
        return PSCI_NOT_SUPPORTED;
    }
}

uint64_t psci_call(const struct psci_ops *ops, void *opaque, unsigned cpu,
                   const uint64_t x[4])
{
    uint32_t fn = (uint32_t)x[0]; /* SMCCC: the number is W0 */
    uint64_t arg[3] = {x[1], x[2], x[3]};
    bool is_64 = (fn & PSCI_FN_64) != 0;
    uint32_t base = fn & ~PSCI_FN_64;
    int result;

    if (is_64 && !fn_has_64_bit_form(base)) {
        result = PSCI_NOT_SUPPORTED;
    } else {
        if (!is_64) {
            for (unsigned i = 0; i < 3; i++) {
                arg[i] = (uint32_t)arg[i];
            }
        }
        result = psci_dispatch(ops, opaque, cpu, base, arg);
    }
    /* Sign-extended for both forms: correct for the 64-bit one, and the upper
     * half means nothing to a caller of the 32-bit one. */
    return (uint64_t)(int64_t)result;
}
