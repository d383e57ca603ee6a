/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptor stores that other vCPUs' walkers do not see yet.
 *
 * A store to a translation table is performed in memory at once, so loads and
 * the writer's own walker see it. What the buffer holds is the fact that the
 * walkers of the others do not: they see the word as it was. A hidden store
 * becomes visible, to all, when the writer completes a DSB (ISHST or
 * stronger), when the buffer is full, or when the caller chooses.
 *
 * Showing a store shows with it, whatever caused it:
 *
 *  - same place: the older stores to that word. A walker never sees a word go
 *    back. A store by B to a word that has hidden stores of A shows those
 *    first (B must own the line to write it), so all hidden stores to one word
 *    are of one writer.
 *  - same writer: its older stores. It may have put a DMB ISHST between them,
 *    as between filling a table and linking it, and we do not see which.
 *  - what the writer had observed (pte_buffer_observe()) when it stored:
 *    barriers are cumulative.
 *
 * Depends on addr.h. Not synchronised: one thread at a time. Memory is
 * allocated in pte_buffer_new() only.
 */
#ifndef MMU_PTE_BUFFER_H
#define MMU_PTE_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "mmu/addr.h"

#define PTE_BUFFER_MAX 1024u

struct pte_buffer;

struct pte_store {
    gpa_t pa; /* of the aligned 64-bit word */
    uint32_t writer;
    uint64_t old, now; /* the word before and after */
};

/*
 * For writers 0..vcpus-1 and `capacity` hidden stores, 1..PTE_BUFFER_MAX. NULL
 * when memory is short or a number is out of range.
 */
struct pte_buffer *pte_buffer_new(unsigned vcpus, unsigned capacity);
void pte_buffer_free(struct pte_buffer *buf);

/*
 * vCPU `writer` has changed the word at `pa` from `old` to `now`. If the
 * buffer is full the oldest store becomes visible. Returns how many became
 * visible by this, for either reason. A writer that is no vCPU, such as a
 * device, is seen by all at once.
 */
unsigned pte_buffer_store(struct pte_buffer *buf, uint32_t writer, gpa_t pa,
                          uint64_t old, uint64_t now);

/*
 * What a walk of `reader` reads at `pa`, where memory has *inout. True when
 * it was replaced, as a store of another vCPU is hidden.
 *
 * Hardware that updates a descriptor (walk_mem.cas64) acts on memory itself:
 * call pte_buffer_show_address() before the swap.
 */
bool pte_buffer_read(const struct pte_buffer *buf, uint32_t reader, gpa_t pa,
                     uint64_t *inout);

/*
 * vCPU `observer` may have seen, by loads, every store made so far. From then
 * on its own DSB and its later stores take those along. Without any call the
 * rule is the plain one, that a store waits for its writer's DSB: a guest
 * that passes a page table lock on and lets the next holder do the DSB, which
 * the architecture allows, would be blamed.
 */
void pte_buffer_observe(struct pte_buffer *buf, uint32_t observer);

/* All of these return how many stores became visible. */

/* A DSB ISHST or stronger of this vCPU: its stores, and what it observed. */
unsigned pte_buffer_drain(struct pte_buffer *buf, uint32_t writer);
unsigned pte_buffer_drain_all(struct pte_buffer *buf);
/* The oldest; 0 when nothing is hidden. */
unsigned pte_buffer_show_oldest(struct pte_buffer *buf);
/* The one that pte_buffer_at() gives for `index`, and what comes with it. */
unsigned pte_buffer_show(struct pte_buffer *buf, unsigned index);
/*
 * The oldest to this word and nothing else: for a caller that sees barriers,
 * and knows that nothing orders it after what else is hidden.
 */
unsigned pte_buffer_show_alone(struct pte_buffer *buf, gpa_t pa);
/* All to this word. */
unsigned pte_buffer_show_address(struct pte_buffer *buf, gpa_t pa);

unsigned pte_buffer_pending(const struct pte_buffer *buf);
unsigned pte_buffer_pending_of(const struct pte_buffer *buf, uint32_t writer);
/* Hidden stores by age, the oldest is 0. NULL past the last. */
const struct pte_store *pte_buffer_at(const struct pte_buffer *buf,
                                      unsigned index);

/* Same sizes only; false, and nothing done, otherwise. */
bool pte_buffer_copy(struct pte_buffer *to, const struct pte_buffer *from);

#endif
