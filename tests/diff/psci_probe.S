/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential PSCI test, what C cannot express: a call with every register
 * set, the end of a CPU's life, and where a new one begins.
 */
#include "asm.inc"
#include "psci_diff.h"

    .text

/*
 * void psci_registers(struct regs *regs)
 *
 * Loads x0 to x30 and the state behind them, calls, stores them again. Only SP
 * is sure to be what it was: the caller's frame is found by it.
 */
    .global psci_registers
psci_registers:
    save_callee 112
    mov x30, x0
    str x30, [sp, #96]
    add x9, x30, #REGS_STATE
    ldp x1, x2, [x9]
    msr nzcv, x1
    msr sp_el0, x2
    ldp x1, x2, [x9, #16]
    msr elr_el1, x1
    msr spsr_el1, x2
    ldp x1, x2, [x9, #32]
    msr esr_el1, x1
    msr far_el1, x2
    ldp x1, x2, [x9, #48]
    msr daif, x1
    msr tpidr_el0, x2
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18
    ldr x\n, [x30, #8 * \n]
    .endr
    .irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    ldr x\n, [x30, #8 * \n]
    .endr
    ldr x30, [x30, #240]
    hvc #0
    str x30, [sp, #104]
    ldr x30, [sp, #96]
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18
    str x\n, [x30, #8 * \n]
    .endr
    .irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    str x\n, [x30, #8 * \n]
    .endr
    ldr x0, [sp, #104]
    str x0, [x30, #240]
    add x9, x30, #REGS_STATE
    mrs x1, nzcv
    mrs x2, sp_el0
    stp x1, x2, [x9]
    mrs x1, elr_el1
    mrs x2, spsr_el1
    stp x1, x2, [x9, #16]
    mrs x1, esr_el1
    mrs x2, far_el1
    stp x1, x2, [x9, #32]
    mrs x1, daif
    mrs x2, tpidr_el0
    stp x1, x2, [x9, #48]
    msr daifset, #15
    restore_callee 112
    ret

/* void psci_leave(uint64_t how, uint64_t function, uint64_t sctlr, uint64_t *)
 * CPU_OFF; if that returns, what it returned is stored. */
    .global psci_leave
psci_leave:
    mov x19, x3
    tbz w0, #2, 1f                      /* LEAVE_MMU_OFF */
    msr sctlr_el1, x2
    isb
1:  tbz w0, #1, 2f                      /* LEAVE_SP_EL0 */
    msr spsel, #0
2:  tbz w0, #0, 3f                      /* LEAVE_UNMASKED */
    msr daifclr, #15
3:  mov x0, x1
    mov x1, #-1
    hvc #0
    str x0, [x19]
    b .

/* Entries of new CPUs. x1 is which one. */
    .balign 8
    .global psci_entries
psci_entries:
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    mov x1, #\n
    b entered
    .endr

entered:
    mrs x2, mpidr_el1
    and x4, x2, #0xff
    mov x5, #RECORD_SIZE
    adrp x3, records
    add x3, x3, :lo12:records
    madd x3, x4, x5, x3
    stp x0, x1, [x3, #RECORD_X0]
    mrs x0, CurrentEL
    mrs x1, daif
    stp x0, x1, [x3, #RECORD_EL]
    mrs x0, spsel
    mrs x1, sctlr_el1
    stp x0, x1, [x3, #RECORD_SPSEL]
    mrs x1, cntfrq_el0
    stp x2, x1, [x3, #RECORD_MPIDR]
    ldr x0, [x3, #RECORD_CPU]
    b secondary_entry

/* void psci_smc(uint64_t function): for probe(). */
    .global psci_smc
psci_smc:
    smc #0
    ret

    .pushsection .user, "ax"
    .balign 4
    .global psci_hvc_at_el0
psci_hvc_at_el0:
    hvc #0
    svc #0xffff
    .balign 4
    .global psci_smc_at_el0
psci_smc_at_el0:
    smc #0
    svc #0xffff
    .popsection
