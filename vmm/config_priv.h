/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files that make a struct vm_config share: values out of texts, and
 * the groups of options. All: false and a VM_ERROR_USAGE that names the
 * option, the value seen and what is accepted. Main thread.
 */
#ifndef VMM_CONFIG_PRIV_H
#define VMM_CONFIG_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "config.h"

struct options;

/* --- config_values.c; text NULL: *out stays --- */

/* Sets the error and returns false, for `return config_usage(...)`. */
bool config_usage(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
bool config_number(const char *option, const char *text, uint64_t low,
                   uint64_t high, unsigned *out, GError **error);
/* Decimal, or hexadecimal after 0x; all 64 bits. */
bool config_u64(const char *option, const char *text, uint64_t *out,
                GError **error);
/* names: in the order of the enum, NULL at the end. */
bool config_choice(const char *option, const char *text,
                   const char *const *names, unsigned *out, GError **error);
bool config_mem(const char *text, uint64_t *out, GError **error);
bool config_events(const char *text, uint64_t *out, GError **error);

/* --- config_engine.c --- */

/* Engine, seed, strategy, liberties, snapshot; before what depends on it. */
bool config_take_engine(struct vm_config *config, const struct options *o,
                        enum vm_command command, GError **error);
/* The liberties that an engine has where no option names others. */
enum hw_profile config_default_hw(enum vm_engine engine);

/* --- config.c --- */

/* All that a command line without options means, but no image. */
void config_set_defaults(struct vm_config *config);
/* Threads for that many vCPUs on this host. */
unsigned config_default_workers(unsigned cpus);
/* ELF file of a kernel of one's own; NULL: there is none. */
char *config_default_symbols(const char *kernel);

/* Where output goes, as given; the same for `run` and `replay`. */
struct config_output {
    const char *stats, *trace, *trace_events, *report;
    char *const *plugins;
    bool quiet, verbose;
};
bool config_take_output(struct vm_config *config,
                        const struct config_output *output, GError **error);

#endif
