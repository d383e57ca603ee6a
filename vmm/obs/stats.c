/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The statistics of a run as one JSON object. Runs on one thread after the
 * vCPUs stopped; reads the counters, the sites and the operation windows.
 */
#include "obs/stats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "config.h"
#include "error.h"
#include "obs/json.h"
#include "obs/symbols.h"

/* Event counts that have a name of their own among the machine's counters. */
static const struct {
    const char *name;
    enum event_kind kind;
} event_counters[] = {
    {"blocks", EVENT_block},         {"tlb_hits", EVENT_hit},
    {"fills", EVENT_fill},           {"walks", EVENT_walk},
    {"evictions", EVENT_evict},      {"invalidated", EVENT_invalidate},
    {"applied", EVENT_apply},        {"isb", EVENT_isb},
    {"irqs", EVENT_irq_take},        {"ipis_taken", EVENT_ipi_take},
    {"pte_stores", EVENT_pte_store}, {"root_loads", EVENT_root_load},
};

/* Members of map `key`, zeros left out, named by name(i). */
static void json_counts(yajl_gen g, const char *key, const uint64_t *n,
                        unsigned count, const char *(*name)(unsigned))
{
    json_key(g, key);
    yajl_gen_map_open(g);
    for (unsigned i = 0; i < count; i++) {
        if (n[i]) {
            json_u64(g, name(i), n[i]);
        }
    }
    yajl_gen_map_close(g);
}

static const char *name_of_tlbi(unsigned i)
{
    const char *name = tlbi_encoding_name(i);

    return name ? name : "other";
}

static const char *name_of_fault(unsigned i)
{
    return fault_class_name((enum fault_class)i);
}

static const char *name_of_event(unsigned i)
{
    return event_name((enum event_kind)i);
}

/* The members of one vCPU's counters, or of their sum. */
static void json_counters(yajl_gen g, const struct vcpu_counters *c)
{
#define COUNTER(name, what) json_u64(g, #name, c->name);
#include "obs/counters.inc"
#undef COUNTER
    for (size_t i = 0; i < G_N_ELEMENTS(event_counters); i++) {
        json_u64(g, event_counters[i].name, c->events[event_counters[i].kind]);
    }
    json_counts(g, "tlbi", c->flush, 128, name_of_tlbi);
    json_counts(g, "dsb", c->flush + FLUSH_DSB(0), 16, barrier_name);
    json_counts(g, "dmb", c->dmb, 16, barrier_name);
    json_counts(g, "faults", c->faults, FAULT_CLASSES, name_of_fault);
}

static void json_flush_sites(yajl_gen g, const struct events *ev,
                             const struct symbols *symbols)
{
    GArray *sites = events_flush_sites(ev);

    json_key(g, "flush_sites");
    yajl_gen_array_open(g);
    for (guint i = 0; i < sites->len; i++) {
        const struct flush_site *site =
            &g_array_index(sites, struct flush_site, i);
        struct symbol symbol;
        char name[32];

        yajl_gen_map_open(g);
        json_text(g, "symbol",
                  symbols_find(symbols, site->pc, &symbol) ? symbol.name
                                                           : NULL);
        json_hex(g, "pc", site->pc);
        json_text(g, "class", site_class_name(site->site_class));
        json_text(g, "kind", flush_name(site->flush, name, sizeof(name)));
        json_u64(g, "count", site->count);
        yajl_gen_map_close(g);
    }
    yajl_gen_array_close(g);
    g_array_unref(sites);
}

static void json_machine(yajl_gen g, const struct vm_totals *totals,
                         const struct symbols *symbols)
{
    const struct events *ev = totals->events;
    struct vcpu_counters sum;

    events_sum(ev, &sum);
    json_key(g, "machine");
    yajl_gen_map_open(g);
    json_counters(g, &sum);
    json_counts(g, "events", sum.events, EVENT_KINDS, name_of_event);
    if (ev->counters[0].sites) {
        json_flush_sites(g, ev, symbols);
    }
    json_key(g, "per_vcpu");
    yajl_gen_array_open(g);
    for (unsigned v = 0; v < ev->vcpus; v++) {
        yajl_gen_map_open(g);
        json_counters(g, &ev->counters[v]);
        yajl_gen_map_close(g);
    }
    yajl_gen_array_close(g);
    yajl_gen_map_close(g);
}

static void json_guest(yajl_gen g, const struct vm_totals *totals)
{
    unsigned n = guest_counter_count();

    json_key(g, "guest");
    if (totals->guest_cpus == 0) {
        yajl_gen_null(g);
        return;
    }
    yajl_gen_map_open(g);
    for (unsigned i = 0; i < n; i++) {
        json_u64(g, guest_counter_name(i), vm_totals_guest_sum(totals, i));
    }
    json_key(g, "per_cpu");
    yajl_gen_array_open(g);
    for (unsigned cpu = 0; cpu < totals->guest_cpus; cpu++) {
        yajl_gen_map_open(g);
        for (unsigned i = 0; i < n; i++) {
            json_u64(g, guest_counter_name(i),
                     totals->guest[(size_t)cpu * n + i]);
        }
        yajl_gen_map_close(g);
    }
    yajl_gen_array_close(g);
    yajl_gen_map_close(g);
}

/* {"flush": {"TLBI VALE1IS": 256, ...}, "switch": {...}, ...} */
static void json_op_counts(yajl_gen g, const char *key,
                           const struct op_counts *counts)
{
    json_key(g, key);
    yajl_gen_map_open(g);
    for (unsigned c = 0; c < SITE_CLASSES; c++) {
        json_key(g, site_class_name((enum site_class)c));
        yajl_gen_map_open(g);
        for (unsigned k = 0; k < FLUSH_KINDS; k++) {
            char name[32];

            if (counts->n[c][k]) {
                json_u64(g, flush_name(k, name, sizeof(name)), counts->n[c][k]);
            }
        }
        yajl_gen_map_close(g);
    }
    yajl_gen_map_close(g);
}

static void json_operations(yajl_gen g, const struct events *ev)
{
    json_key(g, "operations");
    yajl_gen_map_open(g);
    for (unsigned op = 0; op < OP_KINDS; op++) {
        g_autofree struct op_summary *s = events_op_summary(ev, op);

        if (!s) {
            continue;
        }
        json_key(g, op_kind_name(op));
        yajl_gen_map_open(g);
        json_u64(g, "calls", s->calls);
        json_u64(g, "broken", s->broken);
        json_u64(g, "host_ns", s->ns);
        json_op_counts(g, "first", &s->first);
        json_op_counts(g, "last", &s->last);
        if (s->calls > 1) {
            json_op_counts(g, "min", &s->min);
            json_op_counts(g, "max", &s->max);
        }
        json_op_counts(g, "total", &s->total);
        yajl_gen_map_close(g);
    }
    yajl_gen_map_close(g);
}

char *stats_json(const struct vm_totals *totals, const struct symbols *symbols)
{
    yajl_gen g = yajl_gen_alloc(NULL);
    const unsigned char *text;
    size_t length;
    char *result;

    yajl_gen_map_open(g);
    json_text(g, "shootdown", SHOOTDOWN_VERSION);
    json_config(g, totals->config);
    if (totals->kernel_sha256[0]) {
        json_text(g, "kernel_sha256", totals->kernel_sha256);
    }
    json_text(g, "outcome", totals->outcome);
    json_key(g, "exit_status");
    if (totals->has_exit_status) {
        yajl_gen_integer(g, totals->exit_status);
    } else {
        yajl_gen_null(g);
    }
    json_hex(g, "panic_code", totals->panic_code);
    json_guest(g, totals);
    json_machine(g, totals, symbols);
    json_operations(g, totals->events);
    json_key(g, "time");
    yajl_gen_map_open(g);
    json_u64(g, "host_ns", totals->wall_ns);
    json_u64(g, "guest_ns", totals->guest_ns);
    json_u64(g, "instructions_per_second",
             totals->wall_ns ? (uint64_t)((double)totals->instructions * 1e9 /
                                          (double)totals->wall_ns)
                             : 0);
    json_u64(g, "workers", totals->workers);
    yajl_gen_map_close(g);
    yajl_gen_map_close(g);

    yajl_gen_get_buf(g, &text, &length);
    result = g_strndup((const char *)text, length);
    yajl_gen_free(g);
    return result;
}

bool stats_write(const struct vm_totals *totals, const struct symbols *symbols,
                 const char *path, GError **error)
{
    g_autofree char *line = stats_json(totals, symbols);
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *f = to_stdout ? stdout : fopen(path, "we");
    bool ok;

    if (!f) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "cannot write '%s': %s; choose another file with --stats",
                    path, g_strerror(errno));
        return false;
    }
    /* The line stands alone even where the console stopped inside a line. */
    if (to_stdout && totals->console_midline) {
        (void)fputc('\n', f); /* an error shows in fflush() */
    }
    ok = fprintf(f, "%s\n", line) >= 0 && fflush(f) == 0 && !ferror(f);
    if (!to_stdout) {
        ok = fclose(f) == 0 && ok;
    }
    if (!ok) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "cannot write the statistics to '%s': %s", path,
                    g_strerror(errno));
    }
    return ok;
}
