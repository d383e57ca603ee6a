/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of choices share: a seed, and a toy machine: a few vCPUs that
 * do a fixed list of events each and ask before every one who does the next.
 */
#ifndef TESTS_UNIT_CHOICE_FIXTURE_H
#define TESTS_UNIT_CHOICE_FIXTURE_H

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "choice/choice.h"
#include "choice/prng.h"
#include "choice/source.h"

/* Check writes a mark for each assertion; loops of millions cannot afford it.
 */
#define REQUIRE(condition, ...)                                                \
    do {                                                                       \
        if (!(condition)) {                                                    \
            ck_abort_msg(__VA_ARGS__);                                         \
        }                                                                      \
    } while (0)

static inline uint64_t seed_of_run(void)
{
    const char *given = getenv("SHOOTDOWN_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

    printf("SHOOTDOWN_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

#define TOY_VCPUS 4
#define TOY_STEPS 32
#define TOY_ORDER 256

struct toy_step {
    enum choice_event event;
    uint64_t object;
    /* A SPIN is done only once this vCPU has done that many steps. */
    unsigned wait_vcpu, wait_steps;
};

struct toy {
    unsigned vcpus;
    unsigned length[TOY_VCPUS];
    struct toy_step step[TOY_VCPUS][TOY_STEPS];
};

struct toy_result {
    unsigned count; /* of events that happened */
    unsigned preemptions;
    unsigned done[TOY_VCPUS];
    char order[TOY_ORDER + 1]; /* "0012...": who did each */
};

/* n vCPUs with as many steps of the same kind each. */
static inline struct toy toy_uniform(unsigned vcpus, unsigned steps,
                                     enum choice_event event)
{
    struct toy toy = {.vcpus = vcpus};

    for (unsigned v = 0; v < vcpus; v++) {
        toy.length[v] = steps;
        for (unsigned i = 0; i < steps; i++) {
            toy.step[v][i].event = event;
            toy.step[v][i].object = 100 * v + i;
        }
    }
    return toy;
}

/* From the one that ran last, in turn. */
static inline unsigned toy_candidates(const struct toy *toy,
                                      const struct toy_result *result,
                                      unsigned current,
                                      struct choice_candidate *candidates)
{
    unsigned n = 0;

    for (unsigned i = 0; i < toy->vcpus; i++) {
        unsigned v = (current + i) % toy->vcpus;

        if (result->done[v] < toy->length[v]) {
            const struct toy_step *step = &toy->step[v][result->done[v]];

            candidates[n++] = (struct choice_candidate){
                .vcpu = v, .event = step->event, .object = step->object};
        }
    }
    return n;
}

static inline void toy_do(const struct toy *toy, struct toy_result *result,
                          unsigned v)
{
    const struct toy_step *step = &toy->step[v][result->done[v]];

    REQUIRE(result->count < TOY_ORDER, "a run without end: %s", result->order);
    result->order[result->count++] = (char)('0' + v);
    if (step->event != CHOICE_EVENT_SPIN ||
        result->done[step->wait_vcpu] >= step->wait_steps) {
        result->done[v]++;
    }
}

static inline struct toy_result toy_run(const struct toy *toy,
                                        struct choice_stream *stream)
{
    struct toy_result result = {0};
    unsigned current = 0;

    for (;;) {
        struct choice_candidate candidates[TOY_VCPUS];
        unsigned n = toy_candidates(toy, &result, current, candidates);
        unsigned value;

        if (!n) {
            return result;
        }
        value = choice_vcpu(stream, candidates, n);
        if (value && candidates[0].vcpu == current && result.count &&
            candidates[0].event != CHOICE_EVENT_SPIN) {
            result.preemptions++;
        }
        current = candidates[value].vcpu;
        toy_do(toy, &result, current);
    }
}

static inline struct choice_source *strategy(const char *text, uint64_t seed)
{
    GError *error = NULL;
    struct choice_source *source = choice_strategy_new(text, seed, &error);

    ck_assert_msg(source != NULL, "%s", error ? error->message : "no error");
    return source;
}

#endif
