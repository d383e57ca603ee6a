/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts a kernel (ELF or arm64 Image) and an initrd into guest RAM, and says
 * where the device tree goes. Files are hostile until checked: every number
 * from one is bounded before it is used, and nothing is written to RAM before
 * everything has been checked.
 */
#ifndef DEV_LOADER_H
#define DEV_LOADER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct ram {
    uint64_t base; /* guest physical */
    uint64_t size; /* bytes */
    uint8_t *host;
};

enum loader_kind {
    LOADER_ELF,
    LOADER_IMAGE,
};

struct loaded_image {
    enum loader_kind kind;
    uint64_t entry;        /* physical */
    uint64_t kernel_start; /* lowest address used */
    uint64_t kernel_end;   /* one past the highest, .bss included */
    uint64_t initrd_start; /* both 0: no initrd */
    uint64_t initrd_end;
    uint64_t dtb; /* LOADER_DTB_MAX bytes are free here, 8-byte aligned */
    char kernel_sha256[65]; /* of the files, in hex */
    char initrd_sha256[65]; /* "" without initrd */
};

#define LOADER_DTB_MAX 0x100000u           /* 1 MiB */
#define LOADER_KERNEL_FILE_MAX 0x20000000u /* 512 MiB, debug info included */

/* initrd may be NULL. */
bool loader_load(const struct ram *ram, const char *kernel, const char *initrd,
                 struct loaded_image *out_image, GError **error);

/* The same with the files' bytes at hand; names are for messages only.
 * initrd may be NULL. */
bool loader_load_bytes(const struct ram *ram, GBytes *kernel,
                       const char *kernel_name, GBytes *initrd,
                       const char *initrd_name, struct loaded_image *out_image,
                       GError **error);

/* Copies the device tree to image->dtb. */
bool loader_place_dtb(const struct ram *ram, const struct loaded_image *image,
                      GBytes *dtb, GError **error);

#endif
