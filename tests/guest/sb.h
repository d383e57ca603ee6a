/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Store buffering: CPU 0 stores x and loads y, CPU 1 stores y and loads x.
 * Both loads giving the old values is forbidden when each pair is ordered.
 *
 * x and y only grow: round r stores r, and a load that returns less than r is
 * "old". Therefore "both old" is forbidden whatever the rendezvous does, and
 * the rendezvous is free to be plain loads and stores, which lets both CPUs
 * leave it at the same moment; a barrier instruction there would spread them.
 */
#ifndef TESTS_GUEST_SB_H
#define TESTS_GUEST_SB_H

#include "guest.h"

#define SB_ROUNDS 1000000u

static volatile uint32_t sb_flag[2][16] __attribute__((aligned(64)));
static uint32_t sb_cell[2][16] __attribute__((aligned(64)));
static uint8_t sb_old[2][SB_ROUNDS];

/* Stores r to *mine, loads *other, in that order or not. */
typedef uint32_t sb_pair(uint32_t *mine, uint32_t r, uint32_t *other);
static sb_pair *sb_fn;
static uint32_t sb_base; /* rounds of earlier runs: the cells keep growing */

static void sb_cpu(unsigned cpu)
{
    volatile uint32_t *mine = sb_flag[cpu];
    volatile uint32_t *other = sb_flag[!cpu];

    if (cpu > 1) {
        return;
    }
    for (uint32_t i = 0; i < SB_ROUNDS; i++) {
        uint32_t r = sb_base + i + 1;
        unsigned spins = 0;

        *mine = r;
        while (*other < r) {
            if (++spins % 4096 == 0) {
                __asm__ volatile("yield");
            }
        }
        sb_old[cpu][i] = sb_fn(sb_cell[cpu], r, sb_cell[!cpu]) < r;
    }
}

struct sb_counts {
    uint64_t both_old, first_old, second_old, both_new;
};

static struct sb_counts sb_run(sb_pair *fn)
{
    struct sb_counts c = {0};

    sb_fn = fn;
    run_on_all(2, sb_cpu);
    sb_base += SB_ROUNDS;
    for (unsigned i = 0; i < SB_ROUNDS; i++) {
        unsigned o = sb_old[0][i] + 2u * sb_old[1][i];

        c.both_old += o == 3;
        c.first_old += o == 1;
        c.second_old += o == 2;
        c.both_new += o == 0;
    }
    return c;
}

static void sb_print(const char *what, struct sb_counts c)
{
    print("INFO: %s: both old %u, first old %u, second old %u, both new %u\n",
          what, c.both_old, c.first_old, c.second_old, c.both_new);
}

/* No ordering at all: shows that the CPUs do meet. */
static uint32_t sb_plain(uint32_t *mine, uint32_t r, uint32_t *other)
{
    uint32_t v;

    __asm__ volatile("str %w2, [%1]\n ldr %w0, [%3]"
                     : "=&r"(v)
                     : "r"(mine), "r"(r), "r"(other)
                     : "memory");
    return v;
}

static void sb_control(void)
{
    struct sb_counts c = sb_run(sb_plain);

    sb_print("without a barrier", c);
    print("INFO: control: both old %s\n",
          c.both_old ? "was seen" : "was not seen");
}

static void sb_verdict(const char *what, struct sb_counts c, const char *text)
{
    sb_print(what, c);
    check_equal(c.both_old, 0, text);
    check(c.first_old && c.second_old, "each CPU was first in some rounds");
}

#endif
