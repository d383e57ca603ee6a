/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The broadcast back end, and the local operations both back ends use. Every
 * TLBI and DSB is next to its counter.
 *
 * DSB ISHST before a TLBI makes the PTE store visible to every walker; the ASID
 * is read after it, so that a concurrent ASID rollover is harmless: the new
 * number's walks see the store. Only a DSB ISH of the CPU that issued a TLBI
 * waits for it, so (DSB ISHST, TLBI) pairs queue up without waiting.
 */
#include "mm/flush.h"

#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "arch/tlbi.h"
#include "kernel/bug.h"
#include "mm/counters.h"
#include "mm/mm_priv.h"

/* More single-entry operations than this: flush the whole mm instead. */
#define MAX_DVM_OPS 512UL
#define MAX_TLBI_RANGE_PAGES (32UL << 16)

#define NOINLINE __attribute__((noinline))

static bool has_range; /* [init] FEAT_TLBIRANGE */
static bool has_ttl;   /* [init] FEAT_TTL */

void flush_bc_init(void)
{
    has_range = ((read_id_aa64isar0_el1() >> 56) & 15) >= 2;
    has_ttl = ((read_id_aa64mmfr2_el1() >> 48) & 15) >= 1;
}

static uint64_t ttl_va(unsigned level)
{
    return has_ttl && level != 0 ? TLBI_TTL_4K(level) : 0;
}

NOINLINE void flush_bc_page(struct mm *mm, uint64_t va)
{
    dsb_ishst();
    counter_inc(dsb_ishst);
    tlbi_vale1is(tlbi_operand_va(va, asid_of(mm)) | ttl_va(3));
    counter_inc(tlbi_va);
    dsb_ish();
    counter_inc(dsb_ish);
}

NOINLINE void flush_bc_mm(struct mm *mm)
{
    dsb_ishst();
    counter_inc(dsb_ishst);
    tlbi_aside1is(tlbi_operand_asid(asid_of(mm)));
    counter_inc(tlbi_asid);
    dsb_ish();
    counter_inc(dsb_ish);
}

static bool over_limit(const struct flush_range *range)
{
    uint64_t pages = (range->end - range->start) >> PAGE_SHIFT;

    if (has_range) {
        return pages > MAX_TLBI_RANGE_PAGES;
    }
    return range->end - range->start >= MAX_DVM_OPS * range->stride;
}

static void tlb_one(uint64_t va, uint16_t asid, const struct flush_range *range)
{
    uint64_t operand = tlbi_operand_va(va, asid) | ttl_va(range->level);

    if (range->last_level) {
        tlbi_vale1is(operand);
    } else {
        tlbi_vae1is(operand);
        counter_inc(tlbi_va_walk);
    }
    counter_inc(tlbi_va);
}

static void tlb_run(uint64_t va, uint16_t asid, unsigned scale, unsigned num,
                    const struct flush_range *range)
{
    uint64_t operand = tlbi_operand_range(va, asid, scale, num);

    if (has_ttl) {
        operand |= (uint64_t)range->level << 37;
    }
    if (range->last_level) {
        tlbi_rvale1is(operand);
    } else {
        tlbi_rvae1is(operand);
        counter_inc(tlbi_range_walk);
    }
    counter_inc(tlbi_range);
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

    while (pages > 0) {
        uint64_t unit, num;

        if (!has_range || pages == 1) {
            tlb_one(va, asid, range);
            va += range->stride;
            pages -= stride_pages < pages ? stride_pages : pages;
            continue;
        }
        unit = 1UL << (5 * scale + 1);
        num = (pages < 32 * unit ? pages : 32 * unit) / unit;
        if (num > 0) {
            tlb_run(va, asid, (unsigned)scale, (unsigned)num - 1, range);
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

    if (over_limit(range)) {
        flush_bc_mm(mm);
        return;
    }
    dsb_ishst();
    counter_inc(dsb_ishst);
    tlb_range_ops(asid_of(mm), start, (end - start) >> PAGE_SHIFT, range);
    dsb_ish();
    counter_inc(dsb_ish);
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

    if (over_limit(&range)) {
        flush_bc_mm(mm);
        return;
    }
    if (bug_is(BUG_local_instead_of_broadcast)) {
        tlb_local_flush_pages(asid_of(mm), &range);
        return;
    }
    if (!bug_is(BUG_tlbi_before_store_visible)) {
        dsb_ishst();
        counter_inc(dsb_ishst);
    }
    tlb_range_ops(asid_of(mm), start, (end - start) >> PAGE_SHIFT, &range);
}

/* Completes what this task queued: here, or before it left another CPU. */
NOINLINE void flush_bc_sync(void)
{
    dsb_ish();
    counter_inc(dsb_ish);
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
    local_irq_restore(flags);
}

NOINLINE void tlb_local_flush_asid(uint16_t asid)
{
    uint64_t flags = local_irq_save();

    dsb_nshst();
    tlbi_aside1(tlbi_operand_asid(asid));
    dsb_nsh();
    counter_add(dsb_nsh, 2);
    counter_inc(tlbi_local);
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
            tlbi_vale1(operand);
        } else {
            tlbi_vae1(operand);
        }
        counter_inc(tlbi_local);
    }
    dsb_nsh();
    counter_add(dsb_nsh, 2);
    local_irq_restore(flags);
}
