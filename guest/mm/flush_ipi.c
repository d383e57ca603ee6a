/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The IPI back end: a generation per mm counts what had to be flushed; every
 * CPU remembers per mm up to which generation its TLB is clean. A CPU is told
 * by SGI if it may be using the mm, and otherwise finds out when it loads it.
 *
 *   flusher:  PTE store, DSB ISHST, tlb_gen++, DMB, read mask, loaded, is_lazy
 *   switcher: loaded = SWITCHING, set mask bit, DMB, read tlb_gen, load TTBR0
 *   leaving lazy mode: is_lazy = false, DMB, read tlb_gen
 *
 * One of the two sees the other: either the CPU sees the new generation and
 * flushes itself, or the flusher sees the CPU and sends it an SGI.
 *
 * mask=switch, as x86 up to Linux 6.13: a switch to another mm clears the CPU's
 * bit, here when the other root is loaded. mask=lazy: the bit stays, and goes
 * when a flush of that mm reaches the CPU; once a second a flush asks all of
 * them for that ("trim").
 *
 * tlb=invlpgb: the same bookkeeping, but what invalidates is a broadcast TLBI
 * that reaches every CPU whatever it has loaded, so that nobody has to catch
 * up. For hardware that broadcasts.
 */
#include "mm/flush.h"

#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/annot.h"
#include "kernel/bug.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/counters.h"
#include "mm/flush_opts.h"
#include "mm/like.h"
#include "mm/mm_priv.h"
#include "mm/tlbbatch.h"

#define SINGLE_PAGE_FLUSH_CEILING 33UL
#define NOINLINE __attribute__((noinline))

struct flush_info {
    struct mm *mm;                   /* NULL: whatever is loaded */
    const struct flush_range *range; /* NULL: everything */
    uint64_t new_tlb_gen;            /* 0: not known */
    unsigned from;                   /* the CPU that asks others */
    bool freed_tables;               /* lazy CPUs too: walks of old tables */
    bool trim;                       /* CPUs that do not run mm, too */
};

static bool invlpgb(void)
{
    return bootargs.tlb == BOOTARG_TLB_INVLPGB;
}

static uint16_t loaded_asid(const struct tlb_cpu *tc)
{
    return (uint16_t)(tc->ttbr0 >> 48);
}

/* IRQs masked; on a target, or on the initiator for itself. */
static void flush_tlb_func(const struct flush_info *info, bool local)
{
    struct tlb_cpu *tc = &tlb_cpus[cpu_id()];
    struct mm *loaded = atomic_load_explicit(&tc->loaded, memory_order_relaxed);
    uint64_t mm_gen, local_gen;

    if (!local) {
        counter_inc(remote_flush_received);
    }
    if (info->mm != NULL && info->mm != loaded) {
        cpumask_test_and_clear_atomic(&info->mm->context.cpumask, cpu_id());
        if (!local) {
            counter_inc(wrong_cpu);
        }
        return;
    }
    if (loaded == NULL) {
        return;
    }
    if (atomic_load_explicit(&tc->is_lazy, memory_order_relaxed)) {
        /*
         * Cheaper than to be asked again and again. But from here on it is not
         * lazy: where it keeps its bit, batches do ask it again.
         */
        flush_unload(tc, mm_like.ipi_lazy_keeps_bit);
        return;
    }
    local_gen = tc->ctxs[tc->slot].tlb_gen;
    if (info->new_tlb_gen != 0 && info->new_tlb_gen <= local_gen) {
        return;
    }
    /* As late as possible: flushes asked for meanwhile are done with this. */
    mm_gen =
        atomic_load_explicit(&loaded->context.tlb_gen, memory_order_acquire);
    if (bug_is(BUG_generation_late) && mm_gen < info->new_tlb_gen) {
        mm_gen = info->new_tlb_gen; /* not up yet */
    }
    if (mm_gen == local_gen) {
        return;
    }
    if (info->range != NULL && info->new_tlb_gen == local_gen + 1 &&
        info->new_tlb_gen == mm_gen) {
        tlb_local_flush_pages(loaded_asid(tc), info->range);
    } else {
        tlb_local_flush_asid(loaded_asid(tc));
    }
    tc->ctxs[tc->slot].tlb_gen = mm_gen;
}

static void flush_tlb_func_remote(void *arg)
{
    const struct flush_info *info = arg;

    flush_tlb_func(info, false);
    annot_promise(ANNOT_REG_FLUSH_SERVED, info->from + 1);
}

/* Makes the PTE stores visible, then counts the generation up. */
static NOINLINE uint64_t flush_ipi_new_gen(struct mm *mm)
{
    uint64_t gen;

    dsb_ishst();
    counter_inc(dsb_ishst);
    gen = atomic_fetch_add_explicit(&mm->context.tlb_gen, 1,
                                    memory_order_relaxed) +
          1;
    dmb_ish(); /* O5: before the reads of mask, loaded and is_lazy */
    return gen;
}

/* The same but for the last step, which is the caller's. */
static NOINLINE uint64_t next_gen(struct mm *mm)
{
    dsb_ishst();
    counter_inc(dsb_ishst);
    return atomic_load_explicit(&mm->context.tlb_gen, memory_order_relaxed) + 1;
}

enum wanted { WANTED, NOT_IF_LAZY, NOT_IF_STALE };

/* Must the CPU, which is in the mask, flush? */
static enum wanted wanted(unsigned cpu, const struct flush_info *info)
{
    struct tlb_cpu *tc = &tlb_cpus[cpu];
    struct mm *loaded;

    if (info->freed_tables) {
        return WANTED;
    }
    loaded = atomic_load_explicit(&tc->loaded, memory_order_relaxed);
    dmb_ishld(); /* is_lazy belongs to a loaded at least as new */
    if (atomic_load_explicit(&tc->is_lazy, memory_order_relaxed)) {
        return NOT_IF_LAZY;
    }
    if (info->mm == NULL || loaded == info->mm ||
        (loaded == LOADED_MM_SWITCHING && !bug_is(BUG_culling)) || info->trim) {
        return WANTED;
    }
    return NOT_IF_STALE;
}

/* Tells the CPUs of mask except this one. */
static void flush_others(const struct cpumask *mask, struct flush_info *info)
{
    struct cpumask targets;
    unsigned cpu, self = cpu_id();

    cpumask_zero(&targets);
    for_each_cpu(cpu, mask)
    {
        if (cpu == self) {
            continue;
        }
        switch (wanted(cpu, info)) {
        case WANTED:
            cpumask_set(&targets, cpu);
            break;
        case NOT_IF_LAZY:
            counter_inc(lazy_skipped);
            break;
        case NOT_IF_STALE: /* not of a batch: stale_skipped is the filter's */
            break;
        }
    }
    if (!cpumask_empty(&targets)) {
        info->from = self;
        counter_inc(remote_flush);
        annot_promise(ANNOT_REG_FLUSH_ASK, targets.bits[0]);
        smp_call_mask(&targets, flush_tlb_func_remote, info, true);
        annot_promise(ANNOT_REG_FLUSH_WAITED, targets.bits[0]);
    }
}

static void flush_self(const struct flush_info *info)
{
    uint64_t flags = local_irq_save();

    flush_tlb_func(info, true);
    local_irq_restore(flags);
}

static bool any_other(const struct cpumask *mask)
{
    unsigned self = cpu_id();
    unsigned cpu = cpumask_next(mask, 0);

    return (cpu == self ? cpumask_next(mask, self + 1) : cpu) < MAX_CPUS;
}

/* Tells the others and flushes here; alone, a lazy CPU unloads the mm. */
static void flush_multi(const struct cpumask *mask, struct flush_info *info)
{
    unsigned self = cpu_id();
    struct mm *loaded =
        atomic_load_explicit(&tlb_cpus[self].loaded, memory_order_relaxed);
    bool others = any_other(mask);

    if (others) {
        flush_others(mask, info);
    }
    if (cpumask_test(mask, self) &&
        (others ? wanted(self, info) == WANTED
                : info->mm == NULL || info->mm == loaded)) {
        flush_self(info);
    }
}

/* Once a second, by ticks as Linux counts; and takes the turn. */
static bool trim_is_due(struct mm *mm)
{
    uint64_t now;

    if (!mm_like.lazy_cpumask) {
        return false;
    }
    now = time_now_ns() / NSEC_PER_TICK;
    if (now <=
        atomic_load_explicit(&mm->context.next_trim, memory_order_relaxed)) {
        return false;
    }
    atomic_store_explicit(&mm->context.next_trim, now + HZ,
                          memory_order_relaxed);
    counter_inc(trim_rounds);
    return true;
}

void flush_ipi_range(struct mm *mm, const struct flush_range *range)
{
    struct flush_info info = {
        .mm = mm,
        .range = range,
        .freed_tables = range->freed_tables,
    };

    info.new_tlb_gen =
        bug_is(BUG_generation_late) ? next_gen(mm) : flush_ipi_new_gen(mm);
    if (range->end - range->start > SINGLE_PAGE_FLUSH_CEILING * range->stride) {
        info.range = NULL;
    }
    if (invlpgb()) {
        flush_bc_generation(mm, info.range);
        return;
    }
    if (any_other(&mm->context.cpumask)) {
        info.trim = trim_is_due(mm);
    }
    flush_multi(&mm->context.cpumask, &info);
    if (bug_is(BUG_generation_late)) {
        atomic_fetch_add_explicit(&mm->context.tlb_gen, 1,
                                  memory_order_relaxed);
    }
}

/* --- batch --- */

bool flush_ipi_should_defer(struct mm *mm)
{
    return any_other(&mm->context.cpumask);
}

static void add_mm(struct tlb_ubc *ubc, const struct mm *mm)
{
    for (unsigned i = 0; i < ubc->arch.mms_count; i++) {
        if (ubc->arch.mms[i] == mm) {
            return;
        }
    }
    if (ubc->arch.mms_count == TLB_UBC_MMS) {
        ubc->arch.mms_overflow = true;
    } else {
        ubc->arch.mms[ubc->arch.mms_count++] = mm;
    }
}

void flush_ipi_add_pending(struct tlb_ubc *ubc, struct mm *mm)
{
    (void)flush_ipi_new_gen(mm);
    ubc->arch.unmapped_pages = true;
    if (invlpgb()) {
        return;
    }
    cpumask_or(&ubc->arch.cpumask, &mm->context.cpumask);
    if (unlikely(flush_opts.filter_stale)) {
        add_mm(ubc, mm);
    }
}

/*
 * filter=stale: takes out who runs no mm of the batch. He passes through
 * flush_ipi_switch(), which compares generations, before he uses one again.
 */
static void filter_batch(struct tlb_ubc *ubc)
{
    struct cpumask *mask = &ubc->arch.cpumask;
    unsigned cpu, i;

    for_each_cpu(cpu, mask)
    {
        struct tlb_cpu *tc = &tlb_cpus[cpu];
        const struct mm *loaded =
            atomic_load_explicit(&tc->loaded, memory_order_relaxed);

        dmb_ishld();
        if (atomic_load_explicit(&tc->is_lazy, memory_order_relaxed)) {
            counter_inc(lazy_skipped);
            cpumask_clear(mask, cpu);
            continue;
        }
        for (i = 0; i < ubc->arch.mms_count; i++) {
            if (ubc->arch.mms[i] == loaded) {
                break;
            }
        }
        if (i == ubc->arch.mms_count && loaded != LOADED_MM_SWITCHING) {
            counter_inc(stale_skipped);
            cpumask_clear(mask, cpu);
        }
    }
}

void flush_ipi_batch(struct tlb_ubc *ubc)
{
    struct flush_info info = {.mm = NULL};

    if (invlpgb()) {
        if (ubc->arch.unmapped_pages) {
            flush_bc_all();
        }
    } else {
        if (ubc->arch.mms_count != 0 && !ubc->arch.mms_overflow) {
            filter_batch(ubc);
        }
        if (!bug_is(BUG_local_instead_of_broadcast)) {
            flush_multi(&ubc->arch.cpumask, &info);
        } else if (cpumask_test(&ubc->arch.cpumask, cpu_id())) {
            flush_self(&info);
        }
    }
    cpumask_zero(&ubc->arch.cpumask);
    ubc->arch.unmapped_pages = false;
    ubc->arch.mms_overflow = false;
    ubc->arch.mms_count = 0;
}

/* --- context switch, IRQs off --- */

/* The slot of mm in ctxs[]; made, with generation 0, if there was none. */
static unsigned slot_find(struct tlb_cpu *tc, const struct mm *mm)
{
    unsigned slot;

    for (slot = 0; slot < TLB_NR_DYN_CTXS; slot++) {
        if (tc->ctxs[slot].ctx_id == mm->context.ctx_id) {
            return slot;
        }
    }
    slot = tc->next_slot;
    tc->next_slot = (slot + 1) % TLB_NR_DYN_CTXS;
    tc->ctxs[slot].ctx_id = mm->context.ctx_id;
    tc->ctxs[slot].tlb_gen = 0; /* generations start at 1: flush */
    return slot;
}

static void catch_up(struct tlb_cpu *tc, struct mm *mm, uint16_t asid)
{
    uint64_t gen;

    if (invlpgb()) {
        return;
    }
    if (bug_is(BUG_mask_trusted) && tc->ctxs[tc->slot].tlb_gen != 0) {
        return;
    }
    gen = atomic_load_explicit(&mm->context.tlb_gen, memory_order_acquire);
    if (tc->ctxs[tc->slot].tlb_gen != gen) {
        tlb_local_flush_asid(asid);
        tc->ctxs[tc->slot].tlb_gen = gen;
    }
}

static void enter_mask(struct mm *mm, unsigned cpu)
{
    if (!cpumask_test(&mm->context.cpumask, cpu)) {
        cpumask_test_and_set_atomic(&mm->context.cpumask, cpu);
    }
}

void flush_ipi_switch(struct tlb_cpu *tc, struct mm *next)
{
    struct mm *old = atomic_load_explicit(&tc->loaded, memory_order_relaxed);
    unsigned cpu = cpu_id();
    uint16_t asid;

    if (old == next) {
        if (!atomic_load_explicit(&tc->is_lazy, memory_order_relaxed)) {
            return;
        }
        atomic_store_explicit(&tc->is_lazy, false, memory_order_relaxed);
        dmb_ish(); /* O7 */
        catch_up(tc, next, loaded_asid(tc));
        return;
    }
    atomic_store_explicit(
        &tc->loaded, bug_is(BUG_ipi_mid_switch) ? next : LOADED_MM_SWITCHING,
        memory_order_relaxed);
    atomic_store_explicit(&tc->is_lazy, false, memory_order_relaxed);
    if (!bug_is(BUG_root_before_mask)) {
        enter_mask(next, cpu);
    }
    dmb_ish(); /* O6: SWITCHING and the mask bit before the generation */
    asid = asid_check_and_switch(next);
    tc->slot = slot_find(tc, next);
    if (bug_is(BUG_ipi_mid_switch)) {
        smp_call_serve(); /* as an interrupt that is not masked would */
    }
    catch_up(tc, next, asid);
    flush_set_ttbr0(tc, next, asid);
    /*
     * Not before: until then walks may use the old tables, and who frees one of
     * them asks only the CPUs in the mask.
     */
    if (old != NULL && !mm_like.lazy_cpumask) {
        cpumask_test_and_clear_atomic(&old->context.cpumask, cpu);
    }
    if (bug_is(BUG_root_before_mask)) {
        enter_mask(next, cpu);
    }
    /* Release: the table is loaded before others take us for a user of it. */
    atomic_store_explicit(&tc->loaded, next, memory_order_release);
}
