/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations of one table, in regime B. This code runs at home, so it must
 * not follow a pointer that was made elsewhere; calls are relative.
 */
#include "mmu_diff.h"

#define PAR_F 1ull
#define PAR_PA 0x0000fffffffff000ull
#define PAR_ATTR(par) ((par) >> 56)

static bool is_exec(unsigned kind)
{
    return kind == KIND_BR || kind == KIND_EL0_EXEC;
}

static bool is_zva(unsigned kind)
{
    return kind == KIND_ZVA || kind == KIND_EL0_ZVA;
}

static bool is_rmw(unsigned kind)
{
    return kind == KIND_LDADD || kind == KIND_EL0_LDADD || kind == KIND_SWP ||
           kind == KIND_CAS;
}

static bool is_cross(unsigned kind)
{
    return kind == KIND_CROSS_LDR || kind == KIND_CROSS_STR;
}

static bool in_pool(const struct batch *b, uint64_t par)
{
    uint64_t pa = par & PAR_PA;

    return pa >= b->pool && pa < b->pool + b->pool_size;
}

static bool is_device(uint64_t par)
{
    return PAR_ATTR(par) < 0x10;
}

/* The page after the one that `par` is of, for accesses to both. */
static bool next_page_is_fine(const struct batch *b, struct op *op)
{
    struct op at = {.va = (op->va | 0xfff) + 1, .kind = KIND_AT_S1E1R};

    probe_op(&at);
    op->next_par = at.status == STATUS_DONE ? at.read : PAR_F;
    return at.status != STATUS_DONE || (at.read & PAR_F) ||
           (in_pool(b, at.read) && !is_device(at.read));
}

/*
 * May it be made? Where `par` says that there is a fault, yes. What is left to
 * the implementation is not made: fetches, DC ZVA, atomics and misaligned
 * accesses of device memory; which address of the line FAR names after DC ZVA
 * into the void. An atomic into the void is left out as QEMU makes it of two
 * accesses.
 */
static bool may(const struct batch *b, struct op *op, bool at_trapped)
{
    uint64_t par = op->par;
    uint64_t pa = (par & PAR_PA) | (op->va & 0xfff);
    unsigned kind = op->kind;

    if (kind < KIND_ACCESS || at_trapped || (par & PAR_F)) {
        return true;
    }
    if (is_device(par) && (is_exec(kind) || is_zva(kind) || is_rmw(kind) ||
                           is_cross(kind) || kind == KIND_STLXR)) {
        return false;
    }
    if (pa >= VOID_BASE && pa < VOID_END) {
        return !is_rmw(kind) && !is_cross(kind) &&
               (!is_zva(kind) || pa % 64 == 0);
    }
    return in_pool(b, par) && (!is_cross(kind) || next_page_is_fine(b, op));
}

/* TLBI NAME or NAMEIS, which is all the same to a single CPU. */
#define TLBI(name, shareable, operand)                                         \
    do {                                                                       \
        if (shareable) {                                                       \
            __asm__ volatile("tlbi " name "is, %0" ::"r"(operand) : "memory"); \
        } else {                                                               \
            __asm__ volatile("tlbi " name ", %0" ::"r"(operand) : "memory");   \
        }                                                                      \
    } while (0)

#define RANGE_4K (1ull << 46)
#define VA_FIELD(va) ((va) >> 12 & 0xfffffffffffull)
#define RANGE_FIELD(va) ((va) >> 12 & 0x1fffffffffull)

static void forget_address(const struct phase *p, uint64_t va)
{
    uint64_t asid = p->asid << 48;

    switch ((enum forget)p->forget) {
    case FORGET_VA:
        TLBI("vae1", p->shareable, asid | VA_FIELD(va));
        break;
    case FORGET_VAA:
        TLBI("vaae1", p->shareable, VA_FIELD(va));
        break;
    case FORGET_RANGE:
        TLBI("rvae1", p->shareable, asid | RANGE_4K | RANGE_FIELD(va));
        break;
    case FORGET_RANGE_A:
        TLBI("rvaae1", p->shareable, RANGE_4K | RANGE_FIELD(va));
        break;
    case FORGET_NOTHING:
    case FORGET_ASID:
    case FORGET_ALL:
    case FORGETS:
        break;
    }
}

/*
 * The roots do not change at once. While one is old and one new, speculation
 * may cache what it finds: it must not do so for an ASID that is used.
 */
static void park(const struct phase *p)
{
    const uint64_t base = (1ull << 48) - 1, asid = p->parking << 48;

    if (p->a1) {
        write_sysreg(ttbr1_el1, (read_sysreg(ttbr1_el1) & base) | asid);
        isb();
        write_sysreg(ttbr0_el1, p->ttbr0);
    } else {
        write_sysreg(ttbr0_el1, (read_sysreg(ttbr0_el1) & base) | asid);
        isb();
        write_sysreg(ttbr1_el1, p->ttbr1);
    }
    isb();
}

static void change_phase(const struct batch *b, const struct phase *p)
{
    if (p->forget == FORGET_NOTHING) {
        park(p);
    }
    write_sysreg(ttbr0_el1, p->ttbr0);
    write_sysreg(ttbr1_el1, p->ttbr1);
    isb();
    if (p->forget == FORGET_ALL) {
        __asm__ volatile("tlbi vmalle1" ::: "memory");
    } else if (p->forget == FORGET_ASID) {
        TLBI("aside1", p->shareable, p->asid << 48);
    }
    for (uint32_t i = 0; i < p->count; i += OPS_PER_ADDRESS) {
        const struct op *op = &b->op[p->first + i];

        forget_address(p, op->va);
        if (p->forget == FORGET_VA || p->forget == FORGET_VAA) {
            forget_address(p, (op->va | 0xfff) + 1);
        }
    }
    __asm__ volatile("dsb ish; isb" ::: "memory");
}

static void run_phase(struct batch *b, const struct phase *p)
{
    bool at_trapped = false;
    uint64_t par = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        struct op *op = &b->op[p->first + i];

        op->par = par;
        if (!may(b, op, at_trapped)) {
            op->status = STATUS_SKIPPED;
            continue;
        }
        probe_op(op);
        if (i % OPS_PER_ADDRESS == 0) {
            at_trapped = op->status != STATUS_DONE;
            par = op->par = op->read;
        }
    }
}

void run_batch(struct batch *b)
{
    for (unsigned i = 0; i < PHASES; i++) {
        if (i) {
            change_phase(b, &b->phase[i]);
        }
        run_phase(b, &b->phase[i]);
    }
}
