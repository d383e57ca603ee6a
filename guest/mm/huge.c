/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks: see huge.h. */
#include "mm/huge.h"

#include "arch/barrier.h"
#include "kernel/bug.h"
#include "kernel/panic.h"
#include "mm/counters.h"
#include "mm/flush.h"
#include "mm/gather.h"
#include "mm/lru.h"
#include "mm/memcg.h"
#include "mm/numa.h"
#include "mm/rmap.h"

/* Not valid to the hardware, still a block to pte_is_block(). */
static pte_t make_invalid(pte_t block)
{
    return (block & ~PTE_VALID) | PTE_PROT_NONE;
}

static void flush_block(struct mm *mm, uint64_t va)
{
    struct flush_range range = {
        .start = va,
        .end = va + BLOCK_SIZE,
        .stride = BLOCK_SIZE,
        .level = 2,
    };

    flush_tlb_range(mm, &range);
}

/* --- the tables set aside; slot's lock held --- */

static struct list *set_aside(const pte_t *slot)
{
    return &virt_to_page(slot)->lru;
}

static void deposit(struct mm *mm, pte_t *slot, struct page *table)
{
    list_append(set_aside(slot), &table->lru);
    atomic_fetch_add_explicit(&mm->tables, 1, memory_order_relaxed);
}

/* One for each block below this level-2 table, hence never none. */
static struct page *withdraw(struct mm *mm, pte_t *slot)
{
    struct list *list = set_aside(slot);
    struct page *table;

    ASSERT(!list_empty(list));
    table = page_of_node(list->next);
    list_remove(&table->lru);
    list_init(&table->lru);
    atomic_fetch_sub_explicit(&mm->tables, 1, memory_order_relaxed);
    return table;
}

/* --- split --- */

void huge_split(struct mm *mm, pte_t *slot, struct spinlock *lock, uint64_t va)
{
    struct page *table;
    pte_t block, *ptes;

    va &= ~(BLOCK_SIZE - 1);
    spin_lock(lock);
    block = pte_read(slot);
    if (!pte_is_block(block)) {
        spin_unlock(lock);
        return;
    }
    /* Break: no TLB may hold the block and pages of the table at once. */
    if (!bug_is(BUG_split_without_break)) {
        pte_exchange(slot, make_invalid(block));
        flush_block(mm, va);
    }
    table = withdraw(mm, slot);
    ptes = page_address(table);
    for (unsigned i = 0; i < BLOCK_PAGES; i++) {
        pte_write(&ptes[i], block + i * PAGE_SIZE + PTE_PAGE);
    }
    pt_hook(slot, table);
    atomic_fetch_add_explicit(&mm->tables, 1, memory_order_relaxed);
    spin_unlock(lock);
    counter_inc(block_splits);
}

void huge_split_at(struct mm *mm, uint64_t va)
{
    struct spinlock *lock;
    pte_t *slot = pt_slot(mm, va, &lock);

    if (slot != NULL && pte_is_block(pte_read(slot))) {
        huge_split(mm, slot, lock, va);
    }
}

/* --- fault --- */

static bool wants_block(const struct vma *vma, uint64_t base)
{
    return (vma->flags & (VMA_HUGE | VMA_SHARED)) == VMA_HUGE &&
           vma->file == NULL && !(vma->flags & PROT_EXEC) &&
           base >= vma->start && base + BLOCK_SIZE <= vma->end;
}

/* Zeroed, charged, and where the area's policy wants them; or NULL. */
static struct page *block_frames(const struct vma *vma)
{
    struct page *first = page_alloc(BLOCK_ORDER, 0);

    if (first != NULL && (!numa_allows(numa_policy(vma), first->node) ||
                          !memcg_charge(first, 0))) {
        page_free(first, BLOCK_ORDER);
        return NULL;
    }
    if (first != NULL) {
        memset(page_address(first), 0, BLOCK_SIZE);
    }
    return first;
}

static void map_frames(struct vma *vma, uint64_t base, struct page *first)
{
    page_split_block(first, BLOCK_ORDER);
    for (unsigned i = 0; i < BLOCK_PAGES; i++) {
        rmap_add_anon_new(first + i, vma, base + i * PAGE_SIZE);
        lru_add(first + i);
    }
}

/* False: no memory for one, or not the place. */
static bool make_block(struct mm *mm, struct vma *vma, uint64_t base,
                       bool write)
{
    struct spinlock *lock;
    pte_t *slot = pt_slot_alloc(mm, base, &lock);
    struct page *first, *table;
    pte_t block;

    if (slot == NULL || pte_read(slot) != 0) {
        return slot != NULL && pte_is_block(pte_read(slot));
    }
    table = pt_new_table();
    /* Not worth reclaim: pages will do. */
    first = table == NULL ? NULL : block_frames(vma);
    if (first == NULL) {
        if (table != NULL) {
            pt_drop_table(table);
        }
        return false;
    }
    block = (page_to_phys(first) | vma_pte(vma)) & ~PTE_PAGE;
    if (vma->flags & PROT_WRITE) {
        block |= PTE_WRITE;
    }
    spin_lock(lock);
    if (pte_read(slot) != 0) {
        spin_unlock(lock);
        pt_drop_table(table);
        page_free(first, BLOCK_ORDER);
        return true; /* somebody was faster */
    }
    map_frames(vma, base, first);
    deposit(mm, slot, table);
    atomic_fetch_add_explicit(&mm->rss, BLOCK_PAGES, memory_order_relaxed);
    dsb_ishst(); /* the zeroes first */
    pte_write(slot, write ? pte_mkdirty(block) : block);
    spin_unlock(lock);
    counter_inc(block_faults);
    return true;
}

/* The access is allowed: the entry was too strict, or older than the fault. */
static void allow(struct mm *mm, pte_t *slot, struct spinlock *lock,
                  uint64_t base, bool write)
{
    struct flush_range range = {
        .start = base,
        .end = base + BLOCK_SIZE,
        .stride = BLOCK_SIZE,
        .level = 2,
        .last_level = true,
    };
    pte_t old = pte_read(slot), block = old | PTE_AF;

    if (write) {
        block = pte_mkdirty(block);
    }
    if (block != old) {
        pte_write(slot, block);
    }
    spin_unlock(lock);
    tlb_local_flush_pages(asid_of(mm), &range); /* as fix_spurious */
}

bool huge_fault(struct mm *mm, struct vma *vma, uint64_t va, unsigned flags)
{
    uint64_t base = va & ~(BLOCK_SIZE - 1);
    bool write = flags & MM_FAULT_WRITE;
    struct spinlock *lock;
    pte_t *slot = pt_slot(mm, va, &lock);
    pte_t entry = slot == NULL ? 0 : pte_read(slot);

    if (entry == 0) {
        return wants_block(vma, base) && make_block(mm, vma, base, write);
    }
    if (!pte_is_block(entry)) {
        return false;
    }
    spin_lock(lock);
    entry = pte_read(slot);
    if (!pte_is_block(entry)) {
        spin_unlock(lock);
        return true; /* look again */
    }
    /*
     * A write to a block that may be shared copies pages, not blocks. Whether
     * a page is shared, only its own fault can tell.
     */
    if ((flags & MM_FAULT_FORCE) || (write && !(entry & PTE_WRITE))) {
        spin_unlock(lock);
        huge_split(mm, slot, lock, va);
        return false;
    }
    allow(mm, slot, lock, base, write);
    return true;
}

/* --- whole blocks --- */

/* The slot of the block at va, its lock taken; or NULL. */
static pte_t *lock_block(struct mm *mm, uint64_t va, struct spinlock **out_lock)
{
    pte_t *slot = pt_slot(mm, va, out_lock);

    if (slot == NULL || !pte_is_block(pte_read(slot))) {
        return NULL;
    }
    spin_lock(*out_lock);
    if (!pte_is_block(pte_read(slot))) {
        spin_unlock(*out_lock);
        return NULL;
    }
    return slot;
}

bool huge_zap(struct gather *g, uint64_t va)
{
    struct spinlock *lock;
    pte_t *slot = lock_block(g->mm, va, &lock);
    struct page *first, *table;
    bool full;

    if (slot == NULL) {
        return false;
    }
    first = pte_page(pte_exchange(slot, 0));
    gather_note(g, va, BLOCK_SIZE, 2);
    table = withdraw(g->mm, slot);
    for (unsigned i = 0; i < BLOCK_PAGES; i++) {
        rmap_remove(first + i);
    }
    atomic_fetch_sub_explicit(&g->mm->rss, BLOCK_PAGES, memory_order_relaxed);
    full = gather_pages(g, first, BLOCK_PAGES);
    if (g->concurrent) {
        /* Before a fault can put a table, or another block, in the slot. */
        gather_flush_tlb(g);
    }
    spin_unlock(lock);
    pt_drop_table(table); /* no walker ever saw it */
    if (full) {
        gather_flush(g);
    }
    return true;
}

bool huge_protect(struct gather *g, const struct vma *vma, uint64_t va)
{
    struct spinlock *lock;
    pte_t *slot, old, block;

    if (vma->flags & PROT_EXEC) {
        return false; /* the instruction caches want it page by page */
    }
    slot = lock_block(g->mm, va, &lock);
    if (slot == NULL) {
        return false;
    }
    old = pte_exchange(slot, make_invalid(pte_read(slot)));
    block = (vma_pte(vma) & ~PTE_PAGE) | pte_address(old);
    if ((old & PTE_WRITE) && (vma->flags & PROT_WRITE)) {
        block |= PTE_WRITE; /* it was ours alone and still is */
    }
    if (!(old & PTE_AF)) {
        block &= ~PTE_AF;
    }
    pte_write(slot, pte_dirty(old) ? pte_mkdirty(block) : block);
    gather_note(g, va, BLOCK_SIZE, 2);
    spin_unlock(lock);
    return true;
}

bool huge_cold(struct gather *g, uint64_t va)
{
    struct spinlock *lock;
    pte_t *slot = lock_block(g->mm, va, &lock), block;
    struct page *first;

    if (slot == NULL) {
        return false;
    }
    block = pte_read(slot);
    first = pte_page(block);
    if (block & PTE_AF) {
        pte_write(slot, block & ~PTE_AF);
        gather_note(g, va, BLOCK_SIZE, 2);
    }
    for (unsigned i = 0; i < BLOCK_PAGES; i++) {
        if (page_mapcount(first + i) == 1 && page_test(first + i, PG_LRU)) {
            page_clear(first + i, PG_REFERENCED);
            lru_deactivate(first + i);
        }
    }
    spin_unlock(lock);
    return true;
}

bool huge_copy(struct mm *mm, struct mm *child, uint64_t va, int *out_error)
{
    struct spinlock *src_lock, *dst_lock;
    pte_t *src = pt_slot(mm, va, &src_lock), *dst, block;
    struct page *table, *first;

    if (src == NULL || !pte_is_block(pte_read(src))) {
        return false;
    }
    dst = pt_slot_alloc(child, va, &dst_lock);
    table = dst == NULL ? NULL : pt_new_table();
    if (table == NULL) {
        *out_error = -ENOMEM;
        return true;
    }
    spin_lock(src_lock);
    block = pte_read(src);
    if (!pte_is_block(block)) {
        spin_unlock(src_lock);
        pt_drop_table(table);
        return false;
    }
    spin_lock_nested(dst_lock); /* a new mm: nobody takes it first */
    first = pte_page(block);
    for (unsigned i = 0; i < BLOCK_PAGES; i++) {
        page_get(first + i);
        rmap_add(first + i);
    }
    if (block & PTE_WRITE) {
        block = pte_wrprotect(block);
        pte_write(src, block);
    }
    deposit(child, dst, table);
    pte_write(dst, block);
    atomic_fetch_add_explicit(&child->rss, BLOCK_PAGES, memory_order_relaxed);
    spin_unlock(dst_lock);
    spin_unlock(src_lock);
    return true;
}

/* --- mremap --- */

/* Both locks held, the new slot is empty. */
static void move_entry(struct mm *mm, pte_t *src, uint64_t from, pte_t *dst)
{
    pte_t entry = pte_exchange(src, 0);
    bool block = pte_is_block(entry);
    struct flush_range range = {
        .start = from,
        .end = from + BLOCK_SIZE,
        .stride = block ? BLOCK_SIZE : PAGE_SIZE,
        .level = block ? 2 : 0,
        .freed_tables = true,
    };

    /*
     * Not the last level only: walk caches hold the table. What a reclaimer
     * has queued of it goes too, so nothing is drained.
     */
    flush_tlb_range(mm, &range);
    if (block) {
        struct page *table = withdraw(mm, src);

        deposit(mm, dst, table);
        pte_write(dst, entry);
    } else {
        pt_hook(dst, phys_to_page(pte_address(entry)));
    }
    counter_inc(mremap_entries);
}

int huge_move(struct mm *mm, struct spinlock *rmap, uint64_t from, uint64_t to)
{
    struct spinlock *src_lock, *dst_lock;
    pte_t *src = pt_slot(mm, from, &src_lock), *dst;
    bool moved, locks = !bug_is(BUG_mremap_table_move_vs_reclaim);

    if (src == NULL || pte_read(src) == 0) {
        return 1; /* nothing there; only faults, which wait, would change it */
    }
    dst = pt_slot_alloc(mm, to, &dst_lock);
    if (dst == NULL) {
        return -ENOMEM;
    }
    if (pte_read(dst) != 0) {
        return 0;
    }
    if (locks) {
        spin_lock(rmap);
    }
    spin_lock(src_lock);
    if (dst_lock != src_lock) {
        spin_lock_nested(dst_lock); /* source first; mmap_lock is ours */
    }
    moved = pte_read(dst) == 0;
    if (moved) {
        move_entry(mm, src, from, dst);
    }
    if (dst_lock != src_lock) {
        spin_unlock(dst_lock);
    }
    spin_unlock(src_lock);
    if (locks) {
        spin_unlock(rmap);
    }
    return moved;
}

/* --- questions --- */

bool huge_is_shared(struct mm *mm, uint64_t va)
{
    struct spinlock *lock;
    pte_t *slot = lock_block(mm, va, &lock);
    struct page *first;
    bool shared = true;

    if (slot == NULL) {
        return false;
    }
    first = pte_page(pte_read(slot));
    for (unsigned i = 0; i < BLOCK_PAGES && shared; i++) {
        shared = page_mapcount(first + i) != 1;
    }
    spin_unlock(lock);
    return shared;
}

bool huge_clear_young(struct mm *mm, uint64_t va, const struct page *page,
                      bool *out_young)
{
    struct spinlock *lock;
    pte_t *slot = lock_block(mm, va, &lock), block;
    struct page *first;

    if (slot == NULL) {
        return false;
    }
    block = pte_read(slot);
    first = pte_page(block);
    *out_young = false;
    if (page >= first && page < first + BLOCK_PAGES && (block & PTE_AF)) {
        *out_young = true;
        /*
         * One flag for 512 pages: the one that comes last on the LRU clears
         * it. No flush: a cached entry only hides the next use.
         */
        if (page == first + BLOCK_PAGES - 1) {
            pte_write(slot, block & ~PTE_AF);
        }
    }
    spin_unlock(lock);
    return true;
}
