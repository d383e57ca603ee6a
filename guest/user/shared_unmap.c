/* SPDX-License-Identifier: MIT */
/*
 * shared_unmap: pages that many processes map are reclaimed. The reverse map
 * finds every mapping: one TLB invalidation each, and one wait for all of them,
 * or, where TLBs are flushed by interrupt, one request for all CPUs.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "counts.h"
#include "memory.h"
#include "shared.h"

#define GROUP "/shared_unmap"
#define MAX_PROCESSES 1000

static struct {
    unsigned long processes, pages;
    bool dirty;
} opt = {.processes = 100, .pages = 16};

/* What the children wait for, and how many have done it. */
static struct {
    _Atomic uint32_t touched, look, looked;
} * steps;

static volatile uint64_t *buf;

static void usage(FILE *to)
{
    fprintf(to,
            "usage: shared_unmap [-n PROCESSES] [-p PAGES] [-d]\n"
            "  -n  processes that map the pages, default 100\n"
            "  -p  pages, default 16\n"
            "  -d  every process has written them; else they have only read\n"
            "Needs " CGROUP ": madvise leaves pages of several alone.\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "n:p:dh")) != -1) {
        switch (c) {
        case 'n':
            opt.processes = option_number("shared_unmap", 'n', optarg, 1);
            break;
        case 'p':
            opt.pages = option_number("shared_unmap", 'p', optarg, 1);
            break;
        case 'd':
            opt.dirty = true;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.processes > MAX_PROCESSES) {
        usage(stderr);
        exit(2);
    }
}

/* Its mappings of all pages; then, when they are gone, a look at them. */
static void child_main(unsigned index)
{
    unsigned long wrong;

    (void)memory_join(""); /* its own pages are nobody's business */
    (void)pin_to_cpu(index % cpus_allowed());
    wrong = memory_check(buf, opt.pages, 1);
    if (opt.dirty) {
        memory_write(buf, opt.pages, 1);
    }
    shared_add(&steps->touched, 1);
    shared_wait(&steps->look, 1);
    wrong += memory_check(buf, opt.pages, 1);
    shared_add(&steps->looked, 1);
    _exit(wrong == 0 ? 0 : 1);
}

/* The pages that nobody has in memory any more. */
static unsigned long reclaim(void)
{
    unsigned char *there = calloc(opt.pages, 1);
    unsigned long n = 0;

    if (memory_reclaim(GROUP, opt.pages) != 0 && errno != EAGAIN) {
        printf("shared_unmap: memory.reclaim: %s\n", strerror(errno));
    }
    if (there == NULL ||
        mincore((void *)(uintptr_t)buf, opt.pages * PAGE, there) != 0) {
        memory_die("shared_unmap: mincore");
    }
    for (unsigned long i = 0; i < opt.pages; i++) {
        n += !(there[i] & 1);
    }
    free(there);
    return n;
}

int main(int argc, char **argv)
{
    static pid_t pids[MAX_PROCESSES];
    struct counts_window w;
    unsigned long wrong = 0, gone;

    parse_options(argc, argv);
    steps = shared_map(sizeof(*steps));
    buf = memory_map(opt.pages, 0, MAP_SHARED);
    (void)memory_make_group(GROUP);
    (void)memory_join(GROUP);
    memory_write(buf, opt.pages, 1); /* these pages are the group's */
    if (!opt.dirty) {
        /* Out and in again: clean, where a read maps them so. */
        (void)memory_advise(buf, opt.pages, MADV_PAGEOUT);
        wrong += memory_check(buf, opt.pages, 1);
    }
    (void)memory_join("");
    for (unsigned i = 0; i < opt.processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            child_main(i);
        }
        if (pids[i] < 0) {
            memory_die("shared_unmap: fork");
        }
    }
    shared_wait(&steps->touched, (uint32_t)opt.processes);
    counts_begin(&w);
    gone = reclaim();
    counts_end(&w);
    shared_set(&steps->look, 1);
    for (unsigned i = 0; i < opt.processes; i++) {
        int status;

        waitpid(pids[i], &status, 0);
        wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    wrong += memory_check(buf, opt.pages, 1);
    memory_unmap(buf, opt.pages);
    (void)memory_remove_group(GROUP);
    counts_print("shared_unmap", &w);
    printf("shared_unmap: %lu pages of %lu processes: %lu unmapped, %s\n",
           opt.pages, opt.processes + 1, gone,
           wrong == 0 ? "all as written" : "LOST DATA");
    return wrong == 0 ? 0 : 1;
}
