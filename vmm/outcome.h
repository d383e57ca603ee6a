/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a run can end. */
#ifndef VMM_OUTCOME_H
#define VMM_OUTCOME_H

enum vm_outcome {
    VM_OUTCOME_NONE = 0,     /* not run yet */
    VM_OUTCOME_OFF,          /* PSCI SYSTEM_OFF */
    VM_OUTCOME_RESET,        /* PSCI SYSTEM_RESET */
    VM_OUTCOME_PANIC,        /* the guest reported a panic, then went off */
    VM_OUTCOME_INTERRUPTED,  /* SIGINT or SIGTERM */
    VM_OUTCOME_TIMEOUT,      /* --timeout */
    VM_OUTCOME_ENGINE_ERROR, /* vm_run() set the error */
    VM_OUTCOME_FINDING,      /* the guest saw what a bug did */
    /* Deterministic engines: */
    VM_OUTCOME_END,      /* the guest wrote the mark that ends a scenario */
    VM_OUTCOME_STUCK,    /* every vCPU waits and nothing can wake one */
    VM_OUTCOME_LIMIT,    /* --max-steps */
    VM_OUTCOME_DIVERGED, /* a replay went another way */
    VM_OUTCOME_VIOLATION, /* --ledger stop: the ledger found one */
};

/* "off", "panic", ...: as in statistics and schedules. */
const char *vm_outcome_name(enum vm_outcome outcome);
/* VM_OUTCOME_NONE: no such name. */
enum vm_outcome vm_outcome_from_name(const char *name);

#endif
