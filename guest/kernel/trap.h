/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What boot/vectors.S calls; x0 is struct pt_regs. Interrupts are masked. */
#ifndef KERNEL_TRAP_H
#define KERNEL_TRAP_H

#include "kernel/task.h"

void trap_user_sync(struct pt_regs *regs);
void trap_user_irq(struct pt_regs *regs);
void trap_kernel_sync(struct pt_regs *regs);
void trap_kernel_irq(struct pt_regs *regs);
void trap_bad_vector(struct pt_regs *regs, uint64_t vector);
/* Everything that must happen before user code runs (again). */
void trap_before_user(void);

/* syscall.c: interrupts on. */
void syscall_dispatch(struct pt_regs *regs);

#endif
