/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest of one litmus test: the test's instructions and a small frame, as
 * an arm64 Image that the cross assembler makes.
 *
 * Physical layout, from the start of RAM; F is frame, T is thread:
 *
 *   0x000000      F image header, entry of every vCPU
 *   0x002000 * (1 + t)  T exception vectors (0x000), code (0x1000)
 *   0x020000      F a page for each thread: struct litmus_area
 *   0x030000      F translation tables, filled by the host
 *   0x040000      a page for each variable
 *
 * Each instruction of a test has a slot of 8 bytes: itself and a branch to the
 * next slot. So each is a basic block of its own, and the engine can be stopped
 * between any two.
 *
 * Virtually, frame and code are at their physical addresses, variables at
 * LITMUS_VARS_VA, and the table with their descriptors at LITMUS_PTES_VA.
 */
#ifndef LITMUS_IMAGE_H
#define LITMUS_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "abi/board.h"
#include "litmus/test.h"

#define LITMUS_THREAD(t) (BOARD_RAM_BASE + 0x2000 * (1 + (uint64_t)(t)))
#define LITMUS_CODE(t) (LITMUS_THREAD(t) + 0x1000)
#define LITMUS_AREA(t) (BOARD_RAM_BASE + 0x20000 + 0x1000 * (uint64_t)(t))
#define LITMUS_TABLES (BOARD_RAM_BASE + 0x30000)
#define LITMUS_VARS_PA (BOARD_RAM_BASE + 0x40000)
#define LITMUS_VARS_VA UINT64_C(0x00200000)
#define LITMUS_PTES_VA UINT64_C(0x00400000)
#define LITMUS_PAGE 0x1000u
#define LITMUS_SLOT 8u

/* What a thread's vectors write; the stack pointer of EL1 points here. */
struct litmus_area {
    uint64_t saved[2];
    uint64_t esr, far, elr; /* of the last exception */
    uint64_t count;         /* of exceptions */
};

struct litmus_image {
    char *path;     /* of the Image, in the cache */
    char *as;       /* what made it */
    bool is_cached; /* it was there already */
    /* Slots: the code's, one on which the thread is over, the handler's. */
    unsigned code[LITMUS_THREADS_MAX], handler[LITMUS_THREADS_MAX];
};

/* Slots of a thread in order: code, end, handler, end, dead. */
static inline unsigned litmus_slots(const struct litmus_image *image,
                                    unsigned thread)
{
    return image->code[thread] + 1 + image->handler[thread] + 2;
}

/*
 * The assembler is $SHOOTDOWN_AS, or what was found at build time; what it
 * made is kept under the XDG cache directory by the hash of its input. NULL
 * and VM_ERROR_ENVIRONMENT: no assembler, or it refuses an instruction.
 */
struct litmus_image *litmus_image_new(const struct litmus_test *test,
                                      const char *name, GError **error);
void litmus_image_free(struct litmus_image *image);

/* The assembler's input. g_free() it. out_lines: instruction of each line. */
char *litmus_assembly(const struct litmus_test *test, GPtrArray *out_lines);

#endif
