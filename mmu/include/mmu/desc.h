/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation table descriptors: encodings, kinds and permissions.
 *
 * Depends on addr.h. Pure functions, any thread.
 */
#ifndef MMU_DESC_H
#define MMU_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "mmu/addr.h"

/*
 * VMSAv8-64 stage 1, 4 KiB granule, 48-bit addresses:
 *
 *         63 62  61 60  59 58      51 50    48 47          12 11 ...  2 1 0
 *        +--+-----+---+---+----------+--------+--------------+---------+---+
 * table  |NS|APTab|UXN|PXN| ignored  |  RES0  | next table   | ignored |1 1|
 *        +--+-----+---+---+----------+--------+--------------+---------+---+
 *         63     55 54  53  52  51 50         47           n  11 ...  2 1 0
 *        +---------+---+---+---+---+----------+--------------+---------+---+
 * leaf   | ignored |UXN|PXN|Ctg|DBM|  RES0    | output addr  |attribute|x 1|
 *        +---------+---+---+---+---+----------+--------------+---------+---+
 *
 *                11 10 9  8 7     6  5 4       2
 *               +--+--+----+-------+--+---------+
 *  attribute    |nG|AF| SH |AP[2:1]|NS| AttrIndx|
 *               +--+--+----+-------+--+---------+
 *
 * Bits [1:0]: x0 invalid; 11 table (levels 0-2) or page (level 3); 01 block
 * (levels 1 and 2) and reserved, hence invalid, at levels 0 and 3.
 */
#define DESC_VALID (UINT64_C(1) << 0)
#define DESC_TABLE_OR_PAGE (UINT64_C(1) << 1)
#define DESC_ATTR_SHIFT 2
#define DESC_ATTR(index) ((uint64_t)(index) << DESC_ATTR_SHIFT)
#define DESC_AP_EL0 (UINT64_C(1) << 6)       /* AP[1] */
#define DESC_AP_READ_ONLY (UINT64_C(1) << 7) /* AP[2] */
#define DESC_SH_SHIFT 8
#define DESC_SH(sh) ((uint64_t)(sh) << DESC_SH_SHIFT)
#define DESC_AF (UINT64_C(1) << 10)
#define DESC_NG (UINT64_C(1) << 11)
/*
 * Dirty bit modifier: with TCR.HD, AP[2] is not a permission but the page's
 * state: 1 writable-clean, 0 writable-dirty. Ignored without.
 */
#define DESC_DBM (UINT64_C(1) << 51)
#define DESC_CONTIGUOUS (UINT64_C(1) << 52)
#define DESC_PXN (UINT64_C(1) << 53)
#define DESC_UXN (UINT64_C(1) << 54)
#define DESC_PXN_TABLE (UINT64_C(1) << 59)
#define DESC_UXN_TABLE (UINT64_C(1) << 60)
#define DESC_AP_TABLE_NO_EL0 (UINT64_C(1) << 61)   /* APTable[0] */
#define DESC_AP_TABLE_NO_WRITE (UINT64_C(1) << 62) /* APTable[1] */
#define DESC_NS_TABLE (UINT64_C(1) << 63)
#define DESC_HIERARCHY_MASK                                                    \
    (DESC_PXN_TABLE | DESC_UXN_TABLE | DESC_AP_TABLE_NO_EL0 |                  \
     DESC_AP_TABLE_NO_WRITE)
/* Bits [51:48] are RES0 while FEAT_LPA2 is absent, and ignored. */
#define DESC_ADDR_MASK UINT64_C(0x0000fffffffff000)

enum desc_kind {
    DESC_KIND_INVALID = 0, /* valid bit clear, or a reserved encoding */
    DESC_KIND_TABLE,
    DESC_KIND_BLOCK,
    DESC_KIND_PAGE,
};

/* What an access may do, per exception level; no bit for PAN (see walk.h). */
enum perm_bits {
    PERM_R1 = 1 << 0,
    PERM_W1 = 1 << 1,
    PERM_X1 = 1 << 2,
    PERM_R0 = 1 << 3,
    PERM_W0 = 1 << 4,
    PERM_X0 = 1 << 5,
    PERM_ALL = 0x3f,
};

enum desc_kind desc_kind(uint64_t desc, unsigned level);

static inline bool desc_is_leaf(enum desc_kind kind)
{
    return kind == DESC_KIND_BLOCK || kind == DESC_KIND_PAGE;
}

/* Output address of a leaf at that level: bits below its size are dropped. */
gpa_t desc_output(uint64_t desc, unsigned level);

/* Address of the next-level table. */
static inline gpa_t desc_next_table(uint64_t desc)
{
    return desc & DESC_ADDR_MASK;
}

/*
 * PERM_* of a leaf. `hierarchy` is the union of DESC_HIERARCHY_MASK bits of
 * the table descriptors that led to it (0 when HPD says to ignore them).
 * `hd`: dirty state is managed by hardware. Then a leaf with DBM counts as
 * writable in all that follows from it (EL0's W and WXN take X away), but has
 * no W itself while AP[2] says clean; see desc_is_writable_clean().
 */
uint8_t desc_perms(uint64_t desc, uint64_t hierarchy, bool wxn, bool hd);

/* Does this leaf lack W for no other reason than that it is clean? */
bool desc_is_writable_clean(uint64_t desc, uint64_t hierarchy, bool hd);

#endif
