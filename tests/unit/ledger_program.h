/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random programs for property tests of the ledger: vCPUs that unmap, protect
 * and flush in batches, their steps mixed, keeping all the rules.
 */
#ifndef TESTS_LEDGER_PROGRAM_H
#define TESTS_LEDGER_PROGRAM_H

#include "ledger_fixture.h"

#define VCPUS 4u
#define SPACES 2u
#define PAGES 16u /* of a vCPU and address space: nobody else changes them */
#define EMPTY 0xd000u

static const gpa_t roots[SPACES] = {0x1000, 0x8000};

enum task_kind { TASK_UNMAP, TASK_PROTECT, TASK_BATCH, TASKS };

/* What a vCPU is in the middle of. */
struct task {
    bool busy;
    enum task_kind kind;
    unsigned step, space, page;
    uint16_t asid;
    uint64_t frame, other;
};

struct machine {
    struct world *w;
    uint64_t state;
    uint16_t asid[SPACES];
    int loaded[VCPUS];        /* an address space; -1: the empty root */
    bool owes[VCPUS][SPACES]; /* a flush before it runs in user mode */
    bool user[VCPUS];
    struct task task[VCPUS];
    uint64_t frames;
};

static inline unsigned draw(struct machine *m, unsigned n)
{
    return (unsigned)(next(&m->state) % n);
}

static inline uint64_t user_page(uint64_t frame)
{
    return page_desc(frame << 12) | DESC_AP_EL0;
}

static inline gpa_t place(unsigned vcpu, unsigned space, unsigned page)
{
    return roots[space] + 0x3000 + (vcpu * PAGES + page) * 8;
}

static inline gva_t address(unsigned vcpu, unsigned page)
{
    return (gva_t)(vcpu * PAGES + page) << 12;
}

static inline void go(struct machine *m, unsigned vcpu, int space)
{
    load_root(m->w, vcpu, 0, space < 0 ? EMPTY : roots[space],
              space < 0 ? 0 : m->asid[space]);
    m->loaded[vcpu] = space;
    if (space >= 0) {
        walk(m->w, vcpu, 0);
    }
}

static inline void dsb(struct machine *m, unsigned vcpu, unsigned crm)
{
    ledger_dsb(m->w->ledger, vcpu, 1, ledger_dsb_of_crm(crm));
}

static inline void flush_all_here(struct machine *m, unsigned vcpu)
{
    const struct tlbi_op all = {.kind = TLBI_ALL, .scope = TLBI_LOCAL};

    ledger_tlbi(m->w->ledger, vcpu, 1, &all);
    dsb(m, vcpu, 7);
}

/* Everybody flushes, and every address space gets another ASID. */
static inline void rollover(struct machine *m)
{
    m->asid[0] = (uint16_t)(1 + draw(m, 7));
    m->asid[1] = (uint16_t)(1 + (m->asid[0] + draw(m, 6)) % 7);
    for (unsigned v = 0; v < VCPUS; v++) {
        int space = m->loaded[v];

        go(m, v, -1);
        flush_all_here(m, v);
        m->owes[v][0] = m->owes[v][1] = false;
        m->loaded[v] = space;
    }
    for (unsigned v = 0; v < VCPUS; v++) {
        go(m, v, m->loaded[v]);
    }
}

static inline void start(struct machine *m, struct world *w, uint64_t seed,
                         bool ipi)
{
    memset(m, 0, sizeof(*m));
    m->w = w;
    m->state = seed;
    world_init(w, VCPUS);
    w->config.rules = LEDGER_RULES_ALL;
    w->config.ipi = ipi;
    standard_layout(w, roots[0]);
    standard_layout(w, roots[1]);
    m->frames = 0x100;
    for (unsigned v = 0; v < VCPUS; v++) {
        for (unsigned s = 0; s < SPACES; s++) {
            for (unsigned p = 0; p < PAGES; p++) {
                w->memory[place(v, s, p) / 8] = user_page(++m->frames);
            }
        }
        m->loaded[v] = -1;
    }
    world_start(w);
    m->asid[0] = 1;
    m->asid[1] = 2;
    for (unsigned v = 0; v < VCPUS; v++) {
        go(m, v, (int)(v % SPACES));
    }
}

/* --- steps that keep the rules --- */

/* Back to user mode, or to another address space: what is owed is paid. */
static inline void pay(struct machine *m, unsigned vcpu)
{
    int space = m->loaded[vcpu];

    if (space >= 0 && m->owes[vcpu][space]) {
        flush_all_here(m, vcpu);
        m->owes[vcpu][0] = m->owes[vcpu][1] = false;
    }
}

static inline void to_user(struct machine *m, unsigned vcpu, bool user)
{
    if (user) {
        pay(m, vcpu);
    }
    m->user[vcpu] = user;
    ledger_el(m->w->ledger, vcpu, user ? 0 : 1);
}

/* The TLBIs for a page, and the wait for them where it cannot come later. */
static inline void flush(struct machine *m, unsigned vcpu, const struct task *t,
                         unsigned page)
{
    struct tlbi_op op = {
        .kind = draw(m, 4) ? TLBI_VA : TLBI_ASID,
        .scope = draw(m, 4) ? TLBI_IS : TLBI_OS,
        .va = address(vcpu, page),
        .size = 4096,
        .asid = t->asid,
        .last_level = draw(m, 2),
        .ttl_level = draw(m, 2) ? 3 : 0,
    };

    if (!m->w->config.ipi) {
        ledger_tlbi(m->w->ledger, vcpu, 1, &op);
        return;
    }
    op.scope = TLBI_LOCAL;
    for (unsigned v = 0; v < VCPUS; v++) {
        bool runs = m->loaded[v] == (int)t->space;

        if (v == vcpu || (runs && m->user[v])) {
            op.asid = m->asid[t->space];
            ledger_tlbi(m->w->ledger, v, 1, &op);
            dsb(m, v, 7);
        } else {
            m->owes[v][t->space] = true;
        }
    }
}

/* Unmap a page, write it out, free it, map another. */
static inline void step_unmap(struct machine *m, unsigned v, struct task *t)
{
    gpa_t at = place(v, t->space, t->page);
    gva_t va = address(v, t->page);

    switch (t->step++) {
    case 0:
        t->frame = m->w->memory[at / 8] & DESC_ADDR_MASK;
        ledger_op_begin(m->w->ledger, v, 0, 2, va, va + 4096,
                        LEDGER_CONTRACT_NOACCESS);
        break;
    case 1:
        store(m->w, v, 1, at, 0);
        break;
    case 2:
        dsb(m, v, draw(m, 2) ? 10 : 11);
        break;
    case 3:
        t->asid = m->asid[t->space]; /* a rollover may come in between */
        break;
    case 4:
        flush(m, v, t, t->page);
        break;
    case 5:
        dsb(m, v, draw(m, 2) ? 11 : 15);
        break;
    case 6:
        if (m->loaded[v] == (int)t->space) {
            ledger_io_begin(m->w->ledger, v, 1, t->frame);
        }
        break;
    case 7:
        ledger_frame_free(m->w->ledger, v, 1, t->frame);
        break;
    case 8:
        ledger_op_end(m->w->ledger, v, 1, 0, 2);
        break;
    default:
        store(m->w, v, 1, at, user_page(++m->frames));
        t->busy = false;
    }
}

/* Make a page read-only, copy it, make it writable again. */
static inline void step_protect(struct machine *m, unsigned v, struct task *t)
{
    gpa_t at = place(v, t->space, t->page);
    gva_t va = address(v, t->page);
    uint64_t desc = m->w->memory[at / 8];

    switch (t->step++) {
    case 0:
        ledger_op_begin(m->w->ledger, v, 0, 3, va, va + 4096,
                        LEDGER_CONTRACT_NOWRITE);
        break;
    case 1:
        store(m->w, v, 1, at, desc | DESC_AP_READ_ONLY);
        break;
    case 2:
        dsb(m, v, 11);
        break;
    case 3:
        t->asid = m->asid[t->space];
        break;
    case 4:
        flush(m, v, t, t->page);
        break;
    case 5:
        dsb(m, v, 11);
        break;
    case 6:
        ledger_copy_begin(m->w->ledger, v, 1, desc & DESC_ADDR_MASK);
        break;
    case 7:
        ledger_op_end(m->w->ledger, v, 1, 0, 3);
        break;
    default:
        store(m->w, v, 1, at, desc & ~DESC_AP_READ_ONLY);
        t->busy = false;
    }
}

/* Reclaim: two pages, a TLBI for each, one wait for both. */
static inline void step_batch(struct machine *m, unsigned v, struct task *t)
{
    gpa_t at = place(v, t->space, t->page);
    unsigned second = (t->page + 1) % PAGES;
    gpa_t other = place(v, t->space, second);

    switch (t->step++) {
    case 0:
        t->frame = m->w->memory[at / 8] & DESC_ADDR_MASK;
        t->other = m->w->memory[other / 8] & DESC_ADDR_MASK;
        store(m->w, v, 1, at, 0);
        break;
    case 1:
        dsb(m, v, 10);
        t->asid = m->asid[t->space];
        break;
    case 2:
        flush(m, v, t, t->page);
        break;
    case 3:
        store(m->w, v, 1, other, 0);
        break;
    case 4:
        dsb(m, v, 10);
        t->asid = m->asid[t->space];
        break;
    case 5:
        flush(m, v, t, second);
        break;
    case 6:
        dsb(m, v, 11);
        break;
    case 7:
        ledger_frame_free(m->w->ledger, v, 1, t->frame);
        break;
    case 8:
        ledger_frame_free(m->w->ledger, v, 1, t->other);
        break;
    default:
        store(m->w, v, 1, at, user_page(++m->frames));
        store(m->w, v, 1, other, user_page(++m->frames));
        t->busy = false;
    }
}

static inline void begin_task(struct machine *m, unsigned v)
{
    struct task *t = &m->task[v];

    *t = (struct task){
        .busy = true,
        .kind = (enum task_kind)draw(m, TASKS),
        .space = (unsigned)m->loaded[v],
        .page = draw(m, PAGES),
    };
}

static inline void step(struct machine *m)
{
    unsigned v = draw(m, VCPUS);
    struct task *t = &m->task[v];

    if (draw(m, 200) == 0) {
        rollover(m);
    } else if (t->busy) {
        switch (t->kind) {
        case TASK_UNMAP:
            step_unmap(m, v, t);
            break;
        case TASK_PROTECT:
            step_protect(m, v, t);
            break;
        default:
            step_batch(m, v, t);
        }
    } else if (m->user[v]) {
        to_user(m, v, false);
    } else if (draw(m, 3) == 0) {
        go(m, v, (int)draw(m, SPACES + 1) - 1);
    } else if (m->loaded[v] < 0 || draw(m, 3) == 0) {
        to_user(m, v, true);
    } else {
        begin_task(m, v);
    }
}

#endif
