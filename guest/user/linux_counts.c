/* SPDX-License-Identifier: MIT */
/*
 * linux_counts: what memory calls cost in TLB maintenance, case by case, as
 * counted by the kernel between two readings (counts.h). The cases are those
 * that were counted on real kernels: docs/LINUX.md compares.
 *
 * "case NAME calls K: counter value ...", on lines that begin with two spaces
 * where one is too short, with all calls of the case alike or low..high; a
 * series whose first call differs by design has two cases, NAME.1 and NAME.n.
 * Runs on one CPU, where it is pinned; the contents of every page are checked.
 */
#define _GNU_SOURCE
#include "linux_counts.h"

struct linux_counts_options opt = {.rounds = 5, .cpu = 1};

static struct counts before, after;
static bool counted;
static unsigned long wrong_pages;

void case_begin(void)
{
    counted = counts_read(COUNTS_CPU, &before);
}

void case_end(struct counts_series *s)
{
    if (counts_read(COUNTS_CPU, &after) && counted) {
        counts_series_add(s, &before, &after);
    }
}

void case_end_read(struct counts_series *s, int fd, size_t got)
{
    if (counts_read_fd(fd, got, &after) && counted) {
        counts_series_add(s, &before, &after);
    }
}

char *case_text(void)
{
    return counts_text;
}
_Static_assert(CASE_TEXT_ROOM < sizeof(counts_text), "room for the rest");

void case_report(const char *name, const char *part,
                 const struct counts_series *s)
{
    counts_series_print(s,
                        printf("case %s%s calls %lu:", name, part, s->calls));
}

void case_not_here(const char *name, const char *what)
{
    printf("case %s skipped: %s: %s\n", name, what, strerror(errno));
}

void case_check(const volatile uint64_t *buf, unsigned long pages,
                unsigned long round)
{
    wrong_pages += memory_check(buf, pages, round);
}

void case_advise(volatile uint64_t *buf, unsigned long pages, int advice)
{
    if (memory_advise(buf, pages, advice) != 0) {
        memory_die("linux_counts: madvise");
    }
}

void case_drain(void)
{
    volatile uint64_t *p = memory_map(1, 0, MAP_PRIVATE);

    memory_write(p, 1, 0);
    if (mprotect((void *)(uintptr_t)p, PAGE, PROT_READ) != 0) {
        memory_die("linux_counts: mprotect");
    }
    memory_unmap(p, 1);
}

bool case_wanted(const char *name)
{
    return opt.only == NULL || strncmp(name, opt.only, strlen(opt.only)) == 0;
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
        case_begin();
        r = memory_move_call(&m, 0, 1);
        case_end(&s);
        if (r == 0 && memory_on_node(&m, (i + 1) % 2) != pages) {
            printf("linux_counts: move_pages left pages behind\n");
            wrong_pages++;
        }
        case_check(buf, pages, 1);
    }
    if (r != 0) {
        case_not_here("move_pages", "move_pages");
    } else {
        case_report("move_pages", "", &s);
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
        case_not_here(name, "cgroup.procs");
        memory_unmap(buf, pages);
        return;
    }
    memory_write(buf, pages, 0);
    if (!dirty) {
        case_advise(buf, pages, MADV_PAGEOUT);
        case_check(buf, pages, 0);
    }
    case_drain();
    snprintf(text, sizeof(text), "%lu", pages * PAGE);
    fd = open(CGROUP "/counts/memory.reclaim", O_WRONLY);
    case_begin();
    if (write(fd, text, strlen(text)) < 0 && errno != EAGAIN) {
        case_not_here(name, "memory.reclaim");
    }
    case_end(&s);
    close(fd);
    case_check(buf, pages, 0);
    case_report(name, "", &s);
    memory_unmap(buf, pages);
    (void)memory_join("");
    (void)memory_remove_group("/counts");
}

static void run_getppid(void)
{
    struct counts_series s = {0};

    for (int i = 0; i < REPEAT; i++) {
        case_begin();
        (void)getppid();
        case_end(&s);
    }
    case_report("getppid", "", &s);
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
    case_begin(); /* the buffers of the readings are there from now on */
    case_begin();
    if (!counted) {
        printf("linux_counts: no " COUNTS_CPU " here: nothing is counted\n");
    }
    all_pageout();
    if (case_wanted("reclaim_dirty")) {
        run_reclaim("reclaim_dirty", true);
    }
    if (case_wanted("reclaim_clean")) {
        run_reclaim("reclaim_clean", false);
    }
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (case_wanted(others[i].name)) {
            others[i].run();
        }
    }
    printf("linux_counts: %s\n",
           wrong_pages == 0 ? "all pages as written" : "LOST DATA");
    return wrong_pages == 0 ? 0 : 1;
}
