/* SPDX-License-Identifier: MIT */
/*
 * What race_mix.c (processes, threads, the report), race_thread.c (what a
 * thread does) and race_small.c (the same as a scenario) share.
 *
 * A page is in one of these states, kept apart from its contents:
 *
 *   ZERO   never written since it was mapped or given away: all words are 0
 *   DATA   word i is race_word(key, i), key made of owner, page and sequence
 *   FREED  was DATA until MADV_FREE: any tail of it may have become 0
 */
#ifndef USER_RACE_MIX_H
#define USER_RACE_MIX_H

#include "memory.h"
#include "scenario.h"

enum race_page_kind { RACE_ZERO, RACE_DATA, RACE_FREED };

struct race_page {
    uint32_t sequence;
    uint8_t kind;
};

/* Findings: codes of SYS_SD_FINDING. */
enum race_finding {
    RACE_FOUND_WORD = 1,   /* a private page holds a wrong word */
    RACE_FOUND_SHARED = 2, /* a shared page does */
    RACE_FOUND_COPY = 3,   /* a child's copy does */
    RACE_FOUND_EXEC = 4,   /* the executed program's pages do */
    RACE_FOUND_DEATH = 5,  /* a process died */
    RACE_FOUND_CALL = 6,   /* a system call failed that must not */
    RACE_FOUND_LEAK = 7,   /* other pages are owned than before */
};

/* A mapping of a thread, at one of its two homes. */
struct race_slot {
    volatile uint64_t *home[2];
    unsigned at; /* home[at] is where it is */
    unsigned pages;
    struct race_page *states;
    bool used; /* by an operation; with -k the others are not checked */
};

/*
 * Pages that several threads use. Whoever looks into a page holds it, and what
 * it must contain is kept apart: sequence << 1 | held. What does not change
 * contents - reclaim, migration - is done by anybody at any time.
 */
struct race_pool {
    volatile uint64_t *memory;
    _Atomic uint32_t *truth;
    unsigned pages, owner;
};

/* Shared by all processes; truth[] is the machine-wide pool's. */
struct race_board {
    _Atomic uint32_t go, stop;
    _Atomic uint32_t ready, done, over; /* of race_small.c */
    _Atomic uint32_t findings;          /* of all processes */
    _Atomic uint64_t operations;
    _Atomic uint64_t refused; /* calls answered ENOMEM or EAGAIN */
    _Atomic uint64_t forks, execs;
    _Atomic uint32_t truth[];
};

#define RACE_OWNER_ALL 4000
#define RACE_OWNER_TEAM 3000 /* and the process's number */

#define RACE_SLOTS 4
#define RACE_CHILDREN 2

struct race_thread {
    pthread_t thread;
    unsigned id; /* over all processes */
    uint64_t random;
    struct race_slot slots[RACE_SLOTS];
    uint32_t sequence;
    pid_t children[RACE_CHILDREN];
    bool is_child; /* a copy made by fork: what it finds is COPY */
};

struct race_options {
    unsigned long processes, threads, pages, shared_pages;
    unsigned long rounds, seconds, seed, limit_pages;
    bool choose, calm, small;
    unsigned stride; /* of a page, one word in so many is used */
    unsigned spread; /* of a big slot, one page in so many is used */
    unsigned visits; /* of pool pages in a row, at most */
};

extern struct race_options race_opt;
extern struct race_board *race_board;
extern struct race_pool race_all;  /* mapped by all processes */
extern struct race_pool race_team; /* private memory of this process */
extern char race_self[256];        /* this program's path */
extern unsigned race_cpus, race_nodes;

#define RACE_GROUP "/race"

/* One finding: told to the machine, counted, printed once a process. */
void race_found(enum race_finding what, unsigned thread, unsigned long page,
                uint64_t word, uint64_t want);

void race_thread_init(struct race_thread *t, unsigned id);
void race_thread_run(struct race_thread *t);
void race_thread_end(struct race_thread *t);

/* race_small.c, option -k: all of a process, set up and raced as a scenario. */
void race_small_options(void);
void race_small_process(struct race_thread *threads);

/* What the program does when it was executed by itself; its exit status. */
int race_exec_child(unsigned long seed);

static inline uint64_t race_word(uint64_t key, unsigned i)
{
    /* Every 4th page is the same word all over, which swap keeps cheaply. */
    return (key & 3) == 0 ? key : key + i * 0x9e3779b97f4a7c15ULL;
}

static inline uint64_t race_key(unsigned owner, unsigned long page,
                                uint32_t sequence)
{
    return ((uint64_t)(owner + 1) << 52 | (uint64_t)page << 32 | sequence) |
           1 << 31;
}

static inline uint64_t race_random(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

#endif
