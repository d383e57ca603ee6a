/* SPDX-License-Identifier: MIT */
/*
 * What runs on the other CPUs while a program on CPU 0 works on its memory:
 *
 *   U  processes of their own spin there; the program has only been there
 *   T  threads of the program spin there, or on the first of them (active)
 *   I  they are idle: lazily, the program's address space is still loaded
 *
 * Spinners sleep while the program visits their CPUs or lets time go by: to
 * spin takes long where many CPUs share few.
 */
#ifndef USER_OTHERS_H
#define USER_OTHERS_H

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "shared.h"

#define OTHERS_MAX 511

struct others_floor {
    _Atomic uint32_t spinning, rests, resting, goes_on;
};

static struct {
    char mode;
    unsigned cpus;
    unsigned active; /* mode T: CPUs with a thread, CPU 0 too; 0: all */
    struct others_floor *floor;
    pid_t children[OTHERS_MAX];
    unsigned n_children;
} others;

static inline unsigned others_spinners(void)
{
    if (others.mode == 'I') {
        return 0;
    }
    return (others.active != 0 ? others.active : others.cpus) - 1;
}

static inline void others_spin(unsigned cpu)
{
    struct others_floor *f = others.floor;
    uint32_t rests = 0;

    (void)pin_to_cpu(cpu);
    atomic_fetch_add(&f->spinning, 1);
    for (;;) {
        __asm__ volatile("yield" ::: "memory"); /* another vCPU may run */
        if (atomic_load_explicit(&f->rests, memory_order_relaxed) > rests) {
            rests++;
            shared_add(&f->resting, 1);
            shared_wait(&f->goes_on, rests);
            atomic_fetch_add(&f->spinning, 1);
        }
    }
}

static inline void *others_thread(void *arg)
{
    others_spin((unsigned)(uintptr_t)arg);
    return NULL;
}

static inline void others_start_one(unsigned cpu)
{
    pthread_t thread;
    pid_t pid;

    if (others.mode == 'T') {
        if (pthread_create(&thread, NULL, others_thread,
                           (void *)(uintptr_t)cpu) != 0) {
            perror("pthread_create");
            exit(1);
        }
        return;
    }
    pid = fork();
    if (pid == 0) {
        others_spin(cpu);
    }
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    others.children[others.n_children++] = pid;
}

static inline void others_wait_spinning(void)
{
    while (atomic_load(&others.floor->spinning) < others_spinners()) {
        sched_yield();
    }
}

#define OTHERS_CPUS "OTHERS_CPUS" /* in the environment; see below */

/*
 * Starts the program again on CPU 0, once: no other CPU ever had its address
 * space then. A CPU that it ran on before, idle since, would keep it loaded and
 * stay in its mask, and would be asked by the first flush that asks lazy CPUs.
 */
static inline void others_begin_alone(char **argv)
{
    const char *cpus = getenv(OTHERS_CPUS);
    char text[16];

    if (cpus != NULL) {
        others.cpus = (unsigned)strtoul(cpus, NULL, 10);
        return;
    }
    snprintf(text, sizeof(text), "%u", cpus_allowed());
    if (pin_to_cpu(0) != 0 || setenv(OTHERS_CPUS, text, 1) != 0) {
        perror("sched_setaffinity");
        exit(1);
    }
    (void)execv("/proc/self/exe", argv);
    perror("/proc/self/exe");
    exit(1);
}

/* Pins the caller to CPU 0 and fills the other CPUs. */
static inline void others_begin(char mode)
{
    others.mode = mode;
    if (others.cpus == 0) {
        others.cpus = cpus_allowed();
    }
    if (others.cpus > OTHERS_MAX) {
        others.cpus = OTHERS_MAX;
    }
    others.floor = shared_map(4096);
    (void)pin_to_cpu(0);
    for (unsigned cpu = 1; cpu <= others_spinners(); cpu++) {
        others_start_one(cpu);
    }
    others_wait_spinning();
}

static inline void others_stop(void)
{
    struct others_floor *f = others.floor;

    atomic_store(&f->spinning, 0);
    atomic_store(&f->resting, 0);
    atomic_fetch_add(&f->rests, 1);
    shared_wait(&f->resting, others_spinners());
}

/* Until each is on its CPU again. */
static inline void others_go_on(void)
{
    shared_add(&others.floor->goes_on, 1);
    others_wait_spinning();
}

static inline void others_let_time_pass(unsigned ms)
{
    others_stop();
    usleep(ms * 1000);
    others_go_on();
}

/* All CPUs know this address space then, and run what they ran before. */
static inline void others_visit_all(void)
{
    if (others.mode != 'T') {
        others_stop();
        for (unsigned cpu = 1; cpu < others.cpus; cpu++) {
            (void)pin_to_cpu(cpu);
        }
        (void)pin_to_cpu(0);
        others_go_on();
    }
}

/* Ends the processes; threads end with the program. */
static inline void others_end(void)
{
    for (unsigned i = 0; i < others.n_children; i++) {
        kill(others.children[i], SIGKILL);
        waitpid(others.children[i], NULL, 0);
    }
    others.n_children = 0;
}

/* The value of -m, or exit status 2. */
static inline char others_option(const char *program, const char *text)
{
    if (strlen(text) != 1 || strchr("UTI", text[0]) == NULL) {
        fprintf(stderr, "%s: -m %s: U, T or I is wanted\n", program, text);
        exit(2);
    }
    return text[0];
}

#endif
