/* SPDX-License-Identifier: MIT */
/* What several of the user programs need: time, pinning, option values. */
#ifndef USER_COMMON_H
#define USER_COMMON_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* CPUs this process may use; at least 1. */
static inline unsigned cpus_allowed(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 1;
    }
    return (unsigned)CPU_COUNT(&set);
}

/* The calling thread stays on that CPU from here on; 0 or -1. */
static inline int pin_to_cpu(unsigned cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}

/* A whole number of at least min, or a message and exit status 2. */
static inline unsigned long option_number(const char *program, char option,
                                          const char *text, unsigned long min)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || value < min) {
        fprintf(stderr, "%s: -%c %s: a number of at least %lu is wanted\n",
                program, option, text, min);
        exit(2);
    }
    return value;
}

#endif
