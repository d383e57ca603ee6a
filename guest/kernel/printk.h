/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel messages on the console. Any context, any CPU. */
#ifndef KERNEL_PRINTK_H
#define KERNEL_PRINTK_H

#include "kernel/types.h"

void printk(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* From panic(): print although another CPU may hold the console for ever. */
void printk_force_unlock(void);

#endif
