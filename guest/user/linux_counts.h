/* SPDX-License-Identifier: MIT */
/*
 * What the cases of linux_counts share: a window about a call, its report, and
 * what is checked. linux_counts_pageout.c has the shapes of one
 * madvise(MADV_PAGEOUT), linux_counts_drain.c what calls pay after a reclaim,
 * linux_counts.c the rest.
 */
#ifndef USER_LINUX_COUNTS_H
#define USER_LINUX_COUNTS_H

#include "counts.h"
#include "memory.h"

#define REPEAT 3 /* of the cases that need a fresh mapping each time */

extern struct linux_counts_options {
    unsigned long rounds; /* calls of each madvise case */
    unsigned cpu;
    const char *only; /* cases whose names begin so; NULL: all */
} opt;

/* Opens the window about a call; what is read costs no flush. */
void case_begin(void);
/* Closes it: one more call of the series. */
void case_end(struct counts_series *s);
/*
 * The same where the caller has opened COUNTS_CPU, as fd, and read the first
 * `got` bytes to case_text() himself. -1: could not be opened.
 */
void case_end_read(struct counts_series *s, int fd, size_t got);
/* Where they go, and how many may. */
char *case_text(void);
#define CASE_TEXT_ROOM 8192

/* "case NAMEPART calls K: ..." */
void case_report(const char *name, const char *part,
                 const struct counts_series *s);
/* The case cannot be had: why is in errno. */
void case_not_here(const char *name, const char *what);
bool case_wanted(const char *name);

/* Pages that are not as written in that round are counted and told at the end.
 */
void case_check(const volatile uint64_t *buf, unsigned long pages,
                unsigned long round);
/* madvise, or the end of the program. */
void case_advise(volatile uint64_t *buf, unsigned long pages, int advice);
/* Leaves nothing pending in this address space. */
void case_drain(void);

/* --- linux_counts_pageout.c --- */
void all_pageout(void);

/* --- linux_counts_drain.c; each reports its cases --- */
void run_mprotect(void);
void run_mprotect_other_cpu(void);
void run_mprotect_present(void);
void run_dontneed(void);
void run_munmap(void);
void run_mremap(void);
void run_fork(void);

#endif
