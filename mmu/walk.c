/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stage 1 walk, one descriptor at a time. Pure but for the walk cache that
 * a caller may hand in.
 */
#include "mmu/walk.h"

#include "mmu/tlb.h"

/* Where a walk stands: the next descriptor is in `table`, of `level`. */
struct walk_position {
    gpa_t table;
    unsigned level;
    uint64_t hierarchy;
};

static struct walk_result walk_flat(gva_t va)
{
    struct walk_result result = {0};

    if (va >> MMU_PA_BITS) {
        result.fault = WALK_FAULT_ADDRESS_SIZE;
        return result;
    }
    result.t = (struct translation){
        .base = va & ~MMU_PAGE_MASK,
        .page_shift = MMU_PAGE_SHIFT,
        .perms = PERM_ALL,
        .sh = 2,
        .global = true,
        .flat = true,
    };
    return result;
}

static gpa_t descriptor_address(const struct regime_half *half,
                                const struct walk_position *at, gva_t va)
{
    unsigned shift = mmu_level_shift(at->level);
    unsigned bits = MMU_LEVEL_BITS;

    /*
     * The first table resolves the bits that are left; those above are copies
     * of VA[55] and must not select an entry.
     */
    if (at->level == half->start_level) {
        bits = 64 - half->tsz - shift;
    }
    return at->table | (((va >> shift) & ((1u << bits) - 1)) << 3);
}

static void leaf(const struct regime *regime, uint64_t desc,
                 const struct walk_position *at, struct walk_result *result)
{
    gpa_t base = desc_output(desc, at->level);

    if (base >> regime->pa_bits) {
        result->fault = WALK_FAULT_ADDRESS_SIZE;
        return;
    }
    if (!(desc & DESC_AF)) {
        result->fault = WALK_FAULT_ACCESS_FLAG;
        return;
    }
    result->t = (struct translation){
        .base = base,
        .page_shift = (uint8_t)mmu_level_shift(at->level),
        .level = (uint8_t)at->level,
        .perms = desc_perms(desc, at->hierarchy, regime->wxn),
        .attr_index = (desc >> DESC_ATTR_SHIFT) & 7,
        .sh = (desc >> DESC_SH_SHIFT) & 3,
        .global = !(desc & DESC_NG),
    };
}

static void remember(struct walk_cache *wc, const struct regime *regime,
                     gva_t va, const struct walk_position *next)
{
    struct walk_cache_entry entry = {
        .va = va,
        .next_table = next->table,
        .hierarchy = next->hierarchy,
        .asid = regime->asid,
        .level = (uint8_t)(next->level - 1),
        .valid = true,
    };

    walk_cache_insert(wc, &entry);
}

static struct walk_result walk_tables(const struct regime *regime,
                                      const struct regime_half *half,
                                      const struct walk_mem *mem,
                                      struct walk_cache *wc, gva_t va,
                                      struct walk_position at)
{
    struct walk_result result = {0};

    /* Ends: level rises, and no descriptor of level 3 is a table. */
    for (;;) {
        gpa_t address = descriptor_address(half, &at, va);
        uint64_t desc;
        enum desc_kind kind;

        result.level = (uint8_t)at.level;
        result.table[result.tables++] = address;
        if (!mem->read64(mem->opaque, address, &desc)) {
            result.fault = WALK_FAULT_EXTERNAL;
            return result;
        }
        result.desc = desc;
        kind = desc_kind(desc, at.level);
        if (kind == DESC_KIND_INVALID) {
            result.fault = WALK_FAULT_TRANSLATION;
            return result;
        }
        if (kind != DESC_KIND_TABLE) {
            leaf(regime, desc, &at, &result);
            return result;
        }
        at.table = desc_next_table(desc);
        if (at.table >> regime->pa_bits) {
            result.fault = WALK_FAULT_ADDRESS_SIZE;
            return result;
        }
        if (!half->hpd) {
            at.hierarchy |= desc & DESC_HIERARCHY_MASK;
        }
        at.level++;
        if (wc) {
            remember(wc, regime, va, &at);
        }
    }
}

struct walk_result walk_stage1_from(const struct regime *regime,
                                    const struct walk_mem *mem,
                                    struct walk_cache *wc, gva_t va)
{
    struct walk_result fault = {.fault = WALK_FAULT_TRANSLATION};
    const struct regime_half *half;
    const struct walk_cache_entry *known;
    struct walk_position at = {0};

    /* Tags are removed by TBI whether or not the MMU is on. */
    va = regime_canonical(regime, va);
    if (!regime->mmu_on) {
        return walk_flat(va);
    }
    if (!regime_select(regime, va, &half) || half->epd) {
        return fault;
    }
    known = wc ? walk_cache_lookup(wc, va, regime->asid) : NULL;
    if (known && known->level >= half->start_level) {
        at.table = known->next_table;
        at.level = known->level + 1u;
        at.hierarchy = known->hierarchy;
    } else if (half->base_fits) {
        at.table = half->base;
        at.level = half->start_level;
    } else {
        fault.fault = WALK_FAULT_ADDRESS_SIZE;
        return fault;
    }
    return walk_tables(regime, half, mem, wc, va, at);
}

struct walk_result walk_stage1(const struct regime *regime,
                               const struct walk_mem *mem, gva_t va)
{
    return walk_stage1_from(regime, mem, NULL, va);
}

enum walk_fault translation_check(const struct translation *t,
                                  const struct access *access)
{
    static const uint8_t needed[3][2] = {
        [ACCESS_READ] = {PERM_R1, PERM_R0},
        [ACCESS_WRITE] = {PERM_W1, PERM_W0},
        [ACCESS_EXEC] = {PERM_X1, PERM_X0},
    };

    if (!(t->perms & needed[access->type][access->el0])) {
        return WALK_FAULT_PERMISSION;
    }
    /*
     * PAN stops EL1 data accesses to what EL0 can read. The flat map has no
     * EL0 permission that PAN could go by.
     */
    if (access->pan && !access->el0 && access->type != ACCESS_EXEC &&
        (t->perms & PERM_R0) && !t->flat) {
        return WALK_FAULT_PERMISSION;
    }
    return WALK_OK;
}
