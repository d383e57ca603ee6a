/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aborts of the MMU: every kind at every level it can have, read and write,
 * data and instruction, EL1 and EL0: exact ESR, FAR, ELR and SPSR.
 */
#include "exc.h"

SNIPPET(do_load, "ldr x1, [x0]");
SNIPPET(do_store, "str xzr, [x0]");
SNIPPET(do_load_pair, "ldp x1, x2, [x0, #8]!");
SNIPPET(do_store_byte, "strb wzr, [x0], #1");
SNIPPET(do_ldxr, "ldxr x1, [x0]");
SNIPPET(do_stlr, "stlr x1, [x0]");
SNIPPET(do_ldadd, ".arch armv8.1-a\n ldadd x1, x2, [x0]");
SNIPPET(do_zva, "dc zva, x0");
SNIPPET(do_ldtr, "ldtr x1, [x0]");
SNIPPET(do_sttr, "sttr xzr, [x0]");
SNIPPET(do_prfm, "prfm pldl1keep, [x0]");
SNIPPET(do_branch, "br x0");

USER_SNIPPET(user_load, "ldr x1, [x0]");
USER_SNIPPET(user_store, "str xzr, [x0]");
USER_SNIPPET(user_branch, "br x0");

#define PAGE 3         /* the window's page under test */
#define HUGE_VA(n) (WINDOW_VA + ((uint64_t)(n) << 21)) /* entry of window2 */
#define GIANT_VA(n) ((uint64_t)(n) << 30)              /* entry of level1 */
#define TOP_VA(n) ((uint64_t)(n) << 39)                /* entry of level0 */
#define OUT_OF_RANGE (1ull << 44) /* beyond the 40 bits of TCR.IPS */

static uint8_t data[4096] __attribute__((aligned(4096)));
/* The order of the fault status code: kind * 4 + level. */
enum kind { ADDRESS_SIZE, TRANSLATION, ACCESS_FLAG, PERMISSION };

static void flush(void)
{
    __asm__ volatile("dsb ishst; tlbi vmalle1is; dsb ish; isb" ::: "memory");
}

/* Loads and stores through an entry that faults at that level. */
static void level_case(const char *text, enum kind kind, unsigned level,
                       uint64_t *entry, uint64_t value, uint64_t va)
{
    unsigned fsc = kind * 4 + level;

    *(volatile uint64_t *)entry = value;
    flush();
    print("# %s\n", text);
    if (kind != PERMISSION) {
        expect_abort("load", do_load, va, va, fsc);
    }
    expect_abort("store", do_store, va + 0x128, va + 0x128, fsc | ISS_WNR);
    *(volatile uint64_t *)entry = 0;
    flush();
}

static void levels(void)
{
    const uint64_t ram = BOARD_RAM_BASE, page = (uint64_t)data;
    const uint64_t block = MAP_BLOCK | MAP_NORMAL | MAP_ISH | MAP_AF |
                           MAP_UXN | MAP_PXN;
    uint64_t *const e[] = {&level0[7], &level1[9], &window2[5],
                           &window3[PAGE]};
    const uint64_t va[] = {TOP_VA(7), GIANT_VA(9), HUGE_VA(5),
                           window_va(PAGE)};

    level_case("translation, level 0", TRANSLATION, 0, e[0], 0, va[0]);
    level_case("translation, level 1", TRANSLATION, 1, e[1], 0, va[1]);
    level_case("translation, level 2", TRANSLATION, 2, e[2], 0, va[2]);
    level_case("translation, level 3", TRANSLATION, 3, e[3], 0, va[3]);
    level_case("translation, level 3: bit 1 clear", TRANSLATION, 3, e[3],
               page | block, va[3]);

    level_case("access flag, level 1", ACCESS_FLAG, 1, e[1],
               ram | (block & ~MAP_AF), va[1]);
    level_case("access flag, level 2", ACCESS_FLAG, 2, e[2],
               ram | (block & ~MAP_AF), va[2]);
    level_case("access flag, level 3", ACCESS_FLAG, 3, e[3],
               page | (MAP_DATA & ~MAP_AF), va[3]);

    level_case("permission, level 1", PERMISSION, 1, e[1],
               ram | block | MAP_RO, va[1]);
    level_case("permission, level 2", PERMISSION, 2, e[2],
               ram | block | MAP_RO, va[2]);
    level_case("permission, level 3", PERMISSION, 3, e[3],
               page | MAP_DATA | MAP_RO, va[3]);

    level_case("address size, level 0", ADDRESS_SIZE, 0, e[0],
               OUT_OF_RANGE | MAP_VALID, va[0]);
    level_case("address size, level 1", ADDRESS_SIZE, 1, e[1],
               OUT_OF_RANGE | block, va[1]);
    level_case("address size, level 2", ADDRESS_SIZE, 2, e[2],
               OUT_OF_RANGE | block, va[2]);
    level_case("address size, level 3", ADDRESS_SIZE, 3, e[3],
               OUT_OF_RANGE | MAP_DATA, va[3]);

    print("# outside the regime\n");
    expect_abort("beyond T0SZ, level 0", do_load, 1ull << 50, 1ull << 50,
                 FSC_TRANSLATION);
    expect_abort("TTBR1 half with EPD1 set, level 0", do_load,
                 0xffff000000000008ull, 0xffff000000000008ull,
                 FSC_TRANSLATION);
}

static void instructions(void)
{
    uint64_t va = window_va(PAGE);

    print("# which instruction\n");
    window_unmap(PAGE);
    expect_abort("LDP with pre-index", do_load_pair, va, va + 8,
                 FSC_TRANSLATION + 3);
    expect_abort("STRB with post-index", do_store_byte, va + 5, va + 5,
                 (FSC_TRANSLATION + 3) | ISS_WNR);
    expect_abort("LDXR", do_ldxr, va, va, FSC_TRANSLATION + 3);
    expect_abort("STLR", do_stlr, va, va, (FSC_TRANSLATION + 3) | ISS_WNR);
    expect_abort("DC ZVA is a store", do_zva, va, va,
                 (FSC_TRANSLATION + 3) | ISS_WNR);
    check(!probe(do_prfm, va, &el0_trap), "PRFM never faults");

    window_map(PAGE, (uint64_t)data, MAP_DATA | MAP_RO);
    expect_abort("LDADD to a read-only page is a write", do_ldadd, va, va,
                 (FSC_PERMISSION + 3) | ISS_WNR);
    check(!probe(do_load, va, &el0_trap), "a read-only page can be read");

    window_map(PAGE, (uint64_t)data, MAP_DATA);
    expect_abort("LDTR of an EL1 page", do_ldtr, va, va, FSC_PERMISSION + 3);
    expect_abort("STTR to an EL1 page", do_sttr, va, va,
                 (FSC_PERMISSION + 3) | ISS_WNR);
    /* Across 16 bytes: within them FEAT_LSE2 would allow it. */
    expect_abort("LDXR, misaligned", do_ldxr, va + 12, va + 12, FSC_ALIGNMENT);
    expect_abort("STLR, misaligned", do_stlr, va + 13, va + 13,
                 FSC_ALIGNMENT | ISS_WNR);
    check(!probe(do_load, va + 3, &el0_trap), "LDR may be misaligned");

    window_map(PAGE, (uint64_t)data, MAP_DATA | MAP_EL0);
    check(!probe(do_ldtr, va, &el0_trap), "LDTR of an EL0 page is fine");
    write_sysreg(S3_0_C4_C2_3, 1ull << 22); /* PSTATE.PAN */
    {
        struct trap t = {0};
        struct want w = {VECTOR_EL1H,
                         ESR(EC_DABORT, FSC_PERMISSION + 3),
                         va,
                         (uint64_t)do_load,
                         SPSR_EL1H | SPSR_DAIF | SPSR_PAN,
                         true};

        probe(do_load, va, &t);
        t.spsr &= ~(uint64_t)SPSR_NZCV;
        check_trap("PAN: LDR of an EL0 page", &t, &w);
    }
    write_sysreg(S3_0_C4_C2_3, 1ull << 22);
    check(!probe(do_ldtr, va, &el0_trap), "PAN: LDTR of an EL0 page is fine");
    write_sysreg(S3_0_C4_C2_3, 0);
    check(!probe(do_load, va, &el0_trap), "without PAN LDR of it is fine");
}

static void fetch(const char *text, uint64_t va, unsigned fsc)
{
    struct trap t = {0};
    struct want w = {VECTOR_EL1H, ESR(EC_IABORT, fsc),     va,
                     va,          SPSR_EL1H | SPSR_DAIF, true};

    if (!probe(do_branch, va, &t)) {
        check(false, text);
        return;
    }
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap(text, &t, &w);
}

static void fetches(void)
{
    uint64_t va = window_va(PAGE);
    const uint64_t ret = 0xd65f03c0;
    struct trap t;

    print("# instruction aborts\n");
    window_unmap(PAGE);
    fetch("fetch: translation, level 3", va + 8, FSC_TRANSLATION + 3);
    fetch("fetch: translation, level 1", GIANT_VA(9), FSC_TRANSLATION + 1);
    fetch("fetch: translation, level 0", TOP_VA(7), FSC_TRANSLATION);
    window_map(PAGE, (uint64_t)data, MAP_DATA);
    fetch("fetch: PXN", va + 16, FSC_PERMISSION + 3);
    window_map(PAGE, (uint64_t)data, MAP_CODE & ~MAP_AF);
    fetch("fetch: access flag", va, FSC_ACCESS_FLAG + 3);
    window_map(PAGE, (uint64_t)data, MAP_DATA | MAP_EL0);
    fetch("fetch: a page that EL0 can write", va, FSC_PERMISSION + 3);

    *(volatile uint32_t *)data = (uint32_t)ret;
    __asm__ volatile("dc cvau, %0; dsb ish; ic ivau, %0; dsb ish; isb" ::"r"(
        data)
                     : "memory");
    window_map(PAGE, (uint64_t)data, MAP_CODE);
    check(!probe(do_branch, va, &t), "fetch: an executable page runs");
}

static void at_el0(void)
{
    uint64_t va = window_va(PAGE);
    struct want w;

    print("# from EL0\n");
    window_unmap(PAGE);
    expect_el0("EL0: load, translation level 3", user_load, va, 0,
               ESR(EC_DABORT_EL0, FSC_TRANSLATION + 3), va, true);
    expect_el0("EL0: store, translation level 3", user_store, va + 8, 0,
               ESR(EC_DABORT_EL0, (FSC_TRANSLATION + 3) | ISS_WNR), va + 8,
               true);
    window_map(PAGE, (uint64_t)data, MAP_DATA);
    expect_el0("EL0: load of an EL1 page", user_load, va, 0,
               ESR(EC_DABORT_EL0, FSC_PERMISSION + 3), va, true);
    window_map(PAGE, (uint64_t)data, MAP_DATA | MAP_EL0 | MAP_RO);
    expect_el0("EL0: load of a read-only page", user_load, va, 8,
               ESR(EC_SVC, 0xffff), 0, false);
    expect_el0("EL0: store to a read-only page", user_store, va, 0,
               ESR(EC_DABORT_EL0, (FSC_PERMISSION + 3) | ISS_WNR), va, true);
    run_el0(user_branch, va + 4, SPSR_EL0T);
    el0_trap.spsr &= ~(uint64_t)SPSR_NZCV;
    w = (struct want){VECTOR_EL0, ESR(EC_IABORT_EL0, FSC_PERMISSION + 3),
                      va + 4,     va + 4,
                      SPSR_EL0T,  true};
    check_trap("EL0: fetch from a UXN page", &el0_trap, &w);
    expect_el0("EL0: load of the EL1 block", user_load, (uint64_t)data, 0,
               ESR(EC_DABORT_EL0, FSC_PERMISSION + 1), (uint64_t)data, true);
}

int main(void)
{
    levels();
    instructions();
    fetches();
    at_el0();
    finish("exc_abort");
}
