/* SPDX-License-Identifier: MIT */
/*
 * atomics: several threads increment one counter, with LDXR/STXR and with
 * LDADD. The result must be exact.
 */
#define _GNU_SOURCE
#include "litmus.h"

static bool check(const char *name, unsigned threads, unsigned long rounds,
                  bool use_ldadd)
{
    uint64_t expected = (uint64_t)threads * rounds;
    uint64_t start = now_ns();
    uint64_t got = increments_run(threads, rounds, use_ldadd);

    printf("atomics: %s %u threads x %lu: %llu of %llu, %llu us, %s\n", name,
           threads, rounds, (unsigned long long)got,
           (unsigned long long)expected,
           (unsigned long long)(now_ns() - start) / 1000,
           got == expected ? "ok" : "LOST UPDATES");
    return got == expected;
}

int main(int argc, char **argv)
{
    unsigned long threads = 4, rounds = 1000000;
    bool ok = true;
    int c;

    while ((c = getopt(argc, argv, "t:n:h")) != -1) {
        switch (c) {
        case 't':
            threads = option_number("atomics", 't', optarg, 1);
            break;
        case 'n':
            rounds = option_number("atomics", 'n', optarg, 1);
            break;
        default:
            fprintf(c == 'h' ? stdout : stderr,
                    "usage: atomics [-t THREADS] [-n INCREMENTS]\n"
                    "  defaults: 4 threads (at most 64), 1000000 each\n");
            return c == 'h' ? 0 : 2;
        }
    }
    if (threads > 64) {
        fprintf(stderr, "atomics: -t %lu: at most 64\n", threads);
        return 2;
    }
    ok &= check("ldxr", (unsigned)threads, rounds, false);
    if (have_lse()) {
        ok &= check("ldadd", (unsigned)threads, rounds, true);
    } else {
        printf("atomics: ldadd skipped, this CPU has no LSE\n");
    }
    return ok ? 0 : 1;
}
