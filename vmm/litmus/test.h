/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A litmus test as it was written: threads, variables, the condition. Plain
 * data; made by litmus_parse(), then never changed.
 *
 * Depends on GLib only. Names of the format are in docs/LITMUS.md.
 */
#ifndef LITMUS_TEST_H
#define LITMUS_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#define LITMUS_THREADS_MAX 8u
#define LITMUS_VARS_MAX 64u
#define LITMUS_REGS 31u
#define LITMUS_ELEMENTS_MAX 16u /* of an array variable */
#define LITMUS_INSNS_MAX 200u   /* of one column */

/* What a descriptor says; defaults where the test does not. */
struct litmus_pte {
    int oa; /* variable whose page it names, -1: its own */
    bool valid, af, db, dbm, el0, x;
};

enum litmus_value_kind {
    LITMUS_NUMBER,
    LITMUS_ADDRESS,     /* virtual address of a variable */
    LITMUS_PTE_ADDRESS, /* where its PTE is mapped */
    LITMUS_PTE,         /* a descriptor */
    LITMUS_LABEL,       /* an instruction's address */
};

struct litmus_value {
    enum litmus_value_kind kind;
    uint64_t number;
    unsigned var;
    struct litmus_pte pte;
    unsigned thread;
    char *label;
};

struct litmus_var {
    char *name;
    unsigned size;  /* bytes of an element: 4 or 8 */
    unsigned count; /* elements */
    struct litmus_value init[LITMUS_ELEMENTS_MAX];
    struct litmus_pte pte;
};

enum litmus_insn_kind {
    LITMUS_LOCAL,  /* registers only, or a barrier that waits for nothing */
    LITMUS_ACCESS, /* reads or writes memory */
    LITMUS_TLBI,
    LITMUS_DSB,
    LITMUS_AT, /* walks on behalf of the program */
};

struct litmus_insn {
    char *text;
    GPtrArray *labels; /* char *, as written */
    unsigned line, column;
    enum litmus_insn_kind kind;
    bool writes;     /* LITMUS_ACCESS */
    bool may_fail;   /* STXR and the like, for no reason */
    bool must_write; /* unless it faults: no condition */
    /*
     * What comes after it in this thread is ordered after: earlier stores
     * (DMB, DSB, release); also what hardware did for earlier accesses (DSB
     * of all). acquires: later accesses come after it.
     */
    bool orders_stores, completes, acquires;
    /* Of the address [Xbase{, index}{, #offset}]; -1: none. */
    int base, index;
    bool index_is_word;
    int64_t offset;
};

/* What a fault that nobody handles does to its thread. */
enum litmus_fault_mode { LITMUS_FATAL, LITMUS_RETRY, LITMUS_SKIP };

struct litmus_thread {
    GPtrArray *code;    /* struct litmus_insn * */
    GPtrArray *handler; /* or NULL: none */
    bool ha, hd, el0;
    bool has_init[LITMUS_REGS];
    struct litmus_value init[LITMUS_REGS];
};

enum litmus_fault_kind {
    LITMUS_FAULT_ANY,
    LITMUS_FAULT_TRANSLATION,
    LITMUS_FAULT_ACCESS_FLAG,
    LITMUS_FAULT_PERMISSION,
    LITMUS_FAULT_OTHER,
};

enum litmus_place_kind {
    LITMUS_AT_REG,
    LITMUS_AT_VAR,
    LITMUS_AT_PTE,
    LITMUS_AT_FAULT,
};

/* Something that a final state has a value for. */
struct litmus_place {
    enum litmus_place_kind kind;
    unsigned thread; /* REG, FAULT */
    unsigned reg;
    unsigned var;     /* VAR, PTE */
    unsigned element; /* VAR */
    /* FAULT */
    char *label;   /* NULL: any instruction */
    int fault_var; /* -1: any address */
    enum litmus_fault_kind fault;
};

enum litmus_formula_kind {
    LITMUS_TRUE,
    LITMUS_IS, /* place = value, or the fault was taken */
    LITMUS_NOT,
    LITMUS_AND,
    LITMUS_OR,
};

struct litmus_formula {
    enum litmus_formula_kind kind;
    struct litmus_formula *left, *right;
    struct litmus_place place;
    struct litmus_value value;
    bool differs; /* LITMUS_IS: "<>" in place of "=" */
};

enum litmus_quantifier { LITMUS_EXISTS, LITMUS_NOT_EXISTS, LITMUS_FORALL };

struct litmus_test {
    char *name;
    char *hash;      /* of the header, or NULL */
    char *condition; /* quantifier and formula as written, blanks squeezed */
    enum litmus_fault_mode mode;
    unsigned threads;
    struct litmus_thread thread[LITMUS_THREADS_MAX];
    unsigned vars;
    struct litmus_var var[LITMUS_VARS_MAX];
    GPtrArray *places; /* struct litmus_place *, to be printed; no duplicates */
    enum litmus_quantifier quantifier;
    struct litmus_formula *formula; /* LITMUS_TRUE where there is none */
    bool has_condition;
};

/*
 * name is for messages: "NAME:LINE:COLUMN: ...". NULL and VM_ERROR_ENVIRONMENT
 * for a text that is not such a test.
 */
struct litmus_test *litmus_parse(const char *text, const char *name,
                                 GError **error);
void litmus_test_free(struct litmus_test *test);

/* Parts of the parser; parse_*.c. */
struct litmus_cursor;
bool litmus_parse_code(struct litmus_cursor *c, struct litmus_test *test,
                       GError **error);
bool litmus_parse_condition(struct litmus_cursor *c, struct litmus_test *test,
                            GError **error);

/* Does `insn` carry this label? */
bool litmus_insn_has_label(const struct litmus_insn *insn, const char *label);

#endif
