/* SPDX-License-Identifier: MIT */
/*
 * demotion: cold pages of memory node 0 are reclaimed on request, and a kernel
 * that may demote (/sys/kernel/mm/numa/demotion_enabled) moves them to node 1
 * instead of swap. A list of pages is one migration, with one flush. Without
 * swap (-s) nothing else is flushed: as many flushes as lists.
 */
#define _GNU_SOURCE
#include "counts.h"
#include "memory.h"
#include "others.h"

#define GROUP "/demotion"
#define DEMOTION "/sys/kernel/mm/numa/demotion_enabled"

static struct {
    unsigned long pages, requests;
    char mode;
    bool no_swap;
} opt = {.pages = 1024, .requests = 1, .mode = 'U'};

static void usage(FILE *to)
{
    fprintf(to, "usage: demotion [-p PAGES] [-r REQUESTS] [-m U|T|I] [-s]\n"
                "  -p  pages, default 1024\n"
                "  -r  equal requests that reclaim them, default 1\n"
                "  -m  other CPUs: U unrelated processes spin (the default),\n"
                "      T threads of this program spin, I they are idle\n"
                "  -s  no swap for them: demotion and nothing else\n"
                "Needs two memory nodes, the second without CPUs, and " CGROUP
                ".\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "p:r:m:sh")) != -1) {
        switch (c) {
        case 'p':
            opt.pages = option_number("demotion", 'p', optarg, 1);
            break;
        case 'r':
            opt.requests = option_number("demotion", 'r', optarg, 1);
            break;
        case 'm':
            opt.mode = others_option("demotion", optarg);
            break;
        case 's':
            opt.no_swap = true;
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
    struct counts_window w;
    unsigned long wrong, demoted, group_pages;

    parse_options(argc, argv);
    others_begin(opt.mode);
    /* What the program needs itself is not the group's: it is there before. */
    buf = memory_map(opt.pages, 0, MAP_PRIVATE);
    memory_move_init(&m, buf, opt.pages);
    memory_move_aim(&m, 0);
    counts_begin(&w);
    counts_end(&w);
    if (memory_tell(DEMOTION, "1") != 0) {
        printf("demotion: " DEMOTION ": %s\n", strerror(errno));
    }
    (void)memory_make_group(GROUP);
    if (memory_join(GROUP) != 0) {
        printf("demotion: " CGROUP GROUP ": %s\n", strerror(errno));
    }
    if (opt.no_swap && memory_tell(CGROUP GROUP "/memory.swap.max", "0") != 0) {
        printf("demotion: memory.swap.max: %s\n", strerror(errno));
    }
    memory_write(buf, opt.pages, 1);
    others_visit_all();
    group_pages = memory_group_pages(GROUP);
    counts_begin(&w);
    for (unsigned long i = 0; i < opt.requests; i++) {
        if (memory_reclaim(GROUP, opt.pages / opt.requests) != 0) {
            break; /* the requests before took all there is */
        }
    }
    counts_end(&w);
    counts_print("demotion", &w);
    demoted = memory_on_node(&m, 1);
    wrong = memory_check(buf, opt.pages, 1);
    others_end();
    (void)memory_tell(DEMOTION, "0");
    memory_unmap(buf, opt.pages);
    (void)memory_join("");
    (void)memory_remove_group(GROUP);
    printf("demotion: %lu pages, %lu of the group, %lu requests, %u CPUs, "
           "mode %c:\n  %lu on node 1, %s\n",
           opt.pages, group_pages, opt.requests, others.cpus, opt.mode, demoted,
           wrong == 0 ? "all as written" : "LOST DATA");
    exit(wrong == 0 ? 0 : 1); /* threads may spin */
}
