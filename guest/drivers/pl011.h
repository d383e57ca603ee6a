/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PL011 UART (DDI 0183): polled output, interrupt-driven input. */
#ifndef DRIVERS_PL011_H
#define DRIVERS_PL011_H

#include "kernel/types.h"

void pl011_init(pa_t base);
void pl011_putc(char c);
void pl011_enable_rx(void);
void pl011_handle_irq(void);

#endif
