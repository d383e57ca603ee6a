/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of mapping, faults, copy-on-write, swap and the system calls. */
#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/task.h"
#include "mm/ktest_mm.h"
#include "mm/vmscan.h"
#include "mm/swap.h"
#include "mm/uaccess.h"

#define PAR_F 1UL

static uint64_t end_of(uint64_t pages)
{
    return TEST_VA + pages * PAGE_SIZE;
}

const char *test_private(void)
{
    uint64_t word = 1;

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(get_user_u64(&word, TEST_VA) == 0 && word == 0);
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 11));
    KTEST_CHECK(ktest_check(TEST_VA, TEST_PAGES, 11));
    KTEST_CHECK(sys_madvise(TEST_VA, 16 * PAGE_SIZE, MADV_DONTNEED) == 0);
    KTEST_CHECK(get_user_u64(&word, TEST_VA + 5 * PAGE_SIZE) == 0 && word == 0);
    /* A hole in the middle */
    KTEST_CHECK(sys_munmap(TEST_VA + 32 * PAGE_SIZE, 8 * PAGE_SIZE) == 0);
    KTEST_CHECK(get_user_u64(&word, TEST_VA + 32 * PAGE_SIZE) == -EFAULT);
    KTEST_CHECK(get_user_u64(&word, TEST_VA + 40 * PAGE_SIZE) == 0);
    KTEST_CHECK(current()->mm->n_areas == 2);
    KTEST_CHECK(sys_munmap(TEST_VA, TEST_PAGES * PAGE_SIZE) == 0);
    KTEST_CHECK(current()->mm->n_areas == 0);
    KTEST_CHECK(atomic_load(&current()->mm->tables) == 1);
    KTEST_CHECK(sys_munmap(TEST_VA + 1, PAGE_SIZE) == -EINVAL);
    KTEST_CHECK(sys_mmap(0, 0, RW, MAP_PRIVATE | MAP_ANONYMOUS, 0, 0) ==
                -EINVAL);
    ktest_leave();
    return NULL;
}

const char *test_hardware(void)
{
    struct spinlock *ptl;
    pte_t *p;

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 4, false));
    KTEST_CHECK(at_s1e0r(TEST_VA) & PAR_F);
    KTEST_CHECK(put_user_u64(TEST_VA, 1) == 0);
    dsb_ishst(); /* the walker shall see it at once: no spurious fault here */
    isb();
    p = pt_walk(current()->mm, TEST_VA, &ptl);
    KTEST_CHECK(p != NULL);
    KTEST_CHECK((at_s1e0w(TEST_VA) & (PTE_ADDR_MASK | PAR_F)) ==
                pte_address(pte_read(p)));
    KTEST_CHECK(sys_mprotect(TEST_VA, PAGE_SIZE, PROT_READ) == 0);
    KTEST_CHECK(at_s1e0w(TEST_VA) & PAR_F);
    KTEST_CHECK(!(at_s1e0r(TEST_VA) & PAR_F));
    KTEST_CHECK(sys_mprotect(TEST_VA, PAGE_SIZE, 0) == 0);
    KTEST_CHECK(at_s1e0r(TEST_VA) & PAR_F);
    KTEST_CHECK(sys_mprotect(TEST_VA, PAGE_SIZE, RW) == 0);
    KTEST_CHECK(put_user_u64(TEST_VA, 2) == 0);
    dsb_ishst();
    isb();
    KTEST_CHECK(!(at_s1e0w(TEST_VA) & PAR_F));
    KTEST_CHECK(sys_madvise(TEST_VA, PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(at_s1e0r(TEST_VA) & PAR_F);
    KTEST_CHECK(put_user_u64(TEST_VA, 2) == 0);
    dsb_ishst();
    isb();
    KTEST_CHECK(!(at_s1e0w(TEST_VA) & PAR_F));
    KTEST_CHECK(sys_munmap(TEST_VA, 4 * PAGE_SIZE) == 0);
    KTEST_CHECK(at_s1e0r(TEST_VA) & PAR_F);
    ktest_leave();
    return NULL;
}

/* Fork, write on one side, look at both. */
static const char *cow_side(bool child_writes)
{
    struct mm *parent = ktest_enter(), *child;

    KTEST_CHECK(parent != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 64, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 1));
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    mm_get(parent);
    if (child_writes) {
        ktest_leave();
        ktest_use(child);
    }
    KTEST_CHECK(ktest_check(TEST_VA, 64, 1));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 2));
    KTEST_CHECK(ktest_check(TEST_VA, 64, 2));
    ktest_leave();
    ktest_use(child_writes ? parent : child);
    KTEST_CHECK(ktest_check(TEST_VA, 64, 1));
    ktest_leave();
    mm_put(child);
    /* The last user writes without a copy. */
    ktest_use(parent);
    KTEST_CHECK(ktest_check(TEST_VA, 64, child_writes ? 1 : 2));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 3));
    KTEST_CHECK(ktest_check(TEST_VA, 64, 3));
    ktest_leave();
    mm_put(parent);
    return NULL;
}

const char *test_cow(void)
{
    const char *why = cow_side(false);

    return why != NULL ? why : cow_side(true);
}

const char *test_shared_fork(void)
{
    struct mm *parent = ktest_enter(), *child;
    uint64_t a[2], b[2];

    KTEST_CHECK(parent != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 16, true));
    KTEST_CHECK(ktest_fill(TEST_VA, 8, 5));
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    mm_get(parent);
    KTEST_CHECK(user_futex_key(TEST_VA + 8, a) == 0);
    ktest_leave();
    ktest_use(child);
    KTEST_CHECK(ktest_check(TEST_VA, 8, 5));
    KTEST_CHECK(ktest_fill(TEST_VA, 16, 6));
    KTEST_CHECK(user_futex_key(TEST_VA + 8, b) == 0);
    KTEST_CHECK(a[0] == b[0] && a[1] == b[1]);
    ktest_leave();
    ktest_use(parent);
    KTEST_CHECK(ktest_check(TEST_VA, 16, 6));
    /* Mapped twice: MADV_PAGEOUT leaves it alone. */
    KTEST_CHECK(sys_madvise(TEST_VA, 16 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(atomic_load(&parent->rss) == 16);
    ktest_leave();
    mm_put(child);
    mm_put(parent);
    return NULL;
}

static const char *pageout_and_back(bool shared)
{
    struct mm *mm = ktest_enter();
    uint64_t used = swap_used(), store = swap_store_pages();

    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, shared));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 21));
    for (unsigned round = 0; round < 3; round++) {
        KTEST_CHECK(
            sys_madvise(TEST_VA, TEST_PAGES * PAGE_SIZE, MADV_PAGEOUT) == 0);
        KTEST_CHECK(atomic_load(&mm->rss) == 0);
        KTEST_CHECK(swap_used() == used + TEST_PAGES);
        KTEST_CHECK(swap_store_pages() < store + TEST_PAGES);
        KTEST_CHECK(ktest_check(TEST_VA, TEST_PAGES, 21 + round));
        KTEST_CHECK(swap_used() == used);
        KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 22 + round));
    }
    /* Half of it in swap when it goes. */
    KTEST_CHECK(
        sys_madvise(TEST_VA, TEST_PAGES / 2 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    ktest_leave();
    KTEST_CHECK(swap_used() == used && swap_store_pages() == store);
    return NULL;
}

const char *test_pageout_private(void)
{
    return pageout_and_back(false);
}

const char *test_pageout_shared(void)
{
    return pageout_and_back(true);
}

/* Page p is p << 32 all over, but for the first word. */
static bool fill_same(uint64_t va, uint64_t pages)
{
    for (uint64_t p = 0; p < pages; p++) {
        for (unsigned w = 0; w < PAGE_SIZE / 8; w++) {
            uint64_t word = w == 0 ? p + 1 : p << 32;

            if (put_user_u64(va + p * PAGE_SIZE + w * 8, word) != 0) {
                return false;
            }
        }
    }
    return true;
}

static bool check_same(uint64_t va, uint64_t pages)
{
    for (uint64_t p = 0; p < pages; p++) {
        for (unsigned w = 0; w < PAGE_SIZE / 8; w++) {
            uint64_t word;

            if (get_user_u64(&word, va + p * PAGE_SIZE + w * 8) != 0 ||
                word != (w == 0 ? p + 1 : p << 32)) {
                return false;
            }
        }
    }
    return true;
}

const char *test_pageout_fill(void)
{
    uint64_t stored = swap_store_pages();
    struct ktest_counts c;

    KTEST_CHECK(ktest_enter() != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 16, false));
    KTEST_CHECK(fill_same(TEST_VA, 16));
    for (unsigned round = 0; round < 2; round++) {
        ktest_counts_start(&c);
        KTEST_CHECK(sys_madvise(TEST_VA, 16 * PAGE_SIZE, MADV_PAGEOUT) == 0);
        ktest_counts_stop(&c);
        KTEST_CHECK(c.at.swap_out == 16 && c.at.swap_same_filled == 16);
        KTEST_CHECK(swap_store_pages() == stored);
        KTEST_CHECK(check_same(TEST_VA, 16));
    }
    /* One word more, the last, and they are pages like others. */
    for (uint64_t p = 0; p < 16; p++) {
        KTEST_CHECK(put_user_u64(TEST_VA + (p + 1) * PAGE_SIZE - 8, 1) == 0);
    }
    ktest_counts_start(&c);
    KTEST_CHECK(sys_madvise(TEST_VA, 16 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    ktest_counts_stop(&c);
    KTEST_CHECK(c.at.swap_out == 16 && c.at.swap_same_filled == 0);
    KTEST_CHECK(swap_store_pages() > stored);
    for (uint64_t p = 0; p < 16; p++) {
        uint64_t at = TEST_VA + (p + 1) * PAGE_SIZE - 8, word;

        KTEST_CHECK(get_user_u64(&word, at) == 0 && word == 1);
        KTEST_CHECK(put_user_u64(at, p << 32) == 0);
    }
    KTEST_CHECK(check_same(TEST_VA, 16));
    ktest_leave();
    return NULL;
}

const char *test_pageout_fork(void)
{
    struct mm *parent = ktest_enter(), *child;
    uint64_t used = swap_used();

    KTEST_CHECK(parent != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 64, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 31));
    KTEST_CHECK(sys_madvise(TEST_VA, 64 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    child = mm_fork(parent);
    KTEST_CHECK(child != NULL);
    mm_get(parent);
    KTEST_CHECK(ktest_check(TEST_VA, 32, 31));
    KTEST_CHECK(ktest_fill(TEST_VA, 32, 32));
    ktest_leave();
    ktest_use(child);
    KTEST_CHECK(ktest_check(TEST_VA, 64, 31));
    KTEST_CHECK(sys_madvise(TEST_VA, 64 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(ktest_check(TEST_VA, 64, 31));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 33));
    ktest_leave();
    mm_put(child);
    ktest_use(parent);
    KTEST_CHECK(ktest_check(TEST_VA, 32, 32));
    ktest_leave();
    mm_put(parent);
    KTEST_CHECK(swap_used() == used);
    return NULL;
}

const char *test_protect(void)
{
    struct mm *mm = ktest_enter();
    uint64_t word;

    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 64, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 41));
    KTEST_CHECK(
        sys_mprotect(TEST_VA + 8 * PAGE_SIZE, 8 * PAGE_SIZE, PROT_READ) == 0);
    KTEST_CHECK(mm->n_areas == 3);
    KTEST_CHECK(put_user_u64(TEST_VA + 8 * PAGE_SIZE, 1) == -EFAULT);
    KTEST_CHECK(put_user_u64(TEST_VA + 7 * PAGE_SIZE, 1) == 0);
    KTEST_CHECK(sys_mprotect(TEST_VA + 8 * PAGE_SIZE, 8 * PAGE_SIZE, 0) == 0);
    KTEST_CHECK(get_user_u64(&word, TEST_VA + 8 * PAGE_SIZE) == -EFAULT);
    KTEST_CHECK(sys_mprotect(TEST_VA, 64 * PAGE_SIZE, RW) == 0);
    KTEST_CHECK(mm->n_areas == 1);
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 42) && ktest_check(TEST_VA, 64, 42));
    KTEST_CHECK(sys_mprotect(end_of(64), PAGE_SIZE, RW) == -ENOMEM);
    KTEST_CHECK(sys_mprotect(TEST_VA, PAGE_SIZE, 0x100) == -EINVAL);
    ktest_leave();
    return NULL;
}

const char *test_mremap(void)
{
    struct mm *mm = ktest_enter();
    uint64_t to = TEST_VA + 64 * BLOCK_SIZE + 7 * PAGE_SIZE;
    int64_t at;

    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, 64, false));
    KTEST_CHECK(ktest_fill(TEST_VA, 64, 51));
    KTEST_CHECK(sys_madvise(TEST_VA, 32 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(sys_mremap(TEST_VA, 64 * PAGE_SIZE, 96 * PAGE_SIZE,
                           MREMAP_MAYMOVE | MREMAP_FIXED, to) == (int64_t)to);
    KTEST_CHECK(ktest_check(to, 64, 51));
    KTEST_CHECK(ktest_fill(to, 96, 52));
    /* The reverse map finds moved pages. */
    KTEST_CHECK(sys_madvise(to, 96 * PAGE_SIZE, MADV_PAGEOUT) == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == 0);
    KTEST_CHECK(ktest_check(to, 96, 52));
    KTEST_CHECK(sys_mremap(to, 96 * PAGE_SIZE, 48 * PAGE_SIZE, 0, 0) ==
                (int64_t)to);
    KTEST_CHECK(sys_mremap(to, 48 * PAGE_SIZE, 60 * PAGE_SIZE, 0, 0) ==
                (int64_t)to);
    KTEST_CHECK(ktest_map(to + 60 * PAGE_SIZE, 1, true));
    KTEST_CHECK(sys_mremap(to, 60 * PAGE_SIZE, 61 * PAGE_SIZE, 0, 0) ==
                -ENOMEM);
    at = sys_mremap(to, 60 * PAGE_SIZE, 61 * PAGE_SIZE, MREMAP_MAYMOVE, 0);
    KTEST_CHECK(at > 0 && (uint64_t)at != to);
    KTEST_CHECK(ktest_check((uint64_t)at, 48, 52));
    KTEST_CHECK(sys_mremap(TEST_VA, PAGE_SIZE, PAGE_SIZE, 0, 0) == -EFAULT);
    ktest_leave();
    return NULL;
}

const char *test_brk_mincore(void)
{
    struct mm *mm = ktest_enter();
    uint64_t base = 0x10000000, vec = TEST_VA;
    uint8_t in[4];

    KTEST_CHECK(mm != NULL);
    mm_set_brk(mm, base);
    KTEST_CHECK(sys_brk(0) == (int64_t)base);
    KTEST_CHECK(sys_brk(base + 100) == (int64_t)(base + 100));
    KTEST_CHECK(put_user_u64(base + 8, 77) == 0);
    KTEST_CHECK(sys_brk(base + 9 * PAGE_SIZE) ==
                (int64_t)(base + 9 * PAGE_SIZE));
    KTEST_CHECK(mm->n_areas == 1);
    KTEST_CHECK(put_user_u64(base + 2 * PAGE_SIZE, 1) == 0);
    KTEST_CHECK(ktest_map(vec, 1, false));
    KTEST_CHECK(sys_mincore(base, 4 * PAGE_SIZE, vec) == 0);
    KTEST_CHECK(copy_from_user(in, vec, 4) == 0);
    KTEST_CHECK(in[0] == 1 && in[1] == 0 && in[2] == 1 && in[3] == 0);
    KTEST_CHECK(sys_brk(base + PAGE_SIZE) == (int64_t)(base + PAGE_SIZE));
    KTEST_CHECK(put_user_u64(base + 2 * PAGE_SIZE, 1) == -EFAULT);
    KTEST_CHECK(sys_mincore(base, 4 * PAGE_SIZE, vec) == -ENOMEM);
    ktest_leave();
    return NULL;
}

const char *test_big_unmap(void)
{
    struct mm *mm = ktest_enter();
    uint64_t pages = 11000; /* more than the 9678 of a full gather */

    KTEST_CHECK(mm != NULL);
    if (page_free_count() < 2 * pages) {
        ktest_leave();
        KTEST_SKIP("too little memory");
    }
    KTEST_CHECK(ktest_map(TEST_VA, pages, false));
    KTEST_CHECK(sys_madvise(TEST_VA, pages * PAGE_SIZE, MADV_POPULATE_WRITE) ==
                0);
    KTEST_CHECK(atomic_load(&mm->rss) == (int64_t)pages);
    KTEST_CHECK(sys_munmap(TEST_VA, pages * PAGE_SIZE) == 0);
    KTEST_CHECK(atomic_load(&mm->rss) == 0);
    ktest_leave();
    return NULL;
}

const char *test_reclaim(void)
{
    struct mm *mm = ktest_enter();

    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, TEST_PAGES, false));
    KTEST_CHECK(ktest_fill(TEST_VA, TEST_PAGES, 61));
    KTEST_CHECK(sys_madvise(TEST_VA, TEST_PAGES * PAGE_SIZE, MADV_COLD) == 0);
    KTEST_CHECK(vmscan_direct(64) >= 32);
    KTEST_CHECK(atomic_load(&mm->swapped) >= 32);
    KTEST_CHECK(ktest_check(TEST_VA, TEST_PAGES, 61));
    ktest_leave();
    return NULL;
}

/* Small machines only: it touches every frame. */
const char *test_pressure(void)
{
    uint64_t pages = page_free_count() + page_free_count() / 4;
    struct mm *mm;

    if (pages > 48000) {
        KTEST_SKIP("more than 160 MiB");
    }
    mm = ktest_enter();
    KTEST_CHECK(mm != NULL);
    KTEST_CHECK(ktest_map(TEST_VA, pages, false));
    for (uint64_t p = 0; p < pages; p++) {
        KTEST_CHECK(put_user_u64(TEST_VA + p * PAGE_SIZE + p % 512 * 8, p) ==
                    0);
    }
    KTEST_CHECK(atomic_load(&mm->swapped) > 0);
    for (uint64_t p = 0; p < pages; p++) {
        uint64_t word = 0;

        KTEST_CHECK(
            get_user_u64(&word, TEST_VA + p * PAGE_SIZE + p % 512 * 8) == 0);
        KTEST_CHECK(p % 512 == 0 || word == p);
    }
    ktest_leave();
    return NULL;
}
