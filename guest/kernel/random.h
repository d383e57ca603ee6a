/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pseudo-random numbers, seeded from the counter: for AT_RANDOM, getrandom. */
#ifndef KERNEL_RANDOM_H
#define KERNEL_RANDOM_H

#include "kernel/types.h"

uint64_t random_u64(void);

#endif
