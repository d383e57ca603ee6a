/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No update is lost between CPUs that add with LDADD, STADD, CAS and SWP, and
 * the single operations compute what they should.
 */
#include "atomics.h"

static uint32_t word __attribute__((aligned(64)));
static uint64_t dword __attribute__((aligned(64)));
static uint64_t cas_word __attribute__((aligned(64)));
static uint32_t lock __attribute__((aligned(64)));
static uint64_t guarded;

static void add_ldadd(unsigned cpu)
{
    (void)cpu;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t old;

        __asm__ volatile(".arch armv8.1-a\n ldadd %w1, %w0, [%2]"
                         : "=r"(old)
                         : "r"(1), "r"(&word)
                         : "memory");
    }
}

static void add_stadd(unsigned cpu)
{
    (void)cpu;
    for (unsigned i = 0; i < ROUNDS; i++) {
        __asm__ volatile(".arch armv8.1-a\n stadd %0, [%1]" ::"r"(1ull),
                         "r"(&dword)
                         : "memory");
    }
}

static void add_cas(unsigned cpu)
{
    (void)cpu;
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        uint64_t old, seen;

        do {
            old = *(volatile uint64_t *)&cas_word;
            seen = old;
            __asm__ volatile(".arch armv8.1-a\n casal %0, %1, [%2]"
                             : "+r"(seen)
                             : "r"(old + 1), "r"(&cas_word)
                             : "memory");
        } while (seen != old);
    }
}

static void add_swp(unsigned cpu)
{
    (void)cpu;
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        uint32_t old;

        for (unsigned spins = 0;; spins++) {
            __asm__ volatile(".arch armv8.1-a\n swpa %w1, %w0, [%2]"
                             : "=r"(old)
                             : "r"(1), "r"(&lock)
                             : "memory");
            if (!old) {
                break;
            }
            if (spins % 64 == 63) {
                __asm__ volatile("yield");
            }
        }
        guarded++; /* plain: the lock orders it */
        store_release(&lock, 0);
    }
}

#define LSE(text, insn, value, operand, want_mem)                        \
    do {                                                                 \
        uint64_t mem_ = (value), old_;                                   \
        __asm__ volatile(".arch armv8.1-a\n " insn " %1, %0, [%2]"       \
                         : "=&r"(old_)                                   \
                         : "r"((uint64_t)(operand)), "r"(&mem_)          \
                         : "memory");                                    \
        check(old_ == (uint64_t)(value) && mem_ == (uint64_t)(want_mem), \
              text);                                                     \
    } while (0)

int main(void)
{
    unsigned n = atomics_cpus();

    print("INFO: %u CPUs\n", (uint64_t)n);
    LSE("LDADDAL adds", "ldaddal", 5, 7, 12);
    LSE("LDCLR clears", "ldclr", 0xff, 0x0f, 0xf0);
    LSE("LDSETL sets", "ldsetl", 0xf0, 0x0f, 0xff);
    LSE("LDEORA flips", "ldeora", 0xff, 0x0f, 0xf0);
    LSE("LDSMAX is signed", "ldsmax", -1, 1, 1);
    LSE("LDSMIN is signed", "ldsmin", -1, 1, -1);
    LSE("LDUMAX is unsigned", "ldumax", -1, 1, -1);
    LSE("LDUMIN is unsigned", "ldumin", -1, 1, 1);
    LSE("SWP swaps", "swp", 3, 4, 4);

    run_on_all(n, add_ldadd);
    check_equal(word, (uint64_t)n * ROUNDS, "LDADD: no increment lost");
    run_on_all(n, add_stadd);
    check_equal(dword, (uint64_t)n * ROUNDS, "STADD: no increment lost");
    run_on_all(n, add_cas);
    check_equal(cas_word, (uint64_t)n * (ROUNDS / 4),
                "CASAL: no increment lost");
    run_on_all(n, add_swp);
    check_equal(guarded, (uint64_t)n * (ROUNDS / 4),
                "a lock of SWPA and STLR keeps others out");
    finish("atomics_ldadd");
}
