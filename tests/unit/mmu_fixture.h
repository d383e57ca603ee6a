/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fake guest memory with translation tables, for the tests of mmu.
 *
 * One thread. A table is a page of `words`; pages are given out in order.
 */
#ifndef TESTS_UNIT_MMU_FIXTURE_H
#define TESTS_UNIT_MMU_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mmu/desc.h"
#include "mmu/regime.h"
#include "mmu/walk.h"

#define FAKE_BASE UINT64_C(0x40000000)
#define FAKE_PAGES 64u

struct fake_mem {
    uint64_t words[FAKE_PAGES * 512];
    unsigned used;  /* pages given out */
    unsigned reads; /* descriptors that a walker has read */
    unsigned swaps; /* times that a walker has called cas64 */
    /* Before swap n (from 0) someone else stores rival[n], while n < rivals. */
    uint64_t rival[4];
    unsigned rivals;
    bool stubborn; /* every swap fails */
};

static inline bool fake_read64(void *opaque, gpa_t pa, uint64_t *out)
{
    struct fake_mem *mem = opaque;

    mem->reads++;
    if (pa < FAKE_BASE || pa >= FAKE_BASE + FAKE_PAGES * MMU_PAGE_SIZE ||
        (pa & 7)) {
        return false;
    }
    *out = mem->words[(pa - FAKE_BASE) / 8];
    return true;
}

static inline bool fake_cas64(void *opaque, gpa_t pa, uint64_t expected,
                              uint64_t desired)
{
    struct fake_mem *mem = opaque;
    uint64_t *word = &mem->words[(pa - FAKE_BASE) / 8];
    unsigned n = mem->swaps++;

    if (n < mem->rivals) {
        *word = mem->rival[n];
    }
    if (*word != expected || mem->stubborn) {
        return false;
    }
    *word = desired;
    return true;
}

static inline struct walk_mem fake_walk_mem(struct fake_mem *mem)
{
    return (struct walk_mem){.read64 = fake_read64, .opaque = mem};
}

/* Memory that hardware may update. */
static inline struct walk_mem fake_updatable(struct fake_mem *mem)
{
    return (struct walk_mem){
        .read64 = fake_read64, .opaque = mem, .cas64 = fake_cas64};
}

static inline gpa_t fake_page(struct fake_mem *mem)
{
    return FAKE_BASE + MMU_PAGE_SIZE * mem->used++;
}

static inline uint64_t *fake_word(struct fake_mem *mem, gpa_t pa)
{
    return &mem->words[(pa - FAKE_BASE) / 8];
}

/* The slot of `va` at `level`, making tables on the way (48-bit addresses). */
static inline uint64_t *fake_slot(struct fake_mem *mem, gpa_t root, gva_t va,
                                  unsigned level)
{
    gpa_t table = root;

    for (unsigned at = 0;; at++) {
        gpa_t slot = table + ((va >> (39 - 9 * at)) & 511) * 8;
        uint64_t *word = fake_word(mem, slot);

        if (at == level) {
            return word;
        }
        if (!(*word & 1)) {
            *word = fake_page(mem) | 3;
        }
        table = *word & UINT64_C(0xfffffffff000);
    }
}

/* 48-bit halves, 48-bit output, no TBI, 16-bit ASIDs. */
#define FAKE_TCR                                                               \
    (UINT64_C(16) | UINT64_C(16) << 16 | UINT64_C(2) << 30 |                   \
     UINT64_C(5) << 32 | TCR_AS)

static inline struct regime fake_regime(gpa_t root0, gpa_t root1, uint16_t asid)
{
    struct regime regime;

    regime_decode(&regime, SCTLR_M, FAKE_TCR,
                  root0 | (uint64_t)asid << TTBR_ASID_SHIFT, root1);
    return regime;
}

#endif
