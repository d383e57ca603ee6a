/* SPDX-License-Identifier: MIT */
/*
 * migrate_race: one thread moves a few pages from memory node to memory node,
 * while others read and write them. Small enough to be run thousands of times
 * in another order. Between two moves the mover may, as the machine chooses,
 * page them out, protect them from writing and allow it again, or fork a child
 * that looks at its copy.
 *
 *   word 0 of page p     (p + 1) << 32 | 1 + how often its owner wrote it
 *   all other words      (p + 1) << 32
 *
 * A page has one owner, the only one to write it; what anybody reads may never
 * be older than what he has read before, and the owner finds his last write at
 * the end. A child sees each page in one state, whatever is written meanwhile.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "memory.h"
#include "scenario.h"

#define MAX_PAGES 64
#define MAX_ACCESSORS 63
#define MPOL_F_MEMS_ALLOWED 4
#define MPOL_MF_MOVE_ALL 4

/* Codes of findings. */
enum finding {
    FOUND_OTHER_PAGE = 1, /* the word of another page */
    FOUND_OLDER = 2,      /* an older word than before */
    FOUND_LOST_WRITE = 3, /* not the owner's last word */
    FOUND_BODY = 4,       /* one of the words that nobody writes */
    FOUND_NOT_A_COPY = 5, /* the child's memory changed */
};

static const char *const finding_texts[] = {
    "nothing",
    "the word of another page",
    "an older word than before",
    "not its last write",
    "a wrong word that nobody writes",
    "not what the child saw before",
};

enum step { STEP_TOUCH = 1, STEP_RACE = 2, STEP_CHECK = 3 };

struct accessor {
    struct scenario_step step; /* the last one it has done */
    unsigned index;
    pthread_t thread;
    uint64_t seen[MAX_PAGES]; /* word 0 as last read; of its own, as written */
    /* The first finding. */
    enum finding found;
    unsigned found_page;
    uint64_t found_word;
} __attribute__((aligned(64)));

static struct {
    unsigned long pages, accessors, rounds, accesses, batch;
    bool plain, shared;
    unsigned cpus;
    bool crowded; /* threads share CPUs */
} opt = {.pages = 8, .accessors = 3, .rounds = 2, .accesses = 1000, .batch = 4};

static volatile uint64_t *memory; /* opt.pages pages */
static struct memory_move moves;
static struct scenario_step go; /* the step that may be done */
static struct accessor accessors[MAX_ACCESSORS];
static unsigned long moved;

/* Each access is a function: a place where the machine can look and stop. */
static __attribute__((noinline)) uint64_t word_load(const volatile uint64_t *p)
{
    return *p;
}

static __attribute__((noinline)) void word_store(volatile uint64_t *p,
                                                 uint64_t value)
{
    *p = value;
}

static inline volatile uint64_t *page_words(unsigned page)
{
    return memory + page * PAGE_WORDS;
}

static inline uint64_t page_name(unsigned page)
{
    return (uint64_t)(page + 1) << 32;
}

static inline bool is_name_of(uint64_t word, unsigned page)
{
    return word >> 32 == page + 1;
}

static __attribute__((noinline, cold)) void
found(struct accessor *a, enum finding what, unsigned page, uint64_t word)
{
    scenario_finding(what);
    if (a->found == 0) {
        a->found = what;
        a->found_page = page;
        a->found_word = word;
    }
}

static inline void access_read(struct accessor *a, unsigned page)
{
    uint64_t word = word_load(page_words(page));

    if (!is_name_of(word, page)) {
        found(a, FOUND_OTHER_PAGE, page, word);
    } else if (word < a->seen[page]) {
        found(a, FOUND_OLDER, page, word);
    } else {
        a->seen[page] = word;
    }
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

/* An accessor's own pages, after the race: its writes, and some of the rest. */
static void check_own(struct accessor *a)
{
    for (unsigned page = a->index; page < opt.pages;
         page += (unsigned)opt.accessors) {
        const volatile uint64_t *words = page_words(page);
        uint64_t word = word_load(words);

        if (word != a->seen[page]) {
            found(a,
                  is_name_of(word, page) ? FOUND_LOST_WRITE : FOUND_OTHER_PAGE,
                  page, word);
        }
        word = word_load(words + PAGE_WORDS - 1);
        if (word != page_name(page)) {
            found(a, FOUND_BODY, page, word);
        }
    }
}

static void *accessor_main(void *arg)
{
    struct accessor *a = arg;

    (void)pin_to_cpu((1 + a->index) % opt.cpus);
    for (unsigned page = 0; page < opt.pages; page++) {
        a->seen[page] = page_name(page) + 1;
    }
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

/* Lets the accessors do a step, or waits until they have. */
static void begin(uint32_t step)
{
    scenario_arrive(&go, step);
}

static void wait_for_all(uint32_t step)
{
    for (unsigned i = 0; i < opt.accessors; i++) {
        scenario_wait(&accessors[i].step, step, opt.crowded);
    }
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

    switch (opt.plain ? 0 : scenario_choose(4)) {
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
        return opt.shared ? -1 : start_child();
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
    memory = memory_map(opt.pages, 0, opt.shared ? MAP_SHARED : MAP_PRIVATE);
    for (unsigned page = 0; page < opt.pages; page++) {
        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            page_words(page)[i] = page_name(page) + (i == 0);
        }
    }
    memory_move_init(&moves, memory, opt.pages);
}

static void start_accessors(void)
{
    (void)pin_to_cpu(0); /* where it is refused, any CPU will do */
    for (unsigned i = 0; i < opt.accessors; i++) {
        int error;

        accessors[i].index = i;
        error = pthread_create(&accessors[i].thread, NULL, accessor_main,
                               &accessors[i]);
        if (error != 0) {
            fprintf(stderr, "migrate_race: thread %u: %s\n", i + 1,
                    strerror(error));
            exit(1);
        }
    }
}

/* All words of all pages, when nobody writes any more. */
static bool check_all(void)
{
    for (unsigned page = 0; page < opt.pages; page++) {
        const struct accessor *owner = &accessors[page % opt.accessors];

        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            uint64_t word = page_words(page)[i];
            uint64_t want = i == 0 ? owner->seen[page] : page_name(page);

            if (word != want) {
                scenario_finding(i == 0 ? FOUND_LOST_WRITE : FOUND_BODY);
                printf("migrate_race: page %u word %u is 0x%llx, not 0x%llx\n",
                       page, i, (unsigned long long)word,
                       (unsigned long long)want);
                return false;
            }
        }
    }
    return true;
}

static bool report(void)
{
    bool fine = true;

    for (unsigned i = 0; i < opt.accessors; i++) {
        const struct accessor *a = &accessors[i];

        if (a->found != 0) {
            fine = false;
            printf("migrate_race: thread %u, page %u: 0x%llx is %s (0x%llx)\n",
                   i + 1, a->found_page, (unsigned long long)a->found_word,
                   finding_texts[a->found],
                   (unsigned long long)a->seen[a->found_page]);
        }
    }
    return fine;
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
            opt.plain = true;
            break;
        case 's':
            opt.shared = true;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.pages > MAX_PAGES || opt.accessors > MAX_ACCESSORS ||
        opt.rounds > UINT32_MAX / 8) {
        usage(stderr);
        exit(2);
    }
    opt.cpus = cpus_allowed(); /* before anybody is pinned */
    opt.crowded = opt.accessors >= opt.cpus;
}

int main(int argc, char **argv)
{
    bool fine;

    parse_options(argc, argv);
    if (!two_nodes()) {
        printf("migrate_race: one memory node, nothing can move\n");
        return 0;
    }
    make_memory();
    start_accessors();
    for (uint32_t round = 0; round < opt.rounds; round++) {
        race(round);
    }
    for (unsigned i = 0; i < opt.accessors; i++) {
        pthread_join(accessors[i].thread, NULL);
    }
    fine = report();
    fine = check_all() && fine;
    printf("migrate_race: %lu pages, %lu threads, %lu rounds of %lu accesses, "
           "%lu moved: %s\n",
           opt.pages, opt.accessors, opt.rounds, opt.accesses, moved,
           fine ? "ok" : "WRONG");
    return fine ? 0 : 1;
}
