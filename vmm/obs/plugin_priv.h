/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What plugin.c (loading) and plugin_bridge.c (callbacks) share. */
#ifndef OBS_PLUGIN_PRIV_H
#define OBS_PLUGIN_PRIV_H

#include <gmodule.h>

#include "obs/plugin.h"
#include "shootdown/plugin.h"

/* One callback of a plugin on one kind of event. */
struct plugin_bridge {
    struct plugin *plugin;
    void (*fn)(void); /* of the type that the bridge's function casts to */
    void *opaque;
};

struct plugin {
    struct plugins *all;
    char *path;
    GModule *module;
    struct shootdown_host host;
    bool installing;    /* callbacks can be registered */
    gint late;          /* [atomic] one came too late, and that was said */
    char *error;        /* what install() gave to host->error() */
    GPtrArray *bridges; /* struct plugin_bridge */
    GArray *exits;      /* struct plugin_exit */
};

struct plugin_exit {
    shootdown_exit_fn fn;
    void *opaque;
};

struct plugins {
    struct events *ev;
    const struct symbols *symbols;
    struct plugin_services services;
    GPtrArray *list; /* struct plugin */
    bool exited;
};

/* Fills plugin->host. */
void plugin_bridge_init(struct plugin *plugin);

#endif
