/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of the search; see explore_priv.h, and docs/LITMUS.md for what is
 * left out and why nothing is lost by it.
 */
#include "litmus/explore_priv.h"

#define LOCAL_MAX 1000u /* steps that no other thread can see, in a row */

/* What a candidate is about, beside steps (CHOICE_EVENT_UNKNOWN). */
#define EVENT_APPLY CHOICE_EVENT_TLBI
#define EVENT_TOUCH CHOICE_EVENT_PTE_STORE
#define EVENT_SHOW CHOICE_EVENT_DSB
#define EVENT_UPDATE CHOICE_EVENT_ATOMIC
#define EVENT_BEGIN CHOICE_EVENT_ROOT
#define EVENT_FILL CHOICE_EVENT_NOTE
#define EVENT_LOSS CHOICE_EVENT_FAULT

/* Nobody else can see or change what this instruction does. */
static bool is_local(struct explorer *e, unsigned thread,
                     const struct litmus_insn *insn)
{
    return (insn->kind == LITMUS_LOCAL ||
            (insn->kind == LITMUS_DSB && !e->m->inject &&
             !litmus_is_waited_for(e->m, thread))) &&
           !litmus_must_wait(e->m, thread);
}

/*
 * What the thread's walks see of the descriptor of `var` is about to change:
 * the last moment at which its present value can be cached. A fill any earlier
 * would be the same one, as long as no invalidation comes in between, and then
 * it would be lost.
 */
static void offer_fill(struct explorer *e, unsigned thread, unsigned var)
{
    bool can_fill;

    if (e->reach[thread] >> var & 1 && !litmus_is_over(e->m, thread) &&
        litmus_cached(e->m, thread, var, &can_fill) != LITMUS_FRESH &&
        can_fill && choice(&e->stream, CHOICE_prefetch, 2)) {
        litmus_evict(e->m, thread, var);
        litmus_fill(e->m, thread, var);
    }
}

static void offer_fills(struct explorer *e, unsigned var, unsigned except)
{
    for (unsigned t = 0; !e->naive && t < e->m->test->threads; t++) {
        if (t != except) {
            offer_fill(e, t, var);
        }
    }
}

/* A store or an update becomes visible to all but the thread that made it. */
static void become_visible(struct explorer *e, unsigned var, bool is_update)
{
    unsigned who;

    if (is_update ? !litmus_is_late(e->m, var, &who)
                  : !litmus_is_hidden(e->m, var, &who)) {
        return;
    }
    offer_fills(e, var, who);
    if (is_update) {
        litmus_update(e->m, var);
    } else {
        litmus_show(e->m, var);
    }
}

/* The last moment at which it matters what is cached: the access. */
static void offer_loss(struct explorer *e, unsigned thread, unsigned var)
{
    bool can_fill;

    if (!e->naive && !e->m->began[thread] &&
        litmus_cached(e->m, thread, var, &can_fill) == LITMUS_STALE &&
        choice(&e->stream, CHOICE_evict, 2)) {
        litmus_evict(e->m, thread, var);
    }
}

/* What the hardware does just before the thread's next instruction. */
static void take_liberties(struct explorer *e, unsigned thread,
                           const struct litmus_insn *insn)
{
    int var, pte;

    litmus_target(e->m, thread, &var, &pte);
    if (pte >= 0 && insn->writes) {
        offer_fill(e, thread, (unsigned)pte);
    }
    if (var < 0) {
        return;
    }
    if (!(e->reach[thread] >> var & 1)) {
        e->reach[thread] |= UINT64_C(1) << var;
        e->reach_grew = true;
    }
    offer_loss(e, thread, (unsigned)var);
}

static void begin_store(struct explorer *e, unsigned thread)
{
    int var, pte;

    litmus_target(e->m, thread, &var, &pte);
    offer_loss(e, thread, (unsigned)var);
    offer_fills(e, (unsigned)var, thread);
    litmus_begin_store(e->m, thread);
}

static bool step(struct explorer *e, unsigned thread,
                 const struct litmus_insn *insn)
{
    if (insn->kind == LITMUS_ACCESS && !e->naive) {
        take_liberties(e, thread, insn);
    }
    if (insn->may_fail && litmus_has_monitor(e->m, thread) &&
        choice(&e->stream, CHOICE_operation, 2)) {
        litmus_lose_monitor(e->m, thread);
    }
    e->stored_by = -1;
    if (insn->kind == LITMUS_ACCESS && insn->writes) {
        int var;

        litmus_target(e->m, thread, &var, &e->stored);
        e->stored_by = e->stored >= 0 ? (int)thread : -1;
    }
    e->steps++;
    return litmus_step(e->m, thread);
}

/*
 * A store that the thread waits for, or its last: if it were hidden, all would
 * be as if it had been made later. True: it was.
 */
static bool show_stored(struct explorer *e, unsigned thread,
                        const struct litmus_insn *insn)
{
    unsigned who;

    if (e->stored_by != (int)thread || (insn && !insn->orders_stores)) {
        return false;
    }
    e->stored_by = -1;
    while (litmus_is_hidden(e->m, (unsigned)e->stored, &who) && who == thread) {
        become_visible(e, (unsigned)e->stored, false);
    }
    return true;
}

/* Threads that only compute do so at once. False: given up, or failed. */
bool explore_run_local(struct explorer *e)
{
    unsigned count = 0;

    for (unsigned t = 0; t < e->m->test->threads; t++) {
        for (;;) {
            const struct litmus_insn *insn = litmus_next(e->m, t);
            int stored_by = e->stored_by;

            if (show_stored(e, t, insn)) {
                continue;
            }
            if (!insn || !is_local(e, t, insn)) {
                break;
            }
            if (++count > LOCAL_MAX) {
                e->too_long = true;
                return false;
            }
            if (!step(e, t, insn)) {
                return false;
            }
            e->stored_by = stored_by;
        }
    }
    return true;
}

/* A fill and a loss of one page in one TLB, wherever they change anything. */
static unsigned gather_naively(struct explorer *e, unsigned thread,
                               unsigned var, struct choice_candidate *can)
{
    struct choice_candidate what = {.vcpu = thread, .object = var};
    bool can_fill;
    enum litmus_cached is = litmus_cached(e->m, thread, var, &can_fill);
    unsigned n = 0;

    if (is == LITMUS_ABSENT && can_fill) {
        what.event = EVENT_FILL;
        can[n++] = what;
    }
    if (is != LITMUS_ABSENT && !e->m->began[thread]) {
        what.event = EVENT_LOSS;
        can[n++] = what;
    }
    return n;
}

/* TLBIs that the thread could apply. */
static unsigned gather_owed(struct explorer *e, unsigned thread,
                            struct choice_candidate *can)
{
    unsigned owed[EXPLORE_OWED_MAX];
    unsigned n = litmus_owed(e->m, thread, owed, EXPLORE_OWED_MAX);

    for (unsigned i = 0; i < n; i++) {
        can[i] = (struct choice_candidate){
            .vcpu = thread, .event = EVENT_APPLY, .object = owed[i]};
    }
    return n;
}

/* What of this descriptor could become visible, or change. */
static unsigned gather_visible(struct explorer *e, unsigned var,
                               struct choice_candidate *can)
{
    struct choice_candidate what = {.object = var};
    unsigned n = 0, who;

    if (litmus_is_hidden(e->m, var, &who)) {
        what.event = EVENT_SHOW;
        can[n++] = what;
    }
    if (litmus_is_late(e->m, var, &who)) {
        what.event = EVENT_UPDATE;
        can[n++] = what;
    }
    /* Whoever touches it, it is the same; descriptors do not tell. */
    for (unsigned t = 0; n == 0 && t < e->m->test->threads; t++) {
        if (litmus_can_touch(e->m, t, var)) {
            what.vcpu = t;
            what.event = EVENT_TOUCH;
            can[n++] = what;
        }
    }
    return n;
}

/* What can happen next: a step of each thread, then liberties. 0: the end. */
unsigned explore_gather(struct explorer *e, struct choice_candidate *can)
{
    struct litmus_machine *m = e->m;
    bool is_over = true;
    unsigned n = 0;

    for (unsigned t = 0; t < m->test->threads; t++) {
        if (!litmus_is_over(m, t)) {
            is_over = false;
            if (!litmus_must_wait(m, t)) {
                can[n++] = (struct choice_candidate){.vcpu = t};
            }
            if (litmus_can_begin_store(m, t)) {
                can[n++] =
                    (struct choice_candidate){.vcpu = t, .event = EVENT_BEGIN};
            }
        }
    }
    if (is_over) {
        return 0;
    }
    for (unsigned t = 0; t < m->test->threads; t++) {
        if (!litmus_is_over(m, t)) {
            n += gather_owed(e, t, &can[n]);
        }
    }
    for (unsigned i = 0; i < m->test->vars; i++) {
        n += gather_visible(e, i, &can[n]);
    }
    for (unsigned t = 0; e->naive && t < m->test->threads; t++) {
        for (unsigned i = 0; i < m->test->vars; i++) {
            n += gather_naively(e, t, i, &can[n]);
        }
    }
    return n;
}

/* Everybody is at the end: what hardware has still to do. */
void explore_settle(struct explorer *e)
{
    for (unsigned i = 0; i < e->m->test->vars; i++) {
        unsigned who;

        if (litmus_is_late(e->m, i, &who)) {
            litmus_update(e->m, i);
        }
        while (litmus_is_hidden(e->m, i, &who)) {
            litmus_show(e->m, i);
        }
        for (unsigned t = 0; t < e->m->test->threads; t++) {
            if (litmus_can_touch(e->m, t, i)) {
                if (choice(&e->stream, CHOICE_visible, 2)) {
                    litmus_touch(e->m, t, i);
                }
                break;
            }
        }
    }
}

bool explore_happen(struct explorer *e, const struct choice_candidate *what)
{
    switch (what->event) {
    case EVENT_APPLY:
        litmus_apply(e->m, what->vcpu, (unsigned)what->object);
        return true;
    case EVENT_BEGIN:
        begin_store(e, what->vcpu);
        return true;
    case EVENT_SHOW:
    case EVENT_UPDATE:
        become_visible(e, (unsigned)what->object, what->event == EVENT_UPDATE);
        return true;
    case EVENT_TOUCH:
        litmus_touch(e->m, what->vcpu, (unsigned)what->object);
        return true;
    case EVENT_FILL:
        litmus_fill(e->m, what->vcpu, (unsigned)what->object);
        return true;
    case EVENT_LOSS:
        litmus_evict(e->m, what->vcpu, (unsigned)what->object);
        return true;
    default:
        return step(e, what->vcpu, litmus_next(e->m, what->vcpu));
    }
}
