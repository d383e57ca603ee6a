/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of enumerators and a readable form of permissions, for logs and tests.
 *
 * Depends on the other headers of mmu. Any thread; strings are static.
 */
#ifndef MMU_NAMES_H
#define MMU_NAMES_H

#include <stdint.h>

#include "mmu/desc.h"
#include "mmu/tlb.h"
#include "mmu/walk.h"

const char *walk_fault_name(enum walk_fault fault);
const char *access_type_name(enum access_type type);
const char *desc_kind_name(enum desc_kind kind);
const char *tlb_replacement_name(enum tlb_replacement replacement);
/* "4KiB", "2MiB", "1GiB" for 12, 21, 30; "?" otherwise. */
const char *page_shift_name(unsigned page_shift);

/* "rwx/r--": EL1, then EL0. */
#define PERM_TEXT_SIZE 8
void perm_text(uint8_t perms, char out[PERM_TEXT_SIZE]);

#endif
