/* SPDX-License-Identifier: MIT */
/* museum_mm: its scenarios (museum_scenarios.c) and who runs one. */
#ifndef USER_MUSEUM_MM_H
#define USER_MUSEUM_MM_H

#include <pthread.h>
#include <stdbool.h>

#include "scenario.h"

/* Of struct scenario_step: what has been done. */
enum step { STEP_TOUCH = 1, STEP_RACE = 2, STEP_OVER = 3 };

struct scenario {
    const char *name;
    unsigned long pages; /* at area */
    bool split; /* half of it in one block of 2 MiB, half in the next */
    void (*prepare)(void);
    void (*first)(void);  /* CPU 0 */
    void (*second)(void); /* CPU 1; NULL: nobody */
    void (*after)(void);  /* CPU 0, when all is over */
    const char *what;
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

/* Set by main before anything else: the one that runs. */
extern const struct scenario *scenario;
extern bool crowded; /* threads share CPUs */
/* The first thread's word; the second's and the third's are main's. */
extern struct scenario_step go;

/* Maps the scenario's pages. */
void area_map(void);
void read_all(void);
/* Ends the program where there is no thread to be had; fn NULL: none. */
void start(pthread_t *thread, void *(*fn)(void *));

#endif
