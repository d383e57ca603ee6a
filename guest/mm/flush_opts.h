/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Choices of the TLB flush code: what the ID registers offer, and these words
 * of the command line:
 *
 *   tlbirange=on|off     use TLBI by range; off: as a CPU without it
 *   kpti=off|on          EL0 runs with an ASID of its own
 *   repeat_tlbi=off|on   the workaround for CPUs whose DSB may end too early
 *   filter=off|stale     IPI: batch flushes leave out CPUs that run no mm of it
 *   unit_dsb=off|on      ... that do not wait for accesses of others' units
 *   fast_walk=off|on     futexes read user words by a walk without a lock
 *   asid_free=off|on     an address space that ends gives its ASID back
 *   local_tlbi=off|on    no broadcast for an mm that one CPU alone ever ran
 *   asid_bits=3..16      size of the ASID space, at most what the CPU has
 */
#ifndef MM_FLUSH_OPTS_H
#define MM_FLUSH_OPTS_H

#include "kernel/types.h"

struct flush_opts {
    /*
     * An ASID is a pair: the even number is the kernel's view, the odd one is
     * EL0's. First: boot/switch.S reads it.
     */
    bool kpti;
    bool range_ops;
    bool ttl; /* level hints in operands */
    bool repeat_tlbi;
    bool unit_dsb;
    bool filter_stale;
    bool fast_walk;
    bool asid_free;
    bool local_tlbi;
    unsigned asid_bits; /* 3..16 */
};

/* [init], but the tests of this folder switch what needs no new boot. */
extern struct flush_opts flush_opts;

void flush_opts_init(void); /* after smp_init_boot_cpu() */

/* Instructions that one invalidation of a user address takes. */
static inline unsigned flush_views(void)
{
    return flush_opts.kpti ? 2 : 1;
}

#endif
