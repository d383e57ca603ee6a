/* SPDX-License-Identifier: MIT */
/*
 * reclaim_race: one thread pages a few pages out, one by one, while others
 * read and write them. Small enough to be run thousands of times in another
 * order. The race begins with every other page mapped clean on every CPU, so
 * that the kernel may batch its TLB flushes, and with the rest in swap, so that
 * frames given away too early find a new page soon.
 */
#define _GNU_SOURCE
#include "accessors.h"

static void set_defaults(void)
{
    opt.program = "reclaim_race";
    opt.pages = 8;
    opt.accessors = 3;
    opt.rounds = 1;
    opt.accesses = 32;
    opt.batch = 1;
}

static inline void access_write(struct accessor *a, unsigned page)
{
    word_store(page_words(page), ++a->seen[page]);
}

/*
 * Round and round over the pages; its own are written every second time, so
 * that there are clean pages and dirty ones.
 */
static void accesses(struct accessor *a)
{
    unsigned page = a->index * (unsigned)(opt.pages / opt.accessors);
    unsigned owner = page % (unsigned)opt.accessors;
    unsigned left = (unsigned)opt.pages;
    bool writes = false;

    for (unsigned long n = opt.accesses; n > 0; n--) {
        if (writes && owner == a->index) {
            access_write(a, page);
        } else {
            access_read(a, page);
        }
        owner = owner + 1 == opt.accessors ? 0 : owner + 1;
        if (++page == opt.pages) {
            page = owner = 0;
        }
        if (--left == 0) {
            left = (unsigned)opt.pages;
            writes = !writes;
        }
    }
}

static void *accessor_main(void *arg)
{
    struct accessor *a = arg;

    accessor_begin(a);
    for (uint32_t round = 0; round <= opt.rounds; round++) {
        scenario_wait(&go, round * 4 + STEP_TOUCH, opt.crowded);
        for (unsigned page = 0; page < opt.pages; page += 2) {
            access_read(a, page);
        }
        scenario_arrive(&a->step, round * 4 + STEP_TOUCH);
        if (round == opt.rounds) {
            break; /* nothing follows the last set-up */
        }
        scenario_wait(&go, round * 4 + STEP_RACE, opt.crowded);
        accesses(a);
        scenario_arrive(&a->step, round * 4 + STEP_RACE);
        scenario_wait(&go, round * 4 + STEP_CHECK, opt.crowded);
        check_own(a);
        scenario_arrive(&a->step, round * 4 + STEP_CHECK);
    }
    return NULL;
}

static void page_out(unsigned page, unsigned long pages)
{
    if (madvise((void *)(uintptr_t)page_words(page), pages * PAGE,
                MADV_PAGEOUT) != 0) {
        perror("reclaim_race: madvise(MADV_PAGEOUT)");
        exit(1);
    }
}

/* Even pages clean and read by everybody, odd ones out. */
static void set_up(uint32_t round)
{
    page_out(0, opt.pages);
    begin(round * 4 + STEP_TOUCH);
    wait_for_all(round * 4 + STEP_TOUCH);
}

static void race(uint32_t round)
{
    if (round == 0) {
        scenario_mark(ANNOT_MARK_BEGIN);
    }
    begin(round * 4 + STEP_RACE);
    for (unsigned long page = 0; page < opt.pages; page += opt.batch) {
        if (!scenario_skips()) {
            unsigned long left = opt.pages - page;

            page_out((unsigned)page, left < opt.batch ? left : opt.batch);
        }
    }
    wait_for_all(round * 4 + STEP_RACE);
    begin(round * 4 + STEP_CHECK);
    wait_for_all(round * 4 + STEP_CHECK);
    if (round + 1 == opt.rounds) {
        scenario_mark(ANNOT_MARK_END);
    }
}

static void make_memory(void)
{
    void *p = mmap(NULL, opt.pages * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror("reclaim_race: mmap");
        exit(1);
    }
    memory = p;
    fill_memory();
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: reclaim_race [-p PAGES] [-t THREADS] [-r ROUNDS] "
            "[-n ACCESSES]\n"
            "                    [-b PAGES]\n"
            "  -p  pages, default 8, at most 64\n"
            "  -t  threads that read and write them, default 3, at most 63\n"
            "  -r  how often the pages are paged out, default 1\n"
            "  -n  accesses of each thread in a round, default 32\n"
            "  -b  pages of one madvise call, default 1\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "p:t:r:n:b:h")) != -1) {
        switch (c) {
        case 'p':
            opt.pages = option_number("reclaim_race", 'p', optarg, 1);
            break;
        case 't':
            opt.accessors = option_number("reclaim_race", 't', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("reclaim_race", 'r', optarg, 0);
            break;
        case 'n':
            opt.accesses = option_number("reclaim_race", 'n', optarg, 0);
            break;
        case 'b':
            opt.batch = option_number("reclaim_race", 'b', optarg, 1);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (!accessors_fit()) {
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    bool fine;

    set_defaults();
    parse_options(argc, argv);
    make_memory();
    start_accessors(accessor_main);
    set_up(0);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        race(round);
        set_up(round + 1);
    }
    fine = accessors_were_fine();
    printf("reclaim_race: %lu pages, %lu threads, %lu rounds of %lu accesses: "
           "%s\n",
           opt.pages, opt.accessors, opt.rounds, opt.accesses,
           fine ? "ok" : "WRONG");
    return fine ? 0 : 1;
}
