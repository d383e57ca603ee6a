/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Break-before-make: a checker that is fed with what a program does to its
 * translation tables and says where it changed a descriptor without taking the
 * old one away first. docs/BBM.md has the rules and their reasons.
 *
 * It judges what hardware *may* still hold, not what some TLB holds. Nothing
 * is done for the guest here, and nothing that a guest does is an error of the
 * checker's. One thread at a time; depends on desc.h and tlbi.h.
 */
#ifndef MMU_BBM_H
#define MMU_BBM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mmu/addr.h"
#include "mmu/tlbi.h"

#define BBM_VCPUS_MAX 64u
/* Different old descriptors of one location that are remembered. */
#define BBM_OLD_MAX 4u

/* Why a change of a valid descriptor needs the old one to be gone first. */
enum bbm_change {
    BBM_CHANGE_NONE, /* permissions, AF, dirty state, software's bits */
    BBM_CHANGE_OUTPUT,
    BBM_CHANGE_SIZE, /* block, page and table, one for another */
    BBM_CHANGE_TYPE, /* memory type or shareability */
    BBM_CHANGE_GLOBAL,
    BBM_CHANGE_CONTIGUOUS,
    BBM_CHANGES
};

enum bbm_rule {
    BBM_RULE_VALID_TO_VALID, /* no invalid step at all */
    BBM_RULE_UNCLEAN,        /* an invalid step that was not finished */
    BBM_RULE_TABLE_FREED,    /* a table that walks may still use */
    BBM_RULE_TABLE_REUSED,
    BBM_RULES
};

/* The first step that is missing, in the order in which they are due. */
enum bbm_step {
    BBM_STEP_BREAK,      /* the invalid descriptor itself */
    BBM_STEP_STORE_DSB,  /* by the writer, so that walks see the store */
    BBM_STEP_STORE_KIND, /* there was one, of a kind that does not do that */
    BBM_STEP_STORE_BY,   /* there was one, of another vCPU */
    BBM_STEP_ORDER,      /* a TLBI came before that DSB, and none after it */
    BBM_STEP_TLBI,       /* none for this place */
    BBM_STEP_VA,         /* one, but: another address range */
    BBM_STEP_ASID,       /* another ASID */
    BBM_STEP_LEVEL,      /* last level only, or a hint for another level */
    BBM_STEP_SCOPE,      /* not on every vCPU that has the table loaded */
    BBM_STEP_TLBI_DSB,   /* by who issued the TLBI, to wait for it */
    BBM_STEP_TLBI_KIND,  /* there was one, of a kind that does not wait */
    BBM_STEP_TLBI_BY,    /* there was one, of another vCPU */
    BBM_STEPS
};

struct bbm_violation {
    enum bbm_rule rule;
    enum bbm_step step;
    enum bbm_change change;
    gpa_t pa; /* of the descriptor */
    unsigned level;
    bool has_va; /* false: the table is reached in more than one way */
    gva_t va;    /* first address that the descriptor translates */
    uint64_t size;
    uint16_t asid;
    uint64_t old, now;             /* descriptors */
    unsigned break_vcpu, now_vcpu; /* who broke it, who did the wrong thing */
    uint64_t break_pc, now_pc;
    uint64_t dirty; /* vCPUs that may hold the old one, a bit each */
};

/* A DSB, as the encoding of its CRm has it. */
enum bbm_dsb_type { BBM_DSB_LOADS = 1, BBM_DSB_STORES, BBM_DSB_ALL };
struct bbm_dsb {
    enum bbm_dsb_type type;
    bool is_wide; /* more than NSH */
};

struct bbm_config {
    unsigned vcpus;      /* 1..BBM_VCPUS_MAX */
    bool hardware_dirty; /* TCR.HD may be on: DBM makes a page writable */
    /*
     * Also the same page again, or with other permissions, while the old
     * descriptor is not gone: allowed, but seldom meant.
     */
    bool strict;
    /* What is in memory now; false: nothing is there. */
    bool (*read64)(void *opaque, gpa_t pa, uint64_t *out);
    void (*violation)(void *opaque, const struct bbm_violation *violation);
    void *opaque;
};

struct bbm;

/* NULL: memory is short, or the number of vCPUs is not in its range. */
struct bbm *bbm_new(const struct bbm_config *config);
void bbm_free(struct bbm *bbm);

/* --- what happens, in the order in which it does --- */

/* half: 0 or 1, of which TTBR. */
void bbm_root_load(struct bbm *bbm, unsigned vcpu, unsigned half, gpa_t root,
                   uint16_t asid);
/* The vCPU is switched off: it holds nothing any more. */
void bbm_vcpu_off(struct bbm *bbm, unsigned vcpu);
/*
 * A walk of va read descriptors at these addresses, of start_level and on. A
 * table is known from its first walk: what is in it is read then, and stores
 * before do not count.
 */
void bbm_walk(struct bbm *bbm, unsigned half, gva_t va, unsigned start_level,
              const gpa_t *descriptors, unsigned count);
/* Of a descriptor that changed. In tables that nobody walked: ignored. */
void bbm_store(struct bbm *bbm, unsigned vcpu, uint64_t pc, gpa_t pa,
               uint64_t now);
/* By hardware: the access flag or the dirty state. */
void bbm_update(struct bbm *bbm, gpa_t pa, uint64_t now);
void bbm_tlbi(struct bbm *bbm, unsigned vcpu, const struct tlbi_op *op);
/* When it is over, not when it begins. */
void bbm_dsb(struct bbm *bbm, unsigned vcpu, struct bbm_dsb dsb);
/* Software gives the page away. */
void bbm_page_free(struct bbm *bbm, unsigned vcpu, uint64_t pc, gpa_t page);

/* --- what is known --- */

struct bbm_counts {
    uint64_t tables, open;          /* now */
    uint64_t breaks, closed, makes; /* so far */
    uint64_t violations;
    bool out_of_memory; /* something was not looked at */
};

void bbm_count(const struct bbm *bbm, struct bbm_counts *out);

/* --- the rules alone: pure --- */

struct bbm_dsb bbm_dsb_of_crm(unsigned crm);
/* Of two valid descriptors at that level. */
enum bbm_change bbm_change(uint64_t old, uint64_t now, unsigned level);

/* What a TLBI must remove. */
struct bbm_target {
    unsigned level;
    uint64_t desc;
    bool has_va;
    gva_t va;
    bool has_asid; /* a table of the low half; false: whichever */
    uint16_t asid;
};

/* BBM_STEP_TLBI_DSB: it does; BBM_STEP_VA, ASID or LEVEL: it does not. */
enum bbm_step bbm_covers(const struct tlbi_op *op,
                         const struct bbm_target *target);

const char *bbm_rule_name(enum bbm_rule rule);
const char *bbm_step_name(enum bbm_step step); /* "store-dsb": for machines */
const char *bbm_step_text(enum bbm_step step); /* for people */
const char *bbm_change_name(enum bbm_change change);

#endif
