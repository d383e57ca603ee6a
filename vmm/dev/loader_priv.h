/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loader internals: a file is turned into a plan first, and a complete plan
 * is carried out with copies that cannot fail.
 */
#ifndef DEV_LOADER_PRIV_H
#define DEV_LOADER_PRIV_H

#include "dev/loader.h"

struct loader_file {
    const char *name; /* for messages */
    const uint8_t *bytes;
    size_t size;
};

struct loader_segment {
    uint64_t guest;       /* physical address */
    const uint8_t *bytes; /* within the file */
    uint64_t file_size;
    uint64_t mem_size; /* >= file_size; the rest is zeroed */
};

struct loader_plan {
    enum loader_kind kind;
    uint64_t entry;
    uint64_t start, end; /* hull of the segments */
    GArray *segments;    /* struct loader_segment, none empty */
};

/* [addr, addr + size) is in RAM; size 0 never is. */
static inline bool loader_ram_has(const struct ram *ram, uint64_t addr,
                                  uint64_t size)
{
    return size != 0 && addr >= ram->base && addr - ram->base < ram->size &&
           size <= ram->size - (addr - ram->base);
}

/* Appends a segment; fails if it leaves RAM or overlaps another. */
bool loader_plan_add(struct loader_plan *plan, const struct ram *ram,
                     const struct loader_file *file,
                     const struct loader_segment *segment, GError **error);

/* --- loader_elf.c --- */
bool loader_plan_elf(struct loader_plan *plan, const struct ram *ram,
                     const struct loader_file *file, GError **error);

/* --- loader_image.c --- */
bool loader_is_image(const struct loader_file *file);
bool loader_plan_image(struct loader_plan *plan, const struct ram *ram,
                       const struct loader_file *file, GError **error);

/* A printf format for a 64-bit number in hexadecimal. */
#define HEX64 "0x%" G_GINT64_MODIFIER "x"

#endif
