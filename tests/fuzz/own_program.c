/* SPDX-License-Identifier: MIT */
/*
 * A program of one's own as a target of `shootdown fuzz`: one thread takes
 * pages away that another reads. docs/FUZZING.md shows how it is run. All that
 * makes it a target are the two marks; Linux answers them with ENOSYS.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SYS_SD_MARK 0x5d00 /* guest/abi/syscalls.h */
#define PAGES 4
#define PAGE 4096

static volatile char *area;
static atomic_int there;

static void *reader(void *arg)
{
    unsigned sum = 0;

    (void)arg;
    for (int round = 0; round < 8; round++) {
        for (int page = 0; page < PAGES; page++) {
            sum += (unsigned)area[page * PAGE];
        }
        if (round == 0) { /* the translations are cached now */
            atomic_store(&there, 1);
        }
    }
    return (void *)(size_t)sum;
}

int main(void)
{
    pthread_t thread;
    void *sum = NULL;

    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) {
        perror("mmap");
        return EXIT_FAILURE;
    }
    for (int page = 0; page < PAGES; page++) {
        area[page * PAGE] = (char)(page + 1);
    }
    if (pthread_create(&thread, NULL, reader, NULL) != 0) {
        fprintf(stderr, "no thread\n");
        return EXIT_FAILURE;
    }
    while (!atomic_load(&there)) {
        __asm__ volatile("yield"); /* tells the machine that this CPU waits */
    }
    (void)syscall(SYS_SD_MARK, 1UL); /* the scenario begins */
    if (madvise((void *)area, PAGES * PAGE, MADV_PAGEOUT) != 0) {
        perror("madvise");
        return EXIT_FAILURE;
    }
    (void)pthread_join(thread, &sum);
    (void)syscall(SYS_SD_MARK, 2UL); /* it is over */
    return sum == (void *)(size_t)(8 * (1 + 2 + 3 + 4)) ? EXIT_SUCCESS
                                                        : EXIT_FAILURE;
}
