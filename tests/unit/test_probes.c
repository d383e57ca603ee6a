/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: probe files, what they say and how they are refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>

#include "abi/annot.h"
#include "probes.h"

static struct probe_file *good(const char *text)
{
    GError *error = NULL;
    struct probe_file *file = probe_file_parse(text, "k.probes", NULL, &error);

    ck_assert_msg(file != NULL, "%s", error ? error->message : "");
    return file;
}

START_TEST(probes_are_sorted_and_have_their_values)
{
    struct probe_file *f =
        good("# a comment\n"
             "\n"
             "pages base=*0xffff000000001000 size=64 pa=0x40000000 # here\n"
             "linear virt=0xffff000000000000 pa=1073741824\n"
             "0x2000 frame_alloc exit virt=x0 order=x1@entry\n"
             "0x1000\top kind=munmap start=x0 bytes=x1 promise=noaccess\n"
             "0x1000 frame_free page=x3 bytes=8192\n");
    const struct probe *p = (const struct probe *)(void *)f->probes->data;

    ck_assert_uint_eq(f->probes->len, 3);
    ck_assert(f->has_linear && f->has_pages && f->pages_indirect);
    ck_assert_uint_eq(f->pages_base, 0xffff000000001000);
    ck_assert_uint_eq(f->pages_size, 64);
    ck_assert_uint_eq(f->linear_pa, 0x40000000);
    ck_assert_uint_eq(p[0].pc, 0x1000);
    ck_assert_int_eq(p[0].role, PROBE_OP);
    ck_assert_uint_eq(p[0].value[PROBE_KIND].number, ANNOT_OP_MUNMAP);
    ck_assert_uint_eq(p[0].value[PROBE_PROMISE].number, ANNOT_PROMISE_NOACCESS);
    ck_assert(p[0].value[PROBE_START].is_register);
    ck_assert_int_eq(p[1].role, PROBE_FRAME_FREE);
    ck_assert_uint_eq(p[1].line, 7);
    ck_assert_uint_eq(p[1].value[PROBE_PAGE].reg, 3);
    ck_assert_uint_eq(p[1].value[PROBE_BYTES].number, 8192);
    ck_assert_uint_eq(p[2].pc, 0x2000);
    ck_assert(p[2].at_exit && p[2].value[PROBE_ORDER].at_entry);
    ck_assert(!p[2].value[PROBE_VIRT].at_entry);
    probe_file_free(f);
}
END_TEST

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "k.probes: there is no probe"},
    {"\n  free_pages frame_free pa=x0", "k.probes:2:3: the kernel has no "
                                        "function 'free_pages'"},
    {"0x1002 frame_free pa=x0", "k.probes:1:1: no instruction"},
    {"0x1000", "k.probes:1:7: '0x1000' has no role"},
    {"0x1000 frame_fre pa=x0", "k.probes:1:8: 'frame_fre' is no role"},
    {"0x1000 frame_free", "k.probes:1:1: frame_free needs one of"},
    {"0x1000 frame_free pa=x0 virt=x1", "1:1: frame_free needs one of"},
    {"0x1000 frame_free pa=x9", "k.probes:1:22: 'x9' is no value of pa"},
    {"0x1000 frame_free pa=x0@entry", "k.probes:1:22: '@entry'"},
    {"0x1000 frame_free exit pa=x0@now", "k.probes:1:27: '@now'"},
    {"0x1000 frame_free pa=x0 pa=x1", "k.probes:1:25: pa= is there"},
    {"0x1000 frame_free pa=x0 start=x1", "k.probes:1:25: 'start=x1' says"},
    {"0x1000 frame_free pa=x0 order", "k.probes:1:25: 'order' says"},
    {"0x1000 frame_free pa=0x", "k.probes:1:22: '0x' is no value"},
    {"0x1000 frame_free pa=x0 order=1 bytes=2", "exclude each other"},
    {"0x1000 frame_free page=x0", "k.probes:1:1: page= needs a line 'pages"},
    {"0x1000 op kind=munmap start=x0", "1:1: op needs kind=, start="},
    {"0x1000 op kind=mumap start=x0 end=x1", "1:16: 'mumap' is no value"},
    {"0x1000 op exit kind=1 start=x0 end=x1", "no 'exit'"},
    {"0x1000 op_end", "op_end needs kind="},
    {"0x1000 op kind=1 start=x0 end=x1 task=x2", "1:34: 'task=x2' says"},
    {"0x1000 walk_begin", "walk_begin needs root="},
    {"0x1000 walk_end root=x0", "k.probes:1:17: 'root=x0' says nothing"},
    {"linear virt=1", "k.probes:1:1: linear needs virt= and pa="},
    {"linear virt=1 virt=2", "k.probes:1:15: 'virt=2' is not understood"},
    {"pages base=1 size=0 pa=0", "k.probes:1:1: pages needs base=, size="},
    {"linear virt=*1 pa=0", "k.probes:1:8: 'virt=*1' is not understood"},
};

START_TEST(refused_with_line_and_column)
{
    GError *error = NULL;

    ck_assert_ptr_null(
        probe_file_parse(bad[_i].text, "k.probes", NULL, &error));
    ck_assert_msg(strstr(error->message, bad[_i].message) != NULL, "'%s': %s",
                  bad[_i].text, error->message);
    g_error_free(error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("probes");
    TCase *tcase = tcase_create("file");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, probes_are_sorted_and_have_their_values);
    tcase_add_loop_test(tcase, refused_with_line_and_column, 0,
                        (int)(sizeof(bad) / sizeof(bad[0])));
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
