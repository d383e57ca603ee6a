/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger and random programs: one that keeps all rules is not blamed,
 * whatever its vCPUs' steps are mixed like; with one step left out it is blamed
 * for the right rule and cause; and a rollback is as if nothing had happened.
 */
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

static unsigned draw(struct machine *m, unsigned n)
{
    return (unsigned)(next(&m->state) % n);
}

static uint64_t user_page(uint64_t frame)
{
    return page_desc(frame << 12) | DESC_AP_EL0;
}

static gpa_t place(unsigned vcpu, unsigned space, unsigned page)
{
    return roots[space] + 0x3000 + (vcpu * PAGES + page) * 8;
}

static gva_t address(unsigned vcpu, unsigned page)
{
    return (gva_t)(vcpu * PAGES + page) << 12;
}

static void go(struct machine *m, unsigned vcpu, int space)
{
    load_root(m->w, vcpu, 0, space < 0 ? EMPTY : roots[space],
              space < 0 ? 0 : m->asid[space]);
    m->loaded[vcpu] = space;
    if (space >= 0) {
        walk(m->w, vcpu, 0);
    }
}

static void dsb(struct machine *m, unsigned vcpu, unsigned crm)
{
    ledger_dsb(m->w->ledger, vcpu, 1, ledger_dsb_of_crm(crm));
}

static void flush_all_here(struct machine *m, unsigned vcpu)
{
    const struct tlbi_op all = {.kind = TLBI_ALL, .scope = TLBI_LOCAL};

    ledger_tlbi(m->w->ledger, vcpu, 1, &all);
    dsb(m, vcpu, 7);
}

/* Everybody flushes, and every address space gets another ASID. */
static void rollover(struct machine *m)
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

static void start(struct machine *m, struct world *w, uint64_t seed, bool ipi)
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
static void pay(struct machine *m, unsigned vcpu)
{
    int space = m->loaded[vcpu];

    if (space >= 0 && m->owes[vcpu][space]) {
        flush_all_here(m, vcpu);
        m->owes[vcpu][0] = m->owes[vcpu][1] = false;
    }
}

static void to_user(struct machine *m, unsigned vcpu, bool user)
{
    if (user) {
        pay(m, vcpu);
    }
    m->user[vcpu] = user;
    ledger_el(m->w->ledger, vcpu, user ? 0 : 1);
}

/* The TLBIs for a page, and the wait for them where it cannot come later. */
static void flush(struct machine *m, unsigned vcpu, const struct task *t,
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
static void step_unmap(struct machine *m, unsigned v, struct task *t)
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
static void step_protect(struct machine *m, unsigned v, struct task *t)
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
static void step_batch(struct machine *m, unsigned v, struct task *t)
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

static void begin_task(struct machine *m, unsigned v)
{
    struct task *t = &m->task[v];

    *t = (struct task){
        .busy = true,
        .kind = (enum task_kind)draw(m, TASKS),
        .space = (unsigned)m->loaded[v],
        .page = draw(m, PAGES),
    };
}

static void step(struct machine *m)
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

static void run_silently(bool ipi)
{
    static struct world w;
    static struct machine m;
    struct ledger_counts counts;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        start(&m, &w, seed, ipi);
        for (unsigned i = 0; i < 10000; i++) {
            step(&m);
            ck_assert_msg(w.count == 0, "seed %" PRIu64 ", step %u: %s %s",
                          seed, i, ledger_rule_name(w.found[0].rule),
                          ledger_step_name(w.found[0].step));
        }
        ledger_count(w.ledger, &counts);
        ck_assert_uint_gt(counts.breaks, 500);
        ck_assert_uint_gt(counts.reductions, 100);
        ck_assert(!counts.out_of_memory);
        ledger_free(w.ledger);
    }
}

START_TEST(a_program_that_keeps_the_rules_is_not_blamed)
{
    run_silently(false);
}
END_TEST

START_TEST(nor_one_whose_vcpus_flush_when_they_are_asked)
{
    run_silently(true);
}
END_TEST

/* --- a step left out --- */

enum left_out {
    LEFT_STORE_DSB,
    LEFT_ORDER, /* the TLBI comes first */
    LEFT_TLBI,
    LEFT_SCOPE,
    LEFT_ASID,
    LEFT_VA,
    LEFT_LEVEL,
    LEFT_WAIT,
    LEFT_WAIT_BY,
    LEFT_WAIT_KIND,
    LEFTS
};

static const struct {
    enum ledger_step step;
    unsigned cause;
} expected[LEFTS] = {
    [LEFT_STORE_DSB] = {LEDGER_STEP_ORDER, 7},
    [LEFT_ORDER] = {LEDGER_STEP_ORDER, 7},
    [LEFT_TLBI] = {LEDGER_STEP_TLBI, 0},
    [LEFT_SCOPE] = {LEDGER_STEP_SCOPE, 6},
    [LEFT_ASID] = {LEDGER_STEP_ASID, 6},
    [LEFT_VA] = {LEDGER_STEP_VA, 6},
    [LEFT_LEVEL] = {LEDGER_STEP_LEVEL, 6},
    [LEFT_WAIT] = {LEDGER_STEP_TLBI_DSB, 5},
    [LEFT_WAIT_BY] = {LEDGER_STEP_TLBI_BY, 5},
    [LEFT_WAIT_KIND] = {LEDGER_STEP_TLBI_KIND, 5},
};

static void wrong_flush(struct machine *m, unsigned v, gva_t va,
                        enum left_out left)
{
    struct ledger *l = m->w->ledger;
    struct tlbi_op op = {
        .kind = TLBI_VA,
        .scope = left == LEFT_SCOPE ? TLBI_LOCAL : TLBI_IS,
        .va = left == LEFT_VA ? va + 4096 : va,
        .size = 4096,
        .asid = m->asid[0] ^ (left == LEFT_ASID ? 8 : 0),
        .last_level = true,
        .ttl_level = left == LEFT_LEVEL ? 2 : 0,
    };

    if (left == LEFT_ORDER) {
        ledger_tlbi(l, v, 1, &op);
    }
    if (left != LEFT_STORE_DSB) {
        dsb(m, v, 10);
    }
    if (left != LEFT_TLBI && left != LEFT_ORDER) {
        ledger_tlbi(l, v, 1, &op);
    }
    if (left == LEFT_WAIT_BY) {
        dsb(m, (v + 1) % VCPUS, 11);
    } else if (left == LEFT_WAIT_KIND) {
        dsb(m, v, 10);
    } else if (left != LEFT_WAIT) {
        dsb(m, v, 11);
    }
}

static void check_blame(struct machine *m, enum ledger_rule rule,
                        enum left_out left, gpa_t at)
{
    const struct ledger_violation *v = &m->w->found[0];

    ck_assert_uint_eq(m->w->count, 1);
    ck_assert_int_eq(v->rule, rule);
    ck_assert_msg(v->step == expected[left].step, "%u: %s", left,
                  ledger_step_name(v->step));
    ck_assert_uint_eq(ledger_cause(v->step), expected[left].cause);
    ck_assert_uint_eq(v->pa, at);
    ck_assert_uint_eq(v->asid, m->asid[0]);
}

START_TEST(a_program_that_leaves_out_a_step_is_blamed_for_it)
{
    static struct world w;
    static struct machine m;
    static const enum ledger_rule rules[] = {LEDGER_FREE, LEDGER_RETURN,
                                             LEDGER_READER, LEDGER_UNCLEAN};

    for (unsigned i = 0; i < 4000; i++) {
        enum ledger_rule rule = rules[i % 4];
        enum left_out left;
        unsigned v, page;
        uint64_t frame;
        gpa_t at;
        gva_t va;

        start(&m, &w, i + 1, false);
        rollover(&m);
        for (v = 0; v < VCPUS; v++) {
            go(&m, v, 0);
        }
        left = (enum left_out)draw(&m, LEFTS);
        v = draw(&m, VCPUS);
        page = draw(&m, PAGES);
        at = place(v, 0, page);
        va = address(v, page);
        frame = w.memory[at / 8] & DESC_ADDR_MASK;
        ledger_op_begin(w.ledger, v, 0, 2, va, va + 4096,
                        LEDGER_CONTRACT_NOACCESS);
        store(&w, v, 1, at, 0);
        wrong_flush(&m, v, va, left);
        if (rule == LEDGER_FREE) {
            ledger_frame_free(w.ledger, v, 2, frame);
        } else if (rule == LEDGER_RETURN) {
            ledger_op_end(w.ledger, v, 2, 0, 2);
        } else if (rule == LEDGER_READER) {
            ledger_io_begin(w.ledger, v, 2, frame);
        } else {
            store(&w, v, 2, at, user_page(++m.frames));
        }
        check_blame(&m, rule, left, at);
        ck_assert_uint_eq(w.found[0].now_pc, 2);
        ck_assert_uint_eq(w.found[0].break_pc, 1);
        ck_assert_uint_eq(w.found[0].frame,
                          rule == LEDGER_FREE || rule == LEDGER_READER ? frame
                                                                       : 0);
        ledger_free(w.ledger);
    }
}
END_TEST

/* Who is not in user mode, or does not have the root, is told when he is. */
START_TEST(a_debt_is_told_when_the_debtor_comes_back)
{
    static struct world w;
    static struct machine m;

    for (unsigned i = 0; i < 400; i++) {
        bool ipi = i & 1, pays = i & 2;
        unsigned v, debtor;

        start(&m, &w, i + 1, ipi);
        for (v = 0; v < VCPUS; v++) {
            go(&m, v, 0);
        }
        v = draw(&m, VCPUS);
        debtor = (v + 1 + draw(&m, VCPUS - 1)) % VCPUS;
        for (unsigned o = 0; o < VCPUS; o++) {
            if (!ipi || o != v) {
                go(&m, o, o == debtor ? (ipi ? 0 : 1) : -1);
            }
        }
        store(&w, v, 1, place(0, 0, 0), 0);
        dsb(&m, v, 11);
        for (unsigned o = 0; o < VCPUS; o++) {
            if (o != debtor) {
                flush_all_here(&m, o);
            }
        }
        ledger_frame_free(w.ledger, v, 2, 0x101000);
        ck_assert_uint_eq(w.count, 0);
        ck_assert(ledger_late(w.ledger) >> debtor & 1);
        ck_assert(!(ledger_late(w.ledger) >> v & 1));
        go(&m, debtor, 0);
        if (pays) {
            flush_all_here(&m, debtor);
            ck_assert(!(ledger_late(w.ledger) >> debtor & 1));
        }
        ledger_el(w.ledger, debtor, 0);
        ck_assert_uint_eq(w.count, pays ? 0 : 1);
        if (!pays) {
            ck_assert(w.found[0].is_late);
            ck_assert_int_eq(w.found[0].rule, LEDGER_FREE);
            ck_assert_uint_eq(w.found[0].dirty, UINT64_C(1) << debtor);
            ck_assert_uint_eq(w.found[0].now_vcpu, v);
            ck_assert_uint_eq(w.found[0].now_pc, 2);
            ck_assert_uint_eq(w.found[0].frame, 0x101000);
        }
        ledger_free(w.ledger);
    }
}
END_TEST

/* --- rollback --- */

/* As step(), but now and then one of them is left out, or doubled. */
static void careless_step(struct machine *m)
{
    struct task *t = &m->task[draw(m, VCPUS)];

    if (t->busy && t->step > 1 && t->step < 7 && draw(m, 20) == 0) {
        t->step++;
    }
    step(m);
    if (draw(m, 100) == 0) {
        unsigned v = draw(m, VCPUS);

        /* A table goes, and comes back. */
        store(m->w, v, 1, roots[0] + 0x2000, 0);
        if (draw(m, 2)) {
            ledger_frame_free(m->w->ledger, v, 1, roots[0] + 0x3000);
        }
        store(m->w, v, 1, roots[0] + 0x2000,
              (roots[0] + 0x3000) | DESC_VALID | DESC_TABLE_OR_PAGE);
        walk(m->w, v, 0);
    }
    if (draw(m, 300) == 0) {
        unsigned v = draw(m, VCPUS);

        ledger_vcpu_off(m->w->ledger, v);
        go(m, v, 0);
    }
    if (draw(m, 10) == 0) {
        ledger_fault(m->w->ledger, draw(m, VCPUS), 1, address(0, draw(m, 2)));
        ledger_hit(m->w->ledger, draw(m, VCPUS), address(0, draw(m, 4)));
    }
}

/* What happens in so many steps, as a number. */
static uint64_t trail(struct machine *m, unsigned steps)
{
    uint64_t sum = 14695981039346656037u;

    for (unsigned i = 0; i < steps; i++) {
        m->w->count = 0;
        careless_step(m);
        for (unsigned j = 0; j < m->w->count; j++) {
            const struct ledger_violation *v = &m->w->found[j];
            const uint64_t words[] = {
                i,           v->rule,     v->step,    v->pa,
                v->asid,     v->dirty,    v->dormant, v->old,
                v->now,      v->now_vcpu, v->frame,   v->break_vcpu,
                v->is_late,  v->op,       v->hits,    v->tlbi.vcpu,
                v->dsb.vcpu,
            };

            for (unsigned k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
                sum = (sum ^ words[k]) * UINT64_C(0x100000001b3);
            }
        }
    }
    return sum;
}

START_TEST(after_a_rollback_all_is_as_it_was)
{
    static struct world w, before_world;
    static struct machine m, before;
    uint64_t found = 0;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct ledger_counts counts, again;

        start(&m, &w, seed, seed & 1);
        trail(&m, 500);
        ledger_rollback(w.ledger); /* without a checkpoint: nothing */
        for (unsigned point = 0; point < 6; point++) {
            uint64_t hash, first;

            ck_assert(ledger_checkpoint(w.ledger));
            hash = ledger_hash(w.ledger);
            before_world = w;
            before = m;
            ledger_count(w.ledger, &counts);
            first = trail(&m, 400);
            found += first != 14695981039346656037u;
            for (unsigned run = 0; run < 3; run++) {
                w = before_world;
                m = before;
                ledger_rollback(w.ledger);
                ck_assert_uint_eq(ledger_hash(w.ledger), hash);
                ledger_count(w.ledger, &again);
                ck_assert_uint_eq(again.open, counts.open);
                ck_assert_uint_eq(again.tables, counts.tables);
                ck_assert_uint_ge(again.breaks, counts.breaks);
                if (run == 1) {
                    trail(&m, 50); /* another way in between */
                    continue;
                }
                ck_assert_uint_eq(trail(&m, 400), first);
            }
            w = before_world;
            m = before;
            ledger_rollback(w.ledger);
            m.state += point;
            trail(&m, 300);
        }
        ledger_free(w.ledger);
    }
    ck_assert_uint_gt(found, 20); /* there was something to tell */
}
END_TEST

/* --- the memory --- */

START_TEST(when_memory_is_short_it_says_so)
{
    static struct world w;
    struct ledger_counts counts;

    world_init(&w, 2);
    w.config.rules = LEDGER_RULES_ALL;
    w.config.arena = 64 << 10;
    for (unsigned i = 0; i < 512; i++) {
        w.memory[0x4000 / 8 + i] = page_desc(0x10000000 + i * 0x1000);
    }
    standard_tables(&w);
    for (unsigned i = 0; i < 512; i++) {
        store(&w, 0, 1, 0x4000 + i * 8, 0);
    }
    ledger_count(w.ledger, &counts);
    ck_assert(counts.out_of_memory);
    ledger_free(w.ledger);
    w.config.arena = 1024;
    w.config.vcpus = LEDGER_VCPUS_MAX;
    ck_assert_ptr_null(ledger_new(&w.config));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_ledger");
    TCase *tc = tcase_create("core");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_program_that_keeps_the_rules_is_not_blamed);
    tcase_add_test(tc, nor_one_whose_vcpus_flush_when_they_are_asked);
    tcase_add_test(tc, a_program_that_leaves_out_a_step_is_blamed_for_it);
    tcase_add_test(tc, a_debt_is_told_when_the_debtor_comes_back);
    tcase_add_test(tc, after_a_rollback_all_is_as_it_was);
    tcase_add_test(tc, when_memory_is_short_it_says_so);
    suite_add_tcase(suite, tc);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
