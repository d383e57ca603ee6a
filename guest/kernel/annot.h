/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Telling the annotation device what happens. Where there is none (QEMU) each
 * call is one predictable branch.
 */
#ifndef KERNEL_ANNOT_H
#define KERNEL_ANNOT_H

#include "abi/annot.h"
#include "kernel/types.h"

extern volatile uint8_t *annot_regs; /* [init] NULL: no device */

void annot_init(void);

static inline void annot_write(unsigned reg, uint64_t value)
{
    if (annot_regs != NULL) {
        *(volatile uint64_t *)(annot_regs + reg) = value;
    }
}

static inline void annot_op_begin(unsigned kind)
{
    annot_write(ANNOT_REG_OP_BEGIN, kind);
}

static inline void annot_op_end(unsigned kind)
{
    annot_write(ANNOT_REG_OP_END, kind);
}

static inline void annot_mark(uint64_t value)
{
    annot_write(ANNOT_REG_MARK, value);
}

/* The array of struct annot_counters, one per CPU, physically contiguous. */
static inline void annot_counters(pa_t pa, unsigned cpus)
{
    annot_write(ANNOT_REG_COUNTERS_CPUS, cpus);
    annot_write(ANNOT_REG_COUNTERS_ADDR, pa);
}

#endif
