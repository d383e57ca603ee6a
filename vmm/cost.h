/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What things cost in virtual time. A table has one entry for each kind of
 * event; a vCPU's clock is what it executed and what happened to it, times
 * these. Constants, any thread.
 */
#ifndef VMM_COST_H
#define VMM_COST_H

#include <stdint.h>

#include "obs/events.h"

/* Picoseconds. */
struct cost_table {
    const char *name;
    uint64_t instruction;
    uint64_t event[EVENT_KINDS];
    /* A WFE or YIELD, beside being an instruction. */
    uint64_t spin;
    /* From a broadcast TLBI until the last vCPU has applied it. */
    uint64_t tlbi_latency;
    /* From the write of the register until the target's interrupt signal. */
    uint64_t irq_latency;
};

/* The only one so far: round figures of no particular machine. */
extern const struct cost_table cost_constant;

#endif
