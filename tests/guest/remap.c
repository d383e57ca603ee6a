/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One virtual page, other physical pages behind it in turn, for data and for
 * code: after break, TLBI, DSB and make, each CPU sees what is mapped now.
 * Also a page whose contents are changed through one address and run through
 * another, and permissions taken away.
 */
#include "guest.h"

#define ROUNDS 1000u
#define PAGE 3
#define MOVZ_X0(n) (0xd2800000u | (uint32_t)(n) << 5)
#define RET 0xd65f03c0u

static uint32_t body[2][1024] __attribute__((aligned(4096)));
static uint32_t round, answered;
static uint32_t wrong_code, wrong_data, kept_write;
static bool others;

static uint64_t run(void)
{
    return ((uint64_t(*)(void))window_va(PAGE))();
}

static void store(uint64_t va)
{
    __asm__ volatile("str wzr, [%0]" ::"r"(va) : "memory");
}

static void look(uint32_t i)
{
    isb();
    wrong_code += run() != i % 2;
    wrong_data += *(volatile uint32_t *)window_va(PAGE) != body[i % 2][0];
}

static void member(unsigned cpu)
{
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        if (cpu == 0) {
            window_map(PAGE, (uint64_t)body[i % 2], MAP_CODE);
            look(i);
            if (others) {
                store_release(&round, i);
                wait_for(&answered, i);
            }
        } else if (cpu == 1) {
            wait_for(&round, i);
            look(i);
            store_release(&answered, i);
        }
    }
}

int main(void)
{
    struct trap t;
    unsigned n = cpu_count() > 1 ? 2 : 1;

    others = n > 1;
    for (unsigned i = 0; i < 2; i++) {
        body[i][0] = MOVZ_X0(i);
        body[i][1] = RET;
    }
    __asm__ volatile("dsb ish\n ic ialluis\n dsb ish\n isb" ::: "memory");
    run_on_all(n, member);
    check_equal(wrong_code, 0, "the code that runs is the page mapped now");
    check_equal(wrong_data, 0, "the data that is read is the page mapped now");

    for (unsigned i = 0; i < 100; i++) {
        window_map(PAGE, (uint64_t)body[0] + 4096, MAP_DATA);
        kept_write += probe(store, window_va(PAGE) + 8, &t);
        window_map(PAGE, (uint64_t)body[0] + 4096, MAP_DATA | MAP_RO);
        kept_write += !probe(store, window_va(PAGE) + 8, &t);
    }
    check_equal(kept_write, 0, "write permission comes and goes with the map");
    finish("remap");
}
