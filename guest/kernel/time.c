/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counter ticks to nanoseconds by a 32.32 fixed-point factor. */
#include "kernel/time.h"

#include "abi/board.h"
#include "arch/barrier.h"
#include "arch/sysreg.h"

static uint64_t time_mult = (NSEC_PER_SEC << 32) / BOARD_CNTFRQ; /* [init] */
static uint64_t time_freq = BOARD_CNTFRQ;                        /* [init] */

void time_init(void)
{
    uint64_t freq = read_cntfrq_el0() & 0xffffffff;

    /* Zero where firmware forgot it; slower than 1 kHz makes no sense. */
    if (freq >= 1000) {
        time_freq = freq;
        time_mult = (NSEC_PER_SEC << 32) / freq;
    }
}

uint64_t time_now_ns(void)
{
    return (uint64_t)((unsigned __int128)read_cntvct_el0() * time_mult >> 32);
}

uint64_t time_ns_to_ticks(uint64_t ns)
{
    uint64_t sec = ns / NSEC_PER_SEC;
    uint64_t rest = ns % NSEC_PER_SEC;

    return sec * time_freq +
           (rest * time_freq + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
}

void time_udelay(uint64_t us)
{
    uint64_t until = time_now_ns() + us * 1000;

    while (time_now_ns() < until) {
        cpu_relax();
    }
}
