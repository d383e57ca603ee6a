/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In-kernel tests: tables of sentences, run with init=selftest on CPU 0 in a
 * kernel thread. Each prints one TAP line; the number of free pages after a
 * test must equal the number before.
 *
 *     static const char *pages_come_back(void)
 *     {
 *         KTEST_CHECK(page_alloc() != NULL);
 *         return NULL;
 *     }
 */
#ifndef KERNEL_KTEST_H
#define KERNEL_KTEST_H

#include "kernel/types.h"

struct ktest {
    const char *name;         /* a sentence */
    const char *(*run)(void); /* NULL: passed; else why not */
    bool may_keep_pages;      /* caches may grow: no free-page comparison */
};

struct ktest_table {
    const char *module;
    const struct ktest *tests;
    unsigned count;
};

#define KTEST_TABLE(var, module_name, array)                                   \
    const struct ktest_table var = {module_name, array, ARRAY_SIZE(array)}

#define KTEST_STR2(x) #x
#define KTEST_STR(x) KTEST_STR2(x)
#define KTEST_CHECK(cond)                                                      \
    do {                                                                       \
        if (!(cond)) {                                                         \
            return __FILE__ ":" KTEST_STR(__LINE__) ": " #cond;                \
        }                                                                      \
    } while (0)
#define KTEST_SKIP(why) return "# SKIP " why

extern const struct ktest_table ktest_core;
extern const struct ktest_table ktest_mm WEAK; /* mm/ktest_mm.c */

/* Runs all tables; prints the lines; returns how many failed. */
unsigned ktest_run_all(unsigned *out_count);
/* The same with the TAP header; numbers as text, for /bin/selftest. */
void ktest_main(char *out_failed, char *out_count, size_t size);

#endif
