/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User page tables: four levels of 4 KiB. Each leaf table has a lock, and so
 * has each level-2 table, for its slots (page->ptl of the table); table_lock
 * covers the entries above. A slot is empty, names a leaf table, or is a block
 * (huge.c). Tables are only freed with mmap_lock held for writing (or by the
 * last user), after the areas left the reverse map, so that walkers under
 * mmap_lock or an rmap lock need no lock above the leaf.
 *
 * Who asks for the leaf PTE of a block's page gets one: the block is split.
 */
#include "arch/barrier.h"
#include "kernel/panic.h"
#include "mm/gather.h"
#include "mm/huge.h"
#include "mm/mm_priv.h"

#define LEAF 3

static pte_t *table_of(pte_t entry)
{
    return phys_to_virt(pte_address(entry));
}

static struct spinlock *entry_lock(struct mm *mm, pte_t *entry, unsigned level)
{
    return level == LEAF - 1 ? &virt_to_page(entry)->ptl : &mm->table_lock;
}

pte_t *pt_slot(struct mm *mm, uint64_t va, struct spinlock **out_lock)
{
    pte_t *table = mm->pgd;

    for (unsigned level = 0; level < LEAF - 1; level++) {
        /* The dependent read orders it after the store of the pointer. */
        pte_t entry = pte_read(&table[pt_index(va, level)]);

        if (!(entry & PTE_VALID)) {
            return NULL;
        }
        table = table_of(entry);
    }
    *out_lock = &virt_to_page(table)->ptl;
    return &table[pt_index(va, LEAF - 1)];
}

static pte_t *leaf_of(pte_t entry, uint64_t va, struct spinlock **out_ptl)
{
    pte_t *table = table_of(entry);

    *out_ptl = &virt_to_page(table)->ptl;
    return &table[pt_index(va, LEAF)];
}

pte_t *pt_walk(struct mm *mm, uint64_t va, struct spinlock **out_ptl)
{
    struct spinlock *lock;
    pte_t *slot = pt_slot(mm, va, &lock), entry;

    if (slot == NULL) {
        return NULL;
    }
    while (pte_is_block(entry = pte_read(slot))) {
        huge_split(mm, slot, lock, va);
    }
    return entry == 0 ? NULL : leaf_of(entry, va, out_ptl);
}

struct page *pt_new_table(void)
{
    struct page *page = page_alloc(0, PAGE_ALLOC_ZERO | PAGE_ALLOC_RECLAIM);

    if (page != NULL) {
        page_set(page, PG_TABLE);
        spin_init(&page->ptl, LOCK_ptl);
        list_init(&page->lru); /* a level-2 table's: what its blocks left */
    }
    return page;
}

void pt_drop_table(struct page *page)
{
    page_clear(page, PG_TABLE);
    page_free(page, 0);
}

/* Puts a new table below *entry unless somebody else put something there. */
static bool table_install(struct mm *mm, pte_t *entry, unsigned level)
{
    struct spinlock *lock = entry_lock(mm, entry, level);
    struct page *page = pt_new_table();

    if (page == NULL) {
        return false;
    }
    spin_lock(lock);
    if (pte_read(entry) != 0) {
        spin_unlock(lock);
        pt_drop_table(page);
        return true;
    }
    pt_hook(entry, page);
    atomic_fetch_add_explicit(&mm->tables, 1, memory_order_relaxed);
    spin_unlock(lock);
    return true;
}

void pt_hook(pte_t *entry, struct page *table)
{
    /*
     * A walker that sees the pointer must see the table's contents. The
     * pointer itself may arrive late: the cost is a fault that finds
     * everything in place.
     */
    dsb_ishst();
    pte_write(entry, page_to_phys(table) | PTE_TABLE | PTE_VALID);
}

pte_t *pt_slot_alloc(struct mm *mm, uint64_t va, struct spinlock **out_lock)
{
    pte_t *table = mm->pgd;

    for (unsigned level = 0; level < LEAF - 1; level++) {
        pte_t *entry = &table[pt_index(va, level)];

        if (pte_read(entry) == 0 && !table_install(mm, entry, level)) {
            return NULL;
        }
        table = table_of(pte_read(entry));
    }
    *out_lock = &virt_to_page(table)->ptl;
    return &table[pt_index(va, LEAF - 1)];
}

pte_t *pt_alloc(struct mm *mm, uint64_t va, struct spinlock **out_ptl)
{
    struct spinlock *lock;
    pte_t *slot = pt_slot_alloc(mm, va, &lock), entry;

    if (slot == NULL) {
        return NULL;
    }
    for (;;) {
        entry = pte_read(slot);
        if (pte_is_block(entry)) {
            huge_split(mm, slot, lock, va);
        } else if (entry != 0) {
            return leaf_of(entry, va, out_ptl);
        } else if (!table_install(mm, slot, LEAF - 1)) {
            return NULL;
        }
    }
}

/* --- looking without a wish to change --- */

static pte_t page_of_block(pte_t block, uint64_t va)
{
    return block + (va & (BLOCK_SIZE - 1) & PAGE_MASK) + PTE_PAGE;
}

pte_t pt_lookup(struct mm *mm, uint64_t va, unsigned *out_level)
{
    struct spinlock *lock;
    pte_t *slot = pt_slot(mm, va, &lock);
    pte_t entry = slot == NULL ? 0 : pte_read(slot);

    *out_level = pte_is_block(entry) ? LEAF - 1 : LEAF;
    if (pte_is_block(entry)) {
        return page_of_block(entry, va);
    }
    return entry == 0 ? 0 : pte_read(leaf_of(entry, va, &lock));
}

pte_t pt_lookup_lock(struct mm *mm, uint64_t va, struct spinlock **out_lock)
{
    pte_t *slot = pt_slot(mm, va, out_lock), entry, *p;

    while (slot != NULL && pte_is_block(pte_read(slot))) {
        spin_lock(*out_lock);
        entry = pte_read(slot);
        if (pte_is_block(entry)) {
            return page_of_block(entry, va);
        }
        spin_unlock(*out_lock);
    }
    entry = slot == NULL ? 0 : pte_read(slot);
    if (pte_is_block(entry)) {
        return pt_lookup_lock(mm, va, out_lock); /* it came this moment */
    }
    if (entry == 0) {
        return 0;
    }
    p = leaf_of(entry, va, out_lock);
    spin_lock(*out_lock);
    entry = pte_read(p);
    if (entry == 0) {
        spin_unlock(*out_lock);
    }
    return entry;
}

/* --- freeing --- */

/*
 * Unhooks the table of *entry, of this level; from is the lowest address of the
 * range that is being unmapped and that the table covers.
 */
static void free_table(struct gather *g, pte_t *entry, unsigned level,
                       uint64_t from)
{
    struct spinlock *lock = entry_lock(g->mm, entry, level);
    struct page *page = phys_to_page(pte_address(pte_read(entry)));

    ASSERT(list_empty(&page->lru)); /* its blocks were zapped */
    spin_lock(lock);
    pte_write(entry, 0);
    spin_unlock(lock);
    atomic_fetch_sub_explicit(&g->mm->tables, 1, memory_order_relaxed);
    gather_table(g, page, from, level);
}

/*
 * A table goes if the whole of what it maps is free: [floor, ceiling) holds no
 * area.
 */
static void free_level(struct gather *g, pte_t *table, unsigned level,
                       uint64_t start, uint64_t end, uint64_t floor,
                       uint64_t ceiling)
{
    uint64_t size = 1UL << pt_shift(level);

    for (uint64_t base = start & ~(size - 1); base < end; base += size) {
        pte_t *entry = &table[pt_index(base, level)];
        uint64_t from = base > start ? base : start;

        if (!(pte_read(entry) & PTE_VALID)) {
            continue;
        }
        if (level < LEAF - 1) {
            free_level(g, table_of(pte_read(entry)), level + 1, from,
                       base + size < end ? base + size : end, floor, ceiling);
        }
        if (base >= floor && base + size <= ceiling) {
            free_table(g, entry, level, from);
        }
    }
}

void pt_free_range(struct gather *g, uint64_t start, uint64_t end,
                   uint64_t floor, uint64_t ceiling)
{
    free_level(g, g->mm->pgd, 0, start & ~(BLOCK_SIZE - 1), end, floor,
               ceiling);
}
