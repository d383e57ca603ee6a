/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's rules about what the program says it is doing: software that
 * walks tables without a lock (S8), requests to flush (S11), pages that are
 * clean (S12). Single thread; see ledger_priv.h.
 */
#include <string.h>

#include "ledger_priv.h"

/* --- S8: walks by software --- */

void ledger_soft_walk_begin(struct ledger *l, unsigned vcpu, gpa_t root)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    ledger_soft_walk_end(l, vcpu);
    ledger_touch(l, me, sizeof(*me));
    me->walked = root ? root & DESC_ADDR_MASK : me->loaded[0].root;
}

void ledger_soft_walk_end(struct ledger *l, unsigned vcpu)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];
    unsigned kept = 0;

    if (me->walked == LEDGER_NO_ROOT) {
        return;
    }
    ledger_touch(l, me, sizeof(*me));
    me->walked = LEDGER_NO_ROOT;
    if (!l->s.pins) {
        return;
    }
    ledger_touch(l, l->s.pin, l->s.pins * sizeof(*l->s.pin));
    for (unsigned i = 0; i < l->s.pins; i++) {
        l->s.pin[i].walkers &= ~ledger_bit(vcpu);
        if (l->s.pin[i].walkers) {
            l->s.pin[kept++] = l->s.pin[i];
        }
    }
    l->s.pins = kept;
}

void ledger_said_unlinked(struct ledger *l, unsigned vcpu, uint64_t pc,
                          const struct ledger_table *t)
{
    struct ledger_pin *pin = &l->s.pin[l->s.pins];
    uint64_t walkers = 0;

    for (unsigned v = 0; l->full && v < l->config.vcpus; v++) {
        if (l->s.vcpu[v].walked == t->root->page) {
            walkers |= ledger_bit(v);
        }
    }
    if (!walkers) {
        return;
    }
    if (l->s.pins == LEDGER_PINS_MAX) {
        l->counts.out_of_memory = true;
        return;
    }
    ledger_touch(l, pin, sizeof(*pin));
    *pin = (struct ledger_pin){
        .page = t->page,
        .pa = t->parent->page + t->parent_index * 8,
        .walkers = walkers,
        .level = t->parent->level,
        .has_va = !t->shared,
        .va = t->va,
        .asid = t->root->asid,
        .vcpu = vcpu,
        .pc = pc,
    };
    l->s.pins++;
}

static void judge_pin(struct ledger *l, unsigned vcpu, uint64_t pc,
                      const struct ledger_pin *pin)
{
    struct ledger_violation v = {
        .rule = LEDGER_TABLE_FREED,
        .step = LEDGER_STEP_WALKER,
        .why = LEDGER_REMOVED,
        .pa = pin->pa,
        .level = pin->level,
        .has_va = pin->has_va,
        .va = pin->va,
        .size = UINT64_C(1) << mmu_level_shift(pin->level),
        .asid = pin->asid,
        .old = pin->page | DESC_VALID | DESC_TABLE_OR_PAGE,
        .break_vcpu = pin->vcpu,
        .break_pc = pin->pc,
        .now_vcpu = vcpu,
        .now_pc = pc,
        .dirty = pin->walkers,
        .frame = pin->page,
    };

    ledger_report(l, &v);
}

/* --- S11: requests to flush --- */

static void lost(struct ledger *l, unsigned vcpu, uint64_t pc, uint64_t who)
{
    struct ledger_violation v = {
        .rule = LEDGER_LOST,
        .step = LEDGER_STEP_SERVICE,
        .break_vcpu = vcpu,
        .break_pc = pc,
        .now_vcpu = vcpu,
        .now_pc = pc,
        .dirty = who,
    };

    ledger_report(l, &v);
}

void ledger_flush_ask(struct ledger *l, unsigned vcpu, uint64_t vcpus)
{
    for (unsigned v = 0; v < l->config.vcpus; v++) {
        struct ledger_vcpu *other = &l->s.vcpu[v];

        if (vcpus & ledger_bit(v)) {
            ledger_touch(l, other, sizeof(*other));
            other->asked_by |= ledger_bit(vcpu);
        }
    }
}

void ledger_flush_waited(struct ledger *l, unsigned vcpu, uint64_t pc,
                         uint64_t vcpus)
{
    uint64_t who = 0;

    for (unsigned v = 0; v < l->config.vcpus; v++) {
        struct ledger_vcpu *other = &l->s.vcpu[v];

        if (vcpus & ledger_bit(v) && other->asked_by & ledger_bit(vcpu)) {
            who |= ledger_bit(v);
            ledger_flush_served(l, v, ledger_bit(vcpu)); /* told once */
        }
    }
    if (who) {
        lost(l, vcpu, pc, who);
    }
}

void ledger_flush_served(struct ledger *l, unsigned vcpu, uint64_t askers)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    ledger_touch(l, me, sizeof(*me));
    me->asked_by &= ~askers;
}

void ledger_flush_resume(struct ledger *l, unsigned vcpu, uint64_t pc,
                         unsigned resumed)
{
    struct ledger_vcpu *other = &l->s.vcpu[resumed];

    if (resumed < l->config.vcpus && other->asked_by) {
        lost(l, vcpu, pc, ledger_bit(resumed));
        ledger_flush_served(l, resumed, UINT64_MAX); /* told once */
    }
}

/* --- S12: pages that are clean --- */

static uint64_t hash_of(const void *page)
{
    const uint64_t *word = page;
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);

    for (unsigned i = 0; i < MMU_PAGE_SIZE / sizeof(*word); i++) {
        hash = (hash ^ __atomic_load_n(&word[i], __ATOMIC_RELAXED)) *
               UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    return hash;
}

/* The link to the page's note, or to where the list ends. */
static struct ledger_clean **find_clean(struct ledger *l, gpa_t page)
{
    struct ledger_clean **link =
        &l->s.clean[(page >> MMU_PAGE_SHIFT) % LEDGER_CLEAN_BUCKETS];

    while (*link && (*link)->page != page) {
        link = &(*link)->next;
    }
    return link;
}

static void forget_clean(struct ledger *l, gpa_t page)
{
    struct ledger_clean **link = find_clean(l, page);
    struct ledger_clean *clean = *link;

    if (clean) {
        ledger_touch(l, link, sizeof(*link));
        *link = clean->next;
        ledger_release(l, LEDGER_CLEAN_CLASS, clean);
    }
}

void ledger_frame_clean(struct ledger *l, unsigned vcpu, uint64_t pc,
                        gpa_t page)
{
    const void *contents;
    struct ledger_clean **link, *clean;

    page &= ~MMU_PAGE_MASK;
    contents = l->full && l->config.page
                   ? l->config.page(l->config.opaque, page)
                   : NULL;
    if (!contents) {
        return;
    }
    link = find_clean(l, page);
    clean = *link;
    if (!clean) {
        clean = ledger_alloc(l, LEDGER_CLEAN_CLASS);
        if (!clean) {
            return;
        }
        ledger_touch(l, link, sizeof(*link));
        *link = clean;
    }
    ledger_touch(l, clean, sizeof(*clean));
    clean->page = page;
    clean->hash = hash_of(contents);
    clean->vcpu = vcpu;
    clean->pc = pc;
}

void ledger_frame_drop(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t page)
{
    struct ledger_clean *clean = *find_clean(l, page & ~MMU_PAGE_MASK);
    struct ledger_violation v;
    const void *contents;

    page &= ~MMU_PAGE_MASK;
    contents = clean ? l->config.page(l->config.opaque, page) : NULL;
    if (contents && hash_of(contents) != clean->hash) {
        v = (struct ledger_violation){
            .rule = LEDGER_DIRTY,
            .step = LEDGER_STEP_CLEAN,
            .frame = page,
            .break_vcpu = clean->vcpu,
            .break_pc = clean->pc,
            .now_vcpu = vcpu,
            .now_pc = pc,
        };
        ledger_report(l, &v);
    }
    forget_clean(l, page);
}

/* --- the end of a page --- */

void ledger_said_free(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t page)
{
    forget_clean(l, page);
    for (unsigned i = 0; i < l->s.pins; i++) {
        struct ledger_pin *pin = &l->s.pin[i];

        if (pin->page == page) {
            judge_pin(l, vcpu, pc, pin);
            ledger_touch(l, l->s.pin, l->s.pins * sizeof(*pin));
            l->s.pins--;
            memmove(pin, pin + 1, (l->s.pins - i) * sizeof(*pin));
            i--;
        }
    }
}
