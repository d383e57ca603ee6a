/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of RAM that are translation tables, kept while somebody listens to
 * pte_store: no micro-TLB is granted W on them, so that each store to one is
 * performed, and told, by the VMM.
 *
 * In `parallel` a page is a table from its first walk on, but another vCPU may
 * have W on it until it next looks at its requests, and its stores until then
 * are not told. Once every vCPU has looked, the page is settled.
 */
#ifndef VMM_TABLE_PAGES_H
#define VMM_TABLE_PAGES_H

#include "mmu/walk.h"
#include "vcpu.h"

/* Before any vCPU runs; settles: with table_pages_is_settled(). */
void table_pages_init(struct vm *vm, bool settles);
void table_pages_fini(struct vm *vm);

/* A walker has read the page at pa as a table. False: nobody listens. */
bool table_pages_has(const struct vm *vm, gpa_t pa);
/*
 * The vCPU walked these. Its own thread; may serve, but never waits for, other
 * vCPUs.
 */
void table_pages_note(struct vcpu *vcpu, const struct walk_result *w);
/* Each store to the page is told; in the deterministic engines: always. */
bool table_pages_is_settled(const struct vm *vm, gpa_t pa);

#endif
