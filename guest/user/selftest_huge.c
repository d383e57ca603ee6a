/* SPDX-License-Identifier: MIT */
/* selftest: 2 MiB blocks, lazily freed memory, moving of whole tables. */
#define _GNU_SOURCE
#include "selftest.h"

#include <sys/wait.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define PAGE 4096UL
#define BLOCK (2UL << 20)

/* The number of a line "NAME: n kB" of the file, summed up; or -1. */
static long kilobytes(const char *path, const char *name)
{
    FILE *f = fopen(path, "r");
    char line[256];
    long sum = -1, n;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        size_t len = strlen(name);

        if (strncmp(line, name, len) == 0 && line[len] == ':' &&
            sscanf(line + len + 1, "%ld", &n) == 1) {
            sum = (sum < 0 ? 0 : sum) + n;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return sum;
}

/* User-mode emulators take some advice and ignore it. */
static bool advice_counts(void)
{
    return access("/proc/shootdown", F_OK) == 0;
}

/* n blocks, aligned, on request; NULL: no memory. */
static char *map_blocks(size_t n)
{
    char *p = mmap(NULL, (n + 1) * BLOCK, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at;

    if (p == MAP_FAILED) {
        return NULL;
    }
    at = (char *)(((uintptr_t)p + BLOCK - 1) & ~(BLOCK - 1));
    (void)madvise(at, n * BLOCK, MADV_HUGEPAGE);
    return at;
}

static void fill(char *p, size_t pages, uint64_t seed)
{
    for (size_t i = 0; i < pages; i++) {
        *(uint64_t *)(p + i * PAGE + i % 500 * 8) = seed + i;
    }
}

static bool holds(const char *p, size_t pages, uint64_t seed)
{
    for (size_t i = 0; i < pages; i++) {
        if (*(const uint64_t *)(p + i * PAGE + i % 500 * 8) != seed + i) {
            return false;
        }
    }
    return true;
}

static bool blocks_are_seen(void)
{
    char *p = map_blocks(2);

    CHECK(p != NULL);
    fill(p, 1024, 5);
    CHECK(holds(p, 1024, 5));
    if (kilobytes("/proc/self/smaps", "AnonHugePages") <= 0) {
        return test_skip("no blocks here");
    }
    CHECK_EQ(kilobytes("/proc/self/smaps", "AnonHugePages"), 4096);
    /* A part of the second goes: the first stays whole. */
    CHECK_EQ(munmap(p + BLOCK + 7 * PAGE, PAGE), 0);
    CHECK_EQ(kilobytes("/proc/self/smaps", "AnonHugePages"), 2048);
    CHECK(holds(p, 512 + 7, 5));
    for (size_t i = 512 + 8; i < 1024; i++) {
        CHECK_EQ(*(uint64_t *)(p + i * PAGE + i % 500 * 8), 5 + i);
    }
    return true;
}

static bool blocks_survive_fork(void)
{
    char *p = map_blocks(1);
    int status;
    pid_t pid;

    CHECK(p != NULL);
    fill(p, 512, 77);
    pid = fork();
    if (pid == 0) {
        bool fine = holds(p, 512, 77);

        fill(p, 512, 78);
        _exit(fine && holds(p, 512, 78) ? 0 : 1);
    }
    fill(p, 64, 79);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK(holds(p, 64, 79));
    for (size_t i = 64; i < 512; i++) {
        CHECK_EQ(*(uint64_t *)(p + i * PAGE + i % 500 * 8), 77 + i);
    }
    return true;
}

/* Everything that splits a block, on the same one again and again. */
static bool blocks_survive_splits(void)
{
    for (unsigned how = 0; how < 6; how++) {
        char *p = map_blocks(1), *part;

        CHECK(p != NULL);
        part = p + 100 * PAGE;
        fill(p, 512, how);
        switch (how) {
        case 0:
            CHECK_EQ(mprotect(part, PAGE, PROT_READ), 0);
            CHECK_EQ(mprotect(part, PAGE, PROT_READ | PROT_WRITE), 0);
            break;
        case 1:
            CHECK_EQ(madvise(part, 50 * PAGE, MADV_PAGEOUT), 0);
            break;
        case 2:
            CHECK_EQ(madvise(p, BLOCK, MADV_PAGEOUT), 0);
            break;
        case 3:
            CHECK_EQ(madvise(part, 50 * PAGE, MADV_COLD), 0);
            break;
        case 4:
            CHECK_EQ(madvise(part, 50 * PAGE, MADV_NOHUGEPAGE), 0);
            break;
        default:
            CHECK_EQ(madvise(part, 50 * PAGE, MADV_DONTNEED), 0);
            for (size_t i = 100; i < 150; i++) {
                CHECK_EQ(*(uint64_t *)(p + i * PAGE + i % 500 * 8), 0);
            }
            fill(p, 512, how);
            break;
        }
        CHECK(holds(p, 512, how));
        fill(p, 512, how + 9);
        CHECK(holds(p, 512, how + 9));
        CHECK_EQ(munmap(p, BLOCK), 0);
    }
    return true;
}

static bool whole_tables_move(void)
{
    char *from = map_blocks(2), *to = map_blocks(2), *p;

    CHECK(from != NULL && to != NULL);
    CHECK_EQ(madvise(from + BLOCK, BLOCK, MADV_NOHUGEPAGE), 0);
    fill(from, 1024, 3);
    CHECK_EQ(madvise(from + BLOCK, 64 * PAGE, MADV_PAGEOUT), 0);
    p = mremap(from, 2 * BLOCK, 2 * BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (p == MAP_FAILED) {
        /* Of two areas at once, as older kernels: one after the other. */
        p = mremap(from, BLOCK, BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        CHECK(p == to);
        p = mremap(from + BLOCK, BLOCK, BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED,
                   to + BLOCK);
        CHECK(p == to + BLOCK);
    }
    CHECK(holds(to, 1024, 3));
    fill(to, 1024, 4);
    CHECK(holds(to, 1024, 4));
    return true;
}

static bool old_place_stays(void)
{
    char *from = (char *)test_map_private(64 * PAGE), *p;

    CHECK(from != NULL);
    fill(from, 64, 8);
    p = mremap(from, 64 * PAGE, 64 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
               NULL);
    if (p == MAP_FAILED && errno == EINVAL) {
        return test_skip("no MREMAP_DONTUNMAP here");
    }
    CHECK(p != MAP_FAILED && p != from);
    CHECK(holds(p, 64, 8));
    CHECK_EQ(*(uint64_t *)(from + 3 * PAGE + 24), 0);
    fill(from, 64, 9);
    CHECK(holds(p, 64, 8) && holds(from, 64, 9));
    errno = 0;
    CHECK(mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) ==
              MAP_FAILED &&
          errno == EINVAL);
    CHECK(mremap(p, PAGE, PAGE, MREMAP_DONTUNMAP, NULL) == MAP_FAILED &&
          errno == EINVAL);
    return true;
}

static bool lazily_freed(void)
{
    char *p = (char *)test_map_private(64 * PAGE);
    char *s = test_map_shared(PAGE);

    CHECK(p != NULL);
    fill(p, 64, 1000);
    CHECK_EQ(madvise(p, 64 * PAGE, MADV_FREE), 0);
    fill(p, 32, 2000);
    CHECK_EQ(madvise(p, 64 * PAGE, MADV_PAGEOUT), 0);
    CHECK(holds(p, 32, 2000));
    for (size_t i = 32; i < 64; i++) {
        uint64_t word = *(uint64_t *)(p + i * PAGE + i % 500 * 8);

        CHECK(word == 0 || word == 1000 + i);
    }
    errno = 0;
    CHECK((madvise(s, PAGE, MADV_FREE) == -1 && errno == EINVAL) ||
          !advice_counts());
    return true;
}

static bool not_copied_by_fork(void)
{
    char *p = (char *)test_map_private(4 * PAGE);
    int status;
    pid_t pid;

    CHECK(p != NULL);
    if (!advice_counts()) {
        return test_skip("the advice may be ignored here");
    }
    fill(p, 4, 1);
    CHECK_EQ(madvise(p + PAGE, PAGE, MADV_DONTFORK), 0);
    pid = fork();
    if (pid == 0) {
        unsigned char in;

        /* The neighbours are there, the page is not even mapped. */
        _exit(p[0] == 1 && mincore(p + PAGE, PAGE, &in) == -1 && errno == ENOMEM
                  ? 0
                  : 1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(madvise(p + PAGE, PAGE, MADV_DOFORK), 0);
    CHECK(holds(p, 4, 1));
    return true;
}

static const struct test tests[] = {
    {"a block counts in smaps until it is split", blocks_are_seen},
    {"a block is copied on write after fork", blocks_survive_fork},
    {"a block that is split keeps its contents", blocks_survive_splits},
    {"mremap moves blocks and whole tables", whole_tables_move},
    {"MREMAP_DONTUNMAP leaves empty memory behind", old_place_stays},
    {"MADV_FREE memory is the old, or zero, or new", lazily_freed},
    {"MADV_DONTFORK keeps memory from a child", not_copied_by_fork},
};

TEST_TABLE(tests_huge, "blocks", tests);
