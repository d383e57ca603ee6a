/* SPDX-License-Identifier: MIT */
/*
 * selftest: many address spaces at the same addresses. With few ASIDs
 * (asid_bits=3) most switches roll them over, and a translation that outlives
 * its address space shows up as another process's words.
 */
#define _GNU_SOURCE
#include "selftest.h"

#include <sys/wait.h>

#define PROCESSES 40
#define PAGES 6
#define PAGE_WORDS 512
#define ROUNDS 12
#define AT ((uint64_t *)0x500000000000UL)

static uint64_t word_of(unsigned who, unsigned round, unsigned page)
{
    return (uint64_t)who << 48 | (uint64_t)round << 32 | (page + 1);
}

static bool sum_is(unsigned who, unsigned round)
{
    uint64_t sum = 0, want = 0;

    for (unsigned page = 0; page < PAGES; page++) {
        for (unsigned i = 0; i < PAGE_WORDS; i += 64) {
            sum = sum * 31 + ((volatile uint64_t *)AT)[page * PAGE_WORDS + i];
            want = want * 31 + word_of(who, round, page);
        }
    }
    return sum == want;
}

static void fill(unsigned who, unsigned round)
{
    for (unsigned page = 0; page < PAGES; page++) {
        for (unsigned i = 0; i < PAGE_WORDS; i += 64) {
            AT[page * PAGE_WORDS + i] = word_of(who, round, page);
        }
    }
}

/* Exit status: 0, or the step that went wrong. */
static int one_process(unsigned who, unsigned cpus)
{
    fill(who, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (!sum_is(who, round)) {
            return 1;
        }
        /* Another CPU, whose TLB knows others at these addresses. */
        if (pin_to_cpu((who + round) % cpus) != 0) {
            return 2;
        }
        if (!sum_is(who, round)) {
            return 3;
        }
        fill(who, round + 1);
        sched_yield();
        /* Rights and frames change while others use the addresses. */
        if (mprotect(AT, PAGES * 4096, PROT_READ) != 0 ||
            !sum_is(who, round + 1) ||
            mprotect(AT, PAGES * 4096, PROT_READ | PROT_WRITE) != 0 ||
            madvise(AT, PAGES / 2 * 4096, 21 /* MADV_PAGEOUT */) != 0) {
            return 4;
        }
        sched_yield();
    }
    return sum_is(who, ROUNDS) ? 0 : 5;
}

static bool many_processes(void)
{
    unsigned cpus = cpus_allowed();
    pid_t pids[PROCESSES];

    CHECK(mmap(AT, PAGES * 4096, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == AT);
    for (unsigned i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            _exit(one_process(i + 1, cpus));
        }
        CHECK(pids[i] > 0);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;

        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ(status, 0);
    }
    return true;
}

static const struct test tests[] = {
    {"40 processes see their own words at one address", many_processes},
};

TEST_TABLE(tests_asid, "asid", tests);
