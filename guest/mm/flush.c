/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB flushing: the choice of the back end, and the context switch. The
 * instructions are in flush_broadcast.c.
 */
#include "mm/flush.h"

#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/bug.h"
#include "kernel/panic.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/counters.h"
#include "mm/flush_opts.h"
#include "mm/like.h"
#include "mm/mm_debug.h"
#include "mm/mm_priv.h"
#include "mm/tlbbatch.h"

/* local_tlbi=on: more than this by address, and all of the mm is cheaper. */
#define LOCAL_PAGES_MAX 512UL

struct tlb_cpu tlb_cpus[MAX_CPUS];

extern char vectors_kpti[]; /* boot/vectors.S */

/* The back end that counts generations, whatever instructions it issues. */
static bool ipi(void)
{
    return bootargs.tlb != BOOTARG_TLB_BROADCAST;
}

void flush_init(void)
{
    flush_opts_init();
    asid_init();
}

void flush_mm_init(struct mm *mm)
{
    static _Atomic uint64_t next_ctx_id = 1;

    /* A CPU that has never seen the mm is at generation 0. */
    atomic_init(&mm->context.tlb_gen, 1);
    mm->context.ctx_id =
        atomic_fetch_add_explicit(&next_ctx_id, 1, memory_order_relaxed);
    atomic_init(&mm->context.active_cpu, FLUSH_NO_CPU);
    atomic_init(&mm->context.next_trim,
                mm_like.lazy_cpumask ? time_now_ns() / NSEC_PER_TICK + HZ : 0);
}

uint64_t flush_shootdowns(unsigned cpu)
{
    return __atomic_load_n(&counters[cpu].remote_flush_received,
                           __ATOMIC_RELAXED);
}

void flush_cpu_init(void)
{
    flush_park_ttbr0();
    tlb_local_flush_all();
    if (flush_opts.kpti) {
        write_vbar_el1((uint64_t)vectors_kpti);
        isb();
    }
}

/*
 * local_tlbi=on: no other CPU ever loaded the mm, so no other TLB has anything
 * of it. Who loads it next says so first, and then waits for that: either he
 * sees our stores, or we see him. NULL: all of the mm.
 */
static bool flush_here_only(struct mm *mm, const struct flush_range *range)
{
    uint64_t flags;
    bool alone;

    if (likely(!flush_opts.local_tlbi)) {
        return false;
    }
    flags = local_irq_save(); /* stays on this CPU */
    dsb_ish();
    counter_inc(dsb_ish);
    alone = atomic_load_explicit(&mm->context.active_cpu,
                                 memory_order_relaxed) == cpu_id();
    if (alone && range != NULL &&
        range->end - range->start < LOCAL_PAGES_MAX * range->stride) {
        tlb_local_flush_pages(asid_of(mm), range);
    } else if (alone) {
        tlb_local_flush_asid(asid_of(mm));
    }
    local_irq_restore(flags);
    return alone;
}

/* This CPU is about to load the mm. */
static void note_active_cpu(struct mm *mm)
{
    uint32_t was = FLUSH_NO_CPU, cpu = cpu_id();

    if (likely(!flush_opts.local_tlbi)) {
        return;
    }
    if (!atomic_compare_exchange_strong_explicit(&mm->context.active_cpu, &was,
                                                 cpu, memory_order_relaxed,
                                                 memory_order_relaxed) &&
        was != cpu) {
        atomic_store_explicit(&mm->context.active_cpu, FLUSH_MANY_CPUS,
                              memory_order_relaxed);
    }
    dsb_ish();
    counter_inc(dsb_ish);
}

static void unit_dsb(void *arg)
{
    (void)arg;
    dsb_ish();
    counter_inc(dsb_unit);
}

/*
 * unit_dsb=on: after TLBI and DSB, a DSB of every CPU, this one too: it may be
 * another than the one that issued the TLBI. Who ran another task meanwhile has
 * had one in the switch.
 */
static void flush_units(void)
{
    uint64_t flags;

    if (likely(!flush_opts.unit_dsb) || bug_is(BUG_unit_needs_dsb)) {
        return;
    }
    flags = local_irq_save();
    unit_dsb(NULL);
    smp_call_mask(&cpu_online_mask, unit_dsb, NULL, true);
    local_irq_restore(flags);
}

void flush_tlb_page(struct mm *mm, uint64_t va)
{
    struct flush_range range = {
        .start = va,
        .end = va + PAGE_SIZE,
        .stride = PAGE_SIZE,
        .level = 3,
        .last_level = true,
    };

    if (ipi()) {
        flush_ipi_range(mm, &range);
    } else if (!flush_here_only(mm, &range)) {
        flush_bc_page(mm, va);
        flush_units();
    }
}

void flush_tlb_mm(struct mm *mm)
{
    uint64_t ticket = mm_debug_mm_flush_begin(mm);

    if (ipi()) {
        /* Lazy CPUs too: whoever calls this may free tables next. */
        struct flush_range range = {
            .start = 0,
            .end = USER_END,
            .stride = PAGE_SIZE,
            .freed_tables = true,
        };

        flush_ipi_range(mm, &range);
    } else if (!flush_here_only(mm, NULL)) {
        flush_bc_mm(mm);
        flush_units();
    }
    mm_debug_mm_flush_end(mm, ticket);
}

void flush_tlb_range(struct mm *mm, const struct flush_range *range)
{
    if (ipi()) {
        flush_ipi_range(mm, range);
    } else if (!flush_here_only(mm, range)) {
        flush_bc_range(mm, range);
        flush_units();
    }
}

void flush_tlb_young(struct mm *mm, uint64_t va)
{
    if (!ipi()) {
        flush_bc_young(mm, va);
    }
}

void flush_tlb_fix_spurious(struct mm *mm, uint64_t va)
{
    struct flush_range range = {
        .start = va,
        .end = va + PAGE_SIZE,
        .stride = PAGE_SIZE,
        .level = 3,
        .last_level = true,
    };

    /*
     * A fault on a permission does not evict the entry it came from, so without
     * this the access might fault for ever. Other CPUs do it for themselves.
     */
    tlb_local_flush_pages(asid_of(mm), &range);
}

/* --- batch hooks --- */

bool flush_batch_should_defer(struct mm *mm)
{
    if (ipi()) {
        return flush_ipi_should_defer(mm);
    }
    /* Up to 6.12 the workaround was part of each TLBI, and waited. */
    return mm_like.bc_batched &&
           (!flush_opts.repeat_tlbi || mm_like.release >= LIKE_7_2);
}

void flush_batch_add_pending(struct tlb_ubc *ubc, struct mm *mm, uint64_t start,
                             uint64_t end)
{
    if (ipi()) {
        flush_ipi_add_pending(ubc, mm);
    } else {
        flush_bc_page_nosync(mm, start, end);
    }
}

void flush_batch(struct tlb_ubc *ubc)
{
    if (ipi()) {
        flush_ipi_batch(ubc);
    } else {
        flush_bc_sync();
        flush_units();
    }
}

void flush_batch_drain(struct mm *mm)
{
    switch (bootargs.drain) {
    case BOOTARG_DRAIN_MM:
        flush_tlb_mm(mm);
        break;
    case BOOTARG_DRAIN_DSB:
        /* Unsafe: it completes no TLBI that another CPU issued. */
        flush_bc_sync();
        break;
    case BOOTARG_DRAIN_NONE:
        break;
    }
}

/* --- context switch, IRQs off --- */

void flush_set_ttbr0(struct tlb_cpu *tc, struct mm *mm, uint16_t asid)
{
    uint64_t value = virt_to_phys(mm->pgd) | (uint64_t)asid << 48;

    if (tc->ttbr0 != value) {
        tc->ttbr0 = value;
        write_ttbr0_el1(value); /* table and ASID change in one write */
        isb();
    }
}

void flush_park_ttbr0(void)
{
    tlb_cpus[cpu_id()].ttbr0 = mm_reserved_pgd;
    write_ttbr0_el1(mm_reserved_pgd);
    isb();
}

void flush_unload(struct tlb_cpu *tc, bool keep_bit)
{
    struct mm *old = atomic_load_explicit(&tc->loaded, memory_order_relaxed);
    uint32_t pins;

    atomic_store_explicit(&tc->loaded, NULL, memory_order_relaxed);
    atomic_store_explicit(&tc->is_lazy, false, memory_order_relaxed);
    flush_park_ttbr0();
    if (!keep_bit) {
        cpumask_test_and_clear_atomic(&old->context.cpumask, cpu_id());
    }
    /* In an interrupt handler: the last pin must wait for a thread. */
    pins = atomic_load_explicit(&old->pins, memory_order_relaxed);
    while (pins > 1) {
        if (atomic_compare_exchange_weak_explicit(&old->pins, &pins, pins - 1,
                                                  memory_order_release,
                                                  memory_order_relaxed)) {
            return;
        }
    }
    ASSERT(tc->dropped == NULL);
    tc->dropped = old;
}

static void take_dropped(struct tlb_cpu *tc)
{
    struct mm *mm = NULL;

    if (__atomic_load_n(&tc->dropped, __ATOMIC_RELAXED) != NULL) {
        mm = __atomic_exchange_n(&tc->dropped, NULL, __ATOMIC_ACQ_REL);
    }
    if (mm != NULL) {
        mm_drop(mm);
    }
}

static void unload_if_lazy(void *arg)
{
    struct tlb_cpu *tc = &tlb_cpus[cpu_id()];

    (void)arg;
    if (atomic_load_explicit(&tc->is_lazy, memory_order_relaxed) &&
        tc->dropped == NULL) {
        flush_unload(tc, false);
    }
}

void flush_unload_lazy_cpus(void)
{
    uint64_t flags;

    smp_call_mask(&cpu_online_mask, unload_if_lazy, NULL, true);
    flags = local_irq_save();
    unload_if_lazy(NULL);
    local_irq_restore(flags);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        take_dropped(&tlb_cpus[cpu]); /* idle CPUs: nobody else will */
    }
}

void mm_switch(struct mm *prev, struct mm *next)
{
    struct tlb_cpu *tc = &tlb_cpus[cpu_id()];
    struct mm *old = atomic_load_explicit(&tc->loaded, memory_order_relaxed);

    (void)prev; /* what is loaded may be older: lazy */
    if (next == NULL) {
        if (old != NULL) {
            /* Relaxed: a flusher that misses it sends an SGI too many. */
            atomic_store_explicit(&tc->is_lazy, true, memory_order_relaxed);
        }
        return;
    }
    if (old != next) {
        atomic_fetch_add_explicit(&next->pins, 1, memory_order_relaxed);
    }
    if (ipi()) {
        flush_ipi_switch(tc, next);
    } else {
        atomic_store_explicit(&tc->is_lazy, false, memory_order_relaxed);
        if (!bug_is(BUG_active_cpu_late)) {
            note_active_cpu(next);
        }
        flush_set_ttbr0(tc, next, asid_check_and_switch(next));
        if (bug_is(BUG_active_cpu_late)) {
            note_active_cpu(next);
        }
        atomic_store_explicit(&tc->loaded, next, memory_order_relaxed);
    }
    if (old != NULL && old != next) {
        ASSERT(tc->retired == NULL);
        tc->retired = old;
    }
}

void mm_switch_finish(void)
{
    struct tlb_cpu *tc = &tlb_cpus[cpu_id()];
    struct mm *retired = tc->retired;

    tc->retired = NULL;
    if (retired != NULL) {
        mm_drop(retired);
    }
    take_dropped(tc);
}
