/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every CPU sends to all others as fast as it can, and takes what comes. */
#include "guest.h"

#define SENDS 50000u

static void member(unsigned cpu)
{
    gic_init_cpu();
    irq_on();
    for (unsigned i = 0; i < SENDS; i++) {
        gic_sgi_raw((uint64_t)(i % 16) << 24 | 1ull << 40);
        gic_sgi(cpu, (i + 7) % 16);
    }
    irq_off();
}

int main(void)
{
    unsigned n = cpu_count();
    uint64_t taken = 0;

    gic_init_dist();
    run_on_all(n < 4 ? n : 4, member);
    for (unsigned c = 0; c < 4; c++) {
        for (unsigned i = 0; i < 16; i++) {
            taken += cpus[c].irqs[i];
        }
    }
    print("INFO: %u interrupts taken\n", taken);
    check(taken > SENDS, "interrupts were taken");
    finish("sgi_storm");
}
