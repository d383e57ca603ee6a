/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PSCI (DEN 0022): starting CPUs and ending the machine. */
#ifndef KERNEL_POWER_H
#define KERNEL_POWER_H

#include "kernel/types.h"

void power_off(void) NORETURN;
/* PSCI return value: 0, or negative. */
int64_t power_cpu_on(uint64_t mpidr, pa_t entry, uint64_t context);

#endif
