/* SPDX-License-Identifier: MIT */
/*
 * The scenarios of museum_mm: what is set up, and which operations race.
 *
 * Pages that are reclaimed during the race are charged to a group of their own,
 * made for it, and memory.reclaim of that is asked for them.
 */
#define _GNU_SOURCE
#include "museum_mm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "memory.h"

#define GROUP "/museum"
#define BLOCK (2UL << 20)
#define OTHERS 4 /* pages that only one operation is about */

const struct scenario *scenario;
static volatile uint64_t *area;
static volatile uint64_t *other;
static int reclaim_fd = -1;
static char reclaim_text[24];
static struct memory_move moving;
static pid_t child;
struct scenario_step go;
static struct scenario_step *shared; /* with children */
bool crowded;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *at(volatile uint64_t *from, unsigned long page)
{
    return (void *)(uintptr_t)(from + page * PAGE_WORDS);
}

static volatile uint64_t *map_at(void *where, unsigned long bytes)
{
    void *p =
        mmap(where, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

    if (p == MAP_FAILED) {
        die("museum_mm: mmap");
    }
    return p;
}

/* Room for two blocks, the first of them aligned; nothing is mapped there. */
static volatile uint64_t *map_blocks(void)
{
    uintptr_t p = (uintptr_t)map_at(NULL, 3 * BLOCK);
    uintptr_t start = (p + BLOCK - 1) & ~(BLOCK - 1);

    if (munmap((void *)p, 3 * BLOCK) != 0) {
        die("museum_mm: munmap");
    }
    return (volatile uint64_t *)start;
}

void area_map(void)
{
    if (scenario->split) {
        area = map_blocks() + (BLOCK / PAGE - scenario->pages / 2) * PAGE_WORDS;
    }
    area = map_at((void *)(uintptr_t)area, scenario->pages * PAGE);
}

static void advise(unsigned long page, unsigned long pages, int advice)
{
    if (madvise(at(area, page), pages * PAGE, advice) != 0) {
        die("museum_mm: madvise");
    }
}

static void write_all(void)
{
    for (unsigned long i = 0; i < scenario->pages; i++) {
        area[i * PAGE_WORDS] = i + 1;
    }
}

void read_all(void)
{
    for (unsigned long i = 0; i < scenario->pages; i++) {
        (void)area[i * PAGE_WORDS];
    }
}

void start(pthread_t *thread, void *(*fn)(void *))
{
    int error = fn == NULL ? 0 : pthread_create(thread, NULL, fn, NULL);

    if (error != 0) {
        fprintf(stderr, "museum_mm: thread: %s\n", strerror(error));
        exit(1);
    }
}

/* --- another process, on CPU 1 --- */

/* child is 0 in it. */
static void child_start(void)
{
    void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        die("museum_mm: mmap");
    }
    shared = p;
    child = fork();
    if (child < 0) {
        die("museum_mm: fork");
    }
    if (child == 0) {
        (void)pin_to_cpu(1);
    }
}

static void wait_child(void)
{
    (void)waitpid(child, NULL, 0);
}

/* --- pages that can be reclaimed by request --- */

static void group_open(void)
{
    (void)memory_make_group(GROUP);
    if (memory_join(GROUP) != 0) {
        printf("museum_mm: no " CGROUP GROUP " here (%s): nothing is "
               "reclaimed\n",
               strerror(errno));
    }
}

/* What is charged from now on is not for the race. */
static void group_close(void)
{
    (void)memory_join("");
    reclaim_fd = open(CGROUP GROUP "/memory.reclaim", O_WRONLY);
    snprintf(reclaim_text, sizeof(reclaim_text), "%lu", scenario->pages * PAGE);
}

static void grouped(void)
{
    group_open();
    write_all();
    group_close();
}

/* The same, with a copy in swap that is still good. */
static void grouped_clean(void)
{
    group_open();
    write_all();
    advise(0, scenario->pages, MADV_PAGEOUT);
    read_all();
    group_close();
}

/* Not all of it may go. */
static void reclaim_bytes(const char *text)
{
    if (reclaim_fd >= 0) {
        (void)!write(reclaim_fd, text, strlen(text));
    }
}

static void reclaim(void)
{
    reclaim_bytes(reclaim_text);
}

/*
 * The same by another process, on CPU 1: copying the number from this one would
 * wait for its mmap_lock. It has none of the pages that are written after this.
 */
static void reclaimer_start(void)
{
    (void)memory_make_group(GROUP);
    child_start();
    if (child == 0) {
        group_close();
        scenario_arrive(&shared[1], STEP_TOUCH);
        scenario_wait(&shared[0], STEP_RACE, crowded);
        reclaim();
        scenario_arrive(&shared[1], STEP_OVER);
        _exit(0);
    }
    scenario_wait(&shared[1], STEP_TOUCH, crowded);
}

static void reclaimer_go(void)
{
    scenario_arrive(&shared[0], STEP_RACE);
}

static void reclaimer_wait(void)
{
    scenario_wait(&shared[1], STEP_OVER, crowded);
}

static void ungroup(void)
{
    unsigned char there[64];
    unsigned long out = 0;

    if (mincore(at(area, 0), scenario->pages * PAGE, there) == 0) {
        for (unsigned long i = 0; i < scenario->pages; i++) {
            out += !(there[i] & 1);
        }
        printf("museum_mm: %lu of %lu pages are out\n", out, scenario->pages);
    }
    if (reclaim_fd >= 0) {
        close(reclaim_fd);
    }
    (void)munmap(at(area, 0), scenario->pages * PAGE);
    (void)memory_remove_group(GROUP);
}

/* --- operations --- */

static void forbid(void)
{
    if (mprotect(at(area, 0), scenario->pages * PAGE, PROT_NONE) != 0) {
        die("museum_mm: mprotect");
    }
}

static void dont_need(void)
{
    advise(0, scenario->pages, MADV_DONTNEED);
}

static void dont_need_other(void)
{
    if (madvise(at(other, 0), OTHERS * PAGE, MADV_DONTNEED) != 0) {
        die("museum_mm: madvise");
    }
}

static void unmap(void)
{
    if (munmap(at(area, 0), scenario->pages * PAGE) != 0) {
        die("museum_mm: munmap");
    }
}

static void move_to(volatile uint64_t *to)
{
    if (mremap(at(area, 0), scenario->pages * PAGE, scenario->pages * PAGE,
               MREMAP_MAYMOVE | MREMAP_FIXED, at(to, 0)) != at(to, 0)) {
        die("museum_mm: mremap");
    }
}

/* Nobody uses what is at the target. */
static void move_reclaimed(void)
{
    reclaimer_go();
    move_to(other);
    reclaimer_wait();
}

static void forbid_reclaimed(void)
{
    reclaimer_go();
    forbid();
    reclaimer_wait();
}

/* --- scenarios that need more --- */

static void prepare_pages(void)
{
    write_all();
}

static void prepare_twice(void)
{
    write_all();
    other = map_at(NULL, OTHERS * PAGE);
    for (unsigned i = 0; i < OTHERS; i++) {
        other[i * PAGE_WORDS] = 1;
    }
}

/* The second takes away what nobody else looks at, then what the first does. */
static void other_then_area(void)
{
    dont_need_other();
    dont_need();
}

static void prepare_move(void)
{
    reclaimer_start();
    grouped_clean();
    other = map_at(NULL, scenario->pages * PAGE);
}

static void prepare_forbid(void)
{
    reclaimer_start();
    grouped();
}

static void after_move(void)
{
    area = other;
    wait_child();
    ungroup();
}

static void after_forbid(void)
{
    wait_child();
    ungroup();
}

static void prepare_target(void)
{
    other = map_at(NULL, scenario->pages * PAGE);
    write_all();
}

/* area is the target here: its pages are in the others' TLBs. */
static void move_over(void)
{
    volatile uint64_t *target = area;

    area = other;
    move_to(target);
    area = target;
}

static void prepare_nodes(void)
{
    write_all();
    memory_move_init(&moving, area, scenario->pages);
    memory_move_aim(&moving, 1);
}

static void move_pages(void)
{
    (void)memory_move_call(&moving, 0, 1); /* one node: it says so */
}

static void fork_now(void)
{
    child = fork();
    if (child == 0) {
        _exit(0);
    }
}

/* Writes while the other forks, and when it has. */
static void write_on(void)
{
    for (unsigned i = 0; i < 4; i++) {
        write_all();
    }
    scenario_wait(&go, STEP_OVER, crowded);
    write_all();
}

static void prepare_child(void)
{
    write_all();
    child_start();
    if (child == 0) {
        read_all();
        scenario_arrive(&shared[1], STEP_TOUCH);
        scenario_wait(&shared[0], STEP_RACE, crowded);
        _exit(0);
    }
    scenario_wait(&shared[1], STEP_TOUCH, crowded);
}

static void let_exit(void)
{
    scenario_arrive(&shared[0], STEP_RACE);
    wait_child();
}

/* Looks at the pages, and stays in the program. */
static void *onlooker_main(void *arg)
{
    (void)pin_to_cpu(3);
    read_all();
    scenario_arrive(&shared[2], STEP_TOUCH);
    scenario_wait(&shared[0], STEP_OVER, crowded);
    return arg;
}

/* A process of two threads that runs out of memory in the race. */
static void prepare_oom(void)
{
    (void)memory_make_group(GROUP);
    (void)memory_tell(CGROUP GROUP "/memory.max", "65536");
    (void)memory_tell(CGROUP GROUP "/memory.swap.max", "0");
    child_start();
    if (child == 0) {
        volatile uint64_t *more = map_at(NULL, 64 * PAGE);
        pthread_t thread;

        group_open();
        write_all();
        start(&thread, onlooker_main);
        scenario_wait(&shared[2], STEP_TOUCH, crowded);
        scenario_arrive(&shared[1], STEP_TOUCH);
        scenario_wait(&shared[0], STEP_RACE, crowded);
        for (unsigned i = 0; i < 64; i++) {
            more[i * PAGE_WORDS] = 1;
        }
        _exit(0);
    }
    scenario_wait(&shared[1], STEP_TOUCH, crowded);
}

/* One whole table's pages; reclaimed while the table goes somewhere else. */
static void prepare_table(void)
{
    volatile uint64_t *blocks = map_blocks();

    reclaimer_start();
    group_open();
    area = map_at(at(blocks, 0), BLOCK);
    write_all();
    advise(0, scenario->pages, MADV_PAGEOUT);
    read_all();
    group_close();
    other = map_at(at(blocks, BLOCK / PAGE), BLOCK);
}

static void move_table(void)
{
    reclaimer_go();
    if (mremap(at(area, 0), BLOCK, BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED,
               at(other, 0)) != at(other, 0)) {
        die("museum_mm: mremap");
    }
    area = other;
    read_all();
    reclaimer_wait();
}

const struct scenario scenarios[] = {
    {"reclaim-protect", 4, false, grouped_clean, reclaim, forbid, ungroup,
     "mprotect while the pages are reclaimed"},
    {"reclaim-dontneed", 4, true, grouped_clean, reclaim, dont_need, ungroup,
     "MADV_DONTNEED of two tables' pages while they are reclaimed"},
    {"protect-reclaim", 8, true, prepare_forbid, forbid_reclaimed, NULL,
     after_forbid, "reclaim of pages that mprotect has made inaccessible"},
    {"twice", 4, false, prepare_pages, dont_need, dont_need, NULL,
     "MADV_DONTNEED of the same pages, twice at once"},
    {"thrice", 4, false, prepare_twice, dont_need, other_then_area, NULL,
     "the same, after one of another page"},
    {"migrate", 4, false, prepare_nodes, move_pages, dont_need, NULL,
     "MADV_DONTNEED while the pages go to another node"},
    {"exit", 4, false, prepare_child, let_exit, NULL, NULL, "a process ends"},
    {"mremap", 4, true, prepare_move, move_reclaimed, NULL, after_move,
     "reclaim of pages that mremap has moved"},
    {"unmap-tables", 4, true, prepare_pages, unmap, NULL, NULL,
     "munmap of two tables' pages"},
    {"unmap-dontneed", 4, true, prepare_twice, unmap, dont_need_other, NULL,
     "munmap of pages and tables, MADV_DONTNEED of other pages"},
    {"oom", 4, false, prepare_oom, let_exit, NULL, NULL,
     "a process of two threads is killed for want of memory"},
    {"mremap-table", 4, false, prepare_table, move_table, NULL, after_forbid,
     "reclaim of pages whose table mremap has moved"},
    {"mremap-over", 4, false, prepare_target, move_over, NULL, NULL,
     "mremap to where something is mapped"},
    {"fork", 4, false, prepare_pages, fork_now, write_on, wait_child,
     "writes while a process forks"},
};

const unsigned scenario_count = sizeof(scenarios) / sizeof(*scenarios);
