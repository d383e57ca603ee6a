/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every encoding of MRS, MSR and SYS, known or not: 3 * 2^15 instructions.
 * What can be read is written back unchanged, what cannot is written with 0.
 */
#include "guest.h"

#define PER_PAGE 512
#define MRS_X0 0xd5300000u /* bit 20 is op0[1]; bit 19 of the key is op0[0] */
#define MSR_X0 0xd5100000u
#define SYS_X0 0xd5080000u
#define RET 0xd65f03c0u

static uint32_t code[PER_PAGE * 2] __attribute__((aligned(4096)));
static uint8_t readable[1 << 15];

static void fill(uint32_t base, uint32_t first)
{
    for (uint32_t i = 0; i < PER_PAGE; i++) {
        code[i * 2] = base | (first + i) << 5;
        code[i * 2 + 1] = RET;
    }
    __asm__ volatile("dsb ish\n ic ialluis\n dsb ish\n isb" ::: "memory");
}

static uint64_t value;

/* x0 is the argument and the result: the snippet is called as fn(value). */
static void call(uint64_t at)
{
    value = ((uint64_t(*)(uint64_t))at)(value);
}

int main(void)
{
    uint64_t reads = 0, writes = 0, operations = 0;
    struct trap t;

    for (uint32_t key = 0; key < 1 << 15; key += PER_PAGE) {
        fill(MRS_X0, key);
        for (uint32_t i = 0; i < PER_PAGE; i++) {
            value = 0;
            readable[key + i] = !probe(call, (uint64_t)&code[i * 2], &t);
            reads += readable[key + i];
        }
    }
    print("INFO: %u of 32768 encodings can be read\n", reads);
    for (uint32_t key = 0; key < 1 << 15; key += PER_PAGE) {
        for (uint32_t i = 0; i < PER_PAGE; i++) {
            uint64_t was = 0;

            if (i == 0) {
                fill(MRS_X0, key);
            }
            if (readable[key + i]) {
                value = 0;
                probe(call, (uint64_t)&code[i * 2], &t);
                was = value;
            }
            /* One at a time: what is written must be what was just read. */
            code[i * 2] = MSR_X0 | (key + i) << 5;
            __asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n"
                             "dsb ish\n isb" ::"r"(&code[i * 2])
                             : "memory");
            value = was;
            writes += !probe(call, (uint64_t)&code[i * 2], &t);
        }
    }
    print("INFO: %u of 32768 encodings can be written\n", writes);
    for (uint32_t key = 0; key < 1 << 14; key += PER_PAGE) {
        fill(SYS_X0, key);
        for (uint32_t i = 0; i < PER_PAGE; i++) {
            value = 0;
            operations += !probe(call, (uint64_t)&code[i * 2], &t);
        }
    }
    print("INFO: %u of 16384 SYS encodings do something\n", operations);
    finish("system_registers");
}
