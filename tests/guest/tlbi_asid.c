/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLBIs that name an ASID: a page of that ASID is gone on every CPU after the
 * issuer's DSB ISH. After a DSB NSH it need not be; how often it was still
 * there is printed.
 */
#include "liberty.h"

#define ROUNDS 60u
#define PAGE 3
#define ASID 5ull

static struct outcome by_nsh = {"after-dsb-nsh", 0, 0};
static uint64_t unreachable, kept_by_va, kept_by_asid;
static uint64_t data[512] __attribute__((aligned(4096)));

static uint64_t load_asid(uint64_t asid)
{
    write_sysreg(ttbr0_el1, (uint64_t)level0 | asid << 48);
    isb();
    return 0;
}

static void map(void)
{
    pte_write(&window3[PAGE], (uint64_t)data | MAP_DATA | MAP_NG);
    for (unsigned cpu = 0; cpu < LIBERTY_CPUS; cpu++) {
        unreachable += !on(cpu, touch, window_va(PAGE));
    }
}

static uint64_t reached(void)
{
    uint64_t n = 0;

    for (unsigned cpu = 0; cpu < LIBERTY_CPUS; cpu++) {
        n += on(cpu, touch, window_va(PAGE));
    }
    return n;
}

static uint64_t va_operand(void)
{
    return ASID << 48 | window_va(PAGE) >> 12;
}

/* Twice: see flush_for_sure(). */
static void by_va(void)
{
    map();
    pte_write(&window3[PAGE], 0);
    for (unsigned i = 0; i < 2; i++) {
        __asm__ volatile("tlbi vae1is, %0\n dsb ish" ::"r"(va_operand())
                         : "memory");
    }
    kept_by_va += reached();
    flush_for_sure(window_va(PAGE));
}

static void by_asid(void)
{
    map();
    pte_write(&window3[PAGE], 0);
    for (unsigned i = 0; i < 2; i++) {
        __asm__ volatile("tlbi aside1is, %0\n dsb ish" ::"r"(ASID << 48)
                         : "memory");
    }
    kept_by_asid += reached();
    flush_for_sure(window_va(PAGE));
}

static void wait_for_oneself(void)
{
    map();
    pte_write(&window3[PAGE], 0);
    __asm__ volatile("tlbi vae1is, %0\n dsb nsh" ::"r"(va_operand())
                     : "memory");
    note(&by_nsh, on(2, touch, window_va(PAGE)));
    flush_for_sure(window_va(PAGE));
}

int main(void)
{
    liberty_begin("tlbi_asid");
    for (unsigned cpu = 0; cpu < LIBERTY_CPUS; cpu++) {
        (void)on(cpu, load_asid, ASID);
    }
    flush_for_sure(window_va(PAGE));
    for (unsigned i = 0; i < ROUNDS; i++) {
        by_va();
        by_asid();
        wait_for_oneself();
    }
    show(&by_nsh);
    check_equal(unreachable, 0, "a mapped page is reachable");
    check_equal(kept_by_va, 0, "VAE1IS takes a page of its ASID away");
    check_equal(kept_by_asid, 0, "ASIDE1IS takes it away as well");
    finish("tlbi_asid");
}
