/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential PSCI test: what its files know of each other.
 *
 * One CPU at a time has the turn; the others wait for it or for an order. What
 * has no other note is written by who has the turn only, and by a CPU that was
 * given an order until it has answered.
 */
#ifndef TESTS_DIFF_PSCI_DIFF_H
#define TESTS_DIFF_PSCI_DIFF_H

#define REGS_STATE 248 /* struct regs */
#define RECORD_SIZE 80 /* struct record */
#define RECORD_CPU 0
#define RECORD_X0 8
#define RECORD_EL 24
#define RECORD_SPSEL 40
#define RECORD_MPIDR 56

/* psci_leave(): what is odd about the life that ends. */
#define LEAVE_UNMASKED 1 /* DAIF clear */
#define LEAVE_SP_EL0 2
#define LEAVE_MMU_OFF 4
#define LEAVE_ALL 8 /* one more than the largest sum */

#define ENTRIES 8
#define ENTRY_SIZE 8

#ifndef __ASSEMBLER__
#include "words.h"

#define CPUS_MAX 4
#define NOBODY 0xff
#define SPURIOUS 1020

#define PSCI_64 0x40000000u
#define PSCI_CPU_SUSPEND 0x84000001u
#define PSCI_CPU_ON 0x84000003u
#define PSCI_AFFINITY_INFO 0x84000004u
#define PSCI_MIGRATE 0x84000005u
#define SMCCC_VERSION 0x80000000u
#define SMCCC_ARCH_FEATURES 0x80000001u
/* In its 32-bit or its 64-bit form. */
#define FN(name, wide) (PSCI_##name | ((wide) ? PSCI_64 : 0))

/* --- psci_calls.c --- */

struct answer {
    uint64_t x0;
    uint64_t changed; /* bit n: xn; from bit 31 on the fields of regs.state */
};

/* What is in the other registers depends on `salt`. Masked: IRQ stays so. */
struct answer call(uint32_t fn, const uint64_t arg[3], uint64_t salt,
                   bool masked);
/* Of those that both machines have. */
uint32_t known_function(struct rng *r);
/* Of those that no machine needs to have, and neither has. */
uint32_t unknown_function(struct rng *r);
uint64_t entry_at(unsigned n);

/* --- psci_probe.S --- */

void psci_smc(uint64_t function); /* for probe() */
extern const char psci_hvc_at_el0[], psci_smc_at_el0[];

/* --- psci_cpus.c --- */

/* What a CPU saw first; written by its entry with the MMU off. */
struct record {
    struct cpu *cpu;
    uint64_t x0, entry, el, daif, spsel, sctlr, mpidr, cntfrq;
    uint32_t arrived, pad;
};
extern struct record records[CPUS_MAX];

enum order_kind { ORDER_NONE, ORDER_OFF, ORDER_SUSPEND, ORDER_RACE };

/* Of a CPU: written by who has the turn, then answered by the CPU. */
struct order {
    uint32_t kind, begun, done, go;
    uint64_t arg[3];
    bool wide;
    struct answer answer;
    uint64_t intid, off_returned;
};
extern struct order orders[CPUS_MAX];
extern bool is_on[CPUS_MAX];
extern uint32_t turn;

/* The case; written by who has the turn. */
struct diff_case {
    struct rng rng;
    uint64_t table, hash;
    unsigned number; /* of the operation */
    unsigned cpus;   /* there are so many */
    unsigned leaver; /* gave the turn away to go off; or NOBODY */
    bool talks;      /* prints its operations */
};
extern struct diff_case now_at;

/* Prints, if the case is one that talks. */
void note(const char *format, uint64_t a, uint64_t b, uint64_t c);
/* Tells who is wrong and ends the program. */
void wrong(const char *what, unsigned cpu) __attribute__((noreturn));
/* Until *p is v. A CPU that does not come is the end of the program. */
void await(const uint32_t *p, uint32_t v, const char *what, unsigned cpu);
int32_t state_of(unsigned cpu);
void await_off(unsigned cpu);
/* Before CPU_ON, while it is off. */
void before_on(unsigned target);
/* Fills in all but arguments before. */
void give_order(unsigned cpu, enum order_kind kind);
uint64_t acknowledge(void);
/* In CPU_SUSPEND, as often as that returns early; the interrupt. */
uint64_t suspend(const uint64_t arg[3], bool wide, uint64_t salt,
                 struct answer *out);
/* A CPU, once it has arrived. */
void live(unsigned cpu) __attribute__((noreturn));
unsigned how_many_on(void);
unsigned random_on(unsigned but);
unsigned random_off(void);
/* It was started so: waits for it, and for the hash what it saw. */
void arrived(unsigned target, bool wide, unsigned entry, uint64_t ctx);
/* A call, its arguments and all that it gave, for hash and reader. */
int64_t ask(uint32_t fn, uint64_t a1, uint64_t a2, uint64_t a3);
/* What it changed, in the same way. */
void note_changed(const struct answer *a);

/* --- psci_ops.c, psci_races.c --- */

/* What an operation gives besides a code of PSCI. */
#define GAVE_REFUSED (-2000) /* one of several errors */
#define GAVE_OFF (-2001)
#define GAVE_WOKEN (-2002)
#define GAVE_EXCEPTION (-2003)
#define GAVE_TORN (-2004) /* answers that do not fit together */

struct operation {
    const char *name;
    int64_t (*run)(unsigned cpu); /* by that CPU */
    unsigned weight;
};
extern const struct operation operations[]; /* end: no name */
int64_t op_off(unsigned cpu);
int64_t op_on_twice(unsigned cpu);
int64_t op_race(unsigned cpu);

/* --- psci_main.c --- */

/* Has the turn; gives it away at the end. */
void step(unsigned cpu);
#endif

#endif
