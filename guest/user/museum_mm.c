/* SPDX-License-Identifier: MIT */
/*
 * museum_mm: what the memory management's exhibits need to be seen, one small
 * scenario each. A thread on CPU 0 does one operation; one on CPU 1 another one
 * that must not rely on the first; one on CPU 2 has all pages in its TLB and
 * stays in the program, so that it may use them at any time. What is wrong is
 * for the machine to say: what a program reads here proves nothing.
 */
#define _GNU_SOURCE
#include "museum_mm.h"

static struct scenario_step second_step, third_step;

static const struct scenario *scenario_of(const char *name)
{
    for (unsigned i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].name, name) == 0) {
            return &scenarios[i];
        }
    }
    return NULL;
}

/* --- the race --- */

static void *second_main(void *arg)
{
    (void)pin_to_cpu(1);
    scenario_wait(&go, STEP_TOUCH, crowded);
    read_all();
    scenario_arrive(&second_step, STEP_TOUCH);
    scenario_wait(&go, STEP_RACE, crowded);
    scenario->second();
    scenario_arrive(&second_step, STEP_OVER);
    return arg;
}

static void *third_main(void *arg)
{
    (void)pin_to_cpu(2);
    scenario_wait(&go, STEP_TOUCH, crowded);
    read_all();
    scenario_arrive(&third_step, STEP_TOUCH);
    scenario_wait(&go, STEP_OVER, crowded);
    return arg;
}

static void race(void)
{
    scenario_arrive(&go, STEP_TOUCH);
    if (scenario->second != NULL) {
        scenario_wait(&second_step, STEP_TOUCH, crowded);
    }
    scenario_wait(&third_step, STEP_TOUCH, crowded);
    read_all();
    scenario_mark(ANNOT_MARK_BEGIN);
    scenario_arrive(&go, STEP_RACE);
    scenario->first();
    scenario_arrive(&go, STEP_OVER);
    if (scenario->second != NULL) {
        scenario_wait(&second_step, STEP_OVER, crowded);
    }
    scenario_mark(ANNOT_MARK_END);
}

static void usage(FILE *to)
{
    fprintf(to, "usage: museum_mm SCENARIO\n"
                "One small race of memory operations on 3 CPUs:\n");
    for (unsigned i = 0; i < scenario_count; i++) {
        fprintf(to, "  %-16s %s\n", scenarios[i].name, scenarios[i].what);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[2] = {0};

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    scenario = argc == 2 ? scenario_of(argv[1]) : NULL;
    if (scenario == NULL) {
        usage(stderr);
        return 2;
    }
    crowded = cpus_allowed() < 3;
    (void)pin_to_cpu(0);
    area_map();
    scenario->prepare();
    start(&threads[0], scenario->second != NULL ? second_main : NULL);
    start(&threads[1], third_main);
    race();
    for (unsigned i = 0; i < 2; i++) {
        if (threads[i] != 0) {
            pthread_join(threads[i], NULL);
        }
    }
    if (scenario->after != NULL) {
        scenario->after();
    }
    printf("museum_mm: %s: done\n", scenario->name);
    return 0;
}
