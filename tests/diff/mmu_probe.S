/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential MMU test, what C cannot express: to regime B and back, one
 * operation of each kind, and the vectors while in regime B.
 */
#include "asm.inc"
#include "mmu_diff.h"

#define ARMED 0x5d1ff
#define SPSR_EL0T_MASKED 0x3c0
#define UAO (1 << 23)

    .arch armv8.1-a
    .text

/*
 * void regime_call(struct call *call)
 *
 * Runs run_batch() in regime B. The registers cannot all change at once, and
 * between any two of them the next instruction must be mapped. So: go to the
 * alias in the half that is not home, change home's half, go home, change the
 * rest; and back in the opposite order. Memory is touched at identity addresses
 * before and afterwards, and at home in between, where *call and all that it
 * points to must be mapped.
 */
    .global regime_call
regime_call:
    save_callee
    mov x19, x0
    mov x29, sp
    ldp x20, x21, [x19, #CALL_B + REGS_TTBR0]
    ldp x22, x23, [x19, #CALL_B + REGS_TCR]
    ldr x24, [x19, #CALL_B + REGS_SCTLR]
    ldp x25, x26, [x19, #CALL_TCR_IN]
    ldp x27, x8, [x19, #CALL_HOME]
    ldr x9, [x19, #CALL_HOME_HIGH]
    adr x10, 1f
    add x10, x10, x8
    br x10
1:  /* regime A, in transit */
    cbnz x9, 2f
    msr ttbr0_el1, x20
    b 3f
2:  msr ttbr1_el1, x21
3:  msr tcr_el1, x25
    isb
    tlbi vmalle1
    dsb nsh
    isb
    sub x10, x27, x8
    adr x11, 4f
    add x10, x10, x11
    br x10
4:  /* at home; the other half becomes B's */
    msr ttbr0_el1, x20
    msr ttbr1_el1, x21
    msr tcr_el1, x22
    msr mair_el1, x23
    msr sctlr_el1, x24
    mrs x28, vbar_el1
    adr x10, diff_vectors
    msr vbar_el1, x10
    isb
    tlbi vmalle1
    dsb nsh
    isb
    add x19, x19, x27
    ldr x10, [x19, #CALL_STACK]
    add sp, x10, x27
    stp x29, x28, [sp, #-48]!
    stp x26, x8, [sp, #16]
    str x9, [sp, #32]
    ldr x0, [x19, #CALL_BATCH]
    add x0, x0, x27
    bl run_batch
    ldp x29, x28, [sp]
    ldp x26, x8, [sp, #16]
    ldr x9, [sp, #32]
    msr vbar_el1, x28
    ldp x20, x21, [x19, #CALL_A + REGS_TTBR0]
    ldp x22, x23, [x19, #CALL_A + REGS_TCR]
    ldr x24, [x19, #CALL_A + REGS_SCTLR]
    msr sctlr_el1, x24
    msr mair_el1, x23
    cbnz x9, 5f
    msr ttbr1_el1, x21
    b 6f
5:  msr ttbr0_el1, x20
6:  msr tcr_el1, x26
    isb
    tlbi vmalle1
    dsb nsh
    isb
    sub x10, x8, x27
    adr x11, 7f
    add x10, x10, x11
    br x10
7:  /* in transit again */
    msr ttbr0_el1, x20
    msr ttbr1_el1, x21
    msr tcr_el1, x22
    isb
    tlbi vmalle1
    dsb nsh
    isb
    adr x11, 8f
    sub x10, x11, x8
    br x10
8:  mov sp, x29
    restore_callee
    ret

/* void probe_op(struct op *op): performs it and records what came of it. */
    .global probe_op
probe_op:
    save_callee
    mov x19, x0
    mov x28, #(ARMED & 0xffff)
    movk x28, #(ARMED >> 16), lsl #16
    ldp x0, x2, [x19, #OP_VA]
    ldp w1, w3, [x19, #OP_KIND]         /* and OP_PSTATE */
    mov x5, #0
    cmp w1, #KIND_EL0
    b.hs enter_el0
    adr x4, slots
    add x4, x4, x1, lsl #5
    tbz w3, #PSTATE_UAO_BIT, 1f
    mov x6, #UAO
    msr S3_0_C4_C2_4, x6
1:  tbz w3, #PSTATE_PAN_BIT, 2f
    msr pan, #1
2:  br x4

    .macro slot
    .balign 32
    .endm
    .balign 32
slots:
    at s1e1r, x0
    b read_par
    slot
    at s1e1w, x0
    b read_par
    slot
    at s1e0r, x0
    b read_par
    slot
    at s1e0w, x0
    b read_par
    slot
    sys #0, c7, c9, #0, x0              /* AT S1E1RP */
    b read_par
    slot
    sys #0, c7, c9, #1, x0              /* AT S1E1WP */
    b read_par
    slot                                /* KIND_LDR */
    ldr x5, [x0]
    b done
    slot
    ldrb w5, [x0]
    b done
    slot
    ldp x5, x6, [x0]
    eor x5, x5, x6, ror #17
    b done
    slot                                /* KIND_STR */
    str x2, [x0]
    b done
    slot
    stp x2, x2, [x0]
    b done
    slot                                /* KIND_LDTR */
    ldtr x5, [x0]
    b done
    slot
    sttr x2, [x0]
    b done
    slot                                /* KIND_LDADD */
    ldadd x2, x5, [x0]
    b done
    slot                                /* KIND_STLXR */
    ldaxr x5, [x0]
    stlxr w6, x2, [x0]
    b done
    slot
    dc zva, x0
    b done
    slot
    swp x2, x5, [x0]
    b done
    slot
    cas x5, x2, [x0]
    b done
    slot                                /* KIND_CROSS_LDR */
    ldr x5, [x0]
    b done
    slot
    str x2, [x0]
    b done
    slot                                /* KIND_BR */
    mov x16, x0
    br x16

read_par:
    isb
    mrs x5, par_el1
done:
    mov x6, #STATUS_DONE
    str x6, [x19, #OP_STATUS]
    str x5, [x19, #OP_READ]
leave:
    msr pan, #0
    msr S3_0_C4_C2_4, xzr               /* UAO */
    restore_callee
    ret

enter_el0:
    mov x4, #SPSR_EL0T_MASKED
    msr spsr_el1, x4
    mov x4, x0
    cmp w1, #KIND_EL0_EXEC
    b.eq 3f
    adrp x4, el0_stubs
    add x4, x4, :lo12:el0_stubs
    sub w1, w1, #KIND_EL0
    add x4, x4, x1, lsl #4
3:  msr elr_el1, x4
    isb
    eret

    .pushsection .user, "ax"
    .balign 16
el0_stubs:
    ldr x5, [x0]
    svc #0xffff
    .balign 16
    str x2, [x0]
    svc #0xffff
    .balign 16
    ldadd x2, x5, [x0]
    svc #0xffff
    .balign 16
    dc zva, x0
    svc #0xffff
    .popsection

    .macro diff_vector number
    mov x4, #\number
    b trapped
    .endm

    vector_table diff_vectors, diff_vector

trapped:
    mov x6, #(ARMED & 0xffff)
    movk x6, #(ARMED >> 16), lsl #16
    cmp x28, x6
    b.ne lost
    mrs x0, esr_el1
    mrs x1, far_el1
    stp x0, x1, [x19, #OP_ESR]
    mrs x0, elr_el1
    mrs x1, spsr_el1
    stp x0, x1, [x19, #OP_ELR]
    str x5, [x19, #OP_READ]
    lsl x4, x4, #8
    orr x4, x4, #STATUS_TRAP
    str x4, [x19, #OP_STATUS]
    b leave

/* An exception of the test's own code. Nothing is left to print with. */
lost:
    mov x0, #0x84000000                 /* PSCI SYSTEM_OFF */
    movk x0, #0x0008
    hvc #0
    b .
