/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a snapshot must put back with the memory: code. Each CPU calls a
 * function, the machine is remembered (mark 1), each CPU calls it again,
 * patches it and calls the new one. After a restore the first call must find
 * the old code again, however much of the new one was translated.
 *
 * Tells the VMM by a finding: 1, the old code was not there; 2, nor the new.
 */
#include "guest.h"

#include "abi/annot.h"

#define FUNCTIONS 4u
#define OLD 7u
#define MOVZ_X0(n) (0xd2800000u | ((n)&0xffff) << 5) /* mov x0, #n */
#define RET 0xd65f03c0u
#define PATCHES 20u

/* A page a function; a page is code before and after. */
static uint32_t code[FUNCTIONS][1024] __attribute__((aligned(4096)));
static uint32_t old_wrong[FUNCTIONS], new_wrong[FUNCTIONS];

static void tell(unsigned reg, uint64_t value)
{
    *(volatile uint64_t *)(BOARD_ANNOT_BASE + reg) = value;
}

static void write_code(uint32_t *page, uint32_t n)
{
    page[1] = RET;
    page[0] = MOVZ_X0(n);
    __asm__ volatile(
        "dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb" ::"r"(page)
        : "memory");
}

static uint64_t call(const uint32_t *page)
{
    return ((uint64_t(*)(void))(uint64_t)page)();
}

static void before(unsigned cpu)
{
    write_code(code[cpu], OLD);
    old_wrong[cpu] += call(code[cpu]) != OLD;
}

static void after(unsigned cpu)
{
    old_wrong[cpu] += call(code[cpu]) != OLD;
    for (uint32_t i = 1; i <= PATCHES; i++) {
        write_code(code[cpu], OLD + i);
        new_wrong[cpu] += call(code[cpu]) != OLD + i;
    }
}

int main(void)
{
    unsigned n = cpu_count() < FUNCTIONS ? cpu_count() : FUNCTIONS;

    run_on_all(n, before);
    tell(ANNOT_REG_MARK, ANNOT_MARK_BEGIN);
    run_on_all(n, after);
    for (unsigned i = 0; i < n; i++) {
        if (old_wrong[i]) {
            tell(ANNOT_REG_FINDING, 1);
        }
        if (new_wrong[i]) {
            tell(ANNOT_REG_FINDING, 2);
        }
    }
    tell(ANNOT_REG_MARK, ANNOT_MARK_END);
    system_off();
}
