/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random words run at EL1 on every CPU, with the MMU on. Sooner or later they
 * break this program too; then it loops in exceptions until it is stopped.
 */
#include "rng.h"

#define SEED 0x5eed0002ull

static uint32_t code[MAX_CPUS][1024] __attribute__((aligned(4096)));

static void call(uint64_t at)
{
    ((void (*)(void))at)();
}

static void member(unsigned cpu)
{
    struct rng r = {SEED + cpu};
    struct trap t;

    for (;;) {
        for (unsigned i = 0; i < 1024; i++) {
            code[cpu][i] = (uint32_t)(rng_next(&r) >> 32);
        }
        __asm__ volatile("dsb ish\n ic ialluis\n dsb ish\n isb" ::: "memory");
        for (unsigned i = 0; i < 64; i++) {
            probe(call, (uint64_t)&code[cpu][rng_next(&r) % 1024], &t);
        }
    }
}

int main(void)
{
    unsigned n = cpu_count();

    print("INFO: seed %x, %u CPUs\n", SEED, (uint64_t)n);
    run_on_all(n < 4 ? n : 4, member);
    finish("random_words_el1");
}
