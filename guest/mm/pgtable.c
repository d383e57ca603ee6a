/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User page tables: four levels of 4 KiB, one lock per leaf table (page->ptl),
 * table_lock for the entries above. Tables are only freed with mmap_lock held
 * for writing (or by the last user), after the areas left the reverse map, so
 * that walkers under mmap_lock or an rmap lock need no lock above the leaf.
 */
#include "arch/barrier.h"
#include "mm/gather.h"
#include "mm/mm_priv.h"

#define LEAF 3

static pte_t *table_of(pte_t entry)
{
    return phys_to_virt(pte_address(entry));
}

pte_t *pt_walk(struct mm *mm, uint64_t va, struct spinlock **out_ptl)
{
    pte_t *table = mm->pgd;

    for (unsigned level = 0; level < LEAF; level++) {
        /* The dependent read orders it after the store of the pointer. */
        pte_t entry = pte_read(&table[pt_index(va, level)]);

        if (!(entry & PTE_VALID)) {
            return NULL;
        }
        table = table_of(entry);
    }
    *out_ptl = &virt_to_page(table)->ptl;
    return &table[pt_index(va, LEAF)];
}

/* Puts a new table below *slot unless somebody else did. */
static bool table_install(struct mm *mm, pte_t *slot)
{
    struct page *page = page_alloc(0, PAGE_ALLOC_ZERO | PAGE_ALLOC_RECLAIM);

    if (page == NULL) {
        return false;
    }
    page_set(page, PG_TABLE);
    spin_init(&page->ptl, LOCK_ptl);
    spin_lock(&mm->table_lock);
    if (pte_read(slot) & PTE_VALID) {
        spin_unlock(&mm->table_lock);
        page_clear(page, PG_TABLE);
        page_free(page, 0);
        return true;
    }
    /*
     * A walker that sees the pointer must see the zeroes. The pointer itself
     * may arrive late: the cost is a fault that finds everything in place.
     */
    dsb_ishst();
    pte_write(slot, page_to_phys(page) | PTE_TABLE | PTE_VALID);
    atomic_fetch_add_explicit(&mm->tables, 1, memory_order_relaxed);
    spin_unlock(&mm->table_lock);
    return true;
}

pte_t *pt_alloc(struct mm *mm, uint64_t va, struct spinlock **out_ptl)
{
    pte_t *table = mm->pgd;

    for (unsigned level = 0; level < LEAF; level++) {
        pte_t *slot = &table[pt_index(va, level)];

        if (!(pte_read(slot) & PTE_VALID) && !table_install(mm, slot)) {
            return NULL;
        }
        table = table_of(pte_read(slot));
    }
    *out_ptl = &virt_to_page(table)->ptl;
    return &table[pt_index(va, LEAF)];
}

/*
 * The entry at *slot of this level maps [base, base + size). Unhook its table
 * if the whole of that is free: [floor, ceiling) holds no area.
 */
static void free_table(struct gather *g, pte_t *slot, unsigned level,
                       uint64_t base)
{
    pte_t entry = pte_read(slot);
    struct page *page = phys_to_page(pte_address(entry));

    spin_lock(&g->mm->table_lock);
    pte_write(slot, 0);
    spin_unlock(&g->mm->table_lock);
    atomic_fetch_sub_explicit(&g->mm->tables, 1, memory_order_relaxed);
    gather_table(g, page, base, level);
}

static void free_level(struct gather *g, pte_t *table, unsigned level,
                       uint64_t start, uint64_t end, uint64_t floor,
                       uint64_t ceiling)
{
    uint64_t size = 1UL << pt_shift(level);

    for (uint64_t base = start & ~(size - 1); base < end; base += size) {
        pte_t *slot = &table[pt_index(base, level)];
        pte_t entry = pte_read(slot);

        if (!(entry & PTE_VALID)) {
            continue;
        }
        if (level < LEAF - 1) {
            free_level(g, table_of(entry), level + 1,
                       base > start ? base : start,
                       base + size < end ? base + size : end, floor, ceiling);
        }
        if (base >= floor && base + size <= ceiling) {
            free_table(g, slot, level, base);
        }
    }
}

void pt_free_range(struct gather *g, uint64_t start, uint64_t end,
                   uint64_t floor, uint64_t ceiling)
{
    free_level(g, g->mm->pgd, 0, start, end, floor, ceiling);
}
