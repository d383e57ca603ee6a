/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one run is: parsed from the command line, checked, then never changed.
 * Read from any thread.
 */
#ifndef VMM_CONFIG_H
#define VMM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "hw.h"

#define VM_CPUS_MAX 512
#define VM_MEM_MIN (UINT64_C(16) << 20)
#define VM_MEM_MAX (UINT64_C(64) << 30)
#define VM_RUNS_MAX 1000000000u
/* Scheduling points after a snapshot, where --max-steps does not say. */
#define VM_MAX_STEPS_DEFAULT 1000000u

enum vm_tlb_mode { VM_TLB_BROADCAST, VM_TLB_IPI };
enum vm_flush_mode { VM_FLUSH_SYNC, VM_FLUSH_BATCHED };
enum vm_drain_mode { VM_DRAIN_MM, VM_DRAIN_DSB, VM_DRAIN_NONE };
enum vm_filter_mode { VM_FILTER_OFF, VM_FILTER_STALE };
/* In the order of the TLB's own enum tlb_replacement; vcpu.c asserts it. */
enum vm_replacement { VM_REPLACE_LRU, VM_REPLACE_FIFO, VM_REPLACE_RANDOM };
/* All but parallel are deterministic: one thread, every decision a choice. */
enum vm_engine { VM_ENGINE_PARALLEL, VM_ENGINE_SEEDED, VM_ENGINE_VTIME };

/* Every pointer is owned by the struct; NULL where not given. */
struct vm_config {
    char *workload; /* a bundled program; NULL with a kernel of one's own */
    char *kernel;   /* path, never NULL once resolved */
    char *initrd;
    char *symbols; /* ELF file with the names of the kernel's addresses */
    char *append;  /* as given */
    char *bug;     /* NAME[,NAME]: what the bundled kernel does wrong */
    char *cmdline; /* the kernel command line, composed, never NULL */
    char **args;   /* what followed "--", never NULL */
    char **inputs; /* `fuzz`: files and directories; never NULL */

    unsigned cpus;
    uint64_t mem; /* bytes, a multiple of 2 MiB */
    enum vm_tlb_mode tlb;
    enum vm_flush_mode flush;
    enum vm_drain_mode drain;
    enum vm_filter_mode filter;
    unsigned tlb_sets, tlb_ways, walk_cache;
    enum vm_replacement replacement;
    enum vm_engine engine;
    unsigned workers;   /* threads that run vCPUs, 1..cpus */
    unsigned timeout_s; /* 0: none */

    /* Of the deterministic engines; parallel has the defaults. */
    uint64_t seed;
    char *strategy; /* a text that choice_strategy_new() takes, never NULL */
    struct hw hw;
    uint64_t snapshot_at; /* a value of the guest's MARK, where has_ says so */
    bool has_snapshot_at;
    unsigned runs;      /* from the snapshot, with seed, seed + 1, ...; 1.. */
    uint64_t max_steps; /* scheduling points of one run; 0: no limit */

    unsigned inject; /* INJECT_BIT()s: faults of the TLB, for tests of tests */

    char *record_path; /* the schedule is written there */
    char *stats_path;  /* "-": standard output */
    char *probes_path; /* see probes.h */
    char *report_path; /* what the ledger found, likewise */
    char *trace_path;
    uint64_t trace_events; /* EVENT_BIT()s */
    char **plugins;        /* FILE[,k=v...], never NULL */
    bool attribute;   /* count TLBI and DSB by PC; --stats or a comparison */
    bool check_bbm;   /* break-before-make, see ledger_watch.h */
    bool ledger;      /* all rules of the ledger */
    bool ledger_is_usual; /* nobody asked for it */
    bool ledger_stop; /* with it: a run ends with the first violation */
    bool quiet;       /* no guest console */
    bool verbose;
};

/* Which subcommand's command line it is. */
enum vm_command {
    VM_COMMAND_RUN,
    VM_COMMAND_COMPARE,
    VM_COMMAND_FUZZ, /* seeded, from the mark of a beginning, --ledger stop */
    VM_COMMAND_SCHEDULE, /* a schedule's line: what changes the run, only */
};

/*
 * Parses what follows the subcommand's name. NULL and error: VM_ERROR_USAGE,
 * or VM_ERROR_ENVIRONMENT if the bundled guest is missing.
 */
struct vm_config *vm_config_parse(enum vm_command command, int argc,
                                  char *const *argv, GError **error);
/*
 * The help text of `run` or `compare`, or of the options of `fuzz`; at most 80
 * columns wide. g_free() it.
 */
char *vm_config_help(enum vm_command command);
struct vm_config *vm_config_copy(const struct vm_config *config);
/* Composes cmdline again, after a mode was changed in a fresh copy. */
void vm_config_compose(struct vm_config *config);
void vm_config_free(struct vm_config *config);

/*
 * What makes the run, as one line that a shell and vm_config_from_text() read:
 * the options that differ from the defaults, then workload and arguments. Not
 * in it: the time limit and where output goes. Equal configurations give equal
 * lines. g_free() it.
 */
char *vm_config_to_text(const struct vm_config *config);
/* A word as a shell takes it, in quotes where it needs them; g_free() it. */
char *vm_config_word(const char *word);
/*
 * The way back; output options have their defaults. The text may come from a
 * file of anybody's: NULL and VM_ERROR_ENVIRONMENT for what is not accepted.
 */
struct vm_config *vm_config_from_text(const char *text, GError **error);

/* --- a mode as the command line spells it --- */

static inline const char *vm_tlb_mode_name(enum vm_tlb_mode mode)
{
    return mode == VM_TLB_IPI ? "ipi" : "broadcast";
}

static inline const char *vm_flush_mode_name(enum vm_flush_mode mode)
{
    return mode == VM_FLUSH_SYNC ? "sync" : "batched";
}

static inline const char *vm_drain_mode_name(enum vm_drain_mode mode)
{
    return mode == VM_DRAIN_MM ? "mm" : mode == VM_DRAIN_DSB ? "dsb" : "none";
}

static inline const char *vm_filter_mode_name(enum vm_filter_mode mode)
{
    return mode == VM_FILTER_STALE ? "stale" : "off";
}

static inline const char *vm_replacement_name(enum vm_replacement replacement)
{
    return replacement == VM_REPLACE_LRU    ? "lru"
           : replacement == VM_REPLACE_FIFO ? "fifo"
                                            : "random";
}

static inline const char *vm_engine_name(enum vm_engine engine)
{
    return engine == VM_ENGINE_PARALLEL ? "parallel"
           : engine == VM_ENGINE_SEEDED ? "seeded"
                                        : "vtime";
}

/* "512M", "2G", "65536K", "1048576": false on anything else or overflow. */
bool vm_size_parse(const char *text, uint64_t *out_bytes);

#endif
