/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Break-before-make of a running machine; see bbm_watch.h. */
#include "bbm_watch.h"

#include <inttypes.h>

#include "mmu/bbm.h"
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
    struct bbm_violation first;
    uint64_t count;
};

struct bbm_watch {
    struct bbm *bbm;
    const struct vm *vm; /* NULL: not attached */
    GArray *findings;    /* struct finding */
};

/* What is in memory, not what some walker would see of it. */
static bool read64(void *opaque, gpa_t pa, uint64_t *out)
{
    const struct bbm_watch *watch = opaque;
    const uint64_t *host = vm_ram_at(watch->vm, pa, sizeof(uint64_t));

    if (!host) {
        return false;
    }
    *out = __atomic_load_n(host, __ATOMIC_RELAXED);
    return true;
}

static void violation(void *opaque, const struct bbm_violation *v)
{
    struct bbm_watch *watch = opaque;
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

static void root_load(struct bbm_watch *watch, const struct event *e)
{
    const struct vcpu *vcpu = watch->vm->vcpu[e->vcpu];
    unsigned asid_of = vcpu->tcr >> 22 & 1; /* TCR_EL1.A1 */
    uint64_t value = vcpu->ttbr[asid_of];
    uint16_t asid = (uint16_t)(value >> 48);

    if (!(vcpu->tcr >> 36 & 1)) { /* TCR_EL1.AS */
        asid &= 0xff;
    }
    bbm_root_load(watch->bbm, e->vcpu, (unsigned)e->a[0],
                  e->a[1] & DESC_ADDR_MASK, asid);
    if (e->a[0] == asid_of) { /* the other one's tables go by it as well */
        bbm_root_load(watch->bbm, e->vcpu, !asid_of,
                      vcpu->ttbr[!asid_of] & DESC_ADDR_MASK, asid);
    }
}

static void walk(struct bbm_watch *watch, const struct event *e)
{
    struct vcpu *vcpu = watch->vm->vcpu[e->vcpu];
    struct walk_mem mem = {.read64 = read64, .opaque = watch};
    struct walk_result w = walk_stage1(&vcpu->regime, &mem, e->a[0]);
    unsigned half = e->a[0] >> 55 & 1;

    if (w.tables) {
        bbm_walk(watch->bbm, half, e->a[0], vcpu->regime.half[half].start_level,
                 w.table, w.tables);
    }
}

static void tlbi(struct bbm_watch *watch, const struct event *e)
{
    struct tlbi_op op;

    if (tlbi_decode(0, 8, (unsigned)e->a[0] >> 3, e->a[0] & 7, e->a[1],
                    watch->vm->vcpu[e->vcpu]->regime.asid16, &op)) {
        bbm_tlbi(watch->bbm, e->vcpu, &op);
    }
}

static void on_event(void *opaque, const struct event *e)
{
    struct bbm_watch *watch = opaque;

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
        bbm_store(watch->bbm, e->vcpu, e->pc, e->a[0], e->a[2]);
        break;
    case EVENT_pte_update:
        bbm_update(watch->bbm, e->a[0], e->a[2]);
        break;
    case EVENT_tlbi:
        tlbi(watch, e);
        break;
    case EVENT_dsb_done:
        bbm_dsb(watch->bbm, e->vcpu, bbm_dsb_of_crm((unsigned)e->a[0]));
        break;
    case EVENT_frame_free:
        for (uint64_t i = 0; i < e->a[1] && i < 1024; i++) {
            bbm_page_free(watch->bbm, e->vcpu, e->pc,
                          e->a[0] + i * MMU_PAGE_SIZE);
        }
        break;
    case EVENT_vcpu_stop:
        bbm_vcpu_off(watch->bbm, e->vcpu);
        break;
    default:
        break;
    }
}

struct bbm_watch *bbm_watch_new(const struct vm_config *config,
                                struct events *ev)
{
    struct bbm_watch *watch = g_new0(struct bbm_watch, 1);
    const struct bbm_config c = {
        .vcpus = config->cpus,
        .hardware_dirty = config->hw.mode[HW_dbm] != HW_OFF,
        .read64 = read64,
        .violation = violation,
        .opaque = watch,
    };

    watch->bbm = bbm_new(&c);
    g_assert(watch->bbm); /* config.c knows BBM_VCPUS_MAX */
    watch->findings = g_array_new(FALSE, FALSE, sizeof(struct finding));
    events_subscribe(ev, KINDS, on_event, watch);
    return watch;
}

void bbm_watch_attach(struct bbm_watch *watch, const struct vm *vm)
{
    if (watch) {
        watch->vm = vm;
    }
}

static void print_place(const struct bbm_violation *v, FILE *out)
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
    const struct bbm_violation *v = &f->first;
    char was[128], is[128];

    symbols_format(symbols, v->break_pc, was, sizeof(was));
    symbols_format(symbols, v->now_pc, is, sizeof(is));
    fprintf(out, "shootdown: break-before-make: %s: %s; %" PRIu64 " time%s\n",
            bbm_rule_name(v->rule), bbm_step_text(v->step), f->count,
            f->count == 1 ? "" : "s");
    fputs("  ", out);
    print_place(v, out);
    fprintf(out,
            ", %s: 0x%016" PRIx64 " -> 0x%016" PRIx64 "\n"
            "  taken away by vCPU %u at %s\n"
            "  %s by vCPU %u at %s\n"
            "  vCPUs that may hold the old one: 0x%" PRIx64 "\n",
            bbm_change_name(v->change), v->old, v->now, v->break_vcpu, was,
            v->rule == BBM_RULE_TABLE_FREED ? "freed" : "written", v->now_vcpu,
            is, v->dirty);
}

uint64_t bbm_watch_report(const struct bbm_watch *watch,
                          const struct symbols *symbols, bool verbose,
                          FILE *out)
{
    struct bbm_counts counts;

    if (!watch) {
        return 0;
    }
    bbm_count(watch->bbm, &counts);
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

void bbm_watch_free(struct bbm_watch *watch)
{
    if (!watch) {
        return;
    }
    bbm_free(watch->bbm);
    g_array_unref(watch->findings);
    g_free(watch);
}
