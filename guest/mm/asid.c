/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ASIDs with generations. An mm keeps its number while its generation is the
 * current one. When the numbers run out the generation goes up: what runs now
 * keeps its number (reserved), all others must ask again, and every CPU flushes
 * its TLB before it runs with a number of the new generation.
 *
 * mm->context.id = generation | number. It is of the current generation iff
 * (id ^ generation) >> bits is 0; generations step by 2^16.
 *
 * With kpti only even numbers are handed out: n is the kernel's view of the
 * address space, n + 1 that of EL0.
 *
 * Number 0 belongs to the empty table, of which nothing is ever cached. It is
 * given away when every other one is running somewhere: with as many numbers as
 * CPUs there is one for each even then, since the CPU that asks is about to
 * stop using its own.
 */
#include "kernel/bug.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/smp.h"
#include "mm/counters.h"
#include "mm/flush.h"
#include "mm/flush_opts.h"
#include "mm/mm_priv.h"

#define MAX_ASIDS (1U << 16)
#define MAP_WORDS (MAX_ASIDS / 64)
#define ODD_NUMBERS 0xaaaaaaaaaaaaaaaaUL

static struct spinlock asid_lock =
    SPINLOCK_INIT(LOCK_asid); /* taken with IRQs off */
static _Atomic uint64_t asid_generation = ASID_GENERATION_STEP;
static uint64_t asid_map[MAP_WORDS]; /* [asid_lock] numbers in use */
static unsigned asid_count;          /* numbers below this are handed out */
static unsigned cur_idx = 1;         /* [asid_lock] where to search */
static struct cpumask flush_pending; /* [asid_lock] must flush locally */

static struct asid_cpu {
    _Atomic uint64_t active; /* id it runs with; 0 since a rollover */
    uint64_t reserved;       /* [asid_lock] id it ran with at the rollover */
} CACHE_ALIGNED asid_cpus[MAX_CPUS];

/* Nothing is in use but what is never handed out. */
static void map_clear(void)
{
    for (unsigned i = 0; i < MAP_WORDS; i++) {
        asid_map[i] = flush_opts.kpti ? ODD_NUMBERS : 0;
    }
    asid_map[0] |= 1;
}

void asid_init(void)
{
    asid_count = 1U << flush_opts.asid_bits;
    map_clear();
}

void asid_limit(unsigned n)
{
    uint64_t flags = spin_lock_irqsave(&asid_lock);
    unsigned all = 1U << flush_opts.asid_bits;

    n <<= flush_opts.kpti;
    asid_count = n == 0 || n > all ? all : n;
    cur_idx = 1;
    spin_unlock_irqrestore(&asid_lock, flags);
}

uint64_t asid_generation_now(void)
{
    return atomic_load_explicit(&asid_generation, memory_order_relaxed);
}

uint16_t asid_of(struct mm *mm)
{
    uint64_t id = atomic_load_explicit(&mm->context.id, memory_order_relaxed);

    return (uint16_t)(id & ((1UL << flush_opts.asid_bits) - 1));
}

static uint64_t number_of(uint64_t id)
{
    return id & ((1UL << flush_opts.asid_bits) - 1);
}

static bool is_current(uint64_t id)
{
    return ((id ^
             atomic_load_explicit(&asid_generation, memory_order_relaxed)) >>
            flush_opts.asid_bits) == 0;
}

static bool map_test_and_set(uint64_t n)
{
    bool was = asid_map[n / 64] & BIT(n % 64);

    asid_map[n / 64] |= BIT(n % 64);
    return was;
}

/* The generation went up: keep only what runs; all CPUs must flush. */
static void flush_context(void)
{
    map_clear();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        struct asid_cpu *ac = &asid_cpus[cpu];
        /* From here on that CPU's fast path fails. */
        uint64_t id =
            atomic_exchange_explicit(&ac->active, 0, memory_order_relaxed);

        /*
         * 0: no switch since the last rollover, still running with what was
         * reserved then.
         */
        if (id == 0) {
            id = ac->reserved;
        }
        if (id != 0) {
            map_test_and_set(number_of(id));
        }
        ac->reserved = id;
        cpumask_set(&flush_pending, cpu);
    }
    counter_inc(asid_rollovers);
}

/* All CPUs that had it reserved must learn the id of the new generation. */
static bool update_reserved(uint64_t id, uint64_t new_id)
{
    bool hit = false;

    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        if (asid_cpus[cpu].reserved == id) {
            asid_cpus[cpu].reserved = new_id;
            hit = true;
        }
    }
    return hit;
}

static unsigned find_free(unsigned from)
{
    for (unsigned n = from; n < asid_count; n++) {
        if ((n % 64) == 0 && asid_map[n / 64] == ~0UL) {
            n += 63;
            continue;
        }
        if (!(asid_map[n / 64] & BIT(n % 64))) {
            return n;
        }
    }
    return 0;
}

/*
 * After a rollover, when all numbers are running: this CPU gives its own back.
 * It stops walking the old table at once and flushes its TLB, as after every
 * rollover, before it uses the number with another one.
 */
static unsigned take_own(void)
{
    bool zero_is_free = true;

    flush_park_ttbr0();
    asid_cpus[cpu_id()].reserved = 0;
    map_clear();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t id = asid_cpus[cpu].reserved;

        if (id != 0) {
            map_test_and_set(number_of(id));
            zero_is_free = zero_is_free && number_of(id) != 0;
        }
    }
    /* Nobody else runs with 0: free, where nothing better is. */
    unsigned n = find_free(1);

    ASSERT_MSG(n != 0 || zero_is_free, "%u ASIDs are too few for the CPUs",
               asid_count);
    return n;
}

static uint64_t new_context(struct mm *mm)
{
    uint64_t id = atomic_load_explicit(&mm->context.id, memory_order_relaxed);
    uint64_t generation = asid_generation_now();
    unsigned n;

    if (id != 0) {
        uint64_t again = generation | number_of(id);

        if (update_reserved(id, again)) {
            return again;
        }
        if (number_of(id) < asid_count && !map_test_and_set(number_of(id))) {
            return again;
        }
    }
    n = find_free(cur_idx);
    if (n == 0) {
        generation =
            atomic_fetch_add_explicit(&asid_generation, ASID_GENERATION_STEP,
                                      memory_order_relaxed) +
            ASID_GENERATION_STEP;
        flush_context();
        n = find_free(1);
        if (n == 0) {
            n = take_own();
        }
    }
    map_test_and_set(n);
    cur_idx = n != 0 ? n : 1;
    return generation | n;
}

/*
 * Publishes the id that this CPU is about to run with. It fails if a rollover
 * took our active id meanwhile; then the generation we compared with may be
 * the old one.
 */
static bool publish(struct asid_cpu *ac, uint64_t old, uint64_t id)
{
    if (bug_is(BUG_asid_slot_overwrite)) {
        return atomic_exchange_explicit(&ac->active, id,
                                        memory_order_relaxed) != 0;
    }
    return atomic_compare_exchange_strong_explicit(
        &ac->active, &old, id, memory_order_relaxed, memory_order_relaxed);
}

uint16_t asid_check_and_switch(struct mm *mm)
{
    unsigned cpu = cpu_id();
    struct asid_cpu *ac = &asid_cpus[cpu];
    uint64_t id = atomic_load_explicit(&mm->context.id, memory_order_relaxed);
    uint64_t old = atomic_load_explicit(&ac->active, memory_order_relaxed);
    bool flush;

    if (old != 0 && is_current(id) && publish(ac, old, id)) {
        return (uint16_t)number_of(id);
    }
    spin_lock(&asid_lock);
    id = atomic_load_explicit(&mm->context.id, memory_order_relaxed);
    if (!is_current(id)) {
        id = new_context(mm);
        atomic_store_explicit(&mm->context.id, id, memory_order_relaxed);
    }
    flush = cpumask_test(&flush_pending, cpu);
    if (flush) {
        cpumask_clear(&flush_pending, cpu);
        tlb_local_flush_all();
    }
    atomic_store_explicit(&ac->active, id, memory_order_relaxed);
    spin_unlock(&asid_lock);
    return (uint16_t)number_of(id);
}

/*
 * The number goes back when no TLB has entries under it: the flush first, while
 * we still know which.
 */
void asid_free(struct mm *mm)
{
    uint64_t flags = spin_lock_irqsave(&asid_lock);
    uint64_t id = atomic_load_explicit(&mm->context.id, memory_order_relaxed);

    if (id != 0 && is_current(id) && number_of(id) != 0) {
        unsigned n = (unsigned)number_of(id);

        if (bug_is(BUG_id_forgotten)) {
            atomic_store_explicit(&mm->context.id, 0, memory_order_relaxed);
        }
        flush_bc_mm(mm);
        asid_map[n / 64] &= ~BIT(n % 64);
        cur_idx = n < cur_idx ? n : cur_idx;
    }
    spin_unlock_irqrestore(&asid_lock, flags);
}
