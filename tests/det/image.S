/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program whose words test_machines.c holds, as an arm64 Image: two CPUs,
 * page tables, an exclusive counter, a page that is broken and made again
 * while the other CPU reads it, a software interrupt, the timer, a character.
 *
 * The device tree is wiped first: its bytes are libfdt's, and differ between
 * versions. Nothing here is relocated; image_words.py says how to make the
 * words anew.
 *
 *   0x40300000 level 1   0x40301000 level 2   0x40302000 level 3
 *   0x40303000 results   0x40304000, 0x40305000 the page, before and after
 */
    .equ RESULTS, 0x3000
    .equ OLD, 0x4000
    .equ NEW, 0x5000
    .equ ROUNDS, 64

    .text
head:
    b start
    .long 0
    .quad 0x200000                      /* text_offset */
    .quad 0x1000                        /* image_size */
    .quad 0xa                           /* little-endian, 4 KiB, anywhere */
    .quad 0, 0, 0
    .ascii "ARM\x64"
    .long 0

/* CPU 0; x0: the device tree */
start:
    mov x2, #0x10000
1:  stp xzr, xzr, [x0], #16
    subs x2, x2, #16
    b.ne 1b
    mov x20, #0x40300000                /* tables, then results */
    add x21, x20, #0x1000
    add x22, x20, #0x2000
    mov x1, #0x401                      /* block, device, AF */
    str x1, [x20]
    mov x1, #0x40000000
    movk x1, #0x705                     /* block, normal, inner shareable, AF */
    str x1, [x20, #8]
    orr x1, x21, #3
    str x1, [x20, #32]                  /* 4 GiB: the page */
    orr x1, x22, #3
    str x1, [x21]
    add x23, x20, #OLD
    mov x1, #0x707
    orr x24, x23, x1                    /* its descriptor */
    str x24, [x22]
    mov x1, #0x11
    str x1, [x23]
    add x23, x20, #NEW
    mov x1, #0x22
    str x1, [x23]
    add x25, x24, #0x1000               /* the one that comes after */
    mov w0, #0x08000000                 /* GICD_CTLR: ARE, group 1 */
    mov w1, #0x12
    str w1, [x0]
    mov w0, #3                          /* PSCI CPU_ON */
    movk w0, #0xc400, lsl #16
    mov x1, #1
    adr x2, second
    mov x3, #1
    hvc #0
    mov x19, #0
    bl enable
    bl count
2:  add x1, x26, #56                    /* until it takes interrupts */
    ldar x2, [x1]
    cbnz x2, 3f
    yield
    b 2b
3:  str xzr, [x22]                      /* break, while the other one reads */
    dsb ishst
    mov x1, #0x100000                   /* 4 GiB >> 12 */
    tlbi vaae1is, x1
    dsb ish
    mov x4, #ROUNDS
4:  yield
    subs x4, x4, #1
    b.ne 4b
    str x25, [x22]
    dsb ishst
    isb
    mov x1, #0x100000000
    ldr x2, [x1]
    str x2, [x26, #16]
    mov x1, #0x01000000                 /* SGI 1 to affinity 1 */
    movk x1, #2
    msr s3_0_c12_c11_5, x1
    isb
2:  add x1, x26, #24                    /* until it is done */
    ldar x2, [x1]
    cbnz x2, 3f
    yield
    b 2b
3:  mrs x1, cntvct_el0
    str x1, [x26, #32]
    mov w0, #0x09000000                 /* PL011 */
    mov w1, #'!'
    str w1, [x0]
    mov w0, #8                          /* PSCI SYSTEM_OFF */
    movk w0, #0x8400, lsl #16
    hvc #0

/*
 * The image is its own vector table: what lies at 0x200 and 0x280 is taken. A
 * fault leaves the load out that has it.
 */
    .org 0x200
    mrs x7, elr_el1
    add x7, x7, #4
    msr elr_el1, x7
    add x28, x28, #1
    eret
    .org 0x280
    mrs x7, s3_0_c12_c12_0              /* ICC_IAR1_EL1 */
    cmp x7, #27
    b.ne 8f
    msr cntv_ctl_el0, xzr
8:  msr s3_0_c12_c12_1, x7              /* ICC_EOIR1_EL1 */
    add x27, x27, #1
    eret

/* CPU 1 */
second:
    mov x20, #0x40300000
    mov x19, #1
    mov x27, #0                         /* interrupts taken */
    mov x28, #0                         /* faults taken */
    mov x6, #0                          /* what it read, together */
    bl enable
    bl count
    mov w0, #0x080c0000                 /* its redistributor */
    str wzr, [x0, #0x14]                /* GICR_WAKER */
    add w0, w0, #0x10000
    mov w1, #0x02                       /* SGI 1 */
    movk w1, #0x0800, lsl #16           /* the virtual timer, 27 */
    str w1, [x0, #0x80]                 /* GICR_IGROUPR0 */
    str w1, [x0, #0x100]                /* GICR_ISENABLER0 */
    mov x1, #0xff
    msr s3_0_c4_c6_0, x1                /* ICC_PMR_EL1 */
    mov x1, #1
    msr s3_0_c12_c12_7, x1              /* ICC_IGRPEN1_EL1 */
    isb
    add x2, x26, #56
    stlr x1, [x2]
    mov x1, #2000                       /* ticks: 32 microseconds */
    msr cntv_tval_el0, x1
    mov x1, #1
    msr cntv_ctl_el0, x1
    msr daifclr, #2
    mov x3, #0x100000000
    mov x4, #20000                      /* with local TLBIs it stays old */
4:  ldr x5, [x3]                        /* the page: old, none or new */
    add x6, x6, x5
    cmp x5, #0x22
    b.eq 5f
    subs x4, x4, #1
    b.ne 4b
5:  msr daifset, #2
    cmp x27, #2
    b.eq 6f
    wfi
    msr daifclr, #2
    isb
    b 5b
6:  mrs x1, cntvct_el0
    str x1, [x26, #40]
    str x28, [x26, #48]
    add x1, x26, #24
    mov x2, #1
    stlr x2, [x1]
9:  wfi
    b 9b

/* Both: the MMU on, x26 the results */
enable:
    adr x1, head
    msr vbar_el1, x1
    mov x1, #0xff00
    msr mair_el1, x1
    mov x1, #0x3519                     /* T0SZ 25, cached, inner shareable */
    movk x1, #0x80, lsl #16             /* EPD1 */
    msr tcr_el1, x1
    msr ttbr0_el1, x20
    isb
    mrs x1, sctlr_el1
    orr x1, x1, #1
    msr sctlr_el1, x1
    isb
    add x26, x20, #RESULTS
    ret

/* Adds ROUNDS to the counter, and nothing is lost. */
count:
    mov x4, #ROUNDS
7:  ldxr x5, [x26]
    add x5, x5, #1
    stxr w8, x5, [x26]
    cbnz w8, 7b
    subs x4, x4, #1
    b.ne 7b
    ret
