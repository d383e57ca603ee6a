/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The second run: completes findings with what is too dear to keep in every
 * run, see ledger_report.h. Main thread; the machine runs on it.
 *
 * A witness listens before the ledger does. Of each event at one of a
 * finding's places it remembers step and call chain, the newest instead of the
 * last one; when the ledger tells the violation again, what was remembered is
 * that of this violation, and is kept. The frame's history is taken likewise.
 *
 * An interruption ends the second run, not the program: what was found is told
 * as it is.
 */
#include "ledger_report_priv.h"

#include <signal.h>
#include <string.h>

#include "choice/source.h"
#include "det.h"
#include "execution.h"
#include "ledger_watch.h"
#include "mmu/desc.h"
#include "vm_priv.h"

#define WITNESS_KINDS                                                          \
    (EVENT_BIT(EVENT_frame_clean) | EVENT_BIT(EVENT_pte_store) |               \
     EVENT_BIT(EVENT_tlbi) | EVENT_BIT(EVENT_dsb_done) |                       \
     EVENT_BIT(EVENT_frame_alloc) | EVENT_BIT(EVENT_frame_free) |              \
     EVENT_BIT(EVENT_io_begin) | EVENT_BIT(EVENT_io_end) |                     \
     EVENT_BIT(EVENT_copy_begin) | EVENT_BIT(EVENT_op_begin) |                 \
     EVENT_BIT(EVENT_op_end) | EVENT_BIT(EVENT_root_load) |                    \
     EVENT_BIT(EVENT_fault))

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* What is remembered for one finding until it is told again. */
struct pending {
    struct ledger_finding *f;
    struct ledger_place site[LEDGER_PLACES];
    bool is_done;
};

/* The newest operation of a kind on a vCPU; where it ends is not looked at. */
struct operation {
    uint64_t kind, start, end, promise, task, step;
};

struct witness {
    struct vm *vm;
    GArray *pending;    /* struct pending */
    GArray *operations; /* struct operation, by kind and task (or vCPU) */
    unsigned left;      /* findings that were not told yet */
};

static void witness_site(struct witness *w, struct pending *p,
                         enum ledger_place_kind kind, const struct event *e)
{
    p->site[kind] = ledger_place_at(e->vcpu, e->pc);
    ledger_place_take(&p->site[kind], w->vm);
}

static bool same_tlbi(struct witness *w, const struct event *e,
                      const struct tlbi_op *was)
{
    struct tlbi_op op;

    return tlbi_decode(0, 8, (unsigned)e->a[0] >> 3, e->a[0] & 7, e->a[1],
                       w->vm->vcpu[e->vcpu]->regime.asid16, &op) &&
           op.kind == was->kind && op.scope == was->scope &&
           op.asid == was->asid && op.va == was->va && op.size == was->size;
}

static bool is_at(const struct event *e, unsigned vcpu, uint64_t pc)
{
    return e->vcpu == vcpu && e->pc == pc;
}

static void witness_sites(struct witness *w, struct pending *p,
                          const struct event *e)
{
    const struct ledger_violation *v = &p->f->first;

    if (e->kind == EVENT_pte_store && is_at(e, v->break_vcpu, v->break_pc) &&
        e->a[0] == v->pa) {
        witness_site(w, p, LEDGER_PLACE_STORE, e);
    } else if (e->kind == EVENT_tlbi && v->tlbi.known &&
               is_at(e, v->tlbi.vcpu, v->tlbi.pc) &&
               same_tlbi(w, e, &v->tlbi.op)) {
        witness_site(w, p, LEDGER_PLACE_TLBI, e);
    } else if (e->kind == EVENT_dsb_done && v->dsb.known &&
               is_at(e, v->dsb.vcpu, v->dsb.pc)) {
        witness_site(w, p, LEDGER_PLACE_DSB, e);
    }
    if (v->rule == LEDGER_DIRTY && is_at(e, v->break_vcpu, v->break_pc)) {
        witness_site(w, p, LEDGER_PLACE_STORE, e);
    }
    if (v->is_late && is_at(e, v->now_vcpu, v->now_pc)) {
        witness_site(w, p, LEDGER_PLACE_CONTRACT, e);
    }
}

/* --- the frame --- */

static void witness_moment(struct witness *w, struct ledger_finding *f,
                           enum ledger_moment_kind kind, const struct event *e)
{
    struct ledger_moment *m = &f->moment[f->moments++ % LEDGER_HISTORY_MAX];

    *m = (struct ledger_moment){
        .kind = kind,
        .is_before = ledger_is_before(w->vm),
        .vcpu = e->vcpu,
        .pc = e->pc,
        .step = ledger_step_now(w->vm),
    };
    if (e->kind == EVENT_pte_store) {
        m->descriptor = e->a[0];
        m->old = e->a[1];
        m->now = e->a[2];
    }
}

/*
 * The event does not say the level: a descriptor of two low bits 1 leads to a
 * page or a table, one of low bits 01 to a block, of 2 MiB or more.
 */
static bool leads_to(uint64_t desc, gpa_t frame)
{
    uint64_t size = desc & 2 ? MMU_PAGE_SIZE : UINT64_C(1) << 21;

    return desc & 1 &&
           ((desc & DESC_ADDR_MASK) & ~(size - 1)) == (frame & ~(size - 1));
}

static void witness_frame(struct witness *w, struct ledger_finding *f,
                          const struct event *e)
{
    static const struct {
        enum event_kind event;
        enum ledger_moment_kind moment;
    } kinds[] = {
        {EVENT_frame_alloc, LEDGER_MOMENT_ALLOC},
        {EVENT_frame_free, LEDGER_MOMENT_FREE},
        {EVENT_io_begin, LEDGER_MOMENT_IO_BEGIN},
        {EVENT_io_end, LEDGER_MOMENT_IO_END},
        {EVENT_copy_begin, LEDGER_MOMENT_COPY},
    };

    if (!f->frame) {
        return;
    }
    if (e->kind == EVENT_pte_store) {
        bool was = leads_to(e->a[1], f->frame);
        bool is = leads_to(e->a[2], f->frame);

        if (was || is) {
            witness_moment(w, f,
                           was && is ? LEDGER_MOMENT_CHANGE
                           : is      ? LEDGER_MOMENT_MAP
                                     : LEDGER_MOMENT_UNMAP,
                           e);
        }
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (e->kind == kinds[i].event && f->frame >= e->a[0] &&
            (f->frame - e->a[0]) >> MMU_PAGE_SHIFT < e->a[1]) {
            witness_moment(w, f, kinds[i].moment, e);
        }
    }
}

/* --- operations --- */

/* Without a task an operation belongs to its vCPU. */
static uint64_t owner_of(const struct event *e, uint64_t task)
{
    return task ? task : ~(uint64_t)e->vcpu;
}

static void witness_operation(struct witness *w, const struct event *e)
{
    struct operation new = {
        .kind = e->a[0],
        .start = e->a[1],
        .end = e->a[2],
        .promise = e->a[3],
        .task = owner_of(e, e->a[4]),
        .step = ledger_step_now(w->vm),
    };

    for (guint i = 0; i < w->operations->len; i++) {
        struct operation *op =
            &g_array_index(w->operations, struct operation, i);

        if (op->kind == new.kind && op->task == new.task) {
            *op = new;
            return;
        }
    }
    g_array_append_val(w->operations, new);
}

/* The newest one of the kind whose range is the violation's. */
static void take_range(struct witness *w, struct ledger_finding *f)
{
    const struct ledger_violation *v = &f->first;

    for (guint i = 0; i < w->operations->len; i++) {
        const struct operation *op =
            &g_array_index(w->operations, struct operation, i);

        if (v->rule == LEDGER_RETURN && op->kind == v->op && op->end > v->va &&
            op->start < v->va + v->size &&
            (!f->has_range || op->step >= f->op_step)) {
            f->has_range = true;
            f->op_start = op->start;
            f->op_end = op->end;
            f->op_step = op->step;
        }
    }
}

static void on_event(void *opaque, const struct event *e)
{
    struct witness *w = opaque;

    if (!w->vm) {
        return;
    }
    if (interrupted) {
        vm_stop(w->vm, VM_OUTCOME_INTERRUPTED);
    }
    if (e->kind == EVENT_op_begin) {
        witness_operation(w, e);
    }
    for (guint i = 0; i < w->pending->len; i++) {
        struct pending *p = &g_array_index(w->pending, struct pending, i);

        if (!p->is_done) {
            witness_sites(w, p, e);
            witness_frame(w, p->f, e);
        }
    }
}

/* --- told again --- */

static void keep(struct witness *w, struct pending *p,
                 const struct ledger_finding *again)
{
    struct ledger_finding *f = p->f;

    p->site[LEDGER_PLACE_CONTRACT] = f->first.is_late
                                         ? p->site[LEDGER_PLACE_CONTRACT]
                                         : again->site[LEDGER_PLACE_CONTRACT];
    for (unsigned i = 0; i < LEDGER_PLACES; i++) {
        const struct ledger_place *seen = &p->site[i];
        struct ledger_place *site = &f->site[i];

        if (site->is_known && seen->has_chain) {
            site->has_step = seen->has_step;
            site->is_before = seen->is_before;
            site->step = seen->step;
            site->has_chain = true;
            site->lr = seen->lr;
            site->callers = seen->callers;
            memcpy(site->caller, seen->caller, sizeof(site->caller));
        }
    }
    take_range(w, f);
    f->is_retold = true;
    p->is_done = true;
}

static void on_finding(void *opaque, const struct ledger_finding *again)
{
    struct witness *w = opaque;

    for (guint i = 0; i < w->pending->len; i++) {
        struct pending *p = &g_array_index(w->pending, struct pending, i);
        const struct ledger_violation *v = &p->f->first;

        if (!p->is_done && v->pa == again->first.pa &&
            ledger_finding_is(p->f, &again->first)) {
            keep(w, p, again);
            w->left--;
        }
    }
    if (w->left == 0) {
        vm_stop(w->vm, VM_OUTCOME_END); /* the rest is known */
    }
}

/* --- the run --- */

static bool run_again(struct witness *w, const struct schedule *schedule,
                      GError **error)
{
    struct execution *e = execution_new(w->vm, false, error);
    uint64_t without[VM_CPUS_MAX / 64] = {0};
    struct choice_source *source;

    if (!e) {
        if (w->left == 0) {
            g_clear_error(error); /* stopped on the way to the snapshot */
        }
        return w->left == 0;
    }
    execution_without(schedule, without);
    source = choice_source_recorded(
        (const struct choice_entry *)(void *)schedule->entries->data,
        schedule->entries->len, schedule->total, true);
    if (w->left) { /* some may be of before the snapshot */
        (void)execution_run(e, source, without);
        ledger_watch_settle(w->vm->ledger);
    }
    choice_source_free(source);
    execution_free(e);
    return true;
}

/* The findings of this schedule, which must be some. */
static bool retell(struct witness *w, const struct vm_config *like,
                   const struct schedule *schedule, uint64_t seed,
                   GError **error)
{
    struct vm_config *config = vm_config_copy(like);
    struct events *events = events_new(config->cpus);
    struct ledger_watch *watch;
    bool ok = false;

    config->quiet = true;
    config->runs = 1;
    config->ledger_stop = false; /* it ends when all was told */
    config->seed = seed;
    events_subscribe(events, WITNESS_KINDS, on_event, w);
    watch = ledger_watch_new(config, events);
    ledger_watch_listen(watch, on_finding, w);
    w->vm = vm_new(config, events, error);
    if (w->vm) {
        ledger_watch_attach(watch, w->vm);
        ok = vm_replay(w->vm, schedule, error) && run_again(w, schedule, error);
        ledger_watch_attach(watch, NULL);
        vm_free(w->vm);
        w->vm = NULL;
    }
    ledger_watch_free(watch);
    events_free(events);
    vm_config_free(config);
    return ok;
}

bool ledger_findings_retell(struct ledger_findings *findings,
                            const struct vm_config *config, GError **error)
{
    const struct sigaction catch = {.sa_handler = on_signal};
    struct sigaction old_int, old_term;
    unsigned count = ledger_findings_count(findings);
    bool ok = true;

    interrupted = 0;
    sigaction(SIGINT, &catch, &old_int);
    sigaction(SIGTERM, &catch, &old_term);
    for (unsigned i = 0; ok && !interrupted && i < count;) {
        const struct ledger_finding *f = ledger_findings_at(findings, i);
        const struct schedule *schedule = f->schedule;
        uint64_t seed = f->seed;
        struct witness w = {
            .pending = g_array_new(FALSE, TRUE, sizeof(struct pending)),
            .operations = g_array_new(FALSE, TRUE, sizeof(struct operation)),
        };

        for (;
             i < count && ledger_findings_at(findings, i)->schedule == schedule;
             i++) {
            struct pending p = {.f = ledger_findings_at(findings, i)};

            g_array_append_val(w.pending, p);
            w.left++;
        }
        if (schedule) {
            ok = retell(&w, config, schedule, seed, error);
        }
        g_array_unref(w.pending);
        g_array_unref(w.operations);
    }
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return ok;
}
