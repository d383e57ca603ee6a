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

struct memcg memcgs[MEMCG_MAX];

void memcg_init(void)
{
    for (unsigned i = 0; i < MEMCG_MAX; i++) {
        struct memcg *g = &memcgs[i];

        g->id = (uint16_t)i;
        atomic_init(&g->memory.max, MEMCG_NO_LIMIT);
        atomic_init(&g->swap.max, MEMCG_NO_LIMIT);
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

/* Where in struct memcg the counter is. */
#define MEMORY offsetof(struct memcg, memory)
#define SWAP offsetof(struct memcg, swap)

static struct memcg_limit *limit_of(struct memcg *g, size_t which)
{
    return (struct memcg_limit *)((char *)g + which);
}

/* The group and those above it, up to but not `end`. */
static void add(struct memcg *g, const struct memcg *end, size_t which,
                int64_t n)
{
    for (; g->parent != NULL && g != end; g = g->parent) {
        atomic_fetch_add_explicit(&limit_of(g, which)->usage, n,
                                  memory_order_relaxed);
    }
}

/* NULL: charged. Else the group that is at its limit. */
static struct memcg *try_charge(struct memcg *group, size_t which, int64_t n)
{
    for (struct memcg *g = group; g->parent != NULL; g = g->parent) {
        struct memcg_limit *limit = limit_of(g, which);
        int64_t old =
            atomic_fetch_add_explicit(&limit->usage, n, memory_order_relaxed);

        if (old + n > atomic_load_explicit(&limit->max, memory_order_relaxed)) {
            add(group, g->parent, which, -n);
            return g;
        }
    }
    return NULL;
}

static bool charge(struct memcg *group, int64_t pages, unsigned flags)
{
    struct memcg *over = try_charge(group, MEMORY, pages);
    struct vmscan_retries retries = {0};

    if (over == NULL) {
        return true;
    }
    if (!(flags & PAGE_ALLOC_RECLAIM)) {
        return false;
    }
    if (current()->tlb_ubc.in_reclaim) {
        /* Reclaim must make progress: beyond the limit, as Linux does. */
        add(group, NULL, MEMORY, pages);
        return true;
    }
    while (over != NULL) {
        atomic_fetch_add_explicit(&over->events_max, 1, memory_order_relaxed);
        if (!vmscan_again(&retries,
                          vmscan_group(over, (unsigned)pages, false))) {
            atomic_fetch_add_explicit(&over->events_oom, 1,
                                      memory_order_relaxed);
            return false;
        }
        over = try_charge(group, MEMORY, pages);
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
    add(memcg_of(page), NULL, MEMORY, -((int64_t)1 << order));
    page->memcg = 0;
}

bool memcg_charge_swap(uint16_t id)
{
    return try_charge(&memcgs[id], SWAP, 1) == NULL;
}

bool memcg_swap_full(uint16_t id)
{
    for (struct memcg *g = &memcgs[id]; g->parent != NULL; g = g->parent) {
        if (atomic_load_explicit(&g->swap.usage, memory_order_relaxed) >=
            atomic_load_explicit(&g->swap.max, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void memcg_uncharge_swap(uint16_t id)
{
    add(&memcgs[id], NULL, SWAP, -1);
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

static bool has_charges(const struct memcg *g)
{
    return atomic_load(&g->memory.usage) != 0 ||
           atomic_load(&g->swap.usage) != 0;
}

/* Nobody is below the group, not even a removed group with pages. */
static bool is_leaf(const struct memcg *group, bool only_online)
{
    for (unsigned i = 1; i < MEMCG_MAX; i++) {
        const struct memcg *g = &memcgs[i];

        if (g->parent == group && atomic_load(&g->used) &&
            (atomic_load(&g->online) || (!only_online && has_charges(g)))) {
            return false;
        }
    }
    return true;
}

struct memcg *memcg_make(struct memcg *parent)
{
    for (unsigned i = 1; i < MEMCG_MAX; i++) {
        struct memcg *g = &memcgs[i];

        if (atomic_load(&g->online) || has_charges(g) || !is_leaf(g, false)) {
            continue;
        }
        atomic_store(&g->used, false);
        g->parent = parent;
        atomic_store(&g->memory.max, MEMCG_NO_LIMIT);
        atomic_store(&g->swap.max, MEMCG_NO_LIMIT);
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
    struct vmscan_retries retries = {0};
    int64_t over;

    atomic_store(&group->memory.max, pages);
    do {
        over = atomic_load(&group->memory.usage) - pages;
    } while (over > 0 &&
             vmscan_again(&retries,
                          vmscan_group(group,
                                       (unsigned)min_u64((uint64_t)over, 1024),
                                       false)));
}
