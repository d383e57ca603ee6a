/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential MMU test: addresses that lead somewhere, what is done to
 * them, and the phases. All of it is defined; see mmu_random.c.
 */
#include "mmu_diff.h"

/* The node that a descriptor of that level leads to, or NULL. */
static const struct node *node_below(const struct tables *t, uint64_t desc,
                                     unsigned level)
{
    uint64_t offset = (desc & ADDRESS_MASK) - (uint64_t)node_table;

    if (level == 3 || (desc & 3) != 3 || offset >= sizeof(node_table) / 2) {
        return NULL;
    }
    return &t->node[offset / sizeof(node_table[0])];
}

/* Bits [shift + bits - 1:shift] of *va become those of value. */
static void put_bits(uint64_t *va, unsigned shift, unsigned bits,
                     uint64_t value)
{
    uint64_t mask = ((1ull << bits) - 1) << shift;

    *va = (*va & ~mask) | (value << shift & mask);
}

/* An address that leads somewhere: mostly along entries that were filled. */
static uint64_t structured_address(struct tables *t, unsigned half)
{
    struct rng *r = &t->rng;
    unsigned level = t->start_level[half];
    const struct node *node = node_at(t, half, level, 0);
    unsigned bits = t->root_bits[half];
    uint64_t va = half ? ~0ull : 0;

    put_bits(&va, 0, level_shift(level) + bits, rng_next(r));
    for (;; level++) {
        const uint64_t *entries = node_table[node - t->node];
        unsigned index = rng_one_in(r, 16)
                             ? rng_below(r, 512)
                             : node->index[rng_below(r, node->count)];
        uint64_t desc;

        if (level == t->start_level[half]) {
            index = t->root_offset[half] + (index & ((1u << bits) - 1));
            put_bits(&va, level_shift(level), bits, index);
        } else {
            put_bits(&va, level_shift(level), 9, index);
        }
        desc = entries[index];
        node = node_below(t, desc, level);
        if (!node) {
            /* Most of a large block is not the pool. */
            if (level < 3 && (desc & 3) == 1 && !rng_one_in(r, 8)) {
                put_bits(&va, 0, level_shift(level),
                         POOL + rng_next(r) % POOL_SIZE);
            }
            return va;
        }
    }
}

static uint64_t random_address(struct tables *t)
{
    struct rng *r = &t->rng;
    unsigned half = rng_below(r, 2);
    uint64_t va;

    if (t->walks[half]) {
        va = structured_address(t, half);
    } else {
        va = half ? ~0ull : 0;
        put_bits(&va, 0, 24, rng_next(r));
    }
    if (rng_one_in(r, 6)) {
        put_bits(&va, 56, 8, rng_next(r)); /* a tag */
    }
    if (rng_one_in(r, 24)) {
        va ^= 1ull << (12 + rng_below(r, 52));
    }
    return rng_one_in(r, 64) ? rng_next(r) : va;
}

/*
 * Aligned for its kind; stores go to the upper half of a page and fetches to
 * the lower one, so that no code is ever changed.
 */
static uint64_t place(unsigned kind, uint64_t va)
{
    switch (kind) {
    case KIND_BR:
    case KIND_EL0_EXEC:
        /* Not in the first line, which stores across pages change. */
        return (va & ~0x803ull) | 0x40;
    case KIND_STR:
    case KIND_STTR:
    case KIND_LDADD:
    case KIND_STLXR:
    case KIND_SWP:
    case KIND_CAS:
    case KIND_EL0_STR:
    case KIND_EL0_LDADD:
        return (va | 0x800) & ~7ull;
    case KIND_STP:
        return (va | 0x800) & ~15ull;
    case KIND_ZVA:
    case KIND_EL0_ZVA:
        return va & 0x40 ? va | 0x800 : (va | 0x800) & ~63ull;
    case KIND_CROSS_LDR:
    case KIND_CROSS_STR:
        return (va | 0xfff) - (va & 6);
    case KIND_LDP:
        return va & ~15ull;
    case KIND_LDRB:
        return va;
    default:
        return kind < KIND_ACCESS ? va : va & ~7ull;
    }
}

static void pick_kind(struct rng *r, struct op *op, bool first)
{
    if (first) {
        op->kind = KIND_AT_S1E1R;
    } else if (rng_one_in(r, 4)) {
        op->kind = 1 + rng_below(r, KIND_ACCESS - 1);
    } else {
        op->kind = KIND_ACCESS + rng_below(r, KINDS - KIND_ACCESS);
    }
    op->pstate = (uint32_t)rng_one_in(r, 3) << PSTATE_PAN_BIT |
                 (uint32_t)rng_one_in(r, 4) << PSTATE_UAO_BIT;
    /* Where a table entry leads into the pool it is an invalid descriptor. */
    op->value = rng_next(r) & 0xfefefefefefefefe;
    op->par = op->status = op->esr = op->far = op->elr = op->spsr = op->read =
        op->next_par = 0;
}

/* One that the machine can tell from those of this table before. */
static uint64_t new_asid(struct tables *t, uint64_t *used, unsigned *count)
{
    bool wide = t->regs.tcr & TCR_AS, known;
    uint64_t asid;

    do {
        asid = rng_next(&t->rng) & (wide ? 0xffff : 0xff);
        if (wide && *count && rng_one_in(&t->rng, 4)) {
            asid =
                (used[0] & 0xff) | (asid & 0xff00); /* the upper bits count */
        }
        known = false;
        for (unsigned i = 0; i < *count; i++) {
            known |= used[i] == asid;
        }
    } while (known);
    used[(*count)++] = asid;
    return asid;
}

static uint64_t with_asid(uint64_t ttbr, uint64_t asid)
{
    return (ttbr & ((1ull << 48) - 1)) | asid << 48;
}

static void pick_phases(struct tables *t, struct batch *b)
{
    const uint64_t begin = (uint64_t)node_table, size = sizeof(node_table) / 2;
    const bool a1 = t->regs.tcr & TCR_A1;
    uint64_t used[PHASES + 1];
    unsigned n = 0;
    uint64_t asid = new_asid(t, used, &n), parking = new_asid(t, used, &n);

    for (unsigned i = 0; i < PHASES; i++) {
        struct phase *p = &b->phase[i];
        uint64_t root[2] = {t->regs.ttbr0, t->regs.ttbr1};

        if (i && t->forget[i] == FORGET_NOTHING) {
            if (i == 2 && t->forget[1] == FORGET_NOTHING &&
                !rng_one_in(&t->rng, 4)) {
                asid = used[0]; /* the first tree again, and its ASID */
            } else {
                asid = new_asid(t, used, &n);
            }
        }
        for (unsigned half = 0; half < 2; half++) {
            uint64_t base = root[half] & ((1ull << 48) - 1);

            if (i == 1 && base - begin < size) {
                root[half] += size;
            }
            if (half == a1) {
                root[half] = with_asid(root[half], asid);
            }
        }
        p->ttbr0 = root[0];
        p->ttbr1 = root[1];
        p->asid = asid;
        p->a1 = a1;
        p->parking = parking;
        p->forget = t->forget[i];
        p->shareable = rng_below(&t->rng, 2);
    }
    t->regs.ttbr0 = b->phase[0].ttbr0;
    t->regs.ttbr1 = b->phase[0].ttbr1;
}

void tables_pick(struct tables *t, struct batch *b)
{
    static const uint32_t addresses[PHASES] = {8, 8, 4};
    struct rng *r = &t->rng;
    uint64_t va[8];
    uint32_t n = 0;

    for (unsigned i = 0; i < 8; i++) {
        va[i] = random_address(t);
    }
    pick_phases(t, b);
    for (unsigned i = 0; i < PHASES; i++) {
        struct phase *p = &b->phase[i];

        p->first = n;
        p->count = addresses[i] * OPS_PER_ADDRESS;
        for (; n < p->first + p->count; n++) {
            struct op *op = &b->op[n];

            pick_kind(r, op, n % OPS_PER_ADDRESS == 0);
            op->va = place(op->kind, va[(n - p->first) / OPS_PER_ADDRESS]);
        }
    }
}
