/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the bundled guest and the plugins. Before the machine starts. */
#include "paths.h"

#include <string.h>

#include "error.h"

/* The directory of the running program; "." where it cannot be told. */
static char *program_dir(void)
{
    g_autofree char *exe = g_file_read_link("/proc/self/exe", NULL);

    return exe ? g_path_get_dirname(exe) : g_strdup(".");
}

static char *find_dir(const char *variable, const char *name,
                      const char *installed)
{
    const char *chosen = g_getenv(variable);
    g_autofree char *base = program_dir();
    const char *const beside[] = {".", ".."};

    if (chosen && chosen[0]) {
        return g_strdup(chosen);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(beside); i++) {
        g_autofree char *dir = g_build_filename(base, beside[i], name, NULL);

        if (g_file_test(dir, G_FILE_TEST_IS_DIR)) {
            return g_canonicalize_filename(dir, NULL);
        }
    }
    return g_strdup(installed);
}

char *paths_guest_file(const char *name, GError **error)
{
    g_autofree char *dir =
        find_dir("SHOOTDOWN_GUEST_DIR", "guest", SHOOTDOWN_DATADIR "/guest");
    g_autofree char *path = g_build_filename(dir, name, NULL);

    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the bundled guest is not there: no file '%s'. Build it "
                    "(meson needs the aarch64 cross compiler), name its "
                    "directory in SHOOTDOWN_GUEST_DIR, or run a kernel of your "
                    "own with --kernel FILE",
                    path);
        return NULL;
    }
    return g_steal_pointer(&path);
}

char *paths_plugin_dir(void)
{
    return find_dir("SHOOTDOWN_PLUGIN_DIR", "plugins",
                    SHOOTDOWN_LIBDIR "/plugins");
}

static void workload_clear(gpointer data)
{
    struct workload *w = data;

    g_free(w->name);
    g_free(w->description);
}

GArray *paths_workloads(GError **error)
{
    g_autofree char *path = paths_guest_file("workloads.txt", error);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    GArray *all;

    if (!path) {
        return NULL;
    }
    if (!g_file_get_contents(path, &text, NULL, error)) {
        return NULL;
    }
    all = g_array_new(FALSE, FALSE, sizeof(struct workload));
    g_array_set_clear_func(all, workload_clear);
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        char *tab = strchr(*line, '\t');
        struct workload w;

        if (**line == '\0' || **line == '#') {
            continue;
        }
        w.name = tab ? g_strndup(*line, (gsize)(tab - *line)) : g_strdup(*line);
        w.description = g_strdup(tab ? tab + 1 : "");
        g_array_append_val(all, w);
    }
    return all;
}
