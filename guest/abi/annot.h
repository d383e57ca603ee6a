/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The annotation device: how a guest tells the VMM what it counted and what it
 * is doing. Device tree node "shootdown,annot", one page of 64-bit
 * little-endian registers at BOARD_ANNOT_BASE; absent on QEMU.
 *
 * Registers are written and read with single aligned 64-bit accesses.
 */
#ifndef ABI_ANNOT_H
#define ABI_ANNOT_H

#define ANNOT_COMPATIBLE "shootdown,annot"

#define ANNOT_REG_ID 0x00            /* RO: ANNOT_ID */
#define ANNOT_REG_VERSION 0x08       /* RO: ANNOT_VERSION */
#define ANNOT_REG_COUNTERS_ADDR 0x10 /* W: guest physical, counters array */
#define ANNOT_REG_COUNTERS_CPUS 0x18 /* W: entries of that array */
#define ANNOT_REG_EXIT_STATUS 0x20   /* W: init's exit status */
#define ANNOT_REG_PANIC 0x28         /* W: panic code */
#define ANNOT_REG_MARK 0x30          /* W: any value, becomes event mark */
#define ANNOT_REG_OP_BEGIN 0x38      /* W: ANNOT_OP_* */
#define ANNOT_REG_OP_END 0x40        /* W: ANNOT_OP_* */
#define ANNOT_REG_FINDING 0x48       /* W: code; the guest saw a bug's effect */
/*
 * W: n, 1..ANNOT_CHOOSE_MAX, asks the machine for one of n alternatives; R:
 * the answer, 0..n-1, to this CPU's last question. A scenario draws its
 * operations here, so that they are part of the schedule. 0 where nobody
 * chooses.
 */
#define ANNOT_REG_CHOOSE 0x50

#define ANNOT_ID 0x544f4853 /* "SHOT" */
#define ANNOT_VERSION 1

#define ANNOT_CHOOSE_MAX 1024

/* Values of MARK that scenario programs write; others are free. */
#define ANNOT_MARK_BEGIN 1 /* set up: what follows is the race */
#define ANNOT_MARK_END 2   /* over, nothing was found */

/* Operation kinds of OP_BEGIN and OP_END */
#define ANNOT_OP_MADVISE_PAGEOUT 1
#define ANNOT_OP_MUNMAP 2
#define ANNOT_OP_MPROTECT 3
#define ANNOT_OP_MADVISE_OTHER 4
#define ANNOT_OP_EXIT_MM 5
#define ANNOT_OP_FORK 6
#define ANNOT_OP_MREMAP 7
#define ANNOT_OPS 8 /* one more than the largest kind */

/* Alignment of struct annot_counters: one CPU's counters share no line. */
#define ANNOT_COUNTERS_ALIGN 64

#ifndef __ASSEMBLER__
#include <stdint.h>

/* One CPU's counters; COUNTERS_ADDR is an array of these, by CPU number. */
struct annot_counters {
#define COUNTER(name, text) uint64_t name;
#include "counters.inc"
#undef COUNTER
} __attribute__((aligned(ANNOT_COUNTERS_ALIGN)));

enum annot_counter_index {
#define COUNTER(name, text) ANNOT_COUNTER_##name,
#include "counters.inc"
#undef COUNTER
    ANNOT_COUNTERS /* how many there are */
};
#endif

#endif
