/* SPDX-License-Identifier: MIT */
/*
 * swap_bench: pages a buffer out again and again. A shared anonymous mapping
 * (1 MiB unless -p says otherwise, starting at a 2 MiB boundary) is filled
 * once; then each round reads all of it and gives it to madvise(MADV_PAGEOUT).
 * The reads map the pages clean, so a kernel that batches its TLB flushes may
 * wait once for many pages.
 *
 * With -t N, N threads pinned to other CPUs keep the address space live there.
 * Where /proc/shootdown exists, the kernel's counters are read around each
 * madvise and printed per call. Runs on Linux as well.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "common.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PMD_SIZE (2UL << 20)
#define MAX_COUNTERS 64
#define MAX_THREADS 511
#define READ_STRIDE 64 /* bytes: every cache line is read */

struct options {
    unsigned long rounds, pages, threads;
    bool verbose, quiet;
};

struct counter {
    char name[32];
    uint64_t value;
};

struct snapshot {
    unsigned count;
    struct counter counters[MAX_COUNTERS];
};

/* Per madvise call: how far each counter moved. */
struct deltas {
    uint64_t first[MAX_COUNTERS];
    uint64_t min[MAX_COUNTERS], max[MAX_COUNTERS]; /* of the later calls */
};

struct result {
    uint64_t elapsed_ns; /* reading and paging out, without bookkeeping */
    uint64_t madvise_ns;
    unsigned long bad_rounds;
};

static size_t page_size;
static atomic_bool stop_readers;
static atomic_uint readers_running;

static uint64_t pattern(uint64_t index)
{
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15ULL;

    return z ^ (z >> 29);
}

static uint64_t read_all(const uint64_t *buf, size_t size)
{
    const volatile uint64_t *p = buf;
    uint64_t sum = 0;

    for (size_t i = 0; i < size / 8; i += READ_STRIDE / 8) {
        sum = sum * 31 + p[i];
    }
    return sum;
}

/* The counters now; false where there are none. */
static bool snapshot_take(struct snapshot *out)
{
    static char text[8192];
    int fd = open("/proc/shootdown", O_RDONLY);
    ssize_t n, got = 0;

    out->count = 0;
    if (fd < 0) {
        return false;
    }
    while ((n = read(fd, text + got, sizeof(text) - 1 - (size_t)got)) > 0) {
        got += n;
    }
    close(fd);
    text[got] = '\0';
    for (char *line = text; *line != '\0' && out->count < MAX_COUNTERS;) {
        struct counter *c = &out->counters[out->count];
        char *space = strchr(line, ' ');
        char *end = strchr(line, '\n');

        if (space == NULL || end == NULL || space > end) {
            break;
        }
        *space = '\0';
        snprintf(c->name, sizeof(c->name), "%.31s", line);
        c->value = strtoull(space + 1, NULL, 10);
        out->count++;
        line = end + 1;
    }
    return out->count > 0;
}

static void deltas_add(struct deltas *d, unsigned long call,
                       const struct snapshot *before,
                       const struct snapshot *after)
{
    for (unsigned i = 0; i < after->count; i++) {
        uint64_t delta = after->counters[i].value - before->counters[i].value;

        if (call == 0) {
            d->first[i] = delta;
            d->min[i] = UINT64_MAX;
        } else {
            d->min[i] = delta < d->min[i] ? delta : d->min[i];
            d->max[i] = delta > d->max[i] ? delta : d->max[i];
        }
    }
}

static void deltas_print(const struct deltas *d, const struct snapshot *names,
                         unsigned long rounds)
{
    printf("call 1:");
    for (unsigned i = 0; i < names->count; i++) {
        if (d->first[i] != 0) {
            printf(" %s %llu", names->counters[i].name,
                   (unsigned long long)d->first[i]);
        }
    }
    printf("\n");
    if (rounds < 2) {
        return;
    }
    printf("calls 2..%lu, each:", rounds);
    for (unsigned i = 0; i < names->count; i++) {
        if (d->max[i] == 0) {
            continue;
        }
        printf(" %s %llu", names->counters[i].name,
               (unsigned long long)d->min[i]);
        if (d->max[i] != d->min[i]) {
            printf("..%llu", (unsigned long long)d->max[i]);
        }
    }
    printf("\n");
}

static void *reader(void *arg)
{
    unsigned cpu = (unsigned)(uintptr_t)arg;
    volatile uint64_t *page;

    (void)pin_to_cpu(cpu); /* where it is refused, any CPU will do */
    page = mmap(NULL, page_size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        perror("swap_bench: mmap of a reader's page");
        exit(1);
    }
    page[0] = cpu;
    atomic_fetch_add(&readers_running, 1);
    while (!atomic_load_explicit(&stop_readers, memory_order_relaxed)) {
        for (unsigned i = 0; i < 1024; i++) {
            if (page[0] != cpu) {
                fprintf(stderr, "swap_bench: CPU %u reads %llu in its page\n",
                        cpu, (unsigned long long)page[0]);
                exit(1);
            }
        }
    }
    return NULL;
}

static void start_readers(unsigned long n, pthread_t *threads)
{
    unsigned cpus = cpus_allowed();

    for (unsigned long i = 0; i < n; i++) {
        unsigned cpu = cpus > 1 ? 1 + (unsigned)(i % (cpus - 1)) : 0;
        int error =
            pthread_create(&threads[i], NULL, reader, (void *)(uintptr_t)cpu);

        if (error != 0) {
            fprintf(stderr, "swap_bench: thread %lu: %s\n", i + 1,
                    strerror(error));
            exit(1);
        }
    }
    while (atomic_load(&readers_running) < n) {
        sched_yield();
    }
}

/* Shared anonymous memory whose first byte is at a 2 MiB boundary. */
static uint64_t *map_aligned(size_t size)
{
    size_t room = size + PMD_SIZE;
    char *area =
        mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *start;
    void *buf;

    if (area == MAP_FAILED) {
        perror("swap_bench: mmap");
        exit(1);
    }
    start = (char *)(((uintptr_t)area + PMD_SIZE - 1) & ~(PMD_SIZE - 1));
    munmap(area, room);
    buf = mmap(start, size, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (buf == MAP_FAILED) {
        perror("swap_bench: mmap at a 2 MiB boundary");
        exit(1);
    }
    return buf;
}

static int run(const struct options *opt, struct result *result)
{
    size_t size = opt->pages * page_size;
    uint64_t *buf = map_aligned(size);
    static struct snapshot before, after;
    static struct deltas deltas;
    bool counted = !opt->quiet && snapshot_take(&before);
    uint64_t expected;

    for (size_t i = 0; i < size / 8; i++) {
        buf[i] = pattern(i);
    }
    expected = read_all(buf, size);
    for (unsigned long call = 0; call < opt->rounds; call++) {
        uint64_t start = now_ns(), middle, end;

        if (read_all(buf, size) != expected) {
            result->bad_rounds++;
        }
        middle = now_ns();
        if (counted) {
            (void)snapshot_take(&before);
        }
        end = now_ns();
        if (madvise(buf, size, MADV_PAGEOUT) != 0) {
            perror("swap_bench: madvise(MADV_PAGEOUT)");
            return 1;
        }
        result->madvise_ns += now_ns() - end;
        if (counted) {
            (void)snapshot_take(&after);
            deltas_add(&deltas, call, &before, &after);
        }
        result->elapsed_ns += middle - start;
        if (opt->verbose) {
            printf("round %lu: read %llu us\n", call + 1,
                   (unsigned long long)(middle - start) / 1000);
        }
    }
    result->elapsed_ns += result->madvise_ns;
    if (read_all(buf, size) != expected) {
        result->bad_rounds++;
    }
    if (counted) {
        deltas_print(&deltas, &after, opt->rounds);
    }
    munmap(buf, size);
    return 0;
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: swap_bench [-k ROUNDS] [-p PAGES] [-t THREADS] [-v] [-q]\n"
            "  -k  madvise calls, default 50\n"
            "  -p  pages of the buffer, default 256 (1 MiB)\n"
            "  -t  threads on other CPUs that keep reading, default 0\n"
            "  -v  a line for each round\n"
            "  -q  do not read /proc/shootdown\n");
}

static void parse_options(int argc, char **argv, struct options *opt)
{
    int c;

    *opt = (struct options){.rounds = 50, .pages = 256};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "k:p:t:vqh")) != -1) {
        switch (c) {
        case 'k':
            opt->rounds = option_number("swap_bench", 'k', optarg, 1);
            break;
        case 'p':
            opt->pages = option_number("swap_bench", 'p', optarg, 1);
            break;
        case 't':
            opt->threads = option_number("swap_bench", 't', optarg, 0);
            break;
        case 'v':
            opt->verbose = true;
            break;
        case 'q':
            opt->quiet = true;
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            usage(stderr);
            exit(2);
        }
    }
    if (opt->threads > MAX_THREADS) {
        fprintf(stderr, "swap_bench: -t %lu: at most %d\n", opt->threads,
                MAX_THREADS);
        exit(2);
    }
}

/*
 * Where this process has run before it was pinned, idle CPUs may still have its
 * address space loaded lazily, and the first flush would ask them. Unmapping
 * memory with its page table reaches lazy CPUs too and makes them let go, so
 * that the counts show who really uses the address space.
 */
static void leave_other_cpus(void)
{
    size_t span = 4u << 20; /* no other mapping shares its page table */
    char *p = mmap(NULL, span, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED) {
        p[span / 2] = 1;
        munmap(p, span);
    }
}

int main(int argc, char **argv)
{
    static pthread_t threads[MAX_THREADS];
    struct options opt;
    struct result result = {0};
    int status;

    parse_options(argc, argv, &opt);
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    if (opt.threads > 0) {
        start_readers(opt.threads, threads);
    }
    (void)pin_to_cpu(0); /* after the threads, which would inherit it */
    leave_other_cpus();
    status = run(&opt, &result);
    atomic_store(&stop_readers, true);
    for (unsigned long i = 0; i < opt.threads; i++) {
        pthread_join(threads[i], NULL);
    }
    if (result.bad_rounds > 0) {
        status = 1;
    }
    printf("swap_bench: elapsed %llu us, madvise %llu us in %lu calls of %lu "
           "pages,\n  %lu threads, checksum %s\n",
           (unsigned long long)result.elapsed_ns / 1000,
           (unsigned long long)result.madvise_ns / 1000, opt.rounds, opt.pages,
           opt.threads, result.bad_rounds == 0 ? "ok" : "WRONG");
    return status;
}
