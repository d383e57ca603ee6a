/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Layouts that assembly knows; kernel/offsets.c pins each to the C struct. */
#ifndef BOOT_OFFSETS_H
#define BOOT_OFFSETS_H

#define KSTACK_SIZE_ASM 0x4000

/* struct cpu */
#define CPU_BOOT_STACK_TOP 16

/* struct pt_regs */
#define REGS_X30 240
#define REGS_SP 248
#define REGS_PC 256
#define REGS_PSTATE 264
#define REGS_SIZE 272

/* struct task */
#define TASK_CTX_FP 80
#define TASK_CTX_SP 96
#define TASK_FP_FPSR 512

#endif
