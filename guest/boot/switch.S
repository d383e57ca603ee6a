/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Switching stacks, FP registers, and the first steps of a new task. */
#include "boot/offsets.h"

    .text
/*
 * void cpu_switch_to(struct task *prev, struct task *next)
 *
 * Called with interrupts masked and the run queue locked; returns on next's
 * stack. The DSB ISH completes the TLBIs that prev issued here and has not
 * waited for: prev may go on on another CPU, whose own DSB would complete
 * nothing of them. cpu_switch_to_no_dsb() leaves it out: a planted bug.
 */
    .macro SWITCH dsb
    mov x9, sp
    stp x19, x20, [x0, #0]
    stp x21, x22, [x0, #16]
    stp x23, x24, [x0, #32]
    stp x25, x26, [x0, #48]
    stp x27, x28, [x0, #64]
    stp x29, x30, [x0, #TASK_CTX_FP]
    str x9, [x0, #TASK_CTX_SP]
    .if \dsb
    dsb ish
    .endif
    ldp x19, x20, [x1, #0]
    ldp x21, x22, [x1, #16]
    ldp x23, x24, [x1, #32]
    ldp x25, x26, [x1, #48]
    ldp x27, x28, [x1, #64]
    ldp x29, x30, [x1, #TASK_CTX_FP]
    ldr x9, [x1, #TASK_CTX_SP]
    mov sp, x9
    ret
    .endm

    .globl cpu_switch_to
cpu_switch_to:
    SWITCH 1

    .globl cpu_switch_to_no_dsb
cpu_switch_to_no_dsb:
    SWITCH 0

/* First return of cpu_switch_to() in a new user task. */
    .globl task_first_user
task_first_user:
    bl sched_finish_first_switch
    /* Masked from the last look at what is due to ERET: see vectors.S. */
    msr daifset, #2
    bl trap_before_user
    ldr x0, =flush_opts         /* its first member: kpti */
    ldrb w0, [x0]
    cbnz w0, return_to_user_kpti
    b return_to_user
    .ltorg

/* First return of cpu_switch_to() in a new kernel thread. */
    .globl task_first_kernel
task_first_kernel:
    bl sched_finish_first_switch
    bl kthread_main
    b .

/* void fp_save(struct fp_state *), void fp_load(const struct fp_state *) */
    .globl fp_save
fp_save:
    stp q0, q1, [x0, #0]
    stp q2, q3, [x0, #32]
    stp q4, q5, [x0, #64]
    stp q6, q7, [x0, #96]
    stp q8, q9, [x0, #128]
    stp q10, q11, [x0, #160]
    stp q12, q13, [x0, #192]
    stp q14, q15, [x0, #224]
    stp q16, q17, [x0, #256]
    stp q18, q19, [x0, #288]
    stp q20, q21, [x0, #320]
    stp q22, q23, [x0, #352]
    stp q24, q25, [x0, #384]
    stp q26, q27, [x0, #416]
    stp q28, q29, [x0, #448]
    stp q30, q31, [x0, #480]
    mrs x1, fpsr
    mrs x2, fpcr
    add x0, x0, #TASK_FP_FPSR
    stp x1, x2, [x0]
    ret

    .globl fp_load
fp_load:
    ldp q0, q1, [x0, #0]
    ldp q2, q3, [x0, #32]
    ldp q4, q5, [x0, #64]
    ldp q6, q7, [x0, #96]
    ldp q8, q9, [x0, #128]
    ldp q10, q11, [x0, #160]
    ldp q12, q13, [x0, #192]
    ldp q14, q15, [x0, #224]
    ldp q16, q17, [x0, #256]
    ldp q18, q19, [x0, #288]
    ldp q20, q21, [x0, #320]
    ldp q22, q23, [x0, #352]
    ldp q24, q25, [x0, #384]
    ldp q26, q27, [x0, #416]
    ldp q28, q29, [x0, #448]
    ldp q30, q31, [x0, #480]
    add x0, x0, #TASK_FP_FPSR
    ldp x1, x2, [x0]
    msr fpsr, x1
    msr fpcr, x2
    ret
