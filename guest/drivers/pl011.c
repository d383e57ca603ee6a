/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PL011 UART driver. Output under the console's lock; input in its handler. */
#include "drivers/pl011.h"

#include "abi/board.h"
#include "kernel/console.h"

/* DDI 0183, register summary */
enum pl011_reg {
    PL011_DR = 0x00,
    PL011_FR = 0x18,
    PL011_LCRH = 0x2c,
    PL011_CR = 0x30,
    PL011_IMSC = 0x38,
    PL011_ICR = 0x44,
};

#define PL011_FR_RXFE (1U << 4)
#define PL011_FR_TXFF (1U << 5)
#define PL011_LCRH_FEN (1U << 4)
#define PL011_LCRH_WLEN8 (3U << 5)
#define PL011_CR_UARTEN (1U << 0)
#define PL011_CR_TXE (1U << 8)
#define PL011_CR_RXE (1U << 9)
#define PL011_INT_RX (1U << 4)
#define PL011_INT_RT (1U << 6)

static volatile uint8_t *pl011_base =
    (volatile uint8_t *)(LINEAR_BASE + BOARD_UART_BASE);

static uint32_t pl011_read(enum pl011_reg reg)
{
    return *(volatile uint32_t *)(pl011_base + reg);
}

static void pl011_write(enum pl011_reg reg, uint32_t value)
{
    *(volatile uint32_t *)(pl011_base + reg) = value;
}

void pl011_init(pa_t base)
{
    pl011_base = (volatile uint8_t *)(LINEAR_BASE + base);
    pl011_write(PL011_IMSC, 0);
    pl011_write(PL011_LCRH, PL011_LCRH_WLEN8 | PL011_LCRH_FEN);
    pl011_write(PL011_CR, PL011_CR_UARTEN | PL011_CR_TXE | PL011_CR_RXE);
}

void pl011_putc(char c)
{
    while ((pl011_read(PL011_FR) & PL011_FR_TXFF) != 0) {
    }
    pl011_write(PL011_DR, (uint8_t)c);
}

void pl011_enable_rx(void)
{
    pl011_write(PL011_IMSC, PL011_INT_RX | PL011_INT_RT);
}

void pl011_handle_irq(void)
{
    while ((pl011_read(PL011_FR) & PL011_FR_RXFE) == 0) {
        console_input((char)pl011_read(PL011_DR));
    }
    pl011_write(PL011_ICR, PL011_INT_RX | PL011_INT_RT);
}
