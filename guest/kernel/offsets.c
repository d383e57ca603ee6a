/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pins the offsets that boot/ (assembly) uses to the C structures. */
#include "boot/offsets.h"
#include "kernel/percpu.h"
#include "kernel/task.h"
#include "mm/flush_opts.h"

_Static_assert(KSTACK_SIZE == KSTACK_SIZE_ASM, "stack size");
_Static_assert(offsetof(struct cpu, boot_stack_top) == CPU_BOOT_STACK_TOP,
               "struct cpu");
_Static_assert(offsetof(struct pt_regs, x[30]) == REGS_X30, "struct pt_regs");
_Static_assert(offsetof(struct pt_regs, sp) == REGS_SP, "struct pt_regs");
_Static_assert(offsetof(struct pt_regs, pc) == REGS_PC, "struct pt_regs");
_Static_assert(offsetof(struct pt_regs, pstate) == REGS_PSTATE,
               "struct pt_regs");
_Static_assert(sizeof(struct pt_regs) == REGS_SIZE, "struct pt_regs");
_Static_assert(REGS_SIZE % 16 == 0, "the stack stays aligned");
_Static_assert(offsetof(struct task, ctx) == 0, "struct task");
_Static_assert(offsetof(struct cpu_context, fp) == TASK_CTX_FP,
               "struct cpu_context");
_Static_assert(offsetof(struct cpu_context, sp) == TASK_CTX_SP,
               "struct cpu_context");
_Static_assert(offsetof(struct fp_state, fpsr) == TASK_FP_FPSR,
               "struct fp_state");
_Static_assert(offsetof(struct flush_opts, kpti) == 0, "struct flush_opts");
