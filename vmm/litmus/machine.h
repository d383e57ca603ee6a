/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine of one litmus test, driven from outside: each thread is a vCPU,
 * stopped before an instruction of the test; the caller says who executes its
 * next one, and when the hardware takes which liberty.
 *
 * One thread; one machine is active at a time.
 */
#ifndef LITMUS_MACHINE_H
#define LITMUS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "config.h"
#include "litmus/image.h"
#include "litmus/test.h"
#include "obs/events.h"
#include "scheduler.h"

struct snapshot;
struct vm;

/* A fault that was taken; a set, so the same one is there once. */
struct litmus_taken {
    unsigned thread;
    const struct litmus_insn *insn; /* NULL: not the test's own code */
    int var;                        /* whose page, -1: no variable's */
    enum litmus_fault_kind kind;
};

/* Hardware has updated a descriptor for an access, but nobody sees it yet. */
struct litmus_update {
    bool pending;
    unsigned thread;
    uint64_t now;
};

/* A TLBI in the thread's queue that it has applied, before older ones. */
struct litmus_applied {
    uint32_t issuer;
    uint64_t ticket;
};

struct litmus_machine {
    const struct litmus_test *test;
    const struct litmus_image *image;
    const char *inject; /* of --inject, or NULL; borrowed */
    struct vm_config *config;
    struct events *events;
    struct vm *vm;
    struct snapshot *snapshot;
    struct sched_ops ops;
    const struct sched_ops *vm_ops;

    /* Registers that the thread's code or initial state names, a bit each. */
    uint32_t registers[LITMUS_THREADS_MAX];
    uint64_t exceptions[LITMUS_THREADS_MAX]; /* seen so far */
    GArray *taken;                           /* struct litmus_taken */
    struct litmus_update update[LITMUS_VARS_MAX];
    GArray *applied[LITMUS_THREADS_MAX]; /* struct litmus_applied */
    bool began[LITMUS_THREADS_MAX];      /* see litmus_begin_store() */
    char *problem; /* why the run is not one of this test, or NULL */

    /* Of the step that runs. */
    bool entered, reached;
    unsigned blocks;
};

/* inject: what is wrong with its TLBs, as for `run --inject`; NULL: nothing. */
struct litmus_machine *litmus_machine_new(const struct litmus_test *test,
                                          const struct litmus_image *image,
                                          const char *inject, GError **error);
void litmus_machine_free(struct litmus_machine *m);

/* Back to where no thread has executed anything. */
void litmus_machine_reset(struct litmus_machine *m);

/* --- what can happen --- */

bool litmus_is_over(struct litmus_machine *m, unsigned thread);
/* What the thread executes next; NULL: it is over. */
const struct litmus_insn *litmus_next(struct litmus_machine *m,
                                      unsigned thread);
/* Executes it, and the frame's part of a fault. False: see problem. */
bool litmus_step(struct litmus_machine *m, unsigned thread);

/*
 * The numbers of the TLBIs that the thread's vCPU has to apply, in any order;
 * of equal ones the oldest only. Returns how many were written to `out`.
 */
unsigned litmus_owed(struct litmus_machine *m, unsigned thread, unsigned *out,
                     unsigned room);
/* Applies one of them. */
void litmus_apply(struct litmus_machine *m, unsigned thread, unsigned number);
/* Somebody has not applied yet what a DSB of this thread would wait for. */
bool litmus_is_waited_for(struct litmus_machine *m, unsigned thread);

enum litmus_cached {
    LITMUS_ABSENT, /* nothing cached */
    LITMUS_FRESH,  /* what a walk would give now */
    LITMUS_STALE,
};
enum litmus_cached litmus_cached(struct litmus_machine *m, unsigned thread,
                                 unsigned var, bool *out_can_fill);
void litmus_evict(struct litmus_machine *m, unsigned thread, unsigned var);
void litmus_fill(struct litmus_machine *m, unsigned thread, unsigned var);

/*
 * A speculative walk of the thread would set the access flag in memory, which
 * speculation may do (but never the dirty state).
 */
bool litmus_can_touch(struct litmus_machine *m, unsigned thread, unsigned var);
void litmus_touch(struct litmus_machine *m, unsigned thread, unsigned var);

/* Its exclusive monitor is lost, which may happen at any time. */
bool litmus_has_monitor(struct litmus_machine *m, unsigned thread);
void litmus_lose_monitor(struct litmus_machine *m, unsigned thread);

/* --- what others do not see yet; machine_late.c --- */

/*
 * A store to the descriptor that the walks of all but its thread do not see.
 * Loads do see it.
 */
bool litmus_is_hidden(struct litmus_machine *m, unsigned var,
                      unsigned *out_thread);
/* The oldest one becomes visible. */
void litmus_show(struct litmus_machine *m, unsigned var);
/*
 * Hardware has updated the descriptor for an access that the thread has made;
 * nobody sees the update, loads included.
 */
bool litmus_is_late(struct litmus_machine *m, unsigned var,
                    unsigned *out_thread);
/* It becomes visible. */
void litmus_update(struct litmus_machine *m, unsigned var);
/*
 * Hardware sets the dirty state for the store that the thread makes next; the
 * translation stays in use until it is made.
 */
bool litmus_can_begin_store(struct litmus_machine *m, unsigned thread);
void litmus_begin_store(struct litmus_machine *m, unsigned thread);
/*
 * The thread's next instruction is ordered after something that is not
 * visible yet, or after a store that has begun: litmus_show(),
 * litmus_update() or that store first.
 */
bool litmus_must_wait(struct litmus_machine *m, unsigned thread);

/*
 * Which variable's page, or whose descriptor, the thread's next access is to;
 * -1: neither.
 */
void litmus_target(struct litmus_machine *m, unsigned thread, int *out_var,
                   int *out_pte);

/* --- what is --- */

uint64_t litmus_register_value(struct litmus_machine *m, unsigned thread,
                               unsigned reg);
uint64_t litmus_variable_value(struct litmus_machine *m, unsigned var,
                               unsigned element);
uint64_t litmus_descriptor(struct litmus_machine *m, unsigned var);

struct litmus_hash {
    uint64_t word[2];
};
/* Of all that the rest of the run depends on. */
struct litmus_hash litmus_state_hash(struct litmus_machine *m);

/* Of a value that the test names. self: whose descriptor it is, or -1. */
uint64_t litmus_value_bits(const struct litmus_machine *m,
                           const struct litmus_value *value, int self);
uint64_t litmus_pte_bits(const struct litmus_pte *pte, unsigned self);
/* False: names no page of a variable. */
bool litmus_pte_read(const struct litmus_test *test, uint64_t desc,
                     struct litmus_pte *out);

#endif
