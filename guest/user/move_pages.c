/* SPDX-License-Identifier: MIT */
/*
 * move_pages: moves a buffer to the other memory node and back, in equal system
 * calls. A call migrates in batches of up to 512 pages, and each batch is
 * unmapped, flushed once and copied.
 */
#define _GNU_SOURCE
#include "counts.h"
#include "memory.h"
#include "others.h"

static struct {
    unsigned long pages, calls, rounds;
    char mode;
} opt = {.pages = 2048, .calls = 1, .rounds = 2, .mode = 'U'};

static void usage(FILE *to)
{
    fprintf(to,
            "usage: move_pages [-p PAGES] [-c CALLS] [-r ROUNDS] [-m U|T|I]\n"
            "  -p  pages, default 2048\n"
            "  -c  calls that move all of them, default 1\n"
            "  -r  how often they are moved, there and back, default 2\n"
            "  -m  other CPUs: U unrelated processes spin (the default),\n"
            "      T threads of this program spin, I they are idle\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "p:c:r:m:h")) != -1) {
        switch (c) {
        case 'p':
            opt.pages = option_number("move_pages", 'p', optarg, 1);
            break;
        case 'c':
            opt.calls = option_number("move_pages", 'c', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("move_pages", 'r', optarg, 1);
            break;
        case 'm':
            opt.mode = others_option("move_pages", optarg);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
}

int main(int argc, char **argv)
{
    volatile uint64_t *buf;
    struct memory_move m;
    unsigned long wrong = 0, moved = 0;
    bool can = true;

    parse_options(argc, argv);
    others_begin(opt.mode);
    buf = memory_map(opt.pages, 0, MAP_PRIVATE);
    memory_write(buf, opt.pages, 1);
    memory_move_init(&m, buf, opt.pages);
    for (unsigned long round = 0; round < opt.rounds && can; round++) {
        int node = round % 2 == 0;
        struct counts_window w;

        memory_move_aim(&m, node);
        others_visit_all();
        counts_begin(&w);
        for (unsigned long i = 0; i < opt.calls && can; i++) {
            if (memory_move_call(&m, i, opt.calls) < 0) {
                printf("move_pages: node %d: %s\n", node, strerror(errno));
                can = false;
            }
        }
        counts_end(&w);
        if (can) {
            counts_print("move_pages", &w);
            moved += memory_on_node(&m, node);
        }
        wrong += memory_check(buf, opt.pages, 1);
    }
    others_end();
    printf(
        "move_pages: %lu pages, %lu calls, %u CPUs, mode %c: %lu moved, %s\n",
        opt.pages, opt.calls, others.cpus, opt.mode, moved,
        wrong == 0 ? "all as written" : "LOST DATA");
    exit(wrong == 0 ? 0 : 1); /* threads may spin */
}
