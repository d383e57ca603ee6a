/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of the subcommands as GOption sees them: texts in, texts out.
 * What those of `run` and `compare` mean is checked in config.c; those of
 * `replay` and `minimize` are checked here. Main thread.
 */
#ifndef VMM_OPTIONS_H
#define VMM_OPTIONS_H

#include <glib.h>

#include "config.h"
#include "hw.h"

/* Every pointer is owned; NULL where the option was not given. */
struct options {
    char *kernel, *initrd, *symbols, *append;
    char *cpus, *mem, *tlb_sets, *tlb_ways, *replacement, *walk_cache, *workers;
    char *tlb, *flush, *drain, *filter, *bug, *engine;
    char *seed, *strategy, *hw, *snapshot_at, *runs, *max_steps;
    char *hw_modes[HW_KNOBS]; /* --hw-KNOB */
    char *stats, *trace, *trace_events, *record, *timeout, *check, *ledger;
    char *report, *probes;
    char *inject; /* not in the help: faults of the TLB */
    char **plugins, **positional;
    char **args; /* after "--", never NULL after options_parse() */
    gboolean quiet, verbose;
    /* Options of later versions: refused by name. */
    char *machine, *gdb, *monitor;
};

/* Fills *o, which options_fini() frees, also after a failure. */
gboolean options_parse(struct options *o, enum vm_command command, int argc,
                       char *const *argv, GError **error);
void options_fini(struct options *o);

/* --- replay --- */

struct replay_options {
    char *schedule; /* a file's name or the line sd1:...; never NULL */
    char *trace, *trace_events, *stats, *report;
    char **plugins; /* NULL: none */
    gboolean quiet, verbose;
};

/* As options_parse(). FALSE and error: VM_ERROR_USAGE. */
gboolean replay_options_parse(struct replay_options *o, int argc,
                              char *const *argv, GError **error);
/*
 * Sets what of the configuration is output: trace, statistics, plugins,
 * console. Cannot fail for options that replay_options_parse() accepted.
 */
gboolean replay_options_apply(const struct replay_options *o,
                              struct vm_config *config, GError **error);
void replay_options_fini(struct replay_options *o);
char *replay_options_help(void); /* <= 80 columns; g_free() it */

/* --- minimize --- */

#define MINIMIZE_RUNS_DEFAULT 10000

struct minimize_options {
    char *schedule;    /* a file's name or the line sd1:...; never NULL */
    char *output;      /* file for the small schedule; NULL: none */
    unsigned max_runs; /* 1.. */
    gboolean quiet, verbose;
    gboolean table; /* print the steps per vCPU */
};

gboolean minimize_options_parse(struct minimize_options *o, int argc,
                                char *const *argv, GError **error);
void minimize_options_fini(struct minimize_options *o);
char *minimize_options_help(void);

#endif
