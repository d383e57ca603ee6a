/* SPDX-License-Identifier: MIT */
/* selftest: files mapped privately. */
#define _GNU_SOURCE
#include "selftest.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGE 4096UL
#define PAGES 64UL

/* Word w of page p of a test file. */
static uint64_t word_of(unsigned long p, unsigned long w)
{
    return p << 32 | (w * 0x9e3779b9UL + 1);
}

/* A nameless file of so many pages and bytes, open for reading and writing. */
static int make_file(unsigned long pages, unsigned long bytes)
{
    char name[] = "/tmp/selftest-mmap.XXXXXX";
    static uint64_t page[PAGE / 8];
    int fd = mkstemp(name);

    if (fd < 0 || unlink(name) != 0) {
        return -1;
    }
    for (unsigned long p = 0; p <= pages; p++) {
        size_t size = p < pages ? PAGE : bytes;

        for (unsigned long w = 0; w < PAGE / 8; w++) {
            page[w] = word_of(p, w);
        }
        if (write(fd, page, size) != (ssize_t)size) {
            return -1;
        }
    }
    return fd;
}

static uint64_t *map_file(int fd, unsigned long pages, int prot, off_t offset)
{
    void *p = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE, fd, offset);

    return p == MAP_FAILED ? NULL : p;
}

static bool page_is(const volatile uint64_t *at, unsigned long p)
{
    for (unsigned long w = 0; w < PAGE / 8; w++) {
        if (at[w] != word_of(p, w)) {
            return false;
        }
    }
    return true;
}

static sigjmp_buf out_of_fault;
static volatile uintptr_t fault_address;
static volatile int fault_code;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    fault_address = (uintptr_t)info->si_addr;
    fault_code = info->si_code;
    siglongjmp(out_of_fault, signo);
}

/* The signal of a read there, 0: none. */
static int signal_of_read(const volatile uint64_t *at)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO};
    int signo;

    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    signo = sigsetjmp(out_of_fault, 1);
    if (signo == 0) {
        (void)*at;
    }
    return signo;
}

static bool contents(void)
{
    int fd = make_file(3, 104);
    volatile uint64_t *map = map_file(fd, 3, PROT_READ, (off_t)PAGE);

    CHECK(map != NULL);
    CHECK_EQ(close(fd), 0);
    CHECK(page_is(map, 1) && page_is(map + PAGE / 8, 2));
    for (unsigned long w = 0; w < PAGE / 8; w++) { /* zeroes after the end */
        CHECK_EQ(map[2 * PAGE / 8 + w], w < 13 ? word_of(3, w) : 0);
    }
    return true;
}

static bool beyond_the_end(void)
{
    int fd = make_file(1, 8);
    volatile uint64_t *map = map_file(fd, 4, PROT_READ | PROT_WRITE, 0);

    CHECK(map != NULL);
    CHECK_EQ(signal_of_read(map + PAGE / 8), 0);
    CHECK_EQ(signal_of_read(map + 2 * PAGE / 8 + 3), SIGBUS);
    CHECK_EQ(fault_address, (uintptr_t)(map + 2 * PAGE / 8 + 3));
    CHECK_EQ(fault_code, BUS_ADRERR);
    errno = 0;
    CHECK(write(fd, (void *)(uintptr_t)(map + 3 * PAGE / 8), 8) == -1 &&
          errno == EFAULT);
    CHECK_EQ(ftruncate(fd, (off_t)(4 * PAGE)), 0); /* now it is there */
    CHECK_EQ(signal_of_read(map + 2 * PAGE / 8 + 3), 0);
    CHECK_EQ(map[2 * PAGE / 8 + 3], 0);
    return true;
}

static bool writes_stay_private(void)
{
    int fd = make_file(4, 0), status;
    volatile uint64_t *map = map_file(fd, 4, PROT_READ | PROT_WRITE, 0);
    uint64_t word;
    pid_t pid;

    CHECK(map != NULL && page_is(map + PAGE / 8, 1));
    map[0] = 7;        /* not read before */
    map[PAGE / 8] = 8; /* read before */
    CHECK_EQ(pread(fd, &word, 8, 0), 8);
    CHECK_EQ(word, word_of(0, 0));
    pid = fork();
    if (pid == 0) {
        bool good =
            map[0] == 7 && map[PAGE / 8] == 8 && page_is(map + 2 * PAGE / 8, 2);

        map[0] = 9;
        map[2 * PAGE / 8] = 9;
        _exit(good && page_is(map + 3 * PAGE / 8, 3) ? 0 : 1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK(map[0] == 7 && map[1] == word_of(0, 1) && map[PAGE / 8] == 8);
    CHECK(page_is(map + 2 * PAGE / 8, 2));
    /* What was private goes, what the file has comes back. */
    CHECK_EQ(madvise((void *)(uintptr_t)map, 4 * PAGE, MADV_DONTNEED), 0);
    for (unsigned long p = 0; p < 4; p++) {
        CHECK(page_is(map + p * PAGE / 8, p));
    }
    return true;
}

/* A counter of the kernel under test; 0 on Linux. */
static unsigned long counter(const char *name)
{
    FILE *f = fopen("/proc/shootdown", "r");
    char word[64];
    unsigned long value, found = 0;

    while (f != NULL && fscanf(f, "%63s %lu", word, &value) == 2) {
        if (strcmp(word, name) == 0) {
            found = value;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

static bool even_are(const volatile uint64_t *map, uint64_t first)
{
    for (unsigned long p = 0; p < PAGES; p++) {
        const volatile uint64_t *at = map + p * PAGE / 8;

        if (p % 2 != 0 ? !page_is(at, p)
                       : at[0] != first + p || at[1] != word_of(p, 1)) {
            test_why("page %lu begins with 0x%lx", p, (unsigned long)at[0]);
            return false;
        }
    }
    return true;
}

static bool reclaimed(void)
{
    int fd = make_file(PAGES, 0), status;
    volatile uint64_t *map = map_file(fd, PAGES, PROT_READ | PROT_WRITE, 0);
    unsigned long dropped = counter("lazyfree_freed");
    unsigned long out = counter("swap_out");
    pid_t pid;

    CHECK(map != NULL);
    for (unsigned long p = 0; p < PAGES; p++) {
        CHECK(page_is(map + p * PAGE / 8, p));
        map[p * PAGE / 8] = p % 2 == 0 ? 100 + p : map[p * PAGE / 8];
        if (p % 2 != 0) { /* not written after all: as it was read */
            CHECK_EQ(madvise((void *)(uintptr_t)(map + p * PAGE / 8), PAGE,
                             MADV_DONTNEED),
                     0);
            CHECK(page_is(map + p * PAGE / 8, p));
        }
    }
    (void)madvise((void *)(uintptr_t)map, PAGES * PAGE, MADV_PAGEOUT);
    /* The first time the written ones are found to be; then they go, too. */
    (void)madvise((void *)(uintptr_t)map, PAGES * PAGE, MADV_PAGEOUT);
    if (counter("syscalls") != 0) {
        CHECK(counter("lazyfree_freed") - dropped >= PAGES / 2);
        CHECK(counter("swap_out") - out >= PAGES / 2);
    }
    CHECK(even_are(map, 100));
    pid = fork(); /* mapped twice, and out again */
    if (pid == 0) {
        for (unsigned long p = 0; p < PAGES; p += 2) {
            map[p * PAGE / 8] = 200 + p;
        }
        (void)madvise((void *)(uintptr_t)map, PAGES * PAGE, MADV_PAGEOUT);
        (void)madvise((void *)(uintptr_t)map, PAGES * PAGE, MADV_PAGEOUT);
        _exit(even_are(map, 200) ? 0 : 1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    (void)madvise((void *)(uintptr_t)map, PAGES * PAGE, MADV_PAGEOUT);
    CHECK(even_are(map, 100));
    return true;
}

static bool into_itself(void)
{
    int fd = make_file(4, 0);
    char *map = (char *)map_file(fd, 4, PROT_READ | PROT_WRITE, 0);

    /* The fault is for the file that is being read, or written. */
    CHECK(map != NULL);
    CHECK_EQ(pread(fd, map + PAGE, PAGE, 0), PAGE);
    CHECK(page_is((uint64_t *)(map + PAGE), 0));
    CHECK_EQ(pwrite(fd, map + 2 * PAGE, PAGE, 0), PAGE);
    CHECK(page_is((uint64_t *)map, 2));
    CHECK(page_is((uint64_t *)(map + 3 * PAGE), 3));
    return true;
}

static bool parts(void)
{
    int fd = make_file(8, 0);
    char *map = (char *)map_file(fd, 8, PROT_READ, 0), *moved;

    CHECK(map != NULL && page_is((uint64_t *)(map + 5 * PAGE), 5));
    CHECK_EQ(munmap(map + 3 * PAGE, PAGE), 0);
    CHECK_EQ(signal_of_read((uint64_t *)(map + 3 * PAGE)), SIGSEGV);
    CHECK_EQ(mprotect(map + 6 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    *(uint64_t *)(map + 6 * PAGE) = 1;
    moved = mremap(map + 4 * PAGE, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    CHECK(page_is((uint64_t *)moved, 4) &&
          page_is((uint64_t *)(moved + PAGE), 5) &&
          page_is((uint64_t *)(moved + 2 * PAGE), 6));
    CHECK(page_is((uint64_t *)(map + 2 * PAGE), 2) &&
          page_is((uint64_t *)(map + 7 * PAGE), 7));
    CHECK_EQ(*(uint64_t *)(map + 6 * PAGE), 1);
    return true;
}

static bool programs(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    char buf[PAGE], *map;
    struct stat st;

    CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 8 * (off_t)PAGE);
    map = (char *)map_file(fd, 8, PROT_READ, (off_t)PAGE);
    CHECK(map != NULL);
    for (unsigned p = 0; p < 8; p++) {
        CHECK_EQ(pread(fd, buf, PAGE, (off_t)((p + 1) * PAGE)), PAGE);
        CHECK(memcmp(buf, map + p * PAGE, PAGE) == 0);
    }
    return true;
}

static bool told(void)
{
    char name[] = "/tmp/selftest-maps.XXXXXX", line[400];
    int fd = mkstemp(name);
    unsigned char vec[4];
    unsigned found = 0;
    char *map;
    FILE *f;

    CHECK(fd >= 0 && pwrite(fd, "x", 1, (off_t)PAGE) == 1);
    map = (char *)map_file(fd, 1, PROT_READ, (off_t)PAGE);
    CHECK(map != NULL);
    f = fopen("/proc/self/maps", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strstr(line, name) != NULL) {
            found++;
            CHECK_EQ(strtoul(line, NULL, 16), (uintptr_t)map);
            CHECK(strstr(line, " r--p 00001000 ") != NULL);
        }
    }
    fclose(f);
    CHECK_EQ(unlink(name), 0);
    CHECK_EQ(found, 1);
    CHECK(mincore(map, PAGE, vec) == 0 && (vec[0] & 1) == 1);
    return true;
}

static bool zero_device(void)
{
    int fd = open("/dev/zero", O_RDWR), status;
    volatile uint64_t *map = map_file(fd, 2, PROT_READ | PROT_WRITE, 0);
    volatile uint64_t *both;
    pid_t pid;

    CHECK(map != NULL && map[5] == 0);
    map[5] = 1;
    CHECK_EQ(map[5], 1);
    both = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(both != MAP_FAILED);
    pid = fork();
    if (pid == 0) {
        both[0] = 3;
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(both[0], 3);
    return true;
}

static bool refused(size_t len, int prot, int flags, int fd, off_t offset,
                    int want)
{
    errno = 0;
    return (void *)syscall(SYS_mmap, NULL, len, prot, flags, fd, offset) ==
               MAP_FAILED &&
           errno == want;
}

static bool bad_arguments(void)
{
    char name[] = "/tmp/selftest-mmap.XXXXXX";
    int fd = mkstemp(name), dir = open("/tmp", O_RDONLY), pipes[2];
    int reader = open(name, O_RDONLY), writer = open(name, O_WRONLY);
    int path = open(name, O_PATH);
    char *map;

    CHECK(fd >= 0 && dir >= 0 && reader >= 0 && writer >= 0 && path >= 0);
    CHECK(unlink(name) == 0 && pipe(pipes) == 0);
    CHECK(refused(PAGE, PROT_READ, MAP_PRIVATE, -1, 0, EBADF));
    CHECK(refused(PAGE, PROT_READ, MAP_PRIVATE, 900, 0, EBADF));
    CHECK(refused(PAGE, PROT_READ, MAP_PRIVATE, path, 0, EBADF));
    CHECK(refused(PAGE, PROT_READ, MAP_PRIVATE, fd, 100, EINVAL));
    CHECK(refused(0, PROT_READ, MAP_PRIVATE, fd, 0, EINVAL));
    CHECK(refused(PAGE, PROT_READ, 0, fd, 0, EINVAL));
    CHECK(refused(PAGE, PROT_READ, MAP_PRIVATE, writer, 0, EACCES));
    CHECK(refused(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0, EACCES));
    CHECK(refused(PAGE, PROT_READ, MAP_PRIVATE, dir, 0, ENODEV));
    CHECK(refused(PAGE, PROT_READ, MAP_PRIVATE, pipes[0], 0, ENODEV));
    CHECK(refused(1UL << 60, PROT_READ, MAP_PRIVATE, fd, 0, ENOMEM));
    CHECK_EQ(ftruncate(fd, (off_t)PAGE), 0);
    map = (char *)map_file(fd, 1, PROT_READ | PROT_WRITE, 0);
    CHECK(map != NULL);
    errno = 0;
    CHECK((madvise(map, PAGE, MADV_FREE) == -1 && errno == EINVAL) ||
          counter("syscalls") == 0); /* qemu-user looks at nothing */
    return true;
}

static const struct test tests[] = {
    {"a mapped file shows its contents, then zeroes", contents},
    {"beyond its end is SIGBUS", beyond_the_end},
    {"writes to a private mapping stay private", writes_stay_private},
    {"reclaim drops what the file has, keeps what was written", reclaimed},
    {"a file is read into its own mapping", into_itself},
    {"parts of a mapping keep their place in the file", parts},
    {"files of the initial RAM disk can be mapped", programs},
    {"maps and mincore tell of mapped files", told},
    {"memory from /dev/zero", zero_device},
    {"bad arguments of mmap are refused", bad_arguments},
};

TEST_TABLE(tests_mmap, "mmap", tests);
