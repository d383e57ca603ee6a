/* SPDX-License-Identifier: MIT */
/*
 * linux_counts: what memory calls cost in TLB maintenance, case by case, as
 * counted by the kernel between two readings (counts.h). The cases are those
 * that were counted on real kernels: docs/LINUX.md compares.
 *
 * "case NAME calls K: counter value ...", on lines that begin with two spaces
 * where one is too short, with all calls of the case alike or low..high; a
 * series whose first call differs by design has two cases, NAME.1 and NAME.n.
 * Runs on one CPU, where it is pinned; the
 * contents of every page are checked.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "counts.h"
#include "memory.h"

#define REPEAT 3 /* of the cases that need a fresh mapping each time */

static struct {
    unsigned long rounds;
    unsigned cpu;
    const char *only;
} opt = {.rounds = 5, .cpu = 1};

static struct counts before, after;
static bool counted;
static unsigned long wrong_pages;

static void begin(void)
{
    counted = counts_read(COUNTS_CPU, &before);
}

static void end(struct counts_series *s)
{
    if (counts_read(COUNTS_CPU, &after) && counted) {
        counts_series_add(s, &before, &after);
    }
}

static void report(const char *name, const char *part,
                   const struct counts_series *s)
{
    counts_series_print(s,
                        printf("case %s%s calls %lu:", name, part, s->calls));
}

static void not_here(const char *name, const char *what)
{
    printf("case %s skipped: %s: %s\n", name, what, strerror(errno));
}

static void check(const volatile uint64_t *buf, unsigned long pages,
                  unsigned long round)
{
    wrong_pages += memory_check(buf, pages, round);
}

static void advise(volatile uint64_t *buf, unsigned long pages, int advice)
{
    if (memory_advise(buf, pages, advice) != 0) {
        memory_die("linux_counts: madvise");
    }
}

/* Leaves nothing pending in this address space. */
static void drain(void)
{
    volatile uint64_t *p = memory_map(1, 0, MAP_PRIVATE);

    memory_write(p, 1, 0);
    if (mprotect((void *)(uintptr_t)p, PAGE, PROT_READ) != 0) {
        memory_die("linux_counts: mprotect");
    }
    memory_unmap(p, 1);
}

/* --- one madvise(MADV_PAGEOUT) call: its shapes --- */

enum touch {
    TOUCH_READ,      /* read all, after a first call that finds all written */
    TOUCH_WRITE,     /* write all before each call */
    TOUCH_EVERY_4TH, /* write every 4th page and read the rest */
    TOUCH_NOTHING,   /* nothing is mapped at the second call, the last */
    TOUCH_READ_ONLY, /* like READ, through a mapping made read-only */
    TOUCH_FREE,      /* write all and give them to MADV_FREE */
};

struct pageout_case {
    const char *name;
    unsigned long pages, offset;
    int flags;
    enum touch touch;
};

static const struct pageout_case pageout_cases[] = {
    {"shared_read", 256, 0, MAP_SHARED, TOUCH_READ},
    {"shared_read_70_186", 256, 442, MAP_SHARED, TOUCH_READ},
    {"shared_read_88_168", 256, 424, MAP_SHARED, TOUCH_READ},
    {"shared_read_231_25", 256, 281, MAP_SHARED, TOUCH_READ},
    {"shared_read_15_241", 256, 497, MAP_SHARED, TOUCH_READ},
    {"shared_read_only", 256, 0, MAP_SHARED, TOUCH_READ_ONLY},
    {"private_read", 256, 0, MAP_PRIVATE, TOUCH_READ},
    {"private_write", 256, 0, MAP_PRIVATE, TOUCH_WRITE},
    {"shared_write", 256, 0, MAP_SHARED, TOUCH_WRITE},
    {"shared_every_4th", 256, 0, MAP_SHARED, TOUCH_EVERY_4TH},
    {"lazyfree", 256, 0, MAP_PRIVATE, TOUCH_FREE},
    {"nothing_mapped", 256, 0, MAP_SHARED, TOUCH_NOTHING},
    {"shared_read_4_pmds", 2048, 0, MAP_SHARED, TOUCH_READ},
};

static const unsigned long sweep[] = {1,  2,  8,   30,  31,  32,  61,  62, 63,
                                      93, 94, 124, 125, 256, 310, 511, 512};

/* The round whose words a page holds. */
static void touch(const struct pageout_case *c, volatile uint64_t *buf,
                  unsigned long round, unsigned long *written)
{
    switch (c->touch) {
    case TOUCH_READ:
    case TOUCH_READ_ONLY:
        check(buf, c->pages, 0);
        break;
    case TOUCH_WRITE:
        check(buf, c->pages, *written);
        memory_write(buf, c->pages, round);
        *written = round;
        break;
    case TOUCH_EVERY_4TH:
        check(buf, c->pages, 0);
        for (unsigned long i = 3; i < c->pages; i += 4) {
            buf[i * PAGE_WORDS] = memory_word(i, 0);
        }
        break;
    case TOUCH_FREE:
        memory_write(buf, c->pages, round);
        advise(buf, c->pages, MADV_FREE);
        break;
    case TOUCH_NOTHING:
        break;
    }
}

static void run_pageout(const char *name, const struct pageout_case *c)
{
    volatile uint64_t *buf = memory_map(c->pages, c->offset, c->flags);
    struct counts_series first = {0}, rest = {0};
    unsigned long written = 0;

    memory_write(buf, c->pages, 0);
    if (c->touch == TOUCH_READ_ONLY &&
        mprotect((void *)(uintptr_t)buf, c->pages * PAGE, PROT_READ) != 0) {
        memory_die("linux_counts: mprotect");
    }
    if (c->touch != TOUCH_FREE) {
        drain(); /* the case before left its last call pending */
    }
    for (unsigned long round = 0;
         round < (c->touch == TOUCH_NOTHING ? 2 : opt.rounds); round++) {
        if (round > 0 || c->touch == TOUCH_FREE) {
            touch(c, buf, round, &written);
        }
        begin();
        advise(buf, c->pages, MADV_PAGEOUT);
        end(round == 0 ? &first : &rest);
    }
    if (c->touch != TOUCH_FREE) {
        check(buf, c->pages, written);
    }
    report(name, ".1", &first);
    report(name, ".n", &rest);
    memory_unmap(buf, c->pages);
}

static bool wanted(const char *name)
{
    return opt.only == NULL || strncmp(name, opt.only, strlen(opt.only)) == 0;
}

static void all_pageout(void)
{
    for (unsigned i = 0; i < sizeof(pageout_cases) / sizeof(pageout_cases[0]);
         i++) {
        if (wanted(pageout_cases[i].name)) {
            run_pageout(pageout_cases[i].name, &pageout_cases[i]);
        }
    }
    for (unsigned i = 0; i < sizeof(sweep) / sizeof(sweep[0]); i++) {
        struct pageout_case c = {"", sweep[i], 0, MAP_SHARED, TOUCH_READ};
        char name[32];

        snprintf(name, sizeof(name), "sweep_%lu", sweep[i]);
        if (wanted(name)) {
            run_pageout(name, &c);
        }
    }
}

/* --- migration and reclaim on request --- */

static void run_move_pages(void)
{
    const unsigned long pages = 1200;
    volatile uint64_t *buf = memory_map(pages, 0, MAP_PRIVATE);
    struct counts_series s = {0};
    struct memory_move m;
    long r = 0;

    memory_write(buf, pages, 1);
    memory_move_init(&m, buf, pages);
    for (int i = 0; i < REPEAT && r == 0; i++) {
        memory_move_aim(&m, (i + 1) % 2);
        begin();
        r = memory_move_call(&m, 0, 1);
        end(&s);
        if (r == 0 && memory_on_node(&m, (i + 1) % 2) != pages) {
            printf("linux_counts: move_pages left pages behind\n");
            wrong_pages++;
        }
        check(buf, pages, 1);
    }
    if (r != 0) {
        not_here("move_pages", "move_pages");
    } else {
        report("move_pages", "", &s);
    }
    memory_move_free(&m);
    memory_unmap(buf, pages);
}

/* In a group of its own, where only the buffer's pages are charged. */
static void run_reclaim(const char *name, bool dirty)
{
    const unsigned long pages = 1024;
    volatile uint64_t *buf = memory_map(pages, 0, MAP_PRIVATE);
    struct counts_series s = {0};
    char text[32];
    int fd;

    (void)memory_make_group("/counts");
    if (memory_join("/counts") != 0) {
        not_here(name, "cgroup.procs");
        memory_unmap(buf, pages);
        return;
    }
    memory_write(buf, pages, 0);
    if (!dirty) {
        advise(buf, pages, MADV_PAGEOUT);
        check(buf, pages, 0);
    }
    drain();
    snprintf(text, sizeof(text), "%lu", pages * PAGE);
    fd = open(CGROUP "/counts/memory.reclaim", O_WRONLY);
    begin();
    if (write(fd, text, strlen(text)) < 0 && errno != EAGAIN) {
        not_here(name, "memory.reclaim");
    }
    end(&s);
    close(fd);
    check(buf, pages, 0);
    report(name, "", &s);
    memory_unmap(buf, pages);
    (void)memory_join("");
    (void)memory_remove_group("/counts");
}

/* --- what is paid after a reclaim --- */

static volatile uint64_t *reclaimed(unsigned long pages)
{
    volatile uint64_t *buf;

    drain();
    buf = memory_map(pages, 0, MAP_PRIVATE);
    memory_write(buf, pages, 0);
    advise(buf, pages, MADV_PAGEOUT);
    return buf;
}

static void protect(volatile uint64_t *buf, unsigned long pages, int prot)
{
    if (mprotect((void *)(uintptr_t)buf, pages * PAGE, prot) != 0) {
        memory_die("linux_counts: mprotect");
    }
}

static void run_mprotect(void)
{
    struct counts_series one = {0}, two = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf = reclaimed(256);

        begin();
        protect(buf, 256, PROT_READ);
        end(&one);
        begin();
        protect(buf, 256, PROT_READ | PROT_WRITE);
        end(&two);
        check(buf, 256, 0);
        memory_unmap(buf, 256);
    }
    report("drain_mprotect", ".1", &one);
    report("drain_mprotect", ".2", &two);
}

static volatile uint64_t *other_buf;
static struct counts_series other_series;

static void *other_cpu(void *arg)
{
    (void)pin_to_cpu((unsigned)(uintptr_t)arg);
    begin();
    protect(other_buf, 256, PROT_READ);
    end(&other_series);
    return NULL;
}

static void run_mprotect_other_cpu(void)
{
    struct counts_series here = {0};

    for (int i = 0; i < REPEAT; i++) {
        struct counts mine_before, mine_after;
        pthread_t thread;

        other_buf = reclaimed(256);
        (void)counts_read(COUNTS_CPU, &mine_before);
        if (pthread_create(&thread, NULL, other_cpu,
                           (void *)(uintptr_t)(opt.cpu + 1)) != 0) {
            memory_die("linux_counts: pthread_create");
        }
        pthread_join(thread, NULL);
        if (counts_read(COUNTS_CPU, &mine_after)) {
            counts_series_add(&here, &mine_before, &mine_after);
        }
        memory_unmap(other_buf, 256);
    }
    report("drain_mprotect_other_cpu", "", &other_series);
}

static void run_mprotect_present(void)
{
    struct counts_series one = {0}, two = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *present = memory_map(256, 0, MAP_PRIVATE);
        volatile uint64_t *buf;

        memory_write(present, 256, 0);
        buf = reclaimed(256);
        begin();
        protect(present, 256, PROT_READ);
        end(&one);
        check(present, 256, 0);
        protect(present, 256, PROT_READ | PROT_WRITE);
        memory_write(present, 256, 0);
        begin();
        protect(present, 256, PROT_READ);
        end(&two);
        memory_unmap(present, 256);
        memory_unmap(buf, 256);
    }
    report("drain_mprotect_present", ".1", &one);
    report("drain_mprotect_present", ".2", &two);
}

static void run_dontneed(void)
{
    struct counts_series one = {0}, two = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf = reclaimed(256);

        begin();
        advise(buf, 256, MADV_DONTNEED);
        end(&one);
        begin();
        advise(buf, 256, MADV_DONTNEED);
        end(&two);
        memory_unmap(buf, 256);
    }
    report("drain_dontneed", ".1", &one);
    report("drain_dontneed", ".2", &two);
}

static void run_munmap(void)
{
    struct counts_series kept = {0}, freed = {0}, present = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf;

        drain(); /* a 257th page keeps the page table */
        buf = memory_map(257, 0, MAP_PRIVATE);
        memory_write(buf, 257, 0);
        advise(buf, 256, MADV_PAGEOUT);
        begin();
        memory_unmap(buf, 256);
        end(&kept);
        check(buf + 256 * PAGE_WORDS, 0, 0);
        memory_unmap(buf + 256 * PAGE_WORDS, 1);

        buf = reclaimed(256);
        begin();
        memory_unmap(buf, 256);
        end(&freed);

        drain();
        buf = memory_map(256, 0, MAP_PRIVATE);
        memory_write(buf, 256, 0);
        begin();
        memory_unmap(buf, 256);
        end(&present);
    }
    report("drain_munmap", ".kept", &kept);
    report("drain_munmap", ".freed", &freed);
    report("munmap_present", "", &present);
}

static void run_mremap(void)
{
    struct counts_series s = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *to = memory_map(256, 0, MAP_PRIVATE);
        volatile uint64_t *buf;
        void *moved;

        /* Nothing of `to` is there yet: to unmap it is free. */
        buf = reclaimed(256);
        begin();
        moved = mremap((void *)(uintptr_t)buf, 256 * PAGE, 256 * PAGE,
                       MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)to);
        end(&s);
        if (moved == MAP_FAILED) {
            memory_die("linux_counts: mremap");
        }
        check(to, 256, 0);
        memory_unmap(to, 256);
    }
    report("drain_mremap", "", &s);
}

/*
 * fork, and the reading of the counts behind it, without a store between the
 * two: each page that the parent writes after the fork costs a flush of its
 * own. The child leaves at once. Returns the file descriptor, -1 if there is
 * none, and how much was read.
 */
static int fork_and_read(const char *path, long *pid, size_t *got)
{
#ifdef __aarch64__
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = SIGCHLD;
    register long x1 __asm__("x1") = 0;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register long x9 __asm__("x9") = (long)path;
    register long x10 __asm__("x10");
    register long x11 __asm__("x11");
    register long x12 __asm__("x12") = (long)counts_text;

    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x8, %[exit]\n\t"
                     "svc #0\n"
                     "1:\n\t"
                     "mov x10, x0\n\t"
                     "mov x0, %[cwd]\n\t"
                     "mov x1, x9\n\t"
                     "mov x2, #0\n\t"
                     "mov x3, #0\n\t"
                     "mov x8, %[open]\n\t"
                     "svc #0\n\t"
                     "mov x11, x0\n\t"
                     "mov x1, x12\n\t"
                     "mov x2, %[size]\n\t"
                     "mov x8, %[read]\n\t"
                     "svc #0"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x8),
                       "=r"(x10), "=r"(x11)
                     : "r"(x4), "r"(x9), "r"(x12), [exit] "i"(SYS_exit_group),
                       [open] "i"(SYS_openat), [cwd] "i"(AT_FDCWD),
                       [read] "i"(SYS_read), [size] "i"(sizeof(counts_text) / 2)
                     : "memory");
    *pid = x10;
    *got = x0 > 0 ? (size_t)x0 : 0;
    return x11 < 0 ? -1 : (int)x11;
#else
    int fd;

    *pid = fork();
    if (*pid == 0) {
        _exit(0);
    }
    fd = open(path, O_RDONLY);
    *got = 0;
    return fd;
#endif
}

static void run_fork(void)
{
    struct counts_series s = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf = reclaimed(256);
        long pid = -1;
        size_t got = 0;
        int fd;

        begin();
        fd = fork_and_read(COUNTS_CPU, &pid, &got);
        if (counts_read_fd(fd, got, &after) && counted) {
            counts_series_add(&s, &before, &after);
        }
        if (pid > 0) {
            waitpid((pid_t)pid, NULL, 0);
        }
        check(buf, 256, 0);
        memory_unmap(buf, 256);
    }
    report("drain_fork", "", &s);
}

static void run_getppid(void)
{
    struct counts_series s = {0};

    for (int i = 0; i < REPEAT; i++) {
        begin();
        (void)getppid();
        end(&s);
    }
    report("getppid", "", &s);
}

static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: linux_counts [-k CALLS] [-c CPU] [-o NAME]\n"
        "  -k  calls of each madvise case, default 5\n"
        "  -c  the CPU to run on, default 1\n"
        "  -o  only the cases whose names begin like this\n"
        "Prints what memory calls cost in TLB flushes and barriers, as the\n"
        "kernel counts them in /proc/shootdown_cpu.\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "k:c:o:h")) != -1) {
        switch (c) {
        case 'k':
            opt.rounds = option_number("linux_counts", 'k', optarg, 2);
            break;
        case 'c':
            opt.cpu = (unsigned)option_number("linux_counts", 'c', optarg, 0);
            break;
        case 'o':
            opt.only = optarg;
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } others[] = {
        {"getppid", run_getppid},
        {"move_pages", run_move_pages},
        {"drain_mprotect", run_mprotect},
        {"drain_mprotect_present", run_mprotect_present},
        {"drain_dontneed", run_dontneed},
        {"drain_munmap", run_munmap},
        {"drain_mremap", run_mremap},
        {"drain_fork", run_fork},
        {"drain_mprotect_other_cpu", run_mprotect_other_cpu},
    };

    parse_options(argc, argv);
    (void)pin_to_cpu(opt.cpu); /* where it is refused, any CPU will do */
    /* Keeps the tables above those of the buffers. */
    memory_write(memory_map(1, 0, MAP_PRIVATE), 1, 0);
    begin(); /* the buffers of the readings are there from now on */
    begin();
    if (!counted) {
        printf("linux_counts: no " COUNTS_CPU " here: nothing is counted\n");
    }
    all_pageout();
    if (wanted("reclaim_dirty")) {
        run_reclaim("reclaim_dirty", true);
    }
    if (wanted("reclaim_clean")) {
        run_reclaim("reclaim_clean", false);
    }
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (wanted(others[i].name)) {
            others[i].run();
        }
    }
    printf("linux_counts: %s\n",
           wrong_pages == 0 ? "all pages as written" : "LOST DATA");
    return wrong_pages == 0 ? 0 : 1;
}
