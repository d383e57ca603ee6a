/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property test: every answer of a TLB is fresh, or stale with an invalidation
 * still owed.
 *
 * Several vCPUs access, store descriptors, switch contexts, issue TLBIs, apply
 * them late and execute DSBs at random. The model keeps for each vCPU *all*
 * that a TLB could hold, as if it had walked at every moment for every address
 * from the loaded root or from any table it could have cached: entries come
 * in whenever they are reachable and leave only by an applied operation that
 * names them. A correct TLB holds a subset, so each answer must be among them;
 * a fault must be what some current descriptor says. Completion is checked
 * against a list of operations and who has applied them.
 */

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mmu/inval.h"
#include "mmu/tlb.h"
#include "mmu_fixture.h"
#include "mmu_random.h"
#include "mmu_reference.h"

#define CPUS 3
#define CONTEXTS 3
#define LOW_VAS 16
#define VAS (LOW_VAS + 8)
#define POOL 4 /* tables for each of the levels 1 to 3 */
#define CAP 4096
#define MAX_OPS 4096

static const uint64_t used_index[2] = {1, 300};

struct may_leaf {
    gva_t va;
    uint16_t asid; /* 0 for global */
    struct ref_answer answer;
};

struct may_table {
    gva_t va;
    uint16_t asid;
    unsigned level;
    struct ref_step step;
};

struct pending {
    struct ref_tlbi raw;
    unsigned issuer;
    bool applied[CPUS];
};

struct mirror {
    unsigned op[MAX_OPS]; /* indices into world.ops */
    unsigned head, tail;
    bool collapsed;
};

struct cpu {
    struct tlb *tlb;
    unsigned context;
    struct may_leaf leaf[CAP];
    struct may_table table[CAP];
    unsigned leaves, tables;
    struct mirror queue;
};

struct world {
    struct rng rng;
    struct fake_mem mem;
    struct walk_mem reader;
    struct inval_domain *domain;
    unsigned capacity;
    uint64_t sctlr, tcr;
    gpa_t root[CONTEXTS], root1;
    gpa_t pool[3][POOL];
    gva_t va[VAS];
    struct cpu cpu[CPUS];
    struct pending ops[MAX_OPS];
    unsigned op_count;
    unsigned round;
    uint64_t answers, hits, stale, faults, collapses;
};

/* Two contexts share an ASID: a kernel that forgot to flush when reusing it. */
static const uint16_t context_asid[CONTEXTS] = {1, 2, 1};

static struct ref_regs regs_of(const struct world *w, const struct cpu *cpu)
{
    return (struct ref_regs){
        .sctlr = w->sctlr,
        .tcr = w->tcr,
        .ttbr = {w->root[cpu->context] | (uint64_t)context_asid[cpu->context]
                                             << 48,
                 w->root1},
    };
}

static void may_add_leaf(struct cpu *cpu, gva_t va, uint16_t asid,
                         const struct ref_answer *answer)
{
    struct may_leaf leaf = {.va = va >> answer->shift << answer->shift,
                            .asid = answer->global ? 0 : asid,
                            .answer = *answer};

    for (unsigned i = 0; i < cpu->leaves; i++) {
        struct may_leaf *old = &cpu->leaf[i];

        if (old->va == leaf.va && old->asid == leaf.asid &&
            same_answer(&old->answer, answer)) {
            return;
        }
    }
    REQUIRE(cpu->leaves < CAP, "the model needs more room");
    cpu->leaf[cpu->leaves++] = leaf;
}

static void may_add_table(struct cpu *cpu, gva_t va, uint16_t asid,
                          unsigned level, const struct ref_step *step)
{
    gva_t base = va & ~((UINT64_C(1) << (39 - 9 * level)) - 1);

    for (unsigned i = 0; i < cpu->tables; i++) {
        struct may_table *old = &cpu->table[i];

        if (old->va == base && old->asid == asid && old->level == level &&
            old->step.next == step->next &&
            old->step.no_write == step->no_write &&
            old->step.no_el0 == step->no_el0 &&
            old->step.no_ux == step->no_ux && old->step.no_px == step->no_px) {
            return;
        }
    }
    REQUIRE(cpu->tables < CAP, "the model needs more room");
    cpu->table[cpu->tables++] = (struct may_table){
        .va = base, .asid = asid, .level = level, .step = *step};
}

/* Asks whether a fault is possible, or (NULL) adds what is reachable. */
struct fault_query {
    enum walk_fault fault;
    unsigned level;
    bool possible;
};

static void explore(struct world *w, struct cpu *cpu, gva_t va,
                    struct ref_step at, unsigned level,
                    struct fault_query *query)
{
    struct ref_regs regs = regs_of(w, cpu);
    uint16_t asid = context_asid[cpu->context];

    for (;; level++) {
        at = ref_step(&regs, &w->reader, va, at.next, level,
                      ref_low_bit(level) + 8, at);
        if (at.ends) {
            break;
        }
        if (!query) {
            may_add_table(cpu, va, asid, level, &at);
        }
    }
    if (query) {
        query->possible |=
            at.answer.fault == query->fault && at.answer.level == query->level;
    } else if (at.answer.fault == WALK_OK) {
        may_add_leaf(cpu, va, asid, &at.answer);
    }
}

static void explore_all(struct world *w, struct cpu *cpu, gva_t va,
                        struct fault_query *query)
{
    uint16_t asid = context_asid[cpu->context];
    struct ref_step root = {.next = ref_bit(va, 55) ? w->root1
                                                    : w->root[cpu->context]};
    unsigned known = cpu->tables;

    explore(w, cpu, va, root, 0, query);
    for (unsigned i = 0; i < known; i++) {
        const struct may_table *table = &cpu->table[i];
        unsigned shift = 39 - 9 * table->level;

        if (table->asid == asid && table->va >> shift == va >> shift) {
            explore(w, cpu, va, table->step, table->level + 1, query);
        }
    }
}

/* Brings in what the vCPU could cache now. */
static void model_close(struct world *w, struct cpu *cpu)
{
    for (unsigned i = 0; i < VAS; i++) {
        explore_all(w, cpu, w->va[i], NULL);
    }
}

static void model_invalidate(struct cpu *cpu, const struct ref_tlbi *raw)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < cpu->leaves; i++) {
        const struct may_leaf *leaf = &cpu->leaf[i];

        if (!ref_tlbi_drops(raw, true, leaf->va, leaf->asid, leaf->answer.level,
                            false, leaf->answer.global)) {
            cpu->leaf[kept++] = *leaf;
        }
    }
    cpu->leaves = kept;
    kept = 0;
    for (unsigned i = 0; i < cpu->tables; i++) {
        const struct may_table *table = &cpu->table[i];

        if (!ref_tlbi_drops(raw, true, table->va, table->asid, table->level,
                            true, false)) {
            cpu->table[kept++] = *table;
        }
    }
    cpu->tables = kept;
}

/* The domain applies an operation: to the TLB, and by the mirror to the model.
 */
static void apply(void *opaque, uint32_t target, const struct tlbi_op *op)
{
    static const struct ref_tlbi everything = {.crm = 3, .op2 = 0};
    struct world *w = opaque;
    struct cpu *cpu = &w->cpu[target];
    struct mirror *queue = &cpu->queue;
    unsigned count = queue->collapsed ? queue->tail - queue->head : 1;

    (void)tlb_invalidate(cpu->tlb, op, NULL, NULL);
    REQUIRE(queue->head < queue->tail, "applied what nobody issued");
    if (queue->collapsed) {
        REQUIRE(op->kind == TLBI_ALL, "an overflow must flush everything");
        model_invalidate(cpu, &everything);
        w->collapses++;
    } else {
        model_invalidate(cpu, &w->ops[queue->op[queue->head]].raw);
    }
    for (unsigned i = 0; i < count; i++) {
        w->ops[queue->op[queue->head++]].applied[target] = true;
    }
    queue->collapsed = false;
    model_close(w, cpu);
}

static void issue(struct world *w, unsigned issuer)
{
    struct pending *op = &w->ops[w->op_count];
    struct tlbi_op decoded;

    if (w->op_count == MAX_OPS) {
        return;
    }
    op->raw = random_tlbi(&w->rng, w->va[below(&w->rng, VAS)],
                          (uint16_t)(1 + below(&w->rng, 2)));
    op->issuer = issuer;
    REQUIRE(
        tlbi_decode(0, 8, op->raw.crm, op->raw.op2, op->raw.xt, true, &decoded),
        "not decoded");
    for (unsigned i = 0; i < CPUS; i++) {
        struct mirror *queue = &w->cpu[i].queue;

        if (ref_tlbi_is_local(&op->raw) && i != issuer) {
            op->applied[i] = true;
            continue;
        }
        op->applied[i] = false;
        if (queue->tail - queue->head >= w->capacity) {
            queue->collapsed = true;
        }
        queue->op[queue->tail++] = w->op_count;
    }
    w->op_count++;
    (void)inval_domain_issue(w->domain, issuer, &decoded);
}

/* By the list of operations, not by tickets. */
static bool all_applied(const struct world *w, unsigned issuer)
{
    for (unsigned i = 0; i < w->op_count; i++) {
        for (unsigned cpu = 0; cpu < CPUS; cpu++) {
            if (w->ops[i].issuer == issuer && !w->ops[i].applied[cpu]) {
                return false;
            }
        }
    }
    return true;
}

static void check_completion(const struct world *w)
{
    for (unsigned i = 0; i < CPUS; i++) {
        REQUIRE(inval_domain_complete(w->domain, i) == all_applied(w, i),
                "seed %" PRIu64 " round %u: completion of vCPU %u", base_seed,
                w->round, i);
    }
}

/* A descriptor for a slot of this level (a table may serve other levels). */
static uint64_t random_entry(struct world *w, unsigned level)
{
    uint64_t noise = rng_next(&w->rng);
    uint64_t attributes = noise & (DESC_UXN | DESC_PXN | DESC_AP_READ_ONLY |
                                   DESC_AP_EL0 | DESC_NG | DESC_ATTR(7));
    unsigned kind = below(&w->rng, 100);

    if (kind < 3) {
        return 0;
    }
    if (level == 3 || kind < (level ? 18 : 4)) {
        attributes |= FAKE_BASE + (UINT64_C(0x40000000) << (noise >> 62));
        attributes |= kind == 99 ? 0 : DESC_AF;
        return attributes | (level == 3 ? 3 : 1);
    }
    if (percent(&w->rng, 20)) {
        noise &= DESC_HIERARCHY_MASK;
    } else {
        noise = 0;
    }
    level = percent(&w->rng, 5) ? below(&w->rng, 3) : level;
    return noise | w->pool[level][below(&w->rng, POOL)] | 3;
}

static void store(struct world *w)
{
    unsigned which = below(&w->rng, CONTEXTS + 1 + 3 * POOL);
    unsigned level = 0;
    gpa_t table;

    if (which < CONTEXTS) {
        table = w->root[which];
    } else if (which == CONTEXTS) {
        table = w->root1;
    } else {
        which -= CONTEXTS + 1;
        level = 1 + which / POOL;
        table = w->pool[level - 1][which % POOL];
    }
    *fake_word(&w->mem, table + 8 * used_index[below(&w->rng, 2)]) =
        random_entry(w, level);
    for (unsigned i = 0; i < CPUS; i++) {
        model_close(w, &w->cpu[i]);
    }
}

static bool may_answer(const struct cpu *cpu, gva_t va,
                       const struct translation *t)
{
    uint16_t asid = context_asid[cpu->context];

    for (unsigned i = 0; i < cpu->leaves; i++) {
        const struct may_leaf *leaf = &cpu->leaf[i];

        if ((leaf->answer.global || leaf->asid == asid) &&
            va >> leaf->answer.shift == leaf->va >> leaf->answer.shift &&
            same_translation(&leaf->answer, t)) {
            return true;
        }
    }
    return false;
}

static void access_one(struct world *w, struct cpu *cpu)
{
    gva_t va = w->va[below(&w->rng, VAS)] + below(&w->rng, 4096);
    struct ref_regs regs = regs_of(w, cpu);
    struct ref_answer fresh = ref_walk(&regs, &w->reader, va);
    struct regime regime;
    struct tlb_entry *entry;
    struct walk_result r = {0};

    regime_decode(&regime, regs.sctlr, regs.tcr, regs.ttbr[0], regs.ttbr[1]);
    entry = tlb_lookup(cpu->tlb, va, regime.asid);
    w->answers++;
    if (entry) {
        r.t = entry->t;
        w->hits++;
    } else {
        r = walk_stage1_from(&regime, &w->reader, tlb_walk_cache(cpu->tlb), va);
        if (r.fault == WALK_OK) {
            (void)tlb_insert(cpu->tlb, va, regime.asid, &r.t, NULL);
        }
    }
    if (r.fault != WALK_OK) {
        struct fault_query query = {.fault = r.fault, .level = r.level};

        explore_all(w, cpu, va, &query);
        REQUIRE(query.possible,
                "seed %" PRIu64 " round %u: %" PRIx64
                " faults with %d at level %u",
                base_seed, w->round, va, r.fault, r.level);
        w->faults++;
    } else {
        REQUIRE(may_answer(cpu, va, &r.t),
                "seed %" PRIu64 " round %u: vCPU %d, ASID %u, %" PRIx64
                " (%s): %" PRIx64 " level %u was invalidated",
                base_seed, w->round, (int)(cpu - w->cpu), regime.asid, va,
                entry ? "hit" : "walk", r.t.base, r.t.level);
        w->stale += fresh.fault != WALK_OK || !same_translation(&fresh, &r.t);
    }
}

static void step(struct world *w)
{
    unsigned index = below(&w->rng, CPUS);
    struct cpu *cpu = &w->cpu[index];
    unsigned kind = below(&w->rng, 100);

    if (kind < 75) {
        access_one(w, cpu);
    } else if (kind < 80) {
        store(w);
    } else if (kind < 88) {
        issue(w, index);
    } else if (kind < 93) {
        (void)inval_domain_apply_one(w->domain, index, apply, w);
    } else if (kind < 96) {
        inval_domain_drain(w->domain, index, apply, w);
        ck_assert(inval_domain_complete(w->domain, index));
        check_completion(w);
    } else if (kind < 99) {
        cpu->context = below(&w->rng, CONTEXTS);
        model_close(w, cpu);
    } else {
        check_completion(w);
    }
}

static void world_init(struct world *w, unsigned round)
{
    w->round = round;
    w->rng = rng_for(1000000 + round);
    memset(&w->mem, 0, sizeof(w->mem));
    w->reader = fake_walk_mem(&w->mem);
    w->sctlr = percent(&w->rng, 20) ? SCTLR_M | SCTLR_WXN : SCTLR_M;
    w->tcr = FAKE_TCR;
    w->op_count = 0;
    w->capacity = percent(&w->rng, 30) ? 2 + below(&w->rng, 4) : MAX_OPS;
    w->domain = inval_domain_new(CPUS, w->capacity);
    ck_assert_ptr_nonnull(w->domain);
    for (unsigned i = 0; i < CONTEXTS; i++) {
        w->root[i] = fake_page(&w->mem);
    }
    w->root1 = fake_page(&w->mem);
    for (unsigned i = 0; i < 3 * POOL; i++) {
        w->pool[i / POOL][i % POOL] = fake_page(&w->mem);
    }
    for (unsigned i = 0; i < VAS; i++) {
        w->va[i] = used_index[i & 1] << 12 | used_index[i >> 1 & 1] << 21 |
                   used_index[i >> 2 & 1] << 30 | used_index[i >> 3 & 1] << 39;
        if (i >= LOW_VAS) {
            w->va[i] |= UINT64_C(0xffff) << 48;
        }
    }
    for (unsigned i = 0; i < CPUS; i++) {
        struct tlb_config config = {.sets = 1u << below(&w->rng, 5),
                                    .ways = 1 + below(&w->rng, 8),
                                    .replacement =
                                        (enum tlb_replacement)below(&w->rng, 3),
                                    .walk_cache_entries = below(&w->rng, 24),
                                    .seed = round};
        struct cpu *cpu = &w->cpu[i];

        cpu->tlb = tlb_new(&config);
        ck_assert_ptr_nonnull(cpu->tlb);
        cpu->context = below(&w->rng, CONTEXTS);
        cpu->leaves = cpu->tables = 0;
        cpu->queue.head = cpu->queue.tail = 0;
        cpu->queue.collapsed = false;
    }
    for (unsigned i = 0; i < 60; i++) {
        store(w);
    }
}

static void world_fini(struct world *w)
{
    for (unsigned i = 0; i < CPUS; i++) {
        tlb_free(w->cpu[i].tlb);
    }
    inval_domain_free(w->domain);
}

START_TEST(answers_are_fresh_or_stale_with_an_invalidation_owed)
{
    struct world *w = calloc(1, sizeof(*w));

    for (unsigned round = 0; round < 500; round++) {
        world_init(w, round);
        for (unsigned i = 0; i < 500; i++) {
            step(w);
        }
        world_fini(w);
    }
    /* It says something only if the interesting things happen. */
    printf("answers %" PRIu64 ", hits %" PRIu64 ", stale %" PRIu64
           ", faults %" PRIu64 ", collapses %" PRIu64 "\n",
           w->answers, w->hits, w->stale, w->faults, w->collapses);
    fflush(stdout);
    ck_assert_uint_gt(w->stale, w->answers / 50);
    ck_assert_uint_gt(w->hits, w->answers / 5);
    ck_assert_uint_gt(w->faults, w->answers / 50);
    ck_assert_uint_gt(w->collapses, 10);
    free(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_stale");
    TCase *tc = tcase_create("properties");
    SRunner *runner;
    int failed;

    seed_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, answers_are_fresh_or_stale_with_an_invalidation_owed);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_VERBOSE);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
