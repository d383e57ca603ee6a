/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the break-before-make checker share: bbm.c feeds it,
 * bbm_tables.c knows the tables, bbm_judge.c says what is wrong. Private to
 * mmu; single thread.
 *
 * A descriptor that was taken away is "broken" until, in this order,
 *
 *   1. its writer's DSB made the store visible to walkers,
 *   2. TLBIs that cover it were issued for each vCPU that may hold it,
 *   3. the issuer of each executed a DSB that waits for TLBIs.
 *
 * struct record is that state. There is one for a location, whatever happens
 * to it meanwhile: a later store hides an earlier one, so that the steps begin
 * again with the last writer, and all old descriptors go at once.
 *
 * Unlinking a table breaks all that it led to as well; the table is kept until
 * the last of these records is closed.
 */
#ifndef MMU_BBM_PRIV_H
#define MMU_BBM_PRIV_H

#include "mmu/bbm.h"
#include "mmu/desc.h"

#define BBM_ENTRIES 512u
#define BBM_BUCKETS 1024u
#define BBM_NO_ROOT UINT64_MAX

struct bbm_table;

struct bbm_record {
    struct bbm_table *table;
    unsigned index;
    uint64_t old[BBM_OLD_MAX];
    unsigned olds;
    unsigned writer;
    uint64_t pc;
    uint64_t holders, clean; /* a bit for each vCPU */
    bool visible;            /* to all walkers */
    bool visible_self;       /* to the writer's */
    /* Who issued a covering TLBI after that and has not waited for it. */
    uint64_t broadcast, local;
    /* What was done, but did not count. */
    bool store_kind, store_by, wait_kind, wait_by;
    enum bbm_step early; /* a TLBI before `visible`, and why; BREAK: none */
    enum bbm_step miss;  /* a TLBI that does not cover; TLBI: none */
    struct bbm_record *next, **link;
};

struct bbm_table {
    gpa_t page;
    unsigned level;
    unsigned half;
    gva_t va; /* of the first descriptor; meaningless when shared */
    bool shared;
    bool unlinked; /* its parent's record is open */
    struct bbm_table *parent, *root;
    unsigned parent_index;
    uint16_t asid;        /* roots: of the last load */
    uint64_t ever_loaded; /* roots */
    unsigned open;
    struct bbm_table *next; /* in the bucket */
    uint64_t desc[BBM_ENTRIES];
    struct bbm_record *record[BBM_ENTRIES];
};

struct bbm_loaded {
    gpa_t root; /* BBM_NO_ROOT: none */
    uint16_t asid;
};

struct bbm {
    struct bbm_config config;
    struct bbm_loaded loaded[BBM_VCPUS_MAX][2];
    struct bbm_table *bucket[BBM_BUCKETS];
    struct bbm_record *open;
    struct bbm_counts counts;
};

static inline uint64_t bbm_bit(unsigned vcpu)
{
    return UINT64_C(1) << vcpu;
}

/* --- bbm_tables.c --- */

struct bbm_table *bbm_table_find(struct bbm *bbm, gpa_t pa);
/* The table that this descriptor of `t` leads to, if it is known. */
struct bbm_table *bbm_table_child(struct bbm *bbm, struct bbm_table *t,
                                  unsigned index, uint64_t desc);
/* The table and all below it are not watched any more. */
void bbm_table_forget(struct bbm *bbm, struct bbm_table *t);
/* A root that no vCPU has loaded, and that leads nowhere. Else nothing. */
void bbm_table_forget_idle(struct bbm *bbm, struct bbm_table *t);
/* The one there is, or a new one; NULL: memory is short. */
struct bbm_record *bbm_record_of(struct bbm *bbm, struct bbm_table *t,
                                 unsigned index);
/* Closes what is clean; those of a table before the one that led to it. */
void bbm_sweep(struct bbm *bbm);

/* --- bbm_judge.c --- */

/* As bbm_change(), but pages that nobody can tell apart are the same. */
enum bbm_change bbm_change_of(const struct bbm *bbm, uint64_t old, uint64_t now,
                              unsigned level);
/* Why the store is not visible to all walkers. */
enum bbm_step bbm_store_step(const struct bbm_record *r);
struct bbm_violation bbm_describe(const struct bbm_table *t, unsigned index);
/* Completes and reports it: what is missing is what the record says. */
void bbm_tell_broken(struct bbm *bbm, struct bbm_violation *v,
                     const struct bbm_record *r);
/* Below an unlinked table: any that is not clean. */
struct bbm_record *bbm_dirty_below(struct bbm *bbm, struct bbm_record *r);
/* A valid descriptor where the old ones may still be held. */
void bbm_judge_make(struct bbm *bbm, unsigned vcpu, uint64_t pc,
                    struct bbm_record *r, uint64_t now);
/* A valid descriptor that may lead to a table which is not out of use. */
void bbm_judge_link(struct bbm *bbm, unsigned vcpu, uint64_t pc,
                    struct bbm_table *t, unsigned index, uint64_t now);
/* A store to a table that is unlinked and not out of use. */
void bbm_judge_reuse(struct bbm *bbm, unsigned vcpu, uint64_t pc,
                     struct bbm_table *t, unsigned index, uint64_t now);

#endif
