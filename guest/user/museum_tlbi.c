/* SPDX-License-Identifier: MIT */
/*
 * museum_tlbi: a thread on CPU 1 reads pages, and has their translations and
 * tables cached, while one on CPU 0 takes them away by one call. What does the
 * TLB invalidation of that call name, and who waits for it how?
 *
 *   -o dontneed  drops the pages
 *   -o protect   makes them read only
 *   -o unmap     unmaps them, and with them, as nothing else is near, the
 *                table that leads to them
 *
 * With -w the thread on CPU 1 has the kernel walk the tables meanwhile: it
 * waits at a futex there, whose word never is what it says (fast_walk=on).
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>

#include "memory.h"
#include "scenario.h"

#define MAX_PAGES PMD_PAGES

enum operation { OP_DONTNEED, OP_PROTECT, OP_UNMAP, OPS };

static const char *const operations[OPS] = {"dontneed", "protect", "unmap"};

enum step { STEP_READY = 1, STEP_GO = 2, STEP_OVER = 3 };

static struct {
    unsigned long pages;
    enum operation operation;
    bool walks;
} opt = {.pages = 2};

static volatile uint64_t *memory;
static struct scenario_step changer, reader;
static uint64_t sum;

static __attribute__((noinline)) uint64_t word_load(const volatile uint64_t *p)
{
    return *p;
}

static void look(void)
{
    for (unsigned long page = 0; page < opt.pages; page++) {
        sum += word_load(memory + page * PAGE_WORDS);
    }
}

static void *reader_main(void *arg)
{
    (void)pin_to_cpu(1);
    look();
    scenario_arrive(&reader, STEP_READY);
    scenario_wait(&changer, STEP_GO, 0);
    while (opt.walks && atomic_load(&changer.at) < STEP_OVER) {
        (void)syscall(SYS_futex, memory, FUTEX_WAIT, 0, NULL, NULL, 0);
    }
    /* It is at EL0 with the root loaded: that is enough. */
    scenario_wait(&changer, STEP_OVER, 0);
    scenario_arrive(&reader, STEP_OVER);
    return arg;
}

static void change(void)
{
    void *at = (void *)(uintptr_t)memory;
    size_t size = opt.pages * PAGE;
    int error;

    switch (opt.operation) {
    case OP_PROTECT:
        error = mprotect(at, size, PROT_READ);
        break;
    case OP_UNMAP:
        error = munmap(at, size);
        break;
    default:
        error = madvise(at, size, MADV_DONTNEED);
    }
    if (error != 0) {
        perror("museum_tlbi: the change");
        exit(1);
    }
}

static void usage(FILE *to)
{
    fprintf(to, "usage: museum_tlbi [-o OPERATION] [-p PAGES] [-w]\n"
                "One CPU takes pages away that another one has cached.\n"
                "  -o  dontneed (default), protect or unmap\n"
                "  -p  pages, default 2, at most 512\n"
                "  -w  the other one waits at a futex in the first page\n");
}

static bool parse_operation(const char *text)
{
    for (unsigned i = 0; i < OPS; i++) {
        if (strcmp(text, operations[i]) == 0) {
            opt.operation = (enum operation)i;
            return true;
        }
    }
    return false;
}

static void parse_options(int argc, char **argv)
{
    bool good = true;
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "o:p:wh")) != -1) {
        switch (c) {
        case 'o':
            good = good && parse_operation(optarg);
            break;
        case 'p':
            opt.pages = option_number("museum_tlbi", 'p', optarg, 1);
            break;
        case 'w':
            opt.walks = true;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (!good || opt.pages > MAX_PAGES) {
        usage(stderr);
        exit(2);
    }
    if (cpus_allowed() < 2) {
        fprintf(stderr, "museum_tlbi: needs 2 CPUs\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int error;

    parse_options(argc, argv);
    (void)pin_to_cpu(0);
    memory = memory_map(opt.pages, 0, MAP_PRIVATE);
    memory_write(memory, opt.pages, 1);
    error = pthread_create(&thread, NULL, reader_main, NULL);
    if (error != 0) {
        fprintf(stderr, "museum_tlbi: thread: %s\n", strerror(error));
        return 1;
    }
    scenario_wait(&reader, STEP_READY, 0);
    scenario_mark(ANNOT_MARK_BEGIN);
    scenario_arrive(&changer, STEP_GO);
    change();
    scenario_arrive(&changer, STEP_OVER);
    scenario_wait(&reader, STEP_OVER, 0);
    scenario_mark(ANNOT_MARK_END);
    pthread_join(thread, NULL);
    printf("museum_tlbi: %s of %lu pages: ok\n", operations[opt.operation],
           opt.pages);
    return 0;
}
