/* SPDX-License-Identifier: MIT */
/*
 * pageout: private, written pages are reclaimed on request (memory.reclaim)
 * while other CPUs only know the address space, by what they run meanwhile
 * (others.h). Each page is dirty, so that each costs a flush before it is
 * written out; where TLBs are flushed by interrupt, each flush asks every CPU
 * that the kernel takes for a user of the address space.
 */
#define _GNU_SOURCE
#include "counts.h"
#include "memory.h"
#include "others.h"

#define GROUP "/pageout"

static struct {
    unsigned long pages, rounds;
    char mode;
} opt = {.pages = 1024, .rounds = 1, .mode = 'U'};

static void usage(FILE *to)
{
    fprintf(to, "usage: pageout [-p PAGES] [-r ROUNDS] [-m U|T|I]\n"
                "  -p  pages of the buffer, default 1024\n"
                "  -r  how often they are written and reclaimed, default 1\n"
                "  -m  other CPUs: U unrelated processes spin (the default),\n"
                "      T threads of this program spin, I they are idle\n"
                "Without " CGROUP " the program pages out by madvise.\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "p:r:m:h")) != -1) {
        switch (c) {
        case 'p':
            opt.pages = option_number("pageout", 'p', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("pageout", 'r', optarg, 1);
            break;
        case 'm':
            opt.mode = others_option("pageout", optarg);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
}

/* How many pages are not in memory. */
static unsigned long pages_out(volatile uint64_t *buf)
{
    unsigned char *there = calloc(opt.pages, 1);
    unsigned long n = 0;

    if (there == NULL ||
        mincore((void *)(uintptr_t)buf, opt.pages * PAGE, there) != 0) {
        memory_die("pageout: mincore");
    }
    for (unsigned long i = 0; i < opt.pages; i++) {
        n += !(there[i] & 1);
    }
    free(there);
    return n;
}

int main(int argc, char **argv)
{
    unsigned long out = 0, wrong = 0;
    bool by_group;

    parse_options(argc, argv);
    others_begin(opt.mode);
    (void)memory_make_group(GROUP);
    by_group = memory_join(GROUP) == 0;
    if (!by_group) {
        printf("pageout: no " CGROUP GROUP " (%s): by madvise\n",
               strerror(errno));
    }
    for (unsigned long round = 1; round <= opt.rounds; round++) {
        volatile uint64_t *buf = memory_map(opt.pages, 0, MAP_PRIVATE);
        struct counts_window w;

        memory_write(buf, opt.pages, round);
        others_visit_all();
        counts_begin(&w);
        if (by_group ? memory_reclaim(GROUP, opt.pages) != 0 && errno != EAGAIN
                     : memory_advise(buf, opt.pages, MADV_PAGEOUT) != 0) {
            memory_die("pageout: reclaim");
        }
        counts_end(&w);
        counts_print("pageout", &w);
        out += pages_out(buf);
        wrong += memory_check(buf, opt.pages, round);
        memory_unmap(buf, opt.pages);
    }
    others_end();
    (void)memory_join("");
    (void)memory_remove_group(GROUP);
    printf(
        "pageout: %lu pages, %lu rounds, %u CPUs, mode %c: %lu went out, %s\n",
        opt.pages, opt.rounds, others.cpus, opt.mode, out,
        wrong == 0 ? "all as written" : "LOST DATA");
    exit(wrong == 0 ? 0 : 1); /* threads may spin */
}
