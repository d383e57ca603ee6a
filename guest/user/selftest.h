/* SPDX-License-Identifier: MIT */
/* The test tables of selftest, one file each, and their helpers. */
#ifndef USER_SELFTEST_H
#define USER_SELFTEST_H

#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "common.h"

struct test {
    const char *name;  /* a sentence */
    bool (*run)(void); /* in a child process; why() explains a false */
};

struct test_table {
    const char *module;
    const struct test *tests;
    unsigned count;
};

#define TEST_TABLE(var, module_name, array)                                    \
    const struct test_table var = {module_name, array,                         \
                                   sizeof(array) / sizeof((array)[0])}

/* Between a test and the parent. */
struct shared {
    char why[200];
    bool skipped;
    volatile uint64_t words[32]; /* for the tests themselves */
};

extern struct shared *shared;
extern const struct test_table tests_asid, tests_file, tests_huge, tests_memory,
    tests_mmap, tests_numa, tests_proc, tests_process, tests_reclaim,
    tests_signal, tests_smp, tests_syscall, tests_timer;

/* selftest --child MODE...: what the exec tests start. */
int exec_child(int argc, char **argv);

static inline void *test_map_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror("selftest: mmap");
        exit(1);
    }
    return p;
}

static inline uint64_t *test_map_private(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

__attribute__((format(printf, 1, 2))) static inline void
test_why(const char *fmt, ...)
{
    va_list args;

    if (shared->why[0] != '\0') {
        return; /* the first reason counts */
    }
    va_start(args, fmt);
    vsnprintf(shared->why, sizeof(shared->why), fmt, args);
    va_end(args);
}

static inline bool test_skip(const char *reason)
{
    test_why("%s", reason);
    shared->skipped = true;
    return false;
}

#define CHECK(cond)                                                            \
    do {                                                                       \
        if (!(cond)) {                                                         \
            test_why("%s:%d: %s (errno %d)", __FILE__, __LINE__, #cond,        \
                     errno);                                                   \
            return false;                                                      \
        }                                                                      \
    } while (0)

#define CHECK_EQ(got, want)                                                    \
    do {                                                                       \
        unsigned long long got_ = (unsigned long long)(got);                   \
        unsigned long long want_ = (unsigned long long)(want);                 \
        if (got_ != want_) {                                                   \
            test_why("%s:%d: %s is 0x%llx, not 0x%llx", __FILE__, __LINE__,    \
                     #got, got_, want_);                                       \
            return false;                                                      \
        }                                                                      \
    } while (0)

#endif
