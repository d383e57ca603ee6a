/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exception vectors. Entry saves struct pt_regs on the kernel stack and calls
 * kernel/trap.c with x0 = the registers. The task's user registers are always
 * at the very top of its stack: EL0 entries find SP there, because the way out
 * to EL0 pops the last thing on the stack.
 *
 * vectors_kpti: EL0 runs with the odd twin of the kernel's ASID, so that it
 * finds nothing that was cached for the kernel's view. Entry and exit change
 * TTBR0_EL1; the kernel in between reaches user memory by the linear map only.
 */
#include "boot/offsets.h"

    .macro SAVE_REGS el
    sub sp, sp, #REGS_SIZE
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x9, [sp, #64]
    stp x10, x11, [sp, #80]
    stp x12, x13, [sp, #96]
    stp x14, x15, [sp, #112]
    stp x16, x17, [sp, #128]
    stp x18, x19, [sp, #144]
    stp x20, x21, [sp, #160]
    stp x22, x23, [sp, #176]
    stp x24, x25, [sp, #192]
    stp x26, x27, [sp, #208]
    stp x28, x29, [sp, #224]
    .if \el == 0
    mrs x21, sp_el0
    mov x29, xzr
    .else
    add x21, sp, #REGS_SIZE
    .endif
    mrs x22, elr_el1
    mrs x23, spsr_el1
    stp x30, x21, [sp, #REGS_X30]
    stp x22, x23, [sp, #REGS_PC]
    mov x0, sp
    .endm

    .macro RESTORE_REGS el
    ldp x22, x23, [sp, #REGS_PC]
    ldp x30, x21, [sp, #REGS_X30]
    .if \el == 0
    msr sp_el0, x21
    .endif
    msr elr_el1, x22
    msr spsr_el1, x23
    ldp x0, x1, [sp, #0]
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldp x8, x9, [sp, #64]
    ldp x10, x11, [sp, #80]
    ldp x12, x13, [sp, #96]
    ldp x14, x15, [sp, #112]
    ldp x16, x17, [sp, #128]
    ldp x18, x19, [sp, #144]
    ldp x20, x21, [sp, #160]
    ldp x22, x23, [sp, #176]
    ldp x24, x25, [sp, #192]
    ldp x26, x27, [sp, #208]
    ldp x28, x29, [sp, #224]
    add sp, sp, #REGS_SIZE
    eret
    .endm

    .macro VECTOR target
    .balign 128
    b \target
    .endm

#define USER_ASID_FLAG (1 << 48)

    /* Clobbers x1. */
    .macro KERNEL_ASID
    mrs x1, ttbr0_el1
    bic x1, x1, #USER_ASID_FLAG
    msr ttbr0_el1, x1
    isb
    .endm

    .macro USER_ASID
    mrs x1, ttbr0_el1
    orr x1, x1, #USER_ASID_FLAG
    msr ttbr0_el1, x1
    isb
    .endm

    .macro VECTORS sync, irq
    .balign 2048
    /* Current EL with SP_EL0: not used */
    VECTOR bad_0
    VECTOR bad_1
    VECTOR bad_2
    VECTOR bad_3
    /* Current EL with SP_EL1 */
    VECTOR kernel_sync
    VECTOR kernel_irq
    VECTOR bad_6
    VECTOR bad_7
    /* EL0, AArch64 */
    VECTOR \sync
    VECTOR \irq
    VECTOR bad_10
    VECTOR bad_11
    /* EL0, AArch32: not used */
    VECTOR bad_12
    VECTOR bad_13
    VECTOR bad_14
    VECTOR bad_15
    .endm

    .text
    .balign 2048
    .globl vectors
vectors:
    VECTORS user_sync, user_irq
    .balign 2048
    .globl vectors_kpti
vectors_kpti:
    VECTORS user_sync_kpti, user_irq_kpti

kernel_sync:
    SAVE_REGS 1
    bl trap_kernel_sync
    RESTORE_REGS 1

kernel_irq:
    SAVE_REGS 1
    bl trap_kernel_irq
    RESTORE_REGS 1

user_sync:
    SAVE_REGS 0
    bl trap_user_sync
    b return_to_user

user_irq:
    SAVE_REGS 0
    bl trap_user_irq
    /* fall through */

/*
 * SP points at the user registers, interrupts are masked, and nothing is left
 * to do for this task. New tasks start here too (boot/switch.S).
 */
    .globl return_to_user
return_to_user:
    RESTORE_REGS 0

user_sync_kpti:
    SAVE_REGS 0
    KERNEL_ASID
    bl trap_user_sync
    b return_to_user_kpti

user_irq_kpti:
    SAVE_REGS 0
    KERNEL_ASID
    bl trap_user_irq
    /* fall through */

    .globl return_to_user_kpti
return_to_user_kpti:
    USER_ASID
    RESTORE_REGS 0

    .macro BAD n
bad_\n:
    SAVE_REGS 1
    mov x1, #\n
    bl trap_bad_vector
    b .
    .endm

    BAD 0
    BAD 1
    BAD 2
    BAD 3
    BAD 6
    BAD 7
    BAD 10
    BAD 11
    BAD 12
    BAD 13
    BAD 14
    BAD 15
