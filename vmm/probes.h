/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes: what a kernel without annotations does at the beginning and the end
 * of its own functions, told as if it had written to the annotation device.
 * docs/LEDGER.md has the format of the file (--probes).
 *
 * A probe fires where a block of code begins: on a function's entry, and, with
 * `exit`, where the call returns to (x30 at the entry) with the stack pointer
 * as it was. For the deterministic engines: one thread, no lock. Without
 * --probes there are none, and a block costs what it did.
 */
#ifndef VMM_PROBES_H
#define VMM_PROBES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <glib.h>

#include "mmu/addr.h"

struct symbols;
struct vcpu;

enum probe_role {
    PROBE_FRAME_FREE,
    PROBE_FRAME_ALLOC,
    PROBE_IO_BEGIN,
    PROBE_IO_END,
    PROBE_COPY_BEGIN,
    PROBE_OP, /* begins at the entry and ends at the exit */
    PROBE_OP_BEGIN,
    PROBE_OP_END,
    PROBE_WALK_BEGIN,
    PROBE_WALK_END,
    PROBE_ROLES
};

enum probe_key {
    PROBE_PA,    /* frames: where, physical */
    PROBE_VIRT,  /* or by an address of the kernel's */
    PROBE_PAGE,  /* or by its struct page */
    PROBE_ORDER, /* frames: how many, 2^order; otherwise one */
    PROBE_BYTES, /* or in bytes, rounded up */
    PROBE_KIND,  /* operations: ANNOT_OP_* */
    PROBE_START, /* operations: [start, end), or start and bytes */
    PROBE_END,
    PROBE_PROMISE, /* ANNOT_PROMISE_* */
    PROBE_ROOT,    /* walks: of tables, physical */
    PROBE_TASK,    /* op_begin, op_end: whose operation it is; 0: the vCPU's */
    PROBE_KEYS
};

/* A number, or what a register holds. */
struct probe_value {
    bool is_given, is_register;
    bool at_entry; /* exit probes: as it was when the function was entered */
    unsigned reg;  /* 0..7 */
    uint64_t number;
};

struct probe {
    gva_t pc;
    enum probe_role role;
    bool at_exit;
    unsigned line;
    struct probe_value value[PROBE_KEYS];
    uint64_t fired; /* while the machine runs */
};

struct probe_file {
    GArray *probes; /* struct probe, by rising pc */
    bool has_linear, has_pages;
    uint64_t linear_virt, linear_pa;
    uint64_t pages_base, pages_size, pages_pa;
    bool pages_indirect; /* pages_base is where the address is */
};

/*
 * The text of a probe file. name: for messages. NULL and error:
 * VM_ERROR_USAGE, "name:line:column: ...".
 */
struct probe_file *probe_file_parse(const char *text, const char *name,
                                    const struct symbols *symbols,
                                    GError **error);
void probe_file_free(struct probe_file *file);

struct probes;

/* NULL and error: the file or the symbols cannot be read or are wrong. */
struct probes *probes_load(const char *path, const char *symbols,
                           GError **error);
void probes_free(struct probes *probes);
/* The vCPU is about to execute the block at va. */
void probes_block(struct probes *probes, struct vcpu *vcpu, gva_t va,
                  uint32_t bytes);
/* With the snapshot of the machine; NULL: nothing. */
void probes_checkpoint(struct probes *probes);
void probes_rollback(struct probes *probes);
/* Which never fired, or, with verbose, how often each; NULL: nothing. */
void probes_report(const struct probes *probes, bool verbose, FILE *out);

#endif
