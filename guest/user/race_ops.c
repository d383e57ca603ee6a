/* SPDX-License-Identifier: MIT */
/*
 * What a thread of race_mix does: one operation after the other on memory that
 * is its own, and on shared pages that it holds for as long as it looks. Each
 * slot has two homes, so that mremap has somewhere to go; the last slot is
 * whole 2 MiB regions, so that whole page tables move.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "race_mix.h"

#define BIG_SLOT (RACE_SLOTS - 1)
#define BIG_PAGES (2 * PMD_PAGES)
#define SPREAD 16 /* of a big slot, one page in so many is used */

static unsigned pick(struct race_thread *t, unsigned n)
{
    return (unsigned)((race_random(&t->random) >> 20) % n);
}

static volatile uint64_t *page_of(const struct race_slot *s, unsigned page)
{
    return s->home[s->at] + page * PAGE_WORDS;
}

static uint64_t key_of(const struct race_thread *t, const struct race_slot *s,
                       unsigned page)
{
    unsigned slot = (unsigned)(s - t->slots);

    return race_key(t->id, (unsigned long)slot * BIG_PAGES + page,
                    s->states[page].sequence);
}

/* A call that may be refused for want of memory; true when it was not. */
static bool granted(struct race_thread *t, const char *what, long r)
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

    for (unsigned i = 0; i < PAGE_WORDS; i++) {
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
    for (unsigned i = 0; i < PAGE_WORDS; i++) {
        uint64_t word = words[i], want = data ? race_word(key, i) : 0;

        if (word != want) {
            found_word(t, page, word, want);
            return;
        }
    }
}

static void write_page(struct race_thread *t, struct race_slot *s,
                       unsigned page)
{
    volatile uint64_t *words = page_of(s, page);
    uint64_t key;

    s->states[page] = (struct race_page){++t->sequence, RACE_DATA};
    key = key_of(t, s, page);
    for (unsigned i = 0; i < PAGE_WORDS; i++) {
        words[i] = race_word(key, i);
    }
}

/* Some pages of a slot: [*first, end of it). */
static unsigned some_pages(struct race_thread *t, const struct race_slot *s,
                           unsigned *first)
{
    *first = pick(t, s->pages);
    if (s->pages == BIG_PAGES) {
        *first -= *first % SPREAD;
    }
    return *first + 1 + pick(t, s->pages - *first);
}

static unsigned step_of(const struct race_slot *s)
{
    return s->pages == BIG_PAGES ? SPREAD : 1;
}

static void op_write(struct race_thread *t, struct race_slot *s)
{
    unsigned page, end = some_pages(t, s, &page);

    for (; page < end; page += step_of(s)) {
        write_page(t, s, page);
    }
}

static void op_verify(struct race_thread *t, struct race_slot *s)
{
    for (unsigned page = 0; page < s->pages; page += step_of(s)) {
        verify_page(t, s, page);
    }
}

static void *address(const struct race_slot *s, unsigned page)
{
    return (void *)(uintptr_t)page_of(s, page);
}

static void op_advise(struct race_thread *t, struct race_slot *s)
{
    static const int advices[] = {MADV_PAGEOUT, MADV_COLD, MADV_DONTNEED,
                                  MADV_FREE, MADV_PAGEOUT};
    unsigned page, end = some_pages(t, s, &page);
    int advice = advices[pick(t, sizeof(advices) / sizeof(advices[0]))];

    if (!granted(t, "madvise",
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
static void op_protect(struct race_thread *t, struct race_slot *s)
{
    unsigned page, end = some_pages(t, s, &page);
    size_t size = (end - page) * PAGE;
    void *at = address(s, page);

    if (!granted(t, "mprotect", mprotect(at, size, PROT_READ))) {
        return;
    }
    for (unsigned p = page; p < end; p += step_of(s)) {
        verify_page(t, s, p);
    }
    while (
        !granted(t, "mprotect", mprotect(at, size, PROT_READ | PROT_WRITE))) {
        sched_yield();
    }
}

static void op_unmap(struct race_thread *t, struct race_slot *s)
{
    unsigned page, end = some_pages(t, s, &page);
    size_t size = (end - page) * PAGE;
    void *at = address(s, page);

    if (!granted(t, "munmap", munmap(at, size))) {
        return;
    }
    while (
        !granted(t, "mmap",
                 (long)mmap(at, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0))) {
        sched_yield();
    }
    for (; page < end; page++) {
        s->states[page].kind = RACE_ZERO;
    }
}

/* The whole slot anew: one mapping again, all of it 0. */
static void op_renew(struct race_thread *t, struct race_slot *s)
{
    size_t size = s->pages * PAGE;

    while (
        !granted(t, "mmap",
                 (long)mmap(address(s, 0), size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0))) {
        sched_yield();
    }
    for (unsigned page = 0; page < s->pages; page++) {
        s->states[page].kind = RACE_ZERO;
    }
}

static void op_remap(struct race_thread *t, struct race_slot *s)
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
    while (
        !granted(t, "mmap",
                 (long)mmap(moved != MAP_FAILED ? from : to, size, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0))) {
        sched_yield();
    }
    if (error == EFAULT) {
        op_renew(t, s); /* other calls cut it into several mappings */
    } else if (error != 0) {
        errno = error;
        (void)granted(t, "mremap", -1);
        op_verify(t, s);
    }
}

static void op_move_pages(struct race_thread *t, struct race_slot *s)
{
    void *addrs[32];
    int nodes[32], status[32];
    unsigned page, end = some_pages(t, s, &page), n = 0;

    for (; page < end && n < 32; page += step_of(s)) {
        addrs[n] = address(s, page);
        nodes[n++] = (int)pick(t, race_nodes);
    }
    if (race_nodes > 1) {
        (void)granted(t, "move_pages",
                      syscall(SYS_move_pages, 0, n, addrs, nodes, status, 2));
    }
}

static void op_migrate_pages(struct race_thread *t, struct race_slot *s)
{
    unsigned from = pick(t, 2);
    unsigned long old = 1UL << from, new = 1UL << !from;

    (void)s;
    if (race_nodes > 1) {
        (void)granted(t, "migrate_pages",
                      syscall(SYS_migrate_pages, 0, 64, &old, &new));
    }
}

static void op_reclaim(struct race_thread *t, struct race_slot *s)
{
    (void)memory_reclaim(RACE_GROUP, 1 + pick(t, s->pages));
}

static void op_move_cpu(struct race_thread *t, struct race_slot *s)
{
    (void)s;
    (void)pin_to_cpu(pick(t, race_cpus));
}

/* --- pages of several threads --- */

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

    for (unsigned i = 0; i < PAGE_WORDS; i++) {
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

    for (unsigned i = 0; i < PAGE_WORDS; i++) {
        words[i] = race_word(key, i);
    }
}

/*
 * Looks at pages and writes some of them. Many in a row: each other call here
 * drains what a reclaim left pending, and so hides a flush that was forgotten.
 */
static void visit_pool(struct race_thread *t, struct race_pool *pool)
{
    for (unsigned n = 1 + pick(t, 32); n > 0; n--) {
        unsigned page = pick(t, pool->pages);
        uint32_t truth;

        if (!hold(pool, page, &truth)) {
            continue;
        }
        verify_held(t, pool, page, truth >> 1);
        if (pick(t, 3) != 0) {
            truth += 2;
            write_held(pool, page, truth >> 1);
        }
        atomic_store_explicit(&pool->truth[page], truth, memory_order_release);
    }
}

/* Takes a page's contents, while nobody looks. */
static void drop_held(struct race_thread *t, struct race_pool *pool)
{
    unsigned page = pick(t, pool->pages);
    void *at = (void *)(uintptr_t)(pool->memory + page * PAGE_WORDS);
    uint32_t truth;
    bool gone;

    if (!hold(pool, page, &truth)) {
        return;
    }
    gone = pick(t, 2) == 0
               ? granted(t, "madvise", madvise(at, PAGE, MADV_DONTNEED))
               : granted(t, "mmap",
                         (long)mmap(at, PAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                    0));
    /* Sequences go round to 0 by this alone. */
    atomic_store_explicit(&pool->truth[page], gone ? 0 : truth,
                          memory_order_release);
}

/* At any time, whoever looks: contents stay what they are. */
static void disturb_pool(struct race_thread *t, struct race_pool *pool)
{
    unsigned first = pick(t, pool->pages);
    unsigned n = 1 + pick(t, pool->pages - first);
    char *at = (char *)(uintptr_t)(pool->memory + first * PAGE_WORDS);

    if (race_nodes > 1 && pick(t, 3) == 0) {
        void *addrs[16];
        int nodes[16], status[16];

        n = n > 16 ? 16 : n;
        for (unsigned i = 0; i < n; i++) {
            addrs[i] = at + i * PAGE;
            nodes[i] = (int)pick(t, race_nodes);
        }
        (void)granted(t, "move_pages",
                      syscall(SYS_move_pages, 0, n, addrs, nodes, status, 2));
        return;
    }
    (void)granted(
        t, "madvise",
        madvise(at, n * PAGE, pick(t, 4) == 0 ? MADV_COLD : MADV_PAGEOUT));
}

static void op_all(struct race_thread *t, struct race_slot *s)
{
    (void)s;
    if (pick(t, 4) == 0) {
        disturb_pool(t, &race_all);
    } else {
        visit_pool(t, &race_all);
    }
}

static void op_team(struct race_thread *t, struct race_slot *s)
{
    (void)s;
    switch (pick(t, 12)) {
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

/* --- children --- */

static void reap(struct race_thread *t, unsigned i)
{
    int status;

    if (t->children[i] <= 0) {
        return;
    }
    while (waitpid(t->children[i], &status, 0) < 0 && errno == EINTR) {
    }
    t->children[i] = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
        race_opt.limit_pages > 0) {
        atomic_fetch_add(&race_board->refused, 1); /* the limit's victim */
    } else if (!WIFEXITED(status)) {
        race_found(RACE_FOUND_DEATH, t->id, i, (uint64_t)status, 0);
    } else if (WEXITSTATUS(status) != 0) {
        race_found(RACE_FOUND_EXEC, t->id, i, (uint64_t)status, 0);
    }
}

/* The copy: looks at all of it, writes some of it, looks again. */
static void child_main(struct race_thread *t, struct race_slot *s)
{
    t->is_child = true;
    op_verify(t, s);
    op_write(t, s);
    op_verify(t, s);
    for (unsigned i = 0; i < RACE_SLOTS; i++) {
        op_verify(t, &t->slots[i]);
    }
    _exit(0);
}

static void exec_self(struct race_thread *t)
{
    char seed[32];
    char executed[] = "--executed";
    char *argv[] = {race_self, executed, seed, NULL};
    char *envp[] = {NULL};

    snprintf(seed, sizeof(seed), "%llu",
             (unsigned long long)race_random(&t->random));
    execve(race_self, argv, envp);
    if (errno == ENOEXEC) { /* an emulator that only knows this process */
        _exit(race_exec_child(strtoul(seed, NULL, 10)));
    }
    _exit(errno == ENOMEM ? 0 : 1);
}

static void child_start(struct race_thread *t, struct race_slot *s, bool exec)
{
    unsigned i = pick(t, RACE_CHILDREN);
    pid_t pid;

    reap(t, i);
    pid = fork();
    if (pid == 0 && exec) {
        exec_self(t);
    }
    if (pid == 0) {
        child_main(t, s);
    }
    if (granted(t, "fork", pid)) {
        t->children[i] = pid;
        atomic_fetch_add(exec ? &race_board->execs : &race_board->forks, 1);
    }
}

static void op_fork(struct race_thread *t, struct race_slot *s)
{
    child_start(t, s, false);
}

static void op_exec(struct race_thread *t, struct race_slot *s)
{
    child_start(t, s, true);
}

int race_exec_child(unsigned long seed)
{
    unsigned pages = 8 + (unsigned)(seed % 25);
    volatile uint64_t *buf = memory_map(pages, seed % 512, MAP_PRIVATE);

    for (unsigned long round = 1; round <= 2; round++) {
        memory_write(buf, pages, seed + round);
        (void)memory_advise(buf, pages, MADV_PAGEOUT);
        if (memory_check(buf, pages, seed + round) != 0) {
            scenario_finding(RACE_FOUND_EXEC);
            return 1;
        }
    }
    return 0;
}

/* --- the loop --- */

static const struct {
    void (*run)(struct race_thread *t, struct race_slot *s);
    unsigned weight;
    bool noisy; /* left out with -q: processes, groups and CPUs */
} operations[] = {
    {op_write, 12, false},     {op_verify, 8, false},
    {op_advise, 14, false},    {op_protect, 6, false},
    {op_unmap, 6, false},      {op_remap, 4, false},
    {op_all, 8, false},        {op_team, 40, false},
    {op_move_pages, 5, false}, {op_migrate_pages, 1, true},
    {op_reclaim, 3, true},     {op_move_cpu, 3, true},
    {op_fork, 2, true},        {op_exec, 1, true},
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static unsigned next_operation(struct race_thread *t)
{
    unsigned sum = 0, i, n;

    for (i = 0; i < OPERATIONS; i++) {
        sum += race_opt.calm && operations[i].noisy ? 0 : operations[i].weight;
    }
    n = pick(t, sum);
    if (race_opt.choose) { /* the machine may want another one */
        n = (n + (unsigned)scenario_choose(sum)) % sum;
    }
    for (i = 0; i < OPERATIONS; i++) {
        unsigned weight =
            race_opt.calm && operations[i].noisy ? 0 : operations[i].weight;

        if (n < weight) {
            break;
        }
        n -= weight;
    }
    return i;
}

static void make_slot(struct race_thread *t, unsigned i)
{
    struct race_slot *s = &t->slots[i];
    bool big = i == BIG_SLOT;

    s->pages = big ? BIG_PAGES : (unsigned)race_opt.pages;
    s->states = calloc(s->pages, sizeof(*s->states));
    if (s->states == NULL) {
        memory_die("race_mix: calloc");
    }
    for (unsigned home = 0; home < 2; home++) {
        s->home[home] =
            memory_map(s->pages, big ? 0 : pick(t, PMD_PAGES), MAP_PRIVATE);
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

void race_thread_run(struct race_thread *t)
{
    for (unsigned long n = 0; race_opt.rounds == 0 || n < race_opt.rounds;
         n++) {
        struct race_slot *s = &t->slots[pick(t, RACE_SLOTS)];

        if (atomic_load(&race_board->stop) != 0 ||
            atomic_load(&race_board->findings) != 0) {
            break;
        }
        operations[next_operation(t)].run(t, s);
        atomic_fetch_add(&race_board->operations, 1);
    }
}

/* Looks at everything once more and gives all of it back. */
void race_thread_end(struct race_thread *t)
{
    for (unsigned i = 0; i < RACE_CHILDREN; i++) {
        reap(t, i);
    }
    for (unsigned i = 0; i < RACE_SLOTS; i++) {
        struct race_slot *s = &t->slots[i];

        op_verify(t, s);
        memory_unmap(s->home[0], s->pages);
        memory_unmap(s->home[1], s->pages);
        free(s->states);
    }
}
