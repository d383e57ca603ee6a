/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The error domain and what an error means for the exit status. */
#include "error.h"

G_DEFINE_QUARK(shootdown - vm - error - quark, vm_error)

int exit_status_from_error(const GError *error)
{
    return g_error_matches(error, VM_ERROR, VM_ERROR_USAGE) ? EXIT_USAGE
                                                            : EXIT_ENVIRONMENT;
}
