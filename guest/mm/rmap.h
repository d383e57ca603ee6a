/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reverse map: from a page to the PTEs that map it. The caller of the walks
 * holds the page lock and a reference.
 */
#ifndef MM_RMAP_H
#define MM_RMAP_H

#include "kernel/types.h"

struct page;
struct vma;

void rmap_init(void); /* boot */

/* A PTE now maps the page (PTL held). Anonymous: first mapping sets both. */
void rmap_add_anon_new(struct page *page, struct vma *vma, uint64_t va);
void rmap_add(struct page *page);
/* The PTE is gone. */
void rmap_remove(struct page *page);

/* Replaces every PTE of the page. True: no longer mapped. */
bool rmap_try_to_unmap(struct page *page);
/*
 * Replaces every PTE of the page by a migration entry. batch: the flush may be
 * deferred to try_to_unmap_flush(). True: no longer mapped. Either way the
 * entries must go again, with the pin given here.
 */
bool rmap_try_to_migrate(struct page *page, bool batch, uint64_t *out_pin);
/*
 * Makes every migration entry of the page a PTE of "to", which may be the page
 * itself, and gives the pin back. Both are locked.
 */
void rmap_remove_migration(uint64_t pin, struct page *page, struct page *to);
/* Clears the access flag of every PTE; true if one was set. */
bool rmap_test_and_clear_young(struct page *page);

#endif
