/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule of the whole subject. CPU 0 clears a page-table entry and issues
 * TLBI VAE1IS without a DSB. What CPU 1 does, even a DSB, finishes nothing;
 * CPU 2 may still use the old translation. CPU 0's own DSB does finish it:
 * from then on CPU 2 must fault.
 *
 * How often the old translation was really used is printed, not judged: a
 * machine may apply a TLBI as early as it likes (QEMU always does).
 */
#include "guest.h"

#define ROUNDS 2000u
#define PAGE 3

static uint8_t data[4096] __attribute__((aligned(4096)));
static uint32_t turn; /* whose step it is, grows by STEPS a round */
static uint32_t stale_after_other, stale_after_issuer;
static uint32_t faults_on_mapped;

enum step {
    MAPPED,
    ISSUED,
    OTHER_DSB,
    AFTER_OTHER,
    ISSUER_DSB,
    DONE,
    CHECKED,
    STEPS
};

static void load(uint64_t va)
{
    __asm__ volatile("ldr xzr, [%0]" ::"r"(va) : "memory");
}

/* true: the translation is there, or thought to be there */
static bool reachable(void)
{
    struct trap t;

    return !probe(load, window_va(PAGE), &t);
}

static void await(uint32_t round, enum step s)
{
    wait_for(&turn, round * STEPS + s);
}

static void next(uint32_t round, enum step s)
{
    store_release(&turn, round * STEPS + s);
}

static void issuer(void)
{
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        pte_write(&window3[PAGE], (uint64_t)data | MAP_DATA);
        next(r, MAPPED);
        await(r, ISSUED);
        /* The DSB before the TLBI makes the cleared entry visible to table
         * walks; the TLBI after it is not its business. */
        *(volatile uint64_t *)&window3[PAGE] = 0;
        __asm__ volatile("dsb ishst\n tlbi vae1is, %0" ::"r"(
                             window_va(PAGE) >> 12)
                         : "memory");
        next(r, OTHER_DSB);
        await(r, ISSUER_DSB);
        dsb_ish();
        next(r, DONE);
        await(r, CHECKED);
    }
}

static void other(void)
{
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        await(r, OTHER_DSB);
        dsb_ish();
        next(r, AFTER_OTHER);
    }
}

static void user(void)
{
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        await(r, MAPPED);
        faults_on_mapped += !reachable();
        next(r, ISSUED);
        await(r, AFTER_OTHER);
        stale_after_other += reachable();
        next(r, ISSUER_DSB);
        await(r, DONE);
        stale_after_issuer += reachable();
        next(r, CHECKED);
    }
}

static void member(unsigned cpu)
{
    if (cpu == 0) {
        issuer();
    } else if (cpu == 1) {
        other();
    } else if (cpu == 2) {
        user();
    }
}

int main(void)
{
    if (cpu_count() < 3) {
        print("SKIP: needs 3 CPUs\n");
        finish("tlbi_dsb");
    }
    pte_write(&window3[PAGE], 0);
    run_on_all(3, member);
    check_equal(faults_on_mapped, 0, "a mapped page is reachable");
    print("INFO: old translation used before the issuer's DSB: %u of %u\n",
          (uint64_t)stale_after_other, (uint64_t)ROUNDS);
    check_equal(stale_after_issuer, 0,
                "after the issuer's DSB the page faults on the other CPU");

    /* The same for the issuer itself: its own DSB and ISB. */
    pte_write(&window3[PAGE], (uint64_t)data | MAP_DATA);
    check(reachable(), "the issuer reaches the page");
    *(volatile uint64_t *)&window3[PAGE] = 0;
    __asm__ volatile("dsb nshst\n tlbi vae1, %0\n dsb nsh\n isb" ::"r"(
                         window_va(PAGE) >> 12)
                     : "memory");
    check(!reachable(), "and no more after a local TLBI, DSB NSH and ISB");
    finish("tlbi_dsb");
}
