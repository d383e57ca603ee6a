/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: what it means, and what it refuses in which words. */
#include "obs_fixture.h"

#include <stdio.h>
#include <glib/gstdio.h>

#include "config.h"
#include "error.h"
#include "obs/events.h"

static char *guest_dir;

static void guest_file(const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(guest_dir, name, NULL);

    ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static void setup(void)
{
    guest_dir = g_dir_make_tmp("shootdown-test-XXXXXX", NULL);
    ck_assert_ptr_nonnull(guest_dir);
    guest_file("kernel.img", "image");
    guest_file("kernel.elf", "\177ELF");
    guest_file("initramfs.cpio", "cpio");
    guest_file("workloads.txt", "hello\tsays hello\n# a comment\n\n"
                                "swap_bench\tpages out\nselftest\ttests\n"
                                "bare\n");
    g_setenv("SHOOTDOWN_GUEST_DIR", guest_dir, TRUE);
}

static void teardown(void)
{
    static const char *const names[] = {"kernel.img", "kernel.elf",
                                        "initramfs.cpio", "workloads.txt"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(guest_dir, names[i], NULL);

        (void)g_unlink(path); /* some tests removed one */
    }
    ck_assert_int_eq(g_rmdir(guest_dir), 0);
    g_free(guest_dir);
}

/* words: the command line after `run`, blanks between, no quoting. */
static struct vm_config *parse_as(enum vm_command command, const char *words,
                                  GError **error)
{
    char **argv = words[0] ? g_strsplit(words, " ", -1) : g_new0(char *, 1);
    struct vm_config *config =
        vm_config_parse(command, (int)g_strv_length(argv), argv, error);

    g_strfreev(argv);
    return config;
}

static struct vm_config *parse(const char *words)
{
    GError *error = NULL;
    struct vm_config *config = parse_as(VM_COMMAND_RUN, words, &error);

    ck_assert_msg(config != NULL, "%s: %s", words,
                  error ? error->message : "no error");
    ck_assert_ptr_null(error);
    return config;
}

START_TEST(workload_alone_has_the_documented_defaults)
{
    struct vm_config *c = parse("swap_bench");
    g_autofree char *kernel = g_build_filename(guest_dir, "kernel.img", NULL);
    g_autofree char *elf = g_build_filename(guest_dir, "kernel.elf", NULL);

    ck_assert_str_eq(c->workload, "swap_bench");
    ck_assert_str_eq(c->kernel, kernel);
    ck_assert_str_eq(c->symbols, elf);
    ck_assert_uint_eq(c->cpus, 4);
    ck_assert_uint_eq(c->mem, 512 << 20);
    ck_assert_int_eq(c->tlb, VM_TLB_BROADCAST);
    ck_assert_int_eq(c->flush, VM_FLUSH_BATCHED);
    ck_assert_int_eq(c->drain, VM_DRAIN_MM);
    ck_assert_uint_eq(c->tlb_sets, 512);
    ck_assert_uint_eq(c->tlb_ways, 8);
    ck_assert_uint_eq(c->walk_cache, 64);
    ck_assert_int_eq(c->engine, VM_ENGINE_PARALLEL);
    ck_assert_uint_eq(c->workers, MIN(g_get_num_processors(), 4));
    ck_assert_uint_eq(c->timeout_s, 0);
    ck_assert_ptr_null(c->stats_path);
    ck_assert_ptr_null(c->plugins[0]);
    ck_assert_ptr_null(c->args[0]);
    ck_assert(!c->attribute);
    ck_assert_str_eq(c->cmdline, "tlb=broadcast flush=batched drain=mm "
                                 "init=/bin/swap_bench");
    vm_config_free(c);
}
END_TEST

START_TEST(every_option_reaches_its_field)
{
    struct vm_config *c = parse(
        "--cpus=512 -m 2G --tlb ipi --flush sync --drain dsb --tlb-sets 1 "
        "--tlb-ways 64 --tlb-replacement fifo --walk-cache 0 --engine parallel --workers 3 --stats - "
        "--trace t.jsonl --trace-events tlbi,hit-stale --plugin a.so,x=1 -p b "
        "--timeout 60 --verbose --append quiet swap_bench -- -t 3 --help --");

    ck_assert_uint_eq(c->cpus, 512);
    ck_assert_uint_eq(c->mem, UINT64_C(2) << 30);
    ck_assert_int_eq(c->tlb, VM_TLB_IPI);
    ck_assert_int_eq(c->flush, VM_FLUSH_SYNC);
    ck_assert_int_eq(c->drain, VM_DRAIN_DSB);
    ck_assert_uint_eq(c->tlb_sets, 1);
    ck_assert_uint_eq(c->tlb_ways, 64);
    ck_assert_int_eq(c->replacement, VM_REPLACE_FIFO);
    ck_assert_uint_eq(c->walk_cache, 0);
    ck_assert_uint_eq(c->workers, 3);
    ck_assert_str_eq(c->stats_path, "-");
    ck_assert(c->attribute);
    ck_assert_str_eq(c->trace_path, "t.jsonl");
    ck_assert_uint_eq(c->trace_events,
                      EVENT_BIT(EVENT_tlbi) | EVENT_BIT(EVENT_hit_stale));
    ck_assert_str_eq(c->plugins[0], "a.so,x=1");
    ck_assert_str_eq(c->plugins[1], "b");
    ck_assert_uint_eq(c->timeout_s, 60);
    ck_assert(c->verbose);
    ck_assert_uint_eq(g_strv_length(c->args), 4);
    ck_assert_str_eq(c->cmdline,
                     "tlb=ipi flush=sync drain=dsb init=/bin/swap_bench quiet "
                     "-- -t 3 --help --");
    vm_config_free(c);
}
END_TEST

START_TEST(selftest_is_the_kernels_own)
{
    struct vm_config *c = parse("selftest");

    ck_assert_ptr_nonnull(strstr(c->cmdline, " init=selftest"));
    vm_config_free(c);
}
END_TEST

START_TEST(own_kernel_gets_only_the_words_that_were_given)
{
    char *elf = fixture_file("\177ELF and more", 13);
    char *words =
        g_strdup_printf("--kernel %s --tlb ipi --append a=b -- c", elf);
    struct vm_config *c = parse(words);

    ck_assert_ptr_null(c->workload);
    ck_assert_str_eq(c->kernel, elf);
    ck_assert_str_eq(c->symbols, elf);
    ck_assert_ptr_null(c->initrd);
    ck_assert_str_eq(c->cmdline, "a=b -- c");
    vm_config_free(c);
    g_free(words);
    fixture_unlink(elf);

    c = parse("--kernel /nonexistent/flat.img");
    ck_assert_ptr_null(c->symbols);
    ck_assert_str_eq(c->cmdline, "");
    vm_config_free(c);
    words = g_strdup_printf("-k %s/kernel.img", guest_dir);
    c = parse(words);
    ck_assert(g_str_has_suffix(c->symbols, "/kernel.elf"));
    vm_config_free(c);
    g_free(words);
}
END_TEST

static const struct {
    const char *words, *says;
} refusals[] = {
    {"", "Name a workload"},
    {"nonsense", "'nonsense': the bundled ones are hello, swap_bench"},
    {"hello more", "'more'"},
    {"hello --kernel k.elf", "'k.elf'"},
    {"hello --cpus 0", "'0': accepted is a number from 1 to 512"},
    {"hello --cpus 513", "'513'"},
    {"hello --cpus -1", "'-1'"},
    {"hello --cpus 4x", "'4x'"},
    {"hello --cpus 99999999999999999999", "from 1 to 512"},
    {"hello --mem 12Q", "'12Q'"},
    {"hello --mem 1M", "from 16M to 64G"},
    {"hello --mem 65G", "from 16M to 64G"},
    {"hello --mem 17M", "multiples of 2M"},
    {"hello --mem 99999999999999999999G", "--mem"},
    {"hello --mem -512M", "'-512M'"},
    {"hello --tlb both", "'both': accepted are broadcast, ipi"},
    {"hello --flush never", "'never': accepted are sync, batched"},
    {"hello --drain x", "'x': accepted are mm, dsb, none"},
    {"hello --engine warp", "'warp': accepted are parallel"},
    {"hello --engine vtime", "'vtime' is not there yet"},
    {"hello --engine seeded", "'seeded' is not there yet"},
    {"hello --seed 7", "--seed '7' is not there yet"},
    {"hello --hw random", "--hw 'random' is not there yet"},
    {"hello --ledger on", "--ledger 'on' is not there yet"},
    {"hello --bug none", "--bug 'none' is not there yet"},
    {"hello --machine m", "--machine 'm' is not there yet"},
    {"hello --filter off", "--filter 'off' is not there yet"},
    {"hello --gdb :1", "--gdb ':1' is not there yet"},
    {"hello --monitor s", "--monitor 's' is not there yet"},
    {"hello --tlb-sets 3", "powers of two"},
    {"hello --tlb-ways 65", "from 1 to 64"},
    {"hello --tlb-replacement mru", "'mru'"},
    {"hello --walk-cache 1025", "from 0 to 1024"},
    {"hello --cpus 2 --workers 3", "from 1 to 2"},
    {"hello --timeout -5", "--timeout is '-5'"},
    {"hello --trace t --trace-events tlbi,nope", "'nope'"},
    {"hello --trace-events tlbi", "needs --trace"},
    {"hello --stats - --trace -", "standard output"},
    {"hello -q -v", "exclude each other"},
    {"hello --no-such-option", "shootdown run --help"},
    {"hello --cpus", "shootdown run --help"},
    {"--kernel k --flush sync", "--append"},
    {"hello -- it's", "'it's'"},
};

START_TEST(refusal_names_the_value_and_what_is_accepted)
{
    GError *error = NULL;
    struct vm_config *c = parse_as(VM_COMMAND_RUN, refusals[_i].words, &error);

    ck_assert_msg(c == NULL, "accepted: %s", refusals[_i].words);
    ck_assert_msg(strstr(error->message, refusals[_i].says) != NULL,
                  "'%s' gave: %s", refusals[_i].words, error->message);
    ck_assert_int_eq(exit_status_from_error(error), 1);
    g_clear_error(&error);
}
END_TEST

START_TEST(command_line_longer_than_the_kernels_is_refused)
{
    g_autofree char *many = g_strnfill(1100, 'x');
    g_autofree char *words = g_strconcat("hello -- ", many, NULL);
    GError *error = NULL;

    ck_assert_ptr_null(parse_as(VM_COMMAND_RUN, words, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "1023"));
    g_clear_error(&error);
}
END_TEST

START_TEST(missing_guest_is_an_environment_failure_that_says_what_to_do)
{
    g_autofree char *path = g_build_filename(guest_dir, "kernel.img", NULL);
    GError *error = NULL;

    ck_assert_int_eq(g_unlink(path), 0);
    ck_assert_ptr_null(parse_as(VM_COMMAND_RUN, "hello", &error));
    ck_assert_int_eq(exit_status_from_error(error), 2);
    ck_assert_ptr_nonnull(strstr(error->message, path));
    ck_assert_ptr_nonnull(strstr(error->message, "--kernel"));
    g_clear_error(&error);
}
END_TEST

START_TEST(compare_has_no_options_for_what_it_varies)
{
    static const char *const bad[] = {
        "hello --tlb ipi", "hello --flush sync", "hello --stats -",
        "--kernel k.elf",  "hello --trace t",    "hello --plugin count",
    };
    GError *error = NULL;
    struct vm_config *c =
        parse_as(VM_COMMAND_COMPARE, "swap_bench -c 2 -- -t 1", &error);

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->cpus, 2);
    vm_config_free(c);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        ck_assert_msg(!parse_as(VM_COMMAND_COMPARE, bad[i], &error), "%s",
                      bad[i]);
        ck_assert_ptr_nonnull(strstr(error->message, "compare --help"));
        g_clear_error(&error);
    }
}
END_TEST

START_TEST(copy_is_independent_and_can_be_composed_again)
{
    struct vm_config *a = parse("swap_bench --plugin x -- -t 1");
    struct vm_config *b = vm_config_copy(a);

    b->tlb = VM_TLB_IPI;
    b->flush = VM_FLUSH_SYNC;
    vm_config_compose(b);
    ck_assert_str_eq(
        b->cmdline, "tlb=ipi flush=sync drain=mm init=/bin/swap_bench -- -t 1");
    vm_config_free(b);
    ck_assert_str_eq(a->cmdline, "tlb=broadcast flush=batched drain=mm "
                                 "init=/bin/swap_bench -- -t 1");
    ck_assert_str_eq(a->plugins[0], "x");
    vm_config_free(a);
    vm_config_free(NULL);
}
END_TEST

static const struct {
    const char *text;
    uint64_t bytes; /* 0: refused */
} sizes[] = {
    {"1", 1},
    {"64k", 65536},
    {"512M", 512 << 20},
    {"2G", UINT64_C(2) << 30},
    {"18446744073709551615", UINT64_MAX},
    {"18446744073709551616", 0},
    {"17179869184G", 0},
    {"", 0},
    {"G", 0},
    {"1GB", 0},
    {"1 G", 0},
    {" 1G", 0},
    {"+1", 0},
    {"0x10", 0},
};

START_TEST(sizes_are_numbers_with_a_unit)
{
    uint64_t bytes = 0;

    ck_assert_msg(vm_size_parse(sizes[_i].text, &bytes) ==
                      (sizes[_i].bytes != 0),
                  "%s", sizes[_i].text);
    ck_assert_uint_eq(bytes, sizes[_i].bytes);
}
END_TEST

START_TEST(help_fits_eighty_columns_and_has_no_option_of_later)
{
    char *text = vm_config_help((enum vm_command)_i);
    char **lines = g_strsplit(text, "\n", -1);

    for (char **line = lines; *line; line++) {
        ck_assert_msg(g_utf8_strlen(*line, -1) <= 80, "too long: %s", *line);
    }
    ck_assert_ptr_null(strstr(text, "--seed"));
    ck_assert_ptr_null(strstr(text, "vtime"));
    ck_assert_ptr_nonnull(strstr(text, "--cpus"));
    ck_assert_ptr_nonnull(strstr(text, "Examples:"));
    g_strfreev(lines);
    g_free(text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("config");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, workload_alone_has_the_documented_defaults);
    tcase_add_test(tc, every_option_reaches_its_field);
    tcase_add_test(tc, selftest_is_the_kernels_own);
    tcase_add_test(tc, own_kernel_gets_only_the_words_that_were_given);
    tcase_add_loop_test(tc, refusal_names_the_value_and_what_is_accepted, 0,
                        G_N_ELEMENTS(refusals));
    tcase_add_test(tc, command_line_longer_than_the_kernels_is_refused);
    tcase_add_test(
        tc, missing_guest_is_an_environment_failure_that_says_what_to_do);
    tcase_add_test(tc, compare_has_no_options_for_what_it_varies);
    tcase_add_test(tc, copy_is_independent_and_can_be_composed_again);
    tcase_add_loop_test(tc, sizes_are_numbers_with_a_unit, 0,
                        G_N_ELEMENTS(sizes));
    tcase_add_loop_test(tc, help_fits_eighty_columns_and_has_no_option_of_later,
                        0, VM_COMMAND_COMPARE + 1);
    return fixture_main("config", tc);
}
