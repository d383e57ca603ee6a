/* SPDX-License-Identifier: MIT */
/*
 * ipi_counts: how many flush requests other CPUs get for what a program on CPU
 * 0 does with its memory, where TLBs are flushed by interrupt (tlb=ipi). What
 * the other CPUs do is a mode of others.h: U, T or I.
 *
 * Before each case nothing is pending and the program has visited every CPU, so
 * that all may be in the address space's mask. Of each case is told
 *
 *   case NAME mode M cpus N pages P: received R counter value ...
 *
 * received counts flush requests handled on other CPUs, of all of the machine.
 * docs/LINUX.md compares. Pages are checked after each case.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "counts.h"
#include "memory.h"
#include "others.h"

#define GROUP "/ipi"

static struct {
    unsigned long pages;
    unsigned long active; /* 0: all */
    char mode;
    const char *only;
} opt = {.pages = 4096, .mode = 'U'};

/* What the helper process is told, and how far it is. */
struct helper {
    _Atomic uint32_t asked, done;
    uint32_t error;
};

static struct helper *helper;
static pid_t helper_pid;

static volatile uint64_t *spare; /* a page to spend mprotect calls on */
static unsigned long wrong_pages;
static struct counts before, after;
static bool counted;

/* Reclaims from the group on request, as another process on CPU 0. */
static void helper_main(void)
{
    (void)pin_to_cpu(0);
    for (uint32_t n = 1;; n++) {
        shared_wait(&helper->asked, n);
        helper->error = memory_reclaim(GROUP, opt.pages) != 0 ? errno : 0;
        shared_set(&helper->done, n);
    }
}

static void start_helper(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        helper_main();
    }
    if (pid < 0) {
        memory_die("ipi_counts: fork");
    }
    helper_pid = pid;
}

static void protect(volatile uint64_t *buf, unsigned long pages, int prot)
{
    if (mprotect((void *)(uintptr_t)buf, pages * PAGE, prot) != 0) {
        memory_die("ipi_counts: mprotect");
    }
}

/* Nothing is pending after this. */
static void drain(void)
{
    protect(spare, 1, PROT_READ | PROT_WRITE);
    spare[0] = 1;
    protect(spare, 1, PROT_READ);
}

static void begin(void)
{
    counted = counts_read(COUNTS_ALL, &before);
}

static void end(const char *name)
{
    struct counts_series s = {0};
    unsigned long received;
    int column;

    if (!counts_read(COUNTS_ALL, &after) || !counted) {
        printf("case %s mode %c cpus %u pages %lu: not counted\n", name,
               opt.mode, others.cpus, opt.pages);
        return;
    }
    counts_series_add(&s, &before, &after);
    received = s.max.value[COUNT_remote_flush_received];
    column = printf("case %s mode %c cpus %u pages %lu: received %lu", name,
                    opt.mode, others.cpus, opt.pages, received);
    counts_series_print(&s, column);
}

static bool wanted(const char *name)
{
    return opt.only == NULL || strcmp(name, opt.only) == 0;
}

static void skipped(const char *name, const char *why, int error)
{
    printf("case %s skipped: %s: %s\n", name, why, strerror(error));
}

/* A fresh buffer, its pages written; clean: paged out and read back. */
static volatile uint64_t *make_buffer(bool clean)
{
    volatile uint64_t *buf = memory_map(opt.pages, 0, MAP_PRIVATE);

    memory_write(buf, opt.pages, 1);
    if (clean) {
        if (memory_advise(buf, opt.pages, MADV_PAGEOUT) != 0) {
            memory_die("ipi_counts: madvise");
        }
        wrong_pages += memory_check(buf, opt.pages, 1);
    }
    drain();
    others_visit_all();
    return buf;
}

static void drop_buffer(volatile uint64_t *buf)
{
    wrong_pages += memory_check(buf, opt.pages, 1);
    memory_unmap(buf, opt.pages);
}

static void case_reclaim(const char *name, bool clean)
{
    volatile uint64_t *buf = make_buffer(clean);
    int r;

    begin();
    r = memory_reclaim(GROUP, opt.pages);
    end(name);
    if (r != 0 && errno != EAGAIN) {
        skipped(name, "memory.reclaim", errno);
    } else if (!clean) {
        begin();
        protect(buf, opt.pages, PROT_READ);
        end("mprotect_after_reclaim");
    }
    drop_buffer(buf);
}

static void case_reclaim_by_other(const char *name)
{
    volatile uint64_t *buf = make_buffer(false);
    uint32_t n = atomic_load(&helper->asked) + 1;

    begin();
    shared_set(&helper->asked, n);
    shared_wait(&helper->done, n);
    end(name);
    if (helper->error != 0 && helper->error != EAGAIN) {
        skipped(name, "memory.reclaim", (int)helper->error);
    }
    drop_buffer(buf);
}

static void case_pageout(const char *name, bool clean)
{
    volatile uint64_t *buf = make_buffer(clean);

    begin();
    if (memory_advise(buf, opt.pages, MADV_PAGEOUT) != 0) {
        memory_die("ipi_counts: madvise");
    }
    end(name);
    drop_buffer(buf);
}

static void case_move_pages(const char *name)
{
    volatile uint64_t *buf = make_buffer(false);
    struct memory_move m;
    long r;

    memory_move_init(&m, buf, opt.pages);
    memory_move_aim(&m, 1);
    drain();
    others_visit_all();
    begin();
    r = memory_move_call(&m, 0, 1);
    end(name);
    if (r != 0) {
        skipped(name, "move_pages", errno);
    } else {
        wrong_pages += memory_on_node(&m, 1) != opt.pages;
    }
    memory_move_free(&m);
    drop_buffer(buf);
}

static void case_migrate_pages(const char *name)
{
    volatile uint64_t *buf = make_buffer(false);
    unsigned long from = 1, to = 2;
    long r;

    begin();
    r = syscall(SYS_migrate_pages, 0, 64, &from, &to);
    end(name);
    if (r < 0) {
        skipped(name, "migrate_pages", errno);
    }
    drop_buffer(buf);
    (void)syscall(SYS_migrate_pages, 0, 64, &to, &from);
}

/* mprotect of one present page: who is told depends on the time gone by. */
static void case_trim(const char *name)
{
    static const struct {
        const char *name;
        unsigned sleep_ms;
    } steps[] = {
        {"trim_due", 1300},
        {"trim_soon_after", 0},
        {"trim_due_again", 1300},
        {"trim_again", 0},
    };

    (void)name;
    protect(spare, 1, PROT_READ | PROT_WRITE);
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i].sleep_ms > 0) {
            others_let_time_pass(steps[i].sleep_ms);
        }
        others_visit_all();
        spare[0] = i;
        begin();
        protect(spare, 1, PROT_READ);
        end(steps[i].name);
        /* To allow more flushes nothing. */
        protect(spare, 1, PROT_READ | PROT_WRITE);
    }
}

static void run_reclaim_dirty(const char *name)
{
    case_reclaim(name, false);
}

static void run_reclaim_clean(const char *name)
{
    case_reclaim(name, true);
}

static void run_pageout_dirty(const char *name)
{
    case_pageout(name, false);
}

static void run_pageout_clean(const char *name)
{
    case_pageout(name, true);
}

static const struct {
    const char *name;
    void (*run)(const char *name);
} cases[] = {
    {"trim", case_trim},
    {"reclaim_dirty", run_reclaim_dirty},
    {"reclaim_by_other", case_reclaim_by_other},
    {"pageout_dirty", run_pageout_dirty},
    {"reclaim_clean", run_reclaim_clean},
    {"pageout_clean", run_pageout_clean},
    {"move_pages", case_move_pages},
    {"migrate_pages", case_migrate_pages},
};

static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: ipi_counts [-m U|T|I] [-a CPUS] [-p PAGES] [-o CASE]\n"
        "  -m  the other CPUs: U unrelated processes spin (the default),\n"
        "      T threads of this program spin, I they are idle\n"
        "  -a  with -m T: CPUs with a thread, CPU 0 among them, default "
        "all;\n"
        "      nothing else runs on the others, which never had the program\n"
        "  -p  pages of the buffer, default 4096\n"
        "  -o  only that case:");
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fprintf(to, "%s%s", i % 4 == 0 ? "\n      " : " ", cases[i].name);
    }
    fprintf(to, "\nPrints how many flush requests other CPUs got.\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "m:a:p:o:h")) != -1) {
        switch (c) {
        case 'm':
            opt.mode = others_option("ipi_counts", optarg);
            break;
        case 'a':
            opt.active = option_number("ipi_counts", 'a', optarg, 1);
            break;
        case 'p':
            opt.pages = option_number("ipi_counts", 'p', optarg, 1);
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

/* The program's own pages are there before it joins the group: not its own. */
static void touch_own(void)
{
    volatile char stack[1 << 16];

    for (size_t i = 0; i < sizeof(stack); i += 1024) {
        stack[i] = 1;
    }
    begin();
    end("warm_up");
}

static void start(void)
{
    helper = shared_map(PAGE);
    start_helper();
    others_begin(opt.mode);
    /* Keeps the tables above those of the buffers. */
    spare = memory_map(1, 0, MAP_PRIVATE);
    spare[0] = 1;
    touch_own();
    (void)memory_make_group(GROUP);
    if (memory_join(GROUP) != 0) {
        printf("ipi_counts: no " CGROUP GROUP ": %s\n", strerror(errno));
    }
}

static void finish(void)
{
    others_end();
    kill(helper_pid, SIGKILL);
    waitpid(helper_pid, NULL, 0);
    (void)memory_join("");
    (void)memory_remove_group(GROUP);
    printf("ipi_counts: %s\n",
           wrong_pages == 0 ? "all pages as written" : "LOST DATA");
}

int main(int argc, char **argv)
{
    parse_options(argc, argv);
    if (opt.active != 0) {
        others_begin_alone(argv);
    }
    others.active =
        opt.mode == 'T' && opt.active < others.cpus ? (unsigned)opt.active : 0;
    start();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (wanted(cases[i].name)) {
            cases[i].run(cases[i].name);
        }
    }
    finish();
    exit(wrong_pages == 0 ? 0 : 1); /* the threads still spin */
}
