/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loading of plugins with GModule: finding the file, checking the version,
 * calling install, at-exit callbacks, unloading. One thread, while no vCPU
 * runs.
 */
#include "obs/plugin.h"

#include <string.h>

#include "error.h"
#include "obs/plugin_priv.h"

#define SYMBOL_VERSION "shootdown_plugin_version"
#define SYMBOL_INSTALL "shootdown_plugin_install"
#define SYMBOL_DESCRIPTION "shootdown_plugin_description"

typedef int (*plugin_install_fn)(const struct shootdown_host *host, int argc,
                                 char **argv);

static void plugin_free(gpointer data)
{
    struct plugin *p = data;

    if (p->module) {
        (void)g_module_close(p->module); /* nothing to do about a failure */
    }
    g_ptr_array_unref(p->bridges);
    g_array_unref(p->exits);
    g_free(p->error);
    g_free(p->path);
    g_free(p);
}

struct plugins *plugins_new(struct events *ev, const struct symbols *symbols)
{
    struct plugins *plugins = g_new0(struct plugins, 1);

    plugins->ev = ev;
    plugins->symbols = symbols;
    plugins->list = g_ptr_array_new_with_free_func(plugin_free);
    return plugins;
}

void plugins_free(struct plugins *plugins)
{
    if (plugins) {
        g_ptr_array_unref(plugins->list);
        g_free(plugins);
    }
}

void plugins_set_services(struct plugins *plugins,
                          const struct plugin_services *services)
{
    plugins->services = *services;
}

/* A path with a slash, which the loader takes as it is; NULL: no such file. */
static char *plugin_resolve(const char *file, const char *dir)
{
    g_autofree char *plain = g_canonicalize_filename(file, NULL);
    g_autofree char *with_so = g_strconcat(file, ".so", NULL);

    if (g_file_test(plain, G_FILE_TEST_IS_REGULAR)) {
        return g_steal_pointer(&plain);
    }
    if (!strchr(file, '/') && dir) {
        const char *const names[] = {file, with_so};

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
            g_autofree char *path = g_build_filename(dir, names[i], NULL);

            if (g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
                return g_canonicalize_filename(path, NULL);
            }
        }
    }
    return NULL;
}

static bool plugin_check_version(GModule *module, const char *path,
                                 GError **error)
{
    const uint32_t *version = NULL;

    if (!g_module_symbol(module, SYMBOL_VERSION, (gpointer *)&version) ||
        !version) {
        g_set_error(error, VM_ERROR, VM_ERROR_PLUGIN,
                    "'%s' is no shootdown plugin: it does not export %s (see "
                    "SHOOTDOWN_PLUGIN() in shootdown/plugin.h)",
                    path, SYMBOL_VERSION);
        return false;
    }
    if (*version != SHOOTDOWN_PLUGIN_API_VERSION) {
        g_set_error(error, VM_ERROR, VM_ERROR_PLUGIN,
                    "plugin '%s' was built for plugin API version %u, this "
                    "shootdown has version %u: build the plugin again with "
                    "this one's shootdown/plugin.h",
                    path, *version, SHOOTDOWN_PLUGIN_API_VERSION);
        return false;
    }
    return true;
}

static GModule *plugin_open(const char *path, GModuleFlags flags,
                            GError **error)
{
    GModule *module = g_module_open(path, flags | G_MODULE_BIND_LOCAL);

    if (!module) {
        g_set_error(error, VM_ERROR, VM_ERROR_PLUGIN,
                    "cannot load plugin '%s': %s", path, g_module_error());
        return NULL;
    }
    if (!plugin_check_version(module, path, error)) {
        (void)g_module_close(module); /* the refusal is what is reported */
        return NULL;
    }
    return module;
}

static bool plugin_install(struct plugin *p, char **words, GError **error)
{
    plugin_install_fn install = NULL;
    int result;

    if (!g_module_symbol(p->module, SYMBOL_INSTALL, (gpointer *)&install) ||
        !install) {
        g_set_error(error, VM_ERROR, VM_ERROR_PLUGIN,
                    "plugin '%s' does not export %s()", p->path,
                    SYMBOL_INSTALL);
        return false;
    }
    p->installing = true;
    result = install(&p->host, (int)g_strv_length(words), words);
    p->installing = false;
    if (result != 0) {
        g_set_error(error, VM_ERROR, VM_ERROR_PLUGIN,
                    "plugin '%s' refused to start: %s", p->path,
                    p->error ? p->error : "it gave no reason");
        return false;
    }
    return true;
}

bool plugins_load(struct plugins *plugins, const char *spec, const char *dir,
                  GError **error)
{
    g_auto(GStrv) words = g_strsplit(spec, ",", -1);
    g_autofree char *path = NULL;
    struct plugin *p;

    if (!words[0] || words[0][0] == '\0') {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "--plugin '%s' names no file: write FILE[,key=value...]",
                    spec);
        return false;
    }
    path = plugin_resolve(words[0], dir);
    if (!path) {
        g_set_error(error, VM_ERROR, VM_ERROR_PLUGIN,
                    "there is no plugin file '%s', here or in '%s'; 'shootdown "
                    "list plugins' shows those that are there",
                    words[0], dir ? dir : "");
        return false;
    }
    p = g_new0(struct plugin, 1);
    p->all = plugins;
    p->path = g_steal_pointer(&path);
    p->bridges = g_ptr_array_new_with_free_func(g_free);
    p->exits = g_array_new(FALSE, FALSE, sizeof(struct plugin_exit));
    p->module = plugin_open(p->path, 0, error);
    if (!p->module) {
        plugin_free(p);
        return false;
    }
    plugin_bridge_init(p);
    /*
     * Kept also where install fails: what it registered refers to it until
     * the events are gone.
     */
    g_ptr_array_add(plugins->list, p);
    return plugin_install(p, words + 1, error);
}

void plugins_at_exit(struct plugins *plugins)
{
    if (!plugins || plugins->exited) {
        return;
    }
    plugins->exited = true;
    for (guint i = 0; i < plugins->list->len; i++) {
        struct plugin *p = plugins->list->pdata[i];

        for (guint k = 0; k < p->exits->len; k++) {
            struct plugin_exit *e =
                &g_array_index(p->exits, struct plugin_exit, k);

            e->fn(e->opaque);
        }
    }
}

char *plugin_describe(const char *path, bool *out_is_plugin)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *full = g_canonicalize_filename(path, NULL);
    GModule *module = plugin_open(full, G_MODULE_BIND_LAZY, &error);
    const char *const *description = NULL;
    char *text;

    *out_is_plugin = module != NULL;
    if (!module) {
        return g_strdup(error->message);
    }
    if (g_module_symbol(module, SYMBOL_DESCRIPTION, (gpointer *)&description) &&
        description && *description) {
        text = g_strdup(*description);
    } else {
        text = g_strdup("(no description)");
    }
    (void)g_module_close(module); /* nothing of it is kept */
    return text;
}
