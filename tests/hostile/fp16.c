/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unallocated corners of the half-precision vector instructions, "three
 * same" and "two-register miscellaneous": the engine's decoder has an
 * assertion there, so they must never reach it. All are undefined.
 */
#include "guest.h"

#define THREE_SAME 0x0e400400u /* fpop: U, a, opcode (bits 29, 23, 13:11) */
#define TWO_MISC 0x0e780800u   /* fpop: U, a, opcode (bits 29, 23, 16:12) */
#define Q (1u << 30)
#define SCALAR (1u << 28)
#define RET 0xd65f03c0u

static uint32_t code[2] __attribute__((aligned(4096)));
static const uint8_t three_same[] = {0x05, 0x0b, 0x0c, 0x0d,
                                     0x11, 0x19, 0x1b, 0x1f};
/* Bit n of word w: fpop 32 * w + n is allocated, for vectors. */
static const uint32_t two_misc[] = {0x3f000000, 0x2f00f000, 0x3f000000,
                                    0xae00b000};

static void call(uint64_t at)
{
    ((void (*)(void))at)();
}

static bool is_undefined(uint32_t word)
{
    struct trap t;

    code[0] = word;
    code[1] = RET;
    __asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb" ::"r"(
                         code)
                     : "memory");
    return probe(call, (uint64_t)code, &t) && t.esr >> 26 == 0;
}

int main(void)
{
    unsigned defined = 0;

    for (unsigned i = 0; i < sizeof(three_same); i++) {
        uint32_t f = three_same[i];
        uint32_t w = THREE_SAME | (f & 7) << 11 | (f >> 3 & 1) << 23 |
                     (f >> 4 & 1) << 29;

        defined += !is_undefined(w | 0x30020) + !is_undefined(w | Q | 0x30020);
    }
    check(!defined, "half-precision three same: unallocated is undefined");
    defined = 0;
    for (uint32_t f = 0; f < 128; f++) {
        uint32_t w = TWO_MISC | (f & 31) << 12 | (f >> 5 & 1) << 23 |
                     (f >> 6 & 1) << 29 | 0x20;

        if (!(two_misc[f / 32] >> f % 32 & 1)) {
            defined += !is_undefined(w) + !is_undefined(w | Q) +
                       (f != 0x3f && !is_undefined(w | Q | SCALAR));
        }
    }
    check(!defined, "half-precision two-register: unallocated is undefined");
    check(is_undefined(TWO_MISC | 0xf000 | 1u << 23 | Q | SCALAR | 0x20),
          "scalar FABS of half precision is undefined");
    finish("fp16");
}
