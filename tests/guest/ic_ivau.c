/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code patched by CPU 0 runs in its new form on CPU 1 once CPU 0 has done
 * DC CVAU, DSB, IC IVAU, DSB and CPU 1 an ISB; on CPU 0 itself as well; with
 * IC IALLUIS too; and where the code is reached through another address.
 */
#include "guest.h"

#define ROUNDS 2000u
#define PAGE 3
#define MOVZ_X0(n) (0xd2800000u | ((n)&0xffff) << 5) /* mov x0, #n */
#define RET 0xd65f03c0u

static uint32_t code[1024] __attribute__((aligned(4096)));
static uint32_t posted, answered;
static uint32_t wrong_self, wrong_other, wrong_alias;
static uint64_t call_at;

static uint64_t run(uint64_t at)
{
    return ((uint64_t(*)(void))at)();
}

static void patch(uint32_t n, bool all)
{
    *(volatile uint32_t *)code = MOVZ_X0(n);
    __asm__ volatile("dc cvau, %0\n dsb ish" ::"r"(code) : "memory");
    if (all) {
        __asm__ volatile("ic ialluis\n dsb ish\n isb" ::: "memory");
    } else {
        __asm__ volatile("ic ivau, %0\n dsb ish\n isb" ::"r"(code) : "memory");
    }
}

static void reader(void)
{
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        wait_for(&posted, i);
        isb();
        wrong_other += run(call_at) != (i & 0xffff);
        store_release(&answered, i);
    }
}

static void writer(bool two)
{
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        patch(i, i % 8 == 0);
        wrong_self += run((uint64_t)code) != (i & 0xffff);
        wrong_alias += run(window_va(PAGE)) != (i & 0xffff);
        if (two) {
            store_release(&posted, i);
            wait_for(&answered, i);
        }
    }
}

static void member(unsigned cpu)
{
    if (cpu == 0) {
        writer(true);
    } else if (cpu == 1) {
        reader();
    }
}

int main(void)
{
    bool two = cpu_count() > 1;

    code[1] = RET;
    window_map(PAGE, (uint64_t)code, MAP_CODE);
    call_at = (uint64_t)code;
    if (two) {
        run_on_all(2, member);
        posted = answered = 0;
        call_at = window_va(PAGE);
        run_on_all(2, member);
    } else {
        writer(false);
    }
    check_equal(wrong_self, 0, "the patching CPU runs the new code");
    check_equal(wrong_alias, 0, "also through another address of the page");
    check_equal(wrong_other, 0, "another CPU runs the new code");
    finish("ic_ivau");
}
