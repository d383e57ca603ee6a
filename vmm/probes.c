/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probes of a running machine; see probes.h. The vCPUs' one thread. */
#include "probes.h"

#include <inttypes.h>
#include <string.h>

#include "abi/annot.h"
#include "mmu/walk.h"
#include "obs/events.h"
#include "obs/symbols.h"
#include "vm_priv.h"

/* Calls that have not returned; a task that ends inside one never does. */
#define CALLS_MAX 1024u
#define PAGES_MAX (UINT64_C(1) << 18)
#define REG_LR 30u
#define REG_SP 31u
#define ARGUMENTS 8u

/* A function that was entered, until it returns. */
struct call {
    gva_t back;  /* where to */
    uint64_t sp; /* tells this task's call from others' of the function */
    guint probe;
    uint64_t x[ARGUMENTS];
};

struct probes {
    struct probe_file *file;
    GArray *calls;   /* struct call, oldest first */
    GArray *saved;   /* of the checkpoint */
    uint64_t inside; /* blocks that had a probe inside, not at the start */
};

struct probes *probes_load(const char *path, const char *symbols_path,
                           GError **error)
{
    g_autofree char *text = NULL;
    struct symbols *symbols = NULL;
    struct probe_file *file = NULL;
    struct probes *probes;

    if (g_file_get_contents(path, &text, NULL, error) &&
        (!symbols_path ||
         (symbols = symbols_load(symbols_path, error)) != NULL)) {
        file = probe_file_parse(text, path, symbols, error);
    }
    symbols_free(symbols);
    if (!file) {
        return NULL;
    }
    probes = g_new0(struct probes, 1);
    probes->file = file;
    probes->calls = g_array_new(FALSE, FALSE, sizeof(struct call));
    probes->saved = g_array_new(FALSE, FALSE, sizeof(struct call));
    return probes;
}

void probes_free(struct probes *probes)
{
    if (!probes) {
        return;
    }
    probe_file_free(probes->file);
    g_array_unref(probes->calls);
    g_array_unref(probes->saved);
    g_free(probes);
}

/* --- values --- */

static bool read_ram(void *opaque, gpa_t pa, uint64_t *out)
{
    const uint64_t *host = vm_ram_at(opaque, pa, sizeof(uint64_t));

    if (host) {
        *out = __atomic_load_n(host, __ATOMIC_RELAXED);
    }
    return host != NULL;
}

static bool translate(struct vcpu *vcpu, gva_t va, gpa_t *out)
{
    struct walk_mem mem = {.read64 = read_ram, .opaque = vcpu->vm};
    struct walk_result w = walk_stage1(&vcpu->regime, &mem, va);

    if (w.fault == WALK_OK) {
        *out = translation_pa(&w.t, va);
    }
    return w.fault == WALK_OK;
}

/* entry: the arguments then, or NULL: it is now. */
static uint64_t value_of(struct vcpu *vcpu, const struct probe_value *v,
                         const uint64_t *entry)
{
    if (!v->is_register) {
        return v->number; /* 0 where it is not given */
    }
    return entry && v->at_entry ? entry[v->reg]
                                : engine_x(vcpu->engine, v->reg);
}

static bool frame_of(struct probes *probes, struct vcpu *vcpu,
                     const struct probe *p, const uint64_t *entry, gpa_t *out)
{
    const struct probe_file *f = probes->file;
    uint64_t virt = value_of(vcpu, &p->value[PROBE_VIRT], entry);
    uint64_t page = value_of(vcpu, &p->value[PROBE_PAGE], entry);
    uint64_t base = f->pages_base;
    gpa_t at;

    if (p->value[PROBE_PA].is_given) {
        *out = value_of(vcpu, &p->value[PROBE_PA], entry);
        return true;
    }
    if (p->value[PROBE_VIRT].is_given) {
        if (f->has_linear) {
            *out = virt - f->linear_virt + f->linear_pa;
        }
        return virt && (f->has_linear || translate(vcpu, virt, out));
    }
    if (f->pages_indirect && (!translate(vcpu, f->pages_base, &at) ||
                              !read_ram(vcpu->vm, at, &base))) {
        return false;
    }
    *out = (page - base) / f->pages_size * MMU_PAGE_SIZE + f->pages_pa;
    return page >= base; /* NULL, say: nothing was allocated */
}

static uint64_t pages_of(struct vcpu *vcpu, const struct probe *p,
                         const uint64_t *entry)
{
    uint64_t order = value_of(vcpu, &p->value[PROBE_ORDER], entry);
    uint64_t bytes = value_of(vcpu, &p->value[PROBE_BYTES], entry);

    if (p->value[PROBE_BYTES].is_given) {
        return MIN(bytes / MMU_PAGE_SIZE + (bytes % MMU_PAGE_SIZE != 0),
                   PAGES_MAX);
    }
    return UINT64_C(1) << MIN(order, 18);
}

/* --- roles --- */

static void tell_frame(struct probes *probes, struct vcpu *vcpu,
                       const struct probe *p, const uint64_t *entry, gva_t pc)
{
    static const enum event_kind kinds[] = {
        [PROBE_FRAME_FREE] = EVENT_frame_free,
        [PROBE_FRAME_ALLOC] = EVENT_frame_alloc,
        [PROBE_IO_BEGIN] = EVENT_io_begin,
        [PROBE_IO_END] = EVENT_io_end,
        [PROBE_COPY_BEGIN] = EVENT_copy_begin,
    };
    gpa_t pa = 0;

    if (frame_of(probes, vcpu, p, entry, &pa)) {
        event_emit(vcpu->events, vcpu->id, kinds[p->role], pc,
                   pa & ~(gpa_t)(MMU_PAGE_SIZE - 1), pages_of(vcpu, p, entry));
    }
}

/*
 * task: tells an operation from others of its kind if it ends on another vCPU;
 * 0: it is the vCPU's.
 */
static void tell_op(struct vcpu *vcpu, const struct probe *p, bool is_end,
                    const uint64_t *entry, uint64_t task, gva_t pc)
{
    const struct probe_value *v = p->value;
    uint64_t start = value_of(vcpu, &v[PROBE_START], entry);
    uint64_t bytes = value_of(vcpu, &v[PROBE_BYTES], entry);
    struct event_op op = {
        .kind = (uint32_t)value_of(vcpu, &v[PROBE_KIND], entry),
        .task = task,
    };

    if (is_end) {
        event_op_end(vcpu->events, vcpu->id, pc, op);
        return;
    }
    op.start = start & ~(uint64_t)(MMU_PAGE_SIZE - 1);
    op.end = v[PROBE_BYTES].is_given ? start + bytes
                                     : value_of(vcpu, &v[PROBE_END], entry);
    op.end = (op.end + MMU_PAGE_SIZE - 1) & ~(uint64_t)(MMU_PAGE_SIZE - 1);
    op.promise = value_of(vcpu, &v[PROBE_PROMISE], entry);
    event_op_begin(vcpu->events, vcpu->id, pc, op);
}

static void fire(struct probes *probes, struct vcpu *vcpu, struct probe *p,
                 const struct call *call, gva_t pc)
{
    const uint64_t *entry = call ? call->x : NULL;

    p->fired++;
    switch (p->role) {
    case PROBE_OP:
        tell_op(vcpu, p, call != NULL, entry,
                call ? call->sp : engine_x(vcpu->engine, REG_SP), pc);
        break;
    case PROBE_OP_BEGIN:
    case PROBE_OP_END:
        tell_op(vcpu, p, p->role == PROBE_OP_END, entry,
                value_of(vcpu, &p->value[PROBE_TASK], entry), pc);
        break;
    case PROBE_WALK_BEGIN:
        event_emit(vcpu->events, vcpu->id, EVENT_soft_walk_begin, pc,
                   value_of(vcpu, &p->value[PROBE_ROOT], entry));
        break;
    case PROBE_WALK_END:
        event_emit(vcpu->events, vcpu->id, EVENT_soft_walk_end, pc, 0);
        break;
    default:
        tell_frame(probes, vcpu, p, entry, pc);
    }
}

/* --- blocks --- */

/* A block may begin twice, after a fault of its first instruction. */
static bool is_entered(const struct probes *probes, const struct call *new)
{
    for (guint i = 0; i < probes->calls->len; i++) {
        const struct call *c = &g_array_index(probes->calls, struct call, i);

        if (c->back == new->back && c->sp == new->sp &&
            c->probe == new->probe) {
            return true;
        }
    }
    return false;
}

static void enter(struct probes *probes, struct vcpu *vcpu, guint index)
{
    struct probe *p = &g_array_index(probes->file->probes, struct probe, index);
    struct call call = {
        .back = engine_x(vcpu->engine, REG_LR),
        .sp = engine_x(vcpu->engine, REG_SP),
        .probe = index,
    };

    if (!p->at_exit && p->role != PROBE_OP) {
        fire(probes, vcpu, p, NULL, p->pc);
        return;
    }
    if (is_entered(probes, &call)) {
        return;
    }
    for (unsigned i = 0; i < ARGUMENTS; i++) {
        call.x[i] = engine_x(vcpu->engine, i);
    }
    if (probes->calls->len >= CALLS_MAX) {
        g_array_remove_index(probes->calls, 0);
    }
    g_array_append_val(probes->calls, call);
    if (p->role == PROBE_OP) {
        fire(probes, vcpu, p, NULL, p->pc);
    }
}

/* The newest first: where a function calls itself. */
static void leave(struct probes *probes, struct vcpu *vcpu, gva_t va)
{
    for (guint i = probes->calls->len; i-- > 0;) {
        struct call call = g_array_index(probes->calls, struct call, i);

        if (call.back == va && call.sp == engine_x(vcpu->engine, REG_SP)) {
            struct probe *p =
                &g_array_index(probes->file->probes, struct probe, call.probe);

            g_array_remove_index(probes->calls, i);
            /* The place is the function: where it returns to says little. */
            fire(probes, vcpu, p, &call, p->pc);
        }
    }
}

void probes_block(struct probes *probes, struct vcpu *vcpu, gva_t va,
                  uint32_t bytes)
{
    const GArray *all = probes->file->probes;
    guint low = 0, high = all->len;

    if (probes->calls->len) {
        leave(probes, vcpu, va);
    }
    while (low < high) {
        guint middle = (low + high) / 2;

        if (g_array_index(all, struct probe, middle).pc < va) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < all->len && g_array_index(all, struct probe, low).pc == va;
         low++) {
        enter(probes, vcpu, low);
    }
    if (low < all->len && g_array_index(all, struct probe, low).pc > va &&
        g_array_index(all, struct probe, low).pc - va < bytes) {
        probes->inside++;
    }
}

/* --- the rest --- */

void probes_checkpoint(struct probes *probes)
{
    if (probes) {
        g_array_set_size(probes->saved, 0);
        g_array_append_vals(probes->saved, probes->calls->data,
                            probes->calls->len);
    }
}

void probes_rollback(struct probes *probes)
{
    if (probes) {
        g_array_set_size(probes->calls, 0);
        g_array_append_vals(probes->calls, probes->saved->data,
                            probes->saved->len);
    }
}

void probes_report(const struct probes *probes, bool verbose, FILE *out)
{
    if (!probes) {
        return;
    }
    for (guint i = 0; i < probes->file->probes->len; i++) {
        const struct probe *p =
            &g_array_index(probes->file->probes, struct probe, i);

        if (p->fired == 0) {
            fprintf(out,
                    "shootdown: probe of line %u, at 0x%" PRIx64
                    ": never came by\n",
                    p->line, p->pc);
        } else if (verbose) {
            fprintf(out, "shootdown: probe of line %u: %" PRIu64 " times\n",
                    p->line, p->fired);
        }
    }
    if (probes->inside) {
        fprintf(out,
                "shootdown: %" PRIu64 " times a probe was inside a block of "
                "code, and missed: it must be where a branch leads\n",
                probes->inside);
    }
}
