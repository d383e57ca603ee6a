/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs of a deterministic machine; see execution.h. */
#include "execution.h"

#include <inttypes.h>
#include <string.h>

#include "abi/annot.h"
#include "choice/source.h"
#include "det.h"
#include "error.h"
#include "snapshot.h"
#include "vm_priv.h"

/* The trace hash is written down once in so many choices. */
#define CHECKPOINT_CHOICES 4096u

static bool boot_to_mark(struct execution *e, GError **error)
{
    struct vm *vm = e->vm;
    uint64_t mark = vm->config->snapshot_at;

    det_pause_at(vm->det, mark);
    det_run(vm->det);
    if (det_paused(vm->det)) {
        return true;
    }
    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                "the guest never wrote the mark %" PRIu64
                " that --snapshot-at waits for: the run ended before (%s)",
                mark,
                vm_outcome_name((enum vm_outcome)atomic_load(&vm->outcome)));
    return false;
}

struct execution *execution_new(struct vm *vm, bool again, GError **error)
{
    struct execution *e = g_new0(struct execution, 1);

    e->vm = vm;
    e->checkpoints =
        g_array_new(FALSE, FALSE, sizeof(struct schedule_checkpoint));
    choice_stream_init(&e->stream, det_places(vm->det));
    vm->execution = e;
    vm->vcpu[0]->boot_entry = vm->image.entry;
    (void)vcpu_power_on(vm->vcpu[0], vm->image.entry, vm->image.dtb);
    if (vm->config->has_snapshot_at) {
        if (!boot_to_mark(e, error)) {
            execution_free(e);
            return NULL;
        }
        det_end_at(vm->det, ANNOT_MARK_END);
    }
    if (again || vm->config->has_snapshot_at) {
        e->snapshot = snapshot_take(vm, error);
        if (!e->snapshot) {
            execution_free(e);
            return NULL;
        }
    }
    return e;
}

void execution_free(struct execution *e)
{
    if (!e) {
        return;
    }
    det_set_stream(e->vm->det, NULL, NULL);
    e->vm->execution = NULL;
    snapshot_free(e->snapshot);
    choice_stream_fini(&e->stream);
    g_array_unref(e->checkpoints);
    g_free(e->divergence);
    g_free(e);
}

static void diverge(struct execution *e, const char *what)
{
    struct vm *vm = e->vm;
    unsigned id = det_current(vm->det);

    if (e->divergence) {
        return;
    }
    e->divergence =
        g_strdup_printf("%s; noticed at step %" PRIu64 ", choice %" PRIu64
                        ", while vCPU %u was in the block at 0x%" PRIx64,
                        what, det_steps(vm->det), e->stream.count, id,
                        vm->vcpu[id]->watch->block_va);
    vm_stop(vm, VM_OUTCOME_DIVERGED);
}

static void compare_checkpoint(struct execution *e, uint64_t hash)
{
    const GArray *expected = e->expected->checkpoints;
    const struct schedule_checkpoint *c;
    g_autofree char *what = NULL;

    if (e->expected_next >= expected->len) {
        return;
    }
    c = &g_array_index(expected, struct schedule_checkpoint, e->expected_next);
    e->expected_next++;
    if (c->index != e->stream.count || c->trace_hash != hash) {
        what = g_strdup_printf(
            "after %" PRIu64 " choices the trace was %016" PRIx64
            " when it was recorded (at %" PRIu64 " choices), now it is "
            "%016" PRIx64,
            e->stream.count, c->trace_hash, c->index, hash);
        diverge(e, what);
    }
}

void execution_step(struct execution *e)
{
    struct choice_source *source = e->stream.source;
    const char *problem;

    if (e->stream.count >= e->checkpoint_due) {
        struct schedule_checkpoint c = {
            .index = e->stream.count,
            .trace_hash = trace_hash_value(&e->vm->trace_hash),
        };

        g_array_append_val(e->checkpoints, c);
        e->checkpoint_due = c.index + CHECKPOINT_CHOICES;
        if (e->expected) {
            compare_checkpoint(e, c.trace_hash);
        }
    }
    if (source && source->ops->problem) {
        problem = source->ops->problem(source);
        if (problem) {
            diverge(e, problem);
        }
    }
}

const struct execution_result *execution_run(struct execution *e,
                                             struct choice_source *source,
                                             const uint64_t *without)
{
    struct vm *vm = e->vm;
    struct execution_result *r = &e->result;
    const struct ledger_violation *violation;

    g_assert(!e->used || e->snapshot);
    if (e->used) {
        uint64_t start = uv_hrtime();

        e->restored_pages += snapshot_dirty_pages(e->snapshot);
        snapshot_restore(e->snapshot);
        e->restore_ns += uv_hrtime() - start;
        e->restores++;
    }
    e->used = true;
    g_array_set_size(e->checkpoints, 0);
    g_clear_pointer(&e->divergence, g_free);
    e->expected_next = 0;
    e->checkpoint_due = CHECKPOINT_CHOICES;
    trace_hash_reset(&vm->trace_hash);
    choice_stream_begin(&e->stream, source);
    memset(e->without, 0, sizeof(e->without));
    if (without) {
        memcpy(e->without, without, (vm->cpus + 63) / 64 * sizeof(uint64_t));
    }
    det_set_stream(vm->det, &e->stream, e->without);
    det_limit_steps(vm->det, vm->config->max_steps);
    det_run(vm->det);
    violation = ledger_watch_stopped(vm->ledger);
    if (violation && session_goes_on((enum vm_outcome)atomic_load(
                         &vm->outcome))) { /* told at the very end */
        atomic_store(&vm->outcome, VM_OUTCOME_VIOLATION);
    }
    *r = (struct execution_result){
        .outcome = (enum vm_outcome)atomic_load(&vm->outcome),
        .finding = vm->finding,
        .trace_hash = trace_hash_value(&vm->trace_hash),
        .events = vm->trace_hash.events,
        .choices = e->stream.count,
        .steps = det_steps(vm->det),
        .preemptions = det_preemptions(vm->det),
        .virtual_ns = det_time_ns(vm->det),
    };
    if (violation) {
        r->violation = ledger_site_of(violation);
    }
    return r;
}

/* "2,3": the vCPUs that never ran; NULL: there are none. */
static char *without_text(const struct execution *e)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < e->vm->cpus; i++) {
        if (e->without[i / 64] >> i % 64 & 1) {
            g_string_append_printf(text, "%s%u", text->len ? "," : "", i);
        }
    }
    return g_string_free(text, text->len == 0);
}

void execution_without(const struct schedule *schedule,
                       uint64_t out_without[VM_CPUS_MAX / 64])
{
    const char *text = schedule_get(schedule, "without");
    g_auto(GStrv) words = g_strsplit(text ? text : "", ",", -1);

    memset(out_without, 0, VM_CPUS_MAX / 8);
    for (char **word = words; *word; word++) {
        guint64 id = VM_CPUS_MAX;

        if (g_ascii_string_to_unsigned(*word, 10, 0, VM_CPUS_MAX - 1, &id,
                                       NULL)) {
            out_without[id / 64] |= UINT64_C(1) << id % 64;
        }
    }
}

static bool is_site(void *opaque, const struct ledger_site *site)
{
    return ledger_site_is_same(opaque, site);
}

bool execution_stop_like(struct vm *vm, const struct schedule *schedule)
{
    const char *outcome = schedule_get(schedule, "outcome");
    const char *text = schedule_get(schedule, "violation");

    if (!vm->ledger || !outcome ||
        vm_outcome_from_name(outcome) != VM_OUTCOME_VIOLATION) {
        return true;
    }
    if (!text || !ledger_site_parse(text, &vm->stop_site)) {
        return false;
    }
    ledger_watch_stop_at(vm->ledger, is_site, &vm->stop_site);
    return true;
}

/* This one run's configuration: not the search that found it. */
static char *run_text(const struct vm_config *config, uint64_t seed)
{
    struct vm_config *one = vm_config_copy(config);
    char *text;

    one->seed = seed;
    one->runs = 1;
    text = vm_config_to_text(one);
    vm_config_free(one);
    return text;
}

struct schedule *execution_schedule(struct execution *e)
{
    struct vm *vm = e->vm;
    struct schedule *s = schedule_new();
    g_autofree char *run = run_text(vm->config, e->seed);
    g_autofree char *steps = g_strdup_printf("%" PRIu64, e->result.steps);
    g_autofree char *preemptions =
        g_strdup_printf("%" PRIu64, e->result.preemptions);
    g_autofree char *finding = g_strdup_printf("%" PRIu64, e->result.finding);
    g_autofree char *without = without_text(e);
    unsigned major, minor, patch;
    g_autofree char *engine = NULL;

    engine_version(&major, &minor, &patch);
    engine = g_strdup_printf("unicorn %u.%u.%u", major, minor, patch);
    schedule_set(s, "version", SHOOTDOWN_VERSION);
    schedule_set(s, "engine", engine);
    schedule_set(s, "kernel-sha256", vm->image.kernel_sha256);
    if (vm->image.initrd_sha256[0]) {
        schedule_set(s, "initrd-sha256", vm->image.initrd_sha256);
    }
    schedule_set(s, "run", run);
    schedule_set(s, "outcome", vm_outcome_name(e->result.outcome));
    if (e->result.outcome == VM_OUTCOME_FINDING) {
        schedule_set(s, "finding", finding);
    }
    if (e->result.outcome == VM_OUTCOME_VIOLATION) {
        g_autofree char *site = ledger_site_text(&e->result.violation);

        schedule_set(s, "violation", site);
    }
    if (without) {
        schedule_set(s, "without", without);
    }
    schedule_set(s, "steps", steps);
    schedule_set(s, "preemptions", preemptions);
    g_array_append_vals(s->entries, e->stream.entries->data,
                        e->stream.entries->len);
    g_array_append_vals(s->checkpoints, e->checkpoints->data,
                        e->checkpoints->len);
    s->total = e->stream.count;
    s->trace_hash = e->result.trace_hash;
    s->state_hash = vm_state_hash(vm);
    return s;
}
