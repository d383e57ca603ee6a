/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine: built from a configuration, run once, asked for its totals. */
#ifndef VMM_VM_H
#define VMM_VM_H

#include <glib.h>

#include "config.h"
#include "obs/events.h"
#include "obs/stats.h"

struct vm;

enum vm_outcome {
    VM_OUTCOME_NONE = 0,     /* not run yet */
    VM_OUTCOME_OFF,          /* PSCI SYSTEM_OFF */
    VM_OUTCOME_RESET,        /* PSCI SYSTEM_RESET */
    VM_OUTCOME_PANIC,        /* the guest reported a panic, then went off */
    VM_OUTCOME_INTERRUPTED,  /* SIGINT or SIGTERM */
    VM_OUTCOME_TIMEOUT,      /* --timeout */
    VM_OUTCOME_ENGINE_ERROR, /* vm_run() set the error */
};

/*
 * Loads the images and builds everything; no guest instruction runs yet.
 * config and events must outlive the machine. NULL: VM_ERROR_* in error.
 */
struct vm *vm_new(const struct vm_config *config, struct events *events,
                  GError **error);
void vm_free(struct vm *vm);

/* Runs to the end, on the calling thread (the loop) and the workers. */
enum vm_outcome vm_run(struct vm *vm, GError **error);

/* After vm_run(). -1: the guest's init reported no status. */
int vm_exit_status(const struct vm *vm);
void vm_collect(struct vm *vm, struct vm_totals *out_totals);

const char *vm_outcome_name(enum vm_outcome outcome);

#endif
