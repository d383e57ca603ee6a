/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --check bbm: feeds the break-before-make checker (mmu/bbm.h) with the events
 * of a machine, and prints what it found. For the deterministic engines, whose
 * vCPUs are all on one thread; no lock.
 */
#ifndef VMM_BBM_WATCH_H
#define VMM_BBM_WATCH_H

#include <stdio.h>

#include "config.h"
#include "obs/events.h"

struct bbm_watch;
struct symbols;
struct vm;

/* Subscribes; before vm_new(). The result must outlive ev. */
struct bbm_watch *bbm_watch_new(const struct vm_config *config,
                                struct events *ev);
/* The machine whose tables are read. Before vm_run(); NULL: it is gone. */
void bbm_watch_attach(struct bbm_watch *watch, const struct vm *vm);
/*
 * What was found, each pair of places in the program once. symbols may be
 * NULL. Returns how many violations there were; NULL watch: 0.
 */
uint64_t bbm_watch_report(const struct bbm_watch *watch,
                          const struct symbols *symbols, bool verbose,
                          FILE *out);
void bbm_watch_free(struct bbm_watch *watch);

#endif
