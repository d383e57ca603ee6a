/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential MMU test: random tables and registers. All that
 * it makes is defined for the features that both machines have; what it leaves
 * out for that reason is listed in docs/CONFORMANCE.md.
 */
#include "mmu_diff.h"

#define TCR_EPD(half) (1ull << ((half) ? 23 : 7))
#define TCR_TBI(half) (1ull << (37 + (half)))
#define TCR_HPD(half) (1ull << (41 + (half)))
#define TCR_TSZ(half, size) ((uint64_t)(size) << ((half) ? 16 : 0))
#define TCR_WBWA_ISH(half) (0x3500ull << ((half) ? 16 : 0))
#define TCR_TG1_4K (2ull << 30)
#define TCR_IPS(n) ((uint64_t)(n) << 32)

/* RES1 (SPAN is one of them), DZE, I, C, M */
#define SCTLR_B 0x30d05805ull
#define SCTLR_WXN (1ull << 19)

#define DESC_AF (1ull << 10)
#define DESC_SH(sh) ((uint64_t)(sh) << 8)
#define DESC_LOW_IGNORED 0xcfcull        /* of a table descriptor */
#define DESC_SOFTWARE (0xfull << 55)     /* of a leaf */
#define DESC_TOP_IGNORED (0x1full << 59) /* of a leaf */
#define DESC_TABLE_IGNORED (0x7full << 52 | 1ull << 51) /* of a table */
#define DESC_NS_TABLE (1ull << 63)
#define DESC_DBM (1ull << 51)
#define DESC_NS (1ull << 5)

uint64_t node_table[2 * NODES][512] __attribute__((aligned(4096)));

static const uint64_t *home_entry;
static unsigned home_count;

static const uint8_t ips_bits[] = {32, 36, 40, 42, 44, 48};

static uint64_t *table_of(struct tables *t, const struct node *node)
{
    return node_table[node - t->node];
}

void tables_set_home(const uint64_t *entries, unsigned count)
{
    home_entry = entries;
    home_count = count;
}

/*
 * An address beyond many output sizes, where neither machine has anything: not
 * in the lowest 4 GiB, nor where QEMU has PCIe and more redistributors.
 */
static uint64_t far_address(struct rng *r)
{
    uint64_t a = rng_next(r) & ADDRESS_MASK;

    if (rng_one_in(r, 2)) {
        a = (a & 0xfffffffff) | 1ull << (32 + rng_below(r, 16));
    }
    return a >= VOID_BASE && (a < VOID_END || a >= DEVICES_END)
               ? a
               : a | DEVICES_END;
}

static uint64_t void_address(struct rng *r)
{
    return VOID_BASE + (rng_next(r) % (VOID_END - VOID_BASE) & ~0xfffull);
}

static uint64_t leaf_output(struct rng *r, unsigned level)
{
    uint64_t size = 1ull << level_shift(level);
    unsigned kind = rng_below(r, 32);
    uint64_t a;

    if (kind == 0) {
        a = void_address(r);
    } else if (kind < 4) {
        a = far_address(r);
    } else {
        a = POOL + (rng_next(r) % POOL_SIZE & ~0xfffull);
    }
    a &= ~(size - 1);
    /* RES0 bits of a block's address: ignored. Not bit 16, which is nT. */
    if (level < 3 && rng_one_in(r, 4)) {
        a |= rng_next(r) & (size - 1) & ~0x1ffffull;
    }
    return a;
}

/* Device, and Normal that is not cacheable. */
static bool is_outer_shareable(uint8_t attr)
{
    return attr < 0x10 || attr == 0x44;
}

static uint64_t leaf(struct tables *t, unsigned level)
{
    static const uint8_t sh[] = {0, 2, 3, 3};
    struct rng *r = &t->rng;
    uint64_t d = leaf_output(r, level) | (level == 3 ? 3 : 1);
    unsigned index = rng_one_in(r, 3) ? rng_below(r, 8) : 1;
    uint8_t attr = (uint8_t)(t->regs.mair >> (index * 8));

    if (!rng_one_in(r, 12)) {
        d |= DESC_AF;
    }
    d |= (uint64_t)index << 2;
    /* What PAR says for these, whatever the descriptor says. */
    d |= is_outer_shareable(attr) ? DESC_SH(2) : DESC_SH(sh[rng_below(r, 4)]);
    d |= (uint64_t)rng_below(r, 4) << 6; /* AP */
    d |= rng_next(r) & (MAP_NG | DESC_NS);
    if (rng_one_in(r, 3)) {
        d |= MAP_UXN;
    }
    if (rng_one_in(r, 3)) {
        d |= MAP_PXN;
    }
    if (rng_one_in(r, 4)) {
        d |= rng_next(r) & (DESC_SOFTWARE | DESC_TOP_IGNORED | DESC_DBM);
    }
    return t->no_globals ? d | MAP_NG : d;
}

/*
 * A table that is not the one for its place: of another level, of the other
 * half, on a loop. But the home's last table maps code, and code must not be
 * walked: so walks reach tables of the home's half at their own level or
 * deeper, never before.
 */
static unsigned odd_table(struct tables *t, unsigned half, unsigned level)
{
    unsigned n = rng_below(&t->rng, NODES);
    unsigned to_half = n / (4 * NODES_PER_LEVEL);
    unsigned to_level = n / NODES_PER_LEVEL % 4;

    if (to_half != t->home || to_level <= (half == t->home ? level + 1 : 1)) {
        return n;
    }
    return (half * 4 + level + 1) * NODES_PER_LEVEL;
}

static uint64_t table(struct tables *t, unsigned half, unsigned level)
{
    struct rng *r = &t->rng;
    unsigned kind = rng_below(r, 64);
    uint64_t d;

    if (kind < 3) {
        d = far_address(r);
    } else if (kind < 5) {
        d = void_address(r);
    } else if (kind < 12) {
        d = (uint64_t)node_table[odd_table(t, half, level)];
    } else {
        d = (uint64_t)table_of(
            t, node_at(t, half, level + 1, rng_below(r, NODES_PER_LEVEL)));
    }
    /* SH too is ignored, but the page may be read at level 3, as a leaf. */
    d |= 3 | DESC_SH(2);
    for (unsigned bit = 59; bit <= 62; bit++) { /* PXN, UXN, APTable */
        d |= (uint64_t)rng_one_in(r, 8) << bit;
    }
    if (rng_one_in(r, 4)) {
        d |= rng_next(r) &
             (DESC_LOW_IGNORED | DESC_TABLE_IGNORED | DESC_NS_TABLE);
    }
    /* As a leaf, again. */
    return t->no_globals ? d | MAP_NG : d;
}

static uint64_t descriptor(struct tables *t, unsigned half, unsigned level)
{
    struct rng *r = &t->rng;
    unsigned kind = rng_below(r, 32);

    if (kind == 0) {
        return rng_next(r) & ~1ull;
    }
    if (kind == 1 && level == 3) {
        return leaf(t, 3) & ~2ull; /* reserved, so invalid */
    }
    if (level == 3 || (level > 0 && kind < 12)) {
        return leaf(t, level);
    }
    return table(t, half, level);
}

static void fill(struct tables *t, unsigned half, unsigned level,
                 unsigned which)
{
    struct node *node = node_at(t, half, level, which);
    uint64_t *entries = table_of(t, node);
    unsigned first = 0, size = 512;

    for (unsigned i = 0; i < 512; i++) {
        entries[i] = 0;
    }
    node->level = level;
    node->count = 4 + rng_below(&t->rng, NODE_ENTRIES - 4);
    if (which == 0 && level == t->start_level[half] &&
        !rng_one_in(&t->rng, 4)) {
        first = t->root_offset[half];
        size = 1u << t->root_bits[half];
    }
    for (unsigned i = 0; i < node->count; i++) {
        unsigned index = first + rng_below(&t->rng, size);

        node->index[i] = (uint16_t)index;
        entries[index] = descriptor(t, half, level);
    }
}

/* Index of the home in a table of that level of its half. */
static unsigned home_index(const struct tables *t, unsigned level)
{
    uint64_t va = t->home ? HOME_HIGH : HOME_LOW;
    unsigned index = (unsigned)(va >> level_shift(level)) & 511;

    if (level == t->start_level[t->home]) {
        index = t->root_offset[t->home] +
                (index & ((1u << t->root_bits[t->home]) - 1));
    }
    return index;
}

/* Overwrites what is in the way. */
static void link_home(struct tables *t, unsigned tree)
{
    uint64_t(*nodes)[512] = &node_table[tree * NODES];

    for (unsigned level = t->start_level[t->home]; level < 3; level++) {
        nodes[node_at(t, t->home, level, 0) - t->node][home_index(t, level)] =
            (uint64_t)nodes[node_at(t, t->home, level + 1, 0) - t->node] |
            MAP_VALID | DESC_SH(2) | (t->no_globals ? MAP_NG : 0);
    }
    for (unsigned i = 0; i < home_count; i++) {
        if (home_entry[i]) {
            nodes[node_at(t, t->home, 3, 0) - t->node][i] = home_entry[i];
        }
    }
}

/* The second tree: most of its tables are its own, half of its leaves new. */
static void build_second(struct tables *t)
{
    const uint64_t begin = (uint64_t)node_table, size = sizeof(node_table) / 2;

    for (unsigned n = 0; n < NODES; n++) {
        unsigned half = n / (4 * NODES_PER_LEVEL);
        uint64_t *to = node_table[NODES + n];

        for (unsigned i = 0; i < 512; i++) {
            to[i] = 0;
        }
        for (unsigned i = 0; i < t->node[n].count; i++) {
            unsigned index = t->node[n].index[i];
            uint64_t d = node_table[n][index];
            bool inner = (d & 3) == 3 && (d & ADDRESS_MASK) - begin < size;

            if (rng_one_in(&t->rng, inner ? 8 : 2)) {
                d = descriptor(t, half, t->node[n].level);
            } else if (inner) {
                d += size;
            }
            to[index] = d;
        }
    }
}

static uint64_t random_mair(struct rng *r)
{
    static const uint8_t attr[] = {0x00, 0x04, 0x08, 0x0c, 0x44, 0xff,
                                   0xbb, 0x4f, 0xf4, 0x77, 0xee, 0x99};
    uint64_t mair = 0;

    for (unsigned i = 0; i < 8; i++) {
        uint64_t byte = attr[rng_below(r, sizeof(attr))];

        mair |= (i == 1 ? 0xff : byte) << (i * 8);
    }
    return mair;
}

/* TxSZ, and where the root of that half is. Returns TTBR without ASID. */
static uint64_t random_half(struct tables *t, unsigned half)
{
    struct rng *r = &t->rng;
    unsigned size = 16 + rng_below(r, 24), bits = 64 - size;
    unsigned levels = (bits - 12 + 8) / 9, slots;

    t->regs.tcr |= TCR_TSZ(half, size) | TCR_WBWA_ISH(half);
    if (rng_one_in(r, 2)) {
        t->regs.tcr |= TCR_TBI(half);
    }
    if (rng_one_in(r, 3)) {
        t->regs.tcr |= TCR_HPD(half);
    }
    t->start_level[half] = 4 - levels;
    t->root_bits[half] = bits - level_shift(4 - levels);
    slots = 512u >> t->root_bits[half];
    t->root_offset[half] = rng_below(r, slots) << t->root_bits[half];
    t->walks[half] = true;
    if (half != t->home) {
        unsigned kind = rng_below(r, 16);

        if (kind == 0) {
            t->regs.tcr |= TCR_EPD(half);
        } else if (kind == 1) {
            t->walks[half] = false;
            return rng_one_in(r, 2) ? far_address(r) : void_address(r);
        }
    }
    return (uint64_t)&table_of(
        t, node_at(t, half, 4 - levels, 0))[t->root_offset[half]];
}

static void random_registers(struct tables *t)
{
    struct rng *r = &t->rng;
    uint64_t root[2];

    t->home = rng_below(r, 2);
    t->regs.tcr = TCR_TG1_4K | TCR_IPS(rng_below(r, sizeof(ips_bits)));
    if (rng_one_in(r, 2)) {
        t->regs.tcr |= TCR_A1;
    }
    if (rng_one_in(r, 2)) {
        t->regs.tcr |= TCR_AS;
    }
    for (unsigned half = 0; half < 2; half++) {
        root[half] = random_half(t, half) | (uint64_t)rng_below(r, 0x10000)
                                                << 48;
    }
    t->regs.ttbr0 = root[0];
    t->regs.ttbr1 = root[1];
    t->regs.mair = random_mair(r);
    t->regs.sctlr = SCTLR_B | (rng_one_in(r, 3) ? SCTLR_WXN : 0);
}

void tables_build(struct tables *t, uint64_t seed, uint64_t number)
{
    rng_start(&t->rng, seed, number);
    t->no_globals = false;
    for (unsigned i = 1; i < PHASES; i++) {
        t->forget[i] = rng_below(&t->rng, FORGETS);
        t->no_globals |= t->forget[i] <= FORGET_ASID;
    }
    random_registers(t);
    for (unsigned half = 0; half < 2; half++) {
        for (unsigned level = 0; level < 4; level++) {
            for (unsigned i = 0; i < NODES_PER_LEVEL; i++) {
                fill(t, half, level, i);
            }
        }
    }
    build_second(t);
    link_home(t, 0);
    link_home(t, 1);
}

void tables_print(const struct tables *t)
{
    print("  sctlr %x tcr %x mair %x\n", t->regs.sctlr, t->regs.tcr,
          t->regs.mair);
    print("  home %u\n", (uint64_t)t->home);
    for (unsigned n = 0; n < 2 * NODES; n++) {
        for (unsigned i = 0; i < 512; i++) {
            if (node_table[n][i]) {
                print("  desc %x %x\n", (uint64_t)&node_table[n][i],
                      node_table[n][i]);
            }
        }
    }
}
