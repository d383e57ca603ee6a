/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The VMM's error domain. A code decides the exit status, nothing else. */
#ifndef VMM_ERROR_H
#define VMM_ERROR_H

#include <glib.h>

enum vm_error {
    VM_ERROR_USAGE,       /* the command line is wrong: exit status 1 */
    VM_ERROR_ENVIRONMENT, /* files, memory, libraries: 2 */
    VM_ERROR_BAD_IMAGE,   /* a kernel, initrd or symbol file: 2 */
    VM_ERROR_ENGINE,      /* Unicorn refused or failed: 2 */
    VM_ERROR_PLUGIN,      /* a plugin cannot be loaded or refused: 2 */
};

#define VM_ERROR vm_error_quark()
GQuark vm_error_quark(void);

/* Exit statuses of the program (design section 8). */
enum exit_status {
    EXIT_FINE = 0,
    EXIT_USAGE = 1,
    EXIT_ENVIRONMENT = 2,
    EXIT_GUEST_PANIC = 3,
    EXIT_WORKLOAD_FAILED = 4, /* the guest's init ended with another than 0 */
    EXIT_HANG = 70,
    EXIT_BUG_FOUND = 77,
    EXIT_INTERRUPTED = 130, /* Ctrl-C: 128 + SIGINT, as shells do */
};

int exit_status_from_error(const GError *error);

#endif
