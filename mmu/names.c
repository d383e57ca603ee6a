/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Enumerators as text. Pure; every string is static. */
#include "mmu/names.h"

#include <stddef.h>

#define NAME_OF(table, value)                                                  \
    ((size_t)(value) < sizeof(table) / sizeof((table)[0]) ? (table)[value]     \
                                                          : "?")

const char *walk_fault_name(enum walk_fault fault)
{
    static const char *const names[] = {
        [WALK_OK] = "ok",
        [WALK_FAULT_TRANSLATION] = "translation",
        [WALK_FAULT_ADDRESS_SIZE] = "address-size",
        [WALK_FAULT_ACCESS_FLAG] = "access-flag",
        [WALK_FAULT_PERMISSION] = "permission",
        [WALK_FAULT_EXTERNAL] = "external",
    };

    return NAME_OF(names, fault);
}

const char *access_type_name(enum access_type type)
{
    static const char *const names[] = {
        [ACCESS_READ] = "read",
        [ACCESS_WRITE] = "write",
        [ACCESS_EXEC] = "exec",
    };

    return NAME_OF(names, type);
}

const char *desc_kind_name(enum desc_kind kind)
{
    static const char *const names[] = {
        [DESC_KIND_INVALID] = "invalid",
        [DESC_KIND_TABLE] = "table",
        [DESC_KIND_BLOCK] = "block",
        [DESC_KIND_PAGE] = "page",
    };

    return NAME_OF(names, kind);
}

const char *tlb_replacement_name(enum tlb_replacement replacement)
{
    static const char *const names[] = {
        [TLB_LRU] = "lru",
        [TLB_FIFO] = "fifo",
        [TLB_RANDOM] = "random",
    };

    return NAME_OF(names, replacement);
}

const char *page_shift_name(unsigned page_shift)
{
    switch (page_shift) {
    case 12:
        return "4KiB";
    case 21:
        return "2MiB";
    case 30:
        return "1GiB";
    default:
        return "?";
    }
}

void perm_text(uint8_t perms, char out[PERM_TEXT_SIZE])
{
    static const char letters[] = "rwx";

    for (unsigned i = 0; i < 3; i++) {
        out[i] = perms & (PERM_R1 << i) ? letters[i] : '-';
        out[4 + i] = perms & (PERM_R0 << i) ? letters[i] : '-';
    }
    out[3] = '/';
    out[7] = '\0';
}
