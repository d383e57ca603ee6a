/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel command line, parsed once before any module starts. */
#ifndef KERNEL_BOOTARGS_H
#define KERNEL_BOOTARGS_H

#include "kernel/types.h"

enum bootarg_tlb {
    BOOTARG_TLB_BROADCAST, /* TLBI ...IS and DSB ISH reach every CPU */
    BOOTARG_TLB_IPI,       /* SGIs, and each CPU flushes for itself */
    BOOTARG_TLB_INVLPGB,   /* IPI's bookkeeping, but TLBI ...IS and DSB ISH */
};

enum bootarg_flush {
    BOOTARG_FLUSH_BATCHED, /* unmap queues its flush, one wait for many pages */
    BOOTARG_FLUSH_SYNC,    /* every unmap waits */
};

enum bootarg_drain {
    BOOTARG_DRAIN_MM,   /* pending word: flush the whole mm (correct) */
    BOOTARG_DRAIN_DSB,  /* only a DSB: unsafe, the 2022 experiment */
    BOOTARG_DRAIN_NONE, /* nothing: unsafe, before 2017 */
};

#define BOOTARGS_MAX 1024
#define BOOTARGS_MAX_ARGV 32

struct bootargs {
    enum bootarg_tlb tlb;
    enum bootarg_flush flush;
    enum bootarg_drain drain;
    bool selftest;    /* init=selftest */
    bool quiet;       /* only errors and what init prints */
    const char *init; /* path, "/bin/hello" by default */
    int argc;         /* words after "--" */
    const char *argv[BOOTARGS_MAX_ARGV];
    char line[BOOTARGS_MAX]; /* the line as given: /proc/cmdline */
};

extern struct bootargs bootargs; /* [init] */

void bootargs_parse(const char *line);
/* Is word in the list "debug=WORD[,WORD...]"? */
bool bootargs_debug(const char *word);
/* Value of "name=value" for other modules' own words; NULL when absent. */
const char *bootargs_get(const char *name, char *buf, size_t size);

#endif
