/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end: print where, why, values and the exception registers, tell the
 * annotation device, stop the other CPUs, power off.
 */
#ifndef KERNEL_PANIC_H
#define KERNEL_PANIC_H

#include "kernel/types.h"

/* Codes written to the annotation device's PANIC register. */
enum panic_code {
    PANIC_BUG = 1,     /* panic() and ASSERT() */
    PANIC_FAULT = 2,   /* an exception the kernel may not take */
    PANIC_NO_INIT = 3, /* init could not be started */
};

struct pt_regs;

void panic_at(const char *file, int line, const char *fmt, ...)
    PRINTF_LIKE(3, 4) NORETURN;
void panic_fault(const struct pt_regs *regs, const char *what, uint64_t esr,
                 uint64_t far) NORETURN;
void panic_no_init(const char *path, int error) NORETURN;

#define panic(...) panic_at(__FILE__, __LINE__, __VA_ARGS__)
#define ASSERT(cond)                                                           \
    do {                                                                       \
        if (unlikely(!(cond))) {                                               \
            panic("assertion failed: %s", #cond);                              \
        }                                                                      \
    } while (0)
/* With the values that make the message useful. */
#define ASSERT_MSG(cond, ...)                                                  \
    do {                                                                       \
        if (unlikely(!(cond))) {                                               \
            panic(__VA_ARGS__);                                                \
        }                                                                      \
    } while (0)

#endif
