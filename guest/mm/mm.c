/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Life of an address space. users are tasks; the last one unmaps everything.
 * pins keep the structure and the level-0 table: one for all users, one for
 * each CPU that has it loaded, be it lazily.
 */
#include "kernel/annot.h"
#include "kernel/panic.h"
#include "kernel/task.h"
#include "mm/flush.h"
#include "mm/flush_opts.h"
#include "mm/memcg.h"
#include "mm/mm_debug.h"
#include "mm/mm_priv.h"
#include "mm/rmap.h"
#include "mm/swap.h"

struct page *zero_page;
struct page *sigpage;
uint64_t mm_reserved_pgd;

static void sigpage_init(void)
{
    /* mov x8, #139 (rt_sigreturn); svc #0. The rest is undefined. */
    static const uint32_t code[] = {0xd2801168, 0xd4000001};

    sigpage = page_alloc(0, PAGE_ALLOC_ZERO);
    ASSERT_MSG(sigpage != NULL, "no memory");
    memcpy(page_address(sigpage), code, sizeof(code));
    fault_clean_dcache(sigpage);
    fault_drop_icache();
}

void mm_init(void)
{
    struct page *page;

    mm_debug_init();
    page = page_alloc(0, PAGE_ALLOC_ZERO);
    zero_page = page_alloc(0, PAGE_ALLOC_ZERO);
    ASSERT_MSG(page != NULL && zero_page != NULL, "no memory");
    sigpage_init();
    page_set(page, PG_TABLE);
    mm_reserved_pgd = page_to_phys(page);
    memcg_init();
    rmap_init();
    swap_init();
    flush_init();
}

void mm_cpu_init(void)
{
    flush_cpu_init();
    swap_cpu_init();
}

struct mm *mm_new(void)
{
    struct mm *mm = kmalloc(sizeof(*mm));

    if (mm == NULL) {
        return NULL;
    }
    mm->pgd = page_alloc_virt(0);
    if (mm->pgd == NULL) {
        kfree(mm);
        return NULL;
    }
    page_set(virt_to_page(mm->pgd), PG_TABLE);
    atomic_init(&mm->users, 1);
    atomic_init(&mm->pins, 1);
    atomic_init(&mm->tables, 1);
    flush_mm_init(mm);
    mm_lock_init(&mm->mmap_lock);
    spin_init(&mm->table_lock, LOCK_table);
    return mm;
}

void mm_get(struct mm *mm)
{
    atomic_fetch_add_explicit(&mm->users, 1, memory_order_relaxed);
}

void mm_drop(struct mm *mm)
{
    struct page *pgd;

    if (atomic_fetch_sub_explicit(&mm->pins, 1, memory_order_acq_rel) != 1) {
        return;
    }
    mm_debug_mm_gone(mm);
    if (flush_opts.asid_free) {
        asid_free(mm);
    }
    pgd = virt_to_page(mm->pgd);
    page_clear(pgd, PG_TABLE);
    page_free(pgd, 0);
    kfree(mm);
}

void mm_put(struct mm *mm)
{
    if (mm == NULL ||
        atomic_fetch_sub_explicit(&mm->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    annot_op_begin(ANNOT_OP_EXIT_MM, virt_to_phys(mm->pgd), 0,
                   ANNOT_PROMISE_NONE);
    unmap_all(mm);
    annot_op_end(ANNOT_OP_EXIT_MM);
    kfree(mm->areas);
    mm->areas = NULL;
    ASSERT_MSG(atomic_load(&mm->rss) == 0 && atomic_load(&mm->swapped) == 0 &&
                   atomic_load(&mm->tables) == 1,
               "mm dies with rss %ld swapped %ld tables %ld",
               (long)atomic_load(&mm->rss), (long)atomic_load(&mm->swapped),
               (long)atomic_load(&mm->tables));
    mm_drop(mm);
}
