/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a TLB holds: translations that nobody asked for, that another CPU asked
 * for, that another address space left behind, that conflict with others; and
 * translations that are gone though nobody took them away.
 */
#include "liberty.h"

#define ROUNDS 40u
#define PAGE 3
#define MANY_PAGE 16 /* and the following ones */
#define MANY 9u      /* more than the machine remembers as interesting */
#define BLOCK_VA (WINDOW_VA + 2 * WINDOW_SPAN)
#define IN_PAGE 0xa
#define IN_BLOCK 0xb
#define TTBR_ASID(n) ((uint64_t)(n) << 48)

static struct outcome prefetch = {"prefetch", 0, 0};
static struct outcome evict = {"evict", 0, 0};
static struct outcome shared = {"shared-tlb", 0, 0};
static struct outcome retained = {"asid-retain", 0, 0};
static struct outcome block_wins = {"multi-size", 0, 0};
static uint64_t kept, unreachable, wrong_values;

static uint64_t data[512] __attribute__((aligned(4096)));
static uint64_t split3[512] __attribute__((aligned(4096)));

/*
 * CPU 0 used the page, `other` never did; then the entry is cleared, in plain
 * sight of all walkers, but no TLB is told.
 */
static void first_use(unsigned other, struct outcome *o)
{
    pte_write(&window3[PAGE], (uint64_t)data | MAP_DATA);
    unreachable += !on(0, touch, window_va(PAGE));
    pte_write(&window3[PAGE], 0);
    note(o, on(other, touch, window_va(PAGE)));
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

/* How many of the pages can be reached. */
static uint64_t touch_many(uint64_t va)
{
    uint64_t n = 0;

    dsb_ish();
    for (unsigned i = 0; i < MANY; i++) {
        n += touch(va + i * 4096);
    }
    dsb_ish();
    return n;
}

/* A page that CPU 1 has used is cleared, and no TLB is told. */
static void second_use(void)
{
    uint64_t before, after;

    for (unsigned i = 0; i < MANY; i++) {
        pte_write(&window3[MANY_PAGE + i], (uint64_t)data | MAP_DATA);
    }
    before = on(1, touch_many, window_va(MANY_PAGE));
    for (unsigned i = 0; i < MANY; i++) {
        pte_write(&window3[MANY_PAGE + i], 0);
    }
    after = on(1, touch_many, window_va(MANY_PAGE));
    unreachable += before != MANY;
    note(&evict, after < MANY);
    for (unsigned i = 0; i < MANY; i++) {
        kept +=
            still_reached(&window3[MANY_PAGE + i], window_va(MANY_PAGE + i));
    }
}

static void load_root(unsigned asid)
{
    write_sysreg(ttbr0_el1, (uint64_t)level0 | TTBR_ASID(asid));
    isb();
}

/* Address space 1 uses a page, loses it while 2 runs, and uses it again. */
static uint64_t switch_and_back(uint64_t va)
{
    uint64_t again;

    load_root(1);
    unreachable += !touch(va);
    load_root(2);
    pte_write(&window3[PAGE], 0);
    load_root(1);
    again = touch(va);
    tlbi_vaae1is(va >> 12);
    dsb_ish();
    kept += touch(va);
    load_root(0);
    return again;
}

static void two_spaces(void)
{
    pte_write(&window3[PAGE], (uint64_t)data | MAP_DATA | MAP_NG);
    note(&retained, on(2, switch_and_back, window_va(PAGE)));
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

/*
 * A table of pages becomes a block without break-before-make: page 0 stays
 * cached, the block comes in by way of page 1.
 */
static void page_and_block(void)
{
    uint64_t value;

    split3[0] = (uint64_t)data | MAP_DATA;
    pte_write(&window2[2], (uint64_t)split3 | MAP_VALID);
    wrong_values += on(2, value_at, BLOCK_VA) != IN_PAGE;
    pte_write(&window2[2], FREE_RAM | MAP_BLOCK | (MAP_DATA & ~MAP_VALID));
    flush_for_sure(BLOCK_VA + 4096);
    value = on(2, value_at, BLOCK_VA + 4096);
    wrong_values += value != IN_BLOCK;
    value = on(2, value_at, BLOCK_VA);
    wrong_values += value != IN_PAGE && value != IN_BLOCK;
    note(&block_wins, value == IN_BLOCK);
    pte_write(&window2[2], 0);
    flush_for_sure(BLOCK_VA + 4096);
    kept += still_reached(&window2[2], BLOCK_VA);
}

int main(void)
{
    data[0] = IN_PAGE;
    for (unsigned i = 0; i < 2; i++) {
        *(volatile uint64_t *)(FREE_RAM + i * 4096) = IN_BLOCK;
    }
    liberty_begin("liberty_tlb");
    kept += still_reached(&window3[PAGE], window_va(PAGE));
    for (unsigned i = 0; i < ROUNDS; i++) {
        first_use(2, &prefetch);
        first_use(1, &shared);
        second_use();
        two_spaces();
        page_and_block();
    }
    show(&prefetch);
    show(&evict);
    show(&shared);
    show(&retained);
    show(&block_wins);
    check_equal(unreachable, 0, "a mapped page is reachable");
    check_equal(kept, 0, "a page taken away by the rules faults everywhere");
    check_equal(wrong_values, 0, "of page and block, one of the two is used");
    finish("liberty_tlb");
}
