/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frame of the lost-update tests: every CPU adds 1 a million times. */
#ifndef TESTS_GUEST_ATOMICS_H
#define TESTS_GUEST_ATOMICS_H

#include "guest.h"

#define ROUNDS 1000000u

static unsigned atomics_cpus(void)
{
    unsigned n = cpu_count();

    return n < 4 ? n : 4;
}

#endif
