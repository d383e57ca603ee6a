/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A scenario to be run again and again; see fuzz_target.h. */
#include "fuzz_target.h"

#include <string.h>

#include "choice/source.h"
#include "error.h"
#include "ledger_watch.h"
#include "obs/symbols.h"
#include "session.h"
#include "vm_priv.h"

/* Hands the questions on, and writes the answers down as bytes. */
struct recorder {
    struct choice_source base;
    struct choice_source *inner; /* of this run */
    uint64_t max;                /* choices that inner answers; 0: all */
    GByteArray *bytes;
};

struct fuzz_target {
    struct vm_config *config;
    struct symbols *symbols; /* NULL: addresses stay numbers */
    struct events *events;
    struct ledger_watch *ledger;
    struct fuzz_cover *cover;
    struct vm *vm;
    struct execution *execution;
    struct recorder recorder;
};

/* --- the recorder --- */

static unsigned recorder_choose(struct choice_source *source,
                                enum choice_kind kind, unsigned n,
                                uint64_t index,
                                const struct choice_candidate *candidates)
{
    struct recorder *self = (struct recorder *)source;
    unsigned value = 0;
    uint8_t bytes[2];

    if (!self->max || index < self->max) {
        value =
            self->inner->ops->choose(self->inner, kind, n, index, candidates);
    }
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
    g_byte_array_append(self->bytes, bytes, n > 256 ? 2 : 1);
    return value;
}

static void recorder_free(struct choice_source *source)
{
    (void)source; /* a part of the target */
}

/* --- life --- */

struct vm_config *fuzz_target_config(int argc, char *const *argv,
                                     GError **error)
{
    return vm_config_parse(VM_COMMAND_FUZZ, argc, argv, error);
}

static bool prepare(struct fuzz_target *t, GError **error)
{
    if (t->config->symbols) {
        t->symbols = symbols_load(t->config->symbols, error);
        if (!t->symbols) {
            return false;
        }
    }
    t->events = events_new(t->config->cpus);
    t->ledger = ledger_watch_new(t->config, t->events);
    t->cover = fuzz_cover_new(t->events);
    t->vm = vm_new(t->config, t->events, error);
    if (!t->vm) {
        return false;
    }
    ledger_watch_attach(t->ledger, t->vm);
    t->execution = execution_new(t->vm, true, error);
    if (t->execution) {
        t->execution->seed = t->config->seed;
    }
    return t->execution != NULL;
}

struct fuzz_target *fuzz_target_open(const struct vm_config *config,
                                     GError **error)
{
    static const struct choice_source_ops ops = {
        .choose = recorder_choose,
        .free = recorder_free,
    };
    struct fuzz_target *t = g_new0(struct fuzz_target, 1);

    t->config = vm_config_copy(config);
    t->config->quiet = true;
    t->recorder.base.ops = &ops;
    t->recorder.bytes = g_byte_array_new();
    if (!prepare(t, error)) {
        fuzz_target_close(t);
        return NULL;
    }
    return t;
}

void fuzz_target_close(struct fuzz_target *t)
{
    if (!t) {
        return;
    }
    execution_free(t->execution);
    ledger_watch_attach(t->ledger, NULL);
    vm_free(t->vm);
    ledger_watch_free(t->ledger);
    fuzz_cover_free(t->cover);
    events_free(t->events);
    symbols_free(t->symbols);
    vm_config_free(t->config);
    g_byte_array_unref(t->recorder.bytes);
    g_free(t);
}

/* --- runs --- */

void fuzz_target_run_source(struct fuzz_target *t, struct choice_source *source,
                            uint64_t max_choices, const uint64_t *without,
                            struct fuzz_run *out)
{
    struct recorder *r = &t->recorder;

    ledger_watch_forget(t->ledger);
    fuzz_cover_begin(t->cover);
    g_byte_array_set_size(r->bytes, 0);
    r->inner = source;
    r->max = max_choices;
    source->stream = &t->execution->stream;
    atomic_store(&t->vm->abandoned, 0);
    *out = (struct fuzz_run){
        .result = *execution_run(t->execution, &r->base, without),
    };
    out->failed = session_is_failure(out->result.outcome) ||
                  out->result.outcome == VM_OUTCOME_TIMEOUT;
    out->abandoned = out->result.outcome == VM_OUTCOME_INTERRUPTED;
    if (out->failed) {
        out->failure = failure_of_result(&out->result);
    }
    while (r->bytes->len && r->bytes->data[r->bytes->len - 1] == 0) {
        r->bytes->len--; /* what is not there is 0 as well */
    }
    out->bytes = r->bytes->data;
    out->length = r->bytes->len;
}

void fuzz_target_run(struct fuzz_target *t, const uint8_t *bytes, size_t length,
                     struct fuzz_run *out)
{
    struct choice_source *source = choice_source_bytes(bytes, length);

    fuzz_target_run_source(t, source, 0, NULL, out);
    choice_source_free(source);
}

bool fuzz_target_again(struct fuzz_target *t, const struct schedule *schedule,
                       const struct failure *failure)
{
    struct choice_source *source = choice_source_recorded(
        (const struct choice_entry *)(void *)schedule->entries->data,
        schedule->entries->len, schedule->total, true);
    uint64_t without[VM_CPUS_MAX / 64];
    const struct execution_result *r;
    bool same;

    execution_without(schedule, without);
    ledger_watch_forget(t->ledger);
    fuzz_cover_begin(t->cover);
    r = execution_run(t->execution, source, without);
    same = failure_happened(failure, r, NULL) &&
           r->trace_hash == schedule->trace_hash &&
           r->choices == schedule->total;
    choice_source_free(source);
    return same;
}

/* --- what the last run left --- */

uint8_t *fuzz_target_map(struct fuzz_target *t)
{
    return fuzz_cover_map(t->cover);
}

void fuzz_target_set_map(struct fuzz_target *t, uint8_t *map)
{
    fuzz_cover_set_map(t->cover, map);
}

struct fuzz_cover *fuzz_target_cover(struct fuzz_target *t)
{
    return t->cover;
}

struct schedule *fuzz_target_schedule(struct fuzz_target *t)
{
    return execution_schedule(t->execution);
}

void fuzz_target_set_seed(struct fuzz_target *t, uint64_t seed)
{
    t->execution->seed = seed;
}

void fuzz_target_report(struct fuzz_target *t, const char *path, FILE *out)
{
    const struct ledger_telling telling = {.config = t->config,
                                           .symbols = t->symbols};
    struct ledger_findings *findings = ledger_watch_findings(t->ledger);

    (void)ledger_watch_report(t->ledger, false, out);
    if (ledger_findings_want_schedule(findings)) {
        ledger_findings_take_schedule(findings,
                                      execution_schedule(t->execution), 0, 0);
        /* What a second run cannot tell is not told. */
        (void)ledger_findings_retell(findings, t->config, NULL);
    }
    for (unsigned i = 0; i < ledger_findings_count(findings); i++) {
        struct ledger_finding *f = ledger_findings_at(findings, i);

        g_free(f->schedule_path);
        f->schedule_path = g_strdup(path);
        ledger_finding_print(f, &telling, out);
    }
}

const GArray *fuzz_target_entries(const struct fuzz_target *t)
{
    return t->execution->stream.entries;
}

const struct vm_config *fuzz_target_of(const struct fuzz_target *t)
{
    return t->config;
}

void fuzz_target_limit_steps(struct fuzz_target *t, uint64_t steps)
{
    t->config->max_steps = steps;
}

void fuzz_target_stop_at(struct fuzz_target *t,
                         bool (*stops)(void *opaque,
                                       const struct ledger_site *site),
                         void *opaque)
{
    ledger_watch_stop_at(t->ledger, stops, opaque);
}

void fuzz_target_abandon(struct fuzz_target *t, bool is_timeout)
{
    vm_abandon(t->vm, is_timeout ? VM_OUTCOME_TIMEOUT : VM_OUTCOME_INTERRUPTED);
}
