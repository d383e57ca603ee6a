/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential MMU test: what its generator, its probes and its main loop
 * share. mmu_probe.S knows offsets and numbers from the first part of it.
 *
 * The program lives in two regimes. Regime A is the library's, plus an alias
 * of the image ("home") at HOME_LOW and another at HOME_HIGH. Regime B is the
 * random one; all it is sure to have is one of the two homes.
 */
#ifndef TESTS_DIFF_MMU_DIFF_H
#define TESTS_DIFF_MMU_DIFF_H

#define OPS 100 /* of a table; each is a "translation" */
#define OPS_PER_ADDRESS 5

/* 2 MiB aligned, and within 25 address bits: the most that TxSZ = 39 leaves */
#define HOME_LOW 0x0000000001000000
#define HOME_HIGH 0xffffffffff000000

/* Kinds of operations. EL0's from KIND_EL0 on have a stub each in .user. */
#define KIND_AT_S1E1R 0
#define KIND_AT_S1E1W 1
#define KIND_AT_S1E0R 2
#define KIND_AT_S1E0W 3
#define KIND_AT_S1E1RP 4
#define KIND_AT_S1E1WP 5
#define KIND_ACCESS 6 /* from here on: not an AT */
#define KIND_LDR 6
#define KIND_LDRB 7
#define KIND_LDP 8
#define KIND_STR 9
#define KIND_STP 10
#define KIND_LDTR 11
#define KIND_STTR 12
#define KIND_LDADD 13
#define KIND_STLXR 14
#define KIND_ZVA 15
#define KIND_SWP 16
#define KIND_CAS 17
#define KIND_CROSS_LDR 18 /* of two pages */
#define KIND_CROSS_STR 19
#define KIND_BR 20
#define KIND_EL0 21
#define KIND_EL0_LDR 21
#define KIND_EL0_STR 22
#define KIND_EL0_LDADD 23
#define KIND_EL0_ZVA 24
#define KIND_EL0_EXEC 25
#define KINDS 26

/* In op.pstate */
#define PSTATE_PAN_BIT 0
#define PSTATE_UAO_BIT 1

#define STATUS_SKIPPED 0 /* would have left the pool */
#define STATUS_DONE 1
#define STATUS_TRAP 2 /* | vector << 8 */

#define OP_VA 0
#define OP_VALUE 8
#define OP_KIND 16
#define OP_PSTATE 20
#define OP_PAR 24
#define OP_STATUS 32
#define OP_ESR 40
#define OP_FAR 48
#define OP_ELR 56
#define OP_SPSR 64
#define OP_READ 72

#define REGS_TTBR0 0
#define REGS_TTBR1 8
#define REGS_TCR 16
#define REGS_MAIR 24
#define REGS_SCTLR 32
#define REGS_SIZE 40

#define CALL_A 0
#define CALL_B 40
#define CALL_TCR_IN 80
#define CALL_TCR_OUT 88
#define CALL_HOME 96     /* identity address + this = address at home */
#define CALL_TRANSIT 104 /* the same for the other home */
#define CALL_HOME_HIGH 112
#define CALL_STACK 120 /* identity address of the stack's end */
#define CALL_BATCH 128 /* identity address */

#ifndef __ASSEMBLER__
#include "words.h"

struct op {
    uint64_t va, value;
    uint32_t kind, pstate;
    uint64_t par; /* of AT S1E1R of this address: where it leads */
    uint64_t status, esr, far, elr, spsr, read;
    uint64_t next_par; /* of the page after it, for accesses to both */
};

/* How what TLBs know of the addresses to come is got rid of. */
enum forget {
    FORGET_NOTHING, /* another ASID, and no leaf is global */
    FORGET_ASID,    /* TLBI ASIDE1; no leaf is global */
    FORGET_VA,      /* TLBI VAE1 of each address */
    FORGET_VAA,     /* TLBI VAAE1 */
    FORGET_RANGE,   /* TLBI RVAE1, two pages */
    FORGET_RANGE_A, /* TLBI RVAAE1 */
    FORGET_ALL,     /* TLBI VMALLE1 */
    FORGETS
};

/*
 * A part of the operations. Each but the first begins with other roots, and
 * with no more TLB maintenance than is needed for its addresses, which are
 * among those of the first.
 */
#define PHASES 3
struct phase {
    uint64_t ttbr0, ttbr1;
    uint64_t asid;    /* the current one */
    uint64_t parking; /* one that is used nowhere */
    uint64_t a1;      /* TTBR1 holds it, not TTBR0 */
    uint32_t forget, shareable;
    uint32_t first, count;
};

struct batch {
    uint64_t pool, pool_size;
    struct phase phase[PHASES];
    struct op op[OPS];
};

struct regs {
    uint64_t ttbr0, ttbr1, tcr, mair, sctlr;
};

struct call {
    struct regs a, b;
    /* In between: one half of each. */
    uint64_t tcr_in, tcr_out;
    uint64_t home, transit;
    uint64_t home_high;
    uint64_t stack, batch;
};

/* mmu_probe.S */
void regime_call(struct call *call);
void probe_op(struct op *op);

/* mmu_batch.c: the only C code that runs in regime B, at home. */
void run_batch(struct batch *batch);

/* --- mmu_random.c, mmu_pick.c --- */

/* Where leaves may lead so that real accesses are made: 2 MiB of RAM. */
#define POOL 0x50000000ull
#define POOL_SIZE 0x200000ull
/* No RAM and no device here, on either machine. */
#define VOID_BASE 0x100000000ull
#define VOID_END 0x3f00000000ull
#define DEVICES_END 0x10000000000ull

#define TCR_A1 (1ull << 22)
#define TCR_AS (1ull << 36)
#define ADDRESS_MASK 0x0000fffffffff000ull

static inline unsigned level_shift(unsigned level)
{
    return 12 + 9 * (3 - level);
}

#define NODES_PER_LEVEL 2
#define NODES (2 * 4 * NODES_PER_LEVEL) /* of a tree */
#define NODE_ENTRIES 40

/* A page of tables; `level` is what it was filled for. */
struct node {
    unsigned level, count;
    uint16_t index[NODE_ENTRIES]; /* of what was filled in */
};

/*
 * Two trees: the second is the first with other leaves. Phases use them in
 * turn.
 */
struct tables {
    struct rng rng;
    unsigned home;   /* half */
    bool no_globals; /* every leaf has nG */
    uint32_t forget[PHASES];
    struct regs regs;
    unsigned start_level[2], root_offset[2], root_bits[2];
    bool walks[2];           /* the half's root is one of the nodes */
    struct node node[NODES]; /* of the first tree */
};

extern uint64_t node_table[2 * NODES][512];

/* Of the first tree. */
static inline struct node *node_at(struct tables *t, unsigned half,
                                   unsigned level, unsigned which)
{
    return &t->node[(half * 4 + level) * NODES_PER_LEVEL + which];
}

/* Called once: entries of the home, which every level 3 home table has. */
void tables_set_home(const uint64_t *entries, unsigned count);
void tables_build(struct tables *t, uint64_t seed, uint64_t number);
/* Fills in the phases and their operations. */
void tables_pick(struct tables *t, struct batch *batch);
void tables_print(const struct tables *t);

#endif
#endif
