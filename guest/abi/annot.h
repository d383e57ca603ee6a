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
#define ANNOT_REG_OP_BEGIN 0x38      /* W: ANNOT_OP_*, task << 32 */
#define ANNOT_REG_OP_END 0x40        /* W: ANNOT_OP_*, task << 32 */
#define ANNOT_REG_FINDING 0x48       /* W: code; the guest saw a bug's effect */
/*
 * W: n, 1..ANNOT_CHOOSE_MAX, asks the machine for one of n alternatives; R:
 * the answer, 0..n-1, to this CPU's last question. A scenario draws its
 * operations here, so that they are part of the schedule. 0 where nobody
 * chooses.
 */
#define ANNOT_REG_CHOOSE 0x50

/*
 * RO: ANNOT_FEATURE_*, does not change while the machine runs. What the machine
 * does not want to hear need not be written: each write is an exit.
 */
#define ANNOT_REG_FEATURES 0x58
/*
 * W: a frame's address, with the order of the block in ANNOT_ORDER_MASK. It is
 * given away (not to be reached any more) or has a new owner; a device begins
 * or has ended to read it; a copy of its contents begins.
 */
#define ANNOT_REG_FRAME_FREE 0x60
#define ANNOT_REG_FRAME_ALLOC 0x68
#define ANNOT_REG_IO_BEGIN 0x70
#define ANNOT_REG_IO_END 0x78
#define ANNOT_REG_COPY_BEGIN 0x80
/*
 * W: the range [start, end) of this CPU's next OP_BEGIN, and in the low bits of
 * START what the operation promises of it when it is over.
 */
#define ANNOT_REG_OP_START 0x88
#define ANNOT_REG_OP_END_ADDR 0x90
/*
 * W: a walk of tables without a lock by this CPU begins, of that root (0: the
 * one it has loaded), or ends. While it lasts, no table that was linked when it
 * began may be given away.
 */
#define ANNOT_REG_WALK_BEGIN 0x98
#define ANNOT_REG_WALK_END 0xa0
/*
 * W: the CPUs, a bit each, that this one asks to flush, before it does; and
 * those that it takes to have done so, when it stops to wait.
 */
#define ANNOT_REG_FLUSH_ASK 0xa8
#define ANNOT_REG_FLUSH_WAITED 0xb0
/*
 * W: a request was served and its flush is complete: the CPU + 1 that asked in
 * bits 0 to 31, 0: all so far; who was asked is the CPU + 1 in bits 32 and up,
 * 0: the one that writes.
 */
#define ANNOT_REG_FLUSH_SERVED 0xb8
/* W: a CPU, which goes on and must have nothing unserved. */
#define ANNOT_REG_FLUSH_RESUME 0xc0
/*
 * W: a frame, as with FRAME_FREE: from here, as from IO_BEGIN, a write makes it
 * dirty again; it is thrown away because nobody wrote to it since.
 */
#define ANNOT_REG_FRAME_CLEAN 0xc8
#define ANNOT_REG_FRAME_DROP 0xd0

#define ANNOT_ORDER_MASK 0xfff

#define ANNOT_FEATURE_LEDGER 1 /* all of FRAME_FREE to FRAME_DROP */
/*
 * An erratum: TLBI and DSB do not wait for accesses that units of other CPUs
 * have begun. Each of them must execute a DSB after that.
 */
#define ANNOT_FEATURE_REMOTE_UNIT 2

#define ANNOT_PROMISE_MASK 0xfff
#define ANNOT_PROMISE_NONE 0
#define ANNOT_PROMISE_NOWRITE 1  /* nobody can write there any more */
#define ANNOT_PROMISE_NOACCESS 2 /* nor read */

#define ANNOT_ID 0x544f4853 /* "SHOT" */
#define ANNOT_VERSION 1

#define ANNOT_CHOOSE_MAX 1024

/* Values of MARK that scenario programs write; others are free. */
#define ANNOT_MARK_BEGIN 1 /* set up: what follows is the race */
#define ANNOT_MARK_END 2   /* over, nothing was found */

/*
 * Operation kinds of OP_BEGIN and OP_END. The task (0: none) tells an operation
 * from others of its kind if it may end on another CPU than it began.
 */
#define ANNOT_OP_MADVISE_PAGEOUT 1
#define ANNOT_OP_MUNMAP 2
#define ANNOT_OP_MPROTECT 3
#define ANNOT_OP_MADVISE_OTHER 4
#define ANNOT_OP_EXIT_MM 5 /* OP_START: the root */
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
