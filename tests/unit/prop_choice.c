/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property tests: schedules survive writing and reading; no bytes, even with a
 * right hash, do worse than be refused; and whatever a source chose, a replay
 * of what was recorded chooses again.
 */
#include "schedule_fixture.h"

#define MUTATIONS 200000
#define SCHEDULES 3000
#define PROGRAMS 400

static uint64_t base_seed;

static struct prng prng_for(uint64_t stream)
{
    struct prng prng;

    prng_seed(&prng, base_seed + (stream << 32));
    return prng;
}

START_TEST(every_schedule_survives_text_and_line)
{
    struct prng prng = prng_for(1);

    for (unsigned i = 0; i < SCHEDULES; i++) {
        struct schedule *schedule = random_schedule(&prng), *again;
        char *text = schedule_to_text(schedule);
        char *line = schedule_to_line(schedule);
        GError *error = NULL;

        again = schedule_from_text(text, strlen(text), &error);
        REQUIRE(again, "%u: %s", i, error->message);
        check_equal(schedule, again);
        schedule_free(again);
        again = schedule_load(line, &error);
        REQUIRE(again, "%u: %s", i, error->message);
        check_equal(schedule, again);
        schedule_free(again);
        g_free(line);
        g_free(text);
        schedule_free(schedule);
    }
}
END_TEST

/* --- mutations --- */

static const char *const tokens[] = {
    "\n",
    " ",
    ":",
    ": ",
    "@0123456789abcdef",
    "v1/2",
    "*2",
    "*99999",
    "1",
    "0",
    "4096",
    "1024",
    "-",
    "v1023/1024",
    "99999999999999999999",
    "hash: ",
    "\\x0a",
    "\\",
    "choices: 30",
    "shootdown-schedule: 1\n",
    "\xff",
    "z1/2 ",
    "/",
    "trace-hash: ",
    "g1/1024*60",
};

static void mutate(GString *text, struct prng *prng)
{
    size_t at = prng_below(prng, text->len + 1);
    size_t rest = text->len - at;
    const char *token = tokens[prng_below(prng, G_N_ELEMENTS(tokens))];

    switch (prng_below(prng, 7)) {
    case 0:
        if (rest) {
            text->str[at] ^= (char)(1 << prng_below(prng, 8));
        }
        break;
    case 1:
        if (rest) {
            text->str[at] = (char)prng_below(prng, 256);
        }
        break;
    case 2:
        g_string_erase(text, (gssize)at,
                       (gssize)prng_below(prng, MIN(rest, 20) + 1));
        break;
    case 3:
        g_string_insert(text, (gssize)at, token);
        break;
    case 4: /* a part again, somewhere */
        if (rest) {
            size_t length = 1 + prng_below(prng, MIN(rest, 80));
            char *part = g_memdup2(text->str + at, length);

            g_string_insert_len(text, (gssize)prng_below(prng, text->len + 1),
                                part, (gssize)length);
            g_free(part);
        }
        break;
    case 5: /* another digit, which keeps much more valid */
        while (at < text->len && !g_ascii_isdigit(text->str[at])) {
            at++;
        }
        if (at < text->len) {
            text->str[at] = (char)('0' + prng_below(prng, 10));
        }
        break;
    default:
        g_string_overwrite(text, at, token);
        break;
    }
}

/* A repetition of a million is right if `choices` says so, but takes memory. */
static bool is_costly(const GString *text)
{
    for (size_t i = 0; i < text->len; i++) {
        size_t digits = 0;

        while (text->str[i] == '*' && i + 1 + digits < text->len &&
               g_ascii_isdigit(text->str[i + 1 + digits])) {
            digits++;
        }
        if (digits >= 6) {
            return true;
        }
    }
    return false;
}

/* Loaded, it is written and read again to the same bytes. */
static void check_stable(const struct schedule *schedule)
{
    char *text = schedule_to_text(schedule), *twice;
    GError *error = NULL;
    struct schedule *again = schedule_from_text(text, strlen(text), &error);

    REQUIRE(again, "%s", error->message);
    check_equal(schedule, again);
    twice = schedule_to_text(again);
    REQUIRE(!strcmp(text, twice), "not stable");
    g_free(twice);
    schedule_free(again);
    g_free(text);
}

START_TEST(mutated_texts_with_a_right_hash_load_stably_or_are_refused)
{
    struct prng prng = prng_for(2);
    unsigned loaded = 0, refused = 0;
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < MUTATIONS; i++) {
        unsigned mutations = 1 + (unsigned)prng_below(&prng, 3);
        struct schedule *schedule;
        GError *error = NULL;
        size_t length;
        char *all;

        if (i % 50 == 0) {
            schedule = random_schedule(&prng);
            all = schedule_to_text(schedule);
            g_string_assign(text, all);
            /* All but the last line. */
            g_string_truncate(text, text->len - strlen("hash: \n") - 64);
            g_free(all);
            schedule_free(schedule);
        }
        GString *mutant = g_string_new_len(text->str, (gssize)text->len);

        while (mutations--) {
            mutate(mutant, &prng);
        }
        if (!is_costly(mutant)) {
            all = with_hash(mutant->str, mutant->len, &length);
            schedule = schedule_from_text(all, length, &error);
            REQUIRE((schedule == NULL) == (error != NULL), "%u", i);
            if (schedule) {
                check_stable(schedule);
                schedule_free(schedule);
                loaded++;
            } else {
                REQUIRE(strstr(error->message, "schedule, line ") &&
                            (strstr(error->message, "expected ")),
                        "%s", error->message);
                g_error_free(error);
                refused++;
            }
            g_free(all);
        }
        g_string_free(mutant, TRUE);
    }
    printf("%u loaded, %u refused\n", loaded, refused);
    ck_assert_uint_gt(loaded, MUTATIONS / 20);
    ck_assert_uint_gt(refused, MUTATIONS / 20);
    g_string_free(text, TRUE);
}
END_TEST

START_TEST(arbitrary_bytes_are_no_schedule)
{
    struct prng prng = prng_for(3);

    for (unsigned i = 0; i < 20000; i++) {
        size_t count = prng_below(&prng, 200), length;
        char *bytes = g_malloc(count + 1), *all;
        GError *error = NULL;

        for (size_t k = 0; k < count; k++) {
            bytes[k] = (char)prng_below(&prng, 256);
        }
        REQUIRE(!schedule_from_text(bytes, count, &error), "%u", i);
        g_clear_error(&error);
        all = with_hash(bytes, count, &length);
        REQUIRE(!schedule_from_text(all, length, &error), "%u", i);
        g_clear_error(&error);
        g_free(all);
        g_free(bytes);
    }
}
END_TEST

START_TEST(mutated_lines_give_the_same_schedule_or_are_refused)
{
    struct prng prng = prng_for(4);

    for (unsigned i = 0; i < 20000; i++) {
        struct schedule *schedule = random_schedule(&prng), *again;
        char *line = schedule_to_line(schedule);
        GString *mutant = g_string_new(line);
        GError *error = NULL;

        mutate(mutant, &prng);
        if (g_str_has_prefix(mutant->str, "sd1:")) {
            again = schedule_load(mutant->str, &error);
            REQUIRE((again == NULL) == (error != NULL), "%u", i);
            if (again) {
                check_equal(schedule, again);
                schedule_free(again);
            }
            g_clear_error(&error);
        }
        g_string_free(mutant, TRUE);
        g_free(line);
        schedule_free(schedule);
    }
}
END_TEST

/* --- record and replay --- */

/*
 * A program of random choices of all kinds, whose shape depends on the answers.
 * Returns a digest of the answers.
 */
static uint64_t program(struct choice_stream *stream, uint64_t seed)
{
    struct choice_candidate candidates[8];
    struct prng prng;
    uint64_t digest = 0;

    prng_seed(&prng, seed);
    for (unsigned i = 0; i < 150; i++) {
        enum choice_kind kind =
            (enum choice_kind)prng_below(&prng, CHOICE_KINDS);
        unsigned n = 1 + (unsigned)prng_below(&prng, i % 20 ? 8 : CHOICE_MAX);
        unsigned value;

        if (kind == CHOICE_vcpu) {
            n = MIN(n, 8);
            for (unsigned k = 0; k < n; k++) {
                candidates[k].vcpu = (uint32_t)(k + digest % 3);
                candidates[k].event =
                    (enum choice_event)prng_below(&prng, CHOICE_EVENTS);
                candidates[k].object = prng_below(&prng, 3);
            }
            value = choice_vcpu(stream, candidates, n);
        } else {
            value = choice(stream, kind, n);
        }
        REQUIRE(value < n, "%u of %u", value, n);
        digest = (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
        if (value % 3 == 1) {
            prng_next(&prng); /* another path from here on */
        }
    }
    return digest;
}

static void check_replay(struct choice_stream *stream, uint64_t seed,
                         uint64_t digest, const GArray *entries, uint64_t total,
                         bool strict)
{
    struct choice_source *source = choice_source_recorded(
        (const struct choice_entry *)(void *)entries->data, entries->len, total,
        strict);

    choice_stream_begin(stream, source);
    REQUIRE(program(stream, seed) == digest, "strict %d: another run", strict);
    REQUIRE(stream->count == total, "strict %d", strict);
    REQUIRE(!choice_source_problem(source), "%s",
            choice_source_problem(source));
    choice_source_free(source);
}

START_TEST(what_a_source_chose_is_chosen_again_by_its_record)
{
    struct prng prng = prng_for(5);
    struct choice_stream stream, replay;

    choice_stream_init(&stream, 1);
    choice_stream_init(&replay, 1);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        const char *const *pair = choice_strategies();
        uint64_t seed = prng_next(&prng);

        for (; *pair; pair += 2) {
            struct choice_source *source = strategy(*pair, seed);
            struct schedule *schedule = schedule_new(), *again;
            char *text;

            for (unsigned runs = 0; runs < 3; runs++) {
                uint64_t digest;

                choice_stream_begin(&stream, source);
                digest = program(&stream, seed);
                REQUIRE(!choice_source_problem(source), "%s",
                        choice_source_problem(source));
                check_replay(&replay, seed, digest, stream.entries,
                             stream.count, true);
                check_replay(&replay, seed, digest, stream.entries,
                             stream.count, false);
                g_array_set_size(schedule->entries, 0);
                if (stream.entries->len) {
                    g_array_append_vals(schedule->entries, stream.entries->data,
                                        stream.entries->len);
                }
                schedule->total = stream.count;
                text = schedule_to_text(schedule);
                again = schedule_from_text(text, strlen(text), NULL);
                REQUIRE(again, "%s", text);
                check_replay(&replay, seed, digest, again->entries,
                             again->total, true);
                /* Without ordinals, as it comes from the file. */
                check_replay(&replay, seed, digest, again->entries,
                             again->total, false);
                schedule_free(again);
                g_free(text);
                if (!choice_source_next_run(source)) {
                    break;
                }
            }
            schedule_free(schedule);
            choice_source_free(source);
        }
    }
    choice_stream_fini(&replay);
    choice_stream_fini(&stream);
}
END_TEST

START_TEST(any_bytes_are_a_run_that_can_be_replayed)
{
    struct prng prng = prng_for(6);
    struct choice_stream stream, replay;

    choice_stream_init(&stream, 1);
    choice_stream_init(&replay, 1);
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t bytes[200];
        size_t count = prng_below(&prng, sizeof(bytes));
        uint64_t seed = prng_next(&prng), digest;
        struct choice_source *source;

        for (size_t k = 0; k < count; k++) {
            bytes[k] = (uint8_t)prng_next(&prng);
        }
        source = choice_source_bytes(bytes, count);
        choice_stream_begin(&stream, source);
        digest = program(&stream, seed);
        check_replay(&replay, seed, digest, stream.entries, stream.count, true);
        choice_source_free(source);
    }
    choice_stream_fini(&replay);
    choice_stream_fini(&stream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_choice");
    TCase *tc = tcase_create("choice");
    SRunner *runner;
    int failed;

    base_seed = seed_of_run();
    tcase_set_timeout(tc, 200);
    tcase_add_test(tc, every_schedule_survives_text_and_line);
    tcase_add_test(tc,
                   mutated_texts_with_a_right_hash_load_stably_or_are_refused);
    tcase_add_test(tc, arbitrary_bytes_are_no_schedule);
    tcase_add_test(tc, mutated_lines_give_the_same_schedule_or_are_refused);
    tcase_add_test(tc, what_a_source_chose_is_chosen_again_by_its_record);
    tcase_add_test(tc, any_bytes_are_a_run_that_can_be_replayed);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
