/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the annotation device. The writes are inline in kernel/annot.h. */
#include "kernel/annot.h"

#include "kernel/board.h"
#include "kernel/printk.h"

volatile uint8_t *annot_regs;

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
}
