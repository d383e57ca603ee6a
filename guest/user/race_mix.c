/* SPDX-License-Identifier: MIT */
/*
 * race_mix: everything at once. Processes of several threads each do at random
 * what makes translations go away - mmap, munmap, mprotect, mremap, madvise,
 * fork, exec, migration, reclaim - under a memory limit, on memory whose every
 * word they know (race_own.c). What is wrong is a finding: exit status 1.
 *
 * Ends after that many operations a thread, or seconds. Two runs of the same
 * seed do the same operations, in another order. Afterwards every page that the
 * machine had before must still be, or again, be owned by whoever had it: not
 * one more, not one less. The free pages may be fewer, by what this program has
 * in swap.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "race_mix.h"
#include "shared.h"

#define MAX_PROCESSES 256
#define MAX_THREADS 64
#define SETTLE_TRIES 20 /* of 10 ms each, for exits that are not over */

struct race_options race_opt = {
    .processes = 2,
    .threads = 2,
    .pages = 24,
    .shared_pages = 16,
    .rounds = 200,
    .seed = 1,
    .stride = 1,
    .spread = 16,
    .visits = 32,
};
struct race_board *race_board;
struct race_pool race_all, race_team;
char race_self[256];
unsigned race_cpus, race_nodes;

void race_found(enum race_finding what, unsigned thread, unsigned long page,
                uint64_t word, uint64_t want)
{
    static const char *const texts[] = {
        "nothing",   "a private page", "a shared page", "a child's copy",
        "a program", "a process died", "a call failed", "owned pages",
    };

    if (atomic_fetch_add(&race_board->findings, 1) == 0) {
        /* One write: the children print too. */
        char text[160];
        int n = snprintf(text, sizeof(text),
                         "race_mix: FINDING: %s: thread %u page %lu: "
                         "0x%llx, not 0x%llx\n",
                         texts[what], thread, page, (unsigned long long)word,
                         (unsigned long long)want);

        (void)!write(1, text, (size_t)n);
    }
    scenario_finding(what); /* may end the run */
}

static void *thread_main(void *arg)
{
    struct race_thread *t = arg;

    (void)pin_to_cpu(t->id % race_cpus);
    race_thread_run(t);
    return NULL;
}

static void make_team(unsigned index)
{
    race_team = (struct race_pool){
        .memory = memory_map(race_opt.shared_pages, 0, MAP_PRIVATE),
        .truth = calloc(race_opt.shared_pages, sizeof(uint32_t)),
        .pages = (unsigned)race_opt.shared_pages,
        .owner = RACE_OWNER_TEAM + index,
    };
    if (race_team.truth == NULL) {
        memory_die("race_mix: calloc");
    }
}

/* A process: its threads, made before anybody begins. */
static void process_main(unsigned index)
{
    static struct race_thread threads[MAX_THREADS];

    make_team(index);
    for (unsigned i = 0; i < race_opt.threads; i++) {
        race_thread_init(&threads[i], index * (unsigned)race_opt.threads + i);
    }
    if (race_opt.small) {
        race_small_process(threads);
        _exit(atomic_load(&race_board->findings) == 0 ? 0 : 1);
    }
    shared_add(&race_board->go, 1);
    shared_wait(&race_board->go, (uint32_t)race_opt.processes + 1);
    for (unsigned i = 1; i < race_opt.threads; i++) {
        if (pthread_create(&threads[i].thread, NULL, thread_main,
                           &threads[i]) != 0) {
            perror("race_mix: pthread_create");
            _exit(2);
        }
    }
    (void)thread_main(&threads[0]);
    for (unsigned i = 1; i < race_opt.threads; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    for (unsigned i = 0; i < race_opt.threads; i++) {
        race_thread_end(&threads[i]);
    }
    _exit(atomic_load(&race_board->findings) == 0 ? 0 : 1);
}

/* Enters the group with the limit, where there are groups. */
static bool enter_group(void)
{
    char text[32];

    (void)memory_make_group(RACE_GROUP);
    if (race_opt.limit_pages > 0) {
        snprintf(text, sizeof(text), "%lu", race_opt.limit_pages * PAGE);
        if (memory_tell(CGROUP RACE_GROUP "/memory.max", text) != 0) {
            return false;
        }
    }
    return memory_join(RACE_GROUP) == 0;
}

static void wait_for_all(const pid_t *pids)
{
    for (unsigned i = 0; i < race_opt.processes; i++) {
        int status = 0;

        if (pids[i] > 0) {
            (void)waitpid(pids[i], &status, 0);
        }
        if (pids[i] <= 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1) {
            race_found(RACE_FOUND_DEATH, i, 0, (uint64_t)status, 0);
        }
    }
}

static time_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Without memory for one it waits for better times, but not for ever. */
static pid_t fork_at_last(void)
{
    pid_t pid = fork();

    for (unsigned i = 0; pid < 0 && errno == ENOMEM && i < SETTLE_TRIES; i++) {
        usleep(10 * 1000);
        pid = fork();
    }
    return pid;
}

static void run(void)
{
    pid_t pids[MAX_PROCESSES];

    for (unsigned i = 0; i < race_opt.processes; i++) {
        pids[i] = fork_at_last();
        if (pids[i] == 0) {
            if (!enter_group() && i == 0) {
                printf("race_mix: no " CGROUP RACE_GROUP ": %s\n",
                       strerror(errno));
                fflush(stdout);
            }
            process_main(i);
        }
        if (pids[i] < 0) {
            memory_die("race_mix: fork");
        }
    }
    if (!race_opt.small) {
        shared_wait(&race_board->go, (uint32_t)race_opt.processes);
        scenario_mark(ANNOT_MARK_BEGIN);
        shared_add(&race_board->go, 1);
    }
    if (race_opt.seconds > 0) {
        time_t end = seconds_now() + (time_t)race_opt.seconds;

        while (seconds_now() < end && atomic_load(&race_board->findings) == 0) {
            usleep(50 * 1000);
        }
        atomic_store(&race_board->stop, 1);
    }
    wait_for_all(pids);
    if (!race_opt.small && atomic_load(&race_board->findings) == 0) {
        scenario_mark(ANNOT_MARK_END);
    }
}

static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: race_mix [-n PROCESSES] [-t THREADS] [-p PAGES] [-w PAGES]\n"
        "                [-r OPERATIONS] [-s SECONDS] [-S SEED] [-m PAGES]\n"
        "                [-c] [-q]\n"
        "       race_mix -k [-t THREADS] [-p PAGES] [-w PAGES] [-r "
        "OPERATIONS]\n"
        "                [-S SEED] [-m PAGES] [-q]\n"
        "  -n  processes, default 2\n"
        "  -t  threads of each, default 2\n"
        "  -p  pages of each of a thread's mappings, default 24, of 512\n"
        "  -w  pages that all share, and that the threads of a process share,\n"
        "      default 16 of each\n"
        "  -r  operations of a thread, default 200; 0: until -s\n"
        "  -s  stops after that many seconds\n"
        "  -S  seed, default 1\n"
        "  -m  memory limit of all together, in pages; default none\n"
        "  -c  the machine may choose other operations (SYS_SD_CHOOSE)\n"
        "  -q  no processes, groups or CPUs: memory calls only\n"
        "  -k  as a scenario of a few hundred steps: one process of 3 "
        "threads,\n"
        "      -p 2 -w 3, which each do -r 2 operations that the machine "
        "chose,\n"
        "      on some words of a page; no exec. First of all options.\n"
        "Every word of every page is checked. Exit status 1: a finding.\n");
}

static void parse_options(int argc, char **argv)
{
    struct race_options *o = &race_opt;
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "kn:t:p:w:r:s:S:m:cqh")) != -1) {
        switch (c) {
        case 'k':
            race_small_options();
            break;
        case 'n':
            o->processes = option_number("race_mix", 'n', optarg, 1);
            break;
        case 't':
            o->threads = option_number("race_mix", 't', optarg, 1);
            break;
        case 'p':
            o->pages = option_number("race_mix", 'p', optarg, 1);
            break;
        case 'w':
            o->shared_pages = option_number("race_mix", 'w', optarg, 1);
            break;
        case 'r':
            o->rounds = option_number("race_mix", 'r', optarg, 0);
            break;
        case 's':
            o->seconds = option_number("race_mix", 's', optarg, 1);
            break;
        case 'S':
            o->seed = option_number("race_mix", 'S', optarg, 0);
            break;
        case 'm':
            o->limit_pages = option_number("race_mix", 'm', optarg, 1);
            break;
        case 'c':
            o->choose = true;
            break;
        case 'q':
            o->calm = true;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (o->processes > MAX_PROCESSES || o->threads > MAX_THREADS ||
        o->pages > PMD_PAGES || o->shared_pages > (1UL << 16) ||
        (o->rounds == 0 && (o->seconds == 0 || o->small)) ||
        (o->small && o->processes != 1)) {
        usage(stderr);
        exit(2);
    }
}

/*
 * The owned pages when nothing moves any more. An idle CPU keeps the last
 * address space it ran, and its top table: to go there makes it let go.
 */
static unsigned long settled_pages(unsigned long wanted)
{
    unsigned long now = 0;

    for (unsigned i = 0; i < SETTLE_TRIES; i++) {
        for (unsigned cpu = 0; cpu < race_cpus; cpu++) {
            (void)pin_to_cpu(cpu);
        }
        now = memory_owned_pages();
        if (now == wanted) {
            break;
        }
        usleep(10 * 1000);
    }
    return now;
}

int main(int argc, char **argv)
{
    unsigned long before, after, free_before;
    ssize_t n;

    if (argc == 3 && strcmp(argv[1], "--executed") == 0) {
        return race_exec_child(strtoul(argv[2], NULL, 10));
    }
    parse_options(argc, argv);
    race_cpus = cpus_allowed();
    race_nodes = memory_nodes();
    n = readlink("/proc/self/exe", race_self, sizeof(race_self) - 1);
    if (n <= 0) {
        snprintf(race_self, sizeof(race_self), "%s", argv[0]);
    }
    race_board = shared_map(sizeof(*race_board) +
                            race_opt.shared_pages * sizeof(uint32_t));
    (void)memory_make_group(RACE_GROUP);
    (void)memory_remove_group(RACE_GROUP);
    before = settled_pages(0);
    free_before = memory_free_pages();
    race_all = (struct race_pool){
        .memory = memory_map(race_opt.shared_pages, 0, MAP_SHARED),
        .truth = race_board->truth,
        .pages = (unsigned)race_opt.shared_pages,
        .owner = RACE_OWNER_ALL,
    };
    run();
    memory_unmap(race_all.memory, race_opt.shared_pages);
    (void)memory_remove_group(RACE_GROUP);
    after = settled_pages(before);
    printf("race_mix: %lu processes, %lu threads each, seed %lu: %llu "
           "operations,\n"
           "  %llu forks, %llu execs, %llu calls refused\n",
           race_opt.processes, race_opt.threads, race_opt.seed,
           (unsigned long long)atomic_load(&race_board->operations),
           (unsigned long long)atomic_load(&race_board->forks),
           (unsigned long long)atomic_load(&race_board->execs),
           (unsigned long long)atomic_load(&race_board->refused));
    printf("race_mix: owned pages %lu before, %lu after; free %lu, %lu\n",
           before, after, free_before, memory_free_pages());
    if (after != before) {
        race_found(RACE_FOUND_LEAK, 0, 0, after, before);
    }
    printf("race_mix: %s\n",
           atomic_load(&race_board->findings) == 0 ? "ok" : "FINDINGS");
    return atomic_load(&race_board->findings) == 0 ? 0 : 1;
}
