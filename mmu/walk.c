/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stage 1 walk, one descriptor at a time. Pure but for the walk cache and
 * the cas64 that a caller may hand in.
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

static struct translation leaf_translation(const struct regime *regime,
                                           uint64_t desc,
                                           const struct walk_position *at)
{
    return (struct translation){
        .base = desc_output(desc, at->level),
        .page_shift = (uint8_t)mmu_level_shift(at->level),
        .level = (uint8_t)at->level,
        .perms = desc_perms(desc, at->hierarchy, regime->wxn, regime->hd),
        .attr_index = (desc >> DESC_ATTR_SHIFT) & 7,
        .sh = (desc >> DESC_SH_SHIFT) & 3,
        .global = !(desc & DESC_NG),
        .dbm = desc_is_writable_clean(desc, at->hierarchy, regime->hd),
    };
}

/*
 * Judges the leaf result->desc, for a walk or (`write` is not NULL) for the
 * write of walk_mark_dirty(). False: it changed in memory before it could be
 * updated, and nothing was decided.
 */
static bool leaf(const struct regime *regime, const struct walk_mem *mem,
                 const struct walk_position *at, const struct access *write,
                 struct walk_result *result)
{
    uint64_t desc = result->desc;

    if (desc_output(desc, at->level) >> regime->pa_bits) {
        result->fault = WALK_FAULT_ADDRESS_SIZE;
        return true;
    }
    if (!(desc & DESC_AF)) {
        if (!regime->ha || !mem->cas64) {
            result->fault = WALK_FAULT_ACCESS_FLAG;
            return true;
        }
        desc |= DESC_AF;
    }
    result->t = leaf_translation(regime, desc, at);
    if (write && mem->cas64 && translation_needs_dirty(&result->t, write)) {
        desc &= ~DESC_AP_READ_ONLY;
        result->t = leaf_translation(regime, desc, at);
    }
    if (desc != result->desc) {
        if (!mem->cas64(mem->opaque, result->desc_address, result->desc,
                        desc)) {
            return false;
        }
        result->new_desc = desc;
    }
    if (write) {
        result->fault = translation_check(&result->t, write);
    }
    return true;
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

static struct walk_result
walk_tables(const struct regime *regime, const struct regime_half *half,
            const struct walk_mem *mem, struct walk_cache *wc, gva_t va,
            const struct access *write, struct walk_position at)
{
    struct walk_result result = {0};
    unsigned tries = 0;

    /*
     * Ends: level rises, no descriptor of level 3 is a table, and the times
     * that a leaf is read again are counted.
     */
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
        result.desc = result.new_desc = desc;
        result.desc_address = address;
        kind = desc_kind(desc, at.level);
        if (kind == DESC_KIND_INVALID) {
            result.fault = WALK_FAULT_TRANSLATION;
            return result;
        }
        if (kind != DESC_KIND_TABLE) {
            if (leaf(regime, mem, &at, write, &result)) {
                return result;
            }
            if (++tries == WALK_UPDATE_TRIES) {
                result.fault = WALK_FAULT_EXTERNAL;
                return result;
            }
            result.tables--; /* the same one again */
            continue;
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

static struct walk_result walk(const struct regime *regime,
                               const struct walk_mem *mem,
                               struct walk_cache *wc, gva_t va,
                               const struct access *write)
{
    struct walk_result result = {.fault = WALK_FAULT_TRANSLATION};
    const struct regime_half *half;
    const struct walk_cache_entry *known;
    struct walk_position at = {0};

    /* Tags are removed by TBI whether or not the MMU is on. */
    va = regime_canonical(regime, va);
    if (!regime->mmu_on) {
        return walk_flat(va);
    }
    if (!regime_select(regime, va, &half) || half->epd) {
        return result;
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
        result.fault = WALK_FAULT_ADDRESS_SIZE;
        return result;
    }
    return walk_tables(regime, half, mem, wc, va, write, at);
}

struct walk_result walk_stage1_from(const struct regime *regime,
                                    const struct walk_mem *mem,
                                    struct walk_cache *wc, gva_t va)
{
    return walk(regime, mem, wc, va, NULL);
}

struct walk_result walk_stage1(const struct regime *regime,
                               const struct walk_mem *mem, gva_t va)
{
    return walk(regime, mem, NULL, va, NULL);
}

enum walk_fault walk_mark_dirty(const struct regime *regime,
                                const struct walk_mem *mem,
                                struct walk_cache *wc, gva_t va,
                                const struct access *access,
                                struct walk_result *out)
{
    *out = walk(regime, mem, wc, va, access);
    return out->fault;
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

bool translation_needs_dirty(const struct translation *t,
                             const struct access *access)
{
    struct translation dirty = *t;

    if (!t->dbm || access->type != ACCESS_WRITE) {
        return false;
    }
    /* EL0 can read what AP[1] lets it reach, and write that when dirty. */
    dirty.perms |= PERM_W1 | (t->perms & PERM_R0 ? PERM_W0 : 0);
    return translation_check(&dirty, access) == WALK_OK;
}
