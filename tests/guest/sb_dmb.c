/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Store buffering through DMB ISH and through DSB ISH: never both old. */
#include "sb.h"

#define SB_PAIR(name, barrier)                                            \
    static uint32_t name(uint32_t *mine, uint32_t r, uint32_t *other)     \
    {                                                                     \
        uint32_t v;                                                       \
        __asm__ volatile("str %w2, [%1]\n " barrier "\n ldr %w0, [%3]"    \
                         : "=&r"(v)                                       \
                         : "r"(mine), "r"(r), "r"(other)                  \
                         : "memory");                                     \
        return v;                                                         \
    }

SB_PAIR(sb_dmb_ish, "dmb ish")
SB_PAIR(sb_dsb_ish, "dsb ish")

int main(void)
{
    sb_control();
    sb_verdict("DMB ISH", sb_run(sb_dmb_ish),
               "DMB ISH: both old in none of 1000000 rounds");
    sb_verdict("DSB ISH", sb_run(sb_dsb_ish),
               "DSB ISH: both old in none of 1000000 rounds");
    finish("sb_dmb");
}
