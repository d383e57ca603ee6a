/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential PSCI test: CPUs that start one at the same time. Who wins is
 * left to chance, so what PSCI prescribes is checked here. (QEMU 7.2 does it
 * with one host thread only.)
 */
#include "psci_diff.h"

static void is_on_or_pending(int32_t code, unsigned cpu)
{
    if (code != -4 && code != -5) {
        wrong("started twice", cpu);
    }
}

int64_t op_on_twice(unsigned cpu)
{
    uint64_t ctx = rng_next(&now_at.rng);
    unsigned target;
    int32_t state;
    int64_t code;

    if (how_many_on() == now_at.cpus) {
        return op_off(cpu);
    }
    target = random_off();
    before_on(target);
    code = (int32_t)hvc(PSCI_CPU_ON64, cpu_mpidr(target), entry_at(0), ctx);
    is_on_or_pending(
        (int32_t)hvc(PSCI_CPU_ON64, cpu_mpidr(target), entry_at(1), ctx + 1),
        target);
    state = state_of(target);
    if (state != 0 && state != 2) {
        wrong("is off though it was started", target);
    }
    arrived(target, true, 0, ctx);
    if (records[target].x0 != ctx || records[target].entry != 0) {
        wrong("was started by one call, and as another said", target);
    }
    return code;
}

/* Several start one at the same time: one of them does. */
int64_t op_race(unsigned cpu)
{
    uint64_t ctx = rng_next(&now_at.rng);
    unsigned target, winner = NOBODY;

    if (how_many_on() == now_at.cpus) {
        return op_off(cpu);
    }
    target = random_off();
    before_on(target);
    for (unsigned i = 0; i < now_at.cpus; i++) {
        if (is_on[i] && i != cpu) {
            orders[i].arg[0] = cpu_mpidr(target);
            orders[i].arg[1] = ctx;
            give_order(i, ORDER_RACE);
            await(&orders[i].begun, 1, "does not race", i);
        }
    }
    for (unsigned i = 0; i < now_at.cpus; i++) {
        store_release(&orders[i].go, 1);
    }
    orders[cpu].answer.x0 =
        hvc(PSCI_CPU_ON64, cpu_mpidr(target), entry_at(cpu), ctx + cpu);
    for (unsigned i = 0; i < now_at.cpus; i++) {
        if (!is_on[i]) {
            continue;
        }
        if (i != cpu) {
            await(&orders[i].done, 1, "does not race", i);
        }
        if (orders[i].answer.x0 == 0) {
            if (winner != NOBODY) {
                wrong("was started by two", target);
            }
            winner = i;
        } else {
            is_on_or_pending((int32_t)orders[i].answer.x0, target);
        }
    }
    if (winner == NOBODY) {
        wrong("was started by nobody", target);
    }
    arrived(target, true, winner, ctx + winner);
    if (records[target].x0 != ctx + winner || records[target].entry != winner) {
        wrong("was started by one call, and as another said", target);
    }
    return 0;
}
