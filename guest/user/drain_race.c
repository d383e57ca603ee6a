/* SPDX-License-Identifier: MIT */
/*
 * drain_race: what must wait for a batch of TLB invalidations that somebody
 * else issued. A thread on CPU 0 pages clean pages out, whose invalidations
 * wait for the end of the batch, while one on CPU 2 keeps reading them. In
 * between a thread on CPU 1
 *
 *   without -m  takes the pages away with MADV_DONTNEED. When that has
 *               returned, everybody reads zeroes: it must complete what CPU 0
 *               has only issued, and its own DSB does not.
 *   with -m     moves the first thread to CPU 3. The batch ends there, with a
 *               DSB that completes nothing of CPU 0's: the context switch must
 *               have. The frames are then given to other pages.
 *
 * Every word of page p is p + 1 in the upper half; of a page that got a frame
 * of these, OTHER.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "scenario.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PAGE 4096UL
#define PAGE_WORDS (PAGE / 8)
#define MAX_PAGES 64
#define OTHER (0xeUL << 32)

enum finding {
    FOUND_STALE = 1, /* a page that MADV_DONTNEED took away */
    FOUND_OTHER = 2, /* the word of another page */
};

static const char *const finding_texts[] = {
    "nothing",
    "a page that was taken away",
    "the word of another page",
};

/* Steps of a round; the words of struct scenario_step hold round * 4 + step. */
enum step { STEP_TOUCH = 1, STEP_RACE = 2, STEP_OVER = 3 };

static struct {
    unsigned long pages, rounds;
    bool move;
    bool crowded; /* threads share CPUs */
} opt = {.pages = 8, .rounds = 1};

static volatile uint64_t *memory; /* opt.pages pages */
static volatile uint64_t *spare;  /* as many */
static pid_t main_tid;

/* How far each thread is. */
static struct scenario_step go, changer, reader;
static struct scenario_step taken; /* MADV_DONTNEED returned */
static struct scenario_step ended; /* main: its madvise returned */

static enum finding found;
static unsigned found_page;
static uint64_t found_word;

static __attribute__((noinline)) uint64_t word_load(const volatile uint64_t *p)
{
    return *p;
}

static uint64_t page_name(unsigned page)
{
    return (uint64_t)(page + 1) << 32;
}

static __attribute__((noinline, cold)) void tell(enum finding what,
                                                 unsigned page, uint64_t word)
{
    scenario_finding(what);
    if (found == 0) {
        found = what;
        found_page = page;
        found_word = word;
    }
}

/* gone: MADV_DONTNEED had returned before. */
static inline void look(unsigned page, bool gone)
{
    uint64_t word = word_load(memory + page * PAGE_WORDS);

    if (word == 0 && !opt.move) {
        return;
    }
    if (word != page_name(page)) {
        tell(FOUND_OTHER, page, word);
    } else if (gone) {
        tell(FOUND_STALE, page, word);
    }
}

static bool has_come(struct scenario_step *other, uint32_t step)
{
    return atomic_load_explicit(&other->at, memory_order_acquire) >= step;
}

static void *reader_main(void *arg)
{
    (void)pin_to_cpu(2);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        uint32_t base = round * 4;
        bool over;

        scenario_wait(&go, base + STEP_TOUCH, opt.crowded);
        for (unsigned page = 0; page < opt.pages; page++) {
            look(page, false);
        }
        scenario_arrive(&reader, base + STEP_TOUCH);
        scenario_wait(&go, base + STEP_RACE, opt.crowded);
        do {
            /* Looked for first: what is read after it must be new. */
            over = has_come(&ended, base + STEP_OVER);
            for (unsigned page = 0; page < opt.pages; page++) {
                look(page, has_come(&taken, base + STEP_RACE));
            }
        } while (!over);
        scenario_arrive(&reader, base + STEP_OVER);
    }
    return arg;
}

static void advise(volatile uint64_t *at, int advice)
{
    if (madvise((void *)(uintptr_t)at, opt.pages * PAGE, advice) != 0) {
        perror("drain_race: madvise");
        exit(1);
    }
}

static void *changer_main(void *arg)
{
    cpu_set_t set;

    (void)pin_to_cpu(1);
    CPU_ZERO(&set);
    CPU_SET(3, &set);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        scenario_wait(&go, round * 4 + STEP_RACE, opt.crowded);
        if (scenario_skips()) {
            ;
        } else if (opt.move) {
            (void)sched_setaffinity(main_tid, sizeof(set), &set);
        } else {
            advise(memory, MADV_DONTNEED);
            scenario_arrive(&taken, round * 4 + STEP_RACE);
        }
        scenario_arrive(&changer, round * 4 + STEP_OVER);
    }
    return arg;
}

/* Clean pages, in the swap cache and in the reader's TLB. */
static void set_up(uint32_t round)
{
    for (unsigned page = 0; page < opt.pages; page++) {
        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            memory[page * PAGE_WORDS + i] = page_name(page);
        }
    }
    advise(memory, MADV_PAGEOUT);
    for (unsigned page = 0; page < opt.pages; page++) {
        look(page, false);
    }
    scenario_arrive(&go, round * 4 + STEP_TOUCH);
    scenario_wait(&reader, round * 4 + STEP_TOUCH, opt.crowded);
}

static void race(uint32_t round)
{
    scenario_arrive(&go, round * 4 + STEP_RACE);
    advise(memory, MADV_PAGEOUT);
    for (unsigned page = 0; opt.move && page < opt.pages; page++) {
        spare[page * PAGE_WORDS] = OTHER;
    }
    scenario_arrive(&ended, round * 4 + STEP_OVER);
    scenario_wait(&reader, round * 4 + STEP_OVER, opt.crowded);
    scenario_wait(&changer, round * 4 + STEP_OVER, opt.crowded);
}

static volatile uint64_t *map_pages(void)
{
    void *p = mmap(NULL, opt.pages * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror("drain_race: mmap");
        exit(1);
    }
    return p;
}

static void start(pthread_t *thread, void *(*fn)(void *))
{
    int error = pthread_create(thread, NULL, fn, NULL);

    if (error != 0) {
        fprintf(stderr, "drain_race: thread: %s\n", strerror(error));
        exit(1);
    }
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: drain_race [-m] [-p PAGES] [-r ROUNDS]\n"
            "Pages are paged out while others read them and take them away.\n"
            "  -m  move the thread to another CPU instead; needs 4 CPUs\n"
            "  -p  pages, default 8, at most 64; up to 30 are one batch\n"
            "  -r  how often, default 1\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "mp:r:h")) != -1) {
        switch (c) {
        case 'm':
            opt.move = true;
            break;
        case 'p':
            opt.pages = option_number("drain_race", 'p', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("drain_race", 'r', optarg, 1);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.pages > MAX_PAGES || opt.rounds > UINT32_MAX / 8) {
        usage(stderr);
        exit(2);
    }
    opt.crowded = cpus_allowed() < 3;
    if (opt.move && cpus_allowed() < 4) {
        fprintf(stderr, "drain_race: -m needs 4 CPUs\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[2];

    parse_options(argc, argv);
    main_tid = (pid_t)syscall(SYS_gettid);
    memory = map_pages();
    spare = map_pages();
    start(&threads[0], reader_main);
    start(&threads[1], changer_main);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        (void)pin_to_cpu(0);
        set_up(round);
        if (round == 0) {
            scenario_mark(ANNOT_MARK_BEGIN);
        }
        race(round);
        if (round + 1 == opt.rounds) {
            scenario_mark(ANNOT_MARK_END);
        }
        advise(memory, MADV_DONTNEED);
        advise(spare, MADV_DONTNEED);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (found != 0) {
        printf("drain_race: page %u: 0x%llx is %s\n", found_page,
               (unsigned long long)found_word, finding_texts[found]);
    }
    printf("drain_race: %lu pages, %lu rounds: %s\n", opt.pages, opt.rounds,
           found == 0 ? "ok" : "WRONG");
    return found == 0 ? 0 : 1;
}
