/* SPDX-License-Identifier: MIT */
/*
 * The operations of race_mix, and who has which: race_own.c those on a thread's
 * own memory, race_pool.c those on pages of several threads, race_child.c
 * processes; race_thread.c draws them.
 */
#ifndef USER_RACE_OPS_H
#define USER_RACE_OPS_H

#include "race_mix.h"

#define RACE_BIG_SLOT (RACE_SLOTS - 1)
#define RACE_BIG_PAGES (2 * PMD_PAGES)

/* --- race_thread.c --- */
/* 0..n-1, drawn by the thread. */
unsigned race_pick(struct race_thread *t, unsigned n);
/* Draws an operation and a slot, and does it. */
void race_thread_step(struct race_thread *t);
/* A call that may be refused for want of memory; true when it was not. */
bool race_granted(struct race_thread *t, const char *what, long r);

/* --- race_own.c; s is one of the thread's slots --- */
void race_page_write(struct race_thread *t, struct race_slot *s, unsigned page);
void race_op_write(struct race_thread *t, struct race_slot *s);
void race_op_verify(struct race_thread *t, struct race_slot *s);
void race_op_advise(struct race_thread *t, struct race_slot *s);
void race_op_protect(struct race_thread *t, struct race_slot *s);
void race_op_unmap(struct race_thread *t, struct race_slot *s);
void race_op_remap(struct race_thread *t, struct race_slot *s);
void race_op_move_pages(struct race_thread *t, struct race_slot *s);
void race_op_migrate_pages(struct race_thread *t, struct race_slot *s);
void race_op_reclaim(struct race_thread *t, struct race_slot *s);
void race_op_move_cpu(struct race_thread *t, struct race_slot *s);

/* --- race_pool.c; s is not used --- */
void race_op_all(struct race_thread *t, struct race_slot *s);
void race_op_team(struct race_thread *t, struct race_slot *s);
/* Nobody else uses the pool meanwhile. */
void race_pool_fill(struct race_pool *pool);
void race_pool_verify(struct race_thread *t, struct race_pool *pool);

/* --- race_child.c; the child looks at s first --- */
void race_op_fork(struct race_thread *t, struct race_slot *s);
void race_op_exec(struct race_thread *t, struct race_slot *s);
/* Waits for the i-th child, if there is one. */
void race_reap(struct race_thread *t, unsigned i);

#endif
