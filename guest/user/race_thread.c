/* SPDX-License-Identifier: MIT */
/* A thread of race_mix: one operation after the other, drawn by weight. */
#define _GNU_SOURCE
#include "race_ops.h"

unsigned race_pick(struct race_thread *t, unsigned n)
{
    return (unsigned)((race_random(&t->random) >> 20) % n);
}

/* A call that may be refused for want of memory; true when it was not. */
bool race_granted(struct race_thread *t, const char *what, long r)
{
    if (r != -1) {
        return true;
    }
    if (errno == ENOMEM || errno == EAGAIN || errno == EBUSY) {
        atomic_fetch_add(&race_board->refused, 1);
        return false;
    }
    fprintf(stderr, "race_mix: %s: %s\n", what, strerror(errno));
    race_found(RACE_FOUND_CALL, t->id, 0, (uint64_t)errno, 0);
    return false;
}

/*
 * small: the weight with -k. There a run is two operations a thread, so that
 * those which take something away must come more often; an exec is longer than
 * all the rest.
 */
static const struct {
    void (*run)(struct race_thread *t, struct race_slot *s);
    unsigned weight, small;
    bool noisy; /* left out with -q: processes, groups and CPUs */
} operations[] = {
    {race_op_write, 12, 14, false},     {race_op_verify, 8, 6, false},
    {race_op_advise, 14, 30, false},   {race_op_protect, 6, 16, false},
    {race_op_unmap, 6, 16, false},      {race_op_remap, 4, 16, false},
    {race_op_all, 8, 24, false},       {race_op_team, 40, 50, false},
    {race_op_move_pages, 5, 14, false}, {race_op_migrate_pages, 1, 1, true},
    {race_op_reclaim, 3, 1, true},     {race_op_move_cpu, 3, 4, true},
    {race_op_fork, 2, 2, true},        {race_op_exec, 1, 0, true},
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static unsigned weight_of(unsigned i)
{
    if (race_opt.calm && operations[i].noisy) {
        return 0;
    }
    return race_opt.small ? operations[i].small : operations[i].weight;
}

static unsigned next_operation(struct race_thread *t)
{
    unsigned sum = 0, i, n;

    for (i = 0; i < OPERATIONS; i++) {
        sum += weight_of(i);
    }
    n = race_pick(t, sum);
    if (race_opt.choose) { /* the machine may want another one */
        n = (n + (unsigned)scenario_choose(sum)) % sum;
    }
    for (i = 0; i < OPERATIONS; i++) {
        if (n < weight_of(i)) {
            break;
        }
        n -= weight_of(i);
    }
    return i;
}

static void make_slot(struct race_thread *t, unsigned i)
{
    struct race_slot *s = &t->slots[i];
    bool big = i == RACE_BIG_SLOT;

    s->pages = big ? RACE_BIG_PAGES : (unsigned)race_opt.pages;
    s->states = calloc(s->pages, sizeof(*s->states));
    if (s->states == NULL) {
        memory_die("race_mix: calloc");
    }
    for (unsigned home = 0; home < 2; home++) {
        s->home[home] = memory_map(s->pages, big ? 0 : race_pick(t, PMD_PAGES),
                                   MAP_PRIVATE);
    }
}

void race_thread_init(struct race_thread *t, unsigned id)
{
    t->id = id;
    t->random = (race_opt.seed + 1) * 0x9e3779b97f4a7c15ULL ^
                (id + 1) * 0xbf58476d1ce4e5b9ULL;
    for (unsigned i = 0; i < RACE_SLOTS; i++) {
        make_slot(t, i);
    }
}

void race_thread_step(struct race_thread *t)
{
    struct race_slot *s = &t->slots[race_pick(t, RACE_SLOTS)];

    s->used = true;
    operations[next_operation(t)].run(t, s);
    atomic_fetch_add(&race_board->operations, 1);
}

void race_thread_run(struct race_thread *t)
{
    for (unsigned long n = 0; race_opt.rounds == 0 || n < race_opt.rounds;
         n++) {
        if (atomic_load(&race_board->stop) != 0 ||
            atomic_load(&race_board->findings) != 0) {
            break;
        }
        race_thread_step(t);
    }
}

/* Looks at everything once more and gives all of it back. */
void race_thread_end(struct race_thread *t)
{
    for (unsigned i = 0; i < RACE_CHILDREN; i++) {
        race_reap(t, i);
    }
    for (unsigned i = 0; i < RACE_SLOTS; i++) {
        struct race_slot *s = &t->slots[i];

        race_op_verify(t, s);
        memory_unmap(s->home[0], s->pages);
        memory_unmap(s->home[1], s->pages);
        free(s->states);
    }
}
