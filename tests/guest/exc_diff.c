/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the differential tests (tests/diff) found, case by case: external
 * aborts of the walk itself, how AT reports, the direction that atomics
 * report, tagged addresses whose page is remapped, and traps.
 */
#include "exc.h"

SNIPPET(do_load, "ldr x1, [x0]");
SNIPPET(do_store, "str xzr, [x0]");
SNIPPET(do_branch, "br x0");
SNIPPET(do_at, "at s1e1r, x0");
SNIPPET(do_at_write, "at s1e0w, x0");
SNIPPET(do_zva, "dc zva, x0");
SNIPPET(do_ldadd, ".arch armv8.1-a\n ldadd x1, x2, [x0]");
SNIPPET(do_swp, ".arch armv8.1-a\n swp x1, x2, [x0]");
SNIPPET(do_cas, ".arch armv8.1-a\n cas x1, x2, [x0]");
SNIPPET(do_ldar, "ldar x1, [x0]");
SNIPPET(do_fpcr, "mrs x1, fpcr");
SNIPPET(do_fpsr, "msr fpsr, x1");
USER_SNIPPET(user_daif, "mrs x1, daif");
USER_SNIPPET(user_ldadd, ".arch armv8.1-a\n ldadd x1, x2, [x0]");

#define PAGE 3
#define HUGE_VA(n) (WINDOW_VA + ((uint64_t)(n) << 21)) /* entry of window2 */
#define GIANT_VA(n) ((uint64_t)(n) << 30)              /* entry of level1 */
#define VOID_PA 0x200000000ull /* neither RAM nor a device */
#define PAR_SH(par) ((par) >> 7 & 3)
#define TCR_TBI0 (1ull << 37)
#define TAG (0x5aull << 56)

static uint64_t one[512] __attribute__((aligned(4096)));
static uint64_t two[512] __attribute__((aligned(4096)));

static void flush(void)
{
    __asm__ volatile("dsb ishst; tlbi vmalle1is; dsb ish; isb" ::: "memory");
}

static void fetch(const char *text, uint64_t va, unsigned fsc)
{
    struct trap t = {0};
    struct want w = {VECTOR_EL1H, ESR(EC_IABORT, fsc),   va,
                     va,          SPSR_EL1H | SPSR_DAIF, true};

    probe(do_branch, va, &t);
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap(text, &t, &w);
}

static void walks(void)
{
    const uint64_t va[] = {GIANT_VA(9) + 0x128, HUGE_VA(5) + 0x128};

    print("# tables where there is no memory\n");
    level1[9] = VOID_PA | MAP_VALID;
    window2[5] = VOID_PA | MAP_VALID;
    flush();
    expect_abort("load, level 2", do_load, va[0], va[0], FSC_EXTERNAL_WALK + 2);
    expect_abort("store, level 3", do_store, va[1], va[1],
                 (FSC_EXTERNAL_WALK + 3) | ISS_WNR);
    fetch("fetch, level 2", va[0], FSC_EXTERNAL_WALK + 2);
    fetch("fetch, level 3", va[1], FSC_EXTERNAL_WALK + 3);
    /* Not in PAR_EL1, as every other fault of AT is. */
    expect_abort("AT S1E1R is aborted, level 2", do_at, va[0], va[0],
                 (FSC_EXTERNAL_WALK + 2) | ISS_WNR | ISS_CM);
    expect_abort("AT S1E0W is aborted, level 3", do_at_write, va[1], va[1],
                 (FSC_EXTERNAL_WALK + 3) | ISS_WNR | ISS_CM);
    level1[9] = window2[5] = 0;
    flush();
}

static void atomics(void)
{
    const uint64_t va = window_va(PAGE);

    print("# a fault that a read would have is a read's\n");
    window_unmap(PAGE);
    expect_abort("LDADD, unmapped", do_ldadd, va, va, FSC_TRANSLATION + 3);
    expect_abort("SWP, unmapped", do_swp, va, va, FSC_TRANSLATION + 3);
    expect_abort("CAS, unmapped", do_cas, va, va, FSC_TRANSLATION + 3);
    window_map(PAGE, (uint64_t)one, MAP_DATA & ~MAP_AF);
    expect_abort("LDADD, access flag", do_ldadd, va, va, FSC_ACCESS_FLAG + 3);
    window_map(PAGE, (uint64_t)one, MAP_DATA | MAP_RO);
    expect_abort("LDADD, read-only", do_ldadd, va, va,
                 (FSC_PERMISSION + 3) | ISS_WNR);
    expect_abort("SWP, read-only", do_swp, va, va,
                 (FSC_PERMISSION + 3) | ISS_WNR);
    expect_abort("CAS, read-only", do_cas, va, va,
                 (FSC_PERMISSION + 3) | ISS_WNR);
    expect_el0("EL0: LDADD, a page of EL1's", user_ldadd, va, 0,
               ESR(EC_DABORT_EL0, FSC_PERMISSION + 3), va, true);
    window_map(PAGE, (uint64_t)one, MAP_DATA | MAP_RO | MAP_EL0);
    expect_el0("EL0: LDADD, read-only", user_ldadd, va, 0,
               ESR(EC_DABORT_EL0, (FSC_PERMISSION + 3) | ISS_WNR), va, true);
}

static void nothing_there(void)
{
    const uint64_t va = window_va(PAGE);

    print("# pages where there is no memory\n");
    window_map(PAGE, VOID_PA, MAP_DATA);
    expect_abort("load", do_load, va, va, 0x10);
    expect_abort("DC ZVA", do_zva, va, va, 0x10 | ISS_WNR);
    expect_abort("LDADD", do_ldadd, va, va, 0x10);
}

static uint64_t par_of(uint64_t va)
{
    __asm__ volatile("at s1e1r, %0; isb" ::"r"(va) : "memory");
    return read_sysreg(par_el1);
}

static void shareability(void)
{
    const uint64_t va = window_va(PAGE);

    print("# PAR_EL1.SH\n");
    window_map(PAGE, (uint64_t)one, MAP_DATA);
    check_equal(PAR_SH(par_of(va)), 3, "cacheable: as the descriptor says");
    window_map(PAGE, (uint64_t)one, (MAP_DATA & ~MAP_NORMAL) | MAP_NC);
    check_equal(PAR_SH(par_of(va)), 2, "not cacheable: outer");
    window_map(PAGE, (uint64_t)one, MAP_DATA & ~MAP_NORMAL);
    check_equal(PAR_SH(par_of(va)), 2, "device: outer");
}

static uint64_t load(uint64_t va)
{
    return *(volatile uint64_t *)va;
}

static void tags(void)
{
    const uint64_t va = window_va(PAGE), tagged = va | TAG;

    print("# tagged addresses\n");
    write_sysreg(tcr_el1, read_sysreg(tcr_el1) | TCR_TBI0);
    isb();
    one[0] = 1;
    two[0] = 2;
    window_map(PAGE, (uint64_t)one, MAP_DATA);
    check_equal(load(va), 1, "without a tag");
    check_equal(load(tagged), 1, "with one");
    window_map(PAGE, (uint64_t)two, MAP_DATA);
    check_equal(load(tagged), 2, "with one, after TLBI VAAE1IS");
    check_equal(load(va), 2, "without a tag, after TLBI VAAE1IS");
    window_unmap(PAGE);
    expect_abort("with one, unmapped: FAR has the tag", do_load, tagged, tagged,
                 FSC_TRANSLATION + 3);
}

static void traps(void)
{
    const uint64_t va = window_va(PAGE);

    print("# traps\n");
    write_sysreg(cpacr_el1, 0);
    isb();
    expect_el1("MRS FPCR with FPEN clear", do_fpcr, 0, 0,
               ESR(EC_FP, 0x1e00000));
    expect_el1("MSR FPSR with FPEN clear", do_fpsr, 0, 0,
               ESR(EC_FP, 0x1e00000));
    write_sysreg(cpacr_el1, 3ull << 20);
    isb();
    check(!probe(do_fpcr, 0, &el0_trap), "MRS FPCR with FPEN set");
    expect_el0("EL0: MRS DAIF with UMA clear", user_daif, 0, 0,
               ESR(EC_SYSREG, ISS_REG(3, 3, 4, 2, 1, 1, 1)), 0, false);
    window_unmap(PAGE);
    expect_abort("LDAR, misaligned and unmapped: alignment first", do_ldar,
                 va + 12 + 1, va + 12 + 1, FSC_ALIGNMENT);
}

int main(void)
{
    walks();
    atomics();
    nothing_there();
    shareability();
    tags();
    traps();
    finish("exc_diff");
}
