/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The symbol table of an ELF file, and look-ups in it. */
#include "fuzz.h"

#include <string.h>

#include "obs/symbols.h"

static void look_up(const struct symbols *symbols, uint64_t pc)
{
    struct symbol found, again;
    char text[64];

    if (symbols_find(symbols, pc, &found)) {
        FUZZ_CHECK(found.size && pc >= found.start &&
                       pc - found.start < found.size && found.name[0],
                   "%" G_GINT64_MODIFIER "x is not in %s", pc, found.name);
        /* A name may be given twice; it is some symbol then. */
        FUZZ_CHECK(symbols_by_name(symbols, found.name, &again) &&
                       strcmp(again.name, found.name) == 0,
                   "no %s by name", found.name);
    }
    FUZZ_CHECK(symbols_format(symbols, pc, text, sizeof(text)) == text &&
                   memchr(text, '\0', sizeof(text)),
               "text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    struct symbols *symbols = symbols_load(fuzz_file(data, size), &error);

    FUZZ_CHECK_ERROR(symbols != NULL, error);
    if (symbols) {
        for (size_t i = 0; i + 8 <= size && i < 4096; i += 8) {
            uint64_t pc;

            memcpy(&pc, data + i, sizeof(pc));
            look_up(symbols, pc);
        }
        look_up(symbols, 0);
        look_up(symbols, UINT64_MAX);
        symbols_free(symbols);
    }
    g_clear_error(&error);
    return 0;
}
