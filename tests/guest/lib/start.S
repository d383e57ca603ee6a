/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entry of the test programs (EL1, MMU off, x0 = device tree or 0), entry of
 * secondary CPUs (x0 = their struct cpu), exception vectors, and the two
 * primitives that C cannot express: probe() and el0_enter().
 * Offsets CPU_* and FRAME_* are asserted against the structs in trap.c.
 */
#include "asm.inc"

#define CPU_STACK 0
#define CPU_PROBE_SP 8
#define CPU_PROBE_TRAP 16

#define FRAME_SIZE 304
#define FRAME_ELR 248
#define FRAME_SPSR 256
#define FRAME_ESR 264
#define FRAME_FAR 272
#define FRAME_SP_EL0 280
#define FRAME_VECTOR 288

    .section .head, "ax"
    .global _head
_head:
    b _start
    .long 0
    .quad 0x200000                      /* text_offset */
    .quad __image_size                  /* image_size, bss included */
    .quad 0xa                           /* little-endian, 4 KiB, anywhere */
    .quad 0
    .quad 0
    .quad 0
    .ascii "ARM\x64"
    .long 0

    .text
    .global _start
_start:
    msr daifset, #15
    mov x19, x0
    adrp x1, __bss_start
    add x1, x1, :lo12:__bss_start
    adrp x2, __bss_end
    add x2, x2, :lo12:__bss_end
1:  cmp x1, x2
    b.hs 2f
    stp xzr, xzr, [x1], #16
    b 1b
2:  adrp x0, cpus
    add x0, x0, :lo12:cpus
    msr tpidr_el1, x0
    adrp x1, stacks
    add x1, x1, :lo12:stacks
    add x1, x1, #0x4000                 /* STACK_SIZE */
    str x1, [x0, #CPU_STACK]
    msr spsel, #1
    mov sp, x1
    adrp x1, vectors
    add x1, x1, :lo12:vectors
    msr vbar_el1, x1
    mov x1, #(3 << 20)
    msr cpacr_el1, x1
    isb
    mov x0, x19
    bl guest_start
    b .

    .global secondary_entry
secondary_entry:
    msr daifset, #15
    msr spsel, #1
    msr tpidr_el1, x0
    mov x19, x0
    ldr x1, [x0, #CPU_STACK]
    mov sp, x1
    adrp x1, vectors
    add x1, x1, :lo12:vectors
    msr vbar_el1, x1
    mov x1, #(3 << 20)
    msr cpacr_el1, x1
    isb
    bl mmu_enable
    mov x0, x19
    bl secondary_start
    b .

/* uint64_t probe(void (*fn)(uint64_t), uint64_t arg, struct trap *out) */
    .global probe
probe:
    save_callee
    mrs x9, tpidr_el1
    mov x10, sp
    str x10, [x9, #CPU_PROBE_SP]
    str x2, [x9, #CPU_PROBE_TRAP]
    mov x8, x0
    mov x0, x1
    blr x8
    mrs x9, tpidr_el1
    str xzr, [x9, #CPU_PROBE_TRAP]
    mov x0, #0
3:  restore_callee
    ret

/* trap_entry() returns here after an exception inside probe() */
    .global probe_resume
probe_resume:
    mrs x9, tpidr_el1
    ldr x10, [x9, #CPU_PROBE_SP]
    mov sp, x10
    str xzr, [x9, #CPU_PROBE_TRAP]
    mov x0, #1
    b 3b

/* void el0_enter(uint64_t struct el0_start *): pc, sp, x0, spsr */
    .global el0_enter
el0_enter:
    ldp x1, x2, [x0]
    ldp x3, x4, [x0, #16]
    msr elr_el1, x1
    msr sp_el0, x2
    msr spsr_el1, x4
    mov x0, x3
    eret

    .macro vector number
    sub sp, sp, #FRAME_SIZE
    stp x0, x1, [sp]
    mov x0, #\number
    b save_and_call
    .endm

    .global vectors
    vector_table vectors, vector

    .balign 128
save_and_call:
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
    mrs x1, elr_el1
    stp x30, x1, [sp, #240]
    mrs x1, spsr_el1
    mrs x2, esr_el1
    stp x1, x2, [sp, #FRAME_SPSR]
    mrs x1, far_el1
    mrs x2, sp_el0
    stp x1, x2, [sp, #FRAME_FAR]
    str x0, [sp, #FRAME_VECTOR]
    mov x0, sp
    bl trap_entry
    ldr x1, [sp, #FRAME_ELR]
    ldr x2, [sp, #FRAME_SPSR]
    msr elr_el1, x1
    msr spsr_el1, x2
    ldr x1, [sp, #FRAME_SP_EL0]
    msr sp_el0, x1
    ldr x30, [sp, #240]
    ldp x28, x29, [sp, #224]
    ldp x26, x27, [sp, #208]
    ldp x24, x25, [sp, #192]
    ldp x22, x23, [sp, #176]
    ldp x20, x21, [sp, #160]
    ldp x18, x19, [sp, #144]
    ldp x16, x17, [sp, #128]
    ldp x14, x15, [sp, #112]
    ldp x12, x13, [sp, #96]
    ldp x10, x11, [sp, #80]
    ldp x8, x9, [sp, #64]
    ldp x6, x7, [sp, #48]
    ldp x4, x5, [sp, #32]
    ldp x2, x3, [sp, #16]
    ldp x0, x1, [sp]
    add sp, sp, #FRAME_SIZE
    eret
