/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loading of plugins and their bridge to the event stream. The public side
 * is plugins/include/shootdown/plugin.h; plugins see nothing of this file.
 */
#ifndef OBS_PLUGIN_H
#define OBS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>
#include "obs/events.h"

struct plugins;
struct symbols;

/*
 * What plugins may ask of the machine. Filled by vm_services(); called on the
 * thread of the vCPU whose callback is running. Members may be NULL.
 */
struct plugin_services {
    void *opaque;
    /* len bytes at a guest virtual address of that vCPU, no side effects. */
    bool (*read_memory)(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                        size_t len);
    /* One instruction as text. */
    bool (*disassemble)(void *opaque, uint64_t pc, uint32_t word, char *buf,
                        size_t size);
};

/* --- before vm_run() only --- */

/* symbols (may be NULL) and ev must outlive the result. */
struct plugins *plugins_new(struct events *ev, const struct symbols *symbols);

/*
 * spec: FILE[,key=value...]. A FILE without a slash is also looked for in dir
 * (may be NULL), with and without ".so". Subscribes the plugin's callbacks.
 */
bool plugins_load(struct plugins *plugins, const char *spec, const char *dir,
                  GError **error);
void plugins_set_services(struct plugins *plugins,
                          const struct plugin_services *services);

/* --- after the vCPU threads were joined --- */

/* Runs the at-exit callbacks once, in the order of loading. */
void plugins_at_exit(struct plugins *plugins);
/* Also unloads; events must not be emitted afterwards. NULL is fine. */
void plugins_free(struct plugins *plugins);

/* --- any thread --- */

/*
 * One line about a plugin file for `list`: its description, or why it cannot
 * be loaded. g_free() it. Runs the file's initialisers, not its install.
 */
char *plugin_describe(const char *path, bool *out_is_plugin);

#endif
