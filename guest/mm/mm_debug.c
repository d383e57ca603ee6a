/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who still owes a TLB flush for what. A debt is noted for the frame a cleared
 * PTE named and for the table it stood in, and has two ways to be paid: its
 * debtor (a task's batch, or a task's gather) flushes all it queued, or anybody
 * flushes the whole address space, starting after the debt was made.
 *
 * Debtors and address spaces are numbered slots, since they may be gone when a
 * debt is looked at; their counters only grow, also when a slot is used again:
 *
 *   debtor       next: number of the newest debt; paid: all up to here are paid
 *   address space   begun: flushes begun; ended: the newest begun that ended
 *
 * A frame remembers two open debts. A third one by a third debtor is forgotten:
 * fewer reports, never a wrong one. debts_lock (hashed) protects a frame's
 * entries; the counters are atomics, read without it: an old value only makes a
 * paid debt look open, so they are read with acquire, paired with the release
 * of who has just flushed.
 */
#include "mm/mm_debug.h"

#include "kernel/annot.h"
#include "kernel/bootargs.h"
#include "kernel/panic.h"
#include "kernel/printk.h"
#include "kernel/task.h"
#include "mm/gather.h"
#include "mm/mm_priv.h"
#include "mm/tlbbatch.h"

#define SLOTS 4096
#define DEBTS_PER_FRAME 2
#define DEBT_LOCKS 64
#define BLOCKS_MAX 1024

enum kind { KIND_BATCH, KIND_GATHER, KINDS };

struct debt {
    uint64_t number; /* of the debtor; 0: none */
    uint64_t begun;  /* of the address space when the debt was made */
    uint64_t va;
    uint16_t debtor, space; /* slots */
    uint8_t kind;
    bool writable;
};

struct frame_debts {
    struct debt debt[DEBTS_PER_FRAME];
};

#define FRAMES_PER_BLOCK                                                       \
    ((PAGE_SIZE << PAGE_MAX_ORDER) / sizeof(struct frame_debts))

static struct {
    _Atomic uint64_t next[KINDS], paid[KINDS];
} debtors[SLOTS];

static struct {
    _Atomic uint64_t begun, ended;
} spaces[SLOTS];

static struct {
    struct spinlock lock;
} CACHE_ALIGNED debt_locks[DEBT_LOCKS];

/* A slot is free when its bit is 0; slot 0 is nobody's. */
struct slot_map {
    struct spinlock lock;
    uint64_t used[SLOTS / 64];
};

static struct slot_map debtor_map = {.lock = SPINLOCK_INIT(LOCK_none)};
static struct slot_map space_map = {.lock = SPINLOCK_INIT(LOCK_none)};
/* [init] by frame from page_base_pfn, in blocks of the largest order */
static struct frame_debts *blocks[BLOCKS_MAX];

bool mm_debug_on;

static void broken(unsigned invariant, const char *what, uint64_t pa,
                   const struct debt *debt) NORETURN;
static void broken(unsigned invariant, const char *what, uint64_t pa,
                   const struct debt *debt)
{
    printk("mm: I%u: %s: frame 0x%lx, address 0x%lx, %s %u owes flush %lu%s\n",
           invariant, what, pa, debt->va,
           debt->kind == KIND_BATCH ? "batch" : "gather", debt->debtor,
           debt->number, debt->writable ? " of a writable translation" : "");
    annot_finding(MM_DEBUG_FINDING + invariant); /* the run may end here */
    panic("mm: I%u is broken", invariant);
}

/* 0: all are taken, and the newcomer is not watched. */
static uint16_t slot_take(struct slot_map *map)
{
    unsigned found = 0;

    spin_lock(&map->lock);
    map->used[0] |= 1;
    for (unsigned w = 0; w < ARRAY_SIZE(map->used) && found == 0; w++) {
        if (~map->used[w] != 0) {
            unsigned bit = (unsigned)__builtin_ctzl(~map->used[w]);

            map->used[w] |= BIT(bit);
            found = w * 64 + bit;
        }
    }
    spin_unlock(&map->lock);
    return (uint16_t)found;
}

static void slot_give(struct slot_map *map, uint16_t slot)
{
    if (slot != 0) {
        spin_lock(&map->lock);
        map->used[slot / 64] &= ~BIT(slot % 64);
        spin_unlock(&map->lock);
    }
}

static uint16_t debtor_slot(struct tlb_ubc *ubc)
{
    if (ubc->debug_slot == 0) {
        ubc->debug_slot = slot_take(&debtor_map);
    }
    return ubc->debug_slot;
}

/* Two CPUs may find it missing at once. */
static uint16_t space_slot(struct mm *mm)
{
    uint16_t slot = atomic_load_explicit(&mm->debug_slot, memory_order_relaxed);
    uint16_t mine;

    if (slot != 0) {
        return slot;
    }
    mine = slot_take(&space_map);
    if (!atomic_compare_exchange_strong_explicit(&mm->debug_slot, &slot, mine,
                                                 memory_order_relaxed,
                                                 memory_order_relaxed)) {
        slot_give(&space_map, mine);
        return slot;
    }
    return mine;
}

static bool debt_open(const struct debt *debt)
{
    return debt->number != 0 &&
           atomic_load_explicit(&debtors[debt->debtor].paid[debt->kind],
                                memory_order_acquire) < debt->number &&
           atomic_load_explicit(&spaces[debt->space].ended,
                                memory_order_acquire) <= debt->begun;
}

static struct frame_debts *debts_lock(const struct page *page)
{
    uint64_t i = page_to_pfn(page) - page_base_pfn;

    spin_lock(&debt_locks[i % DEBT_LOCKS].lock);
    return &blocks[i / FRAMES_PER_BLOCK][i % FRAMES_PER_BLOCK];
}

static void debts_unlock(const struct page *page)
{
    uint64_t i = page_to_pfn(page) - page_base_pfn;

    spin_unlock(&debt_locks[i % DEBT_LOCKS].lock);
}

/* A PTE may name what is no RAM of ours. */
static bool frame_is_ram(uint64_t pteval)
{
    uint64_t pfn = pte_address(pteval) >> PAGE_SHIFT;

    return pfn >= page_base_pfn && pfn < page_end_pfn;
}

static void debt_note(const struct page *page, const struct debt *debt)
{
    struct frame_debts *frame = debts_lock(page);
    struct debt *place = NULL;

    for (unsigned i = 0; i < DEBTS_PER_FRAME; i++) {
        struct debt *old = &frame->debt[i];

        /* The debtor's newer debt is paid no earlier than its older one. */
        if (!debt_open(old) ||
            (old->debtor == debt->debtor && old->kind == debt->kind &&
             old->space == debt->space)) {
            bool writable = debt_open(old) && old->writable;

            place = old;
            *place = *debt;
            place->writable |= writable;
            break;
        }
    }
    debts_unlock(page);
}

/* An open debt of the page (writable: one of those only), copied; or false. */
static bool debt_find(const struct page *page, bool writable, struct debt *out)
{
    struct frame_debts *frame = debts_lock(page);
    bool found = false;

    for (unsigned i = 0; i < DEBTS_PER_FRAME && !found; i++) {
        const struct debt *debt = &frame->debt[i];

        if ((debt->writable || !writable) && debt_open(debt)) {
            *out = *debt;
            found = true;
        }
    }
    debts_unlock(page);
    return found;
}

static struct debt debt_make(struct mm *mm, enum kind kind, uint64_t va,
                             bool writable)
{
    struct debt debt = {
        .va = va,
        .kind = (uint8_t)kind,
        .writable = writable,
        .debtor = debtor_slot(&current()->tlb_ubc),
        .space = space_slot(mm),
    };

    if (debt.debtor != 0 && debt.space != 0) {
        debt.number =
            atomic_fetch_add_explicit(&debtors[debt.debtor].next[kind], 1,
                                      memory_order_relaxed) +
            1;
        debt.begun = atomic_load_explicit(&spaces[debt.space].begun,
                                          memory_order_relaxed);
    }
    return debt;
}

static void pay(struct tlb_ubc *ubc, enum kind kind)
{
    uint16_t slot = ubc->debug_slot;

    if (slot != 0) {
        /* Only its task writes both. Release: after the flush. */
        atomic_store_explicit(
            &debtors[slot].paid[kind],
            atomic_load_explicit(&debtors[slot].next[kind],
                                 memory_order_relaxed),
            memory_order_release);
    }
}

void mm_debug_deferred_slow(struct mm *mm, uint64_t pteval, uint64_t va)
{
    struct debt debt;
    struct spinlock *ptl;
    pte_t *p = pt_walk(mm, va, &ptl);

    ASSERT_MSG(p == NULL || spin_held(ptl), "mm: unmap without the lock");
    /* I4: the word is bumped after the PTE is cleared. */
    ASSERT_MSG(p == NULL || !pte_valid(pte_read(p)),
               "mm: I4: address 0x%lx is queued before it is unmapped", va);
    debt = debt_make(mm, KIND_BATCH, va, pte_dirty(pteval));
    if (debt.number != 0) {
        if (frame_is_ram(pteval)) {
            debt_note(pte_page(pteval), &debt);
        }
        if (p != NULL) {
            debt_note(virt_to_page(p), &debt);
        }
    }
}

void mm_debug_batch_done_slow(struct tlb_ubc *ubc)
{
    pay(ubc, KIND_BATCH);
}

void mm_debug_gathered_slow(struct gather *g, struct page *page, bool writable)
{
    struct debt debt;

    /*
     * Of an address space that nobody runs any more only walks need a flush:
     * its ASID is not given away before everything is flushed.
     */
    if (g->fullmm) {
        return;
    }
    debt = debt_make(g->mm, KIND_GATHER, g->start, writable);
    if (debt.number != 0) {
        debt_note(page, &debt);
    }
}

void mm_debug_gather_done_slow(struct gather *g)
{
    (void)g;
    pay(&current()->tlb_ubc, KIND_GATHER);
}

uint64_t mm_debug_mm_flush_begin_slow(struct mm *mm)
{
    return atomic_fetch_add_explicit(&spaces[space_slot(mm)].begun, 1,
                                     memory_order_relaxed) +
           1;
}

void mm_debug_mm_flush_end_slow(struct mm *mm, uint64_t ticket)
{
    _Atomic uint64_t *ended = &spaces[space_slot(mm)].ended;
    uint64_t old = atomic_load_explicit(ended, memory_order_relaxed);

    while (old < ticket &&
           !atomic_compare_exchange_weak_explicit(
               ended, &old, ticket, memory_order_release,
               memory_order_relaxed)) {
    }
}

void mm_debug_drained_slow(struct mm *mm, const void *pte)
{
    struct page *table = virt_to_page(pte);
    struct debt debt;
    uint32_t word;

    if (!debt_find(table, false, &debt) || debt.kind != KIND_BATCH) {
        return;
    }
    word = atomic_load_explicit(&mm->tlb_flush_batched, memory_order_relaxed);
    if ((word & TLB_BATCH_PENDING_MASK) == word >> TLB_BATCH_FLUSHED_SHIFT) {
        broken(4, "the pending word says that nothing is owed in this table",
               page_to_phys(table), &debt);
    }
    broken(3, "a range operation goes on while a flush in its table is owed",
           page_to_phys(table), &debt);
}

void mm_debug_free_slow(struct page *page, unsigned order)
{
    struct debt debt;

    for (uint64_t i = 0; i < 1UL << order; i++) {
        if (debt_find(page + i, false, &debt)) {
            broken(1, "a frame is freed while its translation may be in use",
                   page_to_phys(page + i), &debt);
        }
    }
}

void mm_debug_write_out_slow(struct page *page)
{
    struct debt debt;

    if (debt_find(page, true, &debt)) {
        broken(2, "a page is written out while a CPU may still write it",
               page_to_phys(page), &debt);
    }
}

void mm_debug_task_gone_slow(struct tlb_ubc *ubc)
{
    uint16_t slot = ubc->debug_slot;

    for (unsigned kind = 0; slot != 0 && kind < KINDS; kind++) {
        ASSERT_MSG(
            atomic_load_explicit(&debtors[slot].paid[kind],
                                 memory_order_relaxed) ==
                atomic_load_explicit(&debtors[slot].next[kind],
                                     memory_order_relaxed),
            "mm: a task ends and owes flushes");
    }
    slot_give(&debtor_map, slot);
}

void mm_debug_mm_gone_slow(struct mm *mm)
{
    slot_give(&space_map,
              atomic_load_explicit(&mm->debug_slot, memory_order_relaxed));
}

void mm_debug_init(void)
{
    uint64_t n =
        (page_end_pfn - page_base_pfn + FRAMES_PER_BLOCK - 1) / FRAMES_PER_BLOCK;

    if (!bootargs_debug("mm")) {
        return;
    }
    for (unsigned i = 0; i < DEBT_LOCKS; i++) {
        spin_init(&debt_locks[i].lock, LOCK_none);
    }
    ASSERT_MSG(n <= BLOCKS_MAX, "debug=mm: %lu MiB are too much memory",
               (page_end_pfn - page_base_pfn) * PAGE_SIZE >> 20);
    for (uint64_t i = 0; i < n; i++) {
        blocks[i] = page_alloc_virt(PAGE_MAX_ORDER);
        ASSERT_MSG(blocks[i] != NULL, "debug=mm needs %lu MiB of memory",
                   n * (PAGE_SIZE << PAGE_MAX_ORDER) >> 20);
    }
    mm_debug_on = true;
}
