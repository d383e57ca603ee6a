/* SPDX-License-Identifier: MIT */
/*
 * What the races of accessors share: a few pages, threads that read and write
 * them while the first thread does something to the pages, and the proof that
 * nobody saw anything wrong.
 *
 *   word 0 of page p     (p + 1) << 32 | 1 + how often its owner wrote it
 *   all other words      (p + 1) << 32
 *
 * So swap keeps a page as two words, and one look tells a page from another,
 * from an older state, and from one that is being filled.
 * A page has one owner, the only one to write it; what anybody reads may never
 * be older than what he has read before, and the owner finds his last write at
 * the end.
 *
 * A round has three steps, TOUCH, RACE and CHECK, which the first thread begins
 * and the others follow; see scenario_wait().
 */
#ifndef USER_ACCESSORS_H
#define USER_ACCESSORS_H

#include <pthread.h>
#include <stdbool.h>

#include "memory.h"
#include "scenario.h"

#define MAX_PAGES 64
#define MAX_ACCESSORS 63

/* Codes of findings. */
enum finding {
    FOUND_OTHER_PAGE = 1, /* the word of another page */
    FOUND_OLDER = 2,      /* an older word than before */
    FOUND_LOST_WRITE = 3, /* not the owner's last word */
    FOUND_BODY = 4,       /* one of the words that nobody writes */
    FOUND_NOT_A_COPY = 5, /* a child's memory changed */
};

static const char *const finding_texts[] = {
    "nothing",
    "the word of another page",
    "an older word than before",
    "not its last write",
    "a wrong word that nobody writes",
    "not what the child saw before",
};

/* The words of struct scenario_step hold round * 4 + step. */
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

/* What both kinds have as options; the program sets it before it starts. */
static struct {
    const char *program;
    unsigned long pages, accessors, rounds, accesses, batch;
    unsigned cpus;
    bool crowded; /* threads share CPUs */
} opt;

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

/* An accessor's own pages, after the race: its writes, and some of the rest. */
static inline void check_own(struct accessor *a)
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

/* What a new accessor knows, on its CPU. */
static inline void accessor_begin(struct accessor *a)
{
    (void)pin_to_cpu((1 + a->index) % opt.cpus);
    for (unsigned page = 0; page < opt.pages; page++) {
        a->seen[page] = page_name(page) + 1;
    }
}

/* Lets the accessors do a step. */
static inline void begin(uint32_t step)
{
    scenario_arrive(&go, step);
}

static inline void wait_for_all(uint32_t step)
{
    for (unsigned i = 0; i < opt.accessors; i++) {
        scenario_wait(&accessors[i].step, step, opt.crowded);
    }
}

/* --- before and after --- */

/* Every word of every page, the first time. */
static inline void fill_memory(void)
{
    for (unsigned page = 0; page < opt.pages; page++) {
        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            page_words(page)[i] = page_name(page) + (i == 0);
        }
    }
}

/* Each runs main(its struct accessor). */
static inline void start_accessors(void *(*main_of)(void *))
{
    (void)pin_to_cpu(0); /* where it is refused, any CPU will do */
    for (unsigned i = 0; i < opt.accessors; i++) {
        int error;

        accessors[i].index = i;
        error =
            pthread_create(&accessors[i].thread, NULL, main_of, &accessors[i]);
        if (error != 0) {
            fprintf(stderr, "%s: thread %u: %s\n", opt.program, i + 1,
                    strerror(error));
            exit(1);
        }
    }
}

static inline void join_accessors(void)
{
    for (unsigned i = 0; i < opt.accessors; i++) {
        pthread_join(accessors[i].thread, NULL);
    }
}

/* All words of all pages, when nobody writes any more. */
static inline bool check_all(void)
{
    for (unsigned page = 0; page < opt.pages; page++) {
        const struct accessor *owner = &accessors[page % opt.accessors];

        for (unsigned i = 0; i < PAGE_WORDS; i++) {
            uint64_t word = page_words(page)[i];
            uint64_t want = i == 0 ? owner->seen[page] : page_name(page);

            if (word != want) {
                scenario_finding(i == 0 ? FOUND_LOST_WRITE : FOUND_BODY);
                printf("%s: page %u word %u is 0x%llx, not 0x%llx\n",
                       opt.program, page, i, (unsigned long long)word,
                       (unsigned long long)want);
                return false;
            }
        }
    }
    return true;
}

static inline bool report(void)
{
    bool fine = true;

    for (unsigned i = 0; i < opt.accessors; i++) {
        const struct accessor *a = &accessors[i];

        if (a->found != 0) {
            fine = false;
            printf("%s: thread %u, page %u: 0x%llx is %s (0x%llx)\n",
                   opt.program, i + 1, a->found_page,
                   (unsigned long long)a->found_word, finding_texts[a->found],
                   (unsigned long long)a->seen[a->found_page]);
        }
    }
    return fine;
}

/* Joins them and tells what was found: whether all is fine. */
static inline bool accessors_were_fine(void)
{
    bool fine;

    join_accessors();
    fine = report();
    return check_all() && fine;
}

/* After the options: false where they are too many. */
static inline bool accessors_fit(void)
{
    opt.cpus = cpus_allowed(); /* before anybody is pinned */
    opt.crowded = opt.accessors >= opt.cpus;
    return opt.pages <= MAX_PAGES && opt.accessors <= MAX_ACCESSORS &&
           opt.rounds <= UINT32_MAX / 8;
}

#endif
