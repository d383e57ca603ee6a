/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Break-before-make, the rules without a state: which changes need it, what a
 * TLBI covers, what a DSB does. Pure functions, any thread.
 *
 * Not shared with the model of the TLB on purpose: a mistake there should not
 * be one here as well.
 */
#include "mmu/bbm.h"
#include "mmu/desc.h"

struct bbm_dsb bbm_dsb_of_crm(unsigned crm)
{
    /* CRm[3:2]: outer, non-shareable, inner, system. CRm[1:0]: the type. */
    struct bbm_dsb dsb = {
        .type = (enum bbm_dsb_type)(crm & 3),
        .is_wide = (crm >> 2 & 3) != 1,
    };

    if (!(crm & 3)) {
        /* 0 and 4 are SSBB and PSSBB, no DSBs; 8 and 12 are the full one. */
        dsb.type = crm & 8 ? BBM_DSB_ALL : BBM_DSB_LOADS;
    }
    return dsb;
}

enum bbm_change bbm_change(uint64_t old, uint64_t now, unsigned level)
{
    enum desc_kind kind = desc_kind(old, level);

    if (kind != desc_kind(now, level)) {
        return BBM_CHANGE_SIZE;
    }
    if (kind == DESC_KIND_TABLE) {
        return desc_next_table(old) != desc_next_table(now) ? BBM_CHANGE_OUTPUT
                                                            : BBM_CHANGE_NONE;
    }
    if (desc_output(old, level) != desc_output(now, level)) {
        return BBM_CHANGE_OUTPUT;
    }
    if ((old ^ now) & (DESC_ATTR(7) | DESC_SH(3))) {
        return BBM_CHANGE_TYPE;
    }
    /* A global entry beside one with an ASID would match as well. */
    if ((old ^ now) & DESC_NG) {
        return BBM_CHANGE_GLOBAL;
    }
    return (old ^ now) & DESC_CONTIGUOUS ? BBM_CHANGE_CONTIGUOUS
                                         : BBM_CHANGE_NONE;
}

static bool in_range(const struct tlbi_op *op, gva_t va, uint64_t span)
{
    if (op->size == 0) {
        return false; /* a hint or granule that names nothing */
    }
    return va >= op->va ? va - op->va < op->size : op->va - va < span;
}

enum bbm_step bbm_covers(const struct tlbi_op *op, const struct bbm_target *t)
{
    bool is_table = desc_kind(t->desc, t->level) == DESC_KIND_TABLE;
    /* Descriptors of tables have no nG: what is cached of them has an ASID. */
    bool is_global = !is_table && !(t->desc & DESC_NG);
    bool same_asid = t->has_asid && op->asid == t->asid;

    if (op->kind == TLBI_ALL) {
        return BBM_STEP_TLBI_DSB;
    }
    if (op->kind == TLBI_ASID) {
        return same_asid && !is_global ? BBM_STEP_TLBI_DSB : BBM_STEP_ASID;
    }
    if (t->has_va &&
        !in_range(op, t->va, UINT64_C(1) << mmu_level_shift(t->level))) {
        return BBM_STEP_VA;
    }
    if (op->kind == TLBI_VA && !is_global && !same_asid) {
        return BBM_STEP_ASID;
    }
    if (is_table
            ? op->last_level || (op->ttl_level && t->level >= op->ttl_level)
            : op->ttl_level && t->level != op->ttl_level) {
        return BBM_STEP_LEVEL;
    }
    return BBM_STEP_TLBI_DSB;
}

const char *bbm_rule_name(enum bbm_rule rule)
{
    static const char *const names[] = {"valid-to-valid", "unclean-to-valid",
                                        "table-freed", "table-reused"};

    return rule < BBM_RULES ? names[rule] : "?";
}

static const struct {
    const char *name, *text;
} steps[BBM_STEPS] = {
    [BBM_STEP_BREAK] = {"break", "the descriptor was never made invalid"},
    [BBM_STEP_STORE_DSB] = {"store-dsb",
                            "no DSB of the writer after the invalid store"},
    [BBM_STEP_STORE_KIND] = {"store-dsb-kind",
                             "the writer's DSB does not make stores visible to "
                             "other walkers"},
    [BBM_STEP_STORE_BY] = {"store-dsb-by",
                           "after the invalid store there was a DSB of "
                           "another vCPU only"},
    [BBM_STEP_ORDER] = {"order",
                        "the TLBI came before the DSB of the invalid store"},
    [BBM_STEP_TLBI] = {"tlbi", "no TLBI after the DSB of the invalid store"},
    [BBM_STEP_VA] = {"tlbi-va", "the TLBI names other addresses"},
    [BBM_STEP_ASID] = {"tlbi-asid", "the TLBI names another ASID"},
    [BBM_STEP_LEVEL] = {"tlbi-level", "the TLBI leaves this level alone"},
    [BBM_STEP_SCOPE] = {"tlbi-scope",
                        "the TLBI did not reach every vCPU that has the table"},
    [BBM_STEP_TLBI_DSB] = {"tlbi-dsb", "nobody waited for the TLBI with a DSB"},
    [BBM_STEP_TLBI_KIND] = {"tlbi-dsb-kind",
                            "the DSB after the TLBI does not wait for it"},
    [BBM_STEP_TLBI_BY] = {"tlbi-dsb-by",
                          "after the TLBI there was a DSB of another vCPU "
                          "only"},
};

const char *bbm_step_name(enum bbm_step step)
{
    return step < BBM_STEPS ? steps[step].name : "?";
}

const char *bbm_step_text(enum bbm_step step)
{
    return step < BBM_STEPS ? steps[step].text : "?";
}

const char *bbm_change_name(enum bbm_change change)
{
    static const char *const names[] = {"same translation", "output address",
                                        "block size",       "memory type",
                                        "global or not",    "contiguous hint"};

    return change < BBM_CHANGES ? names[change] : "?";
}
