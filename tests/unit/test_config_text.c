/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run's configuration survives being written down as one line. */
#include "config_fixture.h"

#include "error.h"

static const struct {
    const char *words; /* as a shell reads them; $K: kernel.img in full */
    const char *text;  /* NULL: not looked at */
} runs[] = {
    {"hello", "hello"},
    {"swap_bench --tlb ipi --flush sync -c 8 -- -t 7",
     "--cpus=8 --tlb=ipi --flush=sync swap_bench -- -t 7"},
    {"--engine seeded hello", "--engine=seeded --seed=1 --ledger=on hello"},
    {"--engine vtime hello", "--engine=vtime --seed=1 --ledger=on hello"},
    {"hello --engine seeded --hw random",
     "--engine=seeded --seed=1 --ledger=on hello"},
    {"hello --engine seeded --hw typical --seed 0xffffffffffffffff",
     "--engine=seeded --seed=18446744073709551615 --hw=typical --ledger=on "
     "hello"},
    {"hello --engine vtime --hw adversarial --hw-prefetch off",
     "--engine=vtime --seed=1 --hw=adversarial --hw-prefetch=off --ledger=on "
     "hello"},
    {"hello --engine seeded --snapshot-at 0",
     "--engine=seeded --seed=1 --snapshot-at=0 --ledger=on hello"},
    {"hello --engine seeded --snapshot-at 1 --runs 9 --max-steps 0",
     "--engine=seeded --seed=1 --snapshot-at=1 --runs=9 --max-steps=0 "
     "--ledger=on hello"},
    {"hello --engine seeded --snapshot-at 1 --max-steps 1000000",
     "--engine=seeded --seed=1 --snapshot-at=1 --ledger=on hello"},
    {"hello --engine seeded --max-steps 1000000",
     "--engine=seeded --seed=1 --max-steps=1000000 --ledger=on hello"},
    {"hello --engine seeded --strategy pct:3 --bug free-before-flush",
     "--engine=seeded --seed=1 --strategy=pct:3 --ledger=on "
     "--bug=free-before-flush hello"},
    {"hello --bug free-before-flush,local-instead-of-broadcast",
     "--bug=free-before-flush,local-instead-of-broadcast hello"},
    {"hello --mem 64M --tlb-sets 4 --tlb-ways 2 --tlb-replacement random "
     "--walk-cache 0 --drain none",
     "--mem=64M --tlb-sets=4 --tlb-ways=2 --tlb-replacement=random "
     "--walk-cache=0 --drain=none hello"},
    {"hello --tlb ipi --filter stale", "--tlb=ipi --filter=stale hello"},
    {"hello --filter off", "hello"},
    {"hello --ledger stop", "--ledger=stop hello"},
    {"hello --ledger off", "hello"},
    {"hello --cpus 8 --workers 1 --mem 16M", NULL},
    {"hello --append 'a=1 b=$x #;\"\\*' --initrd '/tmp/my disk' --symbols -x",
     "'--initrd=/tmp/my disk' --symbols=-x '--append=a=1 b=$x #;\"\\*' hello"},
    {"hello --append \"it's\"", "'--append=it'\\''s' hello"},
    {"hello --append ''", "--append= hello"},
    {"--append=-- hello -- -- --seed '#x' '~'",
     "--append=-- hello -- -- --seed "
     "'#x' '~'"},
    {"--kernel /nonexistent/k --tlb ipi -- -x",
     "--tlb=ipi --kernel=/nonexistent/k -- -x"},
    {"-k $K --engine vtime --seed 0 --append x --initrd d --symbols s", NULL},
    {"-k $K", NULL},
    {"hello --stats - --trace t --trace-events tlbi --plugin p --quiet "
     "--timeout 9 --engine seeded --record r",
     "--engine=seeded --seed=1 --ledger=on hello"},
};

static void assert_same_text(const char *a, const char *b)
{
    ck_assert_msg(g_strcmp0(a, b) == 0, "'%s' is not '%s'", a, b);
}

/* Everything but output. */
static void assert_same_run(const struct vm_config *a,
                            const struct vm_config *b)
{
    assert_same_text(a->workload, b->workload);
    assert_same_text(a->kernel, b->kernel);
    assert_same_text(a->initrd, b->initrd);
    assert_same_text(a->symbols, b->symbols);
    assert_same_text(a->append, b->append);
    assert_same_text(a->bug, b->bug);
    assert_same_text(a->cmdline, b->cmdline);
    ck_assert(g_strv_equal((const gchar *const *)a->args,
                           (const gchar *const *)b->args));
    ck_assert_uint_eq(a->cpus, b->cpus);
    ck_assert_uint_eq(a->mem, b->mem);
    ck_assert_int_eq(a->tlb, b->tlb);
    ck_assert_int_eq(a->flush, b->flush);
    ck_assert_int_eq(a->drain, b->drain);
    ck_assert_int_eq(a->filter, b->filter);
    ck_assert_uint_eq(a->tlb_sets, b->tlb_sets);
    ck_assert_uint_eq(a->tlb_ways, b->tlb_ways);
    ck_assert_uint_eq(a->walk_cache, b->walk_cache);
    ck_assert_int_eq(a->replacement, b->replacement);
    ck_assert_int_eq(a->engine, b->engine);
    ck_assert_uint_eq(a->workers, b->workers);
    ck_assert_uint_eq(a->seed, b->seed);
    assert_same_text(a->strategy, b->strategy);
    ck_assert_mem_eq(&a->hw, &b->hw, sizeof(a->hw));
    ck_assert(a->has_snapshot_at == b->has_snapshot_at);
    ck_assert_uint_eq(a->snapshot_at, b->snapshot_at);
    ck_assert_uint_eq(a->runs, b->runs);
    ck_assert_uint_eq(a->max_steps, b->max_steps);
}

static void assert_round_trip(const struct vm_config *a, const char *want)
{
    GError *error = NULL;
    g_autofree char *text = vm_config_to_text(a);
    g_autofree char *again = NULL;
    struct vm_config *b = vm_config_from_text(text, &error);

    ck_assert_msg(b != NULL, "%s: %s", text, error ? error->message : "");
    if (want) {
        ck_assert_str_eq(text, want);
    }
    ck_assert_ptr_null(strpbrk(text, "\r\n"));
    assert_same_run(a, b);
    again = vm_config_to_text(b);
    ck_assert_str_eq(again, text);
    ck_assert_ptr_null(b->stats_path);
    ck_assert_ptr_null(b->trace_path);
    ck_assert_ptr_null(b->record_path);
    ck_assert_ptr_null(b->plugins[0]);
    ck_assert(!b->quiet && !b->attribute);
    ck_assert_uint_eq(b->timeout_s, 0);
    vm_config_free(b);
}

START_TEST(text_of_a_run_gives_the_same_run)
{
    g_auto(GStrv) parts = g_strsplit(runs[_i].words, "$K", -1);
    g_autofree char *image = g_build_filename(guest_dir, "kernel.img", NULL);
    g_autofree char *words = g_strjoinv(image, parts);
    g_auto(GStrv) argv = NULL;
    struct vm_config *c;
    int argc;

    ck_assert(g_shell_parse_argv(words, &argc, &argv, NULL));
    c = vm_config_parse(VM_COMMAND_RUN, argc, argv, NULL);
    ck_assert_msg(c != NULL, "%s", words);
    assert_round_trip(c, runs[_i].text);
    vm_config_free(c);
}
END_TEST

START_TEST(text_keeps_every_set_of_liberties)
{
    static const enum vm_engine engines[] = {VM_ENGINE_SEEDED, VM_ENGINE_VTIME};
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);

    for (unsigned i = 0; i < 500; i++) {
        struct vm_config *c = parse("hello --engine seeded");

        c->engine = engines[i % 2];
        for (unsigned k = 0; k < HW_KNOBS; k++) {
            c->hw.mode[k] =
                (enum hw_mode)g_rand_int_range(rand, HW_OFF, HW_ON + 1);
        }
        assert_round_trip(c, NULL);
        vm_config_free(c);
    }
}
END_TEST

static const struct {
    const char *text, *says;
} bad_texts[] = {
    {"", "is not accepted"},
    {"   ", "is not accepted"},
    {"hello 'open", "is not accepted"},
    {"hello\nhello", "more than one line"},
    {"hello --plugin=/tmp/evil.so", "--plugin"}, /* must not load anything */
    {"hello --record=/etc/passwd", "--record"},
    {"hello --stats=/etc/passwd", "--stats"},
    {"hello --trace=/etc/passwd", "--trace"},
    {"hello --timeout=1", "--timeout"},
    {"hello --seed=1", "needs --engine seeded"},
    {"--engine=seeded --seed=x hello", "--seed is 'x'"},
    {"--engine=seeded nonsense", "no workload 'nonsense'"},
    {"--engine=seeded --cpus=513 hello", "'513'"},
};

START_TEST(text_of_anybody_is_refused_as_a_file_would_be)
{
    GError *error = NULL;
    struct vm_config *c = vm_config_from_text(bad_texts[_i].text, &error);

    ck_assert_msg(!c, "accepted: %s", bad_texts[_i].text);
    ck_assert_int_eq(exit_status_from_error(error), 2);
    ck_assert_msg(strstr(error->message, bad_texts[_i].says) != NULL,
                  "'%s' gave: %s", bad_texts[_i].text, error->message);
    g_clear_error(&error);
}
END_TEST

START_TEST(random_text_is_refused_or_is_a_run)
{
    /* Pieces that have a meaning, so that more than the first word is seen. */
    static const char *const pieces[] = {
        "--",          " ",       "'",
        "\"",          "\\",      "#",
        "=",           "hello",   "--engine=seeded",
        "--seed=",     "0x",      "9",
        "--hw",        "-defer=", "on",
        "--strategy=", "pct:",    "\xff",
        "--kernel=",   "-k",      "--append=",
        "$(",          "`",       "~",
        "-",
    };
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    unsigned accepted = 0;

    for (unsigned i = 0; i < 20000; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        struct vm_config *c;
        GError *error = NULL;
        int n = g_rand_int_range(rand, 0, 9);

        for (int k = 0; k < n; k++) {
            g_string_append(
                text, pieces[g_rand_int_range(rand, 0, G_N_ELEMENTS(pieces))]);
            g_string_append(text, g_rand_boolean(rand) ? " " : "");
        }
        c = vm_config_from_text(text->str, &error);
        ck_assert_msg((c == NULL) == (error != NULL), "%s", text->str);
        g_clear_error(&error);
        if (c) {
            accepted++;
            assert_round_trip(c, NULL);
            vm_config_free(c);
        }
    }
    ck_assert_uint_gt(accepted, 50); /* or it would show nothing */
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("config_text");

    tcase_add_checked_fixture(tc, config_setup, config_teardown);
    tcase_add_loop_test(tc, text_of_a_run_gives_the_same_run, 0,
                        G_N_ELEMENTS(runs));
    tcase_add_test(tc, text_keeps_every_set_of_liberties);
    tcase_add_loop_test(tc, text_of_anybody_is_refused_as_a_file_would_be, 0,
                        G_N_ELEMENTS(bad_texts));
    tcase_add_test(tc, random_text_is_refused_or_is_a_run);
    return fixture_main("config_text", tc);
}
