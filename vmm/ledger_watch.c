/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ledger of a running machine; see ledger_watch.h. */
#include "ledger_watch.h"

#include <inttypes.h>
#include <string.h>

#include "execution.h"
#include "vm_priv.h"

#define BBM_KINDS                                                              \
    (EVENT_BIT(EVENT_root_load) | EVENT_BIT(EVENT_walk) |                      \
     EVENT_BIT(EVENT_prefetch) | EVENT_BIT(EVENT_pte_store) |                  \
     EVENT_BIT(EVENT_pte_update) | EVENT_BIT(EVENT_tlbi) |                     \
     EVENT_BIT(EVENT_dsb_done) | EVENT_BIT(EVENT_frame_free) |                 \
     EVENT_BIT(EVENT_vcpu_stop))
#define LEDGER_KINDS                                                           \
    (BBM_KINDS | EVENT_BIT(EVENT_frame_alloc) | EVENT_BIT(EVENT_io_begin) |    \
     EVENT_BIT(EVENT_copy_begin) | EVENT_BIT(EVENT_op_begin) |                 \
     EVENT_BIT(EVENT_op_end) | EVENT_BIT(EVENT_fault) |                        \
     EVENT_BIT(EVENT_irq_take) | EVENT_BIT(EVENT_hit_stale) |                  \
     EVENT_BIT(EVENT_soft_walk_begin) | EVENT_BIT(EVENT_soft_walk_end) |       \
     EVENT_BIT(EVENT_flush_ask) | EVENT_BIT(EVENT_flush_waited) |              \
     EVENT_BIT(EVENT_flush_served) | EVENT_BIT(EVENT_flush_resume) |           \
     EVENT_BIT(EVENT_frame_clean) | EVENT_BIT(EVENT_frame_drop))

/* More than a GiB at once is no frame. */
#define PAGES_MAX (UINT64_C(1) << 18)

struct ledger_watch {
    struct ledger *ledger;
    bool is_bbm;
    struct vm *vm; /* NULL: not attached */
    struct ledger_findings *findings;
    ledger_finding_fn listener; /* or NULL */
    void *listener_opaque;
    /* --ledger stop */
    bool ends, has_ended;
    struct ledger_violation ended_by;
    bool (*stops)(void *opaque, const struct ledger_site *site);
    void *stops_opaque;
};

/* What is in memory, not what some walker would see of it. */
static bool read64(void *opaque, gpa_t pa, uint64_t *out)
{
    const struct ledger_watch *watch = opaque;
    const uint64_t *host = vm_ram_at(watch->vm, pa, sizeof(uint64_t));

    if (!host) {
        return false;
    }
    *out = __atomic_load_n(host, __ATOMIC_RELAXED);
    return true;
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
    uint64_t late = ledger_late(watch->ledger);

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
    const struct ledger_site site = {v->rule, v->break_pc, v->now_pc};

    const struct execution *e = watch->vm ? watch->vm->execution : NULL;

    /* What happened before the snapshot ends no run. */
    if (watch->has_ended || !e || !e->used ||
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
    if (ledger_findings_add(watch->findings, watch->vm, v, watch->is_bbm) &&
        watch->listener) {
        watch->listener(
            watch->listener_opaque,
            ledger_findings_at(watch->findings,
                               ledger_findings_count(watch->findings) - 1));
    }
}

static void root_load(struct ledger_watch *watch, const struct event *e)
{
    const struct vcpu *vcpu = watch->vm->vcpu[e->vcpu];
    unsigned asid_of = vcpu->tcr >> 22 & 1; /* TCR_EL1.A1 */
    uint64_t value = vcpu->ttbr[asid_of];
    uint16_t asid = (uint16_t)(value >> 48);

    if (!(vcpu->tcr >> 36 & 1)) { /* TCR_EL1.AS */
        asid &= 0xff;
    }
    ledger_root_load(watch->ledger, e->vcpu, e->pc, (unsigned)e->a[0],
                     e->a[1] & DESC_ADDR_MASK, asid);
    if (e->a[0] == asid_of) { /* the other one's tables go by it as well */
        ledger_root_load(watch->ledger, e->vcpu, e->pc, !asid_of,
                         vcpu->ttbr[!asid_of] & DESC_ADDR_MASK, asid);
    }
}

static void walk(struct ledger_watch *watch, const struct event *e)
{
    struct vcpu *vcpu = watch->vm->vcpu[e->vcpu];
    struct walk_mem mem = {.read64 = read64, .opaque = watch};
    struct walk_result w = walk_stage1(&vcpu->regime, &mem, e->a[0]);
    unsigned half = e->a[0] >> 55 & 1;

    if (w.tables) {
        ledger_walk(watch->ledger, half, e->a[0],
                    vcpu->regime.half[half].start_level, w.table, w.tables);
    }
}

static void tlbi(struct ledger_watch *watch, const struct event *e)
{
    struct tlbi_op op;

    if (tlbi_decode(0, 8, (unsigned)e->a[0] >> 3, e->a[0] & 7, e->a[1],
                    watch->vm->vcpu[e->vcpu]->regime.asid16, &op)) {
        ledger_tlbi(watch->ledger, e->vcpu, e->pc, &op);
    }
}

static void fault(struct ledger_watch *watch, const struct event *e)
{
    switch ((enum fault_class)e->a[0]) {
    case FAULT_TRANSLATION:
    case FAULT_ACCESS_FLAG:
    case FAULT_PERMISSION:
        ledger_fault(watch->ledger, e->vcpu, e->pc, e->a[2]);
        break;
    default:
        ledger_progress(watch->ledger, e->vcpu);
    }
}

static void frames(struct ledger_watch *watch, const struct event *e,
                   void (*tell)(struct ledger *, unsigned, uint64_t, gpa_t))
{
    uint64_t pages = MIN(e->a[1], PAGES_MAX);

    for (uint64_t i = 0; i < pages; i++) {
        tell(watch->ledger, e->vcpu, e->pc, e->a[0] + i * MMU_PAGE_SIZE);
    }
}

static enum ledger_contract contract_of(uint64_t promise)
{
    return promise == ANNOT_PROMISE_NOWRITE    ? LEDGER_CONTRACT_NOWRITE
           : promise == ANNOT_PROMISE_NOACCESS ? LEDGER_CONTRACT_NOACCESS
                                               : LEDGER_CONTRACT_NONE;
}

static void on_promise(struct ledger_watch *watch, const struct event *e)
{
    switch ((int)e->kind) {
    case EVENT_soft_walk_begin:
        ledger_soft_walk_begin(watch->ledger, e->vcpu, e->a[0]);
        break;
    case EVENT_soft_walk_end:
        ledger_soft_walk_end(watch->ledger, e->vcpu);
        break;
    case EVENT_flush_ask:
        ledger_flush_ask(watch->ledger, e->vcpu, e->a[0]);
        break;
    case EVENT_flush_waited:
        ledger_flush_waited(watch->ledger, e->vcpu, e->pc, e->a[0]);
        break;
    case EVENT_flush_served:
        if (e->a[1] < watch->vm->cpus) {
            ledger_flush_served(watch->ledger, (unsigned)e->a[1], e->a[0]);
        }
        break;
    case EVENT_flush_resume:
        if (e->a[0] < watch->vm->cpus) {
            ledger_flush_resume(watch->ledger, e->vcpu, e->pc,
                                (unsigned)e->a[0]);
        }
        break;
    default:
        break;
    }
}

/* What the guest says of itself. */
static void on_annotation(struct ledger_watch *watch, const struct event *e)
{
    switch ((int)e->kind) {
    case EVENT_frame_free:
        frames(watch, e, ledger_frame_free);
        break;
    case EVENT_frame_alloc:
        frames(watch, e, ledger_frame_alloc);
        break;
    case EVENT_io_begin:
        frames(watch, e, ledger_io_begin);
        break;
    case EVENT_copy_begin:
        frames(watch, e, ledger_copy_begin);
        break;
    case EVENT_op_begin:
        if (e->a[0] == ANNOT_OP_EXIT_MM && e->a[1]) {
            ledger_root_dying(watch->ledger, e->a[1]);
        }
        ledger_op_begin(watch->ledger, e->vcpu, e->a[4], (unsigned)e->a[0],
                        e->a[1], e->a[2], contract_of(e->a[3]));
        break;
    case EVENT_op_end:
        ledger_op_end(watch->ledger, e->vcpu, e->pc, e->a[1],
                      (unsigned)e->a[0]);
        break;
    case EVENT_frame_clean:
        frames(watch, e, ledger_frame_clean);
        break;
    case EVENT_frame_drop:
        frames(watch, e, ledger_frame_drop);
        break;
    default:
        on_promise(watch, e);
    }
}

static void on_event(void *opaque, const struct event *e)
{
    struct ledger_watch *watch = opaque;

    if (!watch->vm) {
        return;
    }
    look_for_late(watch);
    switch ((int)e->kind) {
    case EVENT_root_load:
        root_load(watch, e);
        break;
    case EVENT_walk:
    case EVENT_prefetch:
        walk(watch, e);
        break;
    case EVENT_pte_store:
        ledger_store(watch->ledger, e->vcpu, e->pc, e->a[0], e->a[2]);
        break;
    case EVENT_pte_update:
        ledger_update(watch->ledger, e->a[0], e->a[2]);
        break;
    case EVENT_tlbi:
        tlbi(watch, e);
        break;
    case EVENT_dsb_done:
        ledger_dsb(watch->ledger, e->vcpu, e->pc,
                   ledger_dsb_of_crm((unsigned)e->a[0]));
        break;
    case EVENT_fault:
        fault(watch, e);
        break;
    case EVENT_hit_stale:
        ledger_hit(watch->ledger, e->vcpu, e->a[0]);
        break;
    case EVENT_vcpu_stop:
        ledger_vcpu_off(watch->ledger, e->vcpu);
        break;
    default:
        on_annotation(watch, e);
    }
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
        .hardware_dirty = config->hw.mode[HW_dbm] != HW_OFF,
        .windows = config->ledger,
        .read64 = read64,
        .page = page,
        .el = el,
        .violation = violation,
        .opaque = watch,
    };

    watch->ledger = ledger_new(&c);
    watch->is_bbm = !config->ledger;
    watch->ends = config->ledger_stop;
    g_assert(watch->ledger); /* config.c knows LEDGER_VCPUS_MAX */
    watch->findings = ledger_findings_new();
    events_subscribe(ev, watch->is_bbm ? BBM_KINDS : LEDGER_KINDS, on_event,
                     watch);
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

char *ledger_site_text(const struct ledger_site *site)
{
    return g_strdup_printf("%s 0x%" PRIx64 " 0x%" PRIx64,
                           ledger_rule_name(site->rule), site->break_pc,
                           site->now_pc);
}

bool ledger_site_parse(const char *text, struct ledger_site *out)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);

    if (g_strv_length(words) != 3) {
        return false;
    }
    for (unsigned rule = 0; rule < LEDGER_RULES; rule++) {
        if (strcmp(words[0], ledger_rule_name((enum ledger_rule)rule)) == 0) {
            *out = (struct ledger_site){
                .rule = (enum ledger_rule)rule,
                .break_pc = g_ascii_strtoull(words[1], NULL, 0),
                .now_pc = g_ascii_strtoull(words[2], NULL, 0),
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
        if (counts.windows) {
            fprintf(out,
                    "shootdown: %s: %" PRIu64 " pages came back in another "
                    "frame before the old one was gone\n",
                    name, counts.windows);
        }
    }
    return counts.violations;
}

void ledger_watch_free(struct ledger_watch *watch)
{
    if (!watch) {
        return;
    }
    ledger_free(watch->ledger);
    ledger_findings_free(watch->findings);
    g_free(watch);
}
