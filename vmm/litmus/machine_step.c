/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Driving the machine of a litmus test; see machine.h.
 *
 * It is the deterministic engine without its scheduler: vcpu_run() is called
 * from here, and the scheduler's quantum_over(), asked at every block, ends a
 * step where the next slot begins. Liberties are off but the late application
 * of broadcast TLBIs, so that nothing happens that was not asked for.
 */
#include "litmus/machine.h"

#include <string.h>

#include "litmus/machine_priv.h"
#include "mmu/desc.h"
#include "mmu/inject.h"
#include "snapshot.h"
#include "translate.h"

/* Blocks that one step may take: vectors, one instruction. */
#define STEP_BLOCKS 400u

/* Whose step runs: quantum_over() is told of the scheduler only. */
static _Thread_local struct litmus_machine *active;

/* --- steps --- */

void litmus_problem(struct litmus_machine *m, char *text)
{
    if (m->problem) {
        g_free(text);
    } else {
        m->problem = text;
    }
}

/* Is it the slot that ends the step? */
void litmus_at_block(struct sched *base, struct vcpu *vcpu)
{
    struct litmus_machine *m = active;
    gva_t va = vcpu->watch->block_va;
    gva_t code = LITMUS_CODE(vcpu->id);

    (void)base;
    vcpu->watch->budget = 1; /* asked again at the next one */
    if (atomic_load(&vcpu->requests)) {
        return; /* the block is entered once more */
    }
    if (++m->blocks > STEP_BLOCKS) {
        litmus_problem(
            m, g_strdup_printf("P%u does not come to its next instruction",
                               vcpu->id));
        vcpu_request(vcpu, VCPU_REQ_YIELD);
    } else if (va >= code && va < code + LITMUS_PAGE && va % LITMUS_SLOT == 0) {
        if (m->entered) {
            m->reached = true;
            vcpu_request(vcpu, VCPU_REQ_YIELD);
        }
        m->entered = true;
    }
}

bool litmus_run_to_slot(struct litmus_machine *m, unsigned thread, bool entered)
{
    struct vcpu *vcpu = m->vm->vcpu[thread];
    struct det *det = m->vm->det;

    active = m;
    m->entered = entered;
    m->reached = false;
    m->blocks = 0;
    vcpu->watch->budget = 1;
    while (!m->reached && !m->problem) {
        enum vcpu_outcome outcome = vcpu_run(vcpu);

        if (det->v[thread].state == DET_WAITING) {
            liberty_force(det, vcpu);
        } else if (outcome != VCPU_YIELDED) {
            litmus_problem(m,
                           g_strdup_printf("P%u stopped: %s", thread,
                                           m->vm->engine_error
                                               ? m->vm->engine_error
                                               : "it waits for an interrupt"));
        } else if (m->blocks == 0) {
            litmus_problem(m, g_strdup_printf("P%u executes nothing", thread));
        }
    }
    return !m->problem;
}

static unsigned slot_of(struct litmus_machine *m, unsigned thread)
{
    return (unsigned)((engine_pc(m->vm->vcpu[thread]->engine) -
                       LITMUS_CODE(thread)) /
                      LITMUS_SLOT);
}

static const struct litmus_insn *insn_at(const struct litmus_machine *m,
                                         unsigned thread, unsigned slot)
{
    const struct litmus_thread *t = &m->test->thread[thread];
    unsigned code = m->image->code[thread];

    if (slot < code) {
        return t->code->pdata[slot];
    }
    if (slot > code && slot - code - 1 < m->image->handler[thread]) {
        return t->handler->pdata[slot - code - 1];
    }
    return NULL;
}

const struct litmus_insn *litmus_next(struct litmus_machine *m, unsigned thread)
{
    return insn_at(m, thread, slot_of(m, thread));
}

bool litmus_is_over(struct litmus_machine *m, unsigned thread)
{
    return !litmus_next(m, thread);
}

static int variable_at(const struct litmus_test *test, uint64_t va)
{
    uint64_t page = (va - LITMUS_VARS_VA) / LITMUS_PAGE;

    return va >= LITMUS_VARS_VA && page < test->vars ? (int)page : -1;
}

static const struct litmus_area *area_of(struct litmus_machine *m,
                                         unsigned thread)
{
    return vm_ram_at(m->vm, LITMUS_AREA(thread), sizeof(struct litmus_area));
}

/* Adds the fault of the exception just taken to the set. */
static void note_fault(struct litmus_machine *m, unsigned thread,
                       const struct litmus_area *area)
{
    static const enum litmus_fault_kind kinds[16] = {
        [1] = LITMUS_FAULT_TRANSLATION,
        [2] = LITMUS_FAULT_ACCESS_FLAG,
        [3] = LITMUS_FAULT_PERMISSION,
    };
    struct litmus_taken taken = {
        .thread = thread,
        .insn = insn_at(
            m, thread,
            (unsigned)((area->elr - LITMUS_CODE(thread)) / LITMUS_SLOT)),
        .var = variable_at(m->test, area->far),
        .kind = kinds[area->esr >> 2 & 15],
    };
    unsigned ec = (unsigned)(area->esr >> 26 & 0x3f);

    if ((ec & 0x3e) != 0x24 || taken.kind == LITMUS_FAULT_ANY) {
        taken.kind = LITMUS_FAULT_OTHER;
    }
    for (guint i = 0; i < m->taken->len; i++) {
        const struct litmus_taken *had =
            &g_array_index(m->taken, struct litmus_taken, i);

        if (had->thread == thread && had->insn == taken.insn &&
            had->var == taken.var && had->kind == taken.kind) {
            return;
        }
    }
    g_array_append_val(m->taken, taken);
}

bool litmus_step(struct litmus_machine *m, unsigned thread)
{
    const struct litmus_area *area;
    struct det *det = m->vm->det;
    uint64_t before = 0;
    int var, pte;

    litmus_target(m, thread, &var, &pte);
    if (var >= 0) {
        before = litmus_descriptor(m, (unsigned)var);
    }
    det->hidden_since = det->steps; /* when it shows is litmus_show()'s */
    if (!litmus_run_to_slot(m, thread, false)) {
        return false;
    }
    m->began[thread] = false;
    if (var >= 0) {
        litmus_note_update(m, thread, (unsigned)var, before,
                           litmus_descriptor(m, (unsigned)var));
    }
    area = area_of(m, thread);
    if (area->count != m->exceptions[thread]) {
        m->exceptions[thread] = area->count;
        note_fault(m, thread, area);
    }
    return true;
}

/* --- liberties --- */

bool litmus_has_monitor(struct litmus_machine *m, unsigned thread)
{
    const struct vcpu *vcpu = m->vm->vcpu[thread];

    return vcpu->monitor.armed &&
           exclusive_state_holds(m->vm->exclusives, &vcpu->monitor);
}

void litmus_lose_monitor(struct litmus_machine *m, unsigned thread)
{
    exclusive_state_clear(&m->vm->vcpu[thread]->monitor);
}

bool litmus_is_waited_for(struct litmus_machine *m, unsigned thread)
{
    for (unsigned i = 0; i < m->test->threads; i++) {
        if (inval_owed(m->vm->vcpu[i]->inval, thread)) {
            return true;
        }
    }
    return false;
}

/* --inject faulting-cached: a walk that fails so is cached like any other. */
static bool caches_fault(const struct vcpu *vcpu, const struct walk_result *w)
{
    return vcpu->vm->inject & INJECT_BIT(INJECT_FAULTING_CACHED) &&
           (w->fault == WALK_FAULT_TRANSLATION ||
            (w->fault == WALK_FAULT_ACCESS_FLAG && !vcpu->regime.ha));
}

enum litmus_cached litmus_cached(struct litmus_machine *m, unsigned thread,
                                 unsigned var, bool *out_can_fill)
{
    struct vcpu *vcpu = m->vm->vcpu[thread];
    const struct tlb_entry *entry =
        tlb_peek(vcpu->tlb, litmus_page_va(var), vcpu->regime.asid);
    struct walk_result w = translate_walk(vcpu, litmus_page_va(var), false);

    *out_can_fill = w.fault == WALK_OK || caches_fault(vcpu, &w);
    if (!entry) {
        return LITMUS_ABSENT;
    }
    return w.fault == WALK_OK && entry->t.base == w.t.base &&
                   entry->t.perms == w.t.perms && entry->t.dbm == w.t.dbm &&
                   entry->t.global == w.t.global
               ? LITMUS_FRESH
               : LITMUS_STALE;
}

void litmus_evict(struct litmus_machine *m, unsigned thread, unsigned var)
{
    translate_evict(m->vm->vcpu[thread], litmus_page_va(var));
}

void litmus_fill(struct litmus_machine *m, unsigned thread, unsigned var)
{
    struct vcpu *vcpu = m->vm->vcpu[thread];
    struct walk_result w = translate_walk(vcpu, litmus_page_va(var), false);
    const struct access access = {.type = ACCESS_READ};
    gpa_t pa;

    if (caches_fault(vcpu, &w)) {
        /* As if an access had failed, of which nobody is told. */
        (void)translate(vcpu, litmus_page_va(var), &access, &pa);
    } else {
        translate_prefetch(vcpu, litmus_page_va(var));
    }
}

bool litmus_can_touch(struct litmus_machine *m, unsigned thread, unsigned var)
{
    uint64_t desc = litmus_descriptor(m, var);

    return m->vm->vcpu[thread]->regime.ha && desc & DESC_VALID &&
           !(desc & DESC_AF);
}

void litmus_touch(struct litmus_machine *m, unsigned thread, unsigned var)
{
    (void)translate_walk(m->vm->vcpu[thread], litmus_page_va(var), true);
}

void litmus_target(struct litmus_machine *m, unsigned thread, int *out_var,
                   int *out_pte)
{
    const struct litmus_insn *insn = litmus_next(m, thread);
    struct engine *engine = m->vm->vcpu[thread]->engine;
    uint64_t va, index;

    *out_var = *out_pte = -1;
    if (!insn || insn->kind != LITMUS_ACCESS || insn->base < 0) {
        return;
    }
    va = engine_x(engine, (unsigned)insn->base) + (uint64_t)insn->offset;
    if (insn->index >= 0) {
        index = engine_x(engine, (unsigned)insn->index);
        va += insn->index_is_word ? (uint64_t)(int64_t)(int32_t)index : index;
    }
    *out_var = variable_at(m->test, va);
    if (va >= LITMUS_PTES_VA &&
        va < LITMUS_PTES_VA + m->test->vars * sizeof(uint64_t)) {
        *out_pte = (int)((va - LITMUS_PTES_VA) / sizeof(uint64_t));
    }
}

/* --- what is --- */

uint64_t litmus_register_value(struct litmus_machine *m, unsigned thread,
                               unsigned reg)
{
    return engine_x(m->vm->vcpu[thread]->engine, reg);
}

uint64_t litmus_variable_value(struct litmus_machine *m, unsigned var,
                               unsigned element)
{
    const struct litmus_var *v = &m->test->var[var];
    uint64_t value = 0;

    memcpy(&value,
           (const uint8_t *)vm_ram_at(
               m->vm, LITMUS_VARS_PA + (gpa_t)var * LITMUS_PAGE, LITMUS_PAGE) +
               (size_t)element * v->size,
           v->size);
    return value;
}

uint64_t litmus_descriptor(struct litmus_machine *m, unsigned var)
{
    return *(const uint64_t *)vm_ram_at(
        m->vm, litmus_table_pa(LITMUS_VARS) + var * sizeof(uint64_t),
        sizeof(uint64_t));
}
