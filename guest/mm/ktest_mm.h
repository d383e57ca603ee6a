/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of mm share: a scratch address space for the test's own task,
 * the differences of counters, threads on other CPUs.
 */
#ifndef MM_KTEST_MM_H
#define MM_KTEST_MM_H

#include "kernel/ktest.h"
#include "mm/counters.h"
#include "mm/migrate.h"
#include "mm/mm_priv.h"

/* The 2 MiB aligned place the tests map at. */
#define TEST_VA 0x0000400000000000UL
#define TEST_PAGES 256UL

#define RW (PROT_READ | PROT_WRITE)

/* The current kernel thread becomes a user of a new mm; NULL: no memory. */
struct mm *ktest_enter(void);
void ktest_use(struct mm *mm); /* ... of this one (a reference is taken) */
void ktest_leave(void);        /* and back; all CPUs forget lazy mms */

/* mmap of n pages of anonymous memory at va. */
bool ktest_map(uint64_t va, uint64_t pages, bool shared);
/* Writes, or checks, a pattern that depends on seed and page. */
bool ktest_fill(uint64_t va, uint64_t pages, uint64_t seed);
bool ktest_check(uint64_t va, uint64_t pages, uint64_t seed);
/* Faults every page in by a read, as a load would. */
bool ktest_touch(uint64_t va, uint64_t pages);

/* Differences of the totals of all CPUs. */
struct ktest_counts {
    struct annot_counters at;
};
void ktest_counts_start(struct ktest_counts *c);
/*
 * at = difference, as without kpti=on and repeat_tlbi=on: each TLBI once, and
 * each wait one DSB. Counts that cannot come from those are made absurd.
 */
void ktest_counts_stop(struct ktest_counts *c);
void ktest_counts_stop_raw(struct ktest_counts *c); /* as they are */

/* The PTE of va, 0 if there is none. */
pte_t ktest_pte(struct mm *mm, uint64_t va);
/* Takes the mapped pages of the range off the LRU; how many. */
unsigned ktest_isolate(struct mm *mm, uint64_t va, uint64_t pages,
                       struct list *out);
/* Moves the range to other frames of node 0; how many pages did. */
unsigned ktest_move(struct mm *mm, uint64_t va, uint64_t pages,
                    enum migrate_mode mode);
/* The current thread goes on in another address space. */
void ktest_go_to(struct mm *mm);
/* Does the broadcast back end run, and let migration wait once a batch? */
bool ktest_defers(void);

/* Kernel threads, one on each of CPUs first .. first + n - 1. */
struct ktest_threads {
    void (*fn)(unsigned index, void *arg);
    void *arg;
    struct mm *mm; /* used by all of them; may be NULL */
    unsigned n;
    _Atomic uint32_t next, ready, done;
    _Atomic uint32_t stop; /* for fn to poll */
};
bool ktest_threads_start(struct ktest_threads *t, unsigned first);
void ktest_threads_join(struct ktest_threads *t); /* sets stop */

#define MM_KTEST(fn, sentence, keeps) const char *fn(void);
#include "mm/ktests.inc"
#undef MM_KTEST

#endif
