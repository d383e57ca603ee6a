/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests: the PRNG, the choice stream, the sources without strategy, and
 * the tables of hardware liberties.
 */
#include "choice_fixture.h"

#include "hw.h"

/* --- the PRNG --- */

/* The first outputs of splitmix64 for seed 1234567, as published. */
START_TEST(seeding_is_splitmix64)
{
    struct prng prng;

    prng_seed(&prng, 1234567);
    ck_assert_uint_eq(prng.s[0], UINT64_C(6457827717110365317));
    ck_assert_uint_eq(prng.s[1], UINT64_C(3203168211198807973));
    ck_assert_uint_eq(prng.s[2], UINT64_C(9817491932198370423));
    ck_assert_uint_eq(prng.s[3], UINT64_C(4593380528125082431));
}
END_TEST

/* From the reference implementation with state 1, 2, 3, 4, as published. */
START_TEST(the_generator_is_xoshiro256_starstar)
{
    static const uint64_t expected[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
        UINT64_C(10595114339597558777),
        UINT64_C(2904607092377533576),
    };
    struct prng prng = {{1, 2, 3, 4}};

    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        ck_assert_uint_eq(prng_next(&prng), expected[i]);
    }
}
END_TEST

START_TEST(numbers_below_n_are_below_n_and_even)
{
    unsigned count[7] = {0};
    struct prng prng;

    prng_seed(&prng, seed_of_run());
    for (unsigned i = 0; i < 70000; i++) {
        uint64_t value = prng_below(&prng, 7);

        REQUIRE(value < 7, "%" PRIu64, value);
        count[value]++;
    }
    for (unsigned i = 0; i < 7; i++) {
        /* Six sigmas of 93. */
        ck_assert_msg(abs((int)count[i] - 10000) < 560, "%u: %u", i, count[i]);
    }
    ck_assert_uint_eq(prng_below(&prng, 1), 0);
    /* Two thirds of 2^64: without rejection a third would come twice. */
    for (unsigned i = 0, low = 0; i < 30000; i++) {
        low += prng_below(&prng, UINT64_C(3) << 62) < UINT64_C(1) << 62;
        if (i == 29999) {
            ck_assert_msg(abs((int)low - 10000) < 500, "%u", low);
        }
    }
}
END_TEST

/* --- kinds --- */

START_TEST(every_kind_has_a_letter_of_its_own)
{
    for (unsigned kind = 0; kind < CHOICE_KINDS; kind++) {
        char letter = choice_kind_letter(kind);

        ck_assert_int_eq(choice_kind_from_letter(letter), kind);
        ck_assert_msg(letter >= 'a' && letter <= 'z', "%c", letter);
        ck_assert(choice_kind_name(kind)[0]);
        ck_assert(choice_kind_text(kind)[0]);
    }
    ck_assert_int_eq(choice_kind_from_letter('Z'), CHOICE_KINDS);
    ck_assert_int_eq(choice_kind_from_letter('\0'), CHOICE_KINDS);
    ck_assert_str_eq(choice_kind_name(CHOICE_vcpu), "vcpu");
    ck_assert_int_eq(choice_kind_letter(CHOICE_input), 'g');
    for (unsigned event = 0; event < CHOICE_EVENTS; event++) {
        ck_assert_ptr_nonnull(choice_event_name(event));
    }
}
END_TEST

/* --- the stream --- */

START_TEST(a_stream_records_what_is_not_plain_with_index_and_ordinal)
{
    struct choice_source *source = choice_source_bytes("\0\1\2\0\1", 5);
    struct choice_stream stream;
    const struct choice_entry *entry;

    choice_stream_init(&stream, 1);
    choice_stream_begin(&stream, source);
    ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 4), 0);
    ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 1);
    ck_assert_uint_eq(choice(&stream, CHOICE_evict, 1), 0); /* no choice */
    ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 4), 2);
    ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 0);
    ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 1);
    ck_assert_uint_eq(stream.count, 5);
    ck_assert_uint_eq(stream.asked[CHOICE_quantum], 2);
    ck_assert_uint_eq(stream.asked[CHOICE_apply], 3);
    ck_assert_uint_eq(stream.asked[CHOICE_evict], 0);
    ck_assert_uint_eq(stream.entries->len, 3);
    entry = &g_array_index(stream.entries, struct choice_entry, 1);
    ck_assert_uint_eq(entry->index, 2);
    ck_assert_uint_eq(entry->kind, CHOICE_quantum);
    ck_assert_uint_eq(entry->n, 4);
    ck_assert_uint_eq(entry->value, 2);
    ck_assert_uint_eq(entry->ordinal, 2);
    ck_assert_uint_eq(entry[1].index, 4);
    ck_assert_uint_eq(entry[1].ordinal, 3);

    choice_stream_begin(&stream, source);
    ck_assert_uint_eq(stream.count, 0);
    ck_assert_uint_eq(stream.asked[CHOICE_quantum], 0);
    ck_assert_uint_eq(stream.entries->len, 0);
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

START_TEST(a_plain_source_answers_0_to_everything)
{
    struct choice_source *source = choice_source_plain();
    struct choice_stream stream;
    struct choice_candidate two[2] = {{.vcpu = 4}, {.vcpu = 2}};

    choice_stream_init(&stream, 1);
    choice_stream_begin(&stream, source);
    for (unsigned kind = 0; kind < CHOICE_KINDS; kind++) {
        for (unsigned n = 1; kind != CHOICE_vcpu && n <= CHOICE_MAX; n *= 2) {
            ck_assert_uint_eq(choice(&stream, kind, n), 0);
        }
    }
    ck_assert_uint_eq(choice_vcpu(&stream, two, 2), 0);
    ck_assert_uint_eq(stream.entries->len, 0);
    ck_assert(choice_source_next_run(source));
    ck_assert_ptr_null(choice_source_problem(source));
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

START_TEST(bytes_are_taken_modulo_n_and_two_of_them_for_many)
{
    static const uint8_t bytes[] = {7, 0x2c, 0x01, 255, 9};
    struct choice_source *source = choice_source_bytes(bytes, sizeof(bytes));
    struct choice_stream stream;

    choice_stream_init(&stream, 1);
    for (unsigned run = 0; run < 2; run++) {
        choice_stream_begin(&stream, source);
        ck_assert_uint_eq(choice(&stream, CHOICE_input, 3), 1);
        ck_assert_uint_eq(choice(&stream, CHOICE_input, 1024), 0x12c);
        ck_assert_uint_eq(choice(&stream, CHOICE_input, 256), 255);
        /* One byte is left of two. */
        ck_assert_uint_eq(choice(&stream, CHOICE_input, 257), 9);
        ck_assert_uint_eq(choice(&stream, CHOICE_input, 1024), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_input, 2), 0);
    }
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

START_TEST(no_bytes_are_a_plain_run)
{
    struct choice_source *source = choice_source_bytes(NULL, 0);
    struct choice_stream stream;

    choice_stream_init(&stream, 1);
    choice_stream_begin(&stream, source);
    ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 0);
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

/* --- recorded --- */

static const struct choice_entry three[] = {
    {.index = 1, .kind = CHOICE_apply, .n = 2, .value = 1, .ordinal = 1},
    {.index = 3, .kind = CHOICE_quantum, .n = 5, .value = 4, .ordinal = 3},
    {.index = 5, .kind = CHOICE_apply, .n = 2, .value = 1, .ordinal = 3},
};

START_TEST(a_recorded_run_is_repeated_as_often_as_it_is_begun)
{
    struct choice_source *source = choice_source_recorded(three, 3, 6, true);
    struct choice_stream stream;

    choice_stream_init(&stream, 1);
    for (unsigned run = 0; run < 3; run++) {
        choice_stream_begin(&stream, source);
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 5), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 1);
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 5), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 5), 4);
        ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 1);
        ck_assert_ptr_null(choice_source_problem(source));
        ck_assert_mem_eq(stream.entries->data, three, sizeof(three));
        ck_assert(choice_source_next_run(source));
    }
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

/* Asks like `three` until the choice with this index, and that differently. */
static void diverge(struct choice_source *source, unsigned index,
                    enum choice_kind kind, unsigned n, const char *problem)
{
    static const enum choice_kind kinds[] = {CHOICE_quantum, CHOICE_apply,
                                             CHOICE_quantum, CHOICE_quantum,
                                             CHOICE_apply,   CHOICE_apply};
    struct choice_stream stream;

    choice_stream_init(&stream, 1);
    choice_stream_begin(&stream, source);
    for (unsigned i = 0; i < index; i++) {
        choice(&stream, kinds[i], kinds[i] == CHOICE_apply ? 2 : 5);
    }
    ck_assert_ptr_null(choice_source_problem(source));
    ck_assert_uint_eq(choice(&stream, kind, n), 0);
    ck_assert_str_eq(choice_source_problem(source), problem);
    /* On it goes plainly, and the first problem stays. */
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 5), 0);
    }
    ck_assert_str_eq(choice_source_problem(source), problem);
    choice_stream_fini(&stream);
}

START_TEST(a_strict_source_says_where_a_run_no_longer_fits)
{
    struct choice_source *source = choice_source_recorded(three, 3, 6, true);

    diverge(source, 3, CHOICE_quantum, 6,
            "choice 3 is quantum of 6, but quantum of 5 was recorded");
    diverge(source, 1, CHOICE_evict, 2,
            "choice 1 is evict of 2, but apply of 2 was recorded");
    diverge(source, 6, CHOICE_input, 9,
            "choice 6 (input, of 9) is one more than the recorded 6");
    choice_source_free(source);
}
END_TEST

START_TEST(a_lenient_source_finds_entries_by_kind_and_ordinal)
{
    struct choice_source *source = choice_source_recorded(three, 3, 6, false);
    struct choice_stream stream;

    choice_stream_init(&stream, 1);
    for (unsigned run = 0; run < 2; run++) {
        choice_stream_begin(&stream, source);
        /* The third quantum comes first of all, with fewer alternatives. */
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 3), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 3), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 3), 2);
        ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 3), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 1);
        ck_assert_uint_eq(choice(&stream, CHOICE_evict, 9), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 0);
        ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 1);
        for (unsigned i = 0; i < 10; i++) {
            ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 0);
        }
        ck_assert_ptr_null(choice_source_problem(source));
    }
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

START_TEST(a_lenient_source_finds_entries_of_unknown_ordinal_by_index)
{
    static const struct choice_entry entries[] = {
        {.index = 2, .kind = CHOICE_quantum, .n = 9, .value = 8},
        {.index = 0, .kind = CHOICE_apply, .n = 2, .value = 1},
        {.index = 3, .kind = CHOICE_apply, .n = 2, .value = 1},
    };
    struct choice_source *source = choice_source_recorded(entries, 3, 4, false);
    struct choice_stream stream;

    choice_stream_init(&stream, 1);
    choice_stream_begin(&stream, source);
    ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 1);
    ck_assert_uint_eq(choice(&stream, CHOICE_apply, 2), 0);
    ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 4), 3);
    ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 4), 0); /* no apply */
    ck_assert_uint_eq(choice(&stream, CHOICE_quantum, 4), 0);
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

START_TEST(a_lenient_source_names_the_vcpu_that_was_named)
{
    static const struct choice_entry entries[] = {
        {.kind = CHOICE_vcpu, .n = 9, .value = 1, .vcpu = 1 + 7, .ordinal = 1},
        {.kind = CHOICE_vcpu, .n = 9, .value = 1, .vcpu = 1 + 5, .ordinal = 2},
        {.kind = CHOICE_vcpu, .n = 9, .value = 8, .vcpu = 0, .ordinal = 3},
    };
    struct choice_source *source = choice_source_recorded(entries, 3, 3, false);
    struct choice_candidate candidates[] = {
        {.vcpu = 0}, {.vcpu = 3}, {.vcpu = 7}, {.vcpu = 8}};
    struct choice_stream stream;

    choice_stream_init(&stream, 1);
    choice_stream_begin(&stream, source);
    ck_assert_uint_eq(choice_vcpu(&stream, candidates, 4), 2);
    ck_assert_uint_eq(
        g_array_index(stream.entries, struct choice_entry, 0).vcpu, 1 + 7);
    ck_assert_uint_eq(choice_vcpu(&stream, candidates, 4), 0); /* no 5 */
    ck_assert_uint_eq(choice_vcpu(&stream, candidates, 4), 3); /* unknown */
    ck_assert_uint_eq(choice_vcpu(&stream, candidates, 4), 0);
    choice_stream_fini(&stream);
    choice_source_free(source);
}
END_TEST

/* --- hardware liberties --- */

START_TEST(profiles_set_every_liberty)
{
    struct hw eager, typical, random, cruel;

    hw_set_profile(&eager, HW_PROFILE_EAGER);
    hw_set_profile(&typical, HW_PROFILE_TYPICAL);
    hw_set_profile(&random, HW_PROFILE_RANDOM);
    hw_set_profile(&cruel, HW_PROFILE_ADVERSARIAL);
    for (unsigned i = 0; i < HW_KNOBS; i++) {
        ck_assert_int_eq(eager.mode[i], HW_OFF);
        ck_assert_int_eq(random.mode[i],
                         cruel.mode[i] == HW_OFF ? HW_OFF : HW_RANDOM);
        ck_assert_int_eq(hw_knob_number(i)[0], 'H');
        ck_assert(hw_knob_text(i)[0]);
    }
    ck_assert_int_eq(typical.mode[HW_walk_cache], HW_ON);
    ck_assert_int_eq(typical.mode[HW_prefetch], HW_OFF);
    ck_assert_int_eq(cruel.mode[HW_prefetch], HW_ON);
    ck_assert_int_eq(cruel.mode[HW_evict], HW_RANDOM);
    ck_assert_int_eq(cruel.mode[HW_shared_tlb], HW_OFF);
    ck_assert_str_eq(hw_knob_option(HW_pte_delay), "pte-delay");
}
END_TEST

START_TEST(profiles_and_modes_are_found_by_name)
{
    enum hw_profile profile;
    enum hw_mode mode;

    for (unsigned i = HW_PROFILE_EAGER; i <= HW_PROFILE_ADVERSARIAL; i++) {
        ck_assert(hw_profile_from_name(hw_profile_name(i), &profile));
        ck_assert_uint_eq(profile, i);
    }
    for (unsigned i = HW_OFF; i <= HW_ON; i++) {
        ck_assert(hw_mode_from_name(hw_mode_name(i), &mode));
        ck_assert_uint_eq(mode, i);
    }
    ck_assert(!hw_profile_from_name("Eager", &profile));
    ck_assert(!hw_profile_from_name("", &profile));
    ck_assert(!hw_mode_from_name("onn", &mode));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choice");
    TCase *tc = tcase_create("choice");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, seeding_is_splitmix64);
    tcase_add_test(tc, the_generator_is_xoshiro256_starstar);
    tcase_add_test(tc, numbers_below_n_are_below_n_and_even);
    tcase_add_test(tc, every_kind_has_a_letter_of_its_own);
    tcase_add_test(tc,
                   a_stream_records_what_is_not_plain_with_index_and_ordinal);
    tcase_add_test(tc, a_plain_source_answers_0_to_everything);
    tcase_add_test(tc, bytes_are_taken_modulo_n_and_two_of_them_for_many);
    tcase_add_test(tc, no_bytes_are_a_plain_run);
    tcase_add_test(tc, a_recorded_run_is_repeated_as_often_as_it_is_begun);
    tcase_add_test(tc, a_strict_source_says_where_a_run_no_longer_fits);
    tcase_add_test(tc, a_lenient_source_finds_entries_by_kind_and_ordinal);
    tcase_add_test(tc,
                   a_lenient_source_finds_entries_of_unknown_ordinal_by_index);
    tcase_add_test(tc, a_lenient_source_names_the_vcpu_that_was_named);
    tcase_add_test(tc, profiles_set_every_liberty);
    tcase_add_test(tc, profiles_and_modes_are_found_by_name);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
