/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger's rules without a state: which changes need a break, what a store
 * takes away, what a TLBI covers, what a DSB does. Pure functions, any thread.
 *
 * Not shared with the model of the TLB on purpose: a mistake there should not
 * be one here as well.
 */
#include "mmu/ledger.h"
#include "mmu/desc.h"

struct ledger_dsb ledger_dsb_of_crm(unsigned crm)
{
    /* CRm[3:2]: outer, non-shareable, inner, system. CRm[1:0]: the type. */
    struct ledger_dsb dsb = {
        .type = (enum ledger_dsb_type)(crm & 3),
        .is_wide = (crm >> 2 & 3) != 1,
    };

    if (!(crm & 3)) {
        /* 0 and 4 are SSBB and PSSBB, no DSBs; 8 and 12 are the full one. */
        dsb.type = crm & 8 ? LEDGER_DSB_ALL : LEDGER_DSB_LOADS;
    }
    return dsb;
}

enum ledger_change ledger_change(uint64_t old, uint64_t now, unsigned level)
{
    enum desc_kind kind = desc_kind(old, level);

    if (kind != desc_kind(now, level)) {
        return LEDGER_CHANGE_SIZE;
    }
    if (kind == DESC_KIND_TABLE) {
        return desc_next_table(old) != desc_next_table(now)
                   ? LEDGER_CHANGE_OUTPUT
                   : LEDGER_CHANGE_NONE;
    }
    if (desc_output(old, level) != desc_output(now, level)) {
        return LEDGER_CHANGE_OUTPUT;
    }
    if ((old ^ now) & (DESC_ATTR(7) | DESC_SH(3))) {
        return LEDGER_CHANGE_TYPE;
    }
    /* A global entry beside one with an ASID would match as well. */
    if ((old ^ now) & DESC_NG) {
        return LEDGER_CHANGE_GLOBAL;
    }
    return (old ^ now) & DESC_CONTIGUOUS ? LEDGER_CHANGE_CONTIGUOUS
                                         : LEDGER_CHANGE_NONE;
}

/* Where it leads, and how memory behaves there; not who may do what. */
static bool is_same_place(uint64_t old, uint64_t now, unsigned level)
{
    enum desc_kind kind = desc_kind(old, level);

    return desc_is_leaf(kind) && kind == desc_kind(now, level) &&
           desc_output(old, level) == desc_output(now, level) &&
           !((old ^ now) & (DESC_ATTR(7) | DESC_SH(3) | DESC_NG));
}

uint8_t ledger_lost(uint64_t old, uint64_t now, unsigned level,
                    bool hardware_dirty)
{
    uint8_t had, lost;

    if (!desc_is_leaf(desc_kind(old, level))) {
        return 0;
    }
    had = desc_perms(old, 0, false, hardware_dirty);
    if (!is_same_place(old, now, level)) {
        return had;
    }
    lost = had & (uint8_t)~desc_perms(now, 0, false, hardware_dirty);
    /* A page becomes writable at EL0, hence not executable at EL1: no loss. */
    return now & ~old & DESC_PXN ? lost : lost & (uint8_t)~PERM_X1;
}

bool ledger_is_global(uint64_t desc, unsigned level)
{
    return desc_is_leaf(desc_kind(desc, level)) && !(desc & DESC_NG);
}

static bool in_range(const struct tlbi_op *op, gva_t va, uint64_t span)
{
    if (op->size == 0) {
        return false; /* a hint or granule that names nothing */
    }
    return va >= op->va ? va - op->va < op->size : op->va - va < span;
}

enum ledger_step ledger_covers(const struct tlbi_op *op,
                               const struct ledger_target *t)
{
    bool is_table = desc_kind(t->desc, t->level) == DESC_KIND_TABLE;
    bool is_global = ledger_is_global(t->desc, t->level);
    bool same_asid = t->has_asid && op->asid == t->asid;

    if (op->kind == TLBI_ALL) {
        return LEDGER_STEP_TLBI_DSB;
    }
    if (op->kind == TLBI_ASID) {
        return same_asid && !is_global ? LEDGER_STEP_TLBI_DSB
                                       : LEDGER_STEP_ASID;
    }
    if (t->has_va &&
        !in_range(op, t->va, UINT64_C(1) << mmu_level_shift(t->level))) {
        return LEDGER_STEP_VA;
    }
    if (op->kind == TLBI_VA && !is_global && !same_asid) {
        return LEDGER_STEP_ASID;
    }
    if (is_table
            ? op->last_level || (op->ttl_level && t->level >= op->ttl_level)
            : op->ttl_level && t->level != op->ttl_level) {
        return LEDGER_STEP_LEVEL;
    }
    return LEDGER_STEP_TLBI_DSB;
}

static const struct {
    unsigned number;
    const char *name, *text;
} rules[LEDGER_RULES] = {
    [LEDGER_VALID_TO_VALID] = {10, "valid-to-valid",
                               "a translation was replaced in place"},
    [LEDGER_UNCLEAN] = {10, "unclean-to-valid",
                        "a translation was made before the old one was gone"},
    [LEDGER_TABLE_FREED] = {8, "table-freed",
                            "a table was given away that walks may still use"},
    [LEDGER_TABLE_REUSED] = {8, "table-reused",
                             "a table was used for something else that walks "
                             "may still use"},
    [LEDGER_FREE] = {1, "freed",
                     "a frame was given away that can still be reached"},
    [LEDGER_RETURN] = {2, "returned",
                       "an operation ended before its promise was kept"},
    [LEDGER_READER] = {4, "read",
                       "contents are being read that can still be written"},
    [LEDGER_TAG] = {9, "tag",
                    "an ASID was used that may have another root's entries"},
    [LEDGER_LIVELOCK] = {15, "livelock",
                         "the same fault comes again and again, and nobody "
                         "changes the descriptor"},
    [LEDGER_LOST] = {11, "lost", "a flush was taken as done that was not"},
    [LEDGER_DIRTY] = {12, "dirty",
                      "a page was dropped as clean, and it had been written"},
    [LEDGER_CONTEXT] = {13, "context",
                        "a vCPU uses a translation that it has just stored "
                        "before its context is synchronized"},
};

unsigned ledger_rule_number(enum ledger_rule rule)
{
    return rule < LEDGER_RULES ? rules[rule].number : 0;
}

const char *ledger_rule_name(enum ledger_rule rule)
{
    return rule < LEDGER_RULES ? rules[rule].name : "?";
}

const char *ledger_rule_text(enum ledger_rule rule)
{
    return rule < LEDGER_RULES ? rules[rule].text : "?";
}

unsigned ledger_cause(enum ledger_step step)
{
    switch (step) {
    case LEDGER_STEP_STORE_DSB:
    case LEDGER_STEP_STORE_KIND:
    case LEDGER_STEP_STORE_BY:
    case LEDGER_STEP_ORDER:
        return 7;
    case LEDGER_STEP_VA:
    case LEDGER_STEP_ASID:
    case LEDGER_STEP_LEVEL:
    case LEDGER_STEP_SCOPE:
        return 6;
    case LEDGER_STEP_TLBI_DSB:
    case LEDGER_STEP_TLBI_KIND:
    case LEDGER_STEP_TLBI_BY:
    case LEDGER_STEP_OWN_DSB:
        return 5;
    default:
        return 0;
    }
}

static const struct {
    const char *name, *text;
} steps[LEDGER_STEPS] = {
    [LEDGER_STEP_BREAK] = {"break", "the descriptor was never made invalid"},
    [LEDGER_STEP_STORE_DSB] = {"store-dsb",
                               "no DSB of the writer after the invalid store"},
    [LEDGER_STEP_STORE_KIND] =
        {"store-dsb-kind", "the writer's DSB does not make stores visible to "
                           "other walkers"},
    [LEDGER_STEP_STORE_BY] = {"store-dsb-by",
                              "after the invalid store there was a DSB of "
                              "another vCPU only"},
    [LEDGER_STEP_ORDER] = {"order",
                           "the TLBI came before the DSB of the invalid store"},
    [LEDGER_STEP_TLBI] = {"tlbi", "no TLBI after the DSB of the invalid store"},
    [LEDGER_STEP_VA] = {"tlbi-va", "the TLBI names other addresses"},
    [LEDGER_STEP_ASID] = {"tlbi-asid", "the TLBI names another ASID"},
    [LEDGER_STEP_LEVEL] = {"tlbi-level", "the TLBI leaves this level alone"},
    [LEDGER_STEP_SCOPE] =
        {"tlbi-scope", "the TLBI did not reach every vCPU that has the table"},
    [LEDGER_STEP_TLBI_DSB] = {"tlbi-dsb",
                              "nobody waited for the TLBI with a DSB"},
    [LEDGER_STEP_TLBI_KIND] = {"tlbi-dsb-kind",
                               "the DSB after the TLBI does not wait for it"},
    [LEDGER_STEP_TLBI_BY] = {"tlbi-dsb-by",
                             "after the TLBI there was a DSB of another vCPU "
                             "only"},
    [LEDGER_STEP_OWN_DSB] = {"own-dsb", "no DSB of a vCPU's own, whose units "
                                        "may have an access on its way"},
    [LEDGER_STEP_WALKER] = {"walker",
                            "software walks the tables since it was linked"},
    [LEDGER_STEP_SERVICE] = {"service", "who was asked has not flushed"},
    [LEDGER_STEP_CLEAN] = {"clean", "its contents are not what they were"},
    [LEDGER_STEP_MADE_DSB] = {"made-dsb", "no DSB after the store"},
    [LEDGER_STEP_CONTEXT] =
        {"context", "no ISB, exception or return from one after the DSB"},
};

const char *ledger_step_name(enum ledger_step step)
{
    return step < LEDGER_STEPS ? steps[step].name : "?";
}

const char *ledger_step_text(enum ledger_step step)
{
    return step < LEDGER_STEPS ? steps[step].text : "?";
}

const char *ledger_change_name(enum ledger_change change)
{
    static const char *const names[] = {"same translation", "output address",
                                        "block size",       "memory type",
                                        "global or not",    "contiguous hint"};

    return change < LEDGER_CHANGES ? names[change] : "?";
}

const char *ledger_contract_name(enum ledger_contract contract)
{
    static const char *const names[] = {"nothing", "no write", "no access"};

    return contract < LEDGER_CONTRACTS ? names[contract] : "?";
}
