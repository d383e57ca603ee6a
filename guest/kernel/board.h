/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the device tree says about the machine; filled once by dtb_parse(). */
#ifndef KERNEL_BOARD_H
#define KERNEL_BOARD_H

#include "kernel/cpumask.h"
#include "kernel/types.h"

#define BOARD_MAX_RANGES 8

struct board_range {
    pa_t start, end;
};

enum psci_conduit {
    PSCI_NONE,
    PSCI_HVC,
    PSCI_SMC,
};

struct board {
    struct board_range memory[BOARD_MAX_RANGES]; /* by address */
    uint32_t memory_node[BOARD_MAX_RANGES];      /* numa-node-id, or 0 */
    unsigned memory_count;
    struct board_range reserved[BOARD_MAX_RANGES];
    unsigned reserved_count;
    struct board_range gicr[2];
    unsigned gicr_count;
    pa_t gicd;
    pa_t uart;
    pa_t annot; /* 0: none */
    pa_t dtb, dtb_end;
    pa_t initrd, initrd_end;
    enum psci_conduit psci;
    unsigned cpus;
    uint64_t mpidr[MAX_CPUS];
    uint32_t cpu_node[MAX_CPUS]; /* numa-node-id, or 0 */
    const char *bootargs;        /* inside the device tree */
};

extern struct board board; /* [init] */

/* The blob at va (linear map); false and a message if it makes no sense. */
bool dtb_parse(const void *blob, struct board *out);

/* --- kernel/linmap.c --- */
/* Maps all RAM and the second GICR region; unmaps what is not RAM. */
void linmap_init(const struct board *b);

#endif
