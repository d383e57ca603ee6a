/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access flag and dirty state by hardware, FEAT_HAFDBS: done where the ID
 * register promises it and TCR_EL1.HA and .HD ask for it, and nowhere else;
 * and what a TLB makes of it that believes a page dirty already.
 */
#include "exc.h"
#include "liberty.h"

#define ROUNDS 40u
#define PAGE 3
#define TCR_HA (UINT64_C(1) << 39)
#define TCR_HD (UINT64_C(1) << 40)
#define MAP_DBM (UINT64_C(1) << 51)
#define CLEAN ((uint64_t)data | MAP_DATA | MAP_DBM | MAP_RO)
#define FSC(esr) ((esr)&0x3f)

static struct outcome promised = {"dbm", 0, 0};
static struct outcome flag_set = {"dbm-af", 0, 0};
static struct outcome made_dirty = {"dbm-dirty", 0, 0};
static struct outcome lost_dirty = {"dbm-dirty-cached", 0, 0};
static uint64_t wrong_af, wrong_dirty, wrong_read, wrong_off, wrong_again;
static uint64_t wrong_protected, kept;

static uint64_t data[512] __attribute__((aligned(4096)));

static void store_to(uint64_t va)
{
    *(volatile uint64_t *)va = 1;
}

/* 0, or the fault status of the abort. */
static uint64_t store(uint64_t va)
{
    struct trap t;

    isb();
    return probe(store_to, va, &t) ? FSC(t.esr) : 0;
}

static uint64_t load(uint64_t va)
{
    struct trap t;

    isb();
    return probe(load_from, va, &t) ? FSC(t.esr) : 0;
}

static uint64_t set_tcr(uint64_t bits)
{
    write_sysreg(tcr_el1, (read_sysreg(tcr_el1) & ~(TCR_HA | TCR_HD)) | bits);
    isb();
    __asm__ volatile("tlbi vmalle1\n dsb nsh\n isb" ::: "memory");
    return 0;
}

static void set_tcr_of_all(uint64_t bits)
{
    for (unsigned cpu = 0; cpu < LIBERTY_CPUS; cpu++) {
        (void)on(cpu, set_tcr, bits);
    }
}

static uint64_t pte(void)
{
    return *(volatile uint64_t *)&window3[PAGE];
}

static void access_flag(unsigned cpu, bool is_on)
{
    const uint64_t old = (uint64_t)data | (MAP_DATA & ~MAP_AF);
    uint64_t fault;

    pte_write(&window3[PAGE], old);
    fault = on(cpu, load, window_va(PAGE));
    if (is_on) {
        wrong_af += fault != 0 || pte() != (old | MAP_AF);
        note(&flag_set, pte() == (old | MAP_AF));
    } else {
        wrong_af += fault != (FSC_ACCESS_FLAG | 3) || pte() != old;
        note(&flag_set, pte() != old);
    }
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

static void dirty(unsigned cpu, bool is_on)
{
    uint64_t fault;

    pte_write(&window3[PAGE], CLEAN);
    wrong_read += on(cpu, load, window_va(PAGE)) != 0 || pte() != CLEAN;
    fault = on(cpu, store, window_va(PAGE));
    note(&made_dirty, pte() == (CLEAN & ~MAP_RO));
    if (!is_on) {
        wrong_dirty += fault != (FSC_PERMISSION | 3) || pte() != CLEAN;
        kept += still_reached(&window3[PAGE], window_va(PAGE));
        return;
    }
    wrong_dirty += fault != 0 || pte() != (CLEAN & ~MAP_RO);

    /* Software cleans it and tells no TLB: the next write may go unseen. */
    pte_write(&window3[PAGE], CLEAN);
    wrong_again += on(cpu, store, window_va(PAGE)) != 0;
    note(&lost_dirty, pte() == CLEAN);

    /* By the rules it must be seen. */
    pte_write(&window3[PAGE], CLEAN);
    flush_for_sure(window_va(PAGE));
    wrong_again += on(cpu, store, window_va(PAGE)) != 0;
    wrong_again += pte() != (CLEAN & ~MAP_RO);
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

/*
 * The CPU has the page cached as clean, and it becomes read-only without DBM.
 * To make it dirty the descriptor has to be looked at: nothing may be written.
 */
static void protect(unsigned cpu)
{
    uint64_t now_pte = CLEAN & ~MAP_DBM;

    pte_write(&window3[PAGE], CLEAN);
    wrong_read += on(cpu, load, window_va(PAGE)) != 0;
    data[0] = 0;
    pte_write(&window3[PAGE], now_pte);
    wrong_protected += on(cpu, store, window_va(PAGE)) == 0;
    wrong_protected += pte() != now_pte || data[0] != 0;
    kept += still_reached(&window3[PAGE], window_va(PAGE));
}

int main(void)
{
    bool has = (read_sysreg(id_aa64mmfr1_el1) & 15) == 2;

    liberty_begin("liberty_dbm");
    kept += still_reached(&window3[PAGE], window_va(PAGE));
    note(&promised, has);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned cpu = i % LIBERTY_CPUS;

        if (i % 8 == 0) {
            /* Nobody asked: nothing happens. */
            struct outcome af = flag_set, d = made_dirty;

            set_tcr_of_all(0);
            access_flag(cpu, false);
            dirty(cpu, false);
            wrong_off += flag_set.seen != af.seen || made_dirty.seen != d.seen;
            set_tcr_of_all(TCR_HA);
            dirty(cpu, false);
            wrong_off += made_dirty.seen != d.seen;
            flag_set = af;
            made_dirty = d;
            set_tcr_of_all(TCR_HA | TCR_HD);
        }
        access_flag(cpu, has);
        dirty(cpu, has);
        protect(cpu);
    }
    show(&promised);
    show(&flag_set);
    show(&made_dirty);
    show(&lost_dirty);
    check_equal(wrong_off, 0,
                "nothing is updated that TCR_EL1 did not ask for");
    check_equal(wrong_af, 0, "an access flag of 0 is set, or is a fault");
    check_equal(wrong_dirty, 0, "a clean page is made dirty, or is a fault");
    check_equal(wrong_read, 0, "reading a clean page leaves it clean");
    check_equal(wrong_again, 0, "after a TLBI the next write counts again");
    check_equal(wrong_protected, 0, "a page just protected is not made dirty");
    check_equal(kept, 0, "a page taken away by the rules faults everywhere");
    finish("liberty_dbm");
}
