/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The obligation ledger: is fed with what a program does to its translation
 * tables, and says where it broke a promise about what hardware may still
 * hold. docs/LEDGER.md has the rules and their reasons, docs/BBM.md those of
 * break-before-make.
 *
 * It judges what hardware *may* hold, not what some TLB holds: a violation
 * needs no unlucky access. Nothing is done for the program here, and nothing
 * that it does is an error of the ledger's.
 *
 * With S8 and S10 alone it is a checker of break-before-make: everybody who
 * ever had a root loaded counts, running it or not. With any other rule it
 * counts who can use a translation now; who has it under a tag that is not
 * loaded is judged when he comes back (ledger_el()).
 *
 * Not judged: S14 (devices have no TLB here).
 *
 * All memory is in one arena, reserved by ledger_new() and, for the copy, by
 * the first ledger_checkpoint(). One thread at a time; depends on desc.h and
 * tlbi.h.
 */
#ifndef MMU_LEDGER_H
#define MMU_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mmu/addr.h"
#include "mmu/tlbi.h"

#define LEDGER_VCPUS_MAX 64u
/* Different old descriptors of one location that are remembered. */
#define LEDGER_OLD_MAX 4u
/* Operations that are open at once; of more, the oldest are not judged. */
#define LEDGER_OPS_MAX 64u
/* Faults on one descriptor that nobody changes until it is called livelock. */
#define LEDGER_LIVE_FAULTS 64u

/* Rules by their number, as a mask. */
#define LEDGER_S(number) (UINT32_C(1) << (number))
#define LEDGER_RULES_BBM (LEDGER_S(8) | LEDGER_S(10))
#define LEDGER_RULES_ALL                                                       \
    (LEDGER_RULES_BBM | LEDGER_S(1) | LEDGER_S(2) | LEDGER_S(4) |              \
     LEDGER_S(9) | LEDGER_S(11) | LEDGER_S(12) | LEDGER_S(13) | LEDGER_S(15))

/* Why a change of a valid descriptor needs the old one to be gone first. */
enum ledger_change {
    LEDGER_CHANGE_NONE, /* permissions, AF, dirty state, software's bits */
    LEDGER_CHANGE_OUTPUT,
    LEDGER_CHANGE_SIZE, /* block, page and table, one for another */
    LEDGER_CHANGE_TYPE, /* memory type or shareability */
    LEDGER_CHANGE_GLOBAL,
    LEDGER_CHANGE_CONTIGUOUS,
    LEDGER_CHANGES
};

enum ledger_rule {
    LEDGER_VALID_TO_VALID, /* S10: no invalid step at all */
    LEDGER_UNCLEAN,        /* S10: an invalid step that was not finished */
    LEDGER_TABLE_FREED,    /* S8: a table that walks may still use */
    LEDGER_TABLE_REUSED,   /* S8 */
    LEDGER_FREE,     /* S1: a frame that somebody can still reach is free */
    LEDGER_RETURN,   /* S2: an operation ended, and its promise is not kept */
    LEDGER_READER,   /* S4: contents are read that somebody can still change */
    LEDGER_TAG,      /* S9: an ASID that may have another root's entries */
    LEDGER_LIVELOCK, /* S15: the same fault again and again */
    LEDGER_LOST,    /* S11: a flush was asked for and taken as done too early */
    LEDGER_DIRTY,   /* S12: a frame was dropped as clean that is not */
    LEDGER_CONTEXT, /* S13: a vCPU uses what it has mapped too early */
    LEDGER_RULES
};

/* What was done to the old descriptor. */
enum ledger_why { LEDGER_REMOVED, LEDGER_REDUCED, LEDGER_REPLACED };

/* The first step that is missing, in the order in which they are due. */
enum ledger_step {
    LEDGER_STEP_BREAK,      /* the invalid descriptor itself */
    LEDGER_STEP_STORE_DSB,  /* by the writer, so that walks see the store */
    LEDGER_STEP_STORE_KIND, /* there was one, of a kind that does not do that */
    LEDGER_STEP_STORE_BY,   /* there was one, of another vCPU */
    LEDGER_STEP_ORDER,      /* a TLBI came before that DSB, and none after it */
    LEDGER_STEP_TLBI,       /* none for this place */
    LEDGER_STEP_VA,         /* one, but: another address range */
    LEDGER_STEP_ASID,       /* another ASID */
    LEDGER_STEP_LEVEL,      /* last level only, or a hint for another level */
    LEDGER_STEP_SCOPE,      /* not on every vCPU that has the table loaded */
    LEDGER_STEP_TLBI_DSB,   /* by who issued the TLBI, to wait for it */
    LEDGER_STEP_TLBI_KIND,  /* there was one, of a kind that does not wait */
    LEDGER_STEP_TLBI_BY,    /* there was one, of another vCPU */
    LEDGER_STEP_OWN_DSB,    /* by each that has it, when the TLBI is over */
    LEDGER_STEP_WALKER,     /* S8: by software that still walks the tables */
    LEDGER_STEP_SERVICE,    /* S11: by who was asked to flush */
    LEDGER_STEP_CLEAN,      /* S12: to look again whether somebody wrote */
    LEDGER_STEP_MADE_DSB,   /* S13: by who stored, before it uses it */
    LEDGER_STEP_CONTEXT,    /* S13: ISB, an exception or the return from one */
    LEDGER_STEPS
};

/* What an operation promises of its range when it is over. */
enum ledger_contract {
    LEDGER_CONTRACT_NONE,
    LEDGER_CONTRACT_NOWRITE,
    LEDGER_CONTRACT_NOACCESS,
    LEDGER_CONTRACTS
};

/* An operation that came near, and did not count. */
struct ledger_near {
    bool known;
    unsigned vcpu;
    uint64_t pc;
    struct tlbi_op op; /* of a TLBI */
    unsigned dsb;      /* of a DSB: its enum ledger_dsb_type, | 4: wide */
    enum ledger_step step;
};

struct ledger_violation {
    enum ledger_rule rule;
    enum ledger_step step;
    enum ledger_change change;
    enum ledger_why why;
    bool is_late; /* told when the vCPU came back, not when it was due */
    gpa_t pa;     /* of the descriptor; S9: the root that is loaded */
    unsigned level;
    bool has_va; /* false: the table is reached in more than one way */
    gva_t va;    /* first address that the descriptor translates */
    uint64_t size;
    uint16_t asid;
    uint64_t old, now;             /* descriptors; S9: roots */
    unsigned break_vcpu, now_vcpu; /* who broke it, who did the wrong thing */
    uint64_t break_pc, now_pc;
    uint64_t dirty;   /* vCPUs that can use the old one, a bit each */
    uint64_t dormant; /* that would have to load the root again for that */
    gpa_t frame;      /* S1, S4, S12 */
    unsigned op;      /* S2: the operation's kind */
    enum ledger_contract contract;
    struct ledger_near tlbi, dsb;
    uint64_t hits; /* S3: stale accesses that were seen */
};

/* A DSB, as the encoding of its CRm has it. */
enum ledger_dsb_type {
    LEDGER_DSB_LOADS = 1,
    LEDGER_DSB_STORES,
    LEDGER_DSB_ALL
};
struct ledger_dsb {
    enum ledger_dsb_type type;
    bool is_wide;  /* more than NSH */
    bool is_early; /* sure of what an earlier one waited for only */
};

struct ledger_config {
    unsigned vcpus;      /* 1..LEDGER_VCPUS_MAX */
    uint32_t rules;      /* LEDGER_S()s; 0: LEDGER_RULES_ALL */
    bool hardware_dirty; /* TCR.HD may be on: DBM makes a page writable */
    /*
     * vCPUs flush themselves when they are asked to. One that runs in the
     * kernel may do so as late as before it returns to EL0; only tables, which
     * speculation reads at EL1 as well, may not wait for it.
     */
    bool ipi;
    /*
     * An erratum: a DSB may end before the TLBIs since the one before are over.
     * Only a further one, with another TLBI in between, is sure of them.
     */
    bool early_dsb;
    /*
     * Another: that a broadcast TLBI is over says nothing of accesses that
     * units of other vCPUs have begun. Each of these needs a wide DSB of its
     * own after that of the issuer.
     */
    bool own_dsb;
    /* FEAT_BBM level 2: block size and contiguous hint change in place. */
    bool bbm2;
    /*
     * Also the same page again, or with other permissions, while the old
     * descriptor is not gone: allowed, but seldom meant.
     */
    bool strict;
    /*
     * A user page may come back in another frame while a break of it is not
     * finished: counted, no violation (docs/decisions/0007). Not with S8 and
     * S10 alone.
     */
    bool windows;
    size_t arena; /* bytes; 0: 64 MiB, used as they are needed */
    /* What is in memory now; false: nothing is there. */
    bool (*read64)(void *opaque, gpa_t pa, uint64_t *out);
    /* The contents of a page; NULL: nothing is there, or no S12 at all. */
    const void *(*page)(void *opaque, gpa_t pa);
    /* Where the vCPU is; NULL: what ledger_el() told last. */
    unsigned (*el)(void *opaque, unsigned vcpu);
    void (*violation)(void *opaque, const struct ledger_violation *violation);
    void *opaque;
};

struct ledger;

/* NULL: memory is short, or the number of vCPUs is not in its range. */
struct ledger *ledger_new(const struct ledger_config *config);
void ledger_free(struct ledger *ledger);

/* --- what happens, in the order in which it does --- */

/* half: 0 or 1, of which TTBR. */
void ledger_root_load(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                      unsigned half, gpa_t root, uint16_t asid);
/* The vCPU is switched off: it holds nothing any more. */
void ledger_vcpu_off(struct ledger *ledger, unsigned vcpu);
/*
 * The vCPU is about to run at that level. EL0 is judged: who came back without
 * a flush that was owed. Needed only of vCPUs that ledger_late() names.
 */
void ledger_el(struct ledger *ledger, unsigned vcpu, unsigned el);
uint64_t ledger_late(const struct ledger *ledger);
/*
 * A walk of va read descriptors at these addresses, of start_level and on. A
 * table is known from its first walk: what is in it is read then, and stores
 * before do not count.
 */
void ledger_walk(struct ledger *ledger, unsigned half, gva_t va,
                 unsigned start_level, const gpa_t *descriptors,
                 unsigned count);
/*
 * After ledger_walk(): it was for an access of that vCPU, not speculation. Then
 * the vCPU relies on what is there (S13).
 */
void ledger_walked(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                   const gpa_t *descriptors, unsigned count);
/*
 * The vCPU synchronized its context. Returns from exceptions need not be told;
 * S13 is then not judged from an exception that was taken from EL1 until one
 * from EL0.
 */
enum ledger_sync {
    LEDGER_SYNC_ISB,
    LEDGER_SYNC_TAKEN_EL0, /* an exception, from there */
    LEDGER_SYNC_TAKEN_EL1,
    LEDGER_SYNC_RETURN
};
void ledger_synced(struct ledger *ledger, unsigned vcpu, enum ledger_sync sync);
/* Of a descriptor that changed. In tables that nobody walked: ignored. */
void ledger_store(struct ledger *ledger, unsigned vcpu, uint64_t pc, gpa_t pa,
                  uint64_t now);
/* By hardware: the access flag or the dirty state. */
void ledger_update(struct ledger *ledger, gpa_t pa, uint64_t now);
void ledger_tlbi(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                 const struct tlbi_op *op);
/* When it is over, not when it begins. */
void ledger_dsb(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                struct ledger_dsb dsb);

/* --- contracts: what the program says of itself --- */

/* The page is given away, or to a new owner. */
void ledger_frame_free(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                       gpa_t page);
void ledger_frame_alloc(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                        gpa_t page);
/*
 * Its contents begin to be read: to a device, which has them as they are now
 * (ledger_frame_clean()), or to make a copy.
 */
void ledger_io_begin(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                     gpa_t page);
void ledger_copy_begin(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                       gpa_t page);
/*
 * On [start, end) of the low half of the root that the vCPU has loaded. task:
 * whose it is, if it may end on another vCPU; 0: it does not.
 */
void ledger_op_begin(struct ledger *ledger, unsigned vcpu, uint64_t task,
                     unsigned kind, gva_t start, gva_t end,
                     enum ledger_contract contract);
/* The last of that kind and task (or vCPU) that began; none: nothing. */
void ledger_op_end(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                   uint64_t task, unsigned kind);
/*
 * The address space ends: nobody will run at EL0 with that root any more. Who
 * still has it loaded in the kernel does not use its pages, so these may go
 * before he has let go of them. Whoever is, or comes back, at EL0 is blamed.
 */
void ledger_root_dying(struct ledger *ledger, gpa_t root);
/* A fault that a valid descriptor does not explain may be spurious. */
void ledger_fault(struct ledger *ledger, unsigned vcpu, uint64_t pc, gva_t va);
/* The vCPU gets on: it made a system call, say. */
void ledger_progress(struct ledger *ledger, unsigned vcpu);
/* An access hit a translation that the tables do not have any more. */
void ledger_hit(struct ledger *ledger, unsigned vcpu, gva_t va);

/*
 * Software on the vCPU begins to walk the tables of a root, 0: of the one that
 * it has loaded, without a lock; one walk at a time. A table that was linked
 * then may not be given away before it ends.
 */
void ledger_soft_walk_begin(struct ledger *ledger, unsigned vcpu, gpa_t root);
void ledger_soft_walk_end(struct ledger *ledger, unsigned vcpu);
/* The vCPU asks others, a bit each, to flush; takes that as done (judged). */
void ledger_flush_ask(struct ledger *ledger, unsigned vcpu, uint64_t vcpus);
void ledger_flush_waited(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                         uint64_t vcpus);
/* The vCPU has served the requests of those that asked, a bit each. */
void ledger_flush_served(struct ledger *ledger, unsigned vcpu, uint64_t askers);
/* The vCPU goes on: all must have been served (judged). vcpu, pc: who says so.
 */
void ledger_flush_resume(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                         unsigned resumed);
/*
 * The page is clean: who writes to it makes it dirty again. It is dropped for
 * being clean: judged by its contents, which must be what they were. Needs
 * config.page.
 */
void ledger_frame_clean(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                        gpa_t page);
void ledger_frame_drop(struct ledger *ledger, unsigned vcpu, uint64_t pc,
                       gpa_t page);

/* --- checkpoints --- */

/*
 * A checkpoint remembers the present state; a rollback puts it back, as often
 * as one likes, at a cost that goes with what changed. A second checkpoint
 * replaces the first. Counts of what happened go on. False, and no checkpoint
 * any more: memory is short.
 */
bool ledger_checkpoint(struct ledger *ledger);
/* Nothing without a checkpoint. */
void ledger_rollback(struct ledger *ledger);
/* Of all that a rollback puts back. */
uint64_t ledger_hash(const struct ledger *ledger);

/* --- what is known --- */

struct ledger_counts {
    uint64_t tables, open;          /* now */
    uint64_t breaks, closed, makes; /* so far */
    uint64_t reductions;
    uint64_t windows; /* pages that came back while a break was not finished */
    uint64_t violations;
    bool out_of_memory; /* something was not looked at */
};

void ledger_count(const struct ledger *ledger, struct ledger_counts *out);

/* --- the rules alone: pure --- */

struct ledger_dsb ledger_dsb_of_crm(unsigned crm);
/* Of two valid descriptors at that level. */
enum ledger_change ledger_change(uint64_t old, uint64_t now, unsigned level);
/* PERM_* of a leaf that the other one, of the same place, does not allow. */
uint8_t ledger_lost(uint64_t old, uint64_t now, unsigned level,
                    bool hardware_dirty);

/* What a TLBI must remove. */
struct ledger_target {
    unsigned level;
    uint64_t desc;
    bool has_va;
    gva_t va;
    bool has_asid; /* a table of the low half; false: whichever */
    uint16_t asid;
};

/* LEDGER_STEP_TLBI_DSB: it does; LEDGER_STEP_VA, ASID or LEVEL: it does not. */
enum ledger_step ledger_covers(const struct tlbi_op *op,
                               const struct ledger_target *target);
/* Descriptors of tables have no nG: what is cached of them has an ASID. */
bool ledger_is_global(uint64_t desc, unsigned level);

unsigned ledger_rule_number(enum ledger_rule rule); /* 10: S10 */
/* 5, 6 or 7: S5, S6 or S7 is why; 0: nothing was tried that failed. */
unsigned ledger_cause(enum ledger_step step);
const char *ledger_rule_name(enum ledger_rule rule);
const char *ledger_rule_text(enum ledger_rule rule); /* for people */
const char *ledger_step_name(enum ledger_step step); /* "store-dsb" */
const char *ledger_step_text(enum ledger_step step); /* for people */
const char *ledger_change_name(enum ledger_change change);
const char *ledger_contract_name(enum ledger_contract contract);

#endif
