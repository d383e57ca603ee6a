/* SPDX-License-Identifier: MIT */
/*
 * migrate_race: one thread moves a few pages from memory node to memory node,
 * while others read and write them. Small enough to be run thousands of times
 * in another order. Between two moves the mover may, as the machine chooses,
 * page them out, protect them from writing and allow it again, or fork a child
 * that looks at its copy.
 * A child sees each page in one state, whatever is written meanwhile.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "accessors.h"

#define MPOL_F_MEMS_ALLOWED 4
#define MPOL_MF_MOVE_ALL 4

static bool plain, shared; /* options -m and -s */
static struct memory_move moves;
static unsigned long moved;

static void set_defaults(void)
{
    opt.program = "migrate_race";
    opt.pages = 8;
    opt.accessors = 3;
    opt.rounds = 2;
    opt.accesses = 1000;
    opt.batch = 4;
}

/* Round and round over the pages; its own are written. */
static void accesses(struct accessor *a)
{
    unsigned page = a->index * (unsigned)(opt.pages / opt.accessors);

    for (unsigned long n = opt.accesses; n > 0; n--) {
        page %= (unsigned)opt.pages;
        if (page % opt.accessors == a->index) {
            word_store(page_words(page), ++a->seen[page]);
        } else {
            access_read(a, page);
        }
        page++;
    }
}

static void *accessor_main(void *arg)
{
    struct accessor *a = arg;

    accessor_begin(a);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        scenario_wait(&go, round * 4 + STEP_TOUCH, opt.crowded);
        for (unsigned page = 0; page < opt.pages; page++) {
            access_read(a, page);
        }
        scenario_arrive(&a->step, round * 4 + STEP_TOUCH);
        scenario_wait(&go, round * 4 + STEP_RACE, opt.crowded);
        accesses(a);
        scenario_arrive(&a->step, round * 4 + STEP_RACE);
        scenario_wait(&go, round * 4 + STEP_CHECK, opt.crowded);
        check_own(a);
        scenario_arrive(&a->step, round * 4 + STEP_CHECK);
    }
    return NULL;
}

/* --- what the mover does --- */

static void must(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void move_some(unsigned long first, int node)
{
    unsigned long left = opt.pages - first;
    unsigned long n = left < opt.batch ? left : opt.batch;

    for (unsigned long i = first; i < first + n; i++) {
        moves.nodes[i] = node;
        moves.status[i] = -1;
    }
    must(syscall(SYS_move_pages, 0, n, moves.addrs + first, moves.nodes + first,
                 moves.status + first, MPOL_MF_MOVE_ALL) >= 0,
         "migrate_race: move_pages");
    for (unsigned long i = first; i < first + n; i++) {
        moved += moves.status[i] == node;
    }
}

/* The exit status tells what it found. */
static int child_main(void)
{
    uint64_t first[MAX_PAGES];

    for (int look = 0; look < 2; look++) {
        for (unsigned page = 0; page < opt.pages; page++) {
            uint64_t word = word_load(page_words(page));

            if (!is_name_of(word, page)) {
                return FOUND_OTHER_PAGE;
            }
            if (look != 0 && word != first[page]) {
                return FOUND_NOT_A_COPY;
            }
            if (word_load(page_words(page) + PAGE_WORDS - 1) !=
                page_name(page)) {
                return FOUND_BODY;
            }
            first[page] = word;
        }
    }
    return 0;
}

static pid_t start_child(void)
{
    pid_t pid = fork();

    must(pid >= 0, "migrate_race: fork");
    if (pid == 0) {
        _exit(child_main());
    }
    return pid;
}

static void end_child(pid_t pid)
{
    int status;

    must(waitpid(pid, &status, 0) == pid, "migrate_race: waitpid");
    if (status != 0) {
        enum finding what = (enum finding)(status >> 8 & 7);

        scenario_finding(what);
        printf("migrate_race: the child ended with 0x%x: %s\n", status,
               finding_texts[what > FOUND_NOT_A_COPY ? 0 : what]);
        exit(1);
    }
}

/* One of the things that others must not notice. */
static pid_t something_else(unsigned long first)
{
    volatile uint64_t *at = page_words((unsigned)first);
    unsigned long n = opt.pages - first;

    switch (plain ? 0 : scenario_choose(4)) {
    case 1:
        must(memory_advise(at, n, MADV_PAGEOUT) == 0, "migrate_race: madvise");
        break;
    case 2:
        /* Nobody writes a page of the mover's: there is none. Reads go on. */
        must(mprotect((void *)(uintptr_t)at, n * PAGE,
                      PROT_READ | PROT_WRITE | PROT_EXEC) == 0 &&
                 mprotect((void *)(uintptr_t)at, n * PAGE,
                          PROT_READ | PROT_WRITE) == 0,
             "migrate_race: mprotect");
        break;
    case 3:
        return shared ? -1 : start_child();
    default:
        break;
    }
    return -1;
}

static void race(uint32_t round)
{
    int node = (round & 1) == 0;
    pid_t child = -1;

    begin(round * 4 + STEP_TOUCH);
    wait_for_all(round * 4 + STEP_TOUCH);
    if (round == 0) {
        scenario_mark(ANNOT_MARK_BEGIN);
    }
    begin(round * 4 + STEP_RACE);
    for (unsigned long page = 0; page < opt.pages; page += opt.batch) {
        if (child < 0) {
            child = something_else(page);
        }
        if (!scenario_skips()) {
            move_some(page, node);
        }
    }
    wait_for_all(round * 4 + STEP_RACE);
    begin(round * 4 + STEP_CHECK);
    wait_for_all(round * 4 + STEP_CHECK);
    if (child >= 0) {
        end_child(child);
    }
    if (round + 1 == opt.rounds) {
        scenario_mark(ANNOT_MARK_END);
    }
}

/* --- before and after --- */

static bool two_nodes(void)
{
    unsigned long nodes[16] = {0};

    /* Linux wants as many bits as it may have nodes. */
    return syscall(SYS_get_mempolicy, NULL, nodes, 64 * 16 + 1, NULL,
                   MPOL_F_MEMS_ALLOWED) == 0 &&
           (nodes[0] & 3) == 3;
}

static void make_memory(void)
{
    memory = memory_map(opt.pages, 0, shared ? MAP_SHARED : MAP_PRIVATE);
    fill_memory();
    memory_move_init(&moves, memory, opt.pages);
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: migrate_race [-p PAGES] [-t THREADS] [-r ROUNDS] "
            "[-n ACCESSES]\n"
            "                    [-b PAGES] [-m] [-s]\n"
            "Wants two memory nodes: shootdown run migrate_race "
            "--append numa=fake=2\n"
            "  -p  pages, default 8, at most 64\n"
            "  -t  threads that read and write them, default 3, at most 63\n"
            "  -r  how often the pages are moved, default 2\n"
            "  -n  accesses of each thread in a round, default 1000\n"
            "  -b  pages of one move_pages call, default 4\n"
            "  -m  only moves: no paging out, mprotect, fork\n"
            "  -s  shared memory, and no fork\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "p:t:r:n:b:msh")) != -1) {
        switch (c) {
        case 'p':
            opt.pages = option_number("migrate_race", 'p', optarg, 1);
            break;
        case 't':
            opt.accessors = option_number("migrate_race", 't', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("migrate_race", 'r', optarg, 1);
            break;
        case 'n':
            opt.accesses = option_number("migrate_race", 'n', optarg, 0);
            break;
        case 'b':
            opt.batch = option_number("migrate_race", 'b', optarg, 1);
            break;
        case 'm':
            plain = true;
            break;
        case 's':
            shared = true;
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
    if (!two_nodes()) {
        printf("migrate_race: one memory node, nothing can move\n");
        return 0;
    }
    make_memory();
    start_accessors(accessor_main);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        race(round);
    }
    fine = accessors_were_fine();
    printf("migrate_race: %lu pages, %lu threads, %lu rounds of %lu accesses, "
           "%lu moved: %s\n",
           opt.pages, opt.accessors, opt.rounds, opt.accesses, moved,
           fine ? "ok" : "WRONG");
    return fine ? 0 : 1;
}
