/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PSCI with nonsense: every function number near its own, random arguments,
 * CPUs started at addresses where nothing is, all CPUs starting all others.
 */
#include "rng.h"

#define SEED 0x5eed0004ull

static bool ends_run(uint32_t fn)
{
    fn &= ~0x40000000u;
    /* CPU_SUSPEND, CPU_OFF and the SYSTEM_* calls */
    return fn == 0x84000001u || fn == 0x84000002u ||
           (fn >= 0x84000008u && fn <= 0x84000009u) || fn == 0x8400000cu ||
           fn == 0x8400000eu || fn == 0x84000012u;
}

int main(void)
{
    struct rng r = {SEED};
    uint64_t good = 0;

    for (uint32_t fn = 0x84000000u; fn < 0x84000040u; fn++) {
        for (unsigned wide = 0; wide < 2 && !ends_run(fn); wide++) {
            for (unsigned i = 0; i < 50; i++) {
                good += (int32_t)hvc(fn | wide << 30, rng_next(&r),
                                     rng_next(&r), rng_next(&r)) >= 0;
            }
        }
    }
    for (unsigned i = 0; i < 1000; i++) {
        uint32_t fn = (uint32_t)rng_next(&r);

        if (!ends_run(fn)) {
            good += (int32_t)hvc(fn, rng_next(&r) % 8, rng_next(&r), 0) >= 0;
        }
    }
    print("INFO: %u calls said yes\n", good);
    /* Into holes, devices, misaligned. */
    hvc(PSCI_CPU_ON64, 1, 0, 0);
    hvc(PSCI_CPU_ON64, 2, BOARD_UART_BASE, 0);
    hvc(PSCI_CPU_ON64, 3, BOARD_RAM_BASE + 0x200001, 0);
    for (unsigned i = 0; i < 200000; i++) {
        isb();
    }
    finish("psci_abuse");
}
