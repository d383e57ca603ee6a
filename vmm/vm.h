/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine: built from a configuration, run once, asked for its totals. */
#ifndef VMM_VM_H
#define VMM_VM_H

#include <stdio.h>
#include <glib.h>

#include "config.h"
#include "obs/events.h"
#include "obs/stats.h"
#include "outcome.h"
#include "session.h"

struct vm;

/*
 * Loads the images and builds everything; no guest instruction runs yet.
 * config and events must outlive the machine. NULL: VM_ERROR_* in error.
 */
struct vm *vm_new(const struct vm_config *config, struct events *events,
                  GError **error);
void vm_free(struct vm *vm);

/* Runs to the end, on the calling thread (the loop) and the workers. */
enum vm_outcome vm_run(struct vm *vm, GError **error);

/*
 * Before vm_run(), deterministic engines: the run that the schedule tells,
 * checked against its hashes. False: it is of other images. Borrowed.
 */
bool vm_replay(struct vm *vm, const struct schedule *schedule, GError **error);
/* After vm_run(): what the session found; session_fini() is the caller's. */
void vm_take_session(struct vm *vm, struct session *out_session);

/* After vm_run(): of --probes, those that never came by; verbose: all. */
void vm_probes_report(const struct vm *vm, bool verbose, FILE *out);
/* After vm_run(). -1: the guest's init reported no status. */
int vm_exit_status(const struct vm *vm);
void vm_collect(struct vm *vm, struct vm_totals *out_totals);

#endif
