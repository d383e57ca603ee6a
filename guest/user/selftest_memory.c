/* SPDX-License-Identifier: MIT */
/* selftest: mappings, protection, copy on write, paging out. */
#define _GNU_SOURCE
#include "selftest.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PAGE 4096UL

/* How a child ends that calls fn(arg): the wait status. */
static int child_status(void (*fn)(void *), void *arg)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        fn(arg);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void store_to(void *p)
{
    *(volatile char *)p = 1;
}

static void load_from(void *p)
{
    (void)*(volatile char *)p;
}

static void call(void *p)
{
    ((void (*)(void))p)();
}

static bool segv(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static bool zero_filled(void)
{
    uint64_t *p = test_map_private(16 * PAGE);

    CHECK(p != NULL);
    for (size_t i = 0; i < 16 * PAGE / 8; i++) {
        CHECK_EQ(p[i], 0);
        p[i] = i;
    }
    for (size_t i = 0; i < 16 * PAGE / 8; i++) {
        CHECK_EQ(p[i], i);
    }
    CHECK_EQ(munmap(p, 16 * PAGE), 0);
    return true;
}

static bool unmapped_faults(void)
{
    char *p = (char *)test_map_private(3 * PAGE);

    p[0] = p[PAGE] = p[2 * PAGE] = 1;
    CHECK_EQ(munmap(p + PAGE, PAGE), 0);
    CHECK(segv(child_status(load_from, p + PAGE)));
    CHECK(segv(child_status(store_to, p + PAGE)));
    CHECK(p[0] == 1 && p[2 * PAGE] == 1);
    CHECK(segv(child_status(load_from, NULL)));
    return true;
}

static bool protection(void)
{
    char *p = (char *)test_map_private(PAGE);

    p[0] = 7;
    CHECK_EQ(mprotect(p, PAGE, PROT_READ), 0);
    CHECK_EQ(child_status(load_from, p), 0);
    CHECK(segv(child_status(store_to, p)));
    CHECK_EQ(mprotect(p, PAGE, PROT_NONE), 0);
    CHECK(segv(child_status(load_from, p)));
    CHECK_EQ(mprotect(p, PAGE, PROT_READ | PROT_WRITE), 0);
    CHECK_EQ(p[0], 7);
    p[0] = 8;
    CHECK(segv(child_status(call, p)));
    errno = 0;
    CHECK(mprotect((void *)0x123456000UL, PAGE, PROT_READ) == -1 &&
          errno == ENOMEM);
    return true;
}

/* mov w0, #imm ; ret */
static void write_code(uint32_t *p, uint32_t imm)
{
    p[0] = 0x52800000U | imm << 5;
    p[1] = 0xd65f03c0U;
    __builtin___clear_cache((char *)p, (char *)(p + 2));
}

static bool generated_code(void)
{
    uint32_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t *q = (uint32_t *)test_map_private(PAGE);

    CHECK(p != MAP_FAILED);
    for (uint32_t i = 0; i < 20; i++) {
        write_code(p, i);
        CHECK_EQ(((int (*)(void))p)(), i);
    }
    for (uint32_t i = 0; i < 5; i++) {
        CHECK_EQ(mprotect(q, PAGE, PROT_READ | PROT_WRITE), 0);
        write_code(q, 100 + i);
        CHECK_EQ(mprotect(q, PAGE, PROT_READ | PROT_EXEC), 0);
        CHECK_EQ(((int (*)(void))q)(), 100 + i);
    }
    return true;
}

static bool heap(void)
{
    char *blocks[64];
    char *big = malloc(1 << 20);

    CHECK(big != NULL);
    memset(big, 0x5a, 1 << 20);
    for (unsigned i = 0; i < 64; i++) {
        blocks[i] = malloc(1000 + i * 100);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], (int)i, 1000 + i * 100);
    }
    for (unsigned i = 0; i < 64; i++) {
        CHECK_EQ(blocks[i][0], i);
        CHECK_EQ(blocks[i][999 + i * 100], i);
        free(blocks[i]);
    }
    CHECK_EQ(big[(1 << 20) - 1], 0x5a);
    free(big);
    return true;
}

static volatile uint64_t *cow_page;

static void cow_child(void *arg)
{
    if (cow_page[0] != 11) {
        _exit(1);
    }
    cow_page[0] = 22; /* ours alone */
    _exit(cow_page[0] == 22 && arg == NULL ? 0 : 2);
}

static bool copy_on_write(void)
{
    cow_page = test_map_private(PAGE);
    cow_page[0] = 11;
    CHECK_EQ(child_status(cow_child, NULL), 0);
    CHECK_EQ(cow_page[0], 11);
    cow_page[0] = 12;
    cow_page[0] = 11;
    CHECK_EQ(child_status(cow_child, NULL), 0);
    return true;
}

static bool shared_memory(void)
{
    volatile uint64_t *p = test_map_shared(2 * PAGE);

    p[0] = 1;
    if (fork() == 0) {
        p[PAGE / 8] = p[0] + 1;
        _exit(0);
    }
    wait(NULL);
    CHECK_EQ(p[PAGE / 8], 2);
    return true;
}

static void fill(uint64_t *p, size_t pages, uint64_t seed)
{
    for (size_t i = 0; i < pages * PAGE / 8; i++) {
        p[i] = (seed + i) * 0x9e3779b97f4a7c15ULL;
    }
}

static bool filled(const uint64_t *p, size_t pages, uint64_t seed)
{
    for (size_t i = 0; i < pages * PAGE / 8; i++) {
        if (p[i] != (seed + i) * 0x9e3779b97f4a7c15ULL) {
            test_why("word %zu is 0x%llx", i, (unsigned long long)p[i]);
            return false;
        }
    }
    return true;
}

static bool pageout_keeps(uint64_t *p, size_t pages)
{
    fill(p, pages, 3);
    for (unsigned round = 0; round < 3; round++) {
        CHECK_EQ(madvise(p, pages * PAGE, MADV_PAGEOUT), 0);
        CHECK(filled(p, pages, 3));
    }
    fill(p, pages, 4);
    CHECK_EQ(madvise(p, pages * PAGE, MADV_PAGEOUT), 0);
    CHECK(filled(p, pages, 4));
    return true;
}

static bool pageout_private(void)
{
    return pageout_keeps(test_map_private(100 * PAGE), 100);
}

static bool pageout_shared(void)
{
    return pageout_keeps(test_map_shared(100 * PAGE), 100);
}

static bool pageout_is_seen_by_mincore(void)
{
    unsigned char resident[8];
    uint64_t *p = test_map_private(8 * PAGE);

    fill(p, 8, 1);
    CHECK_EQ(mincore(p, 8 * PAGE, resident), 0);
    for (unsigned i = 0; i < 8; i++) {
        CHECK(resident[i] & 1);
    }
    if (access("/proc/shootdown", R_OK) != 0) {
        return test_skip("not our kernel: pages may stay resident");
    }
    CHECK_EQ(madvise(p, 8 * PAGE, MADV_PAGEOUT), 0);
    CHECK_EQ(mincore(p, 8 * PAGE, resident), 0);
    for (unsigned i = 0; i < 8; i++) {
        CHECK(!(resident[i] & 1));
    }
    CHECK(filled(p, 8, 1));
    return true;
}

static bool pageout_survives_fork(void)
{
    uint64_t *p = test_map_private(20 * PAGE);
    int status;
    pid_t pid;

    fill(p, 20, 5);
    CHECK_EQ(madvise(p, 20 * PAGE, MADV_PAGEOUT), 0);
    pid = fork();
    if (pid == 0) {
        bool ok = filled(p, 20, 5);

        fill(p, 20, 6);
        madvise(p, 20 * PAGE, MADV_PAGEOUT);
        _exit(ok && filled(p, 20, 6) ? 0 : 1);
    }
    CHECK(filled(p, 20, 5));
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(filled(p, 20, 5));
    return true;
}

static bool dontneed_zeroes(void)
{
    uint64_t *p = test_map_private(8 * PAGE);

    fill(p, 8, 1);
    CHECK_EQ(madvise(p + PAGE / 8, 6 * PAGE, MADV_DONTNEED), 0);
    CHECK(p[0] != 0 || p[1] != 0);
    for (size_t i = PAGE / 8; i < 7 * PAGE / 8; i++) {
        CHECK_EQ(p[i], 0);
    }
    CHECK_EQ(p[7 * PAGE / 8], (1 + 7 * PAGE / 8) * 0x9e3779b97f4a7c15ULL);
    return true;
}

static bool remap_moves_contents(void)
{
    uint64_t *p = test_map_private(4 * PAGE), *q, *r;

    fill(p, 4, 9);
    q = mremap(p, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED);
    CHECK(filled(q, 4, 9));
    CHECK_EQ(q[63 * PAGE / 8], 0);
    r = mremap(q, 64 * PAGE, 2 * PAGE, 0);
    CHECK(r == q && filled(r, 2, 9));
    CHECK(segv(child_status(load_from, q + 2 * PAGE / 8)));
    return true;
}

/* --- memory changes while other threads use it --- */

static atomic_bool stop;
static volatile uint64_t *busy;

static void *busy_writer(void *arg)
{
    size_t word = (size_t)(uintptr_t)arg;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (size_t page = 0; page < 16; page++) {
            busy[page * PAGE / 8 + word]++;
        }
    }
    return NULL;
}

/* Each writer increments words of its own: a lost store shows as a mismatch. */
static bool pageout_under_writers(volatile uint64_t *mapping)
{
    pthread_t threads[2];
    uint64_t first[2];

    busy = mapping;
    atomic_store(&stop, false);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, busy_writer, (void *)i), 0);
    }
    while (mapping[0] == 0 || mapping[1] == 0) {
        sched_yield(); /* both are at it, however few cores there are */
    }
    for (unsigned i = 0; i < 30; i++) {
        CHECK_EQ(madvise((void *)mapping, 16 * PAGE, MADV_PAGEOUT), 0);
        sched_yield();
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        first[i] = mapping[i];
        CHECK(first[i] > 0);
        for (size_t page = 1; page < 16; page++) {
            CHECK_EQ(mapping[page * PAGE / 8 + i], first[i]);
        }
    }
    return true;
}

static bool pageout_loses_no_private_store(void)
{
    return pageout_under_writers(test_map_private(16 * PAGE));
}

static bool pageout_loses_no_shared_store(void)
{
    return pageout_under_writers(test_map_shared(16 * PAGE));
}

static void *endless_writer(void *arg)
{
    volatile uint64_t *p = arg;

    shared->words[1] = 1;
    for (;;) {
        p[0]++;
    }
    return NULL;
}

/*
 * In a child, one thread writes without end while the other takes the right to
 * write away. After mprotect() returned no store may happen any more: the
 * value noted then is the final one. The writer's fault ends the child.
 */
static bool protection_reaches_other_threads(void)
{
    volatile uint64_t *p = test_map_shared(PAGE);
    unsigned noted = 0;

    for (unsigned round = 0; round < 20; round++) {
        pid_t pid;
        int status;

        p[0] = shared->words[0] = shared->words[1] = shared->words[2] = 0;
        pid = fork();
        if (pid == 0) {
            pthread_t thread;

            pthread_create(&thread, NULL, endless_writer, (void *)p);
            while (shared->words[1] == 0) {
                sched_yield();
            }
            mprotect((void *)p, PAGE, PROT_READ);
            shared->words[0] = p[0];
            shared->words[2] = 1;
            for (;;) {
                pause();
            }
        }
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(segv(status));
        if (shared->words[2] == 1) {
            noted++;
            CHECK_EQ(p[0], shared->words[0]);
        }
    }
    if (noted == 0) {
        return test_skip("the writer's fault always came first");
    }
    return true;
}

static bool many_mappings(void)
{
    char *p[64];

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 64; i++) {
            p[i] = (char *)test_map_private((1 + i % 5) * PAGE);
            CHECK(p[i] != NULL);
            p[i][0] = (char)i;
        }
        for (unsigned i = 0; i < 64; i += 2) {
            CHECK_EQ(munmap(p[i], (1 + i % 5) * PAGE), 0);
        }
        for (unsigned i = 1; i < 64; i += 2) {
            CHECK_EQ(p[i][0], i);
            CHECK_EQ(munmap(p[i], (1 + i % 5) * PAGE), 0);
        }
    }
    return true;
}

static bool bad_arguments(void)
{
    errno = 0;
    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
              MAP_FAILED &&
          errno == EINVAL);
    CHECK(munmap((void *)1, PAGE) == -1 && errno == EINVAL);
    CHECK(madvise((void *)1, PAGE, MADV_PAGEOUT) == -1 && errno == EINVAL);
    CHECK(mmap((void *)(1UL << 60), PAGE, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
    return true;
}

static const struct test tests[] = {
    {"new memory is zero and keeps what is written", zero_filled},
    {"unmapped memory faults, its neighbours do not", unmapped_faults},
    {"mprotect takes rights away and gives them back", protection},
    {"generated code runs, also after it changes", generated_code},
    {"malloc and free work", heap},
    {"private memory is copied on write after fork", copy_on_write},
    {"shared memory is shared with a child", shared_memory},
    {"paged-out private memory keeps its contents", pageout_private},
    {"paged-out shared memory keeps its contents", pageout_shared},
    {"mincore sees what is paged out", pageout_is_seen_by_mincore},
    {"paged-out memory survives fork on both sides", pageout_survives_fork},
    {"MADV_DONTNEED zeroes private memory", dontneed_zeroes},
    {"mremap keeps the contents, grows and shrinks", remap_moves_contents},
    {"paging out loses no store to private memory",
     pageout_loses_no_private_store},
    {"paging out loses no store to shared memory",
     pageout_loses_no_shared_store},
    {"mprotect stops the stores of another thread",
     protection_reaches_other_threads},
    {"many mappings come and go", many_mappings},
    {"wrong arguments are refused", bad_arguments},
};

TEST_TABLE(tests_memory, "memory", tests);
