/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential PSCI test: operations whose result is the same on every
 * machine that obeys PSCI. An operation that has nobody to work on does
 * another.
 */
#include "psci_diff.h"

#define SGI 5
#define GICR_ISPENDR0 0x10200
#define SPSR_EL0T_MASKED 0x3c0
#define EL0_STACK_TOP (window_va(WINDOW_USER_STACK) + 4096)

static uint64_t mpidr_of_nobody(void)
{
    uint64_t cpu = rng_below(&now_at.rng, now_at.cpus);

    switch (rng_below(&now_at.rng, 4)) {
    case 0:
        return cpu | BOARD_MPIDR_RES1; /* as MPIDR_EL1 reads */
    case 1:
        return cpu | 1ull << (24 + rng_below(&now_at.rng, 7));
    case 2:
        return now_at.cpus + rng_below(&now_at.rng, 256 - now_at.cpus);
    default:
        return cpu | (uint64_t)(1 + rng_below(&now_at.rng, 255))
                         << (rng_below(&now_at.rng, 2) ? 8 : 16);
    }
}

/* In the 64-bit form only: Aff3 and the bits above. */
static uint64_t mpidr_beyond(void)
{
    return rng_below(&now_at.rng, now_at.cpus) |
           1ull << (32 + rng_below(&now_at.rng, 32));
}

static int64_t op_version(unsigned cpu)
{
    (void)cpu;
    return ask(PSCI_VERSION, rng_next(&now_at.rng), rng_next(&now_at.rng),
               rng_next(&now_at.rng));
}

static int64_t op_features(unsigned cpu)
{
    (void)cpu;
    return ask(PSCI_FEATURES, known_function(&now_at.rng),
               rng_next(&now_at.rng), rng_next(&now_at.rng));
}

static int64_t op_features_unknown(unsigned cpu)
{
    (void)cpu;
    return ask(PSCI_FEATURES, unknown_function(&now_at.rng),
               rng_next(&now_at.rng), rng_next(&now_at.rng));
}

static int64_t op_unknown(unsigned cpu)
{
    (void)cpu;
    return ask(unknown_function(&now_at.rng), rng_next(&now_at.rng),
               rng_next(&now_at.rng), rng_next(&now_at.rng));
}

static int64_t op_migrate(unsigned cpu)
{
    (void)cpu;
    return ask(rng_one_in(&now_at.rng, 3)
                   ? FN(MIGRATE, rng_below(&now_at.rng, 2))
                   : PSCI_MIGRATE_INFO_TYPE,
               rng_below(&now_at.rng, 4), rng_next(&now_at.rng),
               rng_next(&now_at.rng));
}

/* A machine may have SMCCC_VERSION or not, but of a piece: FEATURES knows it,
 * it says 1.1 or later, ARCH_FEATURES knows both. */
static int64_t op_smccc(unsigned cpu)
{
    bool known = (int32_t)hvc(PSCI_FEATURES, SMCCC_VERSION, 0, 0) >= 0;
    int32_t version = (int32_t)hvc(SMCCC_VERSION, 0, 0, 0);
    int32_t itself =
        (int32_t)hvc(SMCCC_ARCH_FEATURES, SMCCC_ARCH_FEATURES, 0, 0);

    (void)cpu;
    if (!known) {
        return version < 0 && itself < 0 ? 0 : GAVE_TORN;
    }
    return version >= 0x10001 && itself >= 0 &&
                   (int32_t)hvc(SMCCC_ARCH_FEATURES, SMCCC_VERSION, 0, 0) >= 0
               ? 0
               : GAVE_TORN;
}

static int64_t op_on(unsigned cpu)
{
    bool wide = rng_below(&now_at.rng, 2);
    unsigned entry = rng_below(&now_at.rng, ENTRIES), target;
    uint64_t ctx = rng_next(&now_at.rng);
    int64_t code;

    if (how_many_on() == now_at.cpus) {
        return ask(FN(CPU_ON, wide), cpu_mpidr(cpu), entry_at(entry), ctx);
    }
    target = random_off();
    before_on(target);
    code = ask(FN(CPU_ON, wide), cpu_mpidr(target), entry_at(entry), ctx);
    if (code == 0) {
        arrived(target, wide, entry, ctx);
    }
    return code;
}

static int64_t op_on_again(unsigned cpu)
{
    (void)cpu;
    return ask(
        FN(CPU_ON, rng_below(&now_at.rng, 2)), cpu_mpidr(random_on(NOBODY)),
        entry_at(rng_below(&now_at.rng, ENTRIES)), rng_next(&now_at.rng));
}

static int64_t op_on_nobody(unsigned cpu)
{
    bool wide = rng_below(&now_at.rng, 2);

    (void)cpu;
    return ask(
        FN(CPU_ON, wide),
        wide && rng_below(&now_at.rng, 2) ? mpidr_beyond() : mpidr_of_nobody(),
        entry_at(rng_below(&now_at.rng, ENTRIES)), rng_next(&now_at.rng));
}

/* A misaligned entry. Which error it is depends on what is looked at first. */
static int64_t op_on_misaligned(unsigned cpu)
{
    unsigned target = rng_below(&now_at.rng, now_at.cpus);
    int64_t code =
        ask(FN(CPU_ON, rng_below(&now_at.rng, 2)),
            rng_one_in(&now_at.rng, 4) ? mpidr_of_nobody() : cpu_mpidr(target),
            entry_at(0) + 1 + rng_below(&now_at.rng, 3), rng_next(&now_at.rng));

    (void)cpu;
    return code == -2 || code == -9 || code == -4 ? GAVE_REFUSED : code;
}

static int64_t op_info(unsigned cpu)
{
    (void)cpu;
    return ask(FN(AFFINITY_INFO, rng_below(&now_at.rng, 2)),
               cpu_mpidr(rng_below(&now_at.rng, now_at.cpus)), 0,
               rng_next(&now_at.rng));
}

static int64_t op_info_nobody(unsigned cpu)
{
    bool wide = rng_below(&now_at.rng, 2);

    (void)cpu;
    return ask(FN(AFFINITY_INFO, wide),
               wide && rng_below(&now_at.rng, 2) ? mpidr_beyond()
                                                 : mpidr_of_nobody(),
               0, rng_next(&now_at.rng));
}

/* The caller is in it, so it is on; fields below the level do not count. */
static int64_t op_info_level(unsigned cpu)
{
    unsigned level = 1 + rng_below(&now_at.rng, 3);

    (void)cpu;
    return ask(FN(AFFINITY_INFO, rng_below(&now_at.rng, 2)),
               rng_next(&now_at.rng) & ((1u << 8 * level) - 1) & 0xffffff,
               level, rng_next(&now_at.rng));
}

/* Of another, or of itself, which gives the turn away first. */
int64_t op_off(unsigned cpu)
{
    unsigned target;

    if (how_many_on() == 1) {
        return op_on(cpu);
    }
    target = random_on(NOBODY);
    orders[target].arg[0] = rng_below(&now_at.rng, LEAVE_ALL);
    note(" CPU %u how %u", target, orders[target].arg[0], 0);
    give_order(target, ORDER_OFF);
    if (target == cpu) {
        now_at.leaver = cpu;
    } else {
        await_off(target);
    }
    return GAVE_OFF;
}

/* A CPU goes off, and is started at the first moment that it can be. */
static int64_t op_off_on(unsigned cpu)
{
    unsigned target, entry = rng_below(&now_at.rng, ENTRIES);
    bool wide = rng_below(&now_at.rng, 2);
    uint64_t ctx = rng_next(&now_at.rng), tries = 0;
    int32_t code;

    if (how_many_on() == 1) {
        return op_on(cpu);
    }
    target = random_on(cpu);
    orders[target].arg[0] = rng_below(&now_at.rng, LEAVE_ALL);
    give_order(target, ORDER_OFF);
    await(&orders[target].begun, 1, "does not go off", target);
    before_on(target);
    do {
        code = (int32_t)hvc(FN(CPU_ON, wide), cpu_mpidr(target),
                            entry_at(entry), ctx);
        __asm__ volatile("yield");
        if (++tries == 10000000) {
            wrong("can not be started", target);
        }
    } while (code == -4);
    if (code == 0) {
        arrived(target, wide, entry, ctx);
    }
    return code;
}

/* An interrupt must not start a CPU that is off. */
static int64_t op_sgi_off(unsigned cpu)
{
    unsigned target;

    if (how_many_on() == now_at.cpus) {
        return op_off(cpu);
    }
    target = random_off();
    gic_sgi(target, SGI);
    for (unsigned i = 0; i < 20; i++) {
        __asm__ volatile("yield");
    }
    return state_of(target);
}

/* State 0 with any ID: standby. Bits that mean nothing to PSCI are random. */
static uint64_t power_state(void)
{
    return rng_below(&now_at.rng, 0x10000) | rng_next(&now_at.rng) << 32;
}

static int64_t op_suspend_bad(unsigned cpu)
{
    /* Reserved: 31 to 26 and 23 to 17. */
    unsigned bit = rng_below(&now_at.rng, 13);

    (void)cpu;
    return ask(FN(CPU_SUSPEND, rng_below(&now_at.rng, 2)),
               power_state() | 1ull << (bit < 7 ? 17 + bit : 19 + bit),
               rng_next(&now_at.rng), rng_next(&now_at.rng));
}

static int64_t woken(uint64_t intid, const struct answer *a)
{
    note(" woken by %u, x0 %x", intid, a->x0, 0);
    note_changed(a);
    mix(&now_at.hash, intid);
    return a->x0 == 0 ? GAVE_WOKEN : (int64_t)(int32_t)a->x0;
}

/* The line goes down in finite time, not at once. */
static void timer_off(unsigned cpu)
{
    uint64_t pending = gicr_base(cpu) + GICR_ISPENDR0;

    write_sysreg(cntv_ctl_el0, 0);
    isb();
    while ((mmio_read32(pending) & 1u << BOARD_TIMER_VIRT_INTID) != 0 ||
           read_sysreg(isr_el1) != 0) {
        __asm__ volatile("yield");
    }
}

/* An interrupt is pending, or the timer brings one. */
static int64_t op_suspend(unsigned cpu)
{
    uint64_t arg[3] = {power_state(), rng_next(&now_at.rng),
                       rng_next(&now_at.rng)};
    bool wide = rng_below(&now_at.rng, 2), timer = rng_below(&now_at.rng, 2);
    struct answer a;
    uint64_t intid;

    if (timer) {
        gic_enable(BOARD_TIMER_VIRT_INTID);
        write_sysreg(cntv_cval_el0, now() + counter_hz() / 20000);
        write_sysreg(cntv_ctl_el0, 1);
        isb();
    } else {
        gic_sgi(cpu, rng_below(&now_at.rng, 16));
    }
    intid = suspend(arg, wide, arg[2], &a);
    if (timer) {
        timer_off(cpu);
    }
    return woken(intid, &a);
}

/* Another CPU sleeps: it counts as on, and wakes up of an SGI. */
static int64_t op_suspend_other(unsigned cpu)
{
    struct order *o;
    unsigned target;

    if (how_many_on() == 1) {
        return op_suspend(cpu);
    }
    target = random_on(cpu);
    o = &orders[target];
    o->arg[0] = power_state();
    o->arg[1] = rng_next(&now_at.rng);
    o->arg[2] = rng_next(&now_at.rng);
    o->wide = rng_below(&now_at.rng, 2);
    give_order(target, ORDER_SUSPEND);
    await(&o->begun, 1, "does not sleep", target);
    for (unsigned i = rng_below(&now_at.rng, 20); i; i--) {
        __asm__ volatile("yield");
    }
    mix(&now_at.hash, (uint64_t)state_of(target));
    mix(&now_at.hash, o->done);
    gic_sgi(target, rng_below(&now_at.rng, 16));
    await(&o->done, 1, "does not wake up", target);
    return woken(o->intid, &o->answer);
}

/* What is no PSCI call: the other conduit, and both of them at EL0. */
static int64_t op_no_call(unsigned cpu)
{
    struct el0_start start = {0, EL0_STACK_TOP, PSCI_VERSION, SPSR_EL0T_MASKED};
    uint64_t which = rng_below(&now_at.rng, 3);
    struct trap t = {0};
    uint64_t raised;

    (void)cpu;
    if (which == 0) {
        raised = probe(psci_smc, PSCI_VERSION, &t);
    } else {
        start.pc = user_alias(which == 1 ? psci_hvc_at_el0 : psci_smc_at_el0);
        raised = probe(el0_enter, (uint64_t)&start, &t);
        t.elr -= start.pc;
    }
    note(" %u: esr %x elr %x", which, t.esr, t.elr);
    mix(&now_at.hash, t.esr);
    mix(&now_at.hash, t.vector);
    mix(&now_at.hash, t.elr);
    return raised ? GAVE_EXCEPTION : 0;
}

const struct operation operations[] = {
    {"VERSION", op_version, 2},
    {"FEATURES", op_features, 8},
    {"FEATURES_unknown", op_features_unknown, 8},
    {"unknown", op_unknown, 10},
    {"MIGRATE", op_migrate, 3},
    {"SMCCC", op_smccc, 2},
    {"CPU_ON", op_on, 14},
    {"CPU_ON_again", op_on_again, 6},
    {"CPU_ON_nobody", op_on_nobody, 6},
    {"CPU_ON_misaligned", op_on_misaligned, 4},
    {"AFFINITY_INFO", op_info, 6},
    {"AFFINITY_INFO_nobody", op_info_nobody, 4},
    {"AFFINITY_INFO_level", op_info_level, 4},
    {"CPU_OFF", op_off, 12},
    {"CPU_OFF_and_ON", op_off_on, 6},
    {"SGI_while_off", op_sgi_off, 4},
    {"CPU_SUSPEND_bad", op_suspend_bad, 6},
    {"CPU_SUSPEND", op_suspend, 6},
    {"CPU_SUSPEND_other", op_suspend_other, 6},
    {"no_call", op_no_call, 4},
    {"CPU_ON_twice", op_on_twice, 8},
    {"CPU_ON_race", op_race, 8},
    {NULL, NULL, 0},
};
