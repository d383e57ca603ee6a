/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No update is lost between CPUs that add with LDXR/STXR, with LDAXR/STLXR,
 * and with byte, halfword and 64-bit forms.
 */
#include "atomics.h"

static uint32_t word __attribute__((aligned(64)));
static uint64_t dword __attribute__((aligned(64)));
static uint16_t half __attribute__((aligned(64)));
static uint8_t byte __attribute__((aligned(64)));

#define ADD_LOOP(load, store, reg, address)                             \
    for (unsigned i = 0; i < ROUNDS; i++) {                             \
        uint64_t old;                                                   \
        uint32_t failed;                                                \
        __asm__ volatile("1: " load " %" reg "0, [%2]\n"                \
                         "add %0, %0, #1\n" store " %w1, %" reg         \
                         "0, [%2]\n"                                    \
                         "cbnz %w1, 1b"                                 \
                         : "=&r"(old), "=&r"(failed)                    \
                         : "r"(address)                                 \
                         : "memory");                                   \
    }

static void add_word(unsigned cpu)
{
    (void)cpu;
    ADD_LOOP("ldxr", "stxr", "w", &word)
}

static void add_dword(unsigned cpu)
{
    (void)cpu;
    ADD_LOOP("ldaxr", "stlxr", "x", &dword)
}

static void add_half(unsigned cpu)
{
    (void)cpu;
    ADD_LOOP("ldxrh", "stxrh", "w", &half)
}

static void add_byte(unsigned cpu)
{
    (void)cpu;
    ADD_LOOP("ldxrb", "stxrb", "w", &byte)
}

int main(void)
{
    unsigned n = atomics_cpus();
    uint64_t want = (uint64_t)n * ROUNDS;

    print("INFO: %u CPUs\n", (uint64_t)n);
    run_on_all(n, add_word);
    check_equal(word, want, "LDXR/STXR, 32 bits: no increment lost");
    run_on_all(n, add_dword);
    check_equal(dword, want, "LDAXR/STLXR, 64 bits: no increment lost");
    run_on_all(n, add_half);
    check_equal(half, want & 0xffff, "LDXRH/STXRH: no increment lost");
    run_on_all(n, add_byte);
    check_equal(byte, want & 0xff, "LDXRB/STXRB: no increment lost");
    finish("atomics_ldxr");
}
