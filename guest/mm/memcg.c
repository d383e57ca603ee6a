/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory groups: charging and the tree. A charge is an atomic addition at the
 * group and at each one above it; one that goes over a limit is taken back.
 */
#include "mm/memcg.h"

#include "kernel/errno.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "mm/counters.h"
#include "mm/vmscan.h"

#define CHARGE_RETRIES 16

struct memcg memcgs[MEMCG_MAX];

void memcg_init(void)
{
    for (unsigned i = 0; i < MEMCG_MAX; i++) {
        struct memcg *g = &memcgs[i];

        g->id = (uint16_t)i;
        atomic_init(&g->max, MEMCG_NO_LIMIT);
        for (unsigned node = 0; node < MAX_NODES; node++) {
            lru_init(&g->lruvecs[node]);
        }
    }
    atomic_store(&memcgs[0].online, true);
    atomic_store(&memcgs[0].used, true);
}

/* Is the group top or below it? Parents of used groups do not change. */
static bool is_below(const struct memcg *g, const struct memcg *top)
{
    while (g != NULL && g != top) {
        g = g->parent;
    }
    return g != NULL;
}

struct memcg *memcg_next(const struct memcg *top, struct memcg *last)
{
    unsigned i = last == NULL ? 0 : last->id + 1U;

    for (; i < MEMCG_MAX; i++) {
        struct memcg *g = &memcgs[i];

        /* Acquire: pairs with the release of memcg_make(). */
        if (atomic_load_explicit(&g->used, memory_order_acquire) &&
            is_below(g, top)) {
            return g;
        }
    }
    return NULL;
}

/* --- charging --- */

static struct memcg *current_group(void)
{
    struct process *process = current()->process;
    struct memcg *g = process == NULL
                          ? NULL
                          : __atomic_load_n(&process->memcg, __ATOMIC_RELAXED);

    return g == NULL ? memcg_root() : g;
}

static void uncharge(struct memcg *g, int64_t pages)
{
    for (; g->parent != NULL; g = g->parent) {
        atomic_fetch_sub_explicit(&g->usage, pages, memory_order_relaxed);
    }
}

/* NULL: charged. Else the group that is at its limit. */
static struct memcg *try_charge(struct memcg *group, int64_t pages)
{
    for (struct memcg *g = group; g->parent != NULL; g = g->parent) {
        int64_t now =
            atomic_fetch_add_explicit(&g->usage, pages, memory_order_relaxed) +
            pages;

        if (now > atomic_load_explicit(&g->max, memory_order_relaxed)) {
            for (struct memcg *u = group;; u = u->parent) {
                atomic_fetch_sub_explicit(&u->usage, pages,
                                          memory_order_relaxed);
                if (u == g) {
                    return g;
                }
            }
        }
    }
    return NULL;
}

static bool charge(struct memcg *group, int64_t pages, unsigned flags)
{
    struct memcg *over = try_charge(group, pages);

    if (over == NULL) {
        return true;
    }
    if (!(flags & PAGE_ALLOC_RECLAIM)) {
        return false;
    }
    if (current()->tlb_ubc.in_reclaim) {
        /* Reclaim must make progress: beyond the limit, as Linux does. */
        for (struct memcg *g = group; g->parent != NULL; g = g->parent) {
            atomic_fetch_add_explicit(&g->usage, pages, memory_order_relaxed);
        }
        return true;
    }
    for (unsigned retries = CHARGE_RETRIES; over != NULL;) {
        unsigned freed;

        atomic_fetch_add_explicit(&over->events_max, 1, memory_order_relaxed);
        if (task_killed(current())) {
            return false;
        }
        freed = vmscan_group(over, (unsigned)pages, false);
        if (freed == 0 && retries-- == 0) {
            atomic_fetch_add_explicit(&over->events_oom, 1,
                                      memory_order_relaxed);
            return false;
        }
        if (freed == 0) {
            sched_yield(); /* others may be at what we want */
        }
        over = try_charge(group, pages);
    }
    return true;
}

bool memcg_charge(struct page *page, unsigned flags)
{
    struct memcg *g = current_group();

    if (g->parent == NULL) {
        return true;
    }
    if (!charge(g, (int64_t)1 << page->order, flags)) {
        return false;
    }
    page->memcg = g->id;
    return true;
}

void memcg_uncharge(struct page *page, unsigned order)
{
    uncharge(memcg_of(page), (int64_t)1 << order);
    page->memcg = 0;
}

void memcg_move_charge(struct page *from, struct page *to)
{
    to->memcg = from->memcg;
    from->memcg = 0;
}

void memcg_split(struct page *head, unsigned pages)
{
    for (unsigned i = 1; i < pages; i++) {
        head[i].memcg = head->memcg;
    }
}

/* --- processes --- */

void memcg_enter(struct process *process, struct memcg *group)
{
    struct memcg *old = process->memcg;

    atomic_fetch_add(&group->procs, 1);
    __atomic_store_n(&process->memcg, group, __ATOMIC_RELEASE);
    if (old != NULL) {
        atomic_fetch_sub(&old->procs, 1);
    }
}

void memcg_leave(struct process *process)
{
    struct memcg *old =
        __atomic_exchange_n(&process->memcg, NULL, __ATOMIC_ACQ_REL);

    if (old != NULL) {
        atomic_fetch_sub(&old->procs, 1);
    }
}

void memcg_note_oom_kill(void)
{
    counter_inc(oom_kills);
    for (struct memcg *g = current_group(); g != NULL; g = g->parent) {
        atomic_fetch_add_explicit(&g->events_oom_kill, 1, memory_order_relaxed);
    }
}

/* --- the tree --- */

/* Nobody is below the group, not even a removed group with pages. */
static bool is_leaf(const struct memcg *group, bool only_online)
{
    for (unsigned i = 1; i < MEMCG_MAX; i++) {
        const struct memcg *g = &memcgs[i];

        if (g->parent == group && atomic_load(&g->used) &&
            (atomic_load(&g->online) ||
             (!only_online && atomic_load(&g->usage) != 0))) {
            return false;
        }
    }
    return true;
}

struct memcg *memcg_make(struct memcg *parent)
{
    for (unsigned i = 1; i < MEMCG_MAX; i++) {
        struct memcg *g = &memcgs[i];

        if (atomic_load(&g->online) || atomic_load(&g->usage) != 0 ||
            !is_leaf(g, false)) {
            continue;
        }
        atomic_store(&g->used, false);
        g->parent = parent;
        atomic_store(&g->max, MEMCG_NO_LIMIT);
        atomic_store(&g->events_max, 0);
        atomic_store(&g->events_oom, 0);
        atomic_store(&g->events_oom_kill, 0);
        atomic_fetch_add(&g->use, 1);
        atomic_store(&g->online, true);
        atomic_store_explicit(&g->used, true, memory_order_release);
        return g;
    }
    return NULL;
}

int memcg_remove(struct memcg *group)
{
    if (atomic_load(&group->procs) != 0 || !is_leaf(group, true)) {
        return -EBUSY;
    }
    /* What is left of its pages is still reclaimed with its parent's. */
    atomic_store(&group->online, false);
    return 0;
}

void memcg_set_max(struct memcg *group, int64_t pages)
{
    unsigned retries = CHARGE_RETRIES;

    atomic_store(&group->max, pages);
    while (!task_killed(current())) {
        int64_t over = atomic_load(&group->usage) - pages;

        if (over <= 0 ||
            (vmscan_group(group, (unsigned)min_u64((uint64_t)over, 1024),
                          false) == 0 &&
             retries-- == 0)) {
            break;
        }
    }
}
