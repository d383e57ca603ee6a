/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential PSCI test: random calls by random CPUs. Each case is a table
 * of OPS operations for the words seed, first, tables and verbose (see
 * mmu_main.c); it begins and ends with CPU 0 on and the others off.
 *
 * Who has the turn draws an operation, performs it, asks for the state of every
 * CPU and hands the turn to a CPU that is on.
 *
 * What is seen does not depend on who is how fast: whoever starts or stops a
 * CPU waits until it has.
 */
#include "psci_diff.h"

#define OPS 100
#define OPERATIONS_MAX 32

static const char *const outcome_names[] = {
    "value",   "SUCCESS", "NOT_SUPPORTED", "INVALID_PARAMETERS", "ALREADY_ON",
    "refused", "off",     "woken",         "exception",          "other",
};
#define OUTCOMES (sizeof(outcome_names) / sizeof(outcome_names[0]))

static unsigned outcome_of(int64_t gave)
{
    switch (gave) {
    case 0:
        return 1;
    case -1:
        return 2;
    case -2:
        return 3;
    case -4:
        return 4;
    case GAVE_REFUSED:
        return 5;
    case GAVE_OFF:
        return 6;
    case GAVE_WOKEN:
        return 7;
    case GAVE_EXCEPTION:
        return 8;
    default:
        return gave > 0 ? 0 : 9;
    }
}

static uint64_t seed, first, count, verbose;
static uint64_t counts[OPERATIONS_MAX][OUTCOMES];

static unsigned random_operation(void)
{
    unsigned sum = 0, at, i = 0;

    for (unsigned k = 0; operations[k].name; k++) {
        sum += operations[k].weight;
    }
    for (at = rng_below(&now_at.rng, sum); at >= operations[i].weight; i++) {
        at -= operations[i].weight;
    }
    return i;
}

static void one(unsigned cpu)
{
    unsigned which = random_operation();
    int64_t gave;

    note("op %u CPU %u", now_at.number, cpu, 0);
    if (now_at.talks) {
        print(" %s", operations[which].name);
    }
    gave = operations[which].run(cpu);
    note(": %x states", (uint64_t)gave, 0, 0);
    mix(&now_at.hash, (uint64_t)gave);
    counts[which][outcome_of(gave)]++;
    for (unsigned i = 0; i < now_at.cpus; i++) {
        uint64_t state = (uint64_t)(int64_t)state_of(i);

        note(" %x", state, 0, 0);
        mix(&now_at.hash, state);
    }
    note("\n", 0, 0, 0);
}

static void end_program(void)
{
    for (unsigned i = 0; operations[i].name; i++) {
        for (unsigned k = 0; k < OUTCOMES; k++) {
            if (counts[i][k]) {
                print("count %s %s %u\n", operations[i].name, outcome_names[k],
                      counts[i][k]);
            }
        }
    }
    print("end: %u tables, %u operations\n", count, count * OPS);
    system_off();
}

/* CPU 0 on and the others off, and the next table. True: it has the turn. */
static bool end_table(unsigned cpu)
{
    if (cpu != 0) {
        if (!is_on[0]) {
            before_on(0);
            if (hvc(PSCI_CPU_ON64, cpu_mpidr(0), entry_at(0), 0) != 0) {
                wrong("can not be started", 0);
            }
            arrived(0, true, 0, 0);
            note("\n", 0, 0, 0);
        }
        store_release(&turn, 0);
        return false;
    }
    for (unsigned i = 1; i < now_at.cpus; i++) {
        if (is_on[i]) {
            give_order(i, ORDER_OFF);
            await_off(i);
        }
    }
    print("table %u ops %u hash %x\n", now_at.table, (uint64_t)OPS,
          now_at.hash);
    now_at.table++;
    now_at.number = 0;
    return true;
}

void step(unsigned cpu)
{
    if (now_at.leaver != NOBODY) {
        await_off(now_at.leaver);
        now_at.leaver = NOBODY;
    }
    if (now_at.number == OPS && !end_table(cpu)) {
        return;
    }
    if (now_at.number == 0) {
        if (now_at.table == first + count) {
            end_program();
        }
        rng_start(&now_at.rng, seed, now_at.table);
        now_at.hash = now_at.cpus;
        now_at.talks = now_at.table == verbose;
    }
    one(cpu);
    now_at.number++;
    store_release(&turn, random_on(now_at.leaver));
}

int main(void)
{
    const char *words = words_get();

    seed = words_number(words, "seed", 1);
    first = words_number(words, "first", 0);
    count = words_number(words, "tables", 200);
    verbose = words_number(words, "verbose", ~0ull);
    now_at.table = first;
    now_at.cpus = cpu_count();
    if (now_at.cpus > CPUS_MAX) {
        now_at.cpus = CPUS_MAX;
    }
    print("psci_diff seed %u first %u tables %u conduit %s\n", seed, first,
          count, words_property("method"));
    gic_init_dist();
    for (unsigned i = 0; i < now_at.cpus; i++) {
        before_on(i);
    }
    is_on[0] = true;
    live(0);
}
