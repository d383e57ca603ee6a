/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Swap to a compressed RAM device. A swap entry is slot number + 1. A slot has
 * a use count (PTEs and shmem index entries that name it) and may have a page
 * in the swap cache, which holds one reference of the page. The slot is free
 * when both are gone.
 *
 * A page enters and leaves the swap cache with its page lock held.
 */
#ifndef MM_SWAP_H
#define MM_SWAP_H

#include "kernel/types.h"

struct page;

void swap_init(void);
void swap_cpu_init(void); /* each CPU; without memory it stores raw pages */

/* --- use counts, any thread --- */
void swap_dup(uint64_t entry); /* the caller keeps the slot alive */
void swap_free(uint64_t entry);
uint32_t swap_count(uint64_t entry);

/* --- swap cache; the page is locked --- */
/* Gives the page a fresh slot with count 0. False: no slot. */
bool swap_cache_add(struct page *page);
bool swap_cache_holds(const struct page *page, uint64_t entry);
/* Takes it out and drops the cache's reference. */
void swap_cache_delete(struct page *page);
/*
 * If the caller's reference and the cache's are the only ones: takes the page
 * out, leaving it with count 0, and returns true.
 */
bool swap_cache_remove_last(struct page *page);
/*
 * Puts another locked page in its place, if the caller's reference and the
 * cache's are the only ones. The other takes the slot; the page keeps only the
 * caller's reference.
 */
bool swap_cache_replace(struct page *page, struct page *to);
/*
 * Drops a use of the page's slot. If it was the last, the page leaves the
 * cache, dirty since no copy of it is left.
 */
void swap_cache_free_use(struct page *page);
/*
 * Not locked, a reference held: an unmapped page whose slot nobody names any
 * more leaves the cache, unless somebody holds its lock.
 */
void swap_cache_try_drop(struct page *page);
/*
 * Unlocks a page that its users may have let go of meanwhile, looks whether it
 * must leave the cache, since they found it locked, and puts a reference.
 */
void swap_cache_unlock_put(struct page *page);

/* The page of the entry, from the cache or read in; with a reference, not
 * locked. NULL: the entry is stale (look again), or no memory. */
struct page *swap_in_page(uint64_t entry, bool *out_no_memory);
/* Compresses and stores; the page is in the cache. False: no room. */
bool swap_write(struct page *page);

/* Slots in use, and bytes they take. */
uint64_t swap_used(void);
uint64_t swap_total(void);
/*
 * Would a page of the group find a slot? May be wrong a moment later, and while
 * the last free slots are in other CPUs' caches.
 */
bool swap_has_room(uint16_t memcg);
/* Tests: no more slots in use than this; what is in use stays. */
void swap_limit(uint64_t slots);
uint64_t swap_store_pages(void);

#endif
