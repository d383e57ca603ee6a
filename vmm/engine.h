/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the machine needs of a CPU engine. engine.c is the only user of
 * Unicorn.
 *
 * One engine is one vCPU's registers and micro-TLB. It belongs to one thread
 * at a time, the one that runs the vCPU. The engine executes native code, asks
 * for translations and reports traps; it decides nothing.
 */
#ifndef VMM_ENGINE_H
#define VMM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>

#include "mmu/walk.h"

/*
 * The word that execution views hold in place of a sensitive instruction:
 * MSR TPIDR_EL0, X0. It is allowed at EL0 and EL1, ends its translation block
 * (so that a stop inside the trap is exact) and is the cheapest hook there is.
 */
#define ENGINE_TRAP_WORD UINT32_C(0xd51bd040)
/* Undefined at every EL: for instructions whose trap must move the PC. */
#define ENGINE_UNDEFINED_WORD UINT32_C(0x00000000)

/*
 * True if the engine's decoder aborts the process on this word: unallocated
 * half-precision vector encodings (Unicorn 2.1.4; found by running some 40
 * million random words). They are undefined; views hold
 * ENGINE_UNDEFINED_WORD in their place.
 */
bool engine_aborts_on(uint32_t word);

enum engine_perms {
    ENGINE_R = 1,
    ENGINE_W = 2,
    ENGINE_X = 4,
};

enum engine_exception {
    ENGINE_UNDEFINED,  /* PC is at the instruction */
    ENGINE_SVC,        /* PC is after it */
    ENGINE_BREAKPOINT, /* BRK; PC is at it */
    ENGINE_ALIGNMENT,  /* data alignment; PC is at it */
    ENGINE_OTHER,
};

enum engine_exit {
    ENGINE_EXIT_STOPPED, /* engine_stop() */
    ENGINE_EXIT_FAULT,   /* the fill callback said no; PC is exact */
    ENGINE_EXIT_ERROR,   /* see engine_error() */
};

/* Called on the thread inside engine_run(). */
struct engine_callbacks {
    /* A micro-TLB miss. False: the access faults, engine_run() returns. */
    bool (*fill)(void *opaque, gva_t va, enum access_type type, gpa_t *out_pa,
                 unsigned *out_perms);
    /*
     * ENGINE_TRAP_WORD at pc. Registers may be read and written, PC may not;
     * execution goes on after the instruction, or stops there.
     */
    void (*trap)(void *opaque, gva_t pc);
    /*
     * A synchronous exception. The callback either moves on with
     * engine_set_pc() or stops the engine, never both: the engine forgets a
     * stop request when the PC is written inside this callback.
     */
    void (*exception)(void *opaque, enum engine_exception kind, gva_t pc);
    /*
     * A block of `bytes` is entered, and either watch->requests is not 0, or
     * watch->budget has run out, or watch->every says so. A stop from here
     * leaves PC at va with nothing of the block executed.
     */
    void (*block)(void *opaque, gva_t va, uint32_t bytes);
};

/*
 * What is looked at and counted at the start of every block. The owner's
 * thread reads and writes it; `requests` alone may be pointed at a word that
 * others write.
 */
struct engine_watch {
    const _Atomic uint32_t *requests;
    uint32_t budget;      /* blocks until the callback; counts down */
    bool every;           /* the callback wants every block */
    uint32_t block_bytes; /* of the last block; 0: accounted for */
    gva_t block_va;
    uint64_t blocks, instructions; /* entered since the owner took them */
};

struct engine;

/* Fixed for the engine's life. */
struct engine_watch *engine_watch(struct engine *engine);

struct engine *engine_new(const struct engine_callbacks *callbacks,
                          void *opaque, GError **error);
void engine_free(struct engine *engine);

/* Before the first run. The host memory stays the caller's. */
bool engine_map(struct engine *engine, gpa_t base, uint64_t size, void *host,
                unsigned perms, GError **error);

/* --- the owner's thread only --- */

/*
 * Makes engine_run() return, from within its block, trap or exception
 * callback only. Unicorn's stop is looked at after each memory access of a
 * block, with the PC at the instruction that was just performed: a stop that
 * comes from elsewhere makes a load, a store or half a pair happen twice.
 */
void engine_stop(struct engine *engine);
/* Runs from the current PC. */
enum engine_exit engine_run(struct engine *engine);
const char *engine_error(const struct engine *engine);

/* Forget one 4 KiB page of the micro-TLB, or all of it. */
void engine_drop_page(struct engine *engine, gva_t va);
void engine_flush(struct engine *engine);
/* Forget all translated code; outside engine_run() only. */
void engine_flush_code(struct engine *engine);

uint64_t engine_x(struct engine *engine, unsigned reg); /* 31: SP */
void engine_set_x(struct engine *engine, unsigned reg, uint64_t value);
void engine_v(struct engine *engine, unsigned reg, uint64_t out[2]);
void engine_set_v(struct engine *engine, unsigned reg, const uint64_t value[2]);
gva_t engine_pc(struct engine *engine);
void engine_set_pc(struct engine *engine, gva_t pc);
uint64_t engine_pstate(struct engine *engine);
/* Flags and masks only: neither EL nor SPSel may change. */
void engine_set_pstate(struct engine *engine, uint64_t pstate);
/*
 * Changes EL and SPSel too: saves SP to the old bank, loads the new one.
 * Rebuilds what the engine caches of PSTATE. PC is the caller's, afterwards.
 */
void engine_switch_pstate(struct engine *engine, uint64_t pstate);
/* key: SYSREG(). False: the engine does not know the register. */
bool engine_sysreg(struct engine *engine, uint32_t key, uint64_t *out);
bool engine_set_sysreg(struct engine *engine, uint32_t key, uint64_t value);

/*
 * All registers of an engine, for going back to; made for one engine, good for
 * no other. Not inside engine_run(). The micro-TLB and the watch are not part
 * of it: after a restore the owner flushes the micro-TLB, which otherwise
 * keeps what it learnt since, and sets the watch.
 */
struct engine_state;

/* Holds the present registers. */
struct engine_state *engine_state_new(struct engine *engine, GError **error);
void engine_state_free(struct engine_state *state);
void engine_state_save(struct engine *engine, struct engine_state *state);
void engine_state_restore(struct engine *engine,
                          const struct engine_state *state);

/*
 * A hash of the architectural registers that the engine holds, by their
 * values: equal on all hosts. Not inside engine_run().
 */
uint64_t engine_state_hash(struct engine *engine);

void engine_version(unsigned *out_major, unsigned *out_minor,
                    unsigned *out_patch);

#endif
