/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PSCI 1.1 and the two SMCCC discovery calls, by function number. Decodes and
 * checks; the machine does the work. No state.
 */
#ifndef DEV_PSCI_H
#define DEV_PSCI_H

#include <stdint.h>

#define PSCI_VERSION_1_1 0x00010001

enum psci_code {
    PSCI_SUCCESS = 0,
    PSCI_NOT_SUPPORTED = -1,
    PSCI_INVALID_PARAMETERS = -2,
    PSCI_DENIED = -3,
    PSCI_ALREADY_ON = -4,
    PSCI_ON_PENDING = -5,
    PSCI_INTERNAL_FAILURE = -6,
    PSCI_NOT_PRESENT = -7,
    PSCI_DISABLED = -8,
    PSCI_INVALID_ADDRESS = -9,
};

/* What affinity_info returns when it is not an error. */
enum psci_affinity {
    PSCI_AFFINITY_ON = 0,
    PSCI_AFFINITY_OFF = 1,
    PSCI_AFFINITY_ON_PENDING = 2,
};

/* Function numbers; the 64-bit form has bit 30 set. */
#define PSCI_FN_VERSION 0x84000000u
#define PSCI_FN_CPU_SUSPEND 0x84000001u
#define PSCI_FN_CPU_OFF 0x84000002u
#define PSCI_FN_CPU_ON 0x84000003u
#define PSCI_FN_AFFINITY_INFO 0x84000004u
#define PSCI_FN_MIGRATE 0x84000005u
#define PSCI_FN_MIGRATE_INFO_TYPE 0x84000006u
#define PSCI_FN_SYSTEM_OFF 0x84000008u
#define PSCI_FN_SYSTEM_RESET 0x84000009u
#define PSCI_FN_FEATURES 0x8400000au
#define PSCI_FN_64 0x40000000u
#define SMCCC_FN_VERSION 0x80000000u
#define SMCCC_FN_ARCH_FEATURES 0x80000001u

struct psci_ops {
    /* PSCI codes. mpidr holds affinity bits only, reserved ones are 0. An
     * unknown mpidr is PSCI_INVALID_PARAMETERS. */
    int (*cpu_on)(void *opaque, uint64_t mpidr, uint64_t entry, uint64_t ctx);
    /* enum psci_affinity or a code; level is 0..3. */
    int (*affinity_info)(void *opaque, uint64_t mpidr, unsigned level);
    /* Ask for it; the calling vCPU stops when psci_call() has returned. */
    void (*cpu_off)(void *opaque, unsigned cpu);
    void (*system_off)(void *opaque);
    void (*system_reset)(void *opaque);
    /* Standby: the vCPU waits as for WFI and goes on after the call. */
    void (*cpu_suspend)(void *opaque, unsigned cpu);
};

/* x[0] is the function number; the result is the caller's new X0. Any thread;
 * the operations run on the calling one. */
uint64_t psci_call(const struct psci_ops *ops, void *opaque, unsigned cpu,
                   const uint64_t x[4]);

#endif
