/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A random descent through the tables. Pure. */
#include "mmu/prefetch.h"

#define TABLE_ENTRIES 512u

/* The descriptors of one table that lead on. */
struct candidates {
    unsigned count;
    uint16_t index[TABLE_ENTRIES];
    uint64_t desc[TABLE_ENTRIES];
};

static bool leads_on(const struct regime *regime, const struct walk_mem *mem,
                     uint64_t desc, unsigned level)
{
    switch (desc_kind(desc, level)) {
    case DESC_KIND_TABLE:
        return desc_next_table(desc) >> regime->pa_bits == 0;
    case DESC_KIND_BLOCK:
    case DESC_KIND_PAGE:
        return desc_output(desc, level) >> regime->pa_bits == 0 &&
               ((desc & DESC_AF) || (regime->ha && mem->cas64));
    case DESC_KIND_INVALID:
        break;
    }
    return false;
}

static void collect(const struct regime *regime, const struct walk_mem *mem,
                    gpa_t table, unsigned level, unsigned entries,
                    struct candidates *out)
{
    out->count = 0;
    for (unsigned i = 0; i < entries; i++) {
        uint64_t desc;

        if (mem->read64(mem->opaque, table + i * sizeof(desc), &desc) &&
            leads_on(regime, mem, desc, level)) {
            out->index[out->count] = (uint16_t)i;
            out->desc[out->count++] = desc;
        }
    }
}

bool walk_random_leaf(const struct regime *regime, const struct walk_mem *mem,
                      unsigned half, walk_pick_fn *pick, void *opaque,
                      gva_t *out_va)
{
    const struct regime_half *h = &regime->half[half & 1];
    unsigned va_bits = 64u - h->tsz;
    struct candidates found;
    gpa_t table = h->base;
    gva_t va;

    if (!regime->mmu_on || !h->tsz_valid || !h->base_fits || h->epd) {
        return false;
    }
    va = half & 1 ? UINT64_MAX << va_bits : 0;
    for (unsigned level = h->start_level; level < MMU_LEVELS; level++) {
        unsigned shift = mmu_level_shift(level);
        unsigned choice = 0;

        /* Only the first table can be shorter than a page. */
        collect(regime, mem, table, level,
                level == h->start_level ? 1u << (va_bits - shift)
                                        : TABLE_ENTRIES,
                &found);
        if (found.count == 0) {
            return false;
        }
        if (found.count > 1) {
            choice = pick(opaque, found.count);
            choice = choice < found.count ? choice : 0;
        }
        va |= (gva_t)found.index[choice] << shift;
        if (desc_is_leaf(desc_kind(found.desc[choice], level))) {
            *out_va = va;
            return true;
        }
        table = desc_next_table(found.desc[choice]);
    }
    return false;
}
