/* SPDX-License-Identifier: MIT */
/*
 * tlb_flush: threads of one program each change and give back mappings of their
 * own, again and again: what flushes TLBs in ordinary programs. A round of a
 * thread, on P pages with a page table of their own, is
 *
 *   write all; mprotect(PROT_READ)                  one flush
 *   read all; mprotect(PROT_READ | PROT_WRITE)      one flush
 *   write all; madvise(MADV_DONTNEED)               one flush
 *   find zeroes, and write: the zero page goes      one flush a page
 *   munmap: the pages, then their page table        two flushes
 *   mmap at the same place
 *
 * and where another thread's flush is still due, a call flushes once more.
 * Contents are checked each time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "counts.h"
#include "memory.h"

#define MAX_THREADS 511

static struct {
    unsigned long threads, rounds, pages;
} opt = {.threads = 0, .rounds = 50, .pages = 16};

struct worker {
    pthread_t thread;
    unsigned index;
    volatile uint64_t *buf;
    unsigned long wrong;
};

static atomic_uint ready, done;
static atomic_bool go, leave;

static void must(bool good, const char *what)
{
    if (!good) {
        memory_die(what);
    }
}

static void one_round(struct worker *w, unsigned long round)
{
    void *at = (void *)(uintptr_t)w->buf;
    size_t size = opt.pages * PAGE;

    memory_write(w->buf, opt.pages, round);
    must(mprotect(at, size, PROT_READ) == 0, "tlb_flush: mprotect");
    w->wrong += memory_check(w->buf, opt.pages, round);
    must(mprotect(at, size, PROT_READ | PROT_WRITE) == 0,
         "tlb_flush: mprotect");
    memory_write(w->buf, opt.pages, round + 1);
    w->wrong += memory_check(w->buf, opt.pages, round + 1);
    must(madvise(at, size, MADV_DONTNEED) == 0, "tlb_flush: madvise");
    for (unsigned long i = 0; i < opt.pages; i++) {
        w->wrong += w->buf[i * PAGE_WORDS] != 0;
    }
    memory_write(w->buf, opt.pages, round + 2);
    w->wrong += memory_check(w->buf, opt.pages, round + 2);
    must(munmap(at, size) == 0, "tlb_flush: munmap");
    must(mmap(at, size, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
         "tlb_flush: mmap");
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;

    (void)pin_to_cpu(w->index % cpus_allowed());
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&go)) {
        sched_yield();
    }
    for (unsigned long round = 0; round < opt.rounds; round++) {
        one_round(w, round);
    }
    atomic_fetch_add(&done, 1);
    while (!atomic_load(&leave)) { /* its stack goes after the counting */
        sched_yield();
    }
    return NULL;
}

static void usage(FILE *to)
{
    fprintf(to, "usage: tlb_flush [-t THREADS] [-r ROUNDS] [-p PAGES]\n"
                "  -t  threads, default one a CPU\n"
                "  -r  rounds of each, default 50\n"
                "  -p  pages of each, default 16\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "t:r:p:h")) != -1) {
        switch (c) {
        case 't':
            opt.threads = option_number("tlb_flush", 't', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("tlb_flush", 'r', optarg, 1);
            break;
        case 'p':
            opt.pages = option_number("tlb_flush", 'p', optarg, 1);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.threads == 0) {
        opt.threads = cpus_allowed();
    }
    if (opt.threads > MAX_THREADS) {
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct worker workers[MAX_THREADS];
    struct counts_window w;
    unsigned long wrong = 0;

    parse_options(argc, argv);
    /* Keeps the tables above those of the buffers. */
    memory_write(memory_map(1, 0, MAP_PRIVATE), 1, 0);
    for (unsigned i = 0; i < opt.threads; i++) {
        workers[i].index = i;
        workers[i].buf = memory_map(opt.pages, 0, MAP_PRIVATE);
        must(pthread_create(&workers[i].thread, NULL, worker_main,
                            &workers[i]) == 0,
             "tlb_flush: pthread_create");
    }
    while (atomic_load(&ready) < opt.threads) {
        sched_yield();
    }
    counts_begin(&w);
    atomic_store(&go, true);
    while (atomic_load(&done) < opt.threads) {
        sched_yield();
    }
    counts_end(&w);
    atomic_store(&leave, true);
    for (unsigned i = 0; i < opt.threads; i++) {
        pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
    }
    counts_print("tlb_flush", &w);
    printf("tlb_flush: %lu threads, %lu rounds of %lu pages: %s\n", opt.threads,
           opt.rounds, opt.pages, wrong == 0 ? "all as written" : "LOST DATA");
    return wrong == 0 ? 0 : 1;
}
