/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the ledger share: ledger.c feeds it, ledger_paid.c has its
 * TLBIs and DSBs, ledger_tables.c knows the tables, ledger_tags.c who may have
 * entries of a root, ledger_records.c what was taken away, ledger_judge.c and
 * ledger_bbm.c say what is wrong, ledger_said.c what contradicts what the
 * program said it was doing, ledger_context.c what a vCPU uses too early,
 * ledger_journal.c owns the memory. Private to mmu; single thread.
 *
 * A descriptor that was taken away, replaced or made to allow less is owed for
 * until, in this order,
 *
 *   1. its writer's DSB made the store visible to walkers,
 *   2. TLBIs that cover it were issued for each vCPU that may hold it,
 *   3. the issuer of each executed a DSB that waits for TLBIs.
 *
 * struct ledger_record is that state. There is one for a location, whatever
 * happens to it meanwhile: a later store hides an earlier one, so that the
 * steps begin again with the last writer. Each old descriptor keeps who may
 * hold it.
 *
 * Unlinking a table breaks all that it led to as well; the table is kept until
 * the last of these records is closed. A table that is given away nevertheless
 * leaves its records behind ("orphans", table is NULL), for those who come back
 * to the root later.
 *
 * Memory is one arena, copied by a checkpoint in pieces: whoever changes an
 * object there calls ledger_touch() for it. What is in struct ledger_state is
 * always copied.
 */
#ifndef MMU_LEDGER_PRIV_H
#define MMU_LEDGER_PRIV_H

#include "mmu/desc.h"
#include "mmu/ledger.h"

#define LEDGER_ENTRIES 512u
#define LEDGER_BUCKETS 1024u
#define LEDGER_FRAME_BUCKETS 256u
#define LEDGER_NO_ROOT UINT64_MAX
#define LEDGER_WAITS 4u
#define LEDGER_PINS_MAX 64u
#define LEDGER_CONTEXTS 16u
#define LEDGER_CLEAN_BUCKETS 64u
#define LEDGER_BIGS 8u
/* Contract points of one record that wait for somebody to come back. */
#define LEDGER_LATES 3u

struct ledger_table;
struct ledger_record;

/* A covering TLBI that its issuer has not waited for. */
struct ledger_wait {
    uint64_t mask; /* the holders that it reaches; 0: free */
    unsigned issuer;
    bool waited; /* once, by a DSB that may have been early */
};

/* Such TLBIs for a thing of its own: local ones by issuer, and a broadcast. */
struct ledger_asked {
    uint64_t local;
    struct ledger_wait wait;
};

/* One old descriptor of a place; in the frame index while it is a leaf. */
struct ledger_old {
    struct ledger_old *next, **link;
    struct ledger_record *record;
    uint64_t desc;
    uint64_t born;    /* when it became valid */
    uint64_t holders; /* a bit for each vCPU that may have it */
    bool visible;     /* walkers do not find it any more */
    bool indexed;
    /* While a later store to the place is on its way, and this one is over. */
    struct ledger_asked asked;
};

/* Given away while somebody may come back for it. */
struct ledger_late {
    uint64_t mask;
    enum ledger_rule rule;
    unsigned vcpu;
    uint64_t pc;
    gpa_t frame;
    unsigned op;
    enum ledger_contract contract;
    uint64_t old, now;
    enum ledger_change change;
    bool visible; /* the store that it is about */
    struct ledger_asked asked;
};

struct ledger_record {
    struct ledger_record *next, **link;
    struct ledger_table *table; /* NULL: the table was given away */
    gpa_t root, pa;
    unsigned level, half, index;
    gva_t va;
    bool shared; /* va means nothing */
    enum ledger_why why;
    struct ledger_old old[LEDGER_OLD_MAX];
    unsigned olds;
    unsigned writer;
    uint64_t writers; /* whose DSB shows it: stored here then or later */
    uint64_t pc;
    uint64_t holders;  /* of any old one */
    uint64_t cleaned;  /* since the last store */
    uint64_t added;    /* ever since the record is open */
    bool visible;      /* to all walkers */
    bool visible_self; /* to the writer's */
    /* Who issued a covering TLBI after that and has not waited for it. */
    uint64_t broadcast, local;
    uint64_t waited; /* of broadcast: once, as in ledger_wait */
    uint64_t units;  /* TLBI and DSB are over, only their own DSB is missing */
    struct ledger_wait wait[LEDGER_WAITS]; /* broadcasts, but not for all */
    /* What was done, but did not count. */
    bool store_kind, wait_kind, wait_by, asid_missed;
    uint64_t store_by;      /* other vCPUs whose DSB would have shown it */
    enum ledger_step early; /* a TLBI before `visible`, and why; BREAK: none */
    enum ledger_step miss;  /* a TLBI that does not cover; TLBI: none */
    struct ledger_near near_tlbi, near_dsb;
    uint32_t told; /* a bit of each enum ledger_rule */
    uint64_t hits;
    struct ledger_late late[LEDGER_LATES];
    uint16_t tag[LEDGER_VCPUS_MAX]; /* the ASID of each holder's entries */
};

struct ledger_table {
    struct ledger_table *next, **link; /* in the bucket */
    gpa_t page;
    unsigned level;
    unsigned half;
    gva_t va; /* of the first descriptor; meaningless when shared */
    bool shared;
    bool unlinked; /* its parent's record is open */
    bool filled;   /* roots: had a valid descriptor */
    struct ledger_table *parent, *root;
    unsigned parent_index;
    uint16_t asid;        /* roots: of the last load */
    uint64_t ever_loaded; /* roots */
    unsigned open;
    uint64_t desc[LEDGER_ENTRIES];
    uint64_t born[LEDGER_ENTRIES];
    struct ledger_record *record[LEDGER_ENTRIES];
};

/* A root under an ASID, and who may have entries of both. The last used first.
 */
struct ledger_tag {
    struct ledger_tag *next, **link;
    gpa_t root;
    uint16_t asid;
    bool gone;   /* the root was given away; nobody can load it any more */
    bool filled; /* the root had a valid descriptor */
    bool dying;
    uint64_t pc; /* of the last load */
    uint64_t holders;
    uint64_t unchecked;              /* loaded it while it was empty */
    uint64_t left[LEDGER_VCPUS_MAX]; /* when it was last loaded there */
};

/* A TLBI of everything or of an ASID, until its issuer's DSB. */
struct ledger_big {
    uint64_t reached; /* 0: free */
    uint64_t seq;
    uint16_t asid;
    bool is_all, is_local;
    bool waited; /* once, as in ledger_wait */
};

struct ledger_operation {
    uint64_t task;
    unsigned vcpu, kind;
    enum ledger_contract contract;
    gpa_t root;
    gva_t start, end;
    uint64_t begin; /* 0: free */
};

struct ledger_loaded {
    gpa_t root; /* LEDGER_NO_ROOT: none */
    uint16_t asid;
};

/* An unlinked table that software may still be walking. */
struct ledger_pin {
    gpa_t page, pa; /* pa: of the descriptor that led to it */
    uint64_t walkers;
    unsigned level;
    bool has_va;
    gva_t va;
    uint16_t asid;
    unsigned vcpu; /* who unlinked it */
    uint64_t pc;
};

/* A page that was clean. */
struct ledger_clean {
    struct ledger_clean *next;
    gpa_t page;
    uint64_t hash;
    unsigned vcpu;
    uint64_t pc;
};

/* A descriptor of the high half that the vCPU made valid, and may not use. */
struct ledger_context {
    gpa_t pa;
    uint64_t pc, now;
    bool shown; /* by a DSB; missing is the synchronization of its context */
};

struct ledger_vcpu {
    struct ledger_loaded loaded[2];
    gpa_t walked;      /* by software; LEDGER_NO_ROOT: none */
    uint64_t asked_by; /* whose requests to flush it has not served */
    unsigned el;
    struct ledger_context context[LEDGER_CONTEXTS]; /* the oldest first */
    unsigned contexts;
    bool is_nested; /* S13: it may have returned to EL1, unseen */
    bool tlbi;      /* a broadcast one since its last wide DSB */
    struct ledger_big big[LEDGER_BIGS];
    unsigned bigs; /* in use, or more: some were lost */
    gva_t fault_va;
    gpa_t fault_pa; /* of its descriptor; changed: 0 */
    unsigned faults;
};

enum ledger_class {
    LEDGER_TABLE,
    LEDGER_RECORD,
    LEDGER_TAG_CLASS,
    LEDGER_CLEAN_CLASS,
    LEDGER_CLASSES
};

/* Copied as a whole; the rest is in the arena. */
struct ledger_state {
    size_t used;
    void *free[LEDGER_CLASSES];
    struct ledger_table *bucket[LEDGER_BUCKETS];
    struct ledger_old *frame[LEDGER_FRAME_BUCKETS];
    struct ledger_old *huge; /* of level 1: more than a region */
    struct ledger_record *open;
    struct ledger_tag *tags;
    struct ledger_vcpu *vcpu;
    struct ledger_operation *op; /* LEDGER_OPS_MAX */
    struct ledger_pin *pin;      /* LEDGER_PINS_MAX */
    unsigned pins;
    struct ledger_clean *clean[LEDGER_CLEAN_BUCKETS];
    uint64_t seq;
    uint64_t late;   /* who is in some record's late mask */
    uint64_t looked; /* who came back to EL0, and owes nothing under its root */
    uint64_t clash;  /* who loaded an ASID that another one had loaded, too */
    uint64_t tables, records;
};

struct ledger {
    struct ledger_config config;
    bool full; /* not only S8 and S10 */
    struct ledger_state s;
    struct ledger_counts counts;
    /* ledger_journal.c's: */
    unsigned char *base, *copy;
    size_t size;
    uint8_t *dirty;    /* a byte for each piece */
    uint32_t *dirties; /* the pieces that are */
    size_t dirty_count;
    struct ledger_state saved;
    bool has_saved;
};

static inline uint64_t ledger_bit(unsigned vcpu)
{
    return UINT64_C(1) << vcpu;
}

/* --- ledger_journal.c --- */

bool ledger_arena_init(struct ledger *l, size_t size);
void ledger_arena_free(struct ledger *l);
/* Zero; NULL: there is no room. */
void *ledger_alloc(struct ledger *l, enum ledger_class c);
/* For ever, of any size. */
void *ledger_reserve(struct ledger *l, size_t size);
void ledger_release(struct ledger *l, enum ledger_class c, void *object);
void ledger_touch_pieces(struct ledger *l, size_t from, size_t to);

/* These bytes are about to change. Outside of the arena: nothing. */
static inline void ledger_touch(struct ledger *l, const void *p, size_t size)
{
    size_t from = (size_t)((const unsigned char *)p - l->base);

    if (l->has_saved && from < l->size) {
        ledger_touch_pieces(l, from, from + size);
    }
}

/* --- ledger_tables.c --- */

struct ledger_table *ledger_table_find(struct ledger *l, gpa_t pa);
/* The table that this descriptor of `t` leads to, if it is known. */
struct ledger_table *ledger_table_child(struct ledger *l,
                                        struct ledger_table *t, unsigned index,
                                        uint64_t desc);
/* The table and all below it are not watched any more. */
void ledger_table_forget(struct ledger *l, struct ledger_table *t);
/* A root that no vCPU has loaded, and that leads nowhere. Else nothing. */
void ledger_table_forget_idle(struct ledger *l, struct ledger_table *t);
/* Of a valid leaf, by the tables that are known; 0: there is none. */
gpa_t ledger_leaf_of(struct ledger *l, gpa_t root, gva_t va, unsigned *level);

/* --- ledger_tags.c --- */

/* A root is loaded, in the low half: who has its entries, and whose ASID? */
void ledger_tag_load(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t root,
                     uint16_t asid);
/* The vCPU is about to load another one. */
void ledger_tag_leave(struct ledger *l, unsigned vcpu);
/* The page is no root any more. */
void ledger_tag_root_gone(struct ledger *l, gpa_t root);
/* A root got its first valid descriptor. */
void ledger_tag_filled(struct ledger *l, gpa_t root);
void ledger_tag_off(struct ledger *l, unsigned vcpu);
/* A vCPU of s.clash is back at EL0. */
void ledger_tag_back(struct ledger *l, unsigned vcpu);
unsigned ledger_el_of(const struct ledger *l, unsigned vcpu);
bool ledger_is_dying(const struct ledger *l, gpa_t root);
/* Who may have what the table's root leads to; tag: under which ASID. */
uint64_t ledger_holders(struct ledger *l, const struct ledger_table *root,
                        uint16_t *tag);
void ledger_big_issue(struct ledger *l, unsigned vcpu,
                      const struct tlbi_op *op);
void ledger_big_wait(struct ledger *l, unsigned vcpu, struct ledger_dsb dsb);

/* --- ledger_records.c --- */

/* Who would break some rule by coming back. */
static inline uint64_t ledger_record_late(const struct ledger_record *r)
{
    uint64_t mask = 0;

    for (unsigned i = 0; i < LEDGER_LATES; i++) {
        mask |= r->late[i].mask;
    }
    return mask;
}

/* The one there is, or a new one; NULL: memory is short. */
struct ledger_record *ledger_record_of(struct ledger *l, struct ledger_table *t,
                                       unsigned index);
void ledger_record_free(struct ledger *l, struct ledger_record *r);
/* Its table is given away: nobody can reach the record by it any more. */
void ledger_record_orphan(struct ledger *l, struct ledger_record *r);
/* A store took `old` away, or made it less. */
void ledger_broken(struct ledger *l, unsigned vcpu, uint64_t pc,
                   struct ledger_table *t, unsigned index, uint64_t old,
                   enum ledger_why why);
/* These vCPUs do not have it any more. */
void ledger_record_clean(struct ledger *l, struct ledger_record *r,
                         uint64_t mask);
/* These have nothing of the root any more, whatever it said meanwhile. */
void ledger_record_emptied(struct ledger *l, unsigned by, gpa_t root,
                           uint16_t asid, bool is_all, uint64_t mask);
/* They do not, but for what their units do (own_dsb); by: who waited. */
void ledger_record_over(struct ledger *l, struct ledger_record *r, unsigned by,
                        uint64_t mask);
/* A vCPU loads the root: what walkers may still find, it may find. */
void ledger_record_new_holder(struct ledger *l, gpa_t root, unsigned half,
                              unsigned vcpu, uint16_t asid);
/* Closes what is clean; those of a table before the one that led to it. */
void ledger_sweep(struct ledger *l);
/* The first of the olds that have this region's frames, or NULL. */
struct ledger_old *ledger_olds_of(struct ledger *l, gpa_t frame);
/* PERM_* that the old one had and the place has not. */
uint8_t ledger_record_lost(const struct ledger *l,
                           const struct ledger_record *r,
                           const struct ledger_old *old);

/* --- ledger_judge.c --- */

/* Of a record's holders: who can use it now, and who may be able to later. */
struct ledger_sight {
    uint64_t now, later;
};

struct ledger_sight ledger_see(const struct ledger *l,
                               const struct ledger_record *r, uint64_t mask);
bool ledger_is_live(const struct ledger *l, const struct ledger_record *r,
                    unsigned vcpu);
/* Why the store is not visible to all walkers. */
enum ledger_step ledger_store_step(const struct ledger_record *r);
void ledger_report(struct ledger *l, struct ledger_violation *v);
struct ledger_violation ledger_describe(const struct ledger_table *t,
                                        unsigned index);
/*
 * Completes and reports it: what is missing is what the record says. Or keeps
 * it for those who may come back.
 */
void ledger_tell(struct ledger *l, struct ledger_violation *v,
                 struct ledger_record *r, struct ledger_sight sight);

/* --- ledger_context.c --- */

void ledger_context_store(struct ledger *l, unsigned vcpu, uint64_t pc,
                          const struct ledger_table *t, unsigned index,
                          uint64_t now);
void ledger_context_dsb(struct ledger *l, unsigned vcpu, struct ledger_dsb dsb);

/* --- ledger_said.c --- */

/* A table is linked no more: who walks its root by software may be in it. */
void ledger_said_unlinked(struct ledger *l, unsigned vcpu, uint64_t pc,
                          const struct ledger_table *t);
/* A page is given away. */
void ledger_said_free(struct ledger *l, unsigned vcpu, uint64_t pc, gpa_t page);

/* --- ledger_bbm.c --- */

/* As ledger_change(), but pages that nobody can tell apart are the same. */
enum ledger_change ledger_change_of(const struct ledger *l, uint64_t old,
                                    uint64_t now, unsigned level);
/* A valid descriptor where the old ones may still be held. */
void ledger_judge_make(struct ledger *l, unsigned vcpu, uint64_t pc,
                       struct ledger_record *r, uint64_t now);
/* A valid descriptor that may lead to a table which is not out of use. */
void ledger_judge_link(struct ledger *l, unsigned vcpu, uint64_t pc,
                       struct ledger_table *t, unsigned index, uint64_t now);
/* A store to a table that is unlinked and not out of use. */
void ledger_judge_reuse(struct ledger *l, unsigned vcpu, uint64_t pc,
                        struct ledger_table *t, unsigned index, uint64_t now);
/* One valid descriptor where another is. */
void ledger_judge_replace(struct ledger *l, unsigned vcpu, uint64_t pc,
                          struct ledger_table *t, unsigned index, uint64_t now,
                          enum ledger_change change);
/* A page that is or was a table is given away. */
void ledger_judge_table_free(struct ledger *l, unsigned vcpu, uint64_t pc,
                             gpa_t page);

#endif
