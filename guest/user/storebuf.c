/* SPDX-License-Identifier: MIT */
/*
 * storebuf: the store buffering experiment on two CPUs. Each stores to its own
 * variable and then loads the other's. With DMB ISH in between, and with STLR
 * and LDAR, at least one must see the other's store. "plain" shows how often
 * the two really overlap, and is never wrong.
 */
#define _GNU_SOURCE
#include "litmus.h"

#define PLAIN_ROUNDS 20000 /* unless -k asks for it alone */

static struct sb sb;

static bool check(const char *name, enum sb_kind kind, unsigned long rounds)
{
    uint64_t start = now_ns();
    bool ok;

    sb_run(&sb, kind, rounds);
    ok = kind == SB_PLAIN || sb.outcomes[0] == 0;
    printf("storebuf: %s %lu rounds: 00 %lu, 01 %lu, 10 %lu, 11 %lu, %llu us, "
           "%s\n",
           name, sb.batches * SB_SLOTS, sb.outcomes[0], sb.outcomes[2],
           sb.outcomes[1], sb.outcomes[3],
           (unsigned long long)(now_ns() - start) / 1000,
           ok ? "ok" : "FORBIDDEN");
    return ok;
}

int main(int argc, char **argv)
{
    unsigned long rounds = 1000000;
    bool dmb = true, stlr = true, plain = true, ok = true;
    int c;

    while ((c = getopt(argc, argv, "n:k:h")) != -1) {
        switch (c) {
        case 'n':
            rounds = option_number("storebuf", 'n', optarg, 1);
            break;
        case 'k':
            dmb = strcmp(optarg, "dmb") == 0;
            stlr = strcmp(optarg, "stlr") == 0;
            plain = strcmp(optarg, "plain") == 0;
            break;
        default:
            fprintf(c == 'h' ? stdout : stderr,
                    "usage: storebuf [-n ROUNDS] [-k dmb|stlr|plain]\n"
                    "  defaults: 1000000 rounds, all three\n");
            return c == 'h' ? 0 : 2;
        }
    }
    if (!dmb && !stlr && !plain) {
        fprintf(stderr, "storebuf: -k: dmb, stlr or plain is wanted\n");
        return 2;
    }
    if (plain) {
        /* Only an illustration: few rounds show it. */
        ok &= check("plain", SB_PLAIN,
                    dmb && rounds > PLAIN_ROUNDS ? PLAIN_ROUNDS : rounds);
    }
    if (dmb) {
        ok &= check("dmb", SB_DMB, rounds);
    }
    if (stlr) {
        ok &= check("stlr", SB_STLR, rounds);
    }
    return ok ? 0 : 1;
}
