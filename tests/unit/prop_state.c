/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property tests: a TLB or a queue that was rolled back is as at the moment of
 * the checkpoint, and goes on as it would have gone on then; and the past of
 * the exclusives' sequence words does not show once the monitors are open.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exclusive_fixture.h"
#include "mmu/inval.h"
#include "mmu/tlb.h"
#include "mmu_random.h"

static void note(uint64_t *log, uint64_t value)
{
    *log = (*log ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *log ^= *log >> 29;
}

/* --- the TLB --- */

static void note_entry(uint64_t *log, const struct tlb_entry *entry)
{
    if (!entry || !entry->valid) {
        note(log, 1);
        return;
    }
    note(log, entry->va | entry->t.page_shift);
    note(log,
         (uint64_t)entry->asid << 8 | entry->t.perms << 1 | entry->t.global);
    note(log, entry->t.base);
}

static void note_dropped(void *opaque, const struct tlb_entry *entry)
{
    note_entry(opaque, entry);
}

static bool note_each(void *opaque, struct tlb_entry *entry)
{
    note_entry(opaque, entry);
    return true;
}

static bool note_table(void *opaque, const struct walk_cache_entry *entry)
{
    note(opaque, entry->va | entry->level);
    note(opaque, entry->next_table);
    note(opaque, entry->hierarchy | entry->asid);
    return true;
}

/* All that can be seen without changing anything. */
static uint64_t contents(struct tlb *tlb)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);
    uint64_t log = 0;

    tlb_foreach(tlb, note_each, &log);
    note(&log, tlb_occupancy(tlb));
    if (wc) {
        walk_cache_foreach(wc, note_table, &log);
        note(&log, walk_cache_occupancy(wc));
    }
    return log;
}

/* Few values, so that addresses meet each other. */
static gva_t some_va(struct rng *rng)
{
    static const uint64_t indices[] = {0, 1, 2, 511};
    gva_t va = (gva_t)below(rng, 24) << 12;

    for (unsigned level = 0; level < 3; level++) {
        va |= indices[below(rng, percent(rng, 60) ? 1 : 4)] << (39 - 9 * level);
    }
    return percent(rng, 30) ? va | UINT64_C(0xffff) << 48 : va;
}

static void fill(struct tlb *tlb, struct rng *rng, uint64_t *log)
{
    unsigned level = percent(rng, 80) ? 3 : 1 + below(rng, 2);
    struct translation t = {.base = rng_next(rng) & DESC_ADDR_MASK,
                            .page_shift = (uint8_t)(39 - 9 * level),
                            .level = (uint8_t)level,
                            .perms = PERM_R1,
                            .global = percent(rng, 20)};
    gva_t va = some_va(rng);
    uint16_t asid = (uint16_t)(1 + below(rng, 3));
    struct tlb_entry evicted;

    note_entry(log, tlb_insert(tlb, va, asid, &t, &evicted));
    note_entry(log, &evicted);
}

static void use_tables(struct tlb *tlb, struct rng *rng, uint64_t *log)
{
    struct walk_cache *wc = tlb_walk_cache(tlb);
    struct walk_cache_entry table = {.va = some_va(rng),
                                     .asid = (uint16_t)(1 + below(rng, 3)),
                                     .level = (uint8_t)below(rng, 3),
                                     .next_table = rng_next(rng)};
    const struct walk_cache_entry *found;

    if (!wc) {
        return;
    }
    if (percent(rng, 50)) {
        walk_cache_insert(wc, &table);
        return;
    }
    found = walk_cache_lookup(wc, table.va, table.asid);
    note(log, found ? found->next_table : 1);
}

static void tlb_step(struct tlb *tlb, struct rng *rng, uint64_t *log)
{
    unsigned kind = below(rng, 100);
    gva_t va = some_va(rng);
    uint16_t asid = (uint16_t)(1 + below(rng, 3));
    struct tlb_entry *entry;
    struct tlbi_op op;

    if (kind < 40) {
        fill(tlb, rng, log);
    } else if (kind < 65) {
        entry = tlb_lookup(tlb, va, asid);
        note_entry(log, entry);
        if (entry) {
            entry->owner_tag = rng_next(rng);
        }
    } else if (kind < 70) {
        note_entry(log, tlb_peek(tlb, va, asid));
    } else if (kind < 88) {
        use_tables(tlb, rng, log);
    } else if (kind < 92) {
        entry = tlb_lookup(tlb, va, asid);
        if (entry) {
            tlb_drop(tlb, entry);
        }
    } else {
        struct ref_tlbi raw = random_tlbi(rng, va, asid);

        if (tlbi_decode(0, 8, raw.crm, raw.op2, raw.xt, true, &op)) {
            note(log, tlb_invalidate(tlb, &op, note_dropped, log));
        }
    }
}

static uint64_t tlb_steps(struct tlb *tlb, uint64_t stream, unsigned count)
{
    struct rng rng = rng_for(stream);
    uint64_t log = 0;

    for (unsigned i = 0; i < count; i++) {
        tlb_step(tlb, &rng, &log);
    }
    return log;
}

static struct tlb_config random_config(struct rng *rng)
{
    return (struct tlb_config){
        .sets = 1u << below(rng, 6),
        .ways = 1 + below(rng, 9),
        .replacement = (enum tlb_replacement)below(rng, 3),
        .walk_cache_entries = percent(rng, 20) ? 0 : 1 + below(rng, 20),
        .seed = rng_next(rng)};
}

START_TEST(a_rolled_back_tlb_is_the_one_of_the_checkpoint)
{
    unsigned moved = 0, tries = 0;

    for (unsigned round = 0; round < 600; round++) {
        struct rng rng = rng_for(round);
        struct tlb_config config = random_config(&rng);
        struct tlb *tlb = tlb_new(&config), *then = tlb_new(&config);
        struct tlb *other = tlb_new(&config);
        uint64_t stream = UINT64_C(1) << 40 | (uint64_t)round << 8;
        uint64_t at_checkpoint = 0;

        tlb_steps(tlb, stream, below(&rng, 300));
        for (unsigned i = 0; i < 12; i++) {
            if (i == 0 || percent(&rng, 30)) {
                tlb_steps(tlb, ++stream, below(&rng, 50));
                REQUIRE(tlb_checkpoint(tlb) && tlb_copy(then, tlb), "memory");
                at_checkpoint = contents(tlb);
            }
            if (percent(&rng, 10)) { /* becomes a different one altogether */
                tlb_steps(other, ++stream, 100);
                REQUIRE(tlb_copy(tlb, other), "geometry");
            }
            tlb_steps(tlb, ++stream, below(&rng, percent(&rng, 70) ? 20 : 400));
            moved += contents(tlb) != at_checkpoint;
            tries++;
            tlb_rollback(tlb);
            REQUIRE(contents(tlb) == at_checkpoint,
                    "seed %" PRIu64 " round %u try %u: other contents",
                    base_seed, round, i);
            /* What cannot be seen decides who is evicted next. */
            REQUIRE(tlb_copy(other, then), "geometry");
            stream++;
            REQUIRE(tlb_steps(tlb, stream, 150) ==
                            tlb_steps(other, stream, 150) &&
                        contents(tlb) == contents(other),
                    "seed %" PRIu64 " round %u try %u: went elsewhere",
                    base_seed, round, i);
            tlb_rollback(tlb);
            REQUIRE(contents(tlb) == at_checkpoint,
                    "seed %" PRIu64 " round %u try %u: not a second time",
                    base_seed, round, i);
        }
        tlb_free(tlb);
        tlb_free(then);
        tlb_free(other);
    }
    ck_assert_uint_gt(moved, tries / 2);
}
END_TEST

/* --- the queue of invalidations --- */

#define ISSUERS 4u
#define TAKEN 64u

/* A queue, the tickets of its issuers, and what its target has taken. */
struct target {
    struct inval_queue *queue;
    uint64_t ticket[ISSUERS];
    struct inval_item taken[TAKEN];
    unsigned first, last; /* taken and not acknowledged */
};

static void note_item(uint64_t *log, const struct inval_item *item)
{
    note(log, (uint64_t)item->issuer << 8 | (unsigned)item->op.kind);
    note(log, item->ticket);
    note(log, item->op.va);
}

static uint64_t owed(const struct target *t)
{
    struct inval_item item;
    uint64_t log = 0;

    note(&log, inval_pending(t->queue));
    for (unsigned i = 0; inval_peek(t->queue, i, &item); i++) {
        note_item(&log, &item);
    }
    for (uint32_t i = 0; i < ISSUERS; i++) {
        note(&log, inval_acknowledged(t->queue, i));
        note(&log, inval_owed(t->queue, i));
    }
    return log;
}

static void queue_step(struct target *t, struct rng *rng, uint64_t *log)
{
    unsigned kind = below(rng, 100), burst = percent(rng, 10) ? 8 : 1;
    struct inval_item item;

    if (kind < 45) {
        for (; burst > 0; burst--) {
            uint32_t issuer = below(rng, ISSUERS);
            struct tlbi_op op = {.kind = TLBI_VA,
                                 .scope = TLBI_IS,
                                 .va = rng_next(rng) & ~UINT64_C(0xfff),
                                 .size = MMU_PAGE_SIZE};

            note(log, inval_post(t->queue, issuer, ++t->ticket[issuer], &op));
        }
    } else if (kind < 75 && t->last - t->first < TAKEN) {
        bool peeked = inval_peek(t->queue, 0, &item);
        struct inval_item *slot = &t->taken[t->last % TAKEN];

        REQUIRE(inval_take(t->queue, slot) == peeked, "seed %" PRIu64,
                base_seed);
        if (peeked) {
            REQUIRE(
                slot->issuer == item.issuer && slot->ticket == item.ticket &&
                    slot->op.kind == item.op.kind && slot->op.va == item.op.va,
                "seed %" PRIu64 ": took what was not the oldest", base_seed);
            note_item(log, slot);
            t->last++;
        }
    } else if (t->first != t->last) {
        item = t->taken[t->first++ % TAKEN];
        inval_acknowledge(t->queue, item.issuer, item.ticket);
    }
    note(log, owed(t));
}

static uint64_t queue_steps(struct target *t, uint64_t stream, unsigned count)
{
    struct rng rng = rng_for(stream);
    uint64_t log = 0;

    for (unsigned i = 0; i < count; i++) {
        queue_step(t, &rng, &log);
    }
    return log;
}

/* `to` gets what a machine has beside the queue: tickets, items in hand. */
static void world_back(struct target *to, const struct target *from)
{
    struct inval_queue *queue = to->queue;

    *to = *from;
    to->queue = queue;
}

START_TEST(a_rolled_back_queue_is_the_one_of_the_checkpoint)
{
    unsigned moved = 0, tries = 0, collapses = 0;

    for (unsigned round = 0; round < 600; round++) {
        struct rng rng = rng_for(UINT64_C(2) << 40 | round);
        unsigned capacity = 1 + below(&rng, 9);
        struct target t = {.queue = inval_queue_new(ISSUERS, capacity)};
        struct target then = {.queue = inval_queue_new(ISSUERS, capacity)};
        struct target other = {.queue = inval_queue_new(ISSUERS, capacity)};
        uint64_t stream = UINT64_C(3) << 40 | (uint64_t)round << 8;
        uint64_t at_checkpoint = 0;

        queue_steps(&t, stream, below(&rng, 60));
        for (unsigned i = 0; i < 12; i++) {
            if (i == 0 || percent(&rng, 30)) {
                queue_steps(&t, ++stream, below(&rng, 20));
                REQUIRE(inval_checkpoint(t.queue) &&
                            inval_queue_copy(then.queue, t.queue),
                        "memory");
                world_back(&then, &t);
                at_checkpoint = owed(&t);
            }
            queue_steps(&t, ++stream, below(&rng, 30));
            moved += owed(&t) != at_checkpoint;
            tries++;
            inval_rollback(t.queue);
            world_back(&t, &then);
            REQUIRE(owed(&t) == at_checkpoint,
                    "seed %" PRIu64 " round %u try %u: owes other things",
                    base_seed, round, i);
            REQUIRE(inval_queue_copy(other.queue, then.queue), "sizes");
            world_back(&other, &then);
            stream++;
            REQUIRE(queue_steps(&t, stream, 60) ==
                        queue_steps(&other, stream, 60),
                    "seed %" PRIu64 " round %u try %u: went elsewhere",
                    base_seed, round, i);
            inval_rollback(t.queue);
            world_back(&t, &then);
        }
        collapses += inval_overflows(t.queue) > 0;
        inval_queue_free(t.queue);
        inval_queue_free(then.queue);
        inval_queue_free(other.queue);
    }
    ck_assert_uint_gt(moved, tries / 2);
    ck_assert_uint_gt(collapses, 100);
}
END_TEST

/* --- exclusives --- */

#define CELLS 12u

struct pair {
    struct cpu cpu[2];
    _Alignas(16) uint64_t cell[CELLS];
};

static void pair_step(struct pair *p, struct rng *rng)
{
    static const uint32_t words[] = {
        LDXR_X,    LDXR_X,  STXR_X,   STXR_X, LDXP_X, STLXP_X, CLREX,
        LDADDAL_X, CASAL_X, CASPAL_X, STLR_X, LDXR_W, STXR_W,  STLXP_X};
    struct cpu *cpu = &p->cpu[below(rng, 2)];
    unsigned at = below(rng, CELLS / 2) * 2;
    struct insn insn =
        cpu_decode(words[below(rng, sizeof(words) / sizeof(words[0]))]);
    struct atomic_io io;

    if (percent(rng, 10)) {
        p->cell[at] = below(rng, 3); /* a native plain store */
        return;
    }
    for (unsigned reg = 2; reg < 6; reg++) {
        cpu->x[reg] = percent(rng, 50) ? below(rng, 3) : cpu->x[reg];
    }
    atomic_gather(&insn, cpu_read_x, cpu, &io);
    (void)atomic_perform(cpu->ex, &cpu->state, &insn, &p->cell[at], at * 8,
                         &io);
    for (unsigned i = 0; i < io.outputs; i++) {
        cpu->x[io.out[i].reg & 31] = io.out[i].value;
    }
    cpu->x[31] = 0;
}

START_TEST(the_past_of_sequence_words_does_not_show_when_monitors_are_open)
{
    static struct pair old, fresh;
    unsigned stored = 0;

    for (unsigned round = 0; round < 300; round++) {
        struct rng rng = rng_for(UINT64_C(4) << 40 | round), same;

        memset(&old, 0, sizeof(old));
        memset(&fresh, 0, sizeof(fresh));
        old.cpu[0].ex = old.cpu[1].ex = exclusives_new();
        fresh.cpu[0].ex = fresh.cpu[1].ex = exclusives_new();
        for (unsigned i = below(&rng, 500); i > 0; i--) {
            pair_step(&old, &rng);
        }
        /* What a restore does: registers, memory, and open monitors. */
        memcpy(fresh.cell, old.cell, sizeof(old.cell));
        for (unsigned i = 0; i < 2; i++) {
            memcpy(fresh.cpu[i].x, old.cpu[i].x, sizeof(old.cpu[i].x));
            exclusive_state_clear(&old.cpu[i].state);
        }
        same = rng;
        for (unsigned i = 0; i < 300; i++) {
            bool armed = fresh.cpu[0].state.armed;

            pair_step(&old, &rng);
            pair_step(&fresh, &same);
            stored += armed && !fresh.cpu[0].state.armed;
            for (unsigned k = 0; k < 2; k++) {
                REQUIRE(memcmp(old.cpu[k].x, fresh.cpu[k].x,
                               sizeof(old.cpu[k].x)) == 0 &&
                            exclusive_state_holds(old.cpu[k].ex,
                                                  &old.cpu[k].state) ==
                                exclusive_state_holds(fresh.cpu[k].ex,
                                                      &fresh.cpu[k].state),
                        "seed %" PRIu64 " round %u step %u", base_seed, round,
                        i);
            }
            REQUIRE(memcmp(old.cell, fresh.cell, sizeof(old.cell)) == 0,
                    "seed %" PRIu64 " round %u step %u: memory", base_seed,
                    round, i);
        }
        exclusives_free(old.cpu[0].ex);
        exclusives_free(fresh.cpu[0].ex);
    }
    ck_assert_uint_gt(stored, 1000);
}
END_TEST

/* --- what it costs --- */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define VCPUS 4u
#define TIMES 2000u

/* Of one run: each vCPU fills and uses some pages and applies some TLBIs. */
static void touch(struct tlb *tlb, struct inval_queue *queue, unsigned pages)
{
    struct translation t = {.base = 0x1000, .page_shift = 12, .level = 3};
    struct walk_cache_entry table = {.level = 2};
    struct inval_item item;

    for (unsigned i = 0; i < pages; i++) {
        gva_t va = (gva_t)(5000 + i) << 12;
        struct tlbi_op op = {.kind = TLBI_VA,
                             .scope = TLBI_IS,
                             .last_level = true,
                             .asid = 1,
                             .va = va,
                             .size = MMU_PAGE_SIZE};

        (void)tlb_insert(tlb, va, 1, &t, NULL);
        (void)tlb_lookup(tlb, (gva_t)i << 12, 1);
        table.va = va << 9;
        walk_cache_insert(tlb_walk_cache(tlb), &table);
        if (i % 4 == 0) {
            (void)inval_post(queue, 0, inval_acknowledged(queue, 0) + 1, &op);
            if (inval_take(queue, &item)) {
                (void)tlb_invalidate(tlb, &item.op, NULL, NULL);
                inval_acknowledge(queue, item.issuer, item.ticket);
            }
        }
    }
}

START_TEST(the_cost_of_going_back_is_printed)
{
    static const struct tlb_config config = {
        .sets = 512, .ways = 8, .walk_cache_entries = 64};
    static const unsigned touched[] = {0, 4, 16, 64};
    struct translation t = {.page_shift = 12, .level = 3};
    struct tlb *tlb[VCPUS];
    struct inval_queue *queue[VCPUS];
    uint64_t spent, start;

    for (unsigned v = 0; v < VCPUS; v++) {
        tlb[v] = tlb_new(&config);
        queue[v] = inval_queue_new(512, 1024);
        for (unsigned i = 0; i < 3000; i++) {
            (void)tlb_insert(tlb[v], (gva_t)i << 12, 1, &t, NULL);
        }
        ck_assert(tlb_checkpoint(tlb[v]) && inval_checkpoint(queue[v]));
    }
    for (unsigned k = 0; k < 4; k++) {
        spent = 0;
        for (unsigned i = 0; i < TIMES; i++) {
            for (unsigned v = 0; v < VCPUS; v++) {
                touch(tlb[v], queue[v], touched[k]);
            }
            start = now_ns();
            for (unsigned v = 0; v < VCPUS; v++) {
                tlb_rollback(tlb[v]);
                inval_rollback(queue[v]);
            }
            spent += now_ns() - start;
        }
        printf("4 vCPUs, %u pages filled and %u used by each: TLBs and queues "
               "rolled back in %" PRIu64 " ns\n",
               touched[k], touched[k], spent / TIMES);
        fflush(stdout);
        ck_assert_uint_eq(tlb_occupancy(tlb[0]), 3000);
    }
    for (unsigned v = 0; v < VCPUS; v++) {
        tlb_free(tlb[v]);
        inval_queue_free(queue[v]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_state");
    TCase *tc = tcase_create("properties");
    SRunner *runner;
    int failed;

    seed_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_rolled_back_tlb_is_the_one_of_the_checkpoint);
    tcase_add_test(tc, a_rolled_back_queue_is_the_one_of_the_checkpoint);
    tcase_add_test(
        tc, the_past_of_sequence_words_does_not_show_when_monitors_are_open);
    tcase_add_test(tc, the_cost_of_going_back_is_printed);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
