/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: the text, the line and the file of a schedule. */
#include "schedule_fixture.h"

#include <unistd.h>

#include "error.h"

#define HEADER                                                                 \
    "shootdown-schedule: 1\n"                                                  \
    "vcpus: 4\n"
#define NUMBERS(choices)                                                       \
    "choices: " choices "\n"                                                   \
    "trace-hash: 0123456789abcdef\n"                                           \
    "state-hash: fedcba9876543210\n"                                           \
    "\n"

static struct schedule *sample(void)
{
    struct schedule *schedule = schedule_new();

    schedule_set(schedule, "vcpus", "4");
    schedule_set(schedule, "append", "a\\b\nc");
    add_entry(schedule, 3, CHOICE_vcpu, 1, 3);
    for (unsigned i = 0; i < 5; i++) {
        add_entry(schedule, 4 + i, CHOICE_apply, 1, 2);
    }
    add_entry(schedule, 10, CHOICE_apply, 1, 2);
    add_entry(schedule, 11, CHOICE_input, 1023, 1024);
    add_checkpoint(schedule, 0, 0x11);
    add_checkpoint(schedule, 6, 0xabcdef);
    add_checkpoint(schedule, 40, UINT64_MAX);
    schedule->total = 40;
    schedule->trace_hash = UINT64_C(0x0123456789abcdef);
    schedule->state_hash = UINT64_C(0xfedcba9876543210);
    return schedule;
}

static struct schedule *from(const char *text, size_t length, GError **error)
{
    /* A copy of its size, for the address sanitizer. */
    char *copy = g_memdup2(text, length);
    struct schedule *schedule = schedule_from_text(copy, length, error);

    ck_assert_msg((schedule == NULL) == (*error != NULL), "error or result");
    g_free(copy);
    return schedule;
}

START_TEST(the_text_is_as_documented)
{
    static const char expected[] = HEADER "append: a\\\\b\\x0ac\n" NUMBERS(
        "40") "@0000000000000011 3 v1/3 a1/2*2 @0000000000abcdef a1/2*3 1 a1/2 "
              "g1023/1024 28\n"
              "@ffffffffffffffff\n";
    struct schedule *schedule = sample();
    char *text = schedule_to_text(schedule);
    size_t length;
    char *all = with_hash(expected, strlen(expected), &length);

    ck_assert_str_eq(text, all);
    g_free(all);
    g_free(text);
    schedule_free(schedule);
}
END_TEST

START_TEST(text_and_line_give_the_same_schedule_back)
{
    struct schedule *schedule = sample(), *copy = schedule_copy(schedule);
    char *text = schedule_to_text(schedule);
    char *line = schedule_to_line(schedule);
    char *pasted = g_strconcat(line, " \n", NULL);
    GError *error = NULL;
    struct schedule *again;

    check_equal(schedule, copy);
    schedule_free(copy);
    again = from(text, strlen(text), &error);
    ck_assert_msg(again != NULL, "%s", error ? error->message : "");
    check_equal(schedule, again);
    ck_assert_str_eq(schedule_get(again, "append"), "a\\b\nc");
    ck_assert_ptr_null(schedule_get(again, "choices"));
    schedule_free(again);
    ck_assert_int_eq(strspn(line + 4, "abcdefghijklmnopqrstuvwxyz234567"),
                     strlen(line) - 4);
    again = schedule_load(line, &error);
    ck_assert_msg(again != NULL, "%s", error ? error->message : "");
    check_equal(schedule, again);
    schedule_free(again);
    again = schedule_load(pasted, &error);
    ck_assert_msg(again != NULL, "%s", error ? error->message : "");
    schedule_free(again);
    g_free(pasted);
    g_free(line);
    g_free(text);
    schedule_free(schedule);
}
END_TEST

START_TEST(an_empty_schedule_is_one)
{
    struct schedule *schedule = schedule_new(), *again;
    char *text = schedule_to_text(schedule);
    GError *error = NULL;

    again = from(text, strlen(text), &error);
    ck_assert_ptr_nonnull(again);
    ck_assert_uint_eq(again->total, 0);
    schedule_free(again);
    g_free(text);
    schedule_free(schedule);
}
END_TEST

START_TEST(body_lines_have_at_most_78_columns)
{
    struct schedule *schedule = schedule_new();
    char *text, **lines;
    unsigned full = 0;

    for (unsigned i = 0; i < 2000; i++) {
        add_entry(schedule, 7 * i + i % 5, CHOICE_vcpu, 1 + i % 700, 701);
    }
    schedule->total = 20000;
    text = schedule_to_text(schedule);
    lines = g_strsplit(text, "\n", 0);
    for (unsigned i = 0; lines[i]; i++) {
        ck_assert_uint_le(strlen(lines[i]), 78);
        full += strlen(lines[i]) > 68;
    }
    ck_assert_uint_gt(full, 200);
    g_strfreev(lines);
    g_free(text);
    schedule_free(schedule);
}
END_TEST

START_TEST(a_value_is_replaced_in_its_place)
{
    struct schedule *schedule = sample();

    schedule_set(schedule, "vcpus", "5");
    ck_assert_str_eq(schedule_get(schedule, "vcpus"), "5");
    ck_assert_str_eq(g_ptr_array_index(schedule->keys, 0), "vcpus");
    ck_assert_uint_eq(schedule->keys->len, 2);
    schedule_free(schedule);
}
END_TEST

/* --- what is refused, with a right hash --- */

static const struct {
    const char *text, *problem;
} refused[] = {
    {"", "line 1: expected 'hash: ', 64 hex digits and a newline as the last "
         "line: this is no schedule"},
    {"\n", "line 1, column 1: found the end of the line, expected "
           "'shootdown-schedule: 1'"},
    {"shootdown-schedule: 2\n", "line 1, column 21: found '2', expected format "
                                "1, the only one that this version reads"},
    {"shootdown-schedule: 01\n", "expected format 1"},
    {"shootdown-schedule: 1 \n",
     "line 1, column 21: found '1 ', expected format 1"},
    {"shootdown-schedule:1\n", "expected 'shootdown-schedule: 1'"},
    {HEADER, "line 2, column 9: found the end of the line, expected another "
             "line, 'choices: ' and a number"},
    {HEADER "novalue\n", "line 3, column 1: found 'novalue', expected 'key: "
                         "value', or"},
    {HEADER "a:b\n", "line 3, column 1: found 'a:b', expected 'key: value'"},
    {HEADER "Key: b\n", "line 3, column 1: found 'Key', expected a key of "
                        "small letters, digits and dashes"},
    {HEADER ": b\n", "expected a key of small letters"},
    {HEADER "hash: b\n", "found 'hash', expected a key of"},
    {HEADER "vcpus: 4\n", "line 3, column 1: found 'vcpus', expected a key "
                          "that was not there before"},
    {HEADER "a: b\tc\n", "line 3, column 5: found '\\tc', expected no control "
                         "character"},
    {HEADER "a: b\\nc\n", "line 3, column 5: found '\\\\nc', expected \\\\ or "
                          "\\x with the two hex digits of a control"},
    {HEADER "a: \\x41\n", "of a control character"},
    {HEADER "a: \\x00\n", "of a control character"},
    {HEADER "a: \\x0\n", "of a control character"},
    {HEADER "a: \\\n", "of a control character"},
    {HEADER "choices: x\n", "line 3, column 10: found 'x', expected a number "
                            "of choices below 2^40"},
    {HEADER "choices: 1099511627776\n", "expected a number of choices below"},
    {HEADER "choices: 99999999999999999999999\n", "below 2^40"},
    {HEADER "choices: 007\n", "below 2^40"},
    {HEADER "choices: -1\n", "below 2^40"},
    {HEADER "choices: 1\n", "line 3, column 11: found the end of the line, "
                            "expected another line, with a hash"},
    {HEADER "choices: 1\nstate-hash: 0123456789abcdef\n",
     "line 4, column 1: found 'state-hash: 0123456789abcdef', expected "
     "'trace-hash: ' and 16 hex digits"},
    {HEADER "choices: 1\ntrace-hash: 0123456789ABCDEF\n", "16 hex digits"},
    {HEADER "choices: 1\ntrace-hash: 0123456789abcdef0\n", "16 hex digits"},
    {HEADER "choices: 1\ntrace-hash: 0123456789abcde\n", "16 hex digits"},
    {HEADER "choices: 0\ntrace-hash: 0123456789abcdef\n"
            "state-hash: 0123456789abcdef\n",
     "line 5, column 29: found the end of the line, expected an empty line "
     "after the header"},
    {HEADER NUMBERS("1"), "line 6: the choices end after 0, expected 1 as the "
                          "header says"},
    {HEADER NUMBERS("1") "\n", "line 7, column 1: found the end of the line, "
                               "expected choices"},
    {HEADER NUMBERS("1") "0\n", "line 7, column 1: found '0', expected a "
                                "number from 1 to what remains of 'choices'"},
    {HEADER NUMBERS("9") "01\n", "from 1 to what remains"},
    {HEADER NUMBERS("1") "2\n", "from 1 to what remains"},
    {HEADER NUMBERS("9") "4 6\n", "line 7, column 3: found '6', expected a "
                                  "number from 1 to what remains"},
    {HEADER NUMBERS("9") "4  5\n", "line 7, column 3: found ' 5', expected a "
                                   "number, '@', or the letter of a kind"},
    {HEADER NUMBERS("9") "4 \n", "line 7, column 3: found the end of the line, "
                                 "expected choices"},
    {HEADER NUMBERS("9") "4,5\n", "line 7, column 2: found ',5', expected a "
                                  "space or the end of the line"},
    {HEADER NUMBERS("9") "8\nz1/2\n",
     "line 8, column 1: found 'z1/2', expected a number, '@', or the letter"},
    {HEADER NUMBERS("9") "v0/2 8\n", "line 7, column 1: found 'v0/2 8', "
                                     "expected VALUE/ALTERNATIVES with 1 <= "
                                     "VALUE < ALTERNATIVES <= 1024"},
    {HEADER NUMBERS("9") "v2/2 8\n", "1 <= VALUE < ALTERNATIVES"},
    {HEADER NUMBERS("9") "v1/1025 8\n", "ALTERNATIVES <= 1024"},
    {HEADER NUMBERS("9") "v1024/1025 8\n", "ALTERNATIVES <= 1024"},
    {HEADER NUMBERS("9") "v1 8\n", "VALUE/ALTERNATIVES"},
    {HEADER NUMBERS("9") "v1/ 8\n", "VALUE/ALTERNATIVES"},
    {HEADER NUMBERS("9") "v\n", "VALUE/ALTERNATIVES"},
    {HEADER NUMBERS("9") "v1/2*1 8\n", "expected a number from 2 to 50000000 "
                                       "after the '*'"},
    {HEADER NUMBERS("9") "v1/2* 8\n", "after the '*'"},
    {HEADER NUMBERS("9") "v1/2*50000001\n", "after the '*'"},
    {HEADER NUMBERS("9") "v1/2*10\n", "expected no more choices than 'choices' "
                                      "says"},
    {HEADER NUMBERS("9") "9 v1/2\n", "expected no more choices than"},
    {HEADER NUMBERS("60000000") "a1/2 v1/2*50000000\n",
     "at most 50000000 that are not plain"},
    {HEADER NUMBERS("9") "9 @123\n", "line 7, column 3: found '@123', expected "
                                     "'@' and 16 hex digits"},
    {HEADER NUMBERS("9") "9 @0123456789abcdef @0123456789abcdef\n",
     "line 7, column 21: found '@0123456789abcdef', expected choices between "
     "two checkpoints"},
    {HEADER NUMBERS("9") "\x1b[2J\n", "found '\\033[2J', expected"},
};

START_TEST(a_wrong_text_is_refused_with_place_and_expectation)
{
    size_t length;
    char *text = with_hash(refused[_i].text, strlen(refused[_i].text), &length);
    GError *error = NULL;

    ck_assert_ptr_null(from(text, length, &error));
    ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_ENVIRONMENT));
    ck_assert_msg(strstr(error->message, refused[_i].problem) != NULL, "%s",
                  error->message);
    g_error_free(error);
    g_free(text);
}
END_TEST

START_TEST(header_values_and_lines_have_limits)
{
    GString *text = g_string_new("shootdown-schedule: 1\nlong: ");
    struct schedule *schedule;
    GError *error = NULL;
    size_t length;
    char *all;

    for (unsigned i = 0; i < 65536; i++) {
        g_string_append_c(text, 'x');
    }
    g_string_append(text, "\n" NUMBERS("0"));
    all = with_hash(text->str, text->len, &length);
    schedule = from(all, length, &error);
    ck_assert_ptr_nonnull(schedule);
    ck_assert_uint_eq(strlen(schedule_get(schedule, "long")), 65536);
    schedule_free(schedule);
    g_free(all);
    g_string_insert(text, 40, "x");
    all = with_hash(text->str, text->len, &length);
    ck_assert_ptr_null(from(all, length, &error));
    ck_assert_msg(strstr(error->message, "line 2, column 7: found 'xxx") &&
                      strstr(error->message, "at most 65536 bytes"),
                  "%s", error->message);
    g_clear_error(&error);
    g_free(all);
    g_string_assign(text, "shootdown-schedule: 1\n");
    for (unsigned i = 0; i < 1001; i++) {
        g_string_append_printf(text, "key-%u: 1\n", i);
    }
    g_string_append(text, NUMBERS("0"));
    all = with_hash(text->str, text->len, &length);
    ck_assert_ptr_null(from(all, length, &error));
    ck_assert_msg(strstr(error->message, "line 1002, column 1") != NULL, "%s",
                  error->message);
    g_clear_error(&error);
    g_free(all);
    g_string_free(text, TRUE);
}
END_TEST

START_TEST(a_nul_byte_is_refused_like_any_control_character)
{
    char text[] = HEADER "a: b?c\n" NUMBERS("0");
    char key[] = HEADER "a?b: c\n" NUMBERS("0");
    GError *error = NULL;
    size_t length;
    char *all;

    *strchr(text, '?') = '\0';
    all = with_hash(text, sizeof(text) - 1, &length);
    ck_assert_ptr_null(from(all, length, &error));
    ck_assert_msg(strstr(error->message, "no control character") != NULL, "%s",
                  error->message);
    g_clear_error(&error);
    g_free(all);
    *strchr(key, '?') = '\0';
    all = with_hash(key, sizeof(key) - 1, &length);
    ck_assert_ptr_null(from(all, length, &error));
    ck_assert_msg(strstr(error->message, "a key of small letters") != NULL,
                  "%s", error->message);
    g_clear_error(&error);
    g_free(all);
}
END_TEST

/* --- what the hash is for --- */

START_TEST(every_flipped_bit_is_noticed)
{
    struct schedule *schedule = sample();
    char *text = schedule_to_text(schedule);
    size_t length = strlen(text);

    for (size_t bit = 0; bit < 8 * length; bit++) {
        GError *error = NULL;

        text[bit / 8] ^= (char)(1 << bit % 8);
        REQUIRE(!schedule_from_text(text, length, &error), "bit %zu", bit);
        REQUIRE(strstr(error->message, "line ") != NULL, "%s", error->message);
        g_error_free(error);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    g_free(text);
    schedule_free(schedule);
}
END_TEST

START_TEST(every_cut_is_noticed)
{
    struct schedule *schedule = sample();
    char *text = schedule_to_text(schedule);
    size_t length = strlen(text);
    GError *error = NULL;

    for (size_t kept = 0; kept < length; kept++) {
        ck_assert_ptr_null(from(text, kept, &error));
        g_clear_error(&error);
    }
    ck_assert_ptr_null(from(text, length - 1, &error));
    ck_assert_str_eq(error->message,
                     "schedule, line 10: expected 'hash: ', 64 hex digits and "
                     "a newline as the last line: this is no schedule, or the "
                     "end is cut off");
    g_clear_error(&error);
    text[29] ^= 1;
    ck_assert_ptr_null(from(text, length, &error));
    ck_assert_msg(g_str_has_prefix(error->message,
                                   "schedule, line 10: the hash does not fit "
                                   "the lines before it, expected "),
                  "%s", error->message);
    g_clear_error(&error);
    g_free(text);
    schedule_free(schedule);
}
END_TEST

/*
 * zlib ends with a few bits that mean nothing; to flip one of those changes
 * nothing. No other flip gives a schedule.
 */
START_TEST(every_flipped_bit_and_cut_of_a_line_is_noticed_or_harmless)
{
    struct schedule *schedule = sample();
    char *line = schedule_to_line(schedule);
    size_t length = strlen(line);
    unsigned harmless = 0;

    for (size_t i = 4; i < length; i++) {
        char old = line[i];

        for (unsigned bit = 0; bit < 8; bit++) {
            GError *error = NULL;
            struct schedule *again;

            line[i] = (char)(old ^ 1 << bit);
            again = schedule_load(line, &error);
            REQUIRE((again == NULL) == (error != NULL), "%zu.%u", i, bit);
            if (again) {
                check_equal(schedule, again);
                harmless++;
                schedule_free(again);
            }
            g_clear_error(&error);
        }
        line[i] = old;
    }
    ck_assert_uint_le(harmless, 12);
    for (size_t kept = 4; kept < length; kept++) {
        char *part = g_strndup(line, kept);
        GError *error = NULL;

        ck_assert_ptr_null(schedule_load(part, &error));
        g_error_free(error);
        g_free(part);
    }
    g_free(line);
    schedule_free(schedule);
}
END_TEST

START_TEST(a_line_says_what_is_wrong_with_it)
{
    GError *error = NULL;

    ck_assert_ptr_null(schedule_load("sd1:abc1", &error));
    ck_assert_str_eq(error->message, "schedule line 'sd1:...': character 8 is "
                                     "byte 0x31, expected a to z or 2 to 7");
    g_clear_error(&error);
    ck_assert_ptr_null(schedule_load("sd1:", &error));
    ck_assert_str_eq(error->message,
                     "schedule line 'sd1:...': it does not unpack: it is "
                     "damaged, or not all of it was pasted");
    g_clear_error(&error);
}
END_TEST

/* --- files --- */

static char *temp_path(void)
{
    char *path = g_build_filename(g_get_tmp_dir(), "schedule-XXXXXX", NULL);
    int fd = g_mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    return path;
}

START_TEST(a_saved_schedule_is_loaded_from_file)
{
    struct schedule *schedule = sample(), *again;
    char *path = temp_path(), *line = schedule_to_line(schedule);
    GError *error = NULL;

    ck_assert(schedule_save(schedule, path, &error));
    again = schedule_load(path, &error);
    ck_assert_ptr_nonnull(again);
    check_equal(schedule, again);
    schedule_free(again);
    /* A file with the line in it will do as well. */
    ck_assert(g_file_set_contents(path, line, -1, NULL));
    again = schedule_load(path, &error);
    ck_assert_ptr_nonnull(again);
    schedule_free(again);
    ck_assert(schedule_save(schedule, "/dev/null", &error));
    unlink(path);
    ck_assert_ptr_null(schedule_load(path, &error));
    ck_assert_msg(g_str_has_prefix(error->message, "cannot open schedule '"),
                  "%s", error->message);
    g_clear_error(&error);
    ck_assert(!schedule_save(schedule, "/nonexistent/x", &error));
    ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_ENVIRONMENT));
    g_clear_error(&error);
    g_free(line);
    g_free(path);
    schedule_free(schedule);
}
END_TEST

START_TEST(a_file_without_end_is_refused)
{
    GError *error = NULL;

    ck_assert_ptr_null(schedule_load("/dev/zero", &error));
    ck_assert_str_eq(error->message,
                     "schedule '/dev/zero' is larger than 64 MiB");
    g_clear_error(&error);
    ck_assert_ptr_null(schedule_load("/", &error));
    ck_assert_ptr_nonnull(error);
    g_clear_error(&error);
}
END_TEST

START_TEST(a_schedule_beyond_the_limits_is_not_saved)
{
    struct schedule *schedule = sample();
    char *big = g_strnfill(20000, '\n');
    char *path = temp_path();
    GError *error = NULL;

    schedule_set(schedule, "big", big);
    ck_assert(!schedule_save(schedule, path, &error));
    ck_assert_msg(strstr(error->message, "a header value of more than 16 KiB"),
                  "%s", error->message);
    g_clear_error(&error);
    schedule_set(schedule, "big", "1");
    schedule->total = UINT64_C(1) << 40;
    g_array_set_size(schedule->checkpoints, 0);
    ck_assert(!schedule_save(schedule, path, &error));
    ck_assert_msg(strstr(error->message, "2^40 choices or more"), "%s",
                  error->message);
    g_clear_error(&error);
    schedule->total--;
    ck_assert(schedule_save(schedule, path, &error));
    unlink(path);
    g_free(path);
    g_free(big);
    schedule_free(schedule);
}
END_TEST

/* 64 MiB of zeros in a few hundred bytes of text would be a bomb. */
START_TEST(a_line_that_unpacks_to_too_much_is_refused)
{
    struct schedule *schedule = schedule_new();
    GError *error = NULL;
    char *big = g_strnfill(65536, 'x'), *line;

    for (unsigned i = 0; i < 1100; i++) {
        char key[16];

        g_snprintf(key, sizeof(key), "key-%u", i);
        schedule_set(schedule, key, big);
    }
    line = schedule_to_line(schedule);
    ck_assert_uint_lt(strlen(line), 1000000);
    ck_assert_ptr_null(schedule_load(line, &error));
    ck_assert_str_eq(error->message, "schedule line 'sd1:...': it unpacks to "
                                     "more than 64 MiB");
    g_clear_error(&error);
    g_free(line);
    g_free(big);
    schedule_free(schedule);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tc = tcase_create("schedule");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, the_text_is_as_documented);
    tcase_add_test(tc, text_and_line_give_the_same_schedule_back);
    tcase_add_test(tc, an_empty_schedule_is_one);
    tcase_add_test(tc, body_lines_have_at_most_78_columns);
    tcase_add_test(tc, a_value_is_replaced_in_its_place);
    tcase_add_loop_test(tc, a_wrong_text_is_refused_with_place_and_expectation,
                        0, G_N_ELEMENTS(refused));
    tcase_add_test(tc, header_values_and_lines_have_limits);
    tcase_add_test(tc, a_nul_byte_is_refused_like_any_control_character);
    tcase_add_test(tc, every_flipped_bit_is_noticed);
    tcase_add_test(tc, every_cut_is_noticed);
    tcase_add_test(tc,
                   every_flipped_bit_and_cut_of_a_line_is_noticed_or_harmless);
    tcase_add_test(tc, a_line_says_what_is_wrong_with_it);
    tcase_add_test(tc, a_saved_schedule_is_loaded_from_file);
    tcase_add_test(tc, a_file_without_end_is_refused);
    tcase_add_test(tc, a_schedule_beyond_the_limits_is_not_saved);
    tcase_add_test(tc, a_line_that_unpacks_to_too_much_is_refused);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
