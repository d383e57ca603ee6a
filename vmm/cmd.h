/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subcommands, and what they share: one run of one machine. Everything
 * here belongs to the CLI and may print. Main thread.
 */
#ifndef VMM_CMD_H
#define VMM_CMD_H

#include <glib.h>

#include "config.h"
#include "obs/events.h"
#include "obs/stats.h"
#include "session.h"
#include "vm.h"

struct ledger_findings;
struct plugin_services;
struct symbols;

/* argc and argv: what follows the subcommand's name. Result: exit status. */
int cmd_run(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_minimize(int argc, char **argv);
int cmd_fuzz(int argc, char **argv);
char *cmd_fuzz_help(void); /* g_free() it */
int cmd_litmus(int argc, char **argv);
char *cmd_litmus_help(void); /* g_free() it */

/* A finished run, still owning what its totals borrow. */
struct run {
    struct events *events;
    struct symbols *symbols;
    enum vm_outcome outcome;
    struct vm_totals totals;
    struct session session;           /* deterministic engines */
    uint64_t violations;              /* of the ledger */
    uint64_t windows;                 /* that it counted, docs/decisions/0007 */
    struct ledger_findings *findings; /* or NULL */
    const char *replayed; /* what `replay` was given; borrowed, or NULL */
};

/*
 * Builds the machine, its plugins and its trace, runs it to the end (as the
 * schedule `replay` says, if it is not NULL) and collects. False and error: it
 * did not start, or the engine failed; then run->totals may still hold what was
 * counted (events is not NULL).
 */
bool run_machine(const struct vm_config *config, const struct schedule *replay,
                 struct run *out_run, GError **error);
/* Says how it ended, writes what was asked for; the exit status. */
int run_report(const struct vm_config *config, const struct run *run);
void run_fini(struct run *run);
int run_exit_status(const struct run *run);

/* Of the machine: fills what plugins may ask of it (obs/plugin.h). */
void vm_services(struct vm *vm, struct plugin_services *out_services);

/* "shootdown: " + message on standard error; the status that goes with it. */
int cli_fail(const GError *error);

#endif
