/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The broadcast back end, and the local operations both back ends use. Every
 * TLBI and DSB is next to its counter.
 *
 * DSB ISHST before a TLBI makes the PTE store visible to every walker; the ASID
 * is read after it, so that a concurrent ASID rollover is harmless: the new
 * number's walks see the store. Only a DSB ISH of the CPU that issued a TLBI
 * waits for it, so (DSB ISHST, TLBI) pairs queue up without waiting.
 *
 * With kpti every TLBI is issued for both views of the address space.
 */
#include "mm/flush.h"

#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "arch/tlbi.h"
#include "kernel/bug.h"
#include "mm/counters.h"
#include "mm/flush_opts.h"
#include "mm/mm_priv.h"

/* More single-entry operations than this: flush the whole mm instead. */
#define MAX_DVM_OPS 512UL
#define MAX_TLBI_RANGE_PAGES (32UL << 16)

/* EL0's ASID in an operand. */
#define USER_VIEW (1UL << 48)

#define NOINLINE __attribute__((noinline))

/* The kernel's view, and EL0's if it has one. */
#define TLBI_VIEWS(operation, operand, counter)                                \
    do {                                                                       \
        uint64_t operand_ = (operand);                                         \
                                                                               \
        operation(operand_);                                                   \
        counter_inc(counter);                                                  \
        if (unlikely(flush_opts.kpti)) {                                       \
            operation(operand_ | USER_VIEW);                                   \
            counter_inc(counter);                                              \
        }                                                                      \
    } while (0)

/* The level hint for operands: 0 is none. */
static unsigned hint_of(unsigned level)
{
    if (!flush_opts.ttl || level == 0) {
        return 0;
    }
    return bug_is(BUG_mutant_hint_off_by_one) ? level - 1 : level;
}

static uint64_t ttl_va(unsigned level)
{
    unsigned hint = hint_of(level);

    return hint != 0 ? TLBI_TTL_4K(hint) : 0;
}

static bool is_leaf_only(const struct flush_range *range)
{
    return range->last_level || bug_is(BUG_mutant_leaf_only);
}

/*
 * Waits for this CPU's TLBIs. The erratum: a DSB may end before the TLBI
 * right before it did; so a further one, of nothing, takes that place.
 */
static inline void tlb_sync(void)
{
    if (bug_is(BUG_mutant_dsb_ishst)) {
        dsb_ishst();
        counter_inc(dsb_ishst);
        return;
    }
    if (bug_is(BUG_mutant_dsb_nsh)) {
        dsb_nsh();
        counter_inc(dsb_nsh);
        return;
    }
    dsb_ish();
    counter_inc(dsb_ish);
    if (unlikely(flush_opts.repeat_tlbi)) {
        tlbi_vale1is(0);
        counter_inc(tlbi_va);
        dsb_ish();
        counter_inc(dsb_ish);
    }
}

/* Before a TLBI: makes the PTE stores visible, then reads the ASID. */
static inline uint16_t visible_asid(struct mm *mm)
{
    if (bug_is(BUG_asid_read_early)) {
        uint16_t early = asid_of(mm);

        dsb_ishst();
        counter_inc(dsb_ishst);
        return early;
    }
    dsb_ishst();
    counter_inc(dsb_ishst);
    return asid_of(mm);
}

NOINLINE void flush_bc_page(struct mm *mm, uint64_t va)
{
    uint16_t asid = visible_asid(mm);

    TLBI_VIEWS(tlbi_vale1is, tlbi_operand_va(va, asid) | ttl_va(3), tlbi_va);
    tlb_sync();
}

NOINLINE void flush_bc_young(struct mm *mm, uint64_t va)
{
    dsb_ishst();
    counter_inc(dsb_ishst);
    TLBI_VIEWS(tlbi_vale1is, tlbi_operand_va(va, asid_of(mm)) | ttl_va(3),
               tlbi_va);
}

NOINLINE void flush_bc_mm(struct mm *mm)
{
    uint16_t asid = visible_asid(mm);

    TLBI_VIEWS(tlbi_aside1is, tlbi_operand_asid(asid), tlbi_asid);
    tlb_sync();
}

NOINLINE void flush_bc_all(void)
{
    dsb_ishst();
    counter_inc(dsb_ishst);
    tlbi_vmalle1is();
    counter_inc(tlbi_all);
    tlb_sync();
    isb();
}

/* Is the whole mm cheaper? size: of the range, in whole strides. */
static bool over_limit(uint64_t size, uint64_t stride)
{
    if (flush_opts.range_ops) {
        return size >> PAGE_SHIFT > MAX_TLBI_RANGE_PAGES;
    }
    return size >= MAX_DVM_OPS * stride;
}

static void tlb_one(uint64_t va, uint16_t asid, const struct flush_range *range)
{
    uint64_t operand =
        tlbi_operand_va(bug_is(BUG_mutant_unshifted) ? va << PAGE_SHIFT : va,
                        asid) |
        ttl_va(range->level);

    if (is_leaf_only(range)) {
        TLBI_VIEWS(tlbi_vale1is, operand, tlbi_va);
    } else {
        TLBI_VIEWS(tlbi_vae1is, operand, tlbi_va);
        counter_add(tlbi_va_walk, flush_views());
    }
}

static void tlb_run(uint64_t va, uint16_t asid, unsigned scale, unsigned num,
                    const struct flush_range *range)
{
    uint64_t operand = tlbi_operand_range(va, asid, scale, num);

    operand |= (uint64_t)hint_of(range->level) << 37;
    if (is_leaf_only(range)) {
        TLBI_VIEWS(tlbi_rvale1is, operand, tlbi_range);
    } else {
        TLBI_VIEWS(tlbi_rvae1is, operand, tlbi_range);
        counter_add(tlbi_range_walk, flush_views());
    }
}

/* How the number of units is written: one less, in five bits. */
static unsigned range_num(uint64_t units)
{
    return (unsigned)(units - 1) & (bug_is(BUG_range_miscount) ? 7 : 31);
}

/*
 * Range operations from the largest unit down: unit(scale) = 2^(5 scale + 1)
 * pages, up to 32 units each; a single page left over has its own operation.
 */
static NOINLINE void tlb_range_ops(uint16_t asid, uint64_t va, uint64_t pages,
                                   const struct flush_range *range)
{
    uint64_t stride_pages = range->stride >> PAGE_SHIFT;
    int scale = 3;

    if (bug_is(BUG_mutant_asid_zero)) {
        asid = 0;
    }
    if (bug_is(BUG_mutant_one_page_short)) {
        pages -= stride_pages < pages ? stride_pages : 0;
    }
    while (pages > 0) {
        uint64_t unit, num;

        if (!flush_opts.range_ops || pages == 1) {
            tlb_one(va, asid, range);
            va += range->stride;
            pages -= stride_pages < pages ? stride_pages : pages;
            continue;
        }
        unit = 1UL << (5 * scale + 1);
        num = (pages < 32 * unit ? pages : 32 * unit) / unit;
        if (num > 0) {
            tlb_run(va, asid, (unsigned)scale, range_num(num), range);
            va += num * unit << PAGE_SHIFT;
            pages -= num * unit;
        }
        scale--;
    }
}

NOINLINE void flush_bc_range(struct mm *mm, const struct flush_range *range)
{
    uint64_t start = ALIGN_DOWN(range->start, range->stride);
    uint64_t end = ALIGN_UP(range->end, range->stride);

    if (over_limit(end - start, range->stride)) {
        flush_bc_mm(mm);
        return;
    }
    tlb_range_ops(visible_asid(mm), start, (end - start) >> PAGE_SHIFT, range);
    tlb_sync();
}

NOINLINE void flush_bc_page_nosync(struct mm *mm, uint64_t start, uint64_t end)
{
    struct flush_range range = {
        .start = start,
        .end = end,
        .stride = PAGE_SIZE,
        .level = 3,
        .last_level = true,
    };

    if (over_limit(end - start, PAGE_SIZE)) {
        flush_bc_mm(mm);
        return;
    }
    if (bug_is(BUG_local_instead_of_broadcast)) {
        tlb_local_flush_pages(asid_of(mm), &range);
        return;
    }
    tlb_range_ops(bug_is(BUG_tlbi_before_store_visible) ? asid_of(mm)
                                                        : visible_asid(mm),
                  start, (end - start) >> PAGE_SHIFT, &range);
}

/* The caller has counted a generation, which made the stores visible. */
NOINLINE void flush_bc_generation(struct mm *mm,
                                  const struct flush_range *range)
{
    if (range == NULL) {
        TLBI_VIEWS(tlbi_aside1is, tlbi_operand_asid(asid_of(mm)), tlbi_asid);
    } else {
        uint64_t start = ALIGN_DOWN(range->start, range->stride);
        uint64_t end = ALIGN_UP(range->end, range->stride);

        tlb_range_ops(asid_of(mm), start, (end - start) >> PAGE_SHIFT, range);
    }
    tlb_sync();
}

/* Completes what this task queued: here, or before it left another CPU. */
NOINLINE void flush_bc_sync(void)
{
    tlb_sync();
}

/* --- this CPU only --- */

NOINLINE void tlb_local_flush_all(void)
{
    uint64_t flags = local_irq_save();

    dsb_nshst();
    tlbi_vmalle1();
    dsb_nsh();
    isb();
    counter_add(dsb_nsh, 2);
    counter_inc(tlbi_local);
    counter_inc(nr_tlb_local_flush_all);
    local_irq_restore(flags);
}

NOINLINE void tlb_local_flush_asid(uint16_t asid)
{
    uint64_t flags = local_irq_save();

    dsb_nshst();
    TLBI_VIEWS(tlbi_aside1, tlbi_operand_asid(asid), tlbi_local);
    dsb_nsh();
    counter_add(dsb_nsh, 2);
    counter_inc(nr_tlb_local_flush_all);
    local_irq_restore(flags);
}

NOINLINE void tlb_local_flush_pages(uint16_t asid,
                                    const struct flush_range *range)
{
    uint64_t flags = local_irq_save();

    dsb_nshst();
    for (uint64_t va = ALIGN_DOWN(range->start, range->stride); va < range->end;
         va += range->stride) {
        uint64_t operand = tlbi_operand_va(va, asid) | ttl_va(range->level);

        if (range->last_level) {
            TLBI_VIEWS(tlbi_vale1, operand, tlbi_local);
        } else {
            TLBI_VIEWS(tlbi_vae1, operand, tlbi_local);
        }
        counter_inc(nr_tlb_local_flush_one);
    }
    dsb_nsh();
    counter_add(dsb_nsh, 2);
    local_irq_restore(flags);
}
