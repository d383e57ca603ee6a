/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run loop of a vCPU, and how others get its attention. See vcpu.h for
 * who may touch what and docs/CONCURRENCY.md for the protocols.
 */
#include "vcpu.h"

#include <inttypes.h>
#include <sched.h>

#include "det.h"
#include "error.h"
#include "exception.h"
#include "guest_access.h"
#include "probes.h"
#include "shootdown.h"
#include "sysreg.h"
#include "translate.h"
#include "trap.h"
#include "vm_priv.h"

/* Operations that a vCPU may owe before they collapse into one flush. */
#define INVAL_CAPACITY 1024u
/* Value of SCTLR_EL1 at power-on: its RES1 bits. */
#define SCTLR_RESET UINT64_C(0x30d00800)

_Static_assert((int)VM_REPLACE_LRU == (int)TLB_LRU &&
                   (int)VM_REPLACE_FIFO == (int)TLB_FIFO &&
                   (int)VM_REPLACE_RANDOM == (int)TLB_RANDOM,
               "the configuration's replacement is cast to the TLB's");

/*
 * A request came, the slice is over, or somebody listens to every block. This
 * is where a running vCPU notices what is asked of it: the engine may be
 * stopped by its own thread only, and only where the stop is exact
 * (docs/CONCURRENCY.md).
 */
static void on_block(void *opaque, gva_t va, uint32_t bytes)
{
    struct vcpu *vcpu = opaque;

    if (vcpu->watch->budget == 0) {
        vcpu->vm->sched->ops->quantum_over(vcpu->vm->sched, vcpu);
    }
    if (atomic_load_explicit(&vcpu->requests, memory_order_relaxed)) {
        /* Not executed; it will be entered again. */
        vcpu->watch->blocks--;
        vcpu->watch->instructions -= bytes / 4;
        vcpu->watch->block_bytes = 0;
        engine_stop(vcpu->engine);
        return;
    }
    if (event_wanted(vcpu->events, EVENT_block)) {
        const uint64_t fields[EVENT_FIELDS] = {va, bytes, bytes / 4};

        event_dispatch(vcpu->events, vcpu->id, EVENT_block, va, fields);
    }
    if (vcpu->vm->probes) {
        probes_block(vcpu->vm->probes, vcpu, va, bytes);
    }
}

/* Moves what the engine counted to where statistics look for it. */
static void take_counts(struct vcpu *vcpu)
{
    vcpu->counters->events[EVENT_block] += vcpu->watch->blocks;
    vcpu->counters->instructions += vcpu->watch->instructions;
    vcpu->watch->blocks = 0;
    vcpu->watch->instructions = 0;
}

void vcpu_block_ended_at(struct vcpu *vcpu, gva_t end)
{
    struct engine_watch *watch = vcpu->watch;
    gva_t full = watch->block_va + watch->block_bytes;

    if (watch->block_bytes && end >= watch->block_va && end < full) {
        watch->instructions -= (full - end) / 4;
    }
    watch->block_bytes = 0;
}

struct vcpu *vcpu_new(struct vm *vm, unsigned id, GError **error)
{
    struct engine_callbacks callbacks = {
        .fill = translate_fill,
        .trap = trap_instruction,
        .exception = trap_exception,
        .block = on_block,
    };
    struct vcpu *vcpu = g_new0(struct vcpu, 1);
    struct tlb_config tlb = {
        .sets = vm->config->tlb_sets,
        .ways = vm->config->tlb_ways,
        .replacement = (enum tlb_replacement)vm->config->replacement,
        .walk_cache_entries = vm->config->walk_cache,
        .seed = id,
    };
    const char *problem = tlb_config_problem(&tlb);

    vcpu->vm = vm;
    vcpu->id = id;
    vcpu->mpidr = id % 16 | (uint64_t)(id / 16) << 8;
    vcpu->events = vm->events;
    vcpu->counters = events_counters(vm->events, id);
    uv_mutex_init(&vcpu->inval_lock);
    uv_mutex_init(&vcpu->power_lock);
    if (problem) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "--tlb-sets %u --tlb-ways %u --walk-cache %u: %s", tlb.sets,
                    tlb.ways, tlb.walk_cache_entries, problem);
        vcpu_free(vcpu);
        return NULL;
    }
    vcpu->tlb = tlb_new(&tlb);
    vcpu->inval = inval_queue_new(vm->cpus, INVAL_CAPACITY);
    vcpu->disas = disas_new();
    if (!vcpu->tlb || !vcpu->inval || !vcpu->disas) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "no memory for vCPU %u of %u", id, vm->cpus);
        vcpu_free(vcpu);
        return NULL;
    }
    vcpu->engine = engine_new(&callbacks, vcpu, error);
    if (!vcpu->engine ||
        !engine_map(vcpu->engine, vm->ram.base, vm->ram.size, vm->ram.host,
                    ENGINE_R | ENGINE_W, error) ||
        !engine_map(vcpu->engine, EXEC_VIEW_BASE, exec_views_bytes(vm->views),
                    exec_views_host(vm->views), ENGINE_R | ENGINE_X, error)) {
        g_prefix_error(error, "vCPU %u of %u: ", id, vm->cpus);
        vcpu_free(vcpu);
        return NULL;
    }
    vcpu->watch = engine_watch(vcpu->engine);
    vcpu->watch->requests = &vcpu->requests;
    vcpu->watch->budget = 1;
    vcpu->watch->every =
        event_wanted(vcpu->events, EVENT_block) || vm->probes != NULL;
    vcpu->micro_epoch = 1;
    vcpu->action_pc = VIEW_NO_PAGE;
    for (unsigned i = 0; i < VCPU_VIEW_CACHE; i++) {
        vcpu->view_cache[i].page = VIEW_NO_PAGE;
    }
    return vcpu;
}

void vcpu_free(struct vcpu *vcpu)
{
    if (!vcpu) {
        return;
    }
    engine_free(vcpu->engine);
    disas_free(vcpu->disas);
    if (!vcpu->borrows_tlb) {
        tlb_free(vcpu->tlb);
    }
    inval_queue_free(vcpu->inval);
    uv_mutex_destroy(&vcpu->inval_lock);
    uv_mutex_destroy(&vcpu->power_lock);
    g_free(vcpu);
}

void vcpu_share_tlb(struct vcpu *first, struct vcpu *second)
{
    tlb_free(second->tlb);
    second->tlb = first->tlb;
    second->borrows_tlb = true;
    first->sibling = second;
    second->sibling = first;
}

bool vcpu_claim(struct vcpu *vcpu)
{
    bool expected = false;

    /* acquire: pairs with vcpu_release(), what the last holder did is seen. */
    return atomic_compare_exchange_strong_explicit(&vcpu->held, &expected, true,
                                                   memory_order_acquire,
                                                   memory_order_relaxed);
}

void vcpu_release(struct vcpu *vcpu)
{
    /* release: pairs with the acquire of the next vcpu_claim(). */
    atomic_store_explicit(&vcpu->held, false, memory_order_release);
}

void vcpu_request(struct vcpu *vcpu, uint32_t requests)
{
    /*
     * seq_cst: pairs with the exchange in vcpu_run(), and with settle() of the
     * scheduler for a vCPU that is about to park.
     */
    atomic_fetch_or(&vcpu->requests, requests);
}

bool vcpu_power_on(struct vcpu *vcpu, gva_t entry, uint64_t context)
{
    bool was_on;

    /* Of several that start it at once, one does, with its own entry. */
    uv_mutex_lock(&vcpu->power_lock);
    was_on = atomic_load(&vcpu->powered);
    if (!was_on) {
        vcpu->boot_entry = entry;
        vcpu->boot_context = context;
        atomic_store(&vcpu->reset_pending, true);
        atomic_store(&vcpu->powered, true);
    }
    uv_mutex_unlock(&vcpu->power_lock);
    if (was_on) {
        return false;
    }
    vcpu->vm->sched->ops->wake(vcpu->vm->sched, vcpu);
    return true;
}

static void reset(struct vcpu *vcpu)
{
    static const struct tlbi_op everything = {.kind = TLBI_ALL};

    vcpu->sctlr = SCTLR_RESET;
    vcpu->tcr = 0;
    vcpu->ttbr[0] = 0;
    vcpu->ttbr[1] = 0;
    (void)engine_set_sysreg(vcpu->engine, SYSREG_SCTLR_EL1, SCTLR_RESET);
    (void)engine_set_sysreg(vcpu->engine, SYSREG_TCR_EL1, 0);
    (void)engine_set_sysreg(vcpu->engine, SYSREG_VBAR_EL1, 0);
    vcpu->cpacr = 0;
    translate_regime_changed(vcpu, true);
    /* Operations issued while it was off were not posted to it. */
    translate_invalidate(vcpu, &everything, vcpu->id, 0);
    exclusive_state_clear(&vcpu->monitor);
    vcpu->event_register = false;
    gic_reset_cpu(vcpu->vm->gic, vcpu->id);
    arch_timer_reset_cpu(vcpu->vm->timer, vcpu->id);
    for (unsigned i = 0; i < 31; i++) {
        engine_set_x(vcpu->engine, i, 0);
    }
    engine_switch_pstate(vcpu->engine, PSTATE_DAIF | PSTATE_EL1H);
    engine_set_x(vcpu->engine, 31, 0);
    engine_set_x(vcpu->engine, 0, vcpu->boot_context);
    engine_set_pc(vcpu->engine, vcpu->boot_entry);
    event_emit(vcpu->events, vcpu->id, EVENT_vcpu_start, vcpu->boot_entry,
               vcpu->boot_entry);
}

void vcpu_stop_for(struct vcpu *vcpu, enum vcpu_action action)
{
    if (action != ACTION_NONE) {
        vcpu->action = action;
    }
    engine_stop(vcpu->engine);
}

static bool irq_is_due(struct vcpu *vcpu)
{
    return atomic_load(&vcpu->irq_line) &&
           !(engine_pstate(vcpu->engine) & PSTATE_I);
}

void vcpu_check_irq(struct vcpu *vcpu)
{
    if (irq_is_due(vcpu)) {
        engine_stop(vcpu->engine);
    }
}

static void reset_views(void *opaque)
{
    struct vm *vm = opaque;

    for (unsigned i = 0; i < vm->cpus; i++) {
        struct vcpu *vcpu = vm->vcpu[i];

        engine_flush_code(vcpu->engine);
        translate_flush_micro(vcpu);
    }
    exec_views_reset(vm->views);
}

/*
 * Deterministic engines: a store to a translation table or to the annotation
 * device is an event at which another vCPU may go first.
 */
static bool another_first(struct vcpu *vcpu, const struct refused_fill *refused,
                          gva_t pc)
{
    enum choice_event event = CHOICE_EVENT_PTE_STORE;
    struct exception exception =
        memory_abort(vcpu, pc, refused); /* its FAR is the address */

    if (refused->is_device) {
        if (refused->pa != BOARD_ANNOT_BASE) {
            return false;
        }
        event = CHOICE_EVENT_NOTE;
    }
    return det_before(vcpu, event,
                      refused->pa | (exception.far & MMU_PAGE_MASK), pc);
}

/* A fill was refused: the access faults, is a device's, or tries again. */
static void handle_refused(struct vcpu *vcpu)
{
    struct refused_fill *refused = &vcpu->refused;
    gva_t pc = engine_pc(vcpu->engine);
    bool el0 = pstate_el(engine_pstate(vcpu->engine)) == 0;
    struct exception exception;
    uint32_t word;

    refused->valid = false;
    vcpu_block_ended_at(vcpu, pc);
    if (refused->views_full) {
        vcpu->vm->sched->ops->exclusive(vcpu->vm->sched, vcpu, reset_views,
                                        vcpu->vm);
        return;
    }
    if (refused->type == ACCESS_EXEC) {
        exception = pc & 3
                        ? exception_pc_alignment(pc)
                        : exception_instruction_abort(pc, el0, refused->fault,
                                                      refused->level,
                                                      refused->is_device);
        exception_take(vcpu, &exception);
        return;
    }
    if ((refused->is_device || refused->is_table) &&
        translate_word(vcpu, pc, &word)) {
        if (vcpu->vm->det && another_first(vcpu, refused, pc)) {
            vcpu->action = ACTION_YIELD;
            return;
        }
        if (memory_access(vcpu, word, pc, &exception)) {
            engine_set_pc(vcpu->engine, pc + 4);
            vcpu->counters->instructions++;
            return;
        }
    } else {
        exception = memory_abort(vcpu, pc, refused);
    }
    exception_take(vcpu, &exception);
    if (vcpu->vm->det) {
        det_after(vcpu, CHOICE_EVENT_FAULT, exception.far & ~MMU_PAGE_MASK);
    }
}

/* What the trap left to do. False: the vCPU leaves its worker. */
static bool handle_action(struct vcpu *vcpu, enum vcpu_outcome *out_outcome)
{
    enum vcpu_action action = vcpu->action;

    vcpu->action = ACTION_NONE;
    if (vcpu->action_pc != VIEW_NO_PAGE) {
        engine_set_pc(vcpu->engine, vcpu->action_pc);
        vcpu->action_pc = VIEW_NO_PAGE;
    }
    switch (action) {
    case ACTION_NONE:
        return true;
    case ACTION_EXCEPTION:
        exception_take(vcpu, &vcpu->exception);
        return true;
    case ACTION_ERET:
        exception_return(vcpu);
        ledger_watch_returned(vcpu->vm->ledger, vcpu->id,
                              pstate_el(engine_pstate(vcpu->engine)));
        return true;
    case ACTION_YIELD:
        *out_outcome = VCPU_YIELDED;
        return false;
    case ACTION_PARK:
        *out_outcome = VCPU_PARKED;
        return false;
    case ACTION_OFF:
        event_emit(vcpu->events, vcpu->id, EVENT_vcpu_stop, 0, 0);
        atomic_store(&vcpu->powered, false);
        *out_outcome = VCPU_OFF;
        return false;
    }
    return true;
}

/* One visit to the engine. False: it failed, the machine was stopped. */
static bool enter_guest(struct vcpu *vcpu)
{
    enum engine_exit exit = engine_run(vcpu->engine);

    vcpu->counters->exits++;
    take_counts(vcpu);
    switch (exit) {
    case ENGINE_EXIT_STOPPED:
        break;
    case ENGINE_EXIT_FAULT:
        if (vcpu->refused.valid) {
            handle_refused(vcpu);
            return true;
        }
        /* fall through */
    case ENGINE_EXIT_ERROR:
        vm_stop_error(vcpu->vm,
                      g_strdup_printf("the engine of vCPU %u stopped at pc "
                                      "0x%" PRIx64 ": %s",
                                      vcpu->id, engine_pc(vcpu->engine),
                                      engine_error(vcpu->engine)));
        return false;
    }
    return true;
}

enum vcpu_outcome vcpu_run(struct vcpu *vcpu)
{
    struct vm *vm = vcpu->vm;
    enum vcpu_outcome outcome;

    if (atomic_exchange(&vcpu->reset_pending, false)) {
        reset(vcpu);
    }
    for (;;) {
        /* Take the requests, then act: one that comes while we act stays. */
        uint32_t requests = atomic_exchange(&vcpu->requests, 0);

        if (requests) {
            vcpu->counters->kicks_taken++;
        }
        if (atomic_load(&vm->stopping)) {
            return VCPU_STOPPED;
        }
        /*
         * Each time round: this vCPU lets go of itself for what is done to
         * the whole machine, and a DSB may then have served it.
         */
        if (vcpu->micro_stale) {
            vcpu->micro_stale = false;
            translate_flush_micro(vcpu);
        }
        shootdown_drain(vcpu);
        if (requests & VCPU_REQ_IRQ) {
            vcpu->irq_unacknowledged = false;
        }
        if (irq_is_due(vcpu)) {
            exception_take_irq(vcpu);
            vcpu->irq_unacknowledged = true;
            if (requests & VCPU_REQ_YIELD && !vm->det) {
                /* Whoever sent it is likely to wait: the handler first. */
                vcpu->watch->budget = SCHED_URGED_BLOCKS;
                requests &= ~(uint32_t)VCPU_REQ_YIELD;
            }
        }
        if (requests & VCPU_REQ_YIELD) {
            return VCPU_YIELDED;
        }
        /*
         * Up and masked: the unmasking must be noticed, ERET too. Not for the
         * one just taken: its handler is about to acknowledge it. And the
         * ledger may want to be told of each.
         */
        translate_set_eret_trap(vcpu, ledger_watch_wants_returns(vm->ledger) ||
                                          (atomic_load(&vcpu->irq_line) &&
                                           !vcpu->irq_unacknowledged));
        if (!enter_guest(vcpu)) {
            return VCPU_STOPPED;
        }
        if (!handle_action(vcpu, &outcome)) {
            return outcome;
        }
    }
}
