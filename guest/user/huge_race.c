/* SPDX-License-Identifier: MIT */
/*
 * huge_race: one thread makes and splits 2 MiB blocks, by every call that does,
 * while others read and write their pages. Small enough to be run thousands of
 * times in another order.
 *
 * Of each block a few pages are used. Word 0 of such a page is its name and is
 * never written again; word 1 + t is a number that only thread t writes, one
 * more each time. What anybody reads is the page's own name, and a number that
 * is not below one he has seen; at the end each number is its writer's last.
 * A second stretch of blocks is the first thread's own: it is moved, thrown
 * away and lazily freed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "scenario.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PAGE 4096UL
#define BLOCK (2UL << 20)
#define SLOTS 8 /* pages of a block that are used */
#define MAX_BLOCKS 8
#define MAX_WRITERS 31
#define RW (PROT_READ | PROT_WRITE)

/* Codes of findings. */
enum finding {
    FOUND_NAME = 1,       /* the name of another page */
    FOUND_OLDER = 2,      /* a smaller number than before */
    FOUND_LOST_WRITE = 3, /* not its writer's last number */
    FOUND_CHILD = 4,      /* a child's copy changed, or changed the parent's */
    FOUND_OWN = 5,        /* the first thread's own block */
};

struct writer {
    struct scenario_step step;
    unsigned index;
    pthread_t thread;
    uint64_t written[MAX_BLOCKS * SLOTS]; /* its own numbers */
    uint64_t seen[MAX_BLOCKS * SLOTS];    /* its neighbour's */
} __attribute__((aligned(64)));

static struct {
    unsigned long blocks, writers, rounds, accesses;
    unsigned cpus;
    bool crowded;
} opt = {.blocks = 1, .writers = 3, .rounds = 1, .accesses = 64};

static char *shared_blocks, *own, *spare; /* block-aligned */
static struct scenario_step go;
static struct writer writers[MAX_WRITERS];
static _Atomic unsigned findings;

static __attribute__((noinline)) uint64_t word_load(const volatile uint64_t *p)
{
    return *p;
}

static __attribute__((noinline)) void word_store(volatile uint64_t *p,
                                                 uint64_t value)
{
    *p = value;
}

static __attribute__((noinline, cold)) void found(enum finding what,
                                                  unsigned page, uint64_t word)
{
    scenario_finding(what);
    if (atomic_fetch_add(&findings, 1) == 0) {
        fprintf(stderr, "huge_race: finding %u, page %u: 0x%llx\n",
                (unsigned)what, page, (unsigned long long)word);
    }
}

/* Spread over the block, the first and the last page among them. */
static unsigned long slot_offset(unsigned page)
{
    unsigned slot = page % SLOTS;

    return page / SLOTS * BLOCK + slot * 73 % 512 * PAGE;
}

static volatile uint64_t *words_of(unsigned page)
{
    return (volatile uint64_t *)(shared_blocks + slot_offset(page));
}

static uint64_t name_of(unsigned page)
{
    return 0xb10c000000000000ULL | page;
}

static void access_page(struct writer *w, unsigned page)
{
    volatile uint64_t *words = words_of(page);
    unsigned other = (w->index + 1) % (unsigned)opt.writers;
    uint64_t word = word_load(words);

    if (word != name_of(page)) {
        found(FOUND_NAME, page, word);
    }
    word = word_load(&words[1 + other]);
    if (word < w->seen[page]) {
        found(FOUND_OLDER, page, word);
    }
    w->seen[page] = word;
    word = word_load(&words[1 + w->index]);
    if (word != w->written[page]) {
        found(FOUND_LOST_WRITE, page, word);
    }
    word_store(&words[1 + w->index], ++w->written[page]);
}

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    unsigned pages = (unsigned)opt.blocks * SLOTS;

    (void)pin_to_cpu((1 + w->index) % opt.cpus);
    for (uint32_t round = 0; round < opt.rounds; round++) {
        scenario_wait(&go, 2 * round + 1, opt.crowded);
        memset(w->written, 0, sizeof(w->written));
        memset(w->seen, 0, sizeof(w->seen));
        for (unsigned long n = 0; n < opt.accesses; n++) {
            access_page(w, (unsigned)(n * 3 + w->index) % pages);
        }
        scenario_arrive(&w->step, 2 * round + 1);
    }
    return NULL;
}

/* --- what the first thread does --- */

static void must(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void advise(void *p, size_t len, int advice)
{
    must(madvise(p, len, advice) == 0, "huge_race: madvise");
}

static void protect(void *p, size_t len, int prot)
{
    must(mprotect(p, len, prot) == 0, "huge_race: mprotect");
}

/* The child sees names and numbers stand still, and writes for itself. */
static void fork_and_look(unsigned page)
{
    volatile uint64_t *words = words_of(page);
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        uint64_t before = word_load(&words[1]);
        bool fine = word_load(words) == name_of(page);

        word_store(&words[40], 1);
        fine = fine && word_load(&words[1]) == before &&
               word_load(&words[40]) == 1;
        _exit(fine ? 0 : 1);
    }
    must(pid > 0 && waitpid(pid, &status, 0) == pid, "huge_race: fork");
    if (status != 0 || word_load(&words[40]) != 0) {
        found(FOUND_CHILD, page, (uint64_t)status);
    }
}

static void check_own(unsigned long offset, uint64_t want)
{
    uint64_t word = word_load((uint64_t *)(own + offset));

    if (word != want) {
        found(FOUND_OWN, (unsigned)(offset / PAGE), word);
    }
}

/* A block of our own there and back, away, and half of it lazily free. */
static void use_own(uint64_t round)
{
    char *from = own;

    check_own(511 * PAGE, 0);
    for (unsigned page = 0; page < 512; page += 37) {
        word_store((uint64_t *)(own + page * PAGE), round + page);
    }
    own = mremap(own, BLOCK, BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED, spare);
    must(own == spare, "huge_race: mremap");
    spare = from;
    for (unsigned page = 0; page < 512; page += 37) {
        check_own(page * PAGE, round + page);
    }
    advise(own, 256 * PAGE, MADV_FREE);
    word_store((uint64_t *)own, round + 1);
    advise(own, BLOCK, MADV_PAGEOUT);
    check_own(0, round + 1);
    check_own(511 * PAGE, 0);
    check_own(13 * 37 * PAGE, round + 13 * 37);
    advise(own, BLOCK, MADV_DONTNEED);
    check_own(0, 0);
    check_own(13 * 37 * PAGE, 0);
}

static void operation(unsigned long op, unsigned long n)
{
    unsigned page = (unsigned)(n * 5) % ((unsigned)opt.blocks * SLOTS);
    char *block = shared_blocks + page / SLOTS * BLOCK;
    char *part = shared_blocks + slot_offset(page);

    switch (op) {
    case 0:
        advise(part, PAGE, MADV_PAGEOUT);
        break;
    case 1:
        fork_and_look(page);
        break;
    case 2:
        advise(block, BLOCK, MADV_COLD);
        break;
    case 3:
        protect(part, PAGE, RW | PROT_EXEC);
        protect(part, PAGE, RW);
        break;
    case 4:
        protect(block, BLOCK, PROT_READ | PROT_WRITE | PROT_EXEC);
        protect(block, BLOCK, RW);
        break;
    case 5:
        advise(block + BLOCK / 2, BLOCK / 2, MADV_NOHUGEPAGE);
        advise(block + BLOCK / 2, BLOCK / 2, MADV_HUGEPAGE);
        break;
    case 6:
        use_own(n << 20 | 1 << 16);
        break;
    default:
        advise(block, BLOCK, MADV_PAGEOUT);
        break;
    }
}

#define OPERATIONS 8

static void race(uint32_t round)
{
    scenario_arrive(&go, 2 * round + 1);
    for (unsigned long n = 0; n < OPERATIONS; n++) {
        if (!scenario_skips()) {
            operation((n + round + scenario_choose(OPERATIONS)) % OPERATIONS,
                      n + round);
        }
    }
    for (unsigned i = 0; i < opt.writers; i++) {
        scenario_wait(&writers[i].step, 2 * round + 1, opt.crowded);
    }
}

/* Fresh blocks, whatever the round before made of them. */
static void set_up(void)
{
    advise(shared_blocks, opt.blocks * BLOCK, MADV_DONTNEED);
    must(munmap(shared_blocks, opt.blocks * BLOCK) == 0, "huge_race: munmap");
    must(mmap(shared_blocks, opt.blocks * BLOCK, RW,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == shared_blocks,
         "huge_race: mmap");
    advise(shared_blocks, opt.blocks * BLOCK, MADV_HUGEPAGE);
    for (unsigned page = 0; page < opt.blocks * SLOTS; page++) {
        words_of(page)[0] = name_of(page);
    }
}

static void check_all(void)
{
    for (unsigned page = 0; page < opt.blocks * SLOTS; page++) {
        for (unsigned i = 0; i < opt.writers; i++) {
            uint64_t word = words_of(page)[1 + i];

            if (word != writers[i].written[page]) {
                found(FOUND_LOST_WRITE, page, word);
            }
        }
    }
}

static void make_memory(void)
{
    unsigned long n = opt.blocks + 3;
    char *p = mmap(NULL, n * BLOCK, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(p != MAP_FAILED, "huge_race: mmap");
    p = (char *)(((uintptr_t)p + BLOCK - 1) & ~(BLOCK - 1));
    shared_blocks = p;
    own = p + opt.blocks * BLOCK;
    spare = own + BLOCK;
    /* Where blocks are not known, everything goes on with pages. */
    (void)madvise(own, 2 * BLOCK, MADV_HUGEPAGE);
}

static void start_writers(void)
{
    (void)pin_to_cpu(0);
    for (unsigned i = 0; i < opt.writers; i++) {
        writers[i].index = i;
        errno =
            pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]);
        must(errno == 0, "huge_race: thread");
    }
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: huge_race [-b BLOCKS] [-t THREADS] [-r ROUNDS] "
            "[-n ACCESSES]\n"
            "  -b  blocks, default 1, at most 8\n"
            "  -t  threads that read and write them, default 3, at most 31\n"
            "  -r  how often the blocks are made and split, default 1\n"
            "  -n  accesses of each thread in a round, default 64\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "b:t:r:n:h")) != -1) {
        switch (c) {
        case 'b':
            opt.blocks = option_number("huge_race", 'b', optarg, 1);
            break;
        case 't':
            opt.writers = option_number("huge_race", 't', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("huge_race", 'r', optarg, 0);
            break;
        case 'n':
            opt.accesses = option_number("huge_race", 'n', optarg, 0);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (optind != argc || opt.blocks > MAX_BLOCKS ||
        opt.writers > MAX_WRITERS || opt.rounds > UINT32_MAX / 4) {
        usage(stderr);
        exit(2);
    }
    opt.cpus = cpus_allowed(); /* before anybody is pinned */
    opt.crowded = opt.writers >= opt.cpus;
}

int main(int argc, char **argv)
{
    parse_options(argc, argv);
    make_memory();
    start_writers();
    for (uint32_t round = 0; round < opt.rounds; round++) {
        set_up();
        if (round == 0) {
            scenario_mark(ANNOT_MARK_BEGIN);
        }
        race(round);
        if (round + 1 == opt.rounds) {
            scenario_mark(ANNOT_MARK_END);
        }
        check_all();
    }
    for (unsigned i = 0; i < opt.writers; i++) {
        pthread_join(writers[i].thread, NULL);
    }
    printf("huge_race: %lu blocks, %lu threads, %lu rounds of %lu accesses: "
           "%s\n",
           opt.blocks, opt.writers, opt.rounds, opt.accesses,
           findings == 0 ? "ok" : "WRONG");
    return findings == 0 ? 0 : 1;
}
