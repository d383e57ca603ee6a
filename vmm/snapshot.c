/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshots. RAM is copied page by page, at the first time that a page may be
 * written; TLBs and queues keep their own journals (tlb_checkpoint()); the rest
 * is small and copied as it is.
 */
#include "snapshot.h"

#include <string.h>

#include "det.h"
#include "error.h"
#include "execview.h"
#include "ledger_watch.h"
#include "probes.h"
#include "translate.h"
#include "written.h"

struct vcpu_copy {
    struct engine_state *engine;
    uint64_t sctlr, tcr, ttbr[2], cpacr;
    struct regime regime;
    uint64_t ticket, completed;
    bool owes_icache;
    bool event_register, monitor_el0;
    enum vcpu_action action;
    gva_t action_pc;
    struct exception exception;
    bool trap_eret, irq_unacknowledged;
    uint32_t requests;
    bool irq_line, powered, reset_pending;
    uint32_t wfe_spins;
    gva_t boot_entry;
    uint64_t boot_context;
    gva_t block_va;
};

struct page_copy {
    uint64_t page;
    uint8_t bytes[MMU_PAGE_SIZE];
};

struct snapshot {
    struct vm *vm;
    struct vcpu_copy *vcpu;
    void *gic, *timer, *uart, *annot, *det;
    GPtrArray *pages;   /* struct page_copy, in the order of the first write */
    uint32_t *copy_of;  /* by page number: 1 + index into pages, 0: none */
    GArray *dirty;      /* uint32_t: index into pages, since the restore */
    GArray *new_tables; /* uint64_t page numbers, since the restore */
};

void snapshot_note_written(struct vm *vm, uint64_t page)
{
    struct snapshot *s = vm->snapshot;
    uint32_t index;

    vm->written[page] |= WRITTEN_EVER;
    if (!s) {
        return;
    }
    vm->written[page] |= WRITTEN_SINCE;
    if (!s->copy_of[page]) {
        struct page_copy *copy = g_new(struct page_copy, 1);

        copy->page = page;
        memcpy(copy->bytes, vm->ram.host + (page << MMU_PAGE_SHIFT),
               MMU_PAGE_SIZE);
        g_ptr_array_add(s->pages, copy);
        s->copy_of[page] = s->pages->len;
    }
    index = s->copy_of[page] - 1;
    g_array_append_val(s->dirty, index);
}

void snapshot_note_table(struct snapshot *snapshot, uint64_t page)
{
    if (snapshot) {
        g_array_append_val(snapshot->new_tables, page);
    }
}

/* What may be forgotten at any time is forgotten, at taking and restoring. */
static void forget(struct vcpu *vcpu)
{
    exclusive_state_clear(&vcpu->monitor);
    vcpu->refused.valid = false;
    translate_flush_micro(vcpu);
    atomic_store(&vcpu->micro_seen, atomic_load(&vcpu->vm->micro));
}

static void save_vcpu(struct vcpu *vcpu, struct vcpu_copy *c)
{
    engine_state_save(vcpu->engine, c->engine);
    c->sctlr = vcpu->sctlr;
    c->tcr = vcpu->tcr;
    c->ttbr[0] = vcpu->ttbr[0];
    c->ttbr[1] = vcpu->ttbr[1];
    c->cpacr = vcpu->cpacr;
    c->regime = vcpu->regime;
    c->ticket = vcpu->ticket;
    c->completed = vcpu->completed;
    c->owes_icache = vcpu->icache_owed != 0;
    c->event_register = vcpu->event_register;
    c->monitor_el0 = vcpu->monitor_el0;
    c->action = vcpu->action;
    c->action_pc = vcpu->action_pc;
    c->exception = vcpu->exception;
    c->trap_eret = vcpu->trap_eret;
    c->irq_unacknowledged = vcpu->irq_unacknowledged;
    c->requests = atomic_load(&vcpu->requests);
    c->irq_line = atomic_load(&vcpu->irq_line);
    c->powered = atomic_load(&vcpu->powered);
    c->reset_pending = atomic_load(&vcpu->reset_pending);
    c->wfe_spins = vcpu->wfe_spins;
    c->boot_entry = vcpu->boot_entry;
    c->boot_context = vcpu->boot_context;
    c->block_va = vcpu->watch->block_va;
}

static void restore_vcpu(struct vcpu *vcpu, const struct vcpu_copy *c)
{
    engine_state_restore(vcpu->engine, c->engine);
    vcpu->sctlr = c->sctlr;
    vcpu->tcr = c->tcr;
    vcpu->ttbr[0] = c->ttbr[0];
    vcpu->ttbr[1] = c->ttbr[1];
    vcpu->cpacr = c->cpacr;
    vcpu->regime = c->regime;
    vcpu->ticket = c->ticket;
    vcpu->completed = c->completed;
    vcpu->icache_owed = c->owes_icache;
    vcpu->event_register = c->event_register;
    vcpu->monitor_el0 = c->monitor_el0;
    vcpu->action = c->action;
    vcpu->action_pc = c->action_pc;
    vcpu->exception = c->exception;
    vcpu->trap_eret = c->trap_eret;
    vcpu->irq_unacknowledged = c->irq_unacknowledged;
    atomic_store(&vcpu->requests, c->requests);
    atomic_store(&vcpu->irq_line, c->irq_line);
    atomic_store(&vcpu->powered, c->powered);
    atomic_store(&vcpu->reset_pending, c->reset_pending);
    vcpu->wfe_spins = c->wfe_spins;
    vcpu->boot_entry = c->boot_entry;
    vcpu->boot_context = c->boot_context;
    vcpu->watch->block_va = c->block_va;
    vcpu->watch->block_bytes = 0;
}

struct snapshot *snapshot_take(struct vm *vm, GError **error)
{
    struct snapshot *s = g_new0(struct snapshot, 1);
    uint64_t pages = vm->ram.size >> MMU_PAGE_SHIFT;
    bool ok = true;

    g_assert(vm->det && !vm->snapshot);
    s->vm = vm;
    s->vcpu = g_new0(struct vcpu_copy, vm->cpus);
    s->pages = g_ptr_array_new_with_free_func(g_free);
    s->copy_of = g_try_new0(uint32_t, pages);
    s->dirty = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    s->new_tables = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (unsigned i = 0; ok && i < vm->cpus; i++) {
        struct vcpu *vcpu = vm->vcpu[i];

        forget(vcpu);
        s->vcpu[i].engine = engine_state_new(vcpu->engine, error);
        ok = s->vcpu[i].engine != NULL;
        if (ok) {
            save_vcpu(vcpu, &s->vcpu[i]);
            ok = tlb_checkpoint(vcpu->tlb) && inval_checkpoint(vcpu->inval);
        }
    }
    ok = ok && ledger_watch_checkpoint(vm->ledger);
    probes_checkpoint(vm->probes);
    s->gic = g_malloc0(gic_state_size(vm->gic));
    s->timer = g_malloc0(arch_timer_state_size(vm->timer));
    s->uart = g_malloc0(pl011_state_size(vm->uart));
    s->annot = g_malloc0(annot_state_size(vm->annot));
    s->det = g_malloc0(det_state_size(vm->det));
    if (!ok || !s->copy_of) {
        if (error && !*error) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "no memory for a snapshot of %u vCPUs; try fewer "
                        "--cpus or smaller TLBs",
                        vm->cpus);
        }
        snapshot_free(s);
        return NULL;
    }
    gic_save(vm->gic, s->gic);
    arch_timer_save(vm->timer, s->timer);
    pl011_save(vm->uart, s->uart);
    annot_save(vm->annot, s->annot);
    det_state_save(vm->det, s->det);
    exec_views_invalidate_all(vm->views);
    vm->snapshot = s;
    vm->written_want = WRITTEN_EVER | WRITTEN_SINCE;
    return s;
}

void snapshot_restore(struct snapshot *s)
{
    struct vm *vm = s->vm;

    ledger_watch_rollback(vm->ledger);
    probes_rollback(vm->probes);
    for (guint i = 0; i < s->dirty->len; i++) {
        const struct page_copy *copy =
            s->pages->pdata[g_array_index(s->dirty, uint32_t, i)];

        memcpy(vm->ram.host + (copy->page << MMU_PAGE_SHIFT), copy->bytes,
               MMU_PAGE_SIZE);
        vm->written[copy->page] &= (uint8_t)~WRITTEN_SINCE;
        exec_views_forget_page(vm->views, copy->page);
    }
    g_array_set_size(s->dirty, 0);
    for (guint i = 0; i < s->new_tables->len; i++) {
        atomic_store_explicit(
            &vm->tables[g_array_index(s->new_tables, uint64_t, i)], 0,
            memory_order_relaxed);
    }
    g_array_set_size(s->new_tables, 0);
    gic_restore(vm->gic, s->gic);
    arch_timer_restore(vm->timer, s->timer);
    pl011_restore(vm->uart, s->uart);
    annot_restore(vm->annot, s->annot);
    for (unsigned i = 0; i < vm->cpus; i++) {
        struct vcpu *vcpu = vm->vcpu[i];

        restore_vcpu(vcpu, &s->vcpu[i]);
        tlb_rollback(vcpu->tlb);
        inval_rollback(vcpu->inval);
        forget(vcpu);
    }
    det_state_restore(vm->det, s->det);
    atomic_store(&vm->outcome, VM_OUTCOME_NONE);
    atomic_store(&vm->stopping, false);
}

void snapshot_free(struct snapshot *s)
{
    if (!s) {
        return;
    }
    if (s->vm->snapshot == s) {
        for (guint i = 0; i < s->dirty->len; i++) {
            const struct page_copy *copy =
                s->pages->pdata[g_array_index(s->dirty, uint32_t, i)];

            s->vm->written[copy->page] &= (uint8_t)~WRITTEN_SINCE;
        }
        s->vm->snapshot = NULL;
        s->vm->written_want = WRITTEN_EVER;
    }
    for (unsigned i = 0; i < s->vm->cpus; i++) {
        engine_state_free(s->vcpu[i].engine);
    }
    g_free(s->vcpu);
    g_free(s->gic);
    g_free(s->timer);
    g_free(s->uart);
    g_free(s->annot);
    g_free(s->det);
    g_ptr_array_unref(s->pages);
    g_array_unref(s->dirty);
    g_array_unref(s->new_tables);
    g_free(s->copy_of);
    g_free(s);
}

unsigned snapshot_dirty_pages(const struct snapshot *snapshot)
{
    return snapshot->dirty->len;
}
