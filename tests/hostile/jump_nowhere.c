/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumps to where no code is: unmapped, devices, holes in the physical map,
 * misaligned, the last word of the address space; MMU on and off.
 */
#include "guest.h"

static const uint64_t targets[] = {
    0,
    4,
    BOARD_UART_BASE,
    BOARD_GICD_BASE + 0xffc,
    BOARD_GICR_BASE,
    0x0bfffffc,
    0x3ffffffc,
    0x7ffffffc,
    0x100000000ull,
    0x8000000000ull,
    0xffffffffffffull,
    0x1000000000000ull,
    0xfffffffffffffffcull,
    0xffff000000000000ull,
    0x8000000000000000ull,
    0x40200001ull,
};

static void jump(uint64_t a)
{
    ((void (*)(void))a)();
}

static void all(const char *text)
{
    unsigned faults = 0;
    struct trap t;

    for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        faults += (unsigned)probe(jump, targets[i], &t);
    }
    print("INFO: %s: %u of %u faulted\n", text, (uint64_t)faults,
          (uint64_t)(sizeof(targets) / sizeof(targets[0])));
}

int main(void)
{
    all("MMU on");
    write_sysreg(sctlr_el1, read_sysreg(sctlr_el1) & ~1ull);
    isb();
    all("MMU off");
    finish("jump_nowhere");
}
