/* SPDX-License-Identifier: MIT */
/*
 * migrate: a program's pages go from node to node, by move_pages or by
 * migrate_pages, while its threads keep counting in them. Each page has one
 * thread that counts there; what it counted must be there at the end, and each
 * time it looks.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "counts.h"
#include "memory.h"

#define MAX_THREADS 511

static struct {
    unsigned long pages, threads, rounds;
    bool whole; /* migrate_pages */
} opt = {.pages = 256, .threads = 0, .rounds = 10};

struct toucher {
    pthread_t thread;
    unsigned index;
    unsigned long *counted; /* of its pages, by page */
    unsigned long touches, wrong;
};

static volatile uint64_t *buf;
static atomic_bool stop;
static atomic_uint touching;

static void touch_all(struct toucher *t)
{
    for (unsigned long page = t->index; page < opt.pages; page += opt.threads) {
        volatile uint64_t *word = buf + page * PAGE_WORDS + page % PAGE_WORDS;

        t->wrong += *word != memory_word(page, t->counted[page]);
        *word = memory_word(page, ++t->counted[page]);
        t->touches++;
    }
}

static void *toucher_main(void *arg)
{
    struct toucher *t = arg;

    (void)pin_to_cpu((1 + t->index) % cpus_allowed());
    touch_all(t);
    atomic_fetch_add(&touching, 1);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        touch_all(t);
        __asm__ volatile("yield" ::: "memory");
    }
    return NULL;
}

static void usage(FILE *to)
{
    fprintf(to, "usage: migrate [-p PAGES] [-t THREADS] [-r ROUNDS] [-a]\n"
                "  -p  pages, default 256\n"
                "  -t  threads that touch them, default one a CPU but one\n"
                "  -r  how often they are moved, default 10\n"
                "  -a  all pages of the program, by migrate_pages\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "p:t:r:ah")) != -1) {
        switch (c) {
        case 'p':
            opt.pages = option_number("migrate", 'p', optarg, 1);
            break;
        case 't':
            opt.threads = option_number("migrate", 't', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("migrate", 'r', optarg, 1);
            break;
        case 'a':
            opt.whole = true;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.threads == 0) {
        opt.threads = cpus_allowed() > 1 ? cpus_allowed() - 1 : 1;
    }
    if (opt.threads > MAX_THREADS) {
        usage(stderr);
        exit(2);
    }
}

static void start(struct toucher *touchers)
{
    buf = memory_map(opt.pages, 0, MAP_PRIVATE);
    for (unsigned long page = 0; page < opt.pages; page++) {
        buf[page * PAGE_WORDS + page % PAGE_WORDS] = memory_word(page, 0);
    }
    for (unsigned i = 0; i < opt.threads; i++) {
        touchers[i].index = i;
        touchers[i].counted = calloc(opt.pages, sizeof(unsigned long));
        if (touchers[i].counted == NULL ||
            pthread_create(&touchers[i].thread, NULL, toucher_main,
                           &touchers[i]) != 0) {
            memory_die("migrate: pthread_create");
        }
    }
    (void)pin_to_cpu(0); /* after the threads, which would inherit it */
    while (atomic_load(&touching) < opt.threads) {
        sched_yield();
    }
}

/* All to the other node; false where that is refused. */
static bool move_all(struct memory_move *m, int node)
{
    unsigned long from = 1UL << !node, to = 1UL << node;
    long r = opt.whole ? syscall(SYS_migrate_pages, 0, 64, &from, &to)
                       : memory_move_call(m, 0, 1);

    if (r < 0) {
        printf("migrate: to node %d: %s\n", node, strerror(errno));
    }
    return r >= 0;
}

int main(int argc, char **argv)
{
    static struct toucher touchers[MAX_THREADS];
    unsigned long touches = 0, wrong = 0, moved = 0;
    struct memory_move m;
    struct counts_window w;

    parse_options(argc, argv);
    start(touchers);
    memory_move_init(&m, buf, opt.pages);
    counts_begin(&w);
    for (unsigned long round = 0; round < opt.rounds; round++) {
        int node = round % 2 == 0;

        memory_move_aim(&m, node);
        if (!move_all(&m, node)) {
            break;
        }
        moved += memory_on_node(&m, node);
    }
    counts_end(&w);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < opt.threads; i++) {
        pthread_join(touchers[i].thread, NULL);
        touches += touchers[i].touches;
        wrong += touchers[i].wrong;
    }
    for (unsigned long page = 0; page < opt.pages; page++) {
        wrong += buf[page * PAGE_WORDS + page % PAGE_WORDS] !=
                 memory_word(page, touchers[page % opt.threads].counted[page]);
    }
    counts_print("migrate", &w);
    printf("migrate: %lu pages, %lu threads, %lu rounds: %lu moved, "
           "%lu touches,\n  %s\n",
           opt.pages, opt.threads, opt.rounds, moved, touches,
           wrong == 0 ? "all as counted" : "LOST DATA");
    return wrong == 0 ? 0 : 1;
}
