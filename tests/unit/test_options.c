/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Help pages, and the options of `replay` and `minimize`. */
#include "config_fixture.h"

#include "error.h"
#include "obs/events.h"
#include "options.h"

static void assert_narrow(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (char **line = lines; *line; line++) {
        ck_assert_msg(g_utf8_strlen(*line, -1) <= 80, "too long: %s", *line);
    }
}

START_TEST(help_fits_eighty_columns_and_has_no_option_of_later)
{
    static const char *const everywhere[] = {"--cpus",
                                             "Examples:",
                                             "--engine",
                                             "--seed",
                                             "--strategy",
                                             "--hw=",
                                             "--hw-pte-delay=MODE",
                                             "hide table stores",
                                             "Hardware liberties"};
    static const char *const in_run[] = {"--bug",    "--record",
                                         "--filter", "--snapshot-at",
                                         "--runs",   "--max-steps"};
    static const char *const later[] = {"--machine", "--gdb",
                                        "--monitor"};
    bool is_run = _i == VM_COMMAND_RUN;
    char *text = vm_config_help((enum vm_command)_i);

    assert_narrow(text);
    for (size_t i = 0; i < G_N_ELEMENTS(everywhere); i++) {
        ck_assert_msg(strstr(text, everywhere[i]) != NULL, "%s", everywhere[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(in_run); i++) {
        ck_assert_msg((strstr(text, in_run[i]) != NULL) == is_run, "%s",
                      in_run[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(later); i++) {
        ck_assert_msg(!strstr(text, later[i]), "%s", later[i]);
    }
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        ck_assert_ptr_nonnull(strstr(text, hw_knob_option((enum hw_knob)k)));
    }
    g_free(text);
}
END_TEST

static char **split(const char *words)
{
    return words[0] ? g_strsplit(words, " ", -1) : g_new0(char *, 1);
}

START_TEST(replay_takes_a_schedule_and_where_output_goes)
{
    g_auto(GStrv) argv = split(
        "-q --stats s --trace - --trace-events tlbi -p a,b=1 run.sd -p c");
    struct replay_options o;
    struct vm_config *c = parse("hello --engine seeded");
    GError *error = NULL;

    ck_assert(replay_options_parse(&o, (int)g_strv_length(argv), argv, &error));
    ck_assert_str_eq(o.schedule, "run.sd");
    ck_assert(replay_options_apply(&o, c, &error));
    ck_assert_str_eq(c->stats_path, "s");
    ck_assert(c->attribute);
    ck_assert_str_eq(c->trace_path, "-");
    ck_assert_uint_eq(c->trace_events, EVENT_BIT(EVENT_tlbi));
    ck_assert_str_eq(c->plugins[0], "a,b=1");
    ck_assert_str_eq(c->plugins[1], "c");
    ck_assert(c->quiet && !c->verbose);
    vm_config_free(c);
    replay_options_fini(&o);
}
END_TEST

static const struct {
    const char *words, *says;
} bad_replays[] = {
    {"", "'replay' work on? Give the file of a schedule"},
    {"a b", "'b' is one word too many"},
    {"a --seed 1", "'shootdown replay --help'"},
    {"a --trace-events tlbi", "needs --trace"},
    {"a --trace t --trace-events nope", "'nope'"},
    {"a --stats - --trace -", "standard output"},
    {"a -q -v", "exclude each other"},
};

START_TEST(replay_refuses_with_a_sentence)
{
    g_auto(GStrv) argv = split(bad_replays[_i].words);
    struct replay_options o;
    GError *error = NULL;

    ck_assert(
        !replay_options_parse(&o, (int)g_strv_length(argv), argv, &error));
    ck_assert_msg(strstr(error->message, bad_replays[_i].says) != NULL, "%s",
                  error->message);
    ck_assert_int_eq(exit_status_from_error(error), 1);
    g_clear_error(&error);
    replay_options_fini(&o);
}
END_TEST

START_TEST(minimize_has_its_options_and_defaults)
{
    g_auto(GStrv) plain = split("-- sd1:abc");
    g_auto(GStrv) all = split("-v --no-table --max-runs 7 -o out in");
    g_auto(GStrv) quiet = split("--quiet in");
    struct minimize_options o;

    ck_assert(minimize_options_parse(&o, 2, plain, NULL));
    ck_assert_str_eq(o.schedule, "sd1:abc");
    ck_assert_ptr_null(o.output);
    ck_assert_uint_eq(o.max_runs, MINIMIZE_RUNS_DEFAULT);
    ck_assert(o.table && !o.quiet && !o.verbose);
    minimize_options_fini(&o);
    ck_assert(minimize_options_parse(&o, 7, all, NULL));
    ck_assert_str_eq(o.schedule, "in");
    ck_assert_str_eq(o.output, "out");
    ck_assert_uint_eq(o.max_runs, 7);
    ck_assert(!o.table && o.verbose);
    minimize_options_fini(&o);
    ck_assert(minimize_options_parse(&o, 2, quiet, NULL));
    ck_assert(o.quiet && !o.table);
    minimize_options_fini(&o);
}
END_TEST

static const struct {
    const char *words, *says;
} bad_minimizes[] = {
    {"", "'minimize' work on?"},
    {"a b c", "'b' is one word too many"},
    {"a --max-runs 0", "--max-runs is '0': accepted is a number from 1 to"},
    {"a -q -v", "exclude each other"},
    {"a --trace t", "'shootdown minimize --help'"},
};

START_TEST(minimize_refuses_with_a_sentence)
{
    g_auto(GStrv) argv = split(bad_minimizes[_i].words);
    struct minimize_options o;
    GError *error = NULL;

    ck_assert(
        !minimize_options_parse(&o, (int)g_strv_length(argv), argv, &error));
    ck_assert_msg(strstr(error->message, bad_minimizes[_i].says) != NULL, "%s",
                  error->message);
    ck_assert_int_eq(exit_status_from_error(error), 1);
    g_clear_error(&error);
    minimize_options_fini(&o);
}
END_TEST

START_TEST(tools_have_help_of_eighty_columns)
{
    g_autofree char *replay = replay_options_help();
    g_autofree char *small = minimize_options_help();

    assert_narrow(replay);
    assert_narrow(small);
    ck_assert_ptr_nonnull(strstr(replay, "--trace-events=LIST"));
    ck_assert_ptr_nonnull(strstr(replay, "Exit status:"));
    ck_assert_ptr_nonnull(strstr(small, "--max-runs=N"));
    ck_assert_ptr_nonnull(strstr(small, "(default 10000)"));
    ck_assert_ptr_nonnull(strstr(small, "--no-table"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("options");

    tcase_add_checked_fixture(tc, config_setup, config_teardown);
    tcase_add_loop_test(tc, help_fits_eighty_columns_and_has_no_option_of_later,
                        0, VM_COMMAND_COMPARE + 1);
    tcase_add_test(tc, tools_have_help_of_eighty_columns);
    tcase_add_test(tc, replay_takes_a_schedule_and_where_output_goes);
    tcase_add_loop_test(tc, replay_refuses_with_a_sentence, 0,
                        G_N_ELEMENTS(bad_replays));
    tcase_add_test(tc, minimize_has_its_options_and_defaults);
    tcase_add_loop_test(tc, minimize_refuses_with_a_sentence, 0,
                        G_N_ELEMENTS(bad_minimizes));
    return fixture_main("options", tc);
}
