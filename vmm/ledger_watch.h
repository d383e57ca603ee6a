/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --check bbm: feeds the break-before-make checker (mmu/ledger.h) with the
 * events of a machine, and prints what it found. For the deterministic engines,
 * whose vCPUs are all on one thread; no lock.
 */
#ifndef VMM_LEDGER_WATCH_H
#define VMM_LEDGER_WATCH_H

#include <stdio.h>

#include "config.h"
#include "obs/events.h"

struct ledger_watch;
struct symbols;
struct vm;

/* Subscribes; before vm_new(). The result must outlive ev. */
struct ledger_watch *ledger_watch_new(const struct vm_config *config,
                                      struct events *ev);
/* The machine whose tables are read. Before vm_run(); NULL: it is gone. */
void ledger_watch_attach(struct ledger_watch *watch, const struct vm *vm);
/*
 * What was found, each pair of places in the program once. symbols may be
 * NULL. Returns how many violations there were; NULL watch: 0.
 */
uint64_t ledger_watch_report(const struct ledger_watch *watch,
                             const struct symbols *symbols, bool verbose,
                             FILE *out);
void ledger_watch_free(struct ledger_watch *watch);

#endif
