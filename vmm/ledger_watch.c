/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ledger of a running machine; see ledger_watch.h. */
#include "ledger_watch.h"

#include <inttypes.h>
#include <string.h>

#include "abi/annot.h"
#include "execution.h"
#include "ledger_feed.h"
#include "obs/stats.h"
#include "vm_priv.h"

struct ledger_watch {
    struct ledger *ledger;
    bool is_bbm;
    /*
     * `parallel`: whatever is told, and a deed that others can see before it
     * is told, is under the lock (recursive: a deed tells). See
     * docs/CONCURRENCY.md.
     */
    bool is_shared;  /* [init] */
    uv_mutex_t lock; /* is_shared only */
    unsigned teller; /* [lock] the vCPU whose thread has it */
    struct vm *vm;   /* NULL: not attached */
    struct ledger_findings *findings;
    ledger_finding_fn listener; /* or NULL */
    void *listener_opaque;
    /* --ledger stop */
    bool ends, has_ended;
    struct ledger_violation ended_by;
    bool (*stops)(void *opaque, const struct ledger_site *site);
    void *stops_opaque;
};

static bool read64(void *opaque, gpa_t pa, uint64_t *out)
{
    const struct ledger_watch *watch = opaque;

    return ledger_feed_read64(watch->vm, pa, out);
}

static const void *page(void *opaque, gpa_t pa)
{
    const struct ledger_watch *watch = opaque;

    return vm_ram_at(watch->vm, pa, MMU_PAGE_SIZE);
}

static unsigned el(void *opaque, unsigned vcpu)
{
    const struct ledger_watch *watch = opaque;

    return pstate_el(engine_pstate(watch->vm->vcpu[vcpu]->engine));
}

/*
 * Who came back to EL0 with a debt. ERET is no event; but at EL0 nobody can
 * flush, so it is as good to look when something else happens, before that.
 */
static void look_for_late(struct ledger_watch *watch)
{
    uint64_t late = watch->is_shared ? 0 : ledger_late(watch->ledger);

    for (; late; late &= late - 1) {
        unsigned vcpu = (unsigned)__builtin_ctzll(late);

        if (el(watch, vcpu) == 0) {
            ledger_el(watch->ledger, vcpu, 0);
        }
    }
}

static void end_run(struct ledger_watch *watch,
                    const struct ledger_violation *v)
{
    const struct ledger_site site = ledger_site_of(v);

    const struct execution *e = watch->vm ? watch->vm->execution : NULL;

    /* What happened before the snapshot ends no run; `parallel` has none. */
    if (watch->has_ended || (!watch->is_shared && (!e || !e->used)) ||
        (watch->stops && !watch->stops(watch->stops_opaque, &site))) {
        return;
    }
    watch->has_ended = true;
    watch->ended_by = *v;
    vm_stop(watch->vm, VM_OUTCOME_VIOLATION);
}

static void violation(void *opaque, const struct ledger_violation *v)
{
    struct ledger_watch *watch = opaque;

    if (watch->ends) {
        end_run(watch, v);
    }
    if (ledger_findings_add(watch->findings, watch->vm, v, watch->teller,
                            watch->is_bbm) &&
        watch->listener) {
        watch->listener(
            watch->listener_opaque,
            ledger_findings_at(watch->findings,
                               ledger_findings_count(watch->findings) - 1));
    }
}

void ledger_watch_lock(struct ledger_watch *watch)
{
    if (watch && watch->is_shared) {
        uv_mutex_lock(&watch->lock);
    }
}

void ledger_watch_unlock(struct ledger_watch *watch)
{
    if (watch && watch->is_shared) {
        uv_mutex_unlock(&watch->lock);
    }
}

bool ledger_watch_wants_returns(const struct ledger_watch *watch)
{
    return watch && watch->is_shared;
}

void ledger_watch_returned(struct ledger_watch *watch, unsigned vcpu,
                           unsigned el)
{
    if (watch && watch->is_shared) {
        uv_mutex_lock(&watch->lock);
        watch->teller = vcpu;
        ledger_el(watch->ledger, vcpu, el);
        ledger_synced(watch->ledger, vcpu, LEDGER_SYNC_RETURN);
        uv_mutex_unlock(&watch->lock);
    }
}

static void on_event(void *opaque, const struct event *e)
{
    struct ledger_watch *watch = opaque;

    if (!watch->vm) {
        return;
    }
    if (!watch->is_shared) {
        look_for_late(watch);
        watch->teller = e->vcpu;
        ledger_feed(watch->ledger, watch->vm, e);
        return;
    }
    uv_mutex_lock(&watch->lock);
    watch->teller = e->vcpu;
    ledger_feed(watch->ledger, watch->vm, e);
    if (e->kind == EVENT_fault || e->kind == EVENT_irq_take) {
        ledger_el(watch->ledger, e->vcpu, 1);
    }
    uv_mutex_unlock(&watch->lock);
}

struct ledger_watch *ledger_watch_new(const struct vm_config *config,
                                      struct events *ev)
{
    struct ledger_watch *watch = g_new0(struct ledger_watch, 1);
    const struct ledger_config c = {
        .vcpus = config->cpus,
        .rules = config->ledger ? LEDGER_RULES_ALL : LEDGER_RULES_BBM,
        .ipi = config->tlb == VM_TLB_IPI,
        .early_dsb = config->hw.mode[HW_repeat_tlbi] != HW_OFF,
        .own_dsb = config->hw.mode[HW_remote_unit] != HW_OFF,
        .hardware_dirty = config->hw.mode[HW_dbm] != HW_OFF,
        .windows = config->ledger,
        .read64 = read64,
        .page = page,
        .el = config->engine == VM_ENGINE_PARALLEL ? NULL : el,
        .violation = violation,
        .opaque = watch,
    };

    watch->ledger = ledger_new(&c);
    watch->is_bbm = !config->ledger;
    watch->ends = config->ledger_stop;
    watch->is_shared = config->engine == VM_ENGINE_PARALLEL;
    if (watch->is_shared) {
        int err = uv_mutex_init_recursive(&watch->lock);

        g_assert(err == 0);
    }
    g_assert(watch->ledger); /* config.c knows LEDGER_VCPUS_MAX */
    watch->findings = ledger_findings_new();
    events_subscribe(ev, watch->is_bbm ? LEDGER_FEED_BBM : LEDGER_FEED_ALL,
                     on_event, watch);
    return watch;
}

void ledger_watch_attach(struct ledger_watch *watch, struct vm *vm)
{
    if (!watch) {
        return;
    }
    if (watch->vm) {
        look_for_late(watch);
        watch->vm->ledger = NULL;
    }
    watch->vm = vm;
    if (vm) {
        vm->ledger = watch;
    }
}

bool ledger_watch_checkpoint(struct ledger_watch *watch)
{
    if (!watch) {
        return true;
    }
    look_for_late(watch);
    return ledger_checkpoint(watch->ledger);
}

void ledger_watch_rollback(struct ledger_watch *watch)
{
    if (watch) {
        look_for_late(watch);
        ledger_rollback(watch->ledger);
        watch->has_ended = false;
    }
}

void ledger_watch_stop_at(struct ledger_watch *watch,
                          bool (*stops)(void *opaque,
                                        const struct ledger_site *site),
                          void *opaque)
{
    watch->stops = stops;
    watch->stops_opaque = opaque;
}

const struct ledger_violation *ledger_watch_stopped(struct ledger_watch *watch)
{
    if (!watch || !watch->ends) {
        return NULL;
    }
    if (watch->vm) {
        look_for_late(watch);
    }
    return watch->has_ended ? &watch->ended_by : NULL;
}

void ledger_watch_forget(struct ledger_watch *watch)
{
    if (watch) {
        ledger_findings_clear(watch->findings);
    }
}

struct ledger_site ledger_site_of(const struct ledger_violation *v)
{
    return (struct ledger_site){
        v->rule, v->break_pc, v->now_pc,
        v->rule == LEDGER_RETURN && v->op < ANNOT_OPS ? v->op : 0};
}

bool ledger_site_is_same(const struct ledger_site *a,
                         const struct ledger_site *b)
{
    return a->rule == b->rule && a->break_pc == b->break_pc &&
           a->now_pc == b->now_pc && (a->op == b->op || !a->op || !b->op);
}

char *ledger_site_text(const struct ledger_site *site)
{
    return g_strdup_printf("%s 0x%" PRIx64 " 0x%" PRIx64 "%s%s",
                           ledger_rule_name(site->rule), site->break_pc,
                           site->now_pc, site->op ? " " : "",
                           site->op ? op_kind_name(site->op) : "");
}

/* The kind of that name, or 0. */
static unsigned op_named(const char *name)
{
    unsigned op = ANNOT_OPS - 1;

    while (op && strcmp(op_kind_name(op), name) != 0) {
        op--;
    }
    return op;
}

bool ledger_site_parse(const char *text, struct ledger_site *out)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);

    unsigned count = g_strv_length(words);
    unsigned op = count == 4 ? op_named(words[3]) : 0;

    if (count != 3 && !op) {
        return false;
    }
    for (unsigned rule = 0; rule < LEDGER_RULES; rule++) {
        if (strcmp(words[0], ledger_rule_name((enum ledger_rule)rule)) == 0) {
            *out = (struct ledger_site){
                .rule = (enum ledger_rule)rule,
                .break_pc = g_ascii_strtoull(words[1], NULL, 0),
                .now_pc = g_ascii_strtoull(words[2], NULL, 0),
                .op = op,
            };
            return true;
        }
    }
    return false;
}

void ledger_watch_settle(struct ledger_watch *watch)
{
    if (watch && watch->vm) {
        look_for_late(watch);
    }
}

void ledger_watch_listen(struct ledger_watch *watch, ledger_finding_fn fn,
                         void *opaque)
{
    watch->listener = fn;
    watch->listener_opaque = opaque;
}

struct ledger_findings *ledger_watch_findings(struct ledger_watch *watch)
{
    return watch ? watch->findings : NULL;
}

struct ledger_findings *ledger_watch_take_findings(struct ledger_watch *watch)
{
    return watch ? g_steal_pointer(&watch->findings) : NULL;
}

uint64_t ledger_watch_report(const struct ledger_watch *watch, bool verbose,
                             FILE *out)
{
    struct ledger_counts counts;
    const char *name;

    if (!watch) {
        return 0;
    }
    name = watch->is_bbm ? "break-before-make" : "ledger";
    ledger_count(watch->ledger, &counts);
    if (counts.out_of_memory) {
        fprintf(out, "shootdown: %s: memory was short, not all was looked at\n",
                name);
    }
    if (verbose) {
        fprintf(out,
                "shootdown: %s: %" PRIu64 " descriptors taken away, %" PRIu64
                " of them cleanly, %" PRIu64 " made, %" PRIu64 " violations\n",
                name, counts.breaks, counts.closed, counts.makes,
                counts.violations);
    }
    return counts.violations;
}

uint64_t ledger_watch_windows(const struct ledger_watch *watch)
{
    struct ledger_counts counts = {0};

    if (watch) {
        ledger_count(watch->ledger, &counts);
    }
    return counts.windows;
}

void ledger_watch_free(struct ledger_watch *watch)
{
    if (!watch) {
        return;
    }
    if (watch->is_shared) {
        uv_mutex_destroy(&watch->lock);
    }
    ledger_free(watch->ledger);
    ledger_findings_free(watch->findings);
    g_free(watch);
}
