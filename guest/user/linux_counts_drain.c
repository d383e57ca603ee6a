/* SPDX-License-Identifier: MIT */
/* linux_counts: what calls pay for a reclaim before them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "linux_counts.h"

static volatile uint64_t *reclaimed(unsigned long pages)
{
    volatile uint64_t *buf;

    case_drain();
    buf = memory_map(pages, 0, MAP_PRIVATE);
    memory_write(buf, pages, 0);
    case_advise(buf, pages, MADV_PAGEOUT);
    return buf;
}

static void protect(volatile uint64_t *buf, unsigned long pages, int prot)
{
    if (mprotect((void *)(uintptr_t)buf, pages * PAGE, prot) != 0) {
        memory_die("linux_counts: mprotect");
    }
}

void run_mprotect(void)
{
    struct counts_series one = {0}, two = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf = reclaimed(256);

        case_begin();
        protect(buf, 256, PROT_READ);
        case_end(&one);
        case_begin();
        protect(buf, 256, PROT_READ | PROT_WRITE);
        case_end(&two);
        case_check(buf, 256, 0);
        memory_unmap(buf, 256);
    }
    case_report("drain_mprotect", ".1", &one);
    case_report("drain_mprotect", ".2", &two);
}

static volatile uint64_t *other_buf;
static struct counts_series other_series;

static void *other_cpu(void *arg)
{
    (void)pin_to_cpu((unsigned)(uintptr_t)arg);
    case_begin();
    protect(other_buf, 256, PROT_READ);
    case_end(&other_series);
    return NULL;
}

void run_mprotect_other_cpu(void)
{
    for (int i = 0; i < REPEAT; i++) {
        pthread_t thread;

        other_buf = reclaimed(256);
        if (pthread_create(&thread, NULL, other_cpu,
                           (void *)(uintptr_t)(opt.cpu + 1)) != 0) {
            memory_die("linux_counts: pthread_create");
        }
        pthread_join(thread, NULL);
        memory_unmap(other_buf, 256);
    }
    case_report("drain_mprotect_other_cpu", "", &other_series);
}

void run_mprotect_present(void)
{
    struct counts_series one = {0}, two = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *present = memory_map(256, 0, MAP_PRIVATE);
        volatile uint64_t *buf;

        memory_write(present, 256, 0);
        buf = reclaimed(256);
        case_begin();
        protect(present, 256, PROT_READ);
        case_end(&one);
        case_check(present, 256, 0);
        protect(present, 256, PROT_READ | PROT_WRITE);
        memory_write(present, 256, 0);
        case_begin();
        protect(present, 256, PROT_READ);
        case_end(&two);
        memory_unmap(present, 256);
        memory_unmap(buf, 256);
    }
    case_report("drain_mprotect_present", ".1", &one);
    case_report("drain_mprotect_present", ".2", &two);
}

void run_dontneed(void)
{
    struct counts_series one = {0}, two = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf = reclaimed(256);

        case_begin();
        case_advise(buf, 256, MADV_DONTNEED);
        case_end(&one);
        case_begin();
        case_advise(buf, 256, MADV_DONTNEED);
        case_end(&two);
        memory_unmap(buf, 256);
    }
    case_report("drain_dontneed", ".1", &one);
    case_report("drain_dontneed", ".2", &two);
}

void run_munmap(void)
{
    struct counts_series kept = {0}, freed = {0}, present = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf;

        case_drain(); /* a 257th page keeps the page table */
        buf = memory_map(257, 0, MAP_PRIVATE);
        memory_write(buf, 257, 0);
        case_advise(buf, 256, MADV_PAGEOUT);
        case_begin();
        memory_unmap(buf, 256);
        case_end(&kept);
        case_check(buf + 256 * PAGE_WORDS, 0, 0);
        memory_unmap(buf + 256 * PAGE_WORDS, 1);

        buf = reclaimed(256);
        case_begin();
        memory_unmap(buf, 256);
        case_end(&freed);

        case_drain();
        buf = memory_map(256, 0, MAP_PRIVATE);
        memory_write(buf, 256, 0);
        case_begin();
        memory_unmap(buf, 256);
        case_end(&present);
    }
    case_report("drain_munmap", ".kept", &kept);
    case_report("drain_munmap", ".freed", &freed);
    case_report("munmap_present", "", &present);
}

void run_mremap(void)
{
    struct counts_series s = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *to = memory_map(256, 0, MAP_PRIVATE);
        volatile uint64_t *buf;
        void *moved;

        /* Nothing of `to` is there yet: to unmap it is free. */
        buf = reclaimed(256);
        case_begin();
        moved = mremap((void *)(uintptr_t)buf, 256 * PAGE, 256 * PAGE,
                       MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)to);
        case_end(&s);
        if (moved == MAP_FAILED) {
            memory_die("linux_counts: mremap");
        }
        case_check(to, 256, 0);
        memory_unmap(to, 256);
    }
    case_report("drain_mremap", "", &s);
}

/*
 * fork, and the reading of the counts behind it, without a store between the
 * two: each page that the parent writes after the fork costs a flush of its
 * own. The child leaves at once. Returns the file descriptor, -1 if there is
 * none, and how much was read.
 */
static int fork_and_read(const char *path, long *pid, size_t *got)
{
    char *text = case_text(); /* a call: before the registers have values */
#ifdef __aarch64__
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = SIGCHLD;
    register long x1 __asm__("x1") = 0;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register long x9 __asm__("x9") = (long)path;
    register long x10 __asm__("x10");
    register long x11 __asm__("x11");
    register long x12 __asm__("x12") = (long)text;

    __asm__ volatile(
        "svc #0\n\t"
        "cbnz x0, 1f\n\t"
        "mov x8, %[exit]\n\t"
        "svc #0\n"
        "1:\n\t"
        "mov x10, x0\n\t"
        "mov x0, %[cwd]\n\t"
        "mov x1, x9\n\t"
        "mov x2, #0\n\t"
        "mov x3, #0\n\t"
        "mov x8, %[open]\n\t"
        "svc #0\n\t"
        "mov x11, x0\n\t"
        "mov x1, x12\n\t"
        "mov x2, %[size]\n\t"
        "mov x8, %[read]\n\t"
        "svc #0"
        : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x8), "=r"(x10), "=r"(x11)
        : "r"(x4), "r"(x9),
          "r"(x12), [exit] "i"(SYS_exit_group), [open] "i"(SYS_openat),
          [cwd] "i"(AT_FDCWD), [read] "i"(SYS_read), [size] "i"(CASE_TEXT_ROOM)
        : "memory");
    *pid = x10;
    *got = x0 > 0 ? (size_t)x0 : 0;
    return x11 < 0 ? -1 : (int)x11;
#else
    int fd;

    (void)text;
    *pid = fork();
    if (*pid == 0) {
        _exit(0);
    }
    fd = open(path, O_RDONLY);
    *got = 0;
    return fd;
#endif
}

void run_fork(void)
{
    struct counts_series s = {0};

    for (int i = 0; i < REPEAT; i++) {
        volatile uint64_t *buf = reclaimed(256);
        long pid = -1;
        size_t got = 0;
        int fd;

        case_begin();
        fd = fork_and_read(COUNTS_CPU, &pid, &got);
        case_end_read(&s, fd, got);
        if (pid > 0) {
            waitpid((pid_t)pid, NULL, 0);
        }
        case_check(buf, 256, 0);
        memory_unmap(buf, 256);
    }
    case_report("drain_fork", "", &s);
}
