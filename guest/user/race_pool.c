/* SPDX-License-Identifier: MIT */
/*
 * What a thread of race_mix does with pages of several threads: it holds one
 * for as long as it looks, and disturbs them at any time.
 */
#define _GNU_SOURCE
#include "race_ops.h"

static bool hold(struct race_pool *pool, unsigned page, uint32_t *truth)
{
    *truth = atomic_load(&pool->truth[page]);
    return (*truth & 1) == 0 && atomic_compare_exchange_strong(
                                    &pool->truth[page], truth, *truth | 1);
}

static void verify_held(struct race_thread *t, struct race_pool *pool,
                        unsigned page, uint32_t sequence)
{
    const volatile uint64_t *words = pool->memory + page * PAGE_WORDS;
    uint64_t key = race_key(pool->owner, page, sequence);

    for (unsigned i = 0; i < PAGE_WORDS; i += race_opt.stride) {
        uint64_t word = words[i], want = sequence == 0 ? 0 : race_word(key, i);

        if (word != want) {
            race_found(RACE_FOUND_SHARED, t->id, page, word, want);
            break;
        }
    }
}

static void write_held(struct race_pool *pool, unsigned page, uint32_t sequence)
{
    volatile uint64_t *words = pool->memory + page * PAGE_WORDS;
    uint64_t key = race_key(pool->owner, page, sequence);

    for (unsigned i = 0; i < PAGE_WORDS; i += race_opt.stride) {
        words[i] = race_word(key, i);
    }
}

/*
 * Looks at pages and writes some of them. Many in a row: each other call here
 * drains what a reclaim left pending, and so hides a flush that was forgotten.
 */
static void visit_pool(struct race_thread *t, struct race_pool *pool)
{
    for (unsigned n = 1 + race_pick(t, race_opt.visits); n > 0; n--) {
        unsigned page = race_pick(t, pool->pages);
        uint32_t truth;

        if (!hold(pool, page, &truth)) {
            continue;
        }
        verify_held(t, pool, page, truth >> 1);
        if (race_pick(t, 3) != 0) {
            truth += 2;
            write_held(pool, page, truth >> 1);
        }
        atomic_store_explicit(&pool->truth[page], truth, memory_order_release);
    }
}

/* Takes a page's contents, while nobody looks. */
static void drop_held(struct race_thread *t, struct race_pool *pool)
{
    unsigned page = race_pick(t, pool->pages);
    void *at = (void *)(uintptr_t)(pool->memory + page * PAGE_WORDS);
    uint32_t truth;
    bool gone;

    if (!hold(pool, page, &truth)) {
        return;
    }
    gone =
        race_pick(t, 2) == 0
            ? race_granted(t, "madvise", madvise(at, PAGE, MADV_DONTNEED))
            : race_granted(t, "mmap",
                           (long)mmap(at, PAGE, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                                      -1, 0));
    /* Sequences go round to 0 by this alone. */
    atomic_store_explicit(&pool->truth[page], gone ? 0 : truth,
                          memory_order_release);
}

/* At any time, whoever looks: contents stay what they are. */
static void disturb_pool(struct race_thread *t, struct race_pool *pool)
{
    unsigned first = race_pick(t, pool->pages);
    unsigned n = 1 + race_pick(t, pool->pages - first);
    char *at = (char *)(uintptr_t)(pool->memory + first * PAGE_WORDS);

    if (race_nodes > 1 && race_pick(t, 3) == 0) {
        void *addrs[16];
        int nodes[16], status[16];

        n = n > 16 ? 16 : n;
        for (unsigned i = 0; i < n; i++) {
            addrs[i] = at + i * PAGE;
            nodes[i] = (int)race_pick(t, race_nodes);
        }
        (void)race_granted(
            t, "move_pages",
            syscall(SYS_move_pages, 0, n, addrs, nodes, status, 2));
        return;
    }
    (void)race_granted(
        t, "madvise",
        madvise(at, n * PAGE, race_pick(t, 4) == 0 ? MADV_COLD : MADV_PAGEOUT));
}

void race_op_all(struct race_thread *t, struct race_slot *s)
{
    (void)s;
    if (race_pick(t, 4) == 0) {
        disturb_pool(t, &race_all);
    } else {
        visit_pool(t, &race_all);
    }
}

void race_op_team(struct race_thread *t, struct race_slot *s)
{
    (void)s;
    switch (race_pick(t, 12)) {
    case 0:
        drop_held(t, &race_team);
        break;
    case 1:
    case 2:
        disturb_pool(t, &race_team);
        break;
    default:
        visit_pool(t, &race_team);
    }
}

void race_pool_fill(struct race_pool *pool)
{
    for (unsigned page = 0; page < pool->pages; page++) {
        atomic_store(&pool->truth[page], 1 << 1);
        write_held(pool, page, 1);
    }
}

void race_pool_verify(struct race_thread *t, struct race_pool *pool)
{
    for (unsigned page = 0; page < pool->pages; page++) {
        verify_held(t, pool, page, atomic_load(&pool->truth[page]) >> 1);
    }
}
