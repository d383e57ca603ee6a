/* SPDX-License-Identifier: MIT */
/*
 * museum_asid: address spaces that are given numbers, lose them and get others,
 * while TLBs still have entries under the old ones. For few ASIDs
 * (asid_bits=3).
 *
 *   -o rollover  reclaim on CPU 0 takes a page of a process away, while that
 *                comes back on CPU 1, all ASIDs are taken, and it gets another
 *                one by a rollover
 *   -o switch    processes take turns on each of three CPUs, so that ASIDs are
 *                always too few
 *   -o exit      address spaces end, and others begin (asid_free=on)
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <sys/wait.h>

#include "memory.h"
#include "scenario.h"
#include "shared.h"

#define GROUP "/museum_asid"
#define MAX_RING 16
#define RINGS 3

enum mode { MODE_ROLLOVER, MODE_SWITCH, MODE_EXIT, MODES };

static const char *const modes[MODES] = {"rollover", "switch", "exit"};
static const unsigned cpus[MODES] = {2, RINGS, 1};

enum step { STEP_READY = 1, STEP_GO = 2, STEP_BACK = 3, STEP_OVER = 4 };

static struct {
    enum mode mode;
    unsigned long ring;  /* processes that take turns */
    unsigned long turns; /* together */
} opt = {.ring = 8, .turns = 8};

/* In memory that all processes share. */
static struct {
    struct scenario_step main, victim;
    _Atomic uint32_t turn; /* rollover: of the victim */
    _Atomic uint32_t over;
    struct scenario_step member[RINGS][MAX_RING];
    struct {
        _Atomic uint32_t turns;
    } __attribute__((aligned(64))) ring[RINGS];
} * steps;

static pid_t children[RINGS * MAX_RING + 1];
static unsigned n_children;

static bool has_turned(unsigned ring)
{
    return atomic_load(&steps->ring[ring].turns) >= opt.turns;
}

static void wait_over(void)
{
    scenario_wait(&steps->main, STEP_OVER, 0);
    _exit(0);
}

/*
 * Has got an ASID, and sleeps; the last one has the CPU until the race begins,
 * and then lets the victim have it. No interrupt wakes the victim: its handler
 * has a DSB, after which the store that is to be late is visible.
 */
static void take_asid(unsigned ring, unsigned index)
{
    (void)pin_to_cpu(ring);
    scenario_arrive(&steps->member[ring][index], STEP_READY);
    if (index == opt.ring - 1) {
        scenario_wait(&steps->main, STEP_GO, 0);
        shared_set(&steps->turn, 1);
    }
    shared_wait(&steps->over, 1);
    _exit(0);
}

/* The first one has the CPU until the race begins. */
static void take_turns(unsigned ring, unsigned index)
{
    (void)pin_to_cpu(ring);
    if (index == 0) {
        for (unsigned i = 1; i < opt.ring; i++) {
            scenario_wait(&steps->member[ring][i], STEP_READY, 1);
        }
    }
    scenario_arrive(&steps->member[ring][index], STEP_READY);
    scenario_wait(&steps->main, STEP_GO, index != 0);
    while (!has_turned(ring)) {
        atomic_fetch_add(&steps->ring[ring].turns, 1);
        sched_yield();
    }
    wait_over();
}

/* Sleeps while its page is taken away, and looks at it when its turn comes. */
static void victim_main(unsigned ring)
{
    volatile uint64_t *page = memory_map(1, 0, MAP_PRIVATE);

    (void)pin_to_cpu(ring);
    (void)memory_join(GROUP);
    memory_write(page, 1, 1);
    (void)memory_join("");
    scenario_arrive(&steps->victim, STEP_READY);
    shared_wait(&steps->turn, 1);
    (void)*page;
    scenario_arrive(&steps->victim, STEP_BACK);
    shared_wait(&steps->over, 1);
    _exit(0);
}

/* True in the child. */
static bool child(void)
{
    pid_t pid = fork();

    if (pid < 0) {
        memory_die("museum_asid: fork");
    }
    if (pid != 0) {
        children[n_children++] = pid;
    }
    return pid == 0;
}

static void start_ring(unsigned ring)
{
    for (unsigned i = 0; i < opt.ring; i++) {
        if (child()) {
            take_turns(ring, i);
        }
    }
    scenario_wait(&steps->member[ring][0], STEP_READY, 0);
}

static void start_victim(void)
{
    if (child()) {
        victim_main(1);
    }
    scenario_wait(&steps->victim, STEP_READY, 0);
}

/*
 * Who causes a rollover gets the first ASID that is free. With 3 bits the main
 * process has 1, the first other one 2, the victim 3, four more 4 to 7; one
 * causes a rollover and gets 2, four more get 3 to 6 (7 was kept for the CPU).
 * Now all are taken, and the victim, when it comes back, gets 2 by the next
 * rollover.
 */
static void rollover(void)
{
    if (memory_make_group(GROUP) != 0) {
        memory_die("museum_asid: " CGROUP GROUP);
    }
    for (unsigned i = 0; i < opt.ring; i++) {
        if (i == 1) {
            start_victim();
        }
        if (child()) {
            take_asid(1, i);
        }
        scenario_wait(&steps->member[1][i], STEP_READY, 0);
    }
    scenario_mark(ANNOT_MARK_BEGIN);
    scenario_arrive(&steps->main, STEP_GO);
    (void)memory_reclaim(GROUP, 1);
    scenario_wait(&steps->victim, STEP_BACK, 0);
    scenario_mark(ANNOT_MARK_END);
    shared_set(&steps->over, 1);
}

static void take_turns_all(void)
{
    for (unsigned ring = 1; ring < RINGS; ring++) {
        start_ring(ring);
    }
    scenario_mark(ANNOT_MARK_BEGIN);
    scenario_arrive(&steps->main, STEP_GO);
    for (unsigned ring = 1; ring < RINGS; ring++) {
        while (!has_turned(ring)) {
            __asm__ volatile("yield");
        }
    }
    scenario_arrive(&steps->main, STEP_OVER);
    scenario_mark(ANNOT_MARK_END);
}

static void live_and_die(void)
{
    scenario_mark(ANNOT_MARK_BEGIN);
    for (unsigned long i = 0; i < opt.turns; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            _exit(0);
        }
        if (pid < 0) {
            memory_die("museum_asid: fork");
        }
        waitpid(pid, NULL, 0);
    }
    scenario_mark(ANNOT_MARK_END);
}

static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: museum_asid [-o WHAT] [-n PROCESSES] [-t TURNS]\n"
        "Address spaces get their numbers, lose them, and get others.\n"
        "  -o  rollover (default) under a TLB flush, switch on three CPUs,\n"
        "      or exit, which gives the number back\n"
        "  -n  processes on a CPU, default 8, at most 16; each has an ASID\n"
        "  -k  rollover: which of them comes back first, default 0, the "
        "oldest\n"
        "  -t  how many turns of switch, or lives of exit, default 8\n");
}

static bool parse_mode(const char *text)
{
    for (unsigned i = 0; i < MODES; i++) {
        if (strcmp(text, modes[i]) == 0) {
            opt.mode = (enum mode)i;
            return true;
        }
    }
    return false;
}

static void parse_options(int argc, char **argv)
{
    bool good = true;
    int c;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "o:n:t:h")) != -1) {
        switch (c) {
        case 'o':
            good = good && parse_mode(optarg);
            break;
        case 'n':
            opt.ring = option_number("museum_asid", 'n', optarg, 1);
            break;
        case 't':
            opt.turns = option_number("museum_asid", 't', optarg, 1);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (!good || opt.ring > MAX_RING || opt.turns > UINT32_MAX / 2) {
        usage(stderr);
        exit(2);
    }
    if (cpus_allowed() < cpus[opt.mode]) {
        fprintf(stderr, "museum_asid: -o %s needs %u CPUs\n", modes[opt.mode],
                cpus[opt.mode]);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static void (*const run[MODES])(void) = {rollover, take_turns_all,
                                             live_and_die};

    parse_options(argc, argv);
    (void)pin_to_cpu(0);
    steps = shared_map(sizeof(*steps));
    run[opt.mode]();
    for (unsigned i = 0; i < n_children; i++) {
        waitpid(children[i], NULL, 0);
    }
    printf("museum_asid: %s: ok\n", modes[opt.mode]);
    return 0;
}
