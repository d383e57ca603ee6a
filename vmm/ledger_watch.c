/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Break-before-make of a running machine; see ledger_watch.h. */
#include "ledger_watch.h"

#include <inttypes.h>

#include "mmu/ledger.h"
#include "obs/symbols.h"
#include "vm_priv.h"

#define KINDS                                                                  \
    (EVENT_BIT(EVENT_root_load) | EVENT_BIT(EVENT_walk) |                      \
     EVENT_BIT(EVENT_prefetch) | EVENT_BIT(EVENT_pte_store) |                  \
     EVENT_BIT(EVENT_pte_update) | EVENT_BIT(EVENT_tlbi) |                     \
     EVENT_BIT(EVENT_dsb_done) | EVENT_BIT(EVENT_frame_free) |                 \
     EVENT_BIT(EVENT_vcpu_stop))

/* Violations of one kind at one pair of places: the first one, and how many. */
struct finding {
    struct ledger_violation first;
    uint64_t count;
};

struct ledger_watch {
    struct ledger *ledger;
    const struct vm *vm; /* NULL: not attached */
    GArray *findings;    /* struct finding */
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

static void violation(void *opaque, const struct ledger_violation *v)
{
    struct ledger_watch *watch = opaque;
    struct finding new = {*v, 1};

    for (guint i = 0; i < watch->findings->len; i++) {
        struct finding *f = &g_array_index(watch->findings, struct finding, i);

        if (f->first.rule == v->rule && f->first.step == v->step &&
            f->first.break_pc == v->break_pc && f->first.now_pc == v->now_pc) {
            f->count++;
            return;
        }
    }
    g_array_append_val(watch->findings, new);
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

static void on_event(void *opaque, const struct event *e)
{
    struct ledger_watch *watch = opaque;

    if (!watch->vm) {
        return;
    }
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
    case EVENT_frame_free:
        for (uint64_t i = 0; i < e->a[1] && i < 1024; i++) {
            ledger_frame_free(watch->ledger, e->vcpu, e->pc,
                              e->a[0] + i * MMU_PAGE_SIZE);
        }
        break;
    case EVENT_vcpu_stop:
        ledger_vcpu_off(watch->ledger, e->vcpu);
        break;
    default:
        break;
    }
}

struct ledger_watch *ledger_watch_new(const struct vm_config *config,
                                      struct events *ev)
{
    struct ledger_watch *watch = g_new0(struct ledger_watch, 1);
    const struct ledger_config c = {
        .vcpus = config->cpus,
        .rules = LEDGER_RULES_BBM,
        .hardware_dirty = config->hw.mode[HW_dbm] != HW_OFF,
        .read64 = read64,
        .violation = violation,
        .opaque = watch,
    };

    watch->ledger = ledger_new(&c);
    g_assert(watch->ledger); /* config.c knows LEDGER_VCPUS_MAX */
    watch->findings = g_array_new(FALSE, FALSE, sizeof(struct finding));
    events_subscribe(ev, KINDS, on_event, watch);
    return watch;
}

void ledger_watch_attach(struct ledger_watch *watch, const struct vm *vm)
{
    if (watch) {
        watch->vm = vm;
    }
}

static void print_place(const struct ledger_violation *v, FILE *out)
{
    fprintf(out, "level %u descriptor at pa 0x%" PRIx64, v->level, v->pa);
    if (v->has_va) {
        fprintf(out, " (va 0x%" PRIx64 "..0x%" PRIx64, v->va,
                v->va + (v->size - 1));
        if (v->va >> 55 & 1) {
            fputs(")", out);
        } else {
            fprintf(out, ", ASID %u)", v->asid);
        }
    }
}

static void print_finding(const struct finding *f,
                          const struct symbols *symbols, FILE *out)
{
    const struct ledger_violation *v = &f->first;
    char was[128], is[128];

    symbols_format(symbols, v->break_pc, was, sizeof(was));
    symbols_format(symbols, v->now_pc, is, sizeof(is));
    fprintf(out, "shootdown: break-before-make: %s: %s; %" PRIu64 " time%s\n",
            ledger_rule_name(v->rule), ledger_step_text(v->step), f->count,
            f->count == 1 ? "" : "s");
    fputs("  ", out);
    print_place(v, out);
    fprintf(out,
            ", %s: 0x%016" PRIx64 " -> 0x%016" PRIx64 "\n"
            "  taken away by vCPU %u at %s\n"
            "  %s by vCPU %u at %s\n"
            "  vCPUs that may hold the old one: 0x%" PRIx64 "\n",
            ledger_change_name(v->change), v->old, v->now, v->break_vcpu, was,
            v->rule == LEDGER_TABLE_FREED ? "freed" : "written", v->now_vcpu,
            is, v->dirty);
}

uint64_t ledger_watch_report(const struct ledger_watch *watch,
                             const struct symbols *symbols, bool verbose,
                             FILE *out)
{
    struct ledger_counts counts;

    if (!watch) {
        return 0;
    }
    ledger_count(watch->ledger, &counts);
    for (guint i = 0; i < watch->findings->len; i++) {
        print_finding(&g_array_index(watch->findings, struct finding, i),
                      symbols, out);
    }
    if (counts.out_of_memory) {
        fputs("shootdown: break-before-make: memory was short, not all was "
              "looked at\n",
              out);
    }
    if (verbose) {
        fprintf(out,
                "shootdown: break-before-make: %" PRIu64
                " descriptors taken away, %" PRIu64 " of them cleanly, %" PRIu64
                " made, %" PRIu64 " violations\n",
                counts.breaks, counts.closed, counts.makes, counts.violations);
    }
    return counts.violations;
}

void ledger_watch_free(struct ledger_watch *watch)
{
    if (!watch) {
        return;
    }
    ledger_free(watch->ledger);
    g_array_unref(watch->findings);
    g_free(watch);
}
