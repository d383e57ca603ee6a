/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The architecture's rules once more, naively: a walk that caches nothing, and
 * what a TLBI operand names. For the property tests, which compare mmu with
 * it; so it works on raw registers and raw bits and calls nothing of mmu, from
 * which it takes only types.
 */
#ifndef TESTS_UNIT_MMU_REFERENCE_H
#define TESTS_UNIT_MMU_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "mmu/walk.h"

struct ref_regs {
    uint64_t sctlr, tcr, ttbr[2];
};

struct ref_answer {
    enum walk_fault fault;
    unsigned level;
    uint64_t base; /* of the block or page in physical memory */
    unsigned shift;
    bool r1, w1, x1, r0, w0, x0;
    unsigned attr, sh;
    bool global;
    bool clean; /* would have W were it not for AP[2]: hardware dirty state */
    /* What hardware makes of the leaf at `address`; desc if nothing. */
    uint64_t address, desc, new_desc;
};

/* What one descriptor does: ends the walk, or leads to another table. */
struct ref_step {
    bool ends;
    struct ref_answer answer;
    uint64_t next;
    /* Limits so far, from tables on the way. */
    bool no_write, no_el0, no_ux, no_px;
};

static inline uint64_t ref_bits(uint64_t x, unsigned high, unsigned low)
{
    return high - low == 63 ? x
                            : (x >> low) & ((UINT64_C(2) << (high - low)) - 1);
}

static inline bool ref_bit(uint64_t x, unsigned n)
{
    return (x >> n) & 1;
}

static inline unsigned ref_output_size(uint64_t tcr)
{
    switch (ref_bits(tcr, 34, 32)) {
    case 0:
        return 32;
    case 1:
        return 36;
    case 2:
        return 40;
    case 3:
        return 42;
    case 4:
        return 44;
    default:
        return 48;
    }
}

static inline uint16_t ref_asid(const struct ref_regs *regs)
{
    uint64_t ttbr = regs->ttbr[ref_bit(regs->tcr, 22)];

    return (uint16_t)(ref_bit(regs->tcr, 36) ? ref_bits(ttbr, 63, 48)
                                             : ref_bits(ttbr, 55, 48));
}

static inline unsigned ref_low_bit(unsigned level)
{
    static const unsigned low[] = {39, 30, 21, 12};

    return low[level];
}

/* `updates`: hardware can write to this memory. */
static inline void ref_leaf(const struct ref_regs *regs, uint64_t d,
                            unsigned level, bool updates, struct ref_step *step)
{
    struct ref_answer *a = &step->answer;
    bool wxn = ref_bit(regs->sctlr, 19);
    bool ha = ref_bit(regs->tcr, 39), hd = ha && ref_bit(regs->tcr, 40);
    bool is_clean = hd && ref_bit(d, 51) && ref_bit(d, 7);
    unsigned ap = (unsigned)ref_bits(d, 7, 6);

    a->shift = ref_low_bit(level);
    a->base = ref_bits(d, 47, a->shift) << a->shift;
    if (ref_output_size(regs->tcr) < 48 &&
        ref_bits(a->base, 47, ref_output_size(regs->tcr))) {
        a->fault = WALK_FAULT_ADDRESS_SIZE;
        return;
    }
    if (!ref_bit(d, 10)) {
        if (!ha || !updates) {
            a->fault = WALK_FAULT_ACCESS_FLAG;
            return;
        }
        a->new_desc |= UINT64_C(1) << 10;
    }
    /* Dirty state managed by hardware: AP[2] is effectively 0. */
    switch (hd && ref_bit(d, 51) ? ap & 1 : ap) {
    case 0:
        a->r1 = a->w1 = true;
        break;
    case 1:
        a->r1 = a->w1 = a->r0 = a->w0 = true;
        break;
    case 2:
        a->r1 = true;
        break;
    case 3:
        a->r1 = a->r0 = true;
        break;
    }
    if (step->no_write) {
        a->w1 = a->w0 = false;
    }
    if (step->no_el0) {
        a->r0 = a->w0 = false;
    }
    a->x1 = !ref_bit(d, 53) && !step->no_px;
    a->x0 = !ref_bit(d, 54) && !step->no_ux;
    if (a->w0 || (wxn && a->w1)) {
        a->x1 = false;
    }
    if (wxn && a->w0) {
        a->x0 = false;
    }
    if (is_clean) {
        a->clean = a->w1;
        a->w1 = a->w0 = false;
    }
    a->attr = (unsigned)ref_bits(d, 4, 2);
    a->sh = (unsigned)ref_bits(d, 9, 8);
    a->global = !ref_bit(d, 11);
}

/* Reads the descriptor for va in a table whose index is va<high:low>. */
static inline struct ref_step ref_step(const struct ref_regs *regs,
                                       const struct walk_mem *mem, uint64_t va,
                                       uint64_t table, unsigned level,
                                       unsigned high, struct ref_step before)
{
    uint64_t d;
    struct ref_step step = before;
    bool hpd = ref_bit(regs->tcr, ref_bit(va, 55) ? 42 : 41);

    step.ends = true;
    step.answer = (struct ref_answer){.level = level};
    if (!mem->read64(mem->opaque,
                     table + 8 * ref_bits(va, high, ref_low_bit(level)), &d)) {
        step.answer.fault = WALK_FAULT_EXTERNAL;
        return step;
    }
    if (ref_bits(d, 1, 0) == 3 && level < 3) {
        step.next = ref_bits(d, 47, 12) << 12;
        if (ref_output_size(regs->tcr) < 48 &&
            ref_bits(step.next, 47, ref_output_size(regs->tcr))) {
            step.answer.fault = WALK_FAULT_ADDRESS_SIZE;
            return step;
        }
        step.ends = false;
        step.no_px |= !hpd && ref_bit(d, 59);
        step.no_ux |= !hpd && ref_bit(d, 60);
        step.no_el0 |= !hpd && ref_bit(d, 61);
        step.no_write |= !hpd && ref_bit(d, 62);
        return step;
    }
    if ((ref_bits(d, 1, 0) == 3 && level == 3) ||
        (ref_bits(d, 1, 0) == 1 && (level == 1 || level == 2))) {
        step.answer.address =
            table + 8 * ref_bits(va, high, ref_low_bit(level));
        step.answer.desc = step.answer.new_desc = d;
        ref_leaf(regs, d, level, mem->cas64 != NULL, &step);
        return step;
    }
    step.answer.fault = WALK_FAULT_TRANSLATION;
    return step;
}

static inline struct ref_answer
ref_walk(const struct ref_regs *regs, const struct walk_mem *mem, uint64_t va)
{
    bool half = ref_bit(va, 55);
    unsigned top = ref_bit(regs->tcr, half ? 38 : 37) ? 55 : 63;
    unsigned tsz = (unsigned)(half ? ref_bits(regs->tcr, 21, 16)
                                   : ref_bits(regs->tcr, 5, 0));
    struct ref_answer fault = {.fault = WALK_FAULT_TRANSLATION};
    struct ref_step step = {0};
    unsigned level = 0, high = 63 - tsz, align;
    uint64_t ttbr = regs->ttbr[half];

    if (!ref_bit(regs->sctlr, 0)) {
        if (ref_bits(va, top, 48)) {
            fault.fault = WALK_FAULT_ADDRESS_SIZE;
            return fault;
        }
        return (struct ref_answer){.base = ref_bits(va, 47, 12) << 12,
                                   .shift = 12,
                                   .r1 = true,
                                   .w1 = true,
                                   .x1 = true,
                                   .r0 = true,
                                   .w0 = true,
                                   .x0 = true,
                                   .sh = 2,
                                   .global = true};
    }
    if (tsz < 16 || tsz > 48) {
        return fault;
    }
    for (unsigned n = 64 - tsz; n <= top; n++) {
        if (ref_bit(va, n) != half) {
            return fault;
        }
    }
    if (ref_bit(regs->tcr, half ? 23 : 7)) {
        return fault;
    }
    for (unsigned n = ref_output_size(regs->tcr); n < 48; n++) {
        if (ref_bit(ttbr, n)) {
            fault.fault = WALK_FAULT_ADDRESS_SIZE;
            return fault;
        }
    }
    while (ref_low_bit(level) > high) {
        level++;
    }
    align = high - ref_low_bit(level) + 1 + 3;
    step.next = ref_bits(ttbr, 47, align) << align;
    for (;; level++) {
        step = ref_step(regs, mem, va, step.next, level, high, step);
        if (step.ends) {
            return step.answer;
        }
        high = ref_low_bit(level) - 1;
    }
}

/*
 * A write, hardware's management of dirty state included: the answer has W if
 * the page was clean, and new_desc is what memory then has.
 */
static inline struct ref_answer ref_write(const struct ref_regs *regs,
                                          const struct walk_mem *mem,
                                          uint64_t va, bool el0, bool pan)
{
    struct ref_answer a = ref_walk(regs, mem, va);
    bool off = !ref_bit(regs->sctlr, 0);
    bool clean = a.clean && mem->cas64;

    if (a.fault != WALK_OK) {
        return a;
    }
    if (el0 ? !a.w0 && !(clean && a.r0) : !a.w1 && !clean) {
        a.fault = WALK_FAULT_PERMISSION;
    } else if (!el0 && pan && a.r0 && !off) {
        a.fault = WALK_FAULT_PERMISSION;
    } else if (clean) {
        a.new_desc &= ~(UINT64_C(1) << 7);
        a.clean = false;
        a.w1 = true;
        a.w0 = a.r0;
    }
    return a;
}

/* --- TLBI: raw CRm, op2 and Xt (op1 0, CRn 8) --- */

struct ref_tlbi {
    unsigned crm, op2;
    uint64_t xt;
};

static inline bool ref_tlbi_is_range(const struct ref_tlbi *op)
{
    return op->crm == 6 || op->crm == 2 || op->crm == 5;
}

static inline bool ref_tlbi_is_local(const struct ref_tlbi *op)
{
    return op->crm == 6 || op->crm == 7;
}

/* Level of the leaf that the operand hints at; 0: none. */
static inline unsigned ref_tlbi_hint(const struct ref_tlbi *op)
{
    if (ref_tlbi_is_range(op)) {
        return (unsigned)ref_bits(op->xt, 38, 37);
    }
    return ref_bits(op->xt, 47, 46) ? (unsigned)ref_bits(op->xt, 45, 44) : 0;
}

/*
 * Does the operand name a page of [first, last]? In page numbers of the 48-bit
 * halves, VA<55:12>, where the high half ends at 2^44 - 1.
 */
static inline bool ref_tlbi_names(const struct ref_tlbi *op, uint64_t first,
                                  uint64_t last)
{
    unsigned hint = ref_tlbi_hint(op);
    uint64_t begin, end;

    if (!ref_tlbi_is_range(op)) {
        if (hint && ref_bits(op->xt, 47, 46) != 1) {
            return false; /* the leaf of a 16 KiB or 64 KiB table */
        }
        begin = end = ref_bits(op->xt, 43, 0);
        return first <= end && begin <= last;
    }
    if (ref_bits(op->xt, 47, 46) != 1) {
        return false;
    }
    begin = ref_bits(op->xt, 36, 0);
    if (hint && begin % (UINT64_C(1) << (9 * (3 - hint)))) {
        return false;
    }
    if (ref_bit(begin, 36)) {
        begin |= UINT64_C(0x7f) << 37;
    }
    end = begin +
          (ref_bits(op->xt, 43, 39) + 1) *
              (UINT64_C(2) << (5 * ref_bits(op->xt, 45, 44))) -
          1;
    return first <= end && begin <= last;
}

/* va is canonical and aligned; level is the leaf's or the table entry's. */
static inline bool ref_tlbi_drops(const struct ref_tlbi *op, bool asid16,
                                  uint64_t va, uint16_t asid, unsigned level,
                                  bool table, bool global)
{
    uint64_t first = ref_bits(va, 55, 12);
    uint64_t last = first + (UINT64_C(1) << (ref_low_bit(level) - 12)) - 1;
    bool same =
        asid == (asid16 ? ref_bits(op->xt, 63, 48) : ref_bits(op->xt, 55, 48));
    unsigned hint = ref_tlbi_hint(op);

    switch (op->op2) {
    case 0: /* VMALLE1 */
        return true;
    case 2: /* ASIDE1 */
        return same && (table || !global);
    case 1: /* VAE1 */
    case 5: /* VALE1 */
        if (!same && (table || !global)) {
            return false;
        }
        break;
    }
    if (table && op->op2 >= 5) {
        return false;
    }
    if (hint && (table ? level >= hint : level != hint)) {
        return false;
    }
    return ref_tlbi_names(op, first, last);
}

#endif
