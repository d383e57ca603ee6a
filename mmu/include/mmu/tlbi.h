/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB maintenance operations as values: decode, names, and what each matches.
 *
 * Depends on addr.h. Pure functions, any thread.
 */
#ifndef MMU_TLBI_H
#define MMU_TLBI_H

#include <stdbool.h>
#include <stdint.h>

#include "mmu/addr.h"

struct tlb_entry;
struct walk_cache_entry;

enum tlbi_kind {
    TLBI_ALL = 0, /* VMALLE1 */
    TLBI_ASID,    /* ASIDE1: not the global entries */
    TLBI_VA,      /* [R]VA[L]E1: of one ASID, and global entries */
    TLBI_VAA,     /* [R]VAA[L]E1: of any ASID */
};

enum tlbi_scope {
    TLBI_LOCAL = 0,
    TLBI_IS,
    TLBI_OS,
};

struct tlbi_op {
    enum tlbi_kind kind;
    enum tlbi_scope scope;
    bool last_level; /* leaves only: the walk cache stays */
    bool is_range;
    uint8_t ttl_level; /* 1..3: the leaf is at this level; 0: no hint */
    uint16_t asid;     /* TLBI_ASID, TLBI_VA */
    gva_t va;          /* page aligned, sign extended; TLBI_VA, TLBI_VAA */
    /*
     * Bytes named from `va` on: a page, or the range. 0: the operand names
     * nothing and the operation removes nothing (see tlbi.c: another granule,
     * a misaligned range).
     */
    uint64_t size;
};

/*
 * Decodes SYS #op1, Cn, Cm, #op2 (op0 is 1) with operand xt. True for every
 * EL1 operation of the base architecture, FEAT_TLBIOS and FEAT_TLBIRANGE;
 * false (nothing written) for everything else, such as EL2 and nXS forms.
 */
bool tlbi_decode(unsigned op1, unsigned crn, unsigned crm, unsigned op2,
                 uint64_t xt, bool asid16, struct tlbi_op *out);

/* The architecture's name, such as "VALE1IS" or "RVAAE1OS". */
const char *tlbi_name(const struct tlbi_op *op);

/* Does the operation name any byte of [va, va + 2^shift)? VA kinds only. */
bool tlbi_covers(const struct tlbi_op *op, gva_t va, unsigned shift);

/*
 * Makes the operation of hardware that honours it less literally. What it
 * removes only grows: removing more is always allowed.
 *
 *  - `tables`: a last-level operation takes the tables above the leaf too, as
 *    one for all levels does.
 *  - `operands`: the TTL hint is dropped, and a range is taken for the whole
 *    address space (of its ASID and the global entries, or of every ASID):
 *    also a hint or range that names nothing because of another granule or a
 *    misaligned start.
 *
 * tlbi_name() of the result is that of the wider operation: ask before.
 */
void tlbi_widen(struct tlbi_op *op, bool tables, bool operands);

/* Must this entry go? The scope is not looked at. */
bool tlbi_matches(const struct tlbi_op *op, const struct tlb_entry *entry);
bool tlbi_matches_table(const struct tlbi_op *op,
                        const struct walk_cache_entry *entry);

#endif
