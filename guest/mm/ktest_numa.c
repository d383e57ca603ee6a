/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of NUMA hints: what they cost, what they do, and who meets them. */
#include "kernel/bootargs.h"
#include "kernel/percpu.h"
#include "kernel/task.h"
#include "mm/gather.h"
#include "mm/ktest_mm.h"
#include "mm/migrate.h"
#include "mm/node.h"
#include "mm/numa.h"
#include "mm/swap.h"
#include "mm/uaccess.h"

#define N_PAGES 64UL

static bool hint(struct mm *mm, uint64_t va, uint64_t pages)
{
    struct vma *vma;
    uint64_t n;

    mm_read_lock(&mm->mmap_lock);
    vma = vma_find(mm, va);
    n = protect_hints(vma, va, va + pages * PAGE_SIZE, -1);
    mm_read_unlock(&mm->mmap_lock);
    return n == pages;
}

static uint64_t flushes_of(const struct ktest_counts *c)
{
    return c->at.tlbi_va + c->at.tlbi_range + c->at.tlbi_asid + c->at.tlbi_all +
           c->at.dsb_ish + c->at.dsb_ishst + c->at.batch_flush +
           c->at.remote_flush + c->at.tlbi_local;
}

/* Making hints: one range flush. Moving what has one: none, or one. */
const char *test_numa_hint_count(void)
{
    const uint64_t pages = 256;
    struct mm *mm = ktest_enter();
    struct ktest_counts c;
    struct gather g;
    pte_t pte;

    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, pages, false));
    KTEST_CHECK(ktest_fill(TEST_VA, pages, 1));
    pte = ktest_pte(mm, TEST_VA);
    ktest_counts_start(&c);
    KTEST_CHECK(hint(mm, TEST_VA, pages));
    ktest_counts_stop(&c);
    KTEST_CHECK(ktest_pte(mm, TEST_VA) == pte_make_hint(pte));
    KTEST_CHECK(c.at.gather_flush == 1);
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        KTEST_CHECK(c.at.dsb_ish == 1 && c.at.dsb_ishst == 1);
    }
    ktest_counts_start(&c);
    KTEST_CHECK(hint(mm, TEST_VA, 0)); /* nothing to do, nothing flushed */
    for (unsigned i = 0; i < 8; i++) {
        KTEST_CHECK(ktest_move(mm, TEST_VA + i * PAGE_SIZE, 1, MIGRATE_ASYNC) ==
                    1);
    }
    ktest_counts_stop(&c);
    KTEST_CHECK(flushes_of(&c) == 0);
    KTEST_CHECK(c.at.unmap_ptes == 8 && c.at.unmap_accessible == 0);
    KTEST_CHECK((ktest_pte(mm, TEST_VA) & ~PTE_ADDR_MASK) ==
                (pte & ~PTE_ADDR_MASK));
    /* Somebody else's gather may owe the flush of the hint. */
    gather_init(&g, mm, false);
    ktest_counts_start(&c);
    KTEST_CHECK(ktest_move(mm, TEST_VA + 8 * PAGE_SIZE, 1, MIGRATE_ASYNC) == 1);
    ktest_counts_stop(&c);
    gather_finish(&g);
    KTEST_CHECK(c.at.unmap_accessible == 1);
    KTEST_CHECK(!ktest_defers() ||
                (c.at.batch_flush == 1 && c.at.tlbi_va == 1 &&
                 c.at.dsb_ishst == 1 && c.at.dsb_ish == 1));
    /* And the rest is still a hint, of which a fault makes a PTE. */
    KTEST_CHECK(!pte_valid(ktest_pte(mm, TEST_VA + 9 * PAGE_SIZE)));
    ktest_counts_start(&c);
    KTEST_CHECK(ktest_check(TEST_VA, pages, 1));
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.numa_hint_faults == pages - 9);
    KTEST_CHECK(ktest_fill(TEST_VA, pages, 2));
    ktest_leave();
    return NULL;
}

/* Pages of the other node come to who uses them, without a flush. */
const char *test_numa_hint_moves(void)
{
    unsigned here = node_of_cpu(cpu_id());
    struct mm *mm = ktest_enter();
    struct ktest_counts c;

    if (nodes_count() < 2) {
        ktest_leave();
        KTEST_SKIP("one memory node");
    }
    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, N_PAGES, false));
    current()->mempolicy = POLICY_OF(MPOL_BIND, 1U << !here);
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 1));
    current()->mempolicy = 0;
    KTEST_CHECK(pte_page(ktest_pte(mm, TEST_VA))->node == !here);
    KTEST_CHECK(hint(mm, TEST_VA, N_PAGES));
    ktest_counts_start(&c);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 1));
    ktest_counts_stop(&c);
    KTEST_CHECK(flushes_of(&c) == 0);
    KTEST_CHECK(c.at.numa_hint_faults == N_PAGES);
    KTEST_CHECK(c.at.numa_pages_migrated == N_PAGES);
    for (uint64_t i = 0; i < N_PAGES; i++) {
        KTEST_CHECK(pte_page(ktest_pte(mm, TEST_VA + i * PAGE_SIZE))->node ==
                    here);
    }
    /* Here already: the fault only takes the hint away. */
    KTEST_CHECK(hint(mm, TEST_VA, N_PAGES));
    ktest_counts_start(&c);
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 2));
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.numa_hint_faults == N_PAGES);
    KTEST_CHECK(c.at.numa_pages_migrated == 0);
    ktest_leave();
    return NULL;
}

/* mprotect, fork, pageout and munmap meet hints. */
const char *test_numa_hint_users(void)
{
    struct mm *mm = ktest_enter(), *child;

    KTEST_CHECK(mm != NULL && ktest_map(TEST_VA, N_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 1));
    KTEST_CHECK(hint(mm, TEST_VA, N_PAGES));
    KTEST_CHECK(sys_mprotect(TEST_VA, PAGE_SIZE, PROT_READ) == 0);
    KTEST_CHECK(put_user_u64(TEST_VA, 1) == -EFAULT);
    KTEST_CHECK(sys_mprotect(TEST_VA, PAGE_SIZE, 0) == 0);
    KTEST_CHECK(!ktest_touch(TEST_VA, 1));
    KTEST_CHECK(sys_mprotect(TEST_VA, PAGE_SIZE, RW) == 0);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 1));
    mm_get(mm);
    KTEST_CHECK(hint(mm, TEST_VA, N_PAGES));
    child = mm_fork(mm);
    KTEST_CHECK(child != NULL);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 1));
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES / 2, 2));
    ktest_go_to(child);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 1));
    ktest_go_to(mm);
    mm_put(child);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES / 2, 2));
    KTEST_CHECK(ktest_fill(TEST_VA, N_PAGES, 3));
    KTEST_CHECK(hint(mm, TEST_VA, N_PAGES));
    KTEST_CHECK(sys_madvise(TEST_VA, N_PAGES / 2 * PAGE_SIZE, MADV_PAGEOUT) ==
                0);
    KTEST_CHECK(ktest_check(TEST_VA, N_PAGES, 3));
    KTEST_CHECK(hint(mm, TEST_VA, N_PAGES));
    ktest_leave();
    mm_put(mm);
    KTEST_CHECK(swap_used() == 0);
    return NULL;
}
