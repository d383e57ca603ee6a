/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB maintenance operations: operands and predicates.
 *
 * Hints are honoured literally, as hardware may: an operation removes only
 * what its operand names.
 *
 *  - TTL names the level of the leaf. A leaf of another level stays. A table
 *    entry goes only when it is above that leaf; one at or below the hinted
 *    level cannot lead to such a leaf, so hardware need not look for it.
 *  - A hint or a range for another granule than 4 KiB names nothing.
 *  - A range with a hint must begin aligned to a block of that level, or it
 *    names nothing.
 *  - Table entries match by ASID always, also in the high half, because they
 *    have no nG bit. VAA forms match any ASID.
 */
#include "mmu/tlbi.h"

#include <stddef.h>

#include "mmu/tlb.h"

/*
 * Operand of the VA forms:
 *
 *   63     48 47   44 43               0
 *  +---------+-------+------------------+
 *  |  ASID   |  TTL  |    VA[55:12]     |
 *  +---------+-------+------------------+
 *
 * TTL: 00xx no hint, 01LL 4 KiB granule and leaf level LL, 10xx 16 KiB, 11xx
 * 64 KiB. LL of 00 is reserved and read as no hint.
 *
 * Operand of the range forms:
 *
 *   63     48 47 46 45   44 43  39 38 37 36              0
 *  +---------+-----+-------+------+-----+-----------------+
 *  |  ASID   | TG  | SCALE |  NUM | TTL | BaseADDR[48:12] |
 *  +---------+-----+-------+------+-----+-----------------+
 *
 * Bytes: (NUM + 1) << (5 * SCALE + 1), times the granule. TG: 1 is 4 KiB.
 */
#define XT_ASID_SHIFT 48
#define XT_TTL_SHIFT 44
#define XT_VA_BITS 44
#define XT_RANGE_TG_SHIFT 46
#define XT_RANGE_SCALE_SHIFT 44
#define XT_RANGE_NUM_SHIFT 39
#define XT_RANGE_TTL_SHIFT 37
#define XT_RANGE_BASE_BITS 37
#define XT_GRANULE_4K 1

static uint64_t sign_extend(uint64_t value, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);

    value &= (sign << 1) - 1;
    return (value ^ sign) - sign;
}

static void decode_va(uint64_t xt, struct tlbi_op *op)
{
    unsigned ttl = (xt >> XT_TTL_SHIFT) & 15;
    unsigned granule = ttl >> 2, level = ttl & 3;

    op->va = sign_extend(xt, XT_VA_BITS) << MMU_PAGE_SHIFT;
    op->size = MMU_PAGE_SIZE;
    if (granule == 0 || level == 0) {
        return;
    }
    op->ttl_level = (uint8_t)level;
    if (granule != XT_GRANULE_4K) {
        op->size = 0;
    }
}

static void decode_range(uint64_t xt, struct tlbi_op *op)
{
    unsigned granule = (xt >> XT_RANGE_TG_SHIFT) & 3;
    unsigned scale = (xt >> XT_RANGE_SCALE_SHIFT) & 3;
    unsigned level = (xt >> XT_RANGE_TTL_SHIFT) & 3;
    uint64_t num = (xt >> XT_RANGE_NUM_SHIFT) & 31;

    op->is_range = true;
    op->va = sign_extend(xt, XT_RANGE_BASE_BITS) << MMU_PAGE_SHIFT;
    op->ttl_level = (uint8_t)level;
    op->size = ((num + 1) << (5 * scale + 1)) << MMU_PAGE_SHIFT;
    if (granule != XT_GRANULE_4K ||
        (level && (op->va & ((UINT64_C(1) << mmu_level_shift(level)) - 1)))) {
        op->size = 0;
    }
}

/* CRm gives the scope and the operand's form; false for another CRm. */
static bool decode_crm(unsigned crm, struct tlbi_op *op)
{
    switch (crm) {
    case 1:
    case 5:
        op->scope = TLBI_OS;
        break;
    case 2:
    case 3:
        op->scope = TLBI_IS;
        break;
    case 6:
    case 7:
        op->scope = TLBI_LOCAL;
        break;
    default:
        return false;
    }
    op->is_range = crm == 2 || crm == 5 || crm == 6;
    return true;
}

bool tlbi_decode(unsigned op1, unsigned crn, unsigned crm, unsigned op2,
                 uint64_t xt, bool asid16, struct tlbi_op *out)
{
    struct tlbi_op op = {0};
    uint16_t asid = (uint16_t)(xt >> XT_ASID_SHIFT);

    if (op1 != 0 || crn != 8 || !decode_crm(crm, &op)) {
        return false;
    }
    switch (op2) {
    case 0:
        op.kind = TLBI_ALL;
        break;
    case 2:
        op.kind = TLBI_ASID;
        break;
    case 1:
    case 5:
        op.kind = TLBI_VA;
        break;
    case 3:
    case 7:
        op.kind = TLBI_VAA;
        break;
    default:
        return false;
    }
    op.last_level = op2 == 5 || op2 == 7;
    if (op.kind == TLBI_ALL || op.kind == TLBI_ASID) {
        if (op.is_range) {
            return false;
        }
    } else if (op.is_range) {
        decode_range(xt, &op);
    } else {
        decode_va(xt, &op);
    }
    if (op.kind == TLBI_ASID || op.kind == TLBI_VA) {
        op.asid = asid16 ? asid : asid & 0xff;
    }
    *out = op;
    return true;
}

const char *tlbi_name(const struct tlbi_op *op)
{
#define SCOPES(name)                                                           \
    {                                                                          \
        name, name "IS", name "OS"                                             \
    }
    static const char *const whole[2][3] = {SCOPES("VMALLE1"),
                                            SCOPES("ASIDE1")};
    static const char *const by_va[2][2][2][3] = {
        /* [any ASID][last level][range][scope] */
        {{SCOPES("VAE1"), SCOPES("RVAE1")},
         {SCOPES("VALE1"), SCOPES("RVALE1")}},
        {{SCOPES("VAAE1"), SCOPES("RVAAE1")},
         {SCOPES("VAALE1"), SCOPES("RVAALE1")}},
    };
#undef SCOPES

    if (op->kind == TLBI_ALL || op->kind == TLBI_ASID) {
        return whole[op->kind == TLBI_ASID][op->scope];
    }
    return by_va[op->kind == TLBI_VAA][op->last_level][op->is_range][op->scope];
}

void tlbi_widen(struct tlbi_op *op, bool tables, bool operands)
{
    if (op->kind == TLBI_ALL || op->kind == TLBI_ASID) {
        return; /* no operand but the ASID, and tables are in it */
    }
    if (tables) {
        op->last_level = false;
    }
    if (!operands) {
        return;
    }
    op->ttl_level = 0;
    if (op->is_range) {
        /*
         * Not ASIDE1, which leaves the global entries. The last byte of the
         * address space is not in it, but the page that it is in is.
         */
        op->va = 0;
        op->size = UINT64_MAX;
    } else {
        op->size = MMU_PAGE_SIZE;
    }
}

bool tlbi_covers(const struct tlbi_op *op, gva_t va, unsigned shift)
{
    if (op->size == 0) {
        return false;
    }
    /* Differences, as an end address may be 2^64. A range does not wrap. */
    if (va >= op->va) {
        return va - op->va < op->size;
    }
    return op->va - va < UINT64_C(1) << shift;
}

bool tlbi_matches(const struct tlbi_op *op, const struct tlb_entry *entry)
{
    const struct translation *t = &entry->t;

    switch (op->kind) {
    case TLBI_ALL:
        return true;
    case TLBI_ASID:
        return !t->global && entry->asid == op->asid;
    case TLBI_VA:
        if (!t->global && entry->asid != op->asid) {
            return false;
        }
        break;
    case TLBI_VAA:
        break;
    }
    if (op->ttl_level && op->ttl_level != t->level) {
        return false;
    }
    return tlbi_covers(op, entry->va, t->page_shift);
}

bool tlbi_matches_table(const struct tlbi_op *op,
                        const struct walk_cache_entry *entry)
{
    switch (op->kind) {
    case TLBI_ALL:
        return true;
    case TLBI_ASID:
        return entry->asid == op->asid;
    case TLBI_VA:
        if (entry->asid != op->asid) {
            return false;
        }
        break;
    case TLBI_VAA:
        break;
    }
    if (op->last_level || (op->ttl_level && entry->level >= op->ttl_level)) {
        return false;
    }
    return tlbi_covers(op, entry->va, mmu_level_shift(entry->level));
}
