/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of outcomes. */
#include "outcome.h"

#include <string.h>
#include <glib.h>

static const char *const names[] = {
    [VM_OUTCOME_NONE] = "none",
    [VM_OUTCOME_OFF] = "off",
    [VM_OUTCOME_RESET] = "reset",
    [VM_OUTCOME_PANIC] = "panic",
    [VM_OUTCOME_INTERRUPTED] = "interrupted",
    [VM_OUTCOME_TIMEOUT] = "timeout",
    [VM_OUTCOME_ENGINE_ERROR] = "engine-error",
    [VM_OUTCOME_FINDING] = "finding",
    [VM_OUTCOME_END] = "end",
    [VM_OUTCOME_STUCK] = "stuck",
    [VM_OUTCOME_LIMIT] = "limit",
    [VM_OUTCOME_DIVERGED] = "diverged",
    [VM_OUTCOME_VIOLATION] = "violation",
};

const char *vm_outcome_name(enum vm_outcome outcome)
{
    return (unsigned)outcome < G_N_ELEMENTS(names) ? names[outcome] : "none";
}

enum vm_outcome vm_outcome_from_name(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum vm_outcome)i;
        }
    }
    return VM_OUTCOME_NONE;
}
