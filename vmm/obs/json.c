/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers over yajl_gen for statistics and trace. No state, any thread. */
#include "obs/json.h"

#include <string.h>
#include <glib.h>

#include "config.h"

void json_string(yajl_gen g, const char *text)
{
    g_autofree char *valid = NULL;

    if (!text) {
        yajl_gen_null(g);
        return;
    }
    valid = g_utf8_make_valid(text, -1);
    yajl_gen_string(g, (const unsigned char *)valid, strlen(valid));
}

void json_key(yajl_gen g, const char *key)
{
    yajl_gen_string(g, (const unsigned char *)key, strlen(key));
}

void json_u64(yajl_gen g, const char *key, uint64_t value)
{
    char text[24];
    int n = g_snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT, value);

    json_key(g, key);
    yajl_gen_number(g, text, (size_t)n);
}

void json_text(yajl_gen g, const char *key, const char *value)
{
    json_key(g, key);
    json_string(g, value);
}

void json_bool(yajl_gen g, const char *key, bool value)
{
    json_key(g, key);
    yajl_gen_bool(g, value);
}

void json_hex(yajl_gen g, const char *key, uint64_t value)
{
    char text[24];
    int n = g_snprintf(text, sizeof(text), "0x%" G_GINT64_MODIFIER "x", value);

    json_key(g, key);
    yajl_gen_string(g, (const unsigned char *)text, (size_t)n);
}

static void json_strings(yajl_gen g, const char *key, char *const *values)
{
    json_key(g, key);
    yajl_gen_array_open(g);
    for (; values && *values; values++) {
        json_string(g, *values);
    }
    yajl_gen_array_close(g);
}

/* What only the deterministic engines have. */
static void json_choices(yajl_gen g, const struct vm_config *config)
{
    char seed[24];

    /* A string: most readers of JSON lose digits of large numbers. */
    g_snprintf(seed, sizeof(seed), "%" G_GUINT64_FORMAT, config->seed);
    json_text(g, "seed", seed);
    json_text(g, "strategy", config->strategy);
    json_key(g, "hw");
    yajl_gen_map_open(g);
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        json_text(g, hw_knob_option((enum hw_knob)k),
                  hw_mode_name(config->hw.mode[k]));
    }
    yajl_gen_map_close(g);
    if (config->has_snapshot_at) {
        json_hex(g, "snapshot_at", config->snapshot_at); /* as marks are */
        json_u64(g, "runs", config->runs);
    }
    json_u64(g, "max_steps", config->max_steps);
}

void json_config(yajl_gen g, const struct vm_config *config)
{
    json_key(g, "config");
    yajl_gen_map_open(g);
    json_text(g, "workload", config->workload);
    json_strings(g, "args", config->args);
    json_text(g, "kernel", config->kernel);
    json_text(g, "initrd", config->initrd);
    json_text(g, "cmdline", config->cmdline);
    json_u64(g, "cpus", config->cpus);
    json_u64(g, "mem", config->mem);
    json_text(g, "tlb", vm_tlb_mode_name(config->tlb));
    json_text(g, "flush", vm_flush_mode_name(config->flush));
    json_text(g, "drain", vm_drain_mode_name(config->drain));
    json_text(g, "filter", vm_filter_mode_name(config->filter));
    if (config->bug) {
        json_text(g, "bug", config->bug);
    }
    json_u64(g, "tlb_sets", config->tlb_sets);
    json_u64(g, "tlb_ways", config->tlb_ways);
    json_text(g, "tlb_replacement", vm_replacement_name(config->replacement));
    json_u64(g, "walk_cache", config->walk_cache);
    json_text(g, "engine", vm_engine_name(config->engine));
    if (config->engine != VM_ENGINE_PARALLEL) {
        json_choices(g, config);
    }
    json_u64(g, "workers", config->workers);
    json_u64(g, "timeout", config->timeout_s);
    json_strings(g, "plugins", config->plugins);
    yajl_gen_map_close(g);
}
