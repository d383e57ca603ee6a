/* SPDX-License-Identifier: MIT */
/*
 * bench_micro: what the basic operations cost, one line "name ns" each. Runs on
 * Linux too; lines that need something this kernel or machine has not are left
 * out.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "common.h"

#define PAGES 512
#define MAX_LIVE 4
#define LINE_NS 200000000ULL /* how long to measure for a line, times scale */
#define AT_LEAST 5

static unsigned long scale = 1; /* -n */
static size_t page;

/* Enough repetitions, or enough time spent? */
static bool enough(unsigned long done, uint64_t ns)
{
    return done >= AT_LEAST && ns >= LINE_NS * scale;
}

static void report(const char *name, uint64_t ns, uint64_t count)
{
    printf("%s %llu\n", name, (unsigned long long)(ns / count));
}

static void bench_syscall(void)
{
    unsigned long n = 0;
    uint64_t ns = 0;

    for (; !enough(n, ns); n += 1000) {
        uint64_t start = now_ns();

        for (unsigned i = 0; i < 1000; i++) {
            syscall(SYS_getpid);
        }
        ns += now_ns() - start;
    }
    report("syscall_getpid", ns, n);
}

static volatile uint64_t *map_pages(size_t pages)
{
    void *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror("bench_micro: mmap");
        exit(1);
    }
    return p;
}

static uint64_t touch(volatile uint64_t *p)
{
    uint64_t start = now_ns();

    for (size_t i = 0; i < PAGES; i++) {
        p[i * page / 8] = i;
    }
    return now_ns() - start;
}

static void bench_fault(void)
{
    uint64_t first = 0, again = 0;
    unsigned long n = 0;

    for (; !enough(n, first + again); n++) {
        volatile uint64_t *p = map_pages(PAGES);

        first += touch(p);
        for (unsigned r = 0; r < 4; r++) {
            madvise((void *)p, PAGES * page, MADV_DONTNEED);
            again += touch(p);
        }
        munmap((void *)p, PAGES * page);
    }
    report("fault_first_touch", first, PAGES * n);
    report("fault_after_dontneed", again, 4 * PAGES * n);
}

/* --- flushes with the address space live on several CPUs --- */

static atomic_bool stop;
static atomic_uint live;

static void *live_thread(void *arg)
{
    (void)pin_to_cpu((unsigned)(uintptr_t)arg);
    atomic_fetch_add(&live, 1);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
    }
    return NULL;
}

static void live_start(pthread_t *threads, unsigned others)
{
    atomic_store(&stop, false);
    atomic_store(&live, 0);
    for (unsigned i = 0; i < others; i++) {
        if (pthread_create(&threads[i], NULL, live_thread,
                           (void *)(uintptr_t)(i + 1)) != 0) {
            perror("bench_micro: pthread_create");
            exit(1);
        }
    }
    while (atomic_load(&live) < others) {
        sched_yield();
    }
}

static void live_stop(pthread_t *threads, unsigned others)
{
    atomic_store(&stop, true);
    for (unsigned i = 0; i < others; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* mprotect of one written page to read-only: one TLBI and one wait. */
static void bench_flush(unsigned cpus)
{
    pthread_t threads[MAX_LIVE];
    volatile uint64_t *p = map_pages(1);
    unsigned long n = 0;
    uint64_t flush = 0;
    char name[32];

    live_start(threads, cpus - 1);
    for (; !enough(n, flush); n++) {
        uint64_t start;

        p[0] = n;
        start = now_ns();
        mprotect((void *)p, page, PROT_READ);
        flush += now_ns() - start;
        mprotect((void *)p, page, PROT_READ | PROT_WRITE);
    }
    live_stop(threads, cpus - 1);
    munmap((void *)p, page);
    snprintf(name, sizeof(name), "flush_mprotect_%ucpu", cpus);
    report(name, flush, n);
}

/* --- interrupts between CPUs --- */

static void bench_ipi_hook(void)
{
    static const char text[] = "ipi 1 10"; /* ten round trips to CPU 1 */
    int fd = open("/proc/shootdown", O_WRONLY);
    unsigned long n = 0;
    uint64_t ns = 0;

    for (; fd >= 0 && !enough(n, ns); n += 10) {
        uint64_t start = now_ns();

        if (write(fd, text, sizeof(text) - 1) < 0) {
            break;
        }
        ns += now_ns() - start;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (ns > 0) {
        report("ipi_round_trip", ns, n);
    }
}

static void bench_ipi(void)
{
#ifdef SYS_membarrier
    pthread_t threads[MAX_LIVE];
    unsigned long n = 0;
    uint64_t ns = 0;

    bench_ipi_hook();
    /* PRIVATE_EXPEDITED interrupts exactly the CPUs that run our threads. */
    if (syscall(SYS_membarrier, 16, 0, 0) != 0) {
        return;
    }
    live_start(threads, 1);
    for (; !enough(n, ns); n++) {
        uint64_t start = now_ns();

        syscall(SYS_membarrier, 8, 0, 0);
        ns += now_ns() - start;
    }
    report("membarrier_2cpu", ns, n);
    live_stop(threads, 1);
#endif
}

/* --- switching --- */

static atomic_uint token;

static void *yield_thread(void *arg)
{
    unsigned rounds = (unsigned)(uintptr_t)arg;

    (void)pin_to_cpu(0);
    for (unsigned i = 0; i < rounds; i++) {
        while (atomic_load(&token) % 2 == 0) {
            sched_yield();
        }
        atomic_fetch_add(&token, 1);
    }
    return NULL;
}

static void bench_switch(void)
{
    unsigned n = 2000 * (unsigned)scale;
    pthread_t thread;
    uint64_t start;

    if (pthread_create(&thread, NULL, yield_thread, (void *)(uintptr_t)n) !=
        0) {
        perror("bench_micro: pthread_create");
        exit(1);
    }
    start = now_ns();
    for (unsigned i = 0; i < n; i++) {
        atomic_fetch_add(&token, 1);
        while (atomic_load(&token) % 2 == 1) {
            sched_yield();
        }
    }
    report("context_switch", now_ns() - start, 2 * n);
    pthread_join(thread, NULL);
}

/* Emulated speed: a loop of six instructions that never leaves registers. */
static void bench_loop(void)
{
    uint64_t n = 5000000 * scale, i = n, x = 1;
    uint64_t start = now_ns(), ns;

    __asm__ volatile("1: add %0, %0, %1\n"
                     "   eor %0, %0, %0, lsl #7\n"
                     "   add %0, %0, #3\n"
                     "   ror %0, %0, #5\n"
                     "   subs %1, %1, #1\n"
                     "   b.ne 1b\n"
                     : "+r"(x), "+r"(i)::"cc");
    ns = now_ns() - start;
    report("loop_1000_instructions", ns * 1000, n * 6);
}

int main(int argc, char **argv)
{
    unsigned cpus = cpus_allowed();
    int c;

    while ((c = getopt(argc, argv, "n:h")) != -1) {
        if (c != 'n') {
            fprintf(c == 'h' ? stdout : stderr,
                    "usage: bench_micro [-n SCALE]\n"
                    "  SCALE multiplies all repetitions, default 1\n");
            return c == 'h' ? 0 : 2;
        }
        scale = option_number("bench_micro", 'n', optarg, 1);
    }
    page = (size_t)sysconf(_SC_PAGESIZE);
    (void)pin_to_cpu(0);
    bench_loop();
    bench_syscall();
    bench_fault();
    bench_flush(1);
    for (unsigned n = 2; n <= MAX_LIVE && n <= cpus; n *= 2) {
        bench_flush(n);
    }
    if (cpus > 1) {
        bench_ipi();
    }
    bench_switch();
    return 0;
}
