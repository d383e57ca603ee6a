/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rule S13: a vCPU that changes a translation of its own kernel (the high half)
 * and then uses it must first make the store visible to walks with a DSB, and
 * then synchronize its context: ISB, an exception, or the return from one
 * (DDI 0487, "Synchronization of memory accesses and translation table
 * updates"). Told by a walk of the same vCPU that reads the descriptor before.
 *
 *   stored --DSB--> shown --ISB, exception, return--> forgotten
 *
 * The vCPUs' own threads, as all of the ledger: single thread.
 *
 * An exception return is not always told (ledger.h). After an exception that
 * was taken from EL1 one may have gone by unseen, so nothing is noted then
 * until the vCPU is known to have come from EL0 or to have returned.
 */
#include "ledger_priv.h"

#include <string.h>

static void drop(struct ledger *l, struct ledger_vcpu *me, unsigned index)
{
    ledger_touch(l, me, sizeof(*me));
    me->contexts--;
    memmove(&me->context[index], &me->context[index + 1],
            (me->contexts - index) * sizeof(me->context[0]));
}

void ledger_context_store(struct ledger *l, unsigned vcpu, uint64_t pc,
                          const struct ledger_table *t, unsigned index,
                          uint64_t now)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];
    gpa_t pa = t->page + index * 8;

    if (t->half != 1) {
        return;
    }
    for (unsigned i = 0; i < me->contexts; i++) {
        if (me->context[i].pa == pa) {
            drop(l, me, i);
            break;
        }
    }
    if (desc_kind(now, t->level) == DESC_KIND_INVALID || me->is_nested) {
        return;
    }
    if (me->contexts == LEDGER_CONTEXTS) {
        drop(l, me, 0); /* the oldest is not judged */
    }
    ledger_touch(l, me, sizeof(*me));
    me->context[me->contexts++] =
        (struct ledger_context){.pa = pa, .pc = pc, .now = now};
}

void ledger_context_dsb(struct ledger *l, unsigned vcpu, struct ledger_dsb dsb)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    for (unsigned i = 0; dsb.type != LEDGER_DSB_LOADS && i < me->contexts;
         i++) {
        ledger_touch(l, me, sizeof(*me));
        me->context[i].shown = true;
    }
}

void ledger_synced(struct ledger *l, unsigned vcpu, enum ledger_sync sync)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];
    bool is_nested = sync == LEDGER_SYNC_TAKEN_EL1 ||
                     (sync == LEDGER_SYNC_ISB && me->is_nested);

    for (unsigned i = me->contexts; i-- > 0;) {
        if (me->context[i].shown) {
            drop(l, me, i);
        }
    }
    if (me->is_nested != is_nested) {
        ledger_touch(l, me, sizeof(*me));
        me->is_nested = is_nested;
    }
}

static void tell(struct ledger *l, unsigned vcpu, uint64_t pc,
                 const struct ledger_context *c)
{
    struct ledger_table *t = ledger_table_find(l, c->pa);
    struct ledger_violation v;

    if (!t) {
        return;
    }
    v = ledger_describe(t, (c->pa & MMU_PAGE_MASK) / 8);
    v.rule = LEDGER_CONTEXT;
    v.step = c->shown ? LEDGER_STEP_CONTEXT : LEDGER_STEP_MADE_DSB;
    v.now = c->now;
    v.break_vcpu = v.now_vcpu = vcpu;
    v.break_pc = c->pc;
    v.now_pc = pc;
    ledger_report(l, &v);
}

void ledger_walked(struct ledger *l, unsigned vcpu, uint64_t pc,
                   const gpa_t *descriptors, unsigned count)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    if (!me->contexts || ledger_el_of(l, vcpu) != 1) {
        return;
    }
    for (unsigned i = me->contexts; i-- > 0;) {
        for (unsigned j = 0; j < count; j++) {
            if (me->context[i].pa == descriptors[j]) {
                const struct ledger_context c = me->context[i];

                drop(l, me, i); /* told once */
                tell(l, vcpu, pc, &c);
                break;
            }
        }
    }
}
