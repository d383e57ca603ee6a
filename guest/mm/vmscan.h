/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which pages are reclaimed: direct reclaim for an allocation, for a group at
 * its limit, on request, and in the background (kswapd). Each goes from
 * priority 12, a 4096th of every lruvec, to priority 0, all of it, until it
 * has enough.
 */
#ifndef MM_VMSCAN_H
#define MM_VMSCAN_H

#include "kernel/types.h"

struct memcg;

/* Thread context; no locks but mmap_lock. */
/* For an allocation: frees about n frames, whoever has them. How many. */
unsigned vmscan_direct(unsigned n);
/* The same from a group and those below. */
unsigned vmscan_group(struct memcg *group, unsigned n, bool proactive);
/*
 * Whether to try once more after a reclaim that freed so many frames. Only so
 * often in vain; while others are at it, what we want is in their hands, and
 * we wait for them.
 */
struct vmscan_retries {
    unsigned vain, busy;
};
bool vmscan_again(struct vmscan_retries *retries, unsigned freed);
/*
 * memory.reclaim: n pages of the group, and of those below, are to go. 0,
 * -EAGAIN: not all of them could; -EINTR: the caller is to die.
 */
int vmscan_request(struct memcg *group, uint64_t n);

/* --- kswapd.c --- */
void kswapd_init(void); /* starts a thread per node */
/* No node, or not this one, has more than its low watermark free. */
void kswapd_wake(unsigned node, bool only_this);
/* Somebody reclaimed something: those that gave up may go on. */
void kswapd_try_again(void);

#endif
