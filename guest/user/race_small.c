/* SPDX-License-Identifier: MIT */
/*
 * race_mix as a scenario (-k): a mix so small that it can be run in thousands
 * of orders, and another one each time. Protocol:
 *
 *   set up   threads fill their slots and page out all but the first; the first
 *            thread does it with the pools; everybody then reads them again,
 * and every second page of the pools and of the second slot. So pages are
 *            mapped and clean, by one or by all, or in swap, or never were
 * there BEGIN    each thread does a few operations; the machine gives it a
 * number for each, from which operation and operands follow check    each
 * thread looks at the slots that it drew; who is last, at the pools END      by
 * who is last; until then the others sleep
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "race_ops.h"
#include "shared.h"

/* Before the race: only written; half of it in swap. The others are clean. */
#define DIRTY_SLOT 0
#define HALF_SLOT 1

static struct scenario_step go; /* 1: the race has begun */

void race_small_options(void)
{
    race_opt.small = true;
    race_opt.processes = 1;
    race_opt.threads = 3;
    race_opt.pages = 2;
    race_opt.shared_pages = 3;
    race_opt.rounds = 2;
    race_opt.stride = PAGE_WORDS / 4;
    race_opt.spread = PMD_PAGES;
    race_opt.visits = 3;
}

/* --- before the race --- */

static void fill_slot(struct race_thread *t, struct race_slot *s)
{
    bool big = s->pages == RACE_BIG_PAGES;

    for (unsigned page = 0; page < s->pages;
         page += big ? race_opt.spread : 1) {
        race_page_write(t, s, page);
    }
    if (s != &t->slots[DIRTY_SLOT]) {
        (void)memory_advise(s->home[s->at], s->pages, MADV_PAGEOUT);
    }
}

static void read_slot(const struct race_slot *s, unsigned step)
{
    for (unsigned page = 0; page < s->pages; page += step) {
        (void)s->home[s->at][page * PAGE_WORDS];
    }
}

static void read_pool(const struct race_pool *pool)
{
    for (unsigned page = 0; page < pool->pages; page += 2) {
        (void)pool->memory[page * PAGE_WORDS];
    }
}

static void fill_pool(struct race_pool *pool)
{
    race_pool_fill(pool);
    (void)memory_advise(pool->memory, pool->pages, MADV_PAGEOUT);
}

/* Everybody has come to that step of the set-up. */
static void meet(uint32_t step)
{
    shared_add(&race_board->ready, 1);
    shared_wait(&race_board->ready, step * (uint32_t)race_opt.threads);
}

static void set_up(struct race_thread *t)
{
    (void)pin_to_cpu(t->id % race_cpus);
    for (unsigned i = 0; i < RACE_SLOTS; i++) {
        fill_slot(t, &t->slots[i]);
    }
    if (t->id == 0) {
        fill_pool(&race_all);
        fill_pool(&race_team);
    }
    meet(1);
    for (unsigned i = 0; i < RACE_SLOTS; i++) {
        read_slot(&t->slots[i], i == RACE_BIG_SLOT ? race_opt.spread
                                : i == HALF_SLOT   ? 2
                                                   : 1);
    }
    read_pool(&race_all);
    read_pool(&race_team);
    meet(2);
}

/* --- the race --- */

/* What the thread draws next follows from the machine's number. */
static void take_number(struct race_thread *t, unsigned long round)
{
    uint64_t x = (uint64_t)t->id << 48 | (uint64_t)(round & 0xffff) << 32 |
                 race_opt.seed << 10 | scenario_choose(ANNOT_CHOOSE_MAX);

    x = (x + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    t->random = x != 0 ? x : 1;
}

static void check(struct race_thread *t)
{
    for (unsigned i = 0; i < RACE_CHILDREN; i++) {
        race_reap(t, i);
    }
    for (unsigned i = 0; i < RACE_SLOTS; i++) {
        if (t->slots[i].used) {
            race_op_verify(t, &t->slots[i]);
        }
    }
}

static void *small_main(void *arg)
{
    struct race_thread *t = arg;

    set_up(t);
    if (t->id == 0) {
        scenario_mark(ANNOT_MARK_BEGIN);
        scenario_arrive(&go, 1);
    } else {
        scenario_wait(&go, 1, race_opt.threads > race_cpus);
    }
    for (unsigned long n = 0; n < race_opt.rounds; n++) {
        take_number(t, n);
        race_thread_step(t);
    }
    check(t);
    if (atomic_fetch_add(&race_board->done, 1) + 1 == race_opt.threads) {
        race_pool_verify(t, &race_all);
        race_pool_verify(t, &race_team);
        if (atomic_load(&race_board->findings) == 0) {
            scenario_mark(ANNOT_MARK_END);
        }
        shared_set(&race_board->over, 1);
    }
    shared_wait(&race_board->over, 1);
    return NULL;
}

void race_small_process(struct race_thread *threads)
{
    for (unsigned i = 1; i < race_opt.threads; i++) {
        if (pthread_create(&threads[i].thread, NULL, small_main, &threads[i]) !=
            0) {
            perror("race_mix: pthread_create");
            _exit(2);
        }
    }
    (void)small_main(&threads[0]);
    for (unsigned i = 1; i < race_opt.threads; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    for (unsigned i = 0; i < race_opt.threads; i++) {
        race_thread_end(&threads[i]);
    }
}
