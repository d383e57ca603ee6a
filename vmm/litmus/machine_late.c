/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the threads of a litmus machine do not see yet: descriptors that were
 * stored or updated, TLBIs that were broadcast; see machine.h.
 *
 * A hidden store is performed in memory, and pte_buffer.h keeps what walks of
 * other vCPUs see in its place: walks and loads are ordered alike in the
 * models, so that a load which sees it shows it. An update by hardware may
 * come after the access that it is for, and be late for loads as well: it is
 * taken back from memory after the step that made it, and made again later.
 * Nothing is written to the descriptor in between, as walk and update are one
 * atomic access.
 */
#include "litmus/machine.h"

#include "litmus/machine_priv.h"
#include "mmu/desc.h"
#include "translate.h"

/* --- stores --- */

static gpa_t place_of(unsigned var)
{
    return litmus_table_pa(LITMUS_VARS) + var * sizeof(uint64_t);
}

bool litmus_is_hidden(struct litmus_machine *m, unsigned var,
                      unsigned *out_thread)
{
    const struct pte_store *store;

    for (unsigned i = 0; (store = pte_buffer_at(m->vm->det->hidden, i)) != NULL;
         i++) {
        if (store->pa == place_of(var)) {
            *out_thread = store->writer;
            return true;
        }
    }
    return false;
}

void litmus_show(struct litmus_machine *m, unsigned var)
{
    (void)pte_buffer_show_alone(m->vm->det->hidden, place_of(var));
}

/* --- updates by hardware --- */

bool litmus_is_late(struct litmus_machine *m, unsigned var,
                    unsigned *out_thread)
{
    *out_thread = m->update[var].thread;
    return m->update[var].pending;
}

/* Both updates made: each may set the access flag and the dirty state. */
static uint64_t both(uint64_t a, uint64_t b)
{
    return ((a | b) & ~DESC_AP_READ_ONLY) | (a & b & DESC_AP_READ_ONLY);
}

void litmus_update(struct litmus_machine *m, unsigned var)
{
    uint64_t *place = litmus_descriptor_place(m, var);

    *place = both(*place, m->update[var].now);
    m->update[var].pending = false;
}

void litmus_note_update(struct litmus_machine *m, unsigned thread, unsigned var,
                        uint64_t before, uint64_t after)
{
    struct litmus_update *update = &m->update[var];

    if (before == after) {
        return;
    }
    if (update->pending && update->thread != thread) {
        /* Another's came first, or it would not have been atomic. */
        litmus_update(m, var);
        return;
    }
    *litmus_descriptor_place(m, var) = before;
    update->now = update->pending ? both(update->now, after) : after;
    update->pending = true;
    update->thread = thread;
}

bool litmus_can_begin_store(struct litmus_machine *m, unsigned thread)
{
    const struct litmus_insn *insn = litmus_next(m, thread);
    int var, pte;
    unsigned who;
    uint64_t desc;

    litmus_target(m, thread, &var, &pte);
    if (!insn || !insn->must_write || var < 0 || m->began[thread] ||
        !m->vm->vcpu[thread]->regime.hd ||
        litmus_is_hidden(m, (unsigned)var, &who) ||
        litmus_is_late(m, (unsigned)var, &who)) {
        return false;
    }
    desc = litmus_descriptor(m, (unsigned)var);
    return desc & DESC_VALID && desc & DESC_DBM && desc & DESC_AP_READ_ONLY;
}

void litmus_begin_store(struct litmus_machine *m, unsigned thread)
{
    struct vcpu *vcpu = m->vm->vcpu[thread];
    const struct access access = {
        .type = ACCESS_WRITE,
        .el0 = m->test->thread[thread].el0,
    };
    int var, pte;
    gpa_t pa;

    litmus_target(m, thread, &var, &pte);
    m->began[thread] =
        translate(vcpu, litmus_page_va((unsigned)var), &access, &pa).fault ==
        WALK_OK;
}

/* --- what has to be visible first --- */

static bool owes(struct litmus_machine *m, unsigned thread, unsigned issuer)
{
    return thread == issuer || inval_owed(m->vm->vcpu[thread]->inval, issuer);
}

static bool waits_at(struct litmus_machine *m, unsigned thread,
                     const struct litmus_insn *insn, unsigned var,
                     bool is_target)
{
    unsigned who;

    if (litmus_is_hidden(m, var, &who) &&
        (who == thread ? insn->orders_stores || (is_target && insn->acquires)
                       : is_target)) {
        return true;
    }
    /*
     * TLBIs wait for accesses that used the translation, and a DSB that waits
     * for TLBIs for what hardware updated for those.
     */
    return litmus_is_late(m, var, &who) &&
           ((insn->completes && owes(m, who, thread)) ||
            (is_target && (insn->writes || who == thread)));
}

bool litmus_must_wait(struct litmus_machine *m, unsigned thread)
{
    const struct litmus_insn *insn = litmus_next(m, thread);
    int var, pte;

    litmus_target(m, thread, &var, &pte);
    for (unsigned i = 0; insn && insn->completes && i < m->test->threads; i++) {
        if (m->began[i] && owes(m, i, thread)) {
            return true;
        }
    }
    for (unsigned i = 0; insn && i < m->test->vars; i++) {
        if (waits_at(m, thread, insn, i, (int)i == pte)) {
            return true;
        }
    }
    return false;
}

/* --- TLBIs, in any order --- */

bool litmus_is_applied(struct litmus_machine *m, unsigned thread,
                       const struct inval_item *item)
{
    for (guint i = 0; i < m->applied[thread]->len; i++) {
        const struct litmus_applied *it =
            &g_array_index(m->applied[thread], struct litmus_applied, i);

        if (it->issuer == item->issuer && it->ticket == item->ticket) {
            return true;
        }
    }
    return false;
}

static bool same(const struct inval_item *a, const struct inval_item *b)
{
    return a->issuer == b->issuer && a->op.kind == b->op.kind &&
           a->op.scope == b->op.scope && a->op.asid == b->op.asid &&
           a->op.va == b->op.va && a->op.size == b->op.size &&
           a->op.last_level == b->op.last_level &&
           a->op.is_range == b->op.is_range &&
           a->op.ttl_level == b->op.ttl_level;
}

unsigned litmus_owed(struct litmus_machine *m, unsigned thread, unsigned *out,
                     unsigned room)
{
    const struct inval_queue *queue = m->vm->vcpu[thread]->inval;
    struct inval_item item, older;
    unsigned n = 0;

    if (m->began[thread]) {
        return 0; /* they wait for the store */
    }
    for (unsigned i = 0; n < room && inval_peek(queue, i, &item); i++) {
        bool is_new = !litmus_is_applied(m, thread, &item);

        for (unsigned k = 0; is_new && k < n; k++) {
            is_new = inval_peek(queue, out[k], &older) && !same(&older, &item);
        }
        if (is_new) {
            out[n++] = i;
        }
    }
    return n;
}

/* The oldest TLBIs of this issuer that were applied leave the queue. */
static void acknowledge(struct litmus_machine *m, unsigned thread,
                        uint32_t issuer)
{
    struct inval_queue *queue = m->vm->vcpu[thread]->inval;
    GArray *applied = m->applied[thread];
    struct inval_item item;
    unsigned i = 0;

    while (inval_peek(queue, i, &item)) {
        if (item.issuer != issuer) {
            i++;
        } else if (litmus_is_applied(m, thread, &item)) {
            (void)inval_take_of(queue, issuer, &item);
            inval_acknowledge(queue, issuer, item.ticket);
            for (guint k = applied->len; k-- > 0;) {
                const struct litmus_applied *it =
                    &g_array_index(applied, struct litmus_applied, k);

                if (it->issuer == issuer && it->ticket <= item.ticket) {
                    g_array_remove_index_fast(applied, k);
                }
            }
        } else {
            return;
        }
    }
}

void litmus_apply(struct litmus_machine *m, unsigned thread, unsigned number)
{
    struct vcpu *vcpu = m->vm->vcpu[thread];
    struct litmus_applied applied;
    struct inval_item item;

    if (!inval_peek(vcpu->inval, number, &item)) {
        return;
    }
    if (item.issuer == INVAL_EVERYONE) {
        g_array_set_size(m->applied[thread], 0);
        liberty_apply(m->vm->det, vcpu);
        return;
    }
    (void)translate_invalidate(vcpu, &item.op, item.issuer, item.ticket);
    applied = (struct litmus_applied){item.issuer, item.ticket};
    g_array_append_val(m->applied[thread], applied);
    acknowledge(m, thread, item.issuer);
}
