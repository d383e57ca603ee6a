/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device accesses of every size and form: PL011 identification registers by
 * byte, halfword and word; GIC priorities by byte, routing by 64 bits; with
 * and without write-back, signed, paired, through the zero register; with the
 * MMU on, through the window, and at its page's end.
 */
#include "guest.h"

#define PL011_IBRD (BOARD_UART_BASE + 0x024)
#define PL011_PERIPHID0 (BOARD_UART_BASE + 0xfe0)
#define PL011_PCELLID0 (BOARD_UART_BASE + 0xff0)
#define GICD_PIDR2 (BOARD_GICD_BASE + 0xffe8)
#define GICD_TYPER (BOARD_GICD_BASE + 0x0004)
#define GICD_IPRIORITYR(n) (BOARD_GICD_BASE + 0x0400 + (n))
#define GICD_IROUTER(n) (BOARD_GICD_BASE + 0x6000 + 8 * (n))
#define GICR_TYPER 0x0008
#define SPI 40
#define PAGE 3

static uint64_t id_by(unsigned form, uint64_t a)
{
    uint64_t v = 0, base = a;

    switch (form) {
    case 0:
        __asm__ volatile("ldrb %w0, [%1]" : "=r"(v) : "r"(a));
        break;
    case 1:
        __asm__ volatile("ldrh %w0, [%1]" : "=r"(v) : "r"(a));
        break;
    case 2:
        __asm__ volatile("ldr %w0, [%1]" : "=r"(v) : "r"(a));
        break;
    case 3:
        __asm__ volatile("ldr %w0, [%1], #4" : "=r"(v), "+r"(base));
        v |= (base - a - 4) << 32;
        break;
    case 4:
        base = a - 16;
        __asm__ volatile("ldr %w0, [%1, #16]!" : "=&r"(v), "+r"(base));
        v |= (base - a) << 32;
        break;
    case 5:
        __asm__ volatile("ldr %w0, [%1, %2, lsl #2]"
                         : "=r"(v)
                         : "r"(a - 64), "r"(16ull));
        break;
    case 6:
        __asm__ volatile("ldr %w0, [%1, %w2, sxtw]"
                         : "=r"(v)
                         : "r"(a + 8), "r"((uint64_t)(uint32_t)-8));
        break;
    case 7:
        __asm__ volatile("ldur %w0, [%1, #-4]" : "=r"(v) : "r"(a + 4));
        break;
    case 8:
        __asm__ volatile("ldar %w0, [%1]" : "=r"(v) : "r"(a));
        break;
    }
    return v;
}

static void uart(void)
{
    static const char *const text[] = {"LDRB",
                                       "LDRH",
                                       "LDR",
                                       "LDR, post-index",
                                       "LDR, pre-index",
                                       "LDR, shifted register",
                                       "LDR, extended register",
                                       "LDUR",
                                       "LDAR"};
    uint64_t v;

    print("# PL011\n");
    for (unsigned i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        check_equal(id_by(i, PL011_PERIPHID0), 0x11, text[i]);
    }
    check_equal(mmio_read32(PL011_PCELLID0 + 4), 0xf0, "PCellID1");
    check_equal(mmio_read32(PL011_PCELLID0 + 12), 0xb1,
                "PCellID3, the page's last word");
    __asm__ volatile("ldrsb %w0, [%1]" : "=r"(v) : "r"(PL011_PCELLID0 + 12));
    check_equal(v, 0xffffffb1, "LDRSB to 32 bits");
    __asm__ volatile("ldrsb %0, [%1]" : "=r"(v) : "r"(PL011_PCELLID0 + 12));
    check_equal(v, 0xffffffffffffffb1ull, "LDRSB to 64 bits");
    __asm__ volatile("ldrsw %0, [%1]" : "=r"(v) : "r"(PL011_PCELLID0 + 12));
    check_equal(v, 0xb1, "LDRSW");
    __asm__ volatile("ldr wzr, [%0]" ::"r"(PL011_PERIPHID0) : "memory");
    check(true, "LDR to the zero register");

    mmio_write32(PL011_IBRD, 0x1234);
    check_equal(mmio_read32(PL011_IBRD), 0x1234, "STR");
    __asm__ volatile("strh %w0, [%1]" ::"r"(0x2345), "r"(PL011_IBRD));
    check_equal(mmio_read32(PL011_IBRD), 0x2345, "STRH");
    __asm__ volatile("str wzr, [%0]" ::"r"(PL011_IBRD) : "memory");
    check_equal(mmio_read32(PL011_IBRD), 0, "STR of the zero register");
    __asm__ volatile("stlr %w0, [%1]" ::"r"(0x77), "r"(PL011_IBRD));
    check_equal(mmio_read32(PL011_IBRD), 0x77, "STLR");
}

static void gic(void)
{
    uint64_t a = GICD_IPRIORITYR(SPI), r = GICD_IROUTER(SPI), v, w;
    uint64_t typer = gicr_base(0) + GICR_TYPER;

    print("# GIC\n");
    gic_init_dist();
    check_equal(mmio_read32(GICD_PIDR2) >> 4 & 0xf, 3, "PIDR2 says GICv3");
    check(mmio_read32(GICD_TYPER) % 32 >= 1, "TYPER counts interrupt lines");

    mmio_write32(a, 0);
    *(volatile uint8_t *)(a + 2) = 0xc0;
    check_equal(mmio_read32(a), 0x00c00000, "one priority byte of four");
    check_equal(*(volatile uint8_t *)(a + 2), 0xc0, "and read as a byte");
    mmio_write32(a, 0x10203040);
    check_equal(*(volatile uint8_t *)(a + 3), 0x10, "four, read one by one");

    *(volatile uint64_t *)r = 0;
    check_equal(*(volatile uint64_t *)r, 0, "IROUTER, 64 bits, CPU 0");
    *(volatile uint64_t *)r = 1ull << 31;
    check_equal(*(volatile uint64_t *)r, 1ull << 31, "IROUTER, any CPU");
    check_equal(mmio_read32(r), 1u << 31, "IROUTER, its lower half");
    check_equal(mmio_read32(r + 4), 0, "IROUTER, its upper half");
    *(volatile uint64_t *)r = 0;

    v = *(volatile uint64_t *)typer;
    check_equal(v >> 32, 0, "GICR_TYPER: affinity 0");
    __asm__ volatile("ldp %w0, %w1, [%2]"
                     : "=&r"(v), "=&r"(w)
                     : "r"(typer));
    check_equal(w, 0, "LDP of both halves of GICR_TYPER");
}

int main(void)
{
    uart();
    gic();
    print("# through the window\n");
    window_map(PAGE, BOARD_UART_BASE,
               MAP_VALID | MAP_DEVICE | MAP_AF | MAP_PXN | MAP_UXN);
    check_equal(mmio_read32(window_va(PAGE) + 0xfe0), 0x11,
                "a device page mapped elsewhere");
    *(volatile uint32_t *)(window_va(PAGE) + 0x24) = 0x99;
    check_equal(mmio_read32(PL011_IBRD), 0x99, "and written there");
    finish("mmio");
}
