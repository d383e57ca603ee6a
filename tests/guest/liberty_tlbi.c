/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a TLBI does, and when: not before the issuer's DSB, not to tables if it
 * names leaves, not to what its hint or range leaves out. And whether a walk
 * sees a store before the writer's DSB.
 *
 * CPU 0 changes tables, CPU 2 uses them, CPU 1 is idle.
 */
#include "liberty.h"

#define ROUNDS 40u
#define BUSY_ROUNDS 15u
#define PAGE 3
#define TABLE_VA (WINDOW_VA + WINDOW_SPAN)
#define TTL_LEVEL(n) ((uint64_t)(4 | (n)) << 44) /* 4 KiB granule */
#define RANGE_TWO_PAGES (UINT64_C(1) << 46)      /* 4 KiB, NUM 0, SCALE 0 */

static struct outcome deferred = {"defer", 0, 0};
static struct outcome in_flight = {"defer-in-dsb", 0, 0};
static struct outcome other_dsb = {"defer-other-dsb", 0, 0};
static struct outcome after_dsb = {"repeat-tlbi", 0, 0};
static struct outcome hidden = {"pte-delay", 0, 0};
static struct outcome unordered = {"pte-delay-tlbi", 0, 0};
static struct outcome stale_table = {"walk-cache", 0, 0};
static struct outcome wrong_level = {"literal-ttl", 0, 0};
static struct outcome wrong_range = {"literal-range", 0, 0};
static uint64_t kept, unreachable, invisible, incoherent, longest;
static uint32_t phase;

static uint64_t data[512] __attribute__((aligned(4096)));
static uint64_t table3[512] __attribute__((aligned(4096)));

/* Not the page that anybody looks at. */
static uint64_t flush_another(uint64_t va)
{
    flush_for_sure(va + 4096);
    return 0;
}

/*
 * The page, and nothing left over from before that could take it away: by the
 * erratum the last TLBI may still be under way.
 */
static void map(void)
{
    (void)flush_another(window_va(PAGE));
    pte_write(&window3[PAGE], (uint64_t)data | MAP_DATA);
    unreachable += !on(2, touch, window_va(PAGE));
}

/* CPU 1 waits for a TLBI of its own: that says nothing about CPU 0's. */
static void wrong_completer(void)
{
    map();
    pte_write(&window3[PAGE], 0);
    tlbi_vaae1is(window_va(PAGE) >> 12);
    (void)on(1, flush_another, window_va(PAGE));
    note(&other_dsb, on(2, touch, window_va(PAGE)));
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

/* TLBI and DSB as two steps, by the rules. */
static void two_steps(void)
{
    map();
    pte_write(&window3[PAGE], 0);
    tlbi_vaae1is(window_va(PAGE) >> 12);
    note(&deferred, on(2, touch, window_va(PAGE)));
    dsb_ish();
    note(&after_dsb, on(2, touch, window_va(PAGE)));
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

enum phase {
    PHASE_TLBI = 1, /* issued, the DSB comes */
    PHASE_DONE,
    PHASE_OVER,
};

/*
 * Uses the page until it is gone. Bit 0: it could while the DSB waited, bit 1:
 * and afterwards. The phase is read before each use.
 */
static uint64_t use_meanwhile(uint64_t va)
{
    uint64_t result = 0;

    for (;;) {
        uint32_t now_phase = load_acquire(&phase);

        if (now_phase == PHASE_OVER || !touch(va)) {
            return result;
        }
        result |= now_phase == PHASE_TLBI ? 1u : 0u;
        result |= now_phase == PHASE_DONE ? 2u : 0u;
        pause_cpu();
    }
}

/* The same with CPU 2 busy all the time. */
static void busy(void)
{
    uint64_t result;

    map();
    phase = 0;
    send(2, use_meanwhile, window_va(PAGE));
    pte_write(&window3[PAGE], 0);
    tlbi_vaae1is(window_va(PAGE) >> 12);
    store_release(&phase, PHASE_TLBI);
    dsb_ish();
    store_release(&phase, PHASE_DONE);
    for (unsigned i = 0; i < 20; i++) {
        pause_cpu();
    }
    store_release(&phase, PHASE_OVER);
    result = answer(2);
    note(&in_flight, result & 1);
    note(&after_dsb, result & 2);
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

/* Does the walk see what a load sees? */
static uint64_t look(uint64_t va)
{
    incoherent += *(volatile uint64_t *)&window3[PAGE] == 0;
    return touch(va);
}

static uint64_t look_until_seen(uint64_t va)
{
    uint64_t n = 0;

    while (!touch(va)) {
        n++;
    }
    return n;
}

static void no_barrier(bool wait)
{
    pte_store(&window3[PAGE], (uint64_t)data | MAP_DATA);
    note(&hidden, !on(2, look, window_va(PAGE)));
    if (wait) {
        uint64_t n = on(2, look_until_seen, window_va(PAGE));

        longest = n > longest ? n : longest;
    }
    dsb_ishst();
    invisible += !on(2, touch, window_va(PAGE));
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

static uint64_t barrier(uint64_t unused)
{
    dsb_ishst();
    return unused;
}

/* CPU 1 knows of CPU 0's store, and its barrier counts for that as well. */
static void passed_on(void)
{
    pte_store(&window3[PAGE], (uint64_t)data | MAP_DATA);
    (void)on(1, barrier, 0);
    invisible += !on(2, touch, window_va(PAGE));
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

/* TLBI before the store is visible: a walk in between finds the old entry. */
static void wrong_order(void)
{
    map();
    pte_store(&window3[PAGE], 0);
    tlbi_vaae1is(window_va(PAGE) >> 12);
    (void)on(2, touch, window_va(PAGE));
    dsb_ish();
    note(&unordered, on(2, touch, window_va(PAGE)));
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

static void leaf_only(void)
{
    table3[0] = (uint64_t)data | MAP_DATA;
    pte_write(&window2[1], (uint64_t)table3 | MAP_VALID);
    (void)flush_another(TABLE_VA);
    unreachable += !on(2, touch, TABLE_VA);
    pte_write(&window2[1], 0);
    __asm__ volatile("tlbi vaale1is, %0\n dsb ish" ::"r"(TABLE_VA >> 12)
                     : "memory");
    note(&stale_table, on(2, touch, TABLE_VA));
    kept += still_reached(&window2[1], TABLE_VA);
}

static void operand(struct outcome *o, bool is_range, uint64_t xt)
{
    map();
    pte_write(&window3[PAGE], 0);
    for (unsigned i = 0; i < 2; i++) { /* the erratum is not looked for here */
        if (is_range) {
            /* RVAAE1IS */
            __asm__ volatile("sys #0, c8, c2, #3, %0" ::"r"(xt) : "memory");
        } else {
            tlbi_vaae1is(xt);
        }
        dsb_ish();
    }
    if (o) {
        note(o, on(2, touch, window_va(PAGE)));
    } else {
        kept += on(2, touch, window_va(PAGE));
    }
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

int main(void)
{
    const uint64_t page = window_va(PAGE) >> 12;

    liberty_begin("liberty_tlbi");
    kept += still_reached(&window3[PAGE], window_va(PAGE));
    for (unsigned i = 0; i < ROUNDS; i++) {
        two_steps();
        wrong_completer();
        no_barrier(i % 8 == 0);
        passed_on();
        wrong_order();
        leaf_only();
        operand(&wrong_level, false, page | TTL_LEVEL(2));
        operand(NULL, false, page | TTL_LEVEL(3));
        operand(&wrong_range, true,
                (i % 2 ? page + 1 : page - 2) | RANGE_TWO_PAGES);
        operand(NULL, true, (i % 2 ? page : page - 1) | RANGE_TWO_PAGES);
    }
    for (unsigned i = 0; i < BUSY_ROUNDS; i++) {
        busy();
    }
    show(&deferred);
    show(&in_flight);
    show(&other_dsb);
    show(&after_dsb);
    show(&hidden);
    print("INFO: looks until a store was seen without a barrier: %u\n",
          longest);
    show(&unordered);
    show(&stale_table);
    show(&wrong_level);
    show(&wrong_range);
    check_equal(unreachable, 0, "a mapped page is reachable");
    check_equal(incoherent, 0, "loads see a store to a table at once");
    check_equal(invisible, 0, "walks see it after a DSB of whoever knows");
    check_equal(kept, 0, "a page taken away by the rules faults everywhere");
    finish("liberty_tlbi");
}
