/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The console: bytes out under one lock, bytes in through a ring. */
#ifndef KERNEL_CONSOLE_H
#define KERNEL_CONSOLE_H

#include "kernel/types.h"

void console_init(void);
/* All bytes together, not mixed with other CPUs'. Any context. */
void console_write(const char *buf, size_t n);
/* Sleeps for at least one byte; 0 at end of input, -ERESTARTSYS. */
int64_t console_read(char *buf, size_t n);
/* How many bytes wait to be read, and the queue that is woken for them. */
unsigned console_waiting(void);
struct wait_queue;
struct wait_queue *console_input_queue(void);
/* From the UART's interrupt handler. */
void console_input(char c);
void console_force_unlock(void);

#endif
