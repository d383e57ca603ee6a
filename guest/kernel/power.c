/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PSCI calls by the conduit that the device tree names. */
#include "kernel/power.h"

#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/board.h"

#define PSCI_CPU_ON_64 0xc4000003UL
#define PSCI_SYSTEM_OFF 0x84000008UL
#define PSCI_NOT_SUPPORTED (-1)

static int64_t psci_call(uint64_t fn, uint64_t a1, uint64_t a2, uint64_t a3)
{
    switch (board.psci) {
    case PSCI_HVC:
        return (int64_t)hvc_call(fn, a1, a2, a3);
    case PSCI_SMC:
        return (int64_t)smc_call(fn, a1, a2, a3);
    case PSCI_NONE:
        break;
    }
    return PSCI_NOT_SUPPORTED;
}

void power_off(void)
{
    local_irq_disable();
    (void)psci_call(PSCI_SYSTEM_OFF, 0, 0, 0);
    for (;;) {
        wfi(); /* no PSCI: at least use no power */
    }
}

int64_t power_cpu_on(uint64_t mpidr, pa_t entry, uint64_t context)
{
    return psci_call(PSCI_CPU_ON_64, mpidr, entry, context);
}
