/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translation table descriptors: kinds and permissions. Pure. */
#include "mmu/desc.h"

enum desc_kind desc_kind(uint64_t desc, unsigned level)
{
    if (!(desc & DESC_VALID)) {
        return DESC_KIND_INVALID;
    }
    if (desc & DESC_TABLE_OR_PAGE) {
        return level == 3 ? DESC_KIND_PAGE : DESC_KIND_TABLE;
    }
    return level == 1 || level == 2 ? DESC_KIND_BLOCK : DESC_KIND_INVALID;
}

gpa_t desc_output(uint64_t desc, unsigned level)
{
    gpa_t offset_mask = (UINT64_C(1) << mmu_level_shift(level)) - 1;

    return desc & DESC_ADDR_MASK & ~offset_mask;
}

/*
 *  AP[2:1]   EL1   EL0        APTable[1:0]
 *    00      RW    --           x1   as if AP[1] were 0: nothing for EL0
 *    01      RW    RW           1x   as if AP[2] were 1: no writes
 *    10      RO    --
 *    11      RO    RO
 *
 * Execution: UXN for EL0 and PXN for EL1, each also set by its table bit. What
 * EL0 can write EL1 never executes, and with WXN what a level can write that
 * level does not execute. EL0 may execute what it cannot read.
 *
 * Under HD a set DBM makes AP[2] count as 0 in the table above. So marking a
 * clean page dirty changes W and nothing else.
 */
uint8_t desc_perms(uint64_t desc, uint64_t hierarchy, bool wxn, bool hd)
{
    bool clean = desc_is_writable_clean(desc, hierarchy, hd);
    bool el0 = (desc & DESC_AP_EL0) && !(hierarchy & DESC_AP_TABLE_NO_EL0);
    bool writable = clean || (!(desc & DESC_AP_READ_ONLY) &&
                              !(hierarchy & DESC_AP_TABLE_NO_WRITE));
    bool uxn = (desc & DESC_UXN) || (hierarchy & DESC_UXN_TABLE);
    bool pxn = (desc & DESC_PXN) || (hierarchy & DESC_PXN_TABLE);
    uint8_t perms = PERM_R1;

    if (writable) {
        perms |= PERM_W1;
    }
    if (el0) {
        perms |= PERM_R0;
    }
    if (el0 && writable) {
        perms |= PERM_W0;
    }
    if (!pxn && !(perms & PERM_W0) && !(wxn && (perms & PERM_W1))) {
        perms |= PERM_X1;
    }
    if (!uxn && !(wxn && (perms & PERM_W0))) {
        perms |= PERM_X0;
    }
    return clean ? perms & (uint8_t) ~(PERM_W1 | PERM_W0) : perms;
}

bool desc_is_writable_clean(uint64_t desc, uint64_t hierarchy, bool hd)
{
    return hd && (desc & DESC_DBM) && (desc & DESC_AP_READ_ONLY) &&
           !(hierarchy & DESC_AP_TABLE_NO_WRITE);
}
