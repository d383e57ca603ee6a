/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the tests of hardware liberties. CPU 0 tells a story, step by
 * step, and the others do as they are told: on(2, touch, va) runs touch(va) on
 * CPU 2 and gives its answer.
 *
 * What a machine may do is counted and printed as "INFO: name N of M", and
 * judged by whoever chose the machine's liberties. What no machine may do is a
 * check. "prefetch 0 of M" and the like is all a strict machine prints.
 */
#ifndef TESTS_GUEST_LIBERTY_H
#define TESTS_GUEST_LIBERTY_H

#include "abi/annot.h"
#include "guest.h"

#define LIBERTY_CPUS 3
#define FREE_RAM 0x50000000ull /* 2 MiB aligned, nothing is there */
#define WINDOW_SPAN 0x200000ull

struct outcome {
    const char *name;
    uint64_t seen, of;
};

struct mail {
    uint32_t asked, answered;
    uint64_t (*fn)(uint64_t);
    uint64_t arg, result;
} __attribute__((aligned(64)));

static struct mail mail[LIBERTY_CPUS];
static uint64_t loaded[LIBERTY_CPUS];

static inline void pause_cpu(void)
{
    __asm__ volatile("yield" ::: "memory");
}

/* As wait_for(), but gives way each time: others have everything to do. */
static inline void await(const uint32_t *p, uint32_t v)
{
    while (load_acquire(p) != v) {
        pause_cpu();
    }
}

static inline void serve(unsigned cpu)
{
    struct mail *m = &mail[cpu];

    for (uint32_t n = 1;; n++) {
        await(&m->asked, n);
        m->result = m->fn(m->arg);
        store_release(&m->answered, n);
    }
}

static inline void send(unsigned cpu, uint64_t (*fn)(uint64_t), uint64_t arg)
{
    mail[cpu].fn = fn;
    mail[cpu].arg = arg;
    store_release(&mail[cpu].asked, mail[cpu].asked + 1);
}

static inline uint64_t answer(unsigned cpu)
{
    await(&mail[cpu].answered, mail[cpu].asked);
    return mail[cpu].result;
}

static inline uint64_t on(unsigned cpu, uint64_t (*fn)(uint64_t), uint64_t arg)
{
    if (cpu == 0) {
        return fn(arg);
    }
    send(cpu, fn, arg);
    return answer(cpu);
}

/* --- accesses --- */

static inline void load_from(uint64_t va)
{
    loaded[this_cpu()->id] = *(volatile uint64_t *)va;
}

/* 1: the translation is there, or thought to be there. */
static inline uint64_t touch(uint64_t va)
{
    struct trap t;

    isb();
    return !probe(load_from, va, &t);
}

/* The word at va, or -1. */
static inline uint64_t value_at(uint64_t va)
{
    return touch(va) ? loaded[this_cpu()->id] : ~0ull;
}

/* --- page tables --- */

/* The store alone: no barrier. */
static inline void pte_store(uint64_t *entry, uint64_t value)
{
    *(volatile uint64_t *)entry = value;
}

static inline void dsb_ishst(void)
{
    __asm__ volatile("dsb ishst" ::: "memory");
}

static inline void tlbi_vaae1is(uint64_t operand)
{
    __asm__ volatile("tlbi vaae1is, %0" ::"r"(operand) : "memory");
}

/* Twice, as on a machine with a "repeat TLBI" erratum. */
static inline void flush_for_sure(uint64_t va)
{
    tlbi_vaae1is(va >> 12);
    dsb_ish();
    tlbi_vaae1is(va >> 12);
    dsb_ish();
    isb();
}

/* Takes a page away by the rules and asks every CPU: all must fault. */
static inline uint64_t still_reached(uint64_t *entry, uint64_t va)
{
    uint64_t n = 0;

    pte_write(entry, 0);
    flush_for_sure(va);
    for (unsigned cpu = 0; cpu < LIBERTY_CPUS; cpu++) {
        n += on(cpu, touch, va);
    }
    return n;
}

/* --- the frame --- */

static inline void note(struct outcome *o, bool seen)
{
    o->seen += seen;
    o->of++;
}

static inline void show(const struct outcome *o)
{
    print("INFO: %s %u of %u\n", o->name, o->seen, o->of);
}

static inline void mark(uint64_t value)
{
    *(volatile uint64_t *)(BOARD_ANNOT_BASE + ANNOT_REG_MARK) = value;
}

/* Ends with the mark at which a snapshot may be taken. */
static inline void liberty_begin(const char *name)
{
    struct trap t;

    if (cpu_count() < LIBERTY_CPUS) {
        print("SKIP: needs 3 CPUs\n");
        finish(name);
    }
    for (unsigned cpu = 1; cpu < LIBERTY_CPUS; cpu++) {
        cpu_start(cpu, serve);
        (void)on(cpu, touch, WINDOW_VA);
    }
    (void)probe(mark, ANNOT_MARK_BEGIN, &t); /* QEMU has no such device */
}

#endif
