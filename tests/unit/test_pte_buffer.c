/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: descriptor stores that other walkers do not see yet. */
#include <check.h>
#include <stdlib.h>

#include "mmu/pte_buffer.h"
#include "mmu_fixture.h"

#define A 0u
#define B 1u
#define C 2u
#define VCPUS 3u
#define X UINT64_C(0x40001000)
#define Y UINT64_C(0x40002008)
#define Z UINT64_C(0x40003ff8)

static struct pte_buffer *buf;
static uint64_t memory[3]; /* of X, Y, Z */

static void setup(void)
{
    buf = pte_buffer_new(VCPUS, 8);
    ck_assert_ptr_nonnull(buf);
}

static void teardown(void)
{
    pte_buffer_free(buf);
}

static uint64_t *word(gpa_t pa)
{
    return &memory[(pa >> 12 & 3) - 1];
}

static unsigned store(unsigned writer, gpa_t pa, uint64_t value)
{
    uint64_t old = *word(pa);

    *word(pa) = value;
    return pte_buffer_store(buf, writer, pa, old, value);
}

static uint64_t seen(unsigned reader, gpa_t pa)
{
    uint64_t value = *word(pa);
    bool hidden = pte_buffer_read(buf, reader, pa, &value);

    ck_assert_int_eq(hidden, value != *word(pa));
    return value;
}

START_TEST(a_store_is_hidden_from_others_until_its_writer_drains)
{
    ck_assert_uint_eq(store(A, X, 1), 0);
    ck_assert_uint_eq(seen(A, X), 1);
    ck_assert_uint_eq(seen(B, X), 0);
    ck_assert_uint_eq(seen(C, X), 0);
    ck_assert_uint_eq(seen(B, Y), 0);
    ck_assert_uint_eq(pte_buffer_drain(buf, B), 0);
    ck_assert_uint_eq(seen(B, X), 0);
    ck_assert_uint_eq(pte_buffer_drain(buf, A), 1);
    ck_assert_uint_eq(seen(B, X), 1);
    ck_assert_uint_eq(seen(C, X), 1);
    ck_assert_uint_eq(pte_buffer_drain(buf, A), 0);
}
END_TEST

START_TEST(an_empty_buffer_changes_no_value)
{
    uint64_t value = 42;

    ck_assert(!pte_buffer_read(buf, A, X, &value));
    ck_assert_uint_eq(value, 42);
    ck_assert_uint_eq(pte_buffer_show_oldest(buf), 0);
    ck_assert_uint_eq(pte_buffer_show(buf, 0), 0);
    ck_assert_uint_eq(pte_buffer_show_address(buf, X), 0);
    ck_assert_uint_eq(pte_buffer_drain_all(buf), 0);
    ck_assert_ptr_null(pte_buffer_at(buf, 0));
}
END_TEST

START_TEST(stores_to_one_word_appear_one_after_the_other)
{
    store(A, X, 1);
    store(A, X, 2);
    store(A, X, 3);
    ck_assert_uint_eq(seen(A, X), 3);
    for (unsigned i = 0; i <= 3; i++) {
        ck_assert_uint_eq(seen(B, X), i);
        ck_assert_uint_eq(pte_buffer_show_oldest(buf), i < 3);
    }
}
END_TEST

START_TEST(a_store_over_a_hidden_one_shows_that_first)
{
    store(A, X, 1);
    ck_assert_uint_eq(store(B, X, 2), 1);
    ck_assert_uint_eq(seen(A, X), 1);
    ck_assert_uint_eq(seen(B, X), 2);
    ck_assert_uint_eq(seen(C, X), 1);
    /* Back to A: now B's is the hidden one. */
    ck_assert_uint_eq(store(A, X, 3), 1);
    ck_assert_uint_eq(seen(A, X), 3);
    ck_assert_uint_eq(seen(B, X), 2);
    ck_assert_uint_eq(seen(C, X), 2);
    ck_assert_uint_eq(pte_buffer_drain(buf, B), 0);
    ck_assert_uint_eq(seen(C, X), 2);
}
END_TEST

START_TEST(what_is_shown_takes_older_stores_of_its_writer_along)
{
    /* A fills a table (X), links it (Y), and B changes the link. */
    store(A, X, 1);
    store(B, Z, 7);
    store(A, Y, 1);
    ck_assert_uint_eq(store(B, Y, 2), 2);
    ck_assert_uint_eq(seen(C, X), 1);
    ck_assert_uint_eq(seen(C, Y), 1);
    ck_assert_uint_eq(seen(C, Z), 0);
    /* The newest by index: B's, and B's older one with it. */
    ck_assert_uint_eq(pte_buffer_show(buf, 1), 2);
    ck_assert_uint_eq(seen(C, Y), 2);
    ck_assert_uint_eq(seen(C, Z), 7);
}
END_TEST

START_TEST(showing_takes_no_newer_store_along)
{
    store(A, X, 1);
    store(A, Y, 1);
    store(B, Z, 1);
    ck_assert_uint_eq(pte_buffer_show(buf, 0), 1);
    ck_assert_uint_eq(seen(C, X), 1);
    ck_assert_uint_eq(seen(C, Y), 0);
    ck_assert_uint_eq(seen(C, Z), 0);
    ck_assert_uint_eq(pte_buffer_show(buf, 5), 0);
    ck_assert_uint_eq(pte_buffer_pending(buf), 2);
}
END_TEST

START_TEST(a_full_buffer_shows_its_oldest)
{
    for (unsigned i = 1; i <= 8; i++) {
        ck_assert_uint_eq(store(A, X, i), 0);
    }
    ck_assert_uint_eq(seen(B, X), 0);
    ck_assert_uint_eq(store(C, Y, 1), 1);
    ck_assert_uint_eq(pte_buffer_pending(buf), 8);
    ck_assert_uint_eq(seen(B, X), 1);
    ck_assert_uint_eq(seen(B, Y), 0);
}
END_TEST

START_TEST(a_drain_takes_along_what_was_observed)
{
    store(A, X, 1);
    pte_buffer_observe(buf, B);
    store(A, Y, 1); /* after B looked */
    store(C, Z, 1);
    ck_assert_uint_eq(seen(B, X), 0);
    ck_assert_uint_eq(pte_buffer_drain(buf, B), 1);
    ck_assert_uint_eq(seen(C, X), 1);
    ck_assert_uint_eq(seen(C, Y), 0);
    ck_assert_uint_eq(seen(A, Z), 0);
}
END_TEST

START_TEST(a_store_takes_along_what_its_writer_had_observed)
{
    store(A, X, 1);
    pte_buffer_observe(buf, B);
    store(B, Y, 1);
    pte_buffer_observe(buf, C);
    store(C, Z, 1);
    store(A, X, 2);
    /* C's takes B's, which takes A's first, not A's second. */
    ck_assert_uint_eq(pte_buffer_show(buf, 2), 3);
    ck_assert_uint_eq(seen(C, X), 1);
    ck_assert_uint_eq(seen(A, Y), 1);
    ck_assert_uint_eq(seen(A, Z), 1);
    ck_assert_uint_eq(pte_buffer_pending_of(buf, A), 1);
}
END_TEST

START_TEST(an_address_is_shown_with_all_its_stores)
{
    store(B, Z, 1);
    store(A, X, 1);
    store(A, X, 2);
    store(A, Y, 1);
    ck_assert_uint_eq(pte_buffer_show_address(buf, X), 2);
    ck_assert_uint_eq(seen(C, X), 2);
    ck_assert_uint_eq(seen(C, Y), 0);
    ck_assert_uint_eq(seen(C, Z), 0);
}
END_TEST

START_TEST(one_store_can_show_alone)
{
    store(A, Y, 1);
    store(A, X, 1);
    store(A, X, 2);
    store(A, Z, 1);
    /* Nothing that is older, but for the same word one after the other. */
    ck_assert_uint_eq(pte_buffer_show_alone(buf, X), 1);
    ck_assert_uint_eq(seen(B, X), 1);
    ck_assert_uint_eq(seen(B, Y), 0);
    ck_assert_uint_eq(pte_buffer_show_alone(buf, X), 1);
    ck_assert_uint_eq(pte_buffer_show_alone(buf, X), 0);
    ck_assert_uint_eq(seen(B, X), 2);
    ck_assert_uint_eq(seen(B, Z), 0);
    ck_assert_uint_eq(pte_buffer_pending(buf), 2);
    ck_assert_uint_eq(pte_buffer_at(buf, 0)->pa, Y);
    ck_assert_uint_eq(pte_buffer_at(buf, 1)->pa, Z);
}
END_TEST

START_TEST(a_writer_that_is_no_vcpu_is_seen_at_once)
{
    store(A, X, 1);
    store(A, Y, 1);
    ck_assert_uint_eq(store(VCPUS, X, 2), 1);
    ck_assert_uint_eq(seen(B, X), 2);
    ck_assert_uint_eq(seen(B, Y), 0);
    ck_assert_uint_eq(pte_buffer_pending(buf), 1);
    pte_buffer_observe(buf, VCPUS);
    ck_assert_uint_eq(pte_buffer_drain(buf, VCPUS), 0);
}
END_TEST

START_TEST(pending_stores_are_counted_and_listed_by_age)
{
    static const struct pte_store expected[] = {
        {X, A, 0, 1}, {Y, B, 0, 5}, {X, A, 1, 2}};

    store(A, X, 1);
    store(B, Y, 5);
    store(A, X, 2);
    ck_assert_uint_eq(pte_buffer_pending(buf), 3);
    ck_assert_uint_eq(pte_buffer_pending_of(buf, A), 2);
    ck_assert_uint_eq(pte_buffer_pending_of(buf, B), 1);
    ck_assert_uint_eq(pte_buffer_pending_of(buf, C), 0);
    for (unsigned i = 0; i < 3; i++) {
        const struct pte_store *s = pte_buffer_at(buf, i);

        ck_assert_uint_eq(s->pa, expected[i].pa);
        ck_assert_uint_eq(s->writer, expected[i].writer);
        ck_assert_uint_eq(s->old, expected[i].old);
        ck_assert_uint_eq(s->now, expected[i].now);
    }
    ck_assert_ptr_null(pte_buffer_at(buf, 3));
    ck_assert_uint_eq(pte_buffer_drain_all(buf), 3);
    ck_assert_uint_eq(pte_buffer_pending(buf), 0);
}
END_TEST

START_TEST(a_copy_goes_on_like_the_original)
{
    struct pte_buffer *copy = pte_buffer_new(VCPUS, 8);
    struct pte_buffer *larger = pte_buffer_new(VCPUS, 9);
    struct pte_buffer *wider = pte_buffer_new(VCPUS + 1, 8);
    uint64_t value = 1;

    store(A, X, 1);
    pte_buffer_observe(buf, B);
    ck_assert(!pte_buffer_copy(larger, buf));
    ck_assert(!pte_buffer_copy(wider, buf));
    ck_assert_uint_eq(pte_buffer_pending(larger), 0);
    ck_assert(pte_buffer_copy(copy, buf));
    ck_assert_uint_eq(pte_buffer_drain_all(buf), 1);
    ck_assert(pte_buffer_read(copy, C, X, &value));
    ck_assert_uint_eq(value, 0);
    ck_assert_uint_eq(pte_buffer_store(copy, A, Y, 0, 1), 0);
    ck_assert_uint_eq(pte_buffer_drain(copy, B), 1);
    ck_assert_uint_eq(pte_buffer_pending(copy), 1);
    pte_buffer_free(copy);
    pte_buffer_free(larger);
    pte_buffer_free(wider);
}
END_TEST

START_TEST(unusable_sizes_are_refused)
{
    ck_assert_ptr_null(pte_buffer_new(0, 8));
    ck_assert_ptr_null(pte_buffer_new(1, 0));
    ck_assert_ptr_null(pte_buffer_new(1, PTE_BUFFER_MAX + 1));
    pte_buffer_free(NULL);
}
END_TEST

/* --- with a walker --- */

struct observer {
    struct fake_mem *mem;
    unsigned id;
};

static bool observer_read64(void *opaque, gpa_t pa, uint64_t *out)
{
    struct observer *o = opaque;

    if (!fake_read64(o->mem, pa, out)) {
        return false;
    }
    (void)pte_buffer_read(buf, o->id, pa, out);
    return true;
}

static bool observer_cas64(void *opaque, gpa_t pa, uint64_t expected,
                           uint64_t desired)
{
    struct observer *o = opaque;

    (void)pte_buffer_show_address(buf, pa);
    return fake_cas64(o->mem, pa, expected, desired);
}

START_TEST(a_walker_that_updates_a_hidden_descriptor_sees_the_newest)
{
    static struct fake_mem mem;
    struct observer other = {&mem, B};
    struct walk_mem walker = {observer_read64, &other, observer_cas64};
    gpa_t root = fake_page(&mem);
    struct regime regime = fake_regime(root, fake_page(&mem), 1);
    uint64_t *slot = fake_slot(&mem, root, 0x1000, 3);
    gpa_t pa = FAKE_BASE + (gpa_t)(slot - mem.words) * 8;
    struct walk_result r;

    regime.ha = true;
    *slot = UINT64_C(0x50000000) | 3;
    /* A unmaps it. B's walker sees it mapped still, and may not revive it. */
    pte_buffer_store(buf, A, pa, *slot, 0);
    *slot = 0;
    walker.cas64 = NULL;
    ck_assert_int_eq(walk_stage1(&regime, &walker, 0x1000).fault,
                     WALK_FAULT_ACCESS_FLAG);
    walker.cas64 = observer_cas64;
    r = walk_stage1(&regime, &walker, 0x1000);
    ck_assert_int_eq(r.fault, WALK_FAULT_TRANSLATION);
    ck_assert_uint_eq(*slot, 0);
    ck_assert_uint_eq(mem.swaps, 1);
    ck_assert_uint_eq(pte_buffer_pending(buf), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pte_buffer");
    TCase *tc = tcase_create("pte_buffer");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_store_is_hidden_from_others_until_its_writer_drains);
    tcase_add_test(tc, an_empty_buffer_changes_no_value);
    tcase_add_test(tc, stores_to_one_word_appear_one_after_the_other);
    tcase_add_test(tc, a_store_over_a_hidden_one_shows_that_first);
    tcase_add_test(tc, what_is_shown_takes_older_stores_of_its_writer_along);
    tcase_add_test(tc, showing_takes_no_newer_store_along);
    tcase_add_test(tc, a_full_buffer_shows_its_oldest);
    tcase_add_test(tc, a_drain_takes_along_what_was_observed);
    tcase_add_test(tc, a_store_takes_along_what_its_writer_had_observed);
    tcase_add_test(tc, an_address_is_shown_with_all_its_stores);
    tcase_add_test(tc, one_store_can_show_alone);
    tcase_add_test(tc, a_writer_that_is_no_vcpu_is_seen_at_once);
    tcase_add_test(tc, pending_stores_are_counted_and_listed_by_age);
    tcase_add_test(tc, a_copy_goes_on_like_the_original);
    tcase_add_test(tc, unusable_sizes_are_refused);
    tcase_add_test(tc,
                   a_walker_that_updates_a_hidden_descriptor_sees_the_newest);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
