/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free blocks of 2^order frames, one allocator and one lock per memory node.
 * For page.c only, but for the watermarks.
 */
#ifndef MM_BUDDY_H
#define MM_BUDDY_H

#include "mm/page.h"

/* page.c: once, at boot. */
void page_caches_init(void);

enum page_wmark { WMARK_NONE, WMARK_MIN, WMARK_LOW, WMARK_HIGH, WMARKS };

/* Frames in the free blocks of the node; CPU caches are not among them. */
uint64_t buddy_free(unsigned node);
uint64_t buddy_wmark(unsigned node, enum page_wmark mark);
uint64_t buddy_managed(unsigned node);

/* A block, if that leaves mark frames free; else NULL. */
struct page *buddy_take(unsigned node, unsigned order, enum page_wmark mark);
/* Up to max single frames while more than mark are free, marked PG_CACHED. */
unsigned buddy_take_cached(unsigned node, struct list *out, unsigned max,
                           enum page_wmark mark);
void buddy_give(struct page *page, unsigned order);
/* The last n frames of a list, all of the node, PG_CACHED. */
void buddy_give_cached(unsigned node, struct list *from, unsigned n);

#endif
