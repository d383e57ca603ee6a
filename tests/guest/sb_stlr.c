/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Store buffering through STLR and LDAR: release and acquire are RCsc, so
 * never both old. QEMU on an x86 host does let them pass each other.
 */
#include "sb.h"

static uint32_t sb_stlr_ldar(uint32_t *mine, uint32_t r, uint32_t *other)
{
    uint32_t v;

    __asm__ volatile("stlr %w2, [%1]\n ldar %w0, [%3]"
                     : "=&r"(v)
                     : "r"(mine), "r"(r), "r"(other)
                     : "memory");
    return v;
}

int main(void)
{
    sb_control();
    sb_verdict("STLR/LDAR", sb_run(sb_stlr_ldar),
               "STLR, LDAR: both old in none of 1000000 rounds");
    finish("sb_stlr");
}
