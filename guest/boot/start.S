/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * First instructions of every CPU. The boot CPU arrives by the arm64 boot
 * protocol: MMU off, caches of the image cleaned, x0 = physical address of the
 * device tree. The others arrive by PSCI CPU_ON with x0 = their struct cpu.
 *
 * Boot page tables: TTBR0 maps the first GiB of RAM onto itself for the moment
 * when the MMU comes on; TTBR1 maps devices (first GiB) and the first GiB of
 * RAM. kernel/map.c extends and trims TTBR1 once it knows the memory.
 */
#include "abi/board.h"
#include "arch/pgtable.h"
#include "boot/offsets.h"

#define BOOT_BLOCK_RW 0x0060000000000701 /* AF, SH inner, normal, UXN, PXN */
#define BOOT_BLOCK_RX 0x0040000000000781 /* AF, SH inner, normal, RO, UXN */
#define BOOT_BLOCK_DEVICE 0x0060000000000409 /* AF, MT_DEVICE_NGNRE, XN */
#define BOOT_TABLE 3
#define RAM_L1_INDEX (BOARD_RAM_BASE >> 30)

    .section .head.text, "ax"
    .globl _start
_start:
    b boot_cpu_entry            /* code0 */
    .long 0                     /* code1 */
    .quad TEXT_OFFSET           /* text_offset */
    .quad _image_size           /* image_size */
    .quad 0x2                   /* flags: little endian, 4 KiB, fixed place */
    .quad 0, 0, 0
    .ascii "ARM\x64"
    .long 0

    .text
boot_cpu_entry:
    mov x20, x0                 /* device tree */
    mrs x1, CurrentEL
    cmp x1, #4
    b.ne boot_park              /* EL2 and EL3 belong to somebody else */

    /* Nothing in the loaded file stands for .bss. */
    adrp x0, _bss
    adrp x1, _ebss
1:  stp xzr, xzr, [x0], #16
    cmp x0, x1
    b.lo 1b

    /* Identity map: one 1 GiB block. */
    adrp x0, boot_idmap_l0
    adrp x1, boot_idmap_l1
    add x2, x1, #BOOT_TABLE
    str x2, [x0]
    ldr x2, =(BOARD_RAM_BASE + BOOT_BLOCK_RX)
    str x2, [x1, #RAM_L1_INDEX * 8]

    /* Linear map: devices as a block, RAM through a level-2 table. */
    adrp x0, kernel_l0
    adrp x1, kernel_l1
    add x2, x1, #BOOT_TABLE
    str x2, [x0]
    ldr x2, =BOOT_BLOCK_DEVICE
    str x2, [x1]
    adrp x0, kernel_ram_l2
    add x2, x0, #BOOT_TABLE
    str x2, [x1, #RAM_L1_INDEX * 8]
    ldr x2, =(BOARD_RAM_BASE + BOOT_BLOCK_RW)
    mov x3, #PT_ENTRIES
    mov x4, x0
1:  str x2, [x4], #8
    add x2, x2, #0x200000
    subs x3, x3, #1
    b.ne 1b
    /* The block of text and rodata: read-only, executable. */
    adrp x2, _text
    ubfx x3, x2, #21, #9
    ldr x4, =BOOT_BLOCK_RX
    add x2, x2, x4
    str x2, [x0, x3, lsl #3]

    /*
     * The tables were written with the MMU off, past the caches: drop what a
     * cache may hold of them from before. (.bss spans all of them; lines of
     * 64 bytes or more.)
     */
    dmb sy
    adrp x0, boot_tables
    add x1, x0, #BOOT_TABLES_SIZE
1:  dc ivac, x0
    add x0, x0, #64
    cmp x0, x1
    b.lo 1b
    dsb sy

    bl mmu_on
    ldr x0, =boot_cpu_high
    br x0

/* x0 = struct cpu, virtual address */
    .globl secondary_entry
secondary_entry:
    mov x20, x0
    mrs x1, CurrentEL
    cmp x1, #4
    b.ne boot_park
    bl mmu_on
    ldr x0, =secondary_high
    br x0

boot_park:
    wfe
    b boot_park

/* Clobbers x0..x5. Returns to the physical address, under the identity map. */
mmu_on:
    ldr x0, =MAIR_VALUE
    msr mair_el1, x0

    /* Physical size as implemented (48 bits at most); 16-bit ASIDs if any. */
    ldr x0, =(TCR_T0SZ_48 | TCR_IRGN0_WBWA | TCR_ORGN0_WBWA | TCR_SH0_INNER | \
              TCR_T1SZ_48 | TCR_IRGN1_WBWA | TCR_ORGN1_WBWA | TCR_SH1_INNER | \
              TCR_TG1_4K)
    mrs x1, id_aa64mmfr0_el1
    and x2, x1, #0xf            /* PARange */
    mov x3, #5
    cmp x2, x3
    csel x2, x2, x3, lo
    bfi x0, x2, #TCR_IPS_SHIFT, #3
    ubfx x2, x1, #4, #4         /* ASIDBits: 0 or 2 */
    lsr x2, x2, #1
    bfi x0, x2, #TCR_AS_16BIT_SHIFT, #1
    msr tcr_el1, x0

    adrp x0, boot_idmap_l0
    msr ttbr0_el1, x0
    adrp x0, kernel_l0
    msr ttbr1_el1, x0
    mov x0, #3 << 20            /* CPACR_EL1.FPEN: no traps */
    msr cpacr_el1, x0
    tlbi vmalle1
    dsb nsh
    ic iallu
    dsb nsh
    isb
    ldr x0, =(SCTLR_RES1 | SCTLR_M | SCTLR_C | SCTLR_SA | SCTLR_SA0 | \
              SCTLR_I | SCTLR_DZE | SCTLR_UCT | SCTLR_NTWI | SCTLR_NTWE | \
              SCTLR_SPAN | SCTLR_UCI)
    msr sctlr_el1, x0
    isb
    ret

boot_cpu_high:
    ldr x0, =vectors
    msr vbar_el1, x0
    msr spsel, #1
    ldr x0, =boot_stack + KSTACK_SIZE_ASM
    mov sp, x0
    ldr x0, =cpus
    msr tpidr_el1, x0
    mov x29, xzr
    mov x30, xzr
    isb
    mov x0, x20
    bl kernel_main
    b boot_park

secondary_high:
    ldr x0, =vectors
    msr vbar_el1, x0
    msr spsel, #1
    msr tpidr_el1, x20
    ldr x0, [x20, #CPU_BOOT_STACK_TOP]
    mov sp, x0
    mov x29, xzr
    mov x30, xzr
    isb
    mov x0, x20
    bl secondary_main
    b boot_park

    .ltorg

    .bss
    .balign 4096
    .globl boot_tables, kernel_l0, kernel_l1, kernel_ram_l2
    .globl kernel_tail_l2, boot_idmap_l0
boot_tables:
boot_idmap_l0:
    .skip 4096
boot_idmap_l1:
    .skip 4096
kernel_l0:
    .skip 4096
kernel_l1:
    .skip 4096
kernel_ram_l2:
    .skip 4096
kernel_tail_l2:
    .skip 4096
    .set BOOT_TABLES_SIZE, . - boot_tables

    .balign KSTACK_SIZE_ASM
    .globl boot_stack
boot_stack:
    .skip KSTACK_SIZE_ASM
