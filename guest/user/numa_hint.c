/* SPDX-License-Identifier: MIT */
/*
 * numa_hint: memory that many threads on both memory nodes use, where a kernel
 * with NUMA balancing moves pages after their users. A hint is a PTE made
 * PROT_NONE, with one flush for a whole range; the page it moves needs no flush
 * of its own, since no TLB can hold it.
 *
 * Normally a child process's threads count at random in pages that it still
 * shares with its parent: the first write of a page copies it. With -H all
 * pages are put on node 1, and threads of node 0 take turns to look at them
 * until they have come, or -s seconds have gone by.
 *
 * Every thread has a word of its own in each page.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "counts.h"
#include "memory.h"

#define MAX_THREADS 63
#define WORD_OF(index) (8 * (1 + (index))) /* a cache line each */
#define BALANCING "/proc/sys/kernel/numa_balancing"

static struct {
    unsigned long pages, threads, accesses, seconds;
    bool home;
} opt = {.pages = 512, .threads = 4, .accesses = 20000, .seconds = 30};

struct user {
    pthread_t thread;
    unsigned index;
    unsigned *counted; /* by page */
    unsigned long wrong;
    uint64_t random;
};

static volatile uint64_t *buf;
static atomic_bool stop;

static void use(struct user *u, unsigned long page)
{
    volatile uint64_t *word = buf + page * PAGE_WORDS + WORD_OF(u->index);

    u->wrong += *word != u->counted[page];
    *word = ++u->counted[page];
    u->wrong += buf[page * PAGE_WORDS] != memory_word(page, 1);
}

static void *user_main(void *arg)
{
    struct user *u = arg;

    if (opt.home) {
        (void)pin_to_cpu(0);
        while (!atomic_load(&stop)) {
            for (unsigned long page = 0; page < opt.pages; page++) {
                use(u, page);
            }
        }
        return NULL;
    }
    (void)pin_to_cpu(u->index % cpus_allowed());
    for (unsigned long n = 0; n < opt.accesses; n++) {
        u->random = u->random * 6364136223846793005ULL + 1442695040888963407ULL;
        use(u, (u->random >> 33) % opt.pages);
    }
    return NULL;
}

static unsigned long count_wrong(struct user *users)
{
    unsigned long wrong = memory_check(buf, opt.pages, 1);

    for (unsigned i = 0; i < opt.threads; i++) {
        wrong += users[i].wrong;
        for (unsigned long page = 0; page < opt.pages; page++) {
            wrong +=
                buf[page * PAGE_WORDS + WORD_OF(i)] != users[i].counted[page];
        }
    }
    return wrong;
}

static void start_users(struct user *users)
{
    for (unsigned i = 0; i < opt.threads; i++) {
        users[i].index = i;
        users[i].random = i + 1;
        if (pthread_create(&users[i].thread, NULL, user_main, &users[i]) != 0) {
            memory_die("numa_hint: pthread_create");
        }
    }
}

static void join_users(struct user *users)
{
    for (unsigned i = 0; i < opt.threads; i++) {
        pthread_join(users[i].thread, NULL);
    }
}

/* The child: counts in its copy of the pages. */
static unsigned long copy_at_random(struct user *users)
{
    unsigned long wrong;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        start_users(users);
        join_users(users);
        _exit(count_wrong(users) == 0 ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        memory_die("numa_hint: fork");
    }
    wrong = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    wrong += count_wrong(users); /* here nobody counted: all 0 */
    return wrong;
}

/* Node 1's pages come to the threads of node 0. */
static unsigned long bring_home(struct user *users, struct counts_window *w,
                                unsigned long *came)
{
    struct memory_move m;
    uint64_t end = now_ns() + opt.seconds * 1000000000;

    memory_move_init(&m, buf, opt.pages);
    memory_move_aim(&m, 1);
    if (memory_move_call(&m, 0, 1) != 0) {
        printf("numa_hint: move_pages: %s\n", strerror(errno));
    }
    counts_begin(w);
    start_users(users);
    do {
        usleep(20 * 1000);
        *came = memory_on_node(&m, 0);
    } while (*came < opt.pages && now_ns() < end);
    atomic_store(&stop, true);
    join_users(users);
    counts_end(w);
    return count_wrong(users);
}

static void usage(FILE *to)
{
    fprintf(to, "usage: numa_hint [-p PAGES] [-t THREADS] [-n ACCESSES]\n"
                "       numa_hint -H [-p PAGES] [-t THREADS] [-s SECONDS]\n"
                "  -p  pages, default 512\n"
                "  -t  threads, default 4, at most 63\n"
                "  -n  accesses of each, default 20000\n"
                "  -H  put all pages on node 1 and use them on CPU 0\n"
                "  -s  with -H, how long to wait for them, default 30\n"
                "Needs a kernel that balances: " BALANCING "\n"
                "or, here, numa_balancing=on numa=fake=2 numa_cpus=split.\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "p:t:n:s:Hh")) != -1) {
        switch (c) {
        case 'p':
            opt.pages = option_number("numa_hint", 'p', optarg, 1);
            break;
        case 't':
            opt.threads = option_number("numa_hint", 't', optarg, 1);
            break;
        case 'n':
            opt.accesses = option_number("numa_hint", 'n', optarg, 1);
            break;
        case 's':
            opt.seconds = option_number("numa_hint", 's', optarg, 1);
            break;
        case 'H':
            opt.home = true;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.threads > MAX_THREADS) {
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct user users[MAX_THREADS];
    struct counts_window w;
    unsigned long wrong, came = 0;

    parse_options(argc, argv);
    (void)memory_tell(BALANCING, "1");
    buf = memory_map(opt.pages, 0, MAP_PRIVATE);
    memory_write(buf, opt.pages, 1);
    for (unsigned i = 0; i < opt.threads; i++) {
        users[i].counted = calloc(opt.pages, sizeof(unsigned));
        if (users[i].counted == NULL) {
            memory_die("numa_hint: calloc");
        }
    }
    if (opt.home) {
        wrong = bring_home(users, &w, &came);
    } else {
        counts_begin(&w);
        wrong = copy_at_random(users);
        counts_end(&w);
    }
    counts_print("numa_hint", &w);
    if (opt.home) {
        printf("numa_hint: %lu of %lu pages came home, ", came, opt.pages);
    } else {
        printf("numa_hint: %lu pages, %lu threads, %lu accesses each, ",
               opt.pages, opt.threads, opt.accesses);
    }
    printf("%s\n", wrong == 0 ? "all as counted" : "LOST DATA");
    return wrong == 0 ? 0 : 1;
}
