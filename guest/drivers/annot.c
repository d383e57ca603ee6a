/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The annotation device. Most writes are inline in kernel/annot.h. */
#include "kernel/annot.h"

#include "kernel/board.h"
#include "kernel/printk.h"
#include "kernel/task.h"

volatile uint8_t *annot_regs;
bool annot_listens;

void annot_init(void)
{
    volatile uint8_t *regs = (volatile uint8_t *)(LINEAR_BASE + board.annot);
    uint64_t id, version;

    if (board.annot == 0) {
        return;
    }
    id = *(volatile uint64_t *)(regs + ANNOT_REG_ID);
    version = *(volatile uint64_t *)(regs + ANNOT_REG_VERSION);
    if (id != ANNOT_ID || version != ANNOT_VERSION) {
        printk("annot: device has id 0x%lx version %lu, not used\n", id,
               version);
        return;
    }
    annot_regs = regs;
    annot_listens = annot_features() & ANNOT_FEATURE_LEDGER;
}

uint64_t annot_features(void)
{
    return annot_regs == NULL
               ? 0
               : *(volatile uint64_t *)(annot_regs + ANNOT_REG_FEATURES);
}

/* With the task: it may end on another CPU. */
static uint64_t op_of(unsigned kind)
{
    return annot_listens ? kind | (uint64_t)current()->tid << 32 : kind;
}

void annot_op_begin_slow(unsigned kind, va_t start, va_t end, unsigned promise)
{
    uint64_t flags;

    if (!annot_listens) {
        annot_write(ANNOT_REG_OP_BEGIN, kind);
        return;
    }
    /* The range is this CPU's, until it begins. */
    flags = local_irq_save();
    annot_write(ANNOT_REG_OP_START, start | promise);
    annot_write(ANNOT_REG_OP_END_ADDR, end);
    annot_write(ANNOT_REG_OP_BEGIN, op_of(kind));
    local_irq_restore(flags);
}

void annot_op_end_slow(unsigned kind)
{
    annot_write(ANNOT_REG_OP_END, op_of(kind));
}
