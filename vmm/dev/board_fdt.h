/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flattened device tree that describes the board to the guest. */
#ifndef DEV_BOARD_FDT_H
#define DEV_BOARD_FDT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct board_fdt_config {
    unsigned cpus;         /* 1..512 */
    uint64_t mem_size;     /* bytes from BOARD_RAM_BASE */
    const char *cmdline;   /* /chosen/bootargs; NULL: none */
    uint64_t initrd_start; /* initrd_end == 0: no initrd */
    uint64_t initrd_end;   /* one past its last byte */
    bool annot;            /* the annotation device is there */
};

/* A command line longer than this is refused (Linux: COMMAND_LINE_SIZE). */
#define BOARD_FDT_CMDLINE_MAX 2048

GBytes *board_fdt_new(const struct board_fdt_config *config, GError **error);

#endif
