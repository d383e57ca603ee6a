/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stage 1 translation table walk, and the check of an access against a
 * translation.
 *
 * A walk is a function of its arguments: it fills no TLB, raises nothing and
 * keeps nothing (walk_stage1_from() keeps table entries in the walk cache that
 * it is given). Depends on addr.h, desc.h, regime.h. Any thread; a walk cache
 * belongs to one thread.
 *
 * FEAT_HAFDBS (regime.ha, regime.hd). When the memory offers cas64, the walk
 * updates the leaf by compare-and-swap, before it returns the translation and
 * so before anybody can cache it:
 *
 *    AF 0   any walk that finds a leaf sets AF. Without cas64 the leaf is an
 *           access flag fault.
 *    DBM 1, AP[2] 1   "writable-clean". Walks leave it alone and return a
 *           translation without W whose `dbm` is set; walk_mark_dirty(), for
 *           the write itself, clears AP[2] and returns one with W.
 *
 * If the swap fails the descriptor is read and judged once more. Speculation
 * may set AF, must never mark dirty; whoever wants neither passes no cas64.
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
    bool dbm;    /* writable-clean: no W in perms for that reason only */
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
    /*
     * Optional: stores `desired` if the word is `expected`, as one atomic
     * step and in the coherence order of all stores to it. False: it was
     * not. Called only for words that read64 could read.
     */
    bool (*cas64)(void *opaque, gpa_t pa, uint64_t expected, uint64_t desired);
};

/*
 * Failed swaps after which a walk gives up with an external fault: memory that
 * never takes the update. Between processors each failure is another one's
 * success, so this many in a row do not happen.
 */
#define WALK_UPDATE_TRIES 1000u

struct walk_result {
    enum walk_fault fault;
    uint8_t level;        /* of the descriptor that decided, or of the fault */
    struct translation t; /* valid when fault == WALK_OK */
    uint8_t tables;       /* descriptors read by this walk, 0..4 */
    gpa_t table[MMU_LEVELS]; /* their addresses, in the order of reading */
    uint64_t desc;           /* the last one read */
    gpa_t desc_address;      /* where `desc` was; when tables > 0 */
    uint64_t new_desc;       /* what this walk made of `desc`, else the same */
};

/* Did the walk update the descriptor in memory? */
static inline bool walk_updated(const struct walk_result *result)
{
    return result->new_desc != result->desc;
}

/*
 * Walks from the root. Never a permission fault. An address translation
 * instruction is a walk too: with cas64 it sets AF, without it reports AF 0 as
 * a fault. With the MMU off: the flat map with all permissions, or an address
 * size fault at level 0 for an address beyond MMU_PA_BITS.
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

/*
 * WALK_OK or WALK_FAULT_PERMISSION, at the level of the translation. A write
 * through a writable-clean translation is a permission fault here; see
 * translation_needs_dirty().
 */
enum walk_fault translation_check(const struct translation *t,
                                  const struct access *access);

/*
 * Is this a write that would be allowed if the page were dirty? Then the
 * processor does not fault but calls walk_mark_dirty().
 */
bool translation_needs_dirty(const struct translation *t,
                             const struct access *access);

/*
 * The walk for a write that met a writable-clean translation, cached or not:
 * judges the descriptor that is in memory *now*, checks the access against it,
 * and if the page is still writable-clean clears AP[2] (and sets AF) in one
 * swap. Returns out->fault:
 *
 *  - WALK_OK: out->t has W. The page may have been dirty already, by another
 *    processor, or be writable without DBM by now; walk_updated() tells. The
 *    caller replaces the clean entry: it drops it, then inserts out->t, which
 *    may have another size or scope.
 *  - WALK_FAULT_PERMISSION: it is no longer writable for this access. out->t
 *    and out->level are valid.
 *  - any other: as walk_stage1_from().
 *
 * Without hd or cas64 nothing is writable-clean in a way that can be changed,
 * and a clean page is a permission fault. `wc` may be NULL; a stale table in
 * it sends the update to a stale descriptor, as in hardware.
 */
enum walk_fault walk_mark_dirty(const struct regime *regime,
                                const struct walk_mem *mem,
                                struct walk_cache *wc, gva_t va,
                                const struct access *access,
                                struct walk_result *out);

#endif
