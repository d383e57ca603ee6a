/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Telling the annotation device what happens. Where there is none (QEMU) each
 * call is one predictable branch.
 */
#ifndef KERNEL_ANNOT_H
#define KERNEL_ANNOT_H

#include "abi/annot.h"
#include "arch/sysreg.h"
#include "kernel/types.h"

extern volatile uint8_t *annot_regs; /* [init] NULL: no device */
extern bool annot_listens; /* [init] somebody wants frames and ranges */

void annot_init(void);
/* ANNOT_FEATURE_*; 0 without the device. */
uint64_t annot_features(void);

static inline void annot_write(unsigned reg, uint64_t value)
{
    if (annot_regs != NULL) {
        *(volatile uint64_t *)(annot_regs + reg) = value;
    }
}

void annot_op_begin_slow(unsigned kind, va_t start, va_t end, unsigned promise);
void annot_op_end_slow(unsigned kind);

/* promise: ANNOT_PROMISE_*, of [start, end) of this task's address space. */
static inline void annot_op_begin(unsigned kind, va_t start, va_t end,
                                  unsigned promise)
{
    if (annot_regs != NULL) {
        annot_op_begin_slow(kind, start, end, promise);
    }
}

static inline void annot_op_end(unsigned kind)
{
    if (annot_regs != NULL) {
        annot_op_end_slow(kind);
    }
}

/* reg: ANNOT_REG_FRAME_FREE and the like. An exit where somebody listens. */
static inline void annot_frame(unsigned reg, pa_t pa, unsigned order)
{
    if (annot_listens) {
        annot_write(reg, pa | order);
    }
}

/* reg: ANNOT_REG_WALK_* or FLUSH_*. An exit where somebody listens. */
static inline void annot_promise(unsigned reg, uint64_t value)
{
    if (annot_listens) {
        annot_write(reg, value);
    }
}

static inline void annot_mark(uint64_t value)
{
    annot_write(ANNOT_REG_MARK, value);
}

/* Evidence of a bug: the run may end here. */
static inline void annot_finding(uint64_t code)
{
    annot_write(ANNOT_REG_FINDING, code);
}

/* One of n alternatives, 0..n-1, that the machine chooses; 0 without it. */
static inline uint64_t annot_choose(uint64_t n)
{
    uint64_t flags, answer;

    if (annot_regs == NULL) {
        return 0;
    }
    /* Question and answer belong to one CPU, and nobody asks in between. */
    flags = local_irq_save();
    annot_write(ANNOT_REG_CHOOSE, n);
    answer = *(volatile uint64_t *)(annot_regs + ANNOT_REG_CHOOSE);
    local_irq_restore(flags);
    return answer;
}

/* The array of struct annot_counters, one per CPU, physically contiguous. */
static inline void annot_counters(pa_t pa, unsigned cpus)
{
    annot_write(ANNOT_REG_COUNTERS_CPUS, cpus);
    annot_write(ANNOT_REG_COUNTERS_ADDR, pa);
}

#endif
