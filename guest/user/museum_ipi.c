/* SPDX-License-Identifier: MIT */
/*
 * museum_ipi: a CPU switches to an address space while another one takes a
 * page of it away. The thread on CPU 1 has read the pages and waits in the
 * queue of that CPU, where another process runs. At the beginning of the race
 * that process gives way, and the thread on CPU 0 drops the pages: is CPU 1
 * asked, or does it find out for itself?
 *
 *   with -n  the thread has never been on CPU 1: it is moved there.
 *   with -u  the pages go with their table, and the thread gives way to the
 *            other process meanwhile: is CPU 1 asked until it has its root?
 *
 * For what a CPU must do first, and what last, when it loads a root.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "memory.h"
#include "scenario.h"
#include "shared.h"

#define MAX_PAGES 64

enum step { STEP_READY = 1, STEP_GO = 2, STEP_OVER = 3 };

static struct {
    unsigned long pages;
    bool new_cpu, unmap;
} opt = {.pages = 1};

/* In memory that both processes share; each word has one writer. */
static struct {
    struct scenario_step main, reader, other;
} * steps;

static volatile uint64_t *memory;
static _Atomic pid_t reader_tid;
static unsigned wrong;

static bool has_come(struct scenario_step *other, uint32_t step)
{
    return atomic_load_explicit(&other->at, memory_order_acquire) >= step;
}

static __attribute__((noinline)) uint64_t word_load(const volatile uint64_t *p)
{
    return *p;
}

static void look(bool gone)
{
    for (unsigned long page = 0; page < opt.pages; page++) {
        uint64_t word = word_load(memory + page * PAGE_WORDS);

        wrong += word != (gone ? 0 : page + 1);
    }
}

static void *reader_main(void *arg)
{
    if (!opt.new_cpu) {
        (void)pin_to_cpu(1);
    }
    atomic_store(&reader_tid, (pid_t)syscall(SYS_gettid));
    look(false);
    scenario_arrive(&steps->reader, STEP_READY);
    scenario_wait(&steps->main, STEP_GO, 1);
    /* Who is at EL0 with the root loaded could use it: no need to. */
    scenario_wait(&steps->main, STEP_OVER, opt.unmap);
    if (!opt.unmap) {
        look(true);
    }
    scenario_arrive(&steps->reader, STEP_OVER);
    return arg;
}

/* Has CPU 1 until the race begins. */
static void other_main(void)
{
    (void)pin_to_cpu(1);
    if (!opt.new_cpu) {
        scenario_wait(&steps->reader, STEP_READY, 1);
    }
    scenario_arrive(&steps->other, STEP_READY);
    scenario_wait(&steps->main, STEP_GO, 0);
    while (!has_come(&steps->reader, STEP_OVER)) {
        sched_yield();
    }
    _exit(0);
}

static void race(void)
{
    cpu_set_t set;

    scenario_mark(ANNOT_MARK_BEGIN);
    if (opt.new_cpu) {
        CPU_ZERO(&set);
        CPU_SET(1, &set);
        (void)sched_setaffinity(atomic_load(&reader_tid), sizeof(set), &set);
    }
    scenario_arrive(&steps->main, STEP_GO);
    if (opt.unmap) {
        memory_unmap(memory, opt.pages);
    } else if (memory_advise(memory, opt.pages, MADV_DONTNEED) != 0) {
        perror("museum_ipi: madvise");
        exit(1);
    }
    scenario_arrive(&steps->main, STEP_OVER);
    scenario_wait(&steps->reader, STEP_OVER, 0);
    scenario_mark(ANNOT_MARK_END);
}

static void usage(FILE *to)
{
    fprintf(to, "usage: museum_ipi [-n | -u] [-p PAGES]\n"
                "One CPU drops pages while another one switches to them.\n"
                "  -n  to a thread that was never there; needs 2 CPUs\n"
                "  -u  unmaps them, table and all, while it gives way\n"
                "  -p  pages, default 1, at most 64\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "nup:h")) != -1) {
        switch (c) {
        case 'n':
            opt.new_cpu = true;
            break;
        case 'u':
            opt.unmap = true;
            break;
        case 'p':
            opt.pages = option_number("museum_ipi", 'p', optarg, 1);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.pages > MAX_PAGES) {
        usage(stderr);
        exit(2);
    }
    if (cpus_allowed() < 2) {
        fprintf(stderr, "museum_ipi: needs 2 CPUs\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    pthread_t reader;
    pid_t other;
    int error;

    parse_options(argc, argv);
    (void)pin_to_cpu(0);
    steps = shared_map(sizeof(*steps));
    other = fork();
    if (other == 0) {
        other_main();
    }
    memory = memory_map(opt.pages, 0, MAP_PRIVATE);
    if (other < 0) {
        perror("museum_ipi");
        return 1;
    }
    for (unsigned long page = 0; page < opt.pages; page++) {
        memory[page * PAGE_WORDS] = page + 1;
    }
    error = pthread_create(&reader, NULL, reader_main, NULL);
    if (error != 0) {
        fprintf(stderr, "museum_ipi: thread: %s\n", strerror(error));
        return 1;
    }
    scenario_wait(&steps->reader, STEP_READY, opt.new_cpu);
    scenario_wait(&steps->other, STEP_READY, 0);
    race();
    pthread_join(reader, NULL);
    waitpid(other, NULL, 0);
    printf("museum_ipi: %lu pages: %s\n", opt.pages,
           wrong == 0 ? "ok" : "WRONG");
    return wrong == 0 ? 0 : 1;
}
