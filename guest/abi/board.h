/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The board as numbers: the memory map and interrupt numbers that the VMM and
 * the guest kernel agree on. A subset of QEMU's "virt" at the same addresses.
 *
 * Only #defines of numbers: assembly files include this too.
 */
#ifndef ABI_BOARD_H
#define ABI_BOARD_H

/* Assemblers know neither UL suffixes nor casts. */
#ifdef __ASSEMBLER__
#define BOARD_UL(x) x
#else
#define BOARD_UL(x) x##UL
#endif

#define BOARD_MAX_CPUS 512

/* RAM */
#define BOARD_RAM_BASE BOARD_UL(0x40000000)

/* GICv3 distributor and redistributors */
#define BOARD_GICD_BASE BOARD_UL(0x08000000)
#define BOARD_GICD_SIZE BOARD_UL(0x00010000)
#define BOARD_GICR_BASE BOARD_UL(0x080a0000)
#define BOARD_GICR_STRIDE BOARD_UL(0x00020000)
#define BOARD_GICR_CPUS 123
#define BOARD_GICR_SIZE BOARD_UL(0x00f60000)    /* 123 * stride */
#define BOARD_GICR2_BASE BOARD_UL(0x4000000000) /* CPUs 123 and up */
#define BOARD_GICR2_CPUS 389
/* What the device tree of QEMU names: room for 512 frames of the second. */
#define BOARD_GICR2_SIZE BOARD_UL(0x04000000)

/* PL011 UART */
#define BOARD_UART_BASE BOARD_UL(0x09000000)
#define BOARD_UART_SIZE BOARD_UL(0x00001000)
#define BOARD_UART_SPI 1
#define BOARD_UART_INTID 33 /* 32 + SPI */
#define BOARD_UART_CLOCK_HZ 24000000

/* Annotation device, ours; absent on QEMU (abi/annot.h) */
#define BOARD_ANNOT_BASE BOARD_UL(0x0b000000)
#define BOARD_ANNOT_SIZE BOARD_UL(0x00001000)

/* Interrupts: SGIs 0..15, PPIs 16..31, SPIs 32.. */
#define BOARD_SPIS 256
#define BOARD_INTIDS 288 /* 32 + SPIs */
#define BOARD_SPI_BASE 32
#define BOARD_PPI_BASE 16
#define BOARD_TIMER_SECURE_PHYS_INTID 29
#define BOARD_TIMER_PHYS_INTID 30
#define BOARD_TIMER_VIRT_INTID 27
#define BOARD_TIMER_HYP_INTID 26

/* Generic timer */
#define BOARD_CNTFRQ 62500000

/*
 * MPIDR_EL1 of CPU n: Aff0 = n % 16, Aff1 = n / 16, bit 31 is RES1. The device
 * tree's cpu reg is the affinity part. 16 because one ICC_SGI1R_EL1 target
 * list names 16 CPUs of one cluster.
 */
#define BOARD_CLUSTER_CPUS 16
#define BOARD_CPU_AFFINITY(cpu)                                                \
    (((cpu) % BOARD_CLUSTER_CPUS) | (((cpu) / BOARD_CLUSTER_CPUS) << 8))
#define BOARD_AFFINITY_CPU(aff)                                                \
    (((aff)&0xff) + (((aff) >> 8) & 0xff) * BOARD_CLUSTER_CPUS)
#define BOARD_MPIDR_AFFINITY_MASK BOARD_UL(0xff00ffffff)
#define BOARD_MPIDR_RES1 BOARD_UL(0x80000000)

#endif
