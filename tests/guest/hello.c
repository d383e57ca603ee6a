/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The least a machine must do: run with the MMU off, print, find its device
 * tree, turn the MMU on, count CPUs and switch off.
 */
#include "guest.h"

#define FDT_MAGIC_LE 0xedfe0dd0u /* 0xd00dfeed, stored big-endian */

void early_main(void);

void early_main(void)
{
    print("hello with the MMU off\n");
}

/* QEMU passes the device tree of an ELF file at the start of RAM, not in x0. */
static bool has_device_tree(void)
{
    uint64_t a = boot_x0 ? boot_x0 : BOARD_RAM_BASE;

    return mmio_read32(a) == FDT_MAGIC_LE;
}

int main(void)
{
    print("hello with the MMU on\n");
    check_equal(read_sysreg(currentel), 1 << 2, "runs at EL1");
    check(has_device_tree(), "a device tree is where it should be");
    check_equal(cpus[0].mpidr & BOARD_MPIDR_AFFINITY_MASK, 0,
                "CPU 0 has affinity 0");
    check(cpu_count() >= 1, "PSCI knows at least one CPU");
    print("INFO: %u CPUs, x0 %s\n", (uint64_t)cpu_count(),
          boot_x0 ? "holds the device tree" : "is zero");
    finish("hello");
}
