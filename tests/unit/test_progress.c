/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: the line that says how far a command is. */
#define _XOPEN_SOURCE 700 /* posix_openpt() */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <glib.h>

#include "progress.h"

/* A terminal as standard error; its other side. */
static int become_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    int slave;

    ck_assert_int_ge(master, 0);
    ck_assert_int_eq(grantpt(master), 0);
    ck_assert_int_eq(unlockpt(master), 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(slave, 0);
    ck_assert_int_eq(dup2(slave, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(fcntl(master, F_SETFL, O_NONBLOCK), 0);
    return master;
}

/* What was written, up to now; "" for nothing. */
static const char *written_to(int master, char *buf, size_t size)
{
    ssize_t n = read(master, buf, size - 1);

    buf[n < 0 ? 0 : n] = '\0';
    return buf;
}

START_TEST(a_bar_is_as_full_as_the_work_is_done)
{
    const uint64_t done[] = {0, 1, 172, 343, 344, 400};
    size_t last = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autofree char *text = progress_bar_text(done[i], 344, "tests", 7);
        size_t full = strspn(text + 1, "#");
        size_t all = strspn(text + 1, "#.");

        ck_assert_uint_eq(strlen(text), PROGRESS_COLUMNS);
        ck_assert_msg(text[0] == '[' && text[1 + all] == ']', "%s", text);
        ck_assert_msg(g_str_has_suffix(text, " of 344 tests, 7 s"), "%s", text);
        ck_assert_uint_ge(full, last);
        ck_assert_int_eq(full == all, done[i] >= 344);
        last = full;
    }
}
END_TEST

START_TEST(a_bar_never_is_longer_than_a_line)
{
    g_autofree char *what = g_strnfill(200, 'x');
    g_autofree char *text =
        progress_bar_text(UINT64_MAX, UINT64_MAX, what, 4000000000u);
    g_autofree char *none = progress_bar_text(0, 0, "tests", 0);

    ck_assert_uint_eq(strlen(text), PROGRESS_COLUMNS);
    ck_assert_uint_eq(strlen(none), PROGRESS_COLUMNS);
    ck_assert_ptr_null(strchr(none, '.'));
}
END_TEST

START_TEST(nothing_is_said_in_the_first_two_seconds)
{
    int master = become_terminal();
    struct progress p;
    char buf[200];

    progress_init(&p, true);
    ck_assert(p.is_on);
    progress_bar(&p, 1, 2, "tests");
    progress_clear(&p);
    ck_assert_str_eq(written_to(master, buf, sizeof(buf)), "");
    p.due_us = g_get_monotonic_time() - 1;
    progress_bar(&p, 1, 2, "tests");
    ck_assert_ptr_nonnull(
        strstr(written_to(master, buf, sizeof(buf)), " 1 of 2 tests, "));
    /* Not again at once. */
    progress_bar(&p, 2, 2, "tests");
    ck_assert_str_eq(written_to(master, buf, sizeof(buf)), "");
    progress_clear(&p);
    ck_assert_str_eq(written_to(master, buf, sizeof(buf)), "\r\033[K");
    progress_clear(&p);
    ck_assert_str_eq(written_to(master, buf, sizeof(buf)), "");
}
END_TEST

START_TEST(nobody_is_told_who_has_no_terminal_or_wants_quiet)
{
    int ends[2];
    struct progress p;
    char buf[200];
    int master = become_terminal();

    progress_init(&p, false);
    p.due_us = 0;
    progress_bar(&p, 1, 2, "tests");
    progress_text(&p, "%d runs", 5);
    ck_assert_str_eq(written_to(master, buf, sizeof(buf)), "");

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    progress_init(&p, true);
    ck_assert(!p.is_on);
    p.due_us = 0;
    progress_bar(&p, 1, 2, "tests");
    progress_text(&p, "%d runs", 5);
    progress_clear(&p);
    ck_assert_str_eq(written_to(ends[0], buf, sizeof(buf)), "");
}
END_TEST

START_TEST(a_long_text_is_cut)
{
    int master = become_terminal();
    g_autofree char *text = g_strnfill(300, 'y');
    struct progress p;
    char buf[400];

    progress_init(&p, true);
    p.due_us = 0;
    progress_text(&p, "%s", text);
    (void)written_to(master, buf, sizeof(buf));
    ck_assert_uint_eq(strspn(buf + 1, "y"), PROGRESS_COLUMNS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("progress");
    TCase *tcase = tcase_create("line");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, a_bar_is_as_full_as_the_work_is_done);
    tcase_add_test(tcase, a_bar_never_is_longer_than_a_line);
    tcase_add_test(tcase, nothing_is_said_in_the_first_two_seconds);
    tcase_add_test(tcase, nobody_is_told_who_has_no_terminal_or_wants_quiet);
    tcase_add_test(tcase, a_long_text_is_cut);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
