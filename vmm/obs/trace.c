/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace as JSON Lines. Events arrive on the vCPUs' threads; one lock keeps
 * the lines whole and protects the generator. Lines stand in order of
 * arrival, which may differ from seq between vCPUs by a few places.
 */
#include "obs/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>
#include <yajl/yajl_gen.h>

#include "config.h"
#include "error.h"
#include "obs/json.h"

#define TRACE_BUFFER (1u << 20)
#define TRACE_FORMAT 1

struct trace {
    char *path;                             /* [init] */
    bool is_hex[EVENT_KINDS][EVENT_FIELDS]; /* [init] */
    uv_mutex_t lock;
    FILE *file;   /* [lock] */
    yajl_gen gen; /* [lock] */
    int failed;   /* [lock] errno of the first write that failed, or 0 */
};

/* Fields that hold addresses or register values; the others are counts. */
static bool field_is_hex(const char *field)
{
    static const char *const hex[] = {
        "address", "desc", "entry", "esr",   "far",     "new", "now_desc",
        "old",     "pa",   "sgi1r", "value", "operand", "va",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(hex); i++) {
        if (strcmp(field, hex[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void trace_print(void *opaque, const char *text, size_t length)
{
    struct trace *t = opaque;

    if (fwrite(text, 1, length, t->file) != length && t->failed == 0) {
        t->failed = errno ? errno : EIO;
    }
}

static void trace_end_line_locked(struct trace *t)
{
    trace_print(t, "\n", 1);
    yajl_gen_reset(t->gen, NULL);
}

static void trace_header(struct trace *t, const struct vm_config *config)
{
    yajl_gen g = t->gen;

    yajl_gen_map_open(g);
    json_text(g, "shootdown", SHOOTDOWN_VERSION);
    json_u64(g, "format", TRACE_FORMAT);
    json_config(g, config);
    json_key(g, "events");
    yajl_gen_map_open(g);
    for (unsigned k = 0; k < EVENT_KINDS; k++) {
        const char *field;

        if (!(config->trace_events & EVENT_BIT(k))) {
            continue;
        }
        json_key(g, event_name((enum event_kind)k));
        yajl_gen_array_open(g);
        for (unsigned i = 0;
             (field = event_field((enum event_kind)k, i)) != NULL; i++) {
            json_key(g, field);
        }
        yajl_gen_array_close(g);
    }
    yajl_gen_map_close(g);
    yajl_gen_map_close(g);
    trace_end_line_locked(t);
}

static void trace_event(void *opaque, const struct event *event)
{
    struct trace *t = opaque;
    const char *field;

    uv_mutex_lock(&t->lock);
    /* After a failed write the rest is lost anyway; the run goes on. */
    if (t->failed == 0) {
        yajl_gen_map_open(t->gen);
        json_u64(t->gen, "seq", event->seq);
        json_text(t->gen, "event", event_name(event->kind));
        json_u64(t->gen, "vcpu", event->vcpu);
        json_hex(t->gen, "pc", event->pc);
        for (unsigned i = 0; (field = event_field(event->kind, i)) != NULL;
             i++) {
            if (t->is_hex[event->kind][i]) {
                json_hex(t->gen, field, event->a[i]);
            } else {
                json_u64(t->gen, field, event->a[i]);
            }
        }
        yajl_gen_map_close(t->gen);
        trace_end_line_locked(t);
    }
    uv_mutex_unlock(&t->lock);
}

struct trace *trace_open(const struct vm_config *config, struct events *ev,
                         GError **error)
{
    struct trace *t;
    FILE *file = strcmp(config->trace_path, "-") == 0
                     ? stdout
                     : fopen(config->trace_path, "we");

    if (!file) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "cannot write '%s': %s; choose another file with --trace",
                    config->trace_path, g_strerror(errno));
        return NULL;
    }
    t = g_new0(struct trace, 1);
    t->path = g_strdup(config->trace_path);
    t->file = file;
    if (file != stdout) {
        (void)setvbuf(file, NULL, _IOFBF, TRACE_BUFFER); /* else: default */
    }
    for (unsigned k = 0; k < EVENT_KINDS; k++) {
        const char *field;

        for (unsigned i = 0;
             (field = event_field((enum event_kind)k, i)) != NULL; i++) {
            t->is_hex[k][i] = field_is_hex(field);
        }
    }
    if (uv_mutex_init(&t->lock) != 0) {
        g_error("no memory for a mutex");
    }
    t->gen = yajl_gen_alloc(NULL);
    yajl_gen_config(t->gen, yajl_gen_print_callback, trace_print, t);
    trace_header(t, config);
    events_subscribe(ev, config->trace_events, trace_event, t);
    return t;
}

bool trace_close(struct trace *trace, GError **error)
{
    int failed;

    if (!trace) {
        return true;
    }
    failed = trace->failed;
    if (fflush(trace->file) != 0 && failed == 0) {
        failed = errno;
    }
    if (trace->file != stdout && fclose(trace->file) != 0 && failed == 0) {
        failed = errno;
    }
    if (failed) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the trace in '%s' is not complete: %s", trace->path,
                    g_strerror(failed));
    }
    yajl_gen_free(trace->gen);
    uv_mutex_destroy(&trace->lock);
    g_free(trace->path);
    g_free(trace);
    return failed == 0;
}
