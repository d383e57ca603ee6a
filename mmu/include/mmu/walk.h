/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stage 1 translation table walk, and the check of an access against a
 * translation.
 *
 * A walk is a function of its arguments: it fills no TLB, raises nothing and
 * keeps nothing (walk_stage1_from() keeps table entries in the walk cache that
 * it is given). Depends on addr.h, desc.h, regime.h. Any thread; a walk cache
 * belongs to one thread.
 */
#ifndef MMU_WALK_H
#define MMU_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "mmu/addr.h"
#include "mmu/desc.h"
#include "mmu/regime.h"

struct walk_cache;

enum access_type {
    ACCESS_READ = 0,
    ACCESS_WRITE,
    ACCESS_EXEC,
};

struct access {
    enum access_type type;
    bool el0; /* made at EL0, or by LDTR/STTR at EL1 */
    bool pan; /* PSTATE.PAN; matters for EL1 data accesses only */
};

enum walk_fault {
    WALK_OK = 0,
    WALK_FAULT_TRANSLATION,
    WALK_FAULT_ADDRESS_SIZE,
    WALK_FAULT_ACCESS_FLAG,
    WALK_FAULT_PERMISSION,
    WALK_FAULT_EXTERNAL, /* walk_mem.read64 failed */
};

/* What a TLB entry holds: one block or page. */
struct translation {
    gpa_t base;         /* output address of the block or page */
    uint8_t page_shift; /* 12, 21 or 30 */
    uint8_t level;      /* of the leaf, 1..3; 0 for the flat map */
    uint8_t perms;      /* PERM_*: AP, XN, WXN and the tables' limits applied */
    uint8_t attr_index; /* into MAIR_EL1; 0 for the flat map */
    uint8_t sh;
    bool global; /* nG clear */
    bool flat;   /* made with the MMU off; never put into a TLB */
};

/* The physical address of `va`, which lies in the block or page. */
static inline gpa_t translation_pa(const struct translation *t, gva_t va)
{
    return t->base | (va & ((UINT64_C(1) << t->page_shift) - 1));
}

struct walk_mem {
    /*
     * One aligned, single-copy atomic 64-bit read by the walker. False is an
     * external abort. `out` is written only on success.
     */
    bool (*read64)(void *opaque, gpa_t pa, uint64_t *out);
    void *opaque;
};

struct walk_result {
    enum walk_fault fault;
    uint8_t level;        /* of the descriptor that decided, or of the fault */
    struct translation t; /* valid when fault == WALK_OK */
    uint8_t tables;       /* descriptors read by this walk, 0..4 */
    gpa_t table[MMU_LEVELS]; /* their addresses, in the order of reading */
    uint64_t desc;           /* the last one read */
};

/*
 * Walks from the root. Never a permission fault. With the MMU off: the flat
 * map with all permissions, or an address size fault at level 0 for an
 * address beyond MMU_PA_BITS.
 *
 * Faults have this priority at each descriptor: external, translation,
 * address size, access flag.
 */
struct walk_result walk_stage1(const struct regime *regime,
                               const struct walk_mem *mem, gva_t va);

/*
 * The same, but starts at the deepest table that the walk cache knows for
 * this address and ASID, and remembers the tables it passes. A cached table
 * may be stale: that is its purpose. `wc` may be NULL.
 */
struct walk_result walk_stage1_from(const struct regime *regime,
                                    const struct walk_mem *mem,
                                    struct walk_cache *wc, gva_t va);

/* WALK_OK or WALK_FAULT_PERMISSION, at the level of the translation. */
enum walk_fault translation_check(const struct translation *t,
                                  const struct access *access);

#endif
