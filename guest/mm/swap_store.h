/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RAM device behind swap: chunks in size classes, several to a frame.
 * Never sleeps, never reclaims. Any thread.
 */
#ifndef MM_SWAP_STORE_H
#define MM_SWAP_STORE_H

#include <stddef.h>
#include <stdint.h>

/* A chunk of at least size bytes (1..4096), 16-byte aligned; NULL: full. */
void swap_store_init(void); /* boot */
void *swap_store_alloc(size_t size);
void swap_store_free(void *chunk);

#endif
