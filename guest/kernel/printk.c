/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel messages: format on the stack, then one console_write(). */
#include "kernel/printk.h"

#include "kernel/console.h"
#include "kernel/lib.h"

#define PRINTK_MAX 512

void printk(const char *fmt, ...)
{
    char text[PRINTK_MAX];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    console_write(text, min_u64((uint64_t)len, sizeof(text) - 1));
}

void printk_force_unlock(void)
{
    console_force_unlock();
}
