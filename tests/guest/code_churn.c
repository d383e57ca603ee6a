/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * More different code pages than the VMM keeps at a time: every round makes
 * new code and runs it on all CPUs at once, each CPU its own.
 */
#include "guest.h"

#define ROUNDS 12000u
#define MOVZ_X0(n) (0xd2800000u | ((n)&0xffff) << 5) /* mov x0, #n */
#define RET 0xd65f03c0u

static uint32_t code[4][1024] __attribute__((aligned(4096)));
static uint32_t wrong[4];

static void churn(unsigned cpu)
{
    volatile uint32_t *page = code[cpu];

    page[2] = RET;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        page[0] = MOVZ_X0(i);
        page[1] = 0xf2a00000u | cpu << 5; /* movk x0, #cpu, lsl #16 */
        __asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb"
                         ::"r"(page) : "memory");
        wrong[cpu] += ((uint64_t(*)(void))(uint64_t)page)() !=
                      ((uint64_t)cpu << 16 | (i & 0xffff));
    }
}

int main(void)
{
    unsigned n = cpu_count() < 4 ? cpu_count() : 4;

    run_on_all(n, churn);
    check(wrong[0] + wrong[1] + wrong[2] + wrong[3] == 0,
          "every CPU ran the code that it had just written");
    finish("code_churn");
}
