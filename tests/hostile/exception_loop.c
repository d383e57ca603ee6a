/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vectors are where nothing is mapped: an exception whose first
 * instruction raises the next one, on every CPU, for ever.
 */
#include "guest.h"

static void member(unsigned cpu)
{
    (void)cpu;
    write_sysreg(vbar_el1, 0x7000000000ull);
    isb();
    __asm__ volatile("svc #0");
}

int main(void)
{
    print("looping\n");
    run_on_all(cpu_count() < 4 ? cpu_count() : 4, member);
    finish("exception_loop");
}
