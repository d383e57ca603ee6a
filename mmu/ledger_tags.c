/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's tags: which vCPU may have entries of which root under which
 * ASID, and S9. Of the low half only: the high one is the kernel's, and global.
 * Single thread; see ledger_priv.h.
 *
 * A vCPU holds a tag from its first load of that root and ASID until a TLBI of
 * everything or of that ASID reached it while it had loaded something else,
 * and the issuer waited for it.
 */
#include "ledger_priv.h"

static void unlink_tag(struct ledger *l, struct ledger_tag *t)
{
    ledger_touch(l, t->link, sizeof(*t->link));
    *t->link = t->next;
    if (t->next) {
        ledger_touch(l, t->next, sizeof(void *) * 2);
        t->next->link = t->link;
    }
}

static void link_first(struct ledger *l, struct ledger_tag *t)
{
    ledger_touch(l, t, sizeof(void *) * 2);
    t->next = l->s.tags;
    t->link = &l->s.tags;
    if (t->next) {
        ledger_touch(l, t->next, sizeof(void *) * 2);
        t->next->link = &t->next;
    }
    l->s.tags = t;
}

static void free_if_idle(struct ledger *l, struct ledger_tag *t)
{
    if (!t->holders || (t->gone && !t->filled)) {
        unlink_tag(l, t);
        ledger_release(l, LEDGER_TAG_CLASS, t);
    }
}

static struct ledger_tag *find(struct ledger *l, gpa_t root, uint16_t asid)
{
    struct ledger_tag *t = l->s.tags;

    while (t && (t->gone || t->root != root || t->asid != asid)) {
        t = t->next;
    }
    return t;
}

static bool is_loaded(const struct ledger *l, unsigned vcpu,
                      const struct ledger_tag *t)
{
    const struct ledger_loaded *loaded = &l->s.vcpu[vcpu].loaded[0];

    return !t->gone && loaded->root == t->root && loaded->asid == t->asid;
}

/* Does the root lead anywhere? One that never did has no entries. */
static bool is_filled(struct ledger *l, gpa_t root)
{
    struct ledger_table *table = ledger_table_find(l, root);

    if (table) {
        return table->filled || table->parent;
    }
    for (unsigned i = 0; i < LEDGER_ENTRIES; i++) {
        uint64_t desc;

        if (l->config.read64(l->config.opaque, root + i * 8, &desc) &&
            desc & DESC_VALID) {
            return true;
        }
    }
    return false;
}

/* where: whose entries it would use, or who runs with the same ASID. */
static void tell(struct ledger *l, unsigned vcpu, uint64_t pc,
                 const struct ledger_tag *mine, struct ledger_tag *owner,
                 uint64_t where)
{
    struct ledger_violation v = {
        .rule = LEDGER_TAG,
        .step = where & ledger_bit(vcpu) ? LEDGER_STEP_TLBI : LEDGER_STEP_BREAK,
        .pa = mine->root,
        .asid = mine->asid,
        .old = owner->root,
        .now = mine->root,
        .break_vcpu = (unsigned)__builtin_ctzll(where),
        .break_pc = owner->pc,
        .now_vcpu = vcpu,
        .now_pc = pc,
        .dirty = where,
    };

    ledger_report(l, &v);
    /* Once; what it has from here on is this one's. */
    ledger_touch(l, owner, sizeof(*owner));
    owner->holders &= ~where;
}

/*
 * Two roots under one ASID on one vCPU. Where TLBIs reach all of them, on two
 * that both run as well, which is seen when the second one is at EL0: one that
 * is in the middle of a switch may have an ASID loaded that was given away.
 */
static void judge(struct ledger *l, unsigned vcpu, uint64_t pc,
                  const struct ledger_tag *mine)
{
    struct ledger_tag *next;

    for (struct ledger_tag *t = l->s.tags; t; t = next) {
        uint64_t where = t->holders & ledger_bit(vcpu);

        next = t->next;
        if (t == mine || t->asid != mine->asid || !t->filled) {
            continue;
        }
        for (unsigned v = 0; !where && !l->config.ipi && v < l->config.vcpus;
             v++) {
            if (t->holders & ledger_bit(v) && is_loaded(l, v, t)) {
                l->s.clash |= ledger_bit(v) | ledger_bit(vcpu);
            }
        }
        if (where) {
            tell(l, vcpu, pc, mine, t, where);
            free_if_idle(l, t);
        }
    }
}

void ledger_tag_back(struct ledger *l, unsigned vcpu)
{
    const struct ledger_loaded *loaded = &l->s.vcpu[vcpu].loaded[0];
    const struct ledger_tag *mine = find(l, loaded->root, loaded->asid);
    struct ledger_tag *next;

    l->s.clash &= ~ledger_bit(vcpu);
    for (struct ledger_tag *t = l->s.tags; mine && t; t = next) {
        uint64_t where = 0;

        next = t->next;
        if (t == mine || t->asid != mine->asid || !t->filled) {
            continue;
        }
        for (unsigned v = 0; v < l->config.vcpus; v++) {
            if (v == vcpu || !(t->holders & ledger_bit(v)) ||
                !is_loaded(l, v, t)) {
                continue;
            }
            if (ledger_el_of(l, v) == 0) {
                where |= ledger_bit(v);
            } else {
                l->s.clash |= ledger_bit(v);
            }
        }
        if (where) {
            tell(l, vcpu, mine->pc, mine, t, where);
            free_if_idle(l, t);
        }
    }
}

void ledger_tag_leave(struct ledger *l, unsigned vcpu)
{
    const struct ledger_loaded *loaded = &l->s.vcpu[vcpu].loaded[0];
    struct ledger_tag *t = loaded->root == LEDGER_NO_ROOT
                               ? NULL
                               : find(l, loaded->root, loaded->asid);

    if (t) {
        ledger_touch(l, &t->left[vcpu], sizeof(t->left[vcpu]));
        t->left[vcpu] = ++l->s.seq;
    }
}

void ledger_tag_load(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t root,
                     uint16_t asid)
{
    struct ledger_tag *t = find(l, root, asid);

    if (t) {
        unlink_tag(l, t);
    } else {
        t = ledger_alloc(l, LEDGER_TAG_CLASS);
        if (!t) {
            return;
        }
        t->root = root;
        t->asid = asid;
    }
    link_first(l, t);
    ledger_touch(l, t, offsetof(struct ledger_tag, left));
    t->holders |= ledger_bit(vcpu);
    t->pc = pc;
    t->filled = t->filled || is_filled(l, root);
    if (t->filled) {
        judge(l, vcpu, pc, t);
    } else {
        t->unchecked |= ledger_bit(vcpu);
    }
}

void ledger_tag_filled(struct ledger *l, gpa_t root)
{
    struct ledger_tag *next;

    for (struct ledger_tag *t = l->s.tags; t; t = next) {
        uint64_t unchecked = t->unchecked;

        next = t->next;
        if (t->gone || t->root != root || t->filled) {
            continue;
        }
        ledger_touch(l, t, offsetof(struct ledger_tag, left));
        t->filled = true;
        t->unchecked = 0;
        for (unsigned v = 0; v < l->config.vcpus; v++) {
            if (unchecked & t->holders & ledger_bit(v)) {
                judge(l, v, 0, t);
                next = t->next; /* another tag may be gone */
            }
        }
    }
}

void ledger_tag_root_gone(struct ledger *l, gpa_t root)
{
    struct ledger_tag *next;

    for (struct ledger_tag *t = l->s.tags; t; t = next) {
        next = t->next;
        if (!t->gone && t->root == root) {
            ledger_touch(l, t, offsetof(struct ledger_tag, left));
            t->gone = true;
            free_if_idle(l, t);
        }
    }
}

void ledger_root_dying(struct ledger *l, gpa_t root)
{
    for (struct ledger_tag *t = l->s.tags; t; t = t->next) {
        if (!t->gone && t->root == root) {
            ledger_touch(l, t, offsetof(struct ledger_tag, left));
            t->dying = true;
        }
    }
}

bool ledger_is_dying(const struct ledger *l, gpa_t root)
{
    for (const struct ledger_tag *t = l->s.tags; t; t = t->next) {
        if (!t->gone && t->root == root) {
            return t->dying;
        }
    }
    return false;
}

void ledger_tag_off(struct ledger *l, unsigned vcpu)
{
    struct ledger_tag *next;

    for (struct ledger_tag *t = l->s.tags; t; t = next) {
        next = t->next;
        ledger_touch(l, t, offsetof(struct ledger_tag, left));
        t->holders &= ~ledger_bit(vcpu);
        free_if_idle(l, t);
    }
}

uint64_t ledger_holders(struct ledger *l, const struct ledger_table *root,
                        uint16_t *tag)
{
    uint64_t holders = 0;

    if (!l->full || root->half) {
        for (unsigned v = 0; v < l->config.vcpus; v++) {
            tag[v] = root->asid;
        }
        return root->ever_loaded;
    }
    for (const struct ledger_tag *t = l->s.tags; t; t = t->next) {
        uint64_t more = t->gone || t->root != root->page ? 0 : t->holders;

        /* Of two tags the one used last: the other is retired. */
        more &= ~holders;
        holders |= more;
        for (; more; more &= more - 1) {
            tag[__builtin_ctzll(more)] = t->asid;
        }
    }
    return holders;
}

/* --- operations on everything, or on an ASID --- */

void ledger_big_issue(struct ledger *l, unsigned vcpu, const struct tlbi_op *op)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];
    struct ledger_big *big = NULL;

    for (unsigned i = 0; i < LEDGER_BIGS && !big; i++) {
        big = me->big[i].reached ? NULL : &me->big[i];
    }
    if (!big) {
        return; /* forgets that something went, never that it stayed */
    }
    ledger_touch(l, big, sizeof(*big));
    *big = (struct ledger_big){
        .reached = op->scope == TLBI_LOCAL ? ledger_bit(vcpu) : UINT64_MAX,
        .seq = ++l->s.seq,
        .asid = op->asid,
        .is_all = op->kind == TLBI_ALL,
        .is_local = op->scope == TLBI_LOCAL,
    };
}

static void complete(struct ledger *l, unsigned vcpu,
                     const struct ledger_big *big)
{
    struct ledger_tag *next;

    for (struct ledger_tag *t = l->s.tags; t; t = next) {
        uint64_t gone =
            big->is_all || t->asid == big->asid ? big->reached & t->holders : 0;

        next = t->next;
        for (uint64_t left = gone; left; left &= left - 1) {
            unsigned v = (unsigned)__builtin_ctzll(left);

            if (is_loaded(l, v, t) || t->left[v] > big->seq) {
                gone &= ~ledger_bit(v);
            }
        }
        if (gone) {
            ledger_touch(l, t, offsetof(struct ledger_tag, left));
            t->holders &= ~gone;
            if (!t->gone) {
                ledger_record_emptied(l, vcpu, t->root, t->asid, big->is_all,
                                      gone);
            }
            free_if_idle(l, t);
        }
    }
}

void ledger_big_wait(struct ledger *l, unsigned vcpu, struct ledger_dsb dsb)
{
    struct ledger_vcpu *me = &l->s.vcpu[vcpu];

    if (dsb.type != LEDGER_DSB_ALL) {
        return;
    }
    for (unsigned i = 0; i < LEDGER_BIGS; i++) {
        struct ledger_big *big = &me->big[i];

        if (big->reached && dsb.is_early && !big->is_local && !big->waited) {
            ledger_touch(l, big, sizeof(*big));
            big->waited = true;
        } else if (big->reached && (dsb.is_wide || big->is_local)) {
            complete(l, vcpu, big);
            ledger_touch(l, big, sizeof(*big));
            big->reached = 0;
        }
    }
}
