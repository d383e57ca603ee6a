/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PSCI: versions and features, CPU_ON with its errors, CPU_OFF and back on. */
#include "guest.h"

#define SUCCESS 0
#define NOT_SUPPORTED (-1)
#define INVALID_PARAMETERS (-2)
#define ALREADY_ON (-4)

static uint32_t visits, leave;

static int64_t call(uint32_t fn, uint64_t a, uint64_t b, uint64_t c)
{
    return (int32_t)hvc(fn, a, b, c);
}

static void stay(unsigned cpu)
{
    (void)cpu;
    __atomic_fetch_add(&visits, 1, __ATOMIC_ACQ_REL);
    wait_for(&leave, 1);
    hvc(PSCI_CPU_OFF, 0, 0, 0);
}

static int64_t state(unsigned cpu)
{
    return call(PSCI_AFFINITY_INFO64, cpu_mpidr(cpu), 0, 0);
}

static void wait_off(unsigned cpu)
{
    while (state(cpu) != 1) {
        __asm__ volatile("yield");
    }
}

int main(void)
{
    int64_t version = call(PSCI_VERSION, 0, 0, 0);
    unsigned n = cpu_count();

    print("INFO: PSCI %u.%u, %u CPUs\n", (uint64_t)version >> 16,
          (uint64_t)version & 0xffff, (uint64_t)n);
    check(version >= 0x10000, "PSCI 1.0 or later");
    check_equal(call(PSCI_FEATURES, PSCI_CPU_ON64, 0, 0), SUCCESS,
                "PSCI_FEATURES knows CPU_ON");
    check_equal(call(PSCI_FEATURES, PSCI_SYSTEM_OFF, 0, 0), SUCCESS,
                "PSCI_FEATURES knows SYSTEM_OFF");
    check_equal(call(PSCI_FEATURES, 0x8400ffff, 0, 0), NOT_SUPPORTED,
                "PSCI_FEATURES does not know nonsense");
    check_equal(call(0x8400ffff, 0, 0, 0), NOT_SUPPORTED,
                "a function nobody has is not supported");
    check_equal(call(PSCI_MIGRATE_INFO_TYPE, 0, 0, 0), 2,
                "no trusted OS to migrate");

    check_equal(state(0), 0, "CPU 0 is on");
    check_equal(call(PSCI_AFFINITY_INFO64, 0xff0000, 0, 0), INVALID_PARAMETERS,
                "AFFINITY_INFO of a CPU that is not there");
    check_equal(call(PSCI_CPU_ON64, cpus[0].mpidr & 0xffffff,
                     (uint64_t)BOARD_RAM_BASE, 0),
                ALREADY_ON, "CPU_ON of the running CPU");
    check_equal(call(PSCI_CPU_ON64, 0xff0000, (uint64_t)BOARD_RAM_BASE, 0),
                INVALID_PARAMETERS, "CPU_ON of a CPU that is not there");

    if (n > 1) {
        check_equal(state(1), 1, "CPU 1 is off at first");
        check_equal(cpu_start(1, stay), SUCCESS, "CPU_ON of CPU 1");
        wait_for(&visits, 1);
        check_equal(state(1), 0, "CPU 1 is on then");
        check_equal(cpu_start(1, stay), ALREADY_ON, "CPU_ON again");
        store_release(&leave, 1);
        wait_off(1);
        check(true, "CPU_OFF: CPU 1 went off");
        check_equal(cpu_start(1, stay), SUCCESS, "CPU_ON a second time");
        wait_for(&visits, 2);
        wait_off(1);
        check(true, "CPU 1 came and went off again");
    }
    finish("psci");
}
