/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Execution views: what the engine executes instead of guest code.
 *
 * When a page becomes executable its contents are copied into a slot of a
 * separate physical region and each sensitive instruction of the copy is
 * replaced by a word that traps. Data accesses go on to see the real page.
 *
 * Views are addressed by content and never change once made: two pages with
 * the same bytes share one, and new bytes give a new slot, so no translated
 * code ever has to be found and dropped. The region is therefore also the
 * machine's instruction cache: a store to code shows only after IC IVAU or
 * IC IALLU, as CTR_EL0.DIC = 0 says.
 *
 * A variant of a view also traps ERET. It is used while an interrupt is pending
 * and masked, so that the unmasking is noticed at once and ERET stays native at
 * all other times. In another one FP and AdvSIMD instructions are undefined,
 * for when CPACR_EL1.FPEN traps them: the engine never does.
 */
#ifndef VMM_EXECVIEW_H
#define VMM_EXECVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>

#include "insn/disas.h"
#include "insn/insn.h"
#include "mmu/addr.h"

/* Above every RAM address (dev/board: at most 64 GiB from 1 GiB). */
#define EXEC_VIEW_BASE UINT64_C(0x8000000000)
#define EXEC_VIEW_WORDS 1024u

enum exec_variant {
    EXEC_TRAP_ERET = 1,
    EXEC_TRAP_FP = 2,
    EXEC_VARIANTS = 4,
};

struct exec_view {
    gpa_t slot; /* where the engine finds it */
    /*
     * By enum exec_variant: another slot, `slot` where the page has nothing
     * that the variant would change, 0 while nobody has asked. [lock]
     */
    gpa_t variant[EXEC_VARIANTS];
    bool has_eret, has_fp;
    uint32_t words[EXEC_VIEW_WORDS]; /* the guest's own words */
    uint16_t index[EXEC_VIEW_WORDS]; /* 1 + index into insns; 0: native */
    struct insn *insns;
    unsigned insn_count;
    /* Next view with the same hash. [lock: views->lock] */
    struct exec_view *next;
};

struct exec_views;

/* ram_pages: pages of guest RAM. slots: capacity, up to four for one view. */
struct exec_views *exec_views_new(uint64_t ram_pages, unsigned slots,
                                  GError **error);
void exec_views_free(struct exec_views *views);

/* The region, to be mapped at EXEC_VIEW_BASE in every engine. */
void *exec_views_host(const struct exec_views *views);
size_t exec_views_bytes(const struct exec_views *views);

/* --- any thread --- */

/*
 * The view of RAM page number `page`, whose bytes are at `host`. NULL: no
 * slot is left, see exec_views_reset(). *out_made: a new one was made.
 */
const struct exec_view *exec_views_get(struct exec_views *views, uint64_t page,
                                       const void *host, struct disas *disas,
                                       bool *out_made);

/*
 * Where the engine finds a variant (bits of enum exec_variant) of the view; 0:
 * no slot is left.
 */
gpa_t exec_views_variant(struct exec_views *views, const struct exec_view *view,
                         unsigned variant);

/* Instruction cache maintenance: look at the bytes again at the next fetch. */
void exec_views_invalidate_page(struct exec_views *views, uint64_t page);
void exec_views_invalidate_all(struct exec_views *views);

/* The first, while nobody else uses the views: without the lock. */
void exec_views_forget_page(struct exec_views *views, uint64_t page);

/* --- with every vCPU stopped and its engine's code flushed --- */

/* Forgets every view. Pointers to views become invalid. */
void exec_views_reset(struct exec_views *views);

/* FP and AdvSIMD: op0 of the encoding is x111, or x110 (loads and stores). */
static inline bool exec_view_is_fp(uint32_t word)
{
    return (word & UINT32_C(0x0c000000)) == UINT32_C(0x0c000000) ||
           /* MSR and MRS of FPCR and FPSR */
           (word & UINT32_C(0xffdfffc0)) == UINT32_C(0xd51b4400);
}

/* The instruction that traps at word `index` of the view, or NULL. */
static inline const struct insn *exec_view_insn(const struct exec_view *view,
                                                unsigned index)
{
    unsigned i = view->index[index];

    return i ? &view->insns[i - 1] : NULL;
}

#endif
