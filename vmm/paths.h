/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the bundled guest and the plugins are: beside the program in a build
 * tree, else where they were installed. SHOOTDOWN_GUEST_DIR and
 * SHOOTDOWN_PLUGIN_DIR in the environment come first.
 */
#ifndef VMM_PATHS_H
#define VMM_PATHS_H

#include <glib.h>

/* All return new strings; g_free() them. */

/* A file of the bundled guest; NULL and error where it is not there. */
char *paths_guest_file(const char *name, GError **error);
/* The directory of the plugins, there or not. */
char *paths_plugin_dir(void);

/* A bundled program: a line "name<TAB>description" of workloads.txt. */
struct workload {
    char *name;
    char *description;
};

/* Array of struct workload with its free function set; NULL and error. */
GArray *paths_workloads(GError **error);

#endif
