/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of guest addresses, from the symbol table of an ELF file.
 * Immutable once loaded; look-ups from any thread.
 */
#ifndef OBS_SYMBOLS_H
#define OBS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>

struct symbols;

struct symbol {
    const char *name; /* owned by the table */
    uint64_t start;
    uint64_t size; /* never 0: where ELF says 0, up to the next, at most 4K */
};

/* NULL and error: no readable AArch64 ELF64. No symbols at all is no error. */
struct symbols *symbols_load(const char *path, GError **error);
void symbols_free(struct symbols *symbols);

/* True if pc lies in a symbol. symbols may be NULL (false). */
bool symbols_find(const struct symbols *symbols, uint64_t pc,
                  struct symbol *out);
/* The address range of a name; false if there is none. */
bool symbols_by_name(const struct symbols *symbols, const char *name,
                     struct symbol *out);
size_t symbols_count(const struct symbols *symbols);

/* "name+0x1c", or "0xffff..." where nothing is known; returns buf. */
char *symbols_format(const struct symbols *symbols, uint64_t pc, char *buf,
                     size_t size);

#endif
