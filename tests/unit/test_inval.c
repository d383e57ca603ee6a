/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: the invalidation domain, and the rule of TLBI and DSB. */
#include <check.h>
#include <stdlib.h>

#include "mmu/inval.h"
#include "mmu/tlb.h"
#include "mmu_fixture.h"

static struct tlbi_op page_op(gva_t va)
{
    return (struct tlbi_op){
        .kind = TLBI_VA, .scope = TLBI_IS, .va = va, .size = MMU_PAGE_SIZE};
}

static void post(struct inval_queue *queue, uint32_t issuer, uint64_t ticket)
{
    struct tlbi_op op = page_op(ticket << 12);

    (void)inval_post(queue, issuer, ticket, &op);
}

START_TEST(items_come_out_in_the_order_of_posting)
{
    struct inval_queue *queue = inval_queue_new(3, 4);
    struct inval_item item;

    ck_assert(!inval_take(queue, &item));
    /* More than the capacity in all, so that the ring wraps. */
    for (uint64_t ticket = 1; ticket < 12; ticket++) {
        post(queue, ticket % 3, ticket);
        post(queue, (ticket + 1) % 3, ticket);
        ck_assert_uint_eq(inval_pending(queue), 2);
        ck_assert(inval_take(queue, &item));
        ck_assert_uint_eq(item.issuer, ticket % 3);
        ck_assert_uint_eq(item.ticket, ticket);
        ck_assert_uint_eq(item.op.va, ticket << 12);
        ck_assert(inval_take(queue, &item));
        ck_assert_uint_eq(item.issuer, (ticket + 1) % 3);
        ck_assert(!inval_take(queue, &item));
    }
    inval_queue_free(queue);
}
END_TEST

START_TEST(an_item_is_owed_until_acknowledged_not_until_taken)
{
    struct inval_queue *queue = inval_queue_new(2, 4);
    struct inval_item item;

    ck_assert(!inval_owed(queue, 0));
    post(queue, 0, 1);
    ck_assert(inval_owed(queue, 0));
    ck_assert(!inval_owed(queue, 1));
    ck_assert(inval_take(queue, &item));
    ck_assert_uint_eq(inval_pending(queue), 0);
    ck_assert(inval_owed(queue, 0));
    ck_assert_uint_eq(inval_acknowledged(queue, 0), 0);
    inval_acknowledge(queue, item.issuer, item.ticket);
    ck_assert(!inval_owed(queue, 0));
    ck_assert_uint_eq(inval_acknowledged(queue, 0), 1);
    inval_queue_free(queue);
}
END_TEST

START_TEST(acknowledging_one_issuer_or_ticket_leaves_the_others_owed)
{
    struct inval_queue *queue = inval_queue_new(2, 4);

    post(queue, 0, 1);
    post(queue, 1, 1);
    post(queue, 0, 2);
    inval_acknowledge(queue, 1, 1);
    ck_assert(!inval_owed(queue, 1));
    ck_assert(inval_owed(queue, 0));
    inval_acknowledge(queue, 0, 1);
    ck_assert(inval_owed(queue, 0));
    inval_acknowledge(queue, 0, 2);
    ck_assert(!inval_owed(queue, 0));
    /* A late, older acknowledgement takes nothing back. */
    inval_acknowledge(queue, 0, 1);
    ck_assert_uint_eq(inval_acknowledged(queue, 0), 2);
    inval_queue_free(queue);
}
END_TEST

START_TEST(only_the_first_post_to_an_idle_target_asks_for_a_kick)
{
    struct inval_queue *queue = inval_queue_new(2, 2);
    struct tlbi_op op = page_op(0);
    struct inval_item item;

    ck_assert(inval_post(queue, 0, 1, &op));
    ck_assert(!inval_post(queue, 0, 2, &op));
    ck_assert(!inval_post(queue, 0, 3, &op)); /* overflows */
    ck_assert(!inval_post(queue, 0, 4, &op));
    ck_assert(inval_take(queue, &item));
    ck_assert(inval_post(queue, 0, 5, &op));
    inval_queue_free(queue);
}
END_TEST

START_TEST(overflow_becomes_one_full_flush_that_acknowledges_every_ticket)
{
    struct inval_queue *queue = inval_queue_new(3, 4);
    struct inval_item item;

    for (uint64_t ticket = 1; ticket <= 10; ticket++) {
        post(queue, ticket % 2, ticket);
    }
    ck_assert_uint_eq(inval_pending(queue), 1);
    ck_assert_uint_eq(inval_overflows(queue), 1);
    ck_assert(inval_take(queue, &item));
    ck_assert_uint_eq(item.issuer, INVAL_EVERYONE);
    ck_assert_int_eq(item.op.kind, TLBI_ALL);
    ck_assert(inval_owed(queue, 0) && inval_owed(queue, 1));
    inval_acknowledge(queue, item.issuer, item.ticket);
    ck_assert_uint_eq(inval_acknowledged(queue, 0), 10);
    ck_assert_uint_eq(inval_acknowledged(queue, 1), 9);
    ck_assert(!inval_owed(queue, 0) && !inval_owed(queue, 1));
    ck_assert(!inval_take(queue, &item));
    inval_queue_free(queue);
}
END_TEST

START_TEST(what_is_posted_during_a_full_flush_stays_owed)
{
    struct inval_queue *queue = inval_queue_new(1, 1);
    struct inval_item first, second;

    post(queue, 0, 1);
    post(queue, 0, 2);
    ck_assert(inval_take(queue, &first));
    post(queue, 0, 3);
    inval_acknowledge(queue, first.issuer, first.ticket);
    ck_assert_uint_eq(inval_acknowledged(queue, 0), 2);
    ck_assert(inval_owed(queue, 0));
    ck_assert(inval_take(queue, &second));
    ck_assert_uint_eq(second.ticket, 3);
    inval_acknowledge(queue, second.issuer, second.ticket);
    ck_assert(!inval_owed(queue, 0));
    inval_queue_free(queue);
}
END_TEST

START_TEST(an_earlier_full_flush_does_not_acknowledge_for_a_later_one)
{
    struct inval_queue *queue = inval_queue_new(1, 1);
    struct inval_item first, second;

    post(queue, 0, 1);
    post(queue, 0, 2);
    ck_assert(inval_take(queue, &first));
    post(queue, 0, 3);
    post(queue, 0, 4);
    ck_assert(inval_take(queue, &second));
    inval_acknowledge(queue, first.issuer, first.ticket);
    ck_assert(inval_owed(queue, 0));
    inval_acknowledge(queue, second.issuer, second.ticket);
    ck_assert(!inval_owed(queue, 0));
    inval_queue_free(queue);
}
END_TEST

START_TEST(a_copy_of_a_queue_owes_the_same)
{
    struct inval_queue *a = inval_queue_new(2, 4);
    struct inval_queue *b = inval_queue_new(2, 4);
    struct inval_queue *other = inval_queue_new(3, 4);
    struct inval_item item;

    post(a, 1, 1);
    post(a, 1, 2);
    ck_assert(inval_take(a, &item));
    ck_assert(!inval_queue_copy(other, a));
    ck_assert(inval_queue_copy(b, a));
    ck_assert(inval_owed(b, 1) && !inval_owed(b, 0));
    ck_assert(inval_take(b, &item));
    ck_assert_uint_eq(item.ticket, 2);
    inval_queue_free(a);
    inval_queue_free(b);
    inval_queue_free(other);
}
END_TEST

START_TEST(a_look_at_what_waits_takes_nothing)
{
    struct inval_queue *queue = inval_queue_new(2, 3);
    struct inval_item item;

    ck_assert(!inval_peek(queue, 0, &item));
    post(queue, 0, 1);
    ck_assert(inval_take(queue, &item)); /* the ring wraps from here */
    post(queue, 1, 2);
    post(queue, 0, 3);
    post(queue, 1, 4);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(inval_peek(queue, i, &item));
        ck_assert_uint_eq(item.ticket, i + 2);
        ck_assert_uint_eq(item.issuer, i % 2 == 0);
    }
    ck_assert(!inval_peek(queue, 3, &item));
    ck_assert_uint_eq(inval_pending(queue), 3);
    post(queue, 0, 5); /* all becomes one flush */
    ck_assert(inval_peek(queue, 0, &item));
    ck_assert_uint_eq(item.issuer, INVAL_EVERYONE);
    ck_assert_int_eq(item.op.kind, TLBI_ALL);
    ck_assert(!inval_peek(queue, 1, &item));
    inval_queue_free(queue);
}
END_TEST

START_TEST(a_rolled_back_queue_owes_what_it_owed)
{
    struct inval_queue *queue = inval_queue_new(512, 2);
    struct inval_item item;

    inval_rollback(queue); /* no checkpoint: nothing happens */
    post(queue, 511, 1);
    ck_assert(inval_checkpoint(queue));
    for (unsigned round = 0; round < 3; round++) {
        ck_assert(inval_take(queue, &item));
        ck_assert_uint_eq(item.ticket, 1);
        inval_acknowledge(queue, item.issuer, item.ticket);
        ck_assert(!inval_owed(queue, 511));
        for (unsigned i = 0; i < 5; i++) {
            post(queue, i, 1);
        }
        ck_assert(inval_owed(queue, 3));
        inval_rollback(queue);
        ck_assert(inval_owed(queue, 511) && !inval_owed(queue, 3));
        ck_assert_uint_eq(inval_pending(queue), 1);
        ck_assert_uint_eq(inval_overflows(queue), round + 1);
    }
    inval_queue_free(queue);
}
END_TEST

START_TEST(one_issuers_operations_can_be_taken_past_those_of_others)
{
    struct inval_queue *queue = inval_queue_new(3, 5);
    struct inval_item item;

    post(queue, 0, 7); /* the ring wraps from here */
    ck_assert(inval_take(queue, &item));
    inval_acknowledge(queue, item.issuer, item.ticket);
    for (uint64_t ticket = 8; ticket < 10; ticket++) {
        post(queue, 0, ticket);
        post(queue, 1, ticket);
    }
    post(queue, 0, 10);
    ck_assert(inval_checkpoint(queue));
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t ticket = 8; ticket < 10; ticket++) {
            ck_assert(inval_take_of(queue, 1, &item));
            ck_assert_uint_eq(item.issuer, 1);
            ck_assert_uint_eq(item.ticket, ticket);
            ck_assert_uint_eq(item.op.va, ticket << 12);
            inval_acknowledge(queue, item.issuer, item.ticket);
        }
        ck_assert(!inval_take_of(queue, 1, &item));
        ck_assert(!inval_take_of(queue, 2, &item));
        ck_assert(!inval_owed(queue, 1));
        ck_assert_uint_eq(inval_acknowledged(queue, 0), 7);
        for (uint64_t ticket = 8; ticket < 11; ticket++) {
            ck_assert(inval_take(queue, &item));
            ck_assert_uint_eq(item.issuer, 0);
            ck_assert_uint_eq(item.ticket, ticket);
        }
        inval_rollback(queue);
        ck_assert_uint_eq(inval_pending(queue), 5);
    }
    post(queue, 2, 1); /* overflows */
    ck_assert(inval_take_of(queue, 1, &item));
    ck_assert_uint_eq(item.issuer, INVAL_EVERYONE);
    inval_acknowledge(queue, item.issuer, item.ticket);
    ck_assert(!inval_owed(queue, 0) && !inval_owed(queue, 2));
    inval_queue_free(queue);
}
END_TEST

START_TEST(queues_and_domains_of_nothing_are_refused)
{
    ck_assert_ptr_null(inval_queue_new(0, 4));
    ck_assert_ptr_null(inval_queue_new(4, 0));
    ck_assert_ptr_null(inval_domain_new(0, 4));
    ck_assert_ptr_null(inval_domain_new(4, 0));
    inval_queue_free(NULL);
    inval_domain_free(NULL);
}
END_TEST

/* --- four vCPUs, one address space, one page --- */

#define VCPUS 4
#define VA UINT64_C(0x400000)
#define OLD UINT64_C(0x80000000)
#define NEW UINT64_C(0x90000000)
#define LEAF (UINT64_C(3) | DESC_AF | DESC_NG)

static struct fake_mem mem;
static struct walk_mem reader;
static struct regime regime;
static struct tlb *tlbs[VCPUS];
static struct inval_domain *domain;
static uint64_t *pte;

static void setup(void)
{
    static const struct tlb_config config = {
        .sets = 4, .ways = 2, .walk_cache_entries = 4};
    gpa_t root;

    memset(&mem, 0, sizeof(mem));
    reader = fake_walk_mem(&mem);
    root = fake_page(&mem);
    regime = fake_regime(root, root, 1);
    pte = fake_slot(&mem, root, VA, 3);
    *pte = OLD | LEAF;
    domain = inval_domain_new(VCPUS, 8);
    ck_assert_ptr_nonnull(domain);
    for (int i = 0; i < VCPUS; i++) {
        tlbs[i] = tlb_new(&config);
        ck_assert_ptr_nonnull(tlbs[i]);
    }
}

static void teardown(void)
{
    for (int i = 0; i < VCPUS; i++) {
        tlb_free(tlbs[i]);
    }
    inval_domain_free(domain);
}

/* Where the vCPU's access goes; 0 for a fault. */
static gpa_t access_by(unsigned vcpu)
{
    struct tlb_entry *entry = tlb_lookup(tlbs[vcpu], VA, regime.asid);
    struct walk_result r;

    if (entry) {
        return entry->t.base;
    }
    r = walk_stage1_from(&regime, &reader, tlb_walk_cache(tlbs[vcpu]), VA);
    if (r.fault != WALK_OK) {
        return 0;
    }
    (void)tlb_insert(tlbs[vcpu], VA, regime.asid, &r.t, NULL);
    return r.t.base;
}

static void apply(void *opaque, uint32_t target, const struct tlbi_op *op)
{
    (void)opaque;
    (void)tlb_invalidate(tlbs[target], op, NULL, NULL);
}

static void all_access(gpa_t expected)
{
    for (unsigned i = 0; i < VCPUS; i++) {
        ck_assert_uint_eq(access_by(i), expected);
    }
}

static void tlbi(unsigned issuer, enum tlbi_scope scope)
{
    struct tlbi_op op = page_op(VA);

    op.scope = scope;
    op.asid = regime.asid;
    (void)inval_domain_issue(domain, issuer, &op);
}

static void dsb(unsigned vcpu)
{
    inval_domain_drain(domain, vcpu, apply, NULL);
    ck_assert(inval_domain_complete(domain, vcpu));
}

START_TEST(the_dsb_of_another_vcpu_waits_for_nothing)
{
    all_access(OLD);
    *pte = NEW | LEAF;
    tlbi(0, TLBI_IS);
    /* The whole museum is about this: vCPU 1's barrier is not vCPU 0's. */
    dsb(1);
    ck_assert(!inval_domain_complete(domain, 0));
    all_access(OLD);
    dsb(0);
    all_access(NEW);
}
END_TEST

START_TEST(a_target_may_apply_early_and_then_sees_the_new_entry_alone)
{
    all_access(OLD);
    *pte = NEW | LEAF;
    tlbi(0, TLBI_IS);
    ck_assert(inval_domain_apply_one(domain, 2, apply, NULL));
    ck_assert(!inval_domain_apply_one(domain, 2, apply, NULL));
    ck_assert_uint_eq(access_by(2), NEW);
    ck_assert_uint_eq(access_by(1), OLD);
    ck_assert_uint_eq(access_by(0), OLD);
    ck_assert(!inval_domain_complete(domain, 0));
    ck_assert(inval_domain_apply_one(domain, 0, apply, NULL));
    ck_assert(inval_domain_apply_one(domain, 1, apply, NULL));
    ck_assert(!inval_domain_complete(domain, 0));
    ck_assert(inval_domain_apply_one(domain, 3, apply, NULL));
    ck_assert(inval_domain_complete(domain, 0));
}
END_TEST

START_TEST(a_local_operation_reaches_its_issuer_only)
{
    all_access(OLD);
    *pte = NEW | LEAF;
    tlbi(0, TLBI_LOCAL);
    ck_assert(!inval_domain_complete_local(domain, 0));
    ck_assert(!inval_domain_complete(domain, 0));
    dsb(0);
    ck_assert(inval_domain_complete_local(domain, 0));
    ck_assert_uint_eq(access_by(0), NEW);
    for (unsigned i = 1; i < VCPUS; i++) {
        ck_assert_uint_eq(access_by(i), OLD);
    }
}
END_TEST

START_TEST(a_non_shareable_dsb_asks_the_issuer_only)
{
    tlbi(0, TLBI_IS);
    ck_assert(inval_domain_apply_one(domain, 0, apply, NULL));
    ck_assert(inval_domain_complete_local(domain, 0));
    ck_assert(!inval_domain_complete(domain, 0));
}
END_TEST

START_TEST(outer_shareable_operations_reach_everyone)
{
    all_access(OLD);
    *pte = 0;
    tlbi(3, TLBI_OS);
    dsb(3);
    all_access(0);
}
END_TEST

START_TEST(a_refill_between_tlbi_and_store_makes_the_tlbi_useless)
{
    all_access(OLD);
    tlbi(0, TLBI_IS);
    dsb(0);
    all_access(OLD);
    *pte = NEW | LEAF;
    dsb(0);
    all_access(OLD);
}
END_TEST

START_TEST(a_dsb_drains_its_own_operations_and_may_leave_later_ones)
{
    tlbi(0, TLBI_IS);
    tlbi(1, TLBI_IS);
    dsb(0);
    ck_assert(!inval_domain_complete(domain, 1));
    ck_assert_uint_eq(inval_pending(inval_domain_queue(domain, 2)), 1);
}
END_TEST

START_TEST(the_rule_holds_when_queues_overflow)
{
    all_access(OLD);
    *pte = NEW | LEAF;
    tlbi(0, TLBI_IS);
    for (int i = 0; i < 20; i++) {
        struct tlbi_op op = page_op(0x1000);

        (void)inval_domain_issue(domain, 1, &op);
    }
    all_access(OLD);
    dsb(2);
    all_access(OLD);
    ck_assert(!inval_domain_complete(domain, 0));
    dsb(0);
    ck_assert(inval_domain_complete(domain, 1));
    all_access(NEW);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inval");
    TCase *queue = tcase_create("queue");
    TCase *rule = tcase_create("rule");
    SRunner *runner;
    int failed;

    tcase_add_test(queue, items_come_out_in_the_order_of_posting);
    tcase_add_test(queue, an_item_is_owed_until_acknowledged_not_until_taken);
    tcase_add_test(queue,
                   acknowledging_one_issuer_or_ticket_leaves_the_others_owed);
    tcase_add_test(queue,
                   only_the_first_post_to_an_idle_target_asks_for_a_kick);
    tcase_add_test(
        queue, overflow_becomes_one_full_flush_that_acknowledges_every_ticket);
    tcase_add_test(queue, what_is_posted_during_a_full_flush_stays_owed);
    tcase_add_test(queue,
                   an_earlier_full_flush_does_not_acknowledge_for_a_later_one);
    tcase_add_test(queue, a_copy_of_a_queue_owes_the_same);
    tcase_add_test(queue, a_look_at_what_waits_takes_nothing);
    tcase_add_test(queue, a_rolled_back_queue_owes_what_it_owed);
    tcase_add_test(queue,
                   one_issuers_operations_can_be_taken_past_those_of_others);
    tcase_add_test(queue, queues_and_domains_of_nothing_are_refused);
    suite_add_tcase(suite, queue);

    tcase_add_checked_fixture(rule, setup, teardown);
    tcase_add_test(rule, the_dsb_of_another_vcpu_waits_for_nothing);
    tcase_add_test(rule,
                   a_target_may_apply_early_and_then_sees_the_new_entry_alone);
    tcase_add_test(rule, a_local_operation_reaches_its_issuer_only);
    tcase_add_test(rule, a_non_shareable_dsb_asks_the_issuer_only);
    tcase_add_test(rule, outer_shareable_operations_reach_everyone);
    tcase_add_test(rule,
                   a_refill_between_tlbi_and_store_makes_the_tlbi_useless);
    tcase_add_test(rule,
                   a_dsb_drains_its_own_operations_and_may_leave_later_ones);
    tcase_add_test(rule, the_rule_holds_when_queues_overflow);
    suite_add_tcase(suite, rule);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
