/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every CPU loops with interrupts masked; with SLEEP, in WFI nothing ends. */
#include "guest.h"

static void member(unsigned cpu)
{
    (void)cpu;
    for (;;) {
#ifdef SLEEP
        __asm__ volatile("wfi");
#else
        __asm__ volatile("");
#endif
    }
}

int main(void)
{
    print("looping\n");
    run_on_all(cpu_count() < 4 ? cpu_count() : 4, member);
    finish("masked_loop");
}
