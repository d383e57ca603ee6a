/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of `run` and `compare` as GOption sees them: texts in, texts
 * out. What they mean is checked in config.c.
 */
#ifndef VMM_OPTIONS_H
#define VMM_OPTIONS_H

#include <glib.h>

#include "config.h"

/* Every pointer is owned; NULL where the option was not given. */
struct options {
    char *kernel, *initrd, *symbols, *append;
    char *cpus, *mem, *tlb_sets, *tlb_ways, *replacement, *walk_cache, *workers;
    char *tlb, *flush, *drain, *engine;
    char *stats, *trace, *trace_events, *timeout;
    char **plugins, **positional;
    char **args; /* after "--", never NULL after options_parse() */
    gboolean quiet, verbose;
    /* Options of later versions: refused by name. */
    char *machine, *filter, *bug, *seed, *hw, *ledger, *gdb, *monitor;
};

/* Fills *o, which options_fini() frees, also after a failure. */
gboolean options_parse(struct options *o, enum vm_command command, int argc,
                       char *const *argv, GError **error);
void options_fini(struct options *o);

#endif
