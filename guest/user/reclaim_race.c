/* SPDX-License-Identifier: MIT */
/*
 * reclaim_race: one thread pages a few pages out, one by one, while others
 * read and write them. Small enough to be run thousands of times in another
 * order. The race begins with every other page mapped clean on every CPU, so
 * that the kernel may batch its TLB flushes, and with the rest in swap, so that
 * frames given away too early find a new page soon.
 *
 *   word 0 of page p     (p + 1) << 32 | 1 + how often its owner wrote it
 *   all other words      (p + 1) << 32
 *
 * So swap keeps a page as two words, and one look tells a page from another,
 * from an older state, and from one that is being filled.
 * A page has one owner, the only one to write it; what anybody reads may never
 * be older than what he has read before, and the owner finds his last write at
 * the end.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "scenario.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PAGE 4096UL
#define PAGE_WORDS (PAGE / 8)
#define MAX_PAGES 64
#define MAX_ACCESSORS 63

/* Codes of findings. */
enum finding {
    FOUND_OTHER_PAGE = 1, /* the word of another page */
    FOUND_OLDER = 2,      /* an older word than before */
    FOUND_LOST_WRITE = 3, /* not the owner's last word */
    FOUND_BODY = 4,       /* one of the words that nobody writes */
};

static const char *const finding_texts[] = {
    "nothing",
    "the word of another page",
    "an older word than before",
    "not its last write",
    "a wrong word that nobody writes",
};

/* Steps of a round; the words of struct scenario_step hold round * 4 + step. */
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
    unsigned cpus;
    bool crowded; /* threads share CPUs */
} opt = {.pages = 8, .accessors = 3, .rounds = 1, .accesses = 32, .batch = 1};

static volatile uint64_t *memory; /* opt.pages pages */
static struct scenario_step go;   /* the step that may be done */
static struct accessor accessors[MAX_ACCESSORS];

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

/* Lets the accessors do a step. */
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
    for (unsigned page = 0; page < opt.pages; page++) {
        volatile uint64_t *words = page_words(page);

        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            words[i] = page_name(page) + (i == 0);
        }
    }
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
            fprintf(stderr, "reclaim_race: thread %u: %s\n", i + 1,
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
                printf("reclaim_race: page %u word %u is 0x%llx, not 0x%llx\n",
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
            printf("reclaim_race: thread %u, page %u: 0x%llx is %s (0x%llx)\n",
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
    make_memory();
    start_accessors();
    set_up(0);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        race(round);
        set_up(round + 1);
    }
    for (unsigned i = 0; i < opt.accessors; i++) {
        pthread_join(accessors[i].thread, NULL);
    }
    fine = report();
    fine = check_all() && fine;
    printf("reclaim_race: %lu pages, %lu threads, %lu rounds of %lu accesses: "
           "%s\n",
           opt.pages, opt.accessors, opt.rounds, opt.accesses,
           fine ? "ok" : "WRONG");
    return fine ? 0 : 1;
}
