/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger: from what a program does to the state of its descriptors. Single
 * thread; see ledger_priv.h.
 */
#include "mmu/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "ledger_priv.h"

#define ARENA ((size_t)64 << 20)

void ledger_root_load(struct ledger *l, unsigned vcpu, uint64_t pc,
                      unsigned half, gpa_t root, uint16_t asid)
{
    struct ledger_loaded *loaded = &l->s.vcpu[vcpu].loaded[half];
    const struct ledger_loaded before = *loaded;
    struct ledger_table *t = ledger_table_find(l, root);
    bool is_tagged = l->full && half == 0;

    if (is_tagged && (before.root != root || before.asid != asid)) {
        ledger_tag_leave(l, vcpu);
    }
    ledger_touch(l, loaded, sizeof(*loaded));
    loaded->root = root;
    loaded->asid = asid;
    l->s.looked &= ~ledger_bit(vcpu);
    if (t) {
        ledger_touch(l, t->root, offsetof(struct ledger_table, desc));
        t->root->ever_loaded |= ledger_bit(vcpu);
        ledger_touch(l, t, offsetof(struct ledger_table, desc));
        t->asid = asid;
    }
    if (is_tagged) {
        ledger_tag_load(l, vcpu, pc, root, asid);
    }
    if (before.root == root && !(is_tagged && before.asid != asid)) {
        return;
    }
    ledger_record_new_holder(l, root, half, vcpu, asid);
    if (before.root == LEDGER_NO_ROOT || before.root == root) {
        return;
    }
    t = ledger_table_find(l, before.root);
    if (t) {
        ledger_table_forget_idle(l, t);
    }
}

void ledger_vcpu_off(struct ledger *l, unsigned vcpu)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    ledger_touch(l, me, sizeof(*me));
    me->loaded[0].root = me->loaded[1].root = LEDGER_NO_ROOT;
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        for (struct ledger_table *t = l->s.bucket[i]; t; t = t->next) {
            ledger_touch(l, &t->ever_loaded, sizeof(t->ever_loaded));
            t->ever_loaded &= ~ledger_bit(vcpu);
        }
    }
    for (struct ledger_record *r = l->s.open; r; r = r->next) {
        ledger_record_clean(l, r, ledger_bit(vcpu));
        r->cleaned &= ~ledger_bit(vcpu); /* nobody flushed it */
        r->added &= ~ledger_bit(vcpu);
    }
    ledger_tag_off(l, vcpu);
    ledger_sweep(l);
}

/* --- stores --- */

static void note_fault_change(struct ledger *l, gpa_t pa)
{
    for (unsigned v = 0; v < l->config.vcpus; v++) {
        struct ledger_vcpu *me = &l->s.vcpu[v];

        if (me->fault_pa == pa) {
            ledger_touch(l, me, sizeof(*me));
            me->fault_pa = 0;
        }
    }
}

static void put(struct ledger *l, struct ledger_table *t, unsigned index,
                uint64_t now)
{
    ledger_touch(l, &t->desc[index], sizeof(t->desc[index]));
    t->desc[index] = now;
    if (l->full) {
        note_fault_change(l, t->page + index * 8);
    }
}

static void be_born(struct ledger *l, struct ledger_table *t, unsigned index)
{
    ledger_touch(l, &t->born[index], sizeof(t->born[index]));
    t->born[index] = ++l->s.seq;
    if (!t->parent && !t->filled) {
        ledger_touch(l, &t->filled, sizeof(t->filled));
        t->filled = true;
        ledger_tag_filled(l, t->page);
    }
}

/* Does it now allow less than it did, in the same place? */
static bool is_reduced(const struct ledger *l, uint64_t old, uint64_t now,
                       unsigned level)
{
    return l->full &&
           ledger_lost(old, now, level, l->config.hardware_dirty) != 0;
}

/*
 * Stores to one place are seen in one order: who finds this one does not find
 * what was there before the break, so its writer's DSB shows that one, too.
 */
static void add_writer(struct ledger *l, struct ledger_record *r, unsigned vcpu)
{
    if (!r->visible) {
        ledger_touch(l, r, sizeof(*r));
        r->writers |= ledger_bit(vcpu);
    }
}

void ledger_store(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t pa,
                  uint64_t now)
{
    struct ledger_table *t = ledger_table_find(l, pa);
    unsigned index = (pa & MMU_PAGE_MASK) / 8;
    enum ledger_change raw = LEDGER_CHANGE_NONE, change = LEDGER_CHANGE_NONE;
    bool was, is;
    uint64_t old;

    if (!t || t->desc[index] == now) {
        return;
    }
    if (t->unlinked) {
        /* Emptying it is fine; anything else is another use. */
        if (now != 0) {
            ledger_judge_reuse(l, vcpu, pc, t, index, now);
        }
        put(l, t, index, now);
        return;
    }
    old = t->desc[index];
    was = desc_kind(old, t->level) != DESC_KIND_INVALID;
    is = desc_kind(now, t->level) != DESC_KIND_INVALID;
    if (was && is) {
        raw = ledger_change(old, now, t->level);
        change = ledger_change_of(l, old, now, t->level);
    }
    if (change != LEDGER_CHANGE_NONE) {
        ledger_judge_replace(l, vcpu, pc, t, index, now, change);
    } else if (!was && is && t->record[index]) {
        ledger_judge_make(l, vcpu, pc, t->record[index], now);
    }
    l->counts.makes += !was && is;
    if (is) {
        ledger_judge_link(l, vcpu, pc, t, index, now);
    }
    put(l, t, index, now);
    if (l->full) {
        ledger_context_store(l, vcpu, pc, t, index, now);
    } else {
        raw = change; /* what reads the same is no change at all */
    }
    if (was && (!is || raw != LEDGER_CHANGE_NONE)) {
        ledger_broken(l, vcpu, pc, t, index, old,
                      is ? LEDGER_REPLACED : LEDGER_REMOVED);
    } else if (was && is_reduced(l, old, now, t->level)) {
        ledger_broken(l, vcpu, pc, t, index, old, LEDGER_REDUCED);
    } else if (t->record[index]) {
        add_writer(l, t->record[index], vcpu);
    }
    if (is && (!was || raw != LEDGER_CHANGE_NONE)) {
        be_born(l, t, index);
    }
    if (t->record[index] && !t->record[index]->holders) {
        ledger_sweep(l); /* what nobody can hold is clean */
    }
}

void ledger_update(struct ledger *l, gpa_t pa, uint64_t now)
{
    struct ledger_table *t = ledger_table_find(l, pa);

    if (t) {
        put(l, t, (pa & MMU_PAGE_MASK) / 8, now);
    }
}

/* --- the whole --- */

struct ledger *ledger_new(const struct ledger_config *config)
{
    struct ledger *l;

    if (config->vcpus == 0 || config->vcpus > LEDGER_VCPUS_MAX) {
        return NULL;
    }
    l = calloc(1, sizeof(*l));
    if (!l) {
        return NULL;
    }
    l->config = *config;
    if (!l->config.rules) {
        l->config.rules = LEDGER_RULES_ALL;
    }
    l->full = (l->config.rules & ~LEDGER_RULES_BBM) != 0;
    if (ledger_arena_init(l, config->arena ? config->arena : ARENA)) {
        l->s.vcpu = ledger_reserve(l, config->vcpus * sizeof(*l->s.vcpu));
    }
    if (l->s.vcpu) {
        l->s.op = ledger_reserve(l, LEDGER_OPS_MAX * sizeof(*l->s.op));
    }
    if (l->s.op) {
        l->s.pin = ledger_reserve(l, LEDGER_PINS_MAX * sizeof(*l->s.pin));
    }
    if (!l->s.pin) {
        ledger_free(l);
        return NULL;
    }
    for (unsigned v = 0; v < config->vcpus; v++) {
        struct ledger_vcpu *vcpu = &l->s.vcpu[v];

        vcpu->loaded[0].root = vcpu->loaded[1].root = LEDGER_NO_ROOT;
        vcpu->walked = LEDGER_NO_ROOT;
        vcpu->el = 1;
    }
    return l;
}

void ledger_free(struct ledger *l)
{
    if (l) {
        ledger_arena_free(l);
        free(l);
    }
}

void ledger_count(const struct ledger *l, struct ledger_counts *out)
{
    *out = l->counts;
    out->tables = l->s.tables;
    out->open = l->s.records;
}
