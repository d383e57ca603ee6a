/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared anonymous memory: an object with its own index from page number to
 * page or swap entry. Alive while an area refers to it.
 */
#ifndef MM_SHMEM_H
#define MM_SHMEM_H

#include <stdatomic.h>

#include "kernel/lock.h"
#include "kernel/types.h"
#include "mm/page.h"

/* One index page: entries per 2 MiB of object. */
#define SHMEM_FANOUT 512

struct shmem {
    _Atomic uint32_t refs;
    struct spinlock lock; /* the index */
    struct list vmas;     /* [rmap lock of the object] */
    uint64_t id;          /* [init] never reused: futex keys */
    uint64_t n_pages;     /* [init] */
    /*
     * dir[i / FANOUT][i % FANOUT]: 0 nothing; swap entry << 1 | 1; or the
     * struct page, for which the index holds a reference.
     */
    _Atomic(_Atomic uint64_t *) *dir;
};

struct shmem *shmem_new(uint64_t n_pages); /* NULL: no memory */
void shmem_get(struct shmem *shmem);
void shmem_put(struct shmem *shmem);

/*
 * The page at index, made by the policy (mm/numa.h) or read from swap if need
 * be; locked and with a reference for the caller. NULL: no memory, or index outside.
 */
struct page *shmem_get_page(struct shmem *shmem, uint64_t index,
                            uint32_t policy);
/* Reclaim: the page is locked, unmapped. Moves it to swap; false: keep it. */
bool shmem_writepage(struct page *page);
/*
 * Migration: both are locked, the page is unmapped. Puts the other in its
 * place in the index, if nobody but the index and the caller refers to it.
 */
bool shmem_replace_page(struct page *page, struct page *to);
/* Is it in memory? For mincore. */
bool shmem_resident(struct shmem *shmem, uint64_t index);

#endif
