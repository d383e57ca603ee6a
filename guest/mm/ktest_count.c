/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exact counts: what one system call issues, by the back end and mode that were
 * booted. The numbers are those of real kernels (docs: Linux 6.12).
 */
#include "kernel/bootargs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "mm/flush_opts.h"
#include "mm/ktest_mm.h"
#include "mm/like.h"
#include "mm/tlbbatch.h"
#include "mm/uaccess.h"

#define CEIL31(n) (((n) + 30) / 31)

static bool broadcast(void)
{
    return bootargs.tlb == BOOTARG_TLB_BROADCAST;
}

static bool batched(void)
{
    return bootargs.flush == BOOTARG_FLUSH_BATCHED &&
           (!broadcast() ||
            (mm_like.bc_batched &&
             (!flush_opts.repeat_tlbi || mm_like.release >= LIKE_7_2)));
}

/* Each wait for TLBIs costs a TLBI and a DSB more with repeat_tlbi=on. */
static uint64_t repeats(uint64_t waits)
{
    return flush_opts.repeat_tlbi ? waits : 0;
}

/* MADV_PAGEOUT counts as in 6.12; ktest_like.c has the other releases. */
static bool like_612(void)
{
    return mm_like.free_batch == 31 && mm_like.bc_batched &&
           !mm_like.pageout_young_flush && !mm_like.read_fault_dirty &&
           !mm_like.fault_drain;
}

static uint64_t drain(void) /* how many of a due drain are counted */
{
    return bootargs.drain == BOOTARG_DRAIN_MM && batched();
}

static bool pageout(uint64_t pages)
{
    return sys_madvise(TEST_VA, pages * PAGE_SIZE, MADV_PAGEOUT) == 0;
}

/* Counts of one MADV_PAGEOUT of the first pages. */
static bool count_pageout(struct ktest_counts *c, uint64_t pages)
{
    bool ok;

    ktest_counts_start(c);
    ok = pageout(pages);
    ktest_counts_stop_raw(c);
    return ok;
}

/*
 * VALE1IS, DSB ISHST, DSB ISH, ASIDE1IS, and nothing else; TLBIs for one view,
 * and without those of the workaround.
 */
static bool is_broadcast(const struct ktest_counts *c, uint64_t va,
                         uint64_t ishst, uint64_t ish, uint64_t asid)
{
    return c->at.tlbi_va == va * flush_views() + repeats(ish) &&
           c->at.dsb_ishst == ishst && c->at.dsb_ish == ish + repeats(ish) &&
           c->at.tlbi_asid == asid * flush_views() && c->at.tlbi_range == 0 &&
           c->at.tlbi_all == 0 && c->at.tlbi_local == 0 &&
           c->at.remote_flush == 0;
}

const char *test_count_first(void)
{
    struct ktest_counts c;

    if (!broadcast() || !like_612()) {
        KTEST_SKIP("not tlb=broadcast like=6.12");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, true));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    KTEST_CHECK(count_pageout(&c, TEST_PAGES));
    KTEST_CHECK(is_broadcast(&c, 256, 256, 256, 0));
    KTEST_CHECK(c.at.unmap_ptes == 256 && c.at.swap_out == 256);
    KTEST_CHECK(c.at.batch_flush_dirty == (batched() ? 256 : 0));
    KTEST_CHECK(c.at.frames_freed == 256 && c.at.pageout_calls == 1);
    ktest_leave();
    return NULL;
}

static const char *count_steady(bool shared)
{
    struct ktest_counts c;

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, shared));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    KTEST_CHECK(pageout(TEST_PAGES));
    for (unsigned round = 0; round < 3; round++) {
        KTEST_CHECK(ktest_touch(TEST_VA, TEST_PAGES));
        KTEST_CHECK(count_pageout(&c, TEST_PAGES));
        if (batched()) {
            KTEST_CHECK(
                is_broadcast(&c, 256, 256 + drain(), 9 + drain(), drain()));
            KTEST_CHECK(c.at.batch_flush == 9 && c.at.batch_flush_31 == 8);
            KTEST_CHECK(c.at.batch_flush_dirty == 0);
            KTEST_CHECK(c.at.pending_drain == drain());
        } else {
            KTEST_CHECK(is_broadcast(&c, 256, 256, 256, 0));
        }
    }
    KTEST_CHECK(ktest_check(TEST_VA, TEST_PAGES, 1));
    ktest_leave();
    return NULL;
}

const char *test_count_steady(void)
{
    const char *why;

    if (!broadcast() || bootargs.drain == BOOTARG_DRAIN_DSB || !like_612()) {
        KTEST_SKIP("not tlb=broadcast drain=mm|none like=6.12");
    }
    why = count_steady(true);
    return why != NULL ? why : count_steady(false);
}

const char *test_count_sweep(void)
{
    static const uint16_t sizes[] = {1,  2,  8,   30,  31,  32,  61,  62, 63,
                                     93, 94, 124, 125, 256, 310, 511, 512};
    struct ktest_counts c;

    if (!broadcast() || !batched() || !drain() || !like_612()) {
        KTEST_SKIP("not tlb=broadcast flush=batched drain=mm like=6.12");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 512, true));
    KTEST_CHECK(ktest_fill(TEST_VA, 512, 1));
    KTEST_CHECK(pageout(512));
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        KTEST_CHECK(ktest_touch(TEST_VA, sizes[i]));
        KTEST_CHECK(count_pageout(&c, sizes[i]));
        KTEST_CHECK(is_broadcast(&c, sizes[i], sizes[i] + 1UL,
                                 CEIL31(sizes[i]) + 1UL, 1));
    }
    /* Nothing mapped: the drain only, then nothing. */
    KTEST_CHECK(count_pageout(&c, 512));
    KTEST_CHECK(is_broadcast(&c, 0, 1, 1, 1));
    KTEST_CHECK(count_pageout(&c, 512));
    KTEST_CHECK(is_broadcast(&c, 0, 0, 0, 0));
    ktest_leave();
    return NULL;
}

/* Writes every fourth page from first on, reads the others; pages out. */
static bool count_mixed(struct ktest_counts *c, uint64_t first)
{
    for (uint64_t p = 0; p < TEST_PAGES; p++) {
        uint64_t va = TEST_VA + p * PAGE_SIZE;

        if (!(p % 4 == first ? put_user_u64(va, p) == 0 : ktest_touch(va, 1))) {
            return false;
        }
    }
    return count_pageout(c, TEST_PAGES);
}

const char *test_count_mixed(void)
{
    struct ktest_counts c;

    if (!broadcast() || !batched() || !drain() || !like_612()) {
        KTEST_SKIP("not tlb=broadcast flush=batched drain=mm like=6.12");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, true));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    KTEST_CHECK(pageout(TEST_PAGES));
    /*
     * 64 dirty flushes; of the eight times that 31 frames wait, six find
     * something queued; the last page is dirty, so the end finds nothing.
     */
    KTEST_CHECK(count_mixed(&c, 3));
    KTEST_CHECK(is_broadcast(&c, 256, 257, 64 + 6 + 1, 1));
    KTEST_CHECK(c.at.batch_flush_dirty == 64 && c.at.batch_flush_31 == 6);
    /* Three clean pages follow the last dirty one: the end flushes too. */
    KTEST_CHECK(count_mixed(&c, 0));
    KTEST_CHECK(is_broadcast(&c, 256, 257, 64 + 6 + 1 + 1, 1));
    ktest_leave();
    return NULL;
}

const char *test_count_blocks(void)
{
    struct ktest_counts c;

    if (!broadcast() || !batched() || !drain() || !like_612()) {
        KTEST_SKIP("not tlb=broadcast flush=batched drain=mm like=6.12");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 2048, true));
    KTEST_CHECK(ktest_touch(TEST_VA, 2048));
    KTEST_CHECK(pageout(2048));
    KTEST_CHECK(ktest_touch(TEST_VA, 2048));
    KTEST_CHECK(count_pageout(&c, 2048));
    KTEST_CHECK(is_broadcast(&c, 2048, 2048 + 4, 4 * CEIL31(512) + 4, 4));
    ktest_leave();
    return NULL;
}

/* mprotect of the first pages, counted. */
static bool count_protect(struct ktest_counts *c, uint64_t va, uint64_t pages,
                          uint64_t prot)
{
    bool ok;

    ktest_counts_start(c);
    ok = sys_mprotect(va, pages * PAGE_SIZE, prot) == 0;
    ktest_counts_stop_raw(c);
    return ok;
}

const char *test_count_mprotect(void)
{
    struct ktest_counts c;

    if (!broadcast()) {
        KTEST_SKIP("tlb=ipi");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    for (unsigned round = 0; round < 3; round++) {
        KTEST_CHECK(pageout(TEST_PAGES));
        KTEST_CHECK(count_protect(&c, TEST_VA, TEST_PAGES, PROT_READ));
        if (bootargs.drain == BOOTARG_DRAIN_DSB && batched()) {
            KTEST_CHECK(is_broadcast(&c, 0, 0, 1, 0));
        } else {
            KTEST_CHECK(is_broadcast(&c, 0, drain(), drain(), drain()));
        }
        KTEST_CHECK(count_protect(&c, TEST_VA, TEST_PAGES, RW));
        KTEST_CHECK(is_broadcast(&c, 0, 0, 0, 0));
        KTEST_CHECK(ktest_touch(TEST_VA, TEST_PAGES));
    }
    /* A first and second MADV_DONTNEED, a munmap of half: the same law. */
    KTEST_CHECK(pageout(TEST_PAGES));
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, PAGE_SIZE, MADV_DONTNEED) == 0);
    ktest_counts_stop_raw(&c);
    KTEST_CHECK(c.at.tlbi_asid == drain() * flush_views());
    ktest_counts_start(&c);
    KTEST_CHECK(sys_munmap(TEST_VA, TEST_PAGES / 2 * PAGE_SIZE) == 0);
    ktest_counts_stop_raw(&c);
    KTEST_CHECK(is_broadcast(&c, 0, 0, 0, 0));
    ktest_leave();
    return NULL;
}

const char *test_count_present(void)
{
    struct ktest_counts c;
    uint64_t other = TEST_VA + BLOCK_SIZE;
    uint64_t ranges, singles;

    if (!broadcast() || !drain()) {
        KTEST_SKIP("not tlb=broadcast flush=batched drain=mm");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(ktest_map(other, TEST_PAGES, false));
    KTEST_CHECK(ktest_fill(other, TEST_PAGES, 2));
    /* Nothing is pending: the range, by one operation or by 256. */
    KTEST_CHECK(count_protect(&c, other, TEST_PAGES, PROT_READ));
    KTEST_CHECK(c.at.dsb_ishst == 1 && c.at.dsb_ish == 1 + repeats(1));
    ranges = c.at.tlbi_range;
    singles = c.at.tlbi_va - repeats(1);
    KTEST_CHECK(ranges + singles ==
                (flush_opts.range_ops ? 1 : 256) * flush_views());
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    KTEST_CHECK(pageout(TEST_PAGES));
    KTEST_CHECK(count_protect(&c, other, TEST_PAGES, RW));
    KTEST_CHECK(c.at.dsb_ishst == 2 && c.at.dsb_ish == 2 + repeats(2));
    KTEST_CHECK(c.at.tlbi_asid == flush_views());
    KTEST_CHECK(c.at.tlbi_range == ranges &&
                c.at.tlbi_va == singles + repeats(2));
    KTEST_CHECK(ktest_check(other, TEST_PAGES, 2));
    ktest_leave();
    return NULL;
}

const char *test_count_munmap(void)
{
    struct ktest_counts c;

    if (!broadcast()) {
        KTEST_SKIP("tlb=ipi");
    }
    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 2));
    ktest_counts_start(&c);
    KTEST_CHECK(sys_munmap(TEST_VA, TEST_PAGES * PAGE_SIZE) == 0);
    ktest_counts_stop_raw(&c);
    /* The pages' flush at the end of the area, then that of the tables. */
    KTEST_CHECK(c.at.dsb_ishst == 2 && c.at.dsb_ish == 2 + repeats(2));
    KTEST_CHECK(c.at.gather_flush == 2 && c.at.frames_freed == 256);
    ktest_leave();
    return NULL;
}

/* --- IPI back end --- */

static void spin_until_stop(unsigned index, void *arg)
{
    struct ktest_threads *t = arg;

    (void)index;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        cpu_relax();
    }
}

static const char *count_ipi(uint64_t others, uint64_t targets)
{
    struct ktest_threads t = {.fn = spin_until_stop, .n = (unsigned)others};
    struct mm *mm = ktest_enter();
    struct ktest_counts c;
    uint64_t steady = batched() && targets != 0 ? 9 + drain() : 256;

    KTEST_CHECK(mm != NULL);
    t.arg = &t;
    t.mm = mm;
    KTEST_CHECK(ktest_threads_start(&t, 1));
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, true));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 1));
    KTEST_CHECK(count_pageout(&c, TEST_PAGES));
    KTEST_CHECK(c.at.remote_flush_received == 256 * targets);
    for (unsigned round = 0; round < 3; round++) {
        KTEST_CHECK(ktest_touch(TEST_VA, TEST_PAGES));
        KTEST_CHECK(count_pageout(&c, TEST_PAGES));
        KTEST_CHECK(c.at.remote_flush_received == steady * targets);
        KTEST_CHECK(c.at.remote_flush == (targets != 0 ? steady : 0));
        KTEST_CHECK(c.at.wrong_cpu == 0);
        KTEST_CHECK(c.at.tlbi_va == 0 && c.at.tlbi_asid == 0 &&
                    c.at.dsb_ish == 0);
    }
    ktest_threads_join(&t);
    KTEST_CHECK(ktest_check(TEST_VA, TEST_PAGES, 1));
    ktest_leave();
    return NULL;
}

const char *test_count_ipi_alone(void)
{
    if (bootargs.tlb != BOOTARG_TLB_IPI || !like_612()) {
        KTEST_SKIP("not tlb=ipi like=6.12");
    }
    return count_ipi(0, 0);
}

const char *test_count_ipi_threads(void)
{
    if (bootargs.tlb != BOOTARG_TLB_IPI || bootargs.drain != BOOTARG_DRAIN_MM ||
        !like_612()) {
        KTEST_SKIP("not tlb=ipi drain=mm like=6.12");
    }
    if (cpu_count < 4) {
        KTEST_SKIP("fewer than 4 CPUs");
    }
    return count_ipi(3, 3);
}

/* --- the pending word --- */

static uint32_t word_of(struct mm *mm)
{
    return atomic_load(&mm->tlb_flush_batched);
}

const char *test_pending_overflow(void)
{
    struct mm *mm = ktest_enter();
    pte_t pte = PTE_VALID | PTE_RDONLY;
    struct ktest_counts c;

    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(word_of(mm) == 0);
    for (unsigned n = 1; n <= 16384; n++) {
        set_tlb_ubc_flush_pending(mm, pte, TEST_VA, TEST_VA + PAGE_SIZE);
        KTEST_CHECK(word_of(mm) == n);
        preempt_point();
    }
    set_tlb_ubc_flush_pending(mm, pte, TEST_VA, TEST_VA + PAGE_SIZE);
    KTEST_CHECK(word_of(mm) == 1);
    KTEST_CHECK(current()->tlb_ubc.flush_required);
    KTEST_CHECK(!current()->tlb_ubc.writable);
    try_to_unmap_flush();
    KTEST_CHECK(!current()->tlb_ubc.flush_required);
    KTEST_CHECK(word_of(mm) == 1); /* a task's flush is not the mm's */
    ktest_counts_start(&c);
    flush_tlb_batched_pending(mm);
    flush_tlb_batched_pending(mm);
    ktest_counts_stop_raw(&c);
    if (bootargs.drain != BOOTARG_DRAIN_NONE) {
        KTEST_CHECK(c.at.pending_drain == 1);
        KTEST_CHECK(word_of(mm) == (1 | 1 << TLB_BATCH_FLUSHED_SHIFT));
    }
    /* A PTE no TLB can hold queues nothing. */
    set_tlb_ubc_flush_pending(mm, PTE_PROT_NONE, TEST_VA, TEST_VA + PAGE_SIZE);
    KTEST_CHECK(!current()->tlb_ubc.flush_required);
    /* ... but it may while a gather is open. */
    atomic_fetch_add(&mm->tlb_flush_pending, 1);
    set_tlb_ubc_flush_pending(mm, PTE_PROT_NONE, TEST_VA, TEST_VA + PAGE_SIZE);
    KTEST_CHECK(current()->tlb_ubc.flush_required);
    atomic_fetch_sub(&mm->tlb_flush_pending, 1);
    try_to_unmap_flush();
    ktest_leave();
    return NULL;
}

/* Queues as fast as it can, on another CPU, until told to stop. */
static void queue_until_stop(unsigned index, void *arg)
{
    struct ktest_threads *t = arg;

    (void)index;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        set_tlb_ubc_flush_pending(t->mm, PTE_VALID | PTE_RDONLY, TEST_VA,
                                  TEST_VA + PAGE_SIZE);
        cpu_relax(); /* an emulator with one thread goes on with the other */
        preempt_point();
    }
    try_to_unmap_flush();
}

const char *test_pending_race(void)
{
    struct ktest_threads t = {.fn = queue_until_stop, .n = 1};
    struct mm *mm = ktest_enter();
    uint32_t word;

    KTEST_CHECK(mm != NULL);
    if (cpu_count < 2 || bootargs.drain == BOOTARG_DRAIN_NONE) {
        ktest_leave();
        KTEST_SKIP("needs 2 CPUs and a drain");
    }
    t.arg = &t;
    t.mm = mm;
    KTEST_CHECK(ktest_threads_start(&t, 1));
    for (unsigned i = 0; i < 500; i++) {
        flush_tlb_batched_pending(mm);
        word = word_of(mm);
        KTEST_CHECK((word & 0x80008000U) == 0);
        preempt_point();
    }
    ktest_threads_join(&t);
    /* Whatever was lost to the race: the last drains end it. */
    flush_tlb_batched_pending(mm);
    word = word_of(mm);
    KTEST_CHECK((word & TLB_BATCH_PENDING_MASK) ==
                word >> TLB_BATCH_FLUSHED_SHIFT);
    ktest_leave();
    return NULL;
}
