/* SPDX-License-Identifier: MIT */
/*
 * What a thread of race_mix does with memory of its own. Each slot has two
 * homes, so that mremap has somewhere to go; the last slot is whole 2 MiB
 * regions, so that whole page tables move.
 */
#define _GNU_SOURCE
#include "race_ops.h"

static volatile uint64_t *page_of(const struct race_slot *s, unsigned page)
{
    return s->home[s->at] + page * PAGE_WORDS;
}

static uint64_t key_of(const struct race_thread *t, const struct race_slot *s,
                       unsigned page)
{
    unsigned slot = (unsigned)(s - t->slots);

    return race_key(t->id, (unsigned long)slot * RACE_BIG_PAGES + page,
                    s->states[page].sequence);
}

static void found_word(struct race_thread *t, unsigned page, uint64_t word,
                       uint64_t want)
{
    race_found(t->is_child ? RACE_FOUND_COPY : RACE_FOUND_WORD, t->id, page,
               word, want);
}

/* A FREED page may become 0 from any word on, and stays so. */
static void verify_freed(struct race_thread *t, struct race_slot *s,
                         unsigned page)
{
    const volatile uint64_t *words = page_of(s, page);
    uint64_t key = key_of(t, s, page);
    bool gone = false;

    for (unsigned i = 0; i < PAGE_WORDS; i += race_opt.stride) {
        uint64_t word = words[i];

        gone |= word == 0;
        if (word != (gone ? 0 : race_word(key, i))) {
            found_word(t, page, word, race_word(key, i));
            return;
        }
    }
    if (words[0] == 0) {
        s->states[page].kind = RACE_ZERO;
    }
}

static void verify_page(struct race_thread *t, struct race_slot *s,
                        unsigned page)
{
    const volatile uint64_t *words = page_of(s, page);
    uint64_t key = key_of(t, s, page);
    bool data = s->states[page].kind == RACE_DATA;

    if (s->states[page].kind == RACE_FREED) {
        verify_freed(t, s, page);
        return;
    }
    for (unsigned i = 0; i < PAGE_WORDS; i += race_opt.stride) {
        uint64_t word = words[i], want = data ? race_word(key, i) : 0;

        if (word != want) {
            found_word(t, page, word, want);
            return;
        }
    }
}

void race_page_write(struct race_thread *t, struct race_slot *s, unsigned page)
{
    volatile uint64_t *words = page_of(s, page);
    uint64_t key;

    s->states[page] = (struct race_page){++t->sequence, RACE_DATA};
    key = key_of(t, s, page);
    for (unsigned i = 0; i < PAGE_WORDS; i += race_opt.stride) {
        words[i] = race_word(key, i);
    }
}

/* Some pages of a slot: [*first, end of it). */
static unsigned some_pages(struct race_thread *t, const struct race_slot *s,
                           unsigned *first)
{
    *first = race_pick(t, s->pages);
    if (s->pages == RACE_BIG_PAGES) {
        *first -= *first % race_opt.spread;
    }
    return *first + 1 + race_pick(t, s->pages - *first);
}

static unsigned step_of(const struct race_slot *s)
{
    return s->pages == RACE_BIG_PAGES ? race_opt.spread : 1;
}

void race_op_write(struct race_thread *t, struct race_slot *s)
{
    unsigned page, end = some_pages(t, s, &page);

    for (; page < end; page += step_of(s)) {
        race_page_write(t, s, page);
    }
}

void race_op_verify(struct race_thread *t, struct race_slot *s)
{
    for (unsigned page = 0; page < s->pages; page += step_of(s)) {
        verify_page(t, s, page);
    }
}

static void *address(const struct race_slot *s, unsigned page)
{
    return (void *)(uintptr_t)page_of(s, page);
}

void race_op_advise(struct race_thread *t, struct race_slot *s)
{
    static const int advices[] = {MADV_PAGEOUT, MADV_COLD, MADV_DONTNEED,
                                  MADV_FREE, MADV_PAGEOUT};
    unsigned page, end = some_pages(t, s, &page);
    int advice = advices[race_pick(t, sizeof(advices) / sizeof(advices[0]))];

    if (!race_granted(t, "madvise",
                      madvise(address(s, page), (end - page) * PAGE, advice))) {
        return;
    }
    for (; page < end; page++) {
        struct race_page *state = &s->states[page];

        if (advice == MADV_DONTNEED) {
            state->kind = RACE_ZERO;
        } else if (advice == MADV_FREE && state->kind == RACE_DATA) {
            state->kind = RACE_FREED;
        }
    }
}

/* Read-only for a while; nothing may write meanwhile, so nothing changes. */
void race_op_protect(struct race_thread *t, struct race_slot *s)
{
    unsigned page, end = some_pages(t, s, &page);
    size_t size = (end - page) * PAGE;
    void *at = address(s, page);

    if (!race_granted(t, "mprotect", mprotect(at, size, PROT_READ))) {
        return;
    }
    for (unsigned p = page; p < end; p += step_of(s)) {
        verify_page(t, s, p);
    }
    while (!race_granted(t, "mprotect",
                         mprotect(at, size, PROT_READ | PROT_WRITE))) {
        sched_yield();
    }
}

void race_op_unmap(struct race_thread *t, struct race_slot *s)
{
    unsigned page, end = some_pages(t, s, &page);
    size_t size = (end - page) * PAGE;
    void *at = address(s, page);

    if (!race_granted(t, "munmap", munmap(at, size))) {
        return;
    }
    while (!race_granted(t, "mmap",
                         (long)mmap(at, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                    0))) {
        sched_yield();
    }
    for (; page < end; page++) {
        s->states[page].kind = RACE_ZERO;
    }
}

/* The whole slot anew: one mapping again, all of it 0. */
static void race_op_renew(struct race_thread *t, struct race_slot *s)
{
    size_t size = s->pages * PAGE;

    while (!race_granted(t, "mmap",
                         (long)mmap(address(s, 0), size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                    0))) {
        sched_yield();
    }
    for (unsigned page = 0; page < s->pages; page++) {
        s->states[page].kind = RACE_ZERO;
    }
}

void race_op_remap(struct race_thread *t, struct race_slot *s)
{
    size_t size = s->pages * PAGE;
    void *from = address(s, 0);
    void *to = (void *)(uintptr_t)s->home[!s->at];
    void *moved = mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);

    int error = moved == MAP_FAILED ? errno : 0;

    if (moved != MAP_FAILED) {
        s->at = !s->at;
    }
    /* The other home stays ours, also where a call failed half-way. */
    while (!race_granted(
        t, "mmap",
        (long)mmap(moved != MAP_FAILED ? from : to, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0))) {
        sched_yield();
    }
    if (error == EFAULT) {
        race_op_renew(t, s); /* other calls cut it into several mappings */
    } else if (error != 0) {
        errno = error;
        (void)race_granted(t, "mremap", -1);
        race_op_verify(t, s);
    }
}

void race_op_move_pages(struct race_thread *t, struct race_slot *s)
{
    void *addrs[32];
    int nodes[32], status[32];
    unsigned page, end = some_pages(t, s, &page), n = 0;

    for (; page < end && n < 32; page += step_of(s)) {
        addrs[n] = address(s, page);
        nodes[n++] = (int)race_pick(t, race_nodes);
    }
    if (race_nodes > 1) {
        (void)race_granted(
            t, "move_pages",
            syscall(SYS_move_pages, 0, n, addrs, nodes, status, 2));
    }
}

void race_op_migrate_pages(struct race_thread *t, struct race_slot *s)
{
    unsigned from = race_pick(t, 2);
    unsigned long old = 1UL << from, new = 1UL << !from;

    (void)s;
    if (race_nodes > 1) {
        (void)race_granted(t, "migrate_pages",
                           syscall(SYS_migrate_pages, 0, 64, &old, &new));
    }
}

void race_op_reclaim(struct race_thread *t, struct race_slot *s)
{
    unsigned most = race_opt.small ? 4 : s->pages;

    (void)memory_reclaim(RACE_GROUP, 1 + race_pick(t, most));
}

void race_op_move_cpu(struct race_thread *t, struct race_slot *s)
{
    (void)s;
    (void)pin_to_cpu(race_pick(t, race_cpus));
}
