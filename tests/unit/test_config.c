/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: what it means, and what it refuses in which words. */
#include "config_fixture.h"

#include "choice/source.h"
#include "config.h"
#include "error.h"
#include "obs/events.h"

static void assert_profile(const struct vm_config *c, enum hw_profile profile)
{
    struct hw want;

    hw_set_profile(&want, profile);
    ck_assert_mem_eq(&c->hw, &want, sizeof(want));
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
    ck_assert_int_eq(c->filter, VM_FILTER_OFF);
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
    ck_assert_uint_eq(c->seed, 1);
    ck_assert_str_eq(c->strategy, "random");
    assert_profile(c, HW_PROFILE_TYPICAL);
    ck_assert_ptr_null(c->bug);
    ck_assert_ptr_null(c->record_path);
    ck_assert(!c->has_snapshot_at);
    ck_assert_uint_eq(c->runs, 1);
    ck_assert_uint_eq(c->max_steps, 0);
    vm_config_free(c);
}
END_TEST

START_TEST(deterministic_engines_have_defaults_of_their_own)
{
    struct vm_config *c = parse("hello --engine seeded");

    ck_assert_int_eq(c->engine, VM_ENGINE_SEEDED);
    ck_assert_uint_eq(c->seed, 1);
    ck_assert_str_eq(c->strategy, "random");
    assert_profile(c, HW_PROFILE_RANDOM);
    ck_assert_uint_eq(c->workers, 1);
    ck_assert_uint_eq(c->max_steps, 0);
    vm_config_free(c);

    c = parse("hello --engine vtime --strategy random");
    ck_assert_int_eq(c->engine, VM_ENGINE_VTIME);
    assert_profile(c, HW_PROFILE_TYPICAL);
    ck_assert_uint_eq(c->workers, 1);
    vm_config_free(c);

    c = parse("hello --engine seeded --snapshot-at 0");
    ck_assert(c->has_snapshot_at);
    ck_assert_uint_eq(c->snapshot_at, 0);
    ck_assert_uint_eq(c->max_steps, 1000000);
    vm_config_free(c);

    c = parse("hello --engine parallel --hw typical"); /* what it has */
    assert_profile(c, HW_PROFILE_TYPICAL);
    vm_config_free(c);
}
END_TEST

START_TEST(every_option_of_the_choices_reaches_its_field)
{
    struct vm_config *c = parse(
        "--engine=seeded --seed 0xFFFFFFFFFFFFFFFF --strategy pct:3 --hw eager "
        "--hw-pte-delay on --hw-multi-size random --bug free-before-flush "
        "--record run.sd --snapshot-at 18446744073709551615 --runs 1000000000 "
        "--max-steps 0 swap_bench -- -t 3");
    struct hw eager;

    ck_assert_uint_eq(c->seed, UINT64_MAX);
    ck_assert_str_eq(c->strategy, "pct:3");
    hw_set_profile(&eager, HW_PROFILE_EAGER);
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        ck_assert_int_eq(c->hw.mode[k], k == HW_pte_delay    ? HW_ON
                                        : k == HW_multi_size ? HW_RANDOM
                                                             : eager.mode[k]);
    }
    ck_assert_str_eq(c->bug, "free-before-flush");
    ck_assert_str_eq(c->record_path, "run.sd");
    ck_assert(c->has_snapshot_at);
    ck_assert_uint_eq(c->snapshot_at, UINT64_MAX);
    ck_assert_uint_eq(c->runs, 1000000000);
    ck_assert_uint_eq(c->max_steps, 0);
    ck_assert_str_eq(c->cmdline,
                     "tlb=broadcast flush=batched drain=mm "
                     "init=/bin/swap_bench bug=free-before-flush -- -t 3");
    vm_config_free(c);
}
END_TEST

/* The profiles and every switch in every mode: each field by its name. */
START_TEST(every_liberty_has_a_switch)
{
    enum hw_knob k = (enum hw_knob)_i;

    for (unsigned m = HW_OFF; m <= HW_ON; m++) {
        for (unsigned p = 0; p <= HW_PROFILE_ADVERSARIAL; p++) {
            g_autofree char *words =
                g_strdup_printf("hello --engine %s --hw-%s %s --hw %s",
                                p % 2 ? "vtime" : "seeded", hw_knob_option(k),
                                hw_mode_name((enum hw_mode)m),
                                hw_profile_name((enum hw_profile)p));
            struct vm_config *c = parse(words);
            struct hw want;

            hw_set_profile(&want, (enum hw_profile)p);
            want.mode[k] = (enum hw_mode)m;
            ck_assert_msg(memcmp(&c->hw, &want, sizeof(want)) == 0, "%s",
                          words);
            vm_config_free(c);
        }
    }
}
END_TEST

START_TEST(every_strategy_of_the_list_is_accepted)
{
    const char *const *pair = choice_strategies();

    ck_assert_ptr_nonnull(pair[0]);
    for (; pair[0]; pair += 2) {
        /* A number that may follow is in brackets in the list. */
        g_autofree char *name = g_strndup(pair[0], strcspn(pair[0], "[ "));
        g_autofree char *words =
            g_strdup_printf("hello --engine seeded --strategy %s", name);
        struct vm_config *c = parse(words);

        ck_assert_str_eq(c->strategy, name);
        vm_config_free(c);
    }
}
END_TEST

START_TEST(every_bug_of_the_list_is_accepted)
{
    static const char *const names[] = {
#define BUG(ident, name, exhibit, rules, what) name,
#include "abi/bugs.inc"
#undef BUG
    };

    ck_assert_uint_gt(G_N_ELEMENTS(names), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *words = g_strdup_printf("hello --bug %s", names[i]);
        g_autofree char *on_line = g_strdup_printf(" bug=%s", names[i]);
        struct vm_config *c = parse(words);

        ck_assert_str_eq(c->bug, names[i]);
        ck_assert_ptr_nonnull(strstr(c->cmdline, on_line));
        vm_config_free(c);
    }
}
END_TEST

START_TEST(every_option_reaches_its_field)
{
    struct vm_config *c = parse(
        "--cpus=512 -m 2G --tlb ipi --flush sync --drain dsb "
        "--filter stale --tlb-sets 1 "
        "--tlb-ways 64 --tlb-replacement fifo --walk-cache 0 --engine parallel "
        "--workers 3 --stats - "
        "--trace t.jsonl --trace-events tlbi,hit-stale --plugin a.so,x=1 -p b "
        "--timeout 60 --verbose --append quiet swap_bench -- -t 3 --help --");

    ck_assert_uint_eq(c->cpus, 512);
    ck_assert_uint_eq(c->mem, UINT64_C(2) << 30);
    ck_assert_int_eq(c->tlb, VM_TLB_IPI);
    ck_assert_int_eq(c->flush, VM_FLUSH_SYNC);
    ck_assert_int_eq(c->drain, VM_DRAIN_DSB);
    ck_assert_int_eq(c->filter, VM_FILTER_STALE);
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
                     "tlb=ipi flush=sync drain=dsb filter=stale "
                     "init=/bin/swap_bench quiet -- -t 3 --help --");
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
    {"hello --engine warp", "'warp': accepted are parallel, seeded, vtime"},
    /* What only a deterministic engine can do. */
    {"hello --seed 7", "--seed '7' needs --engine seeded or vtime"},
    {"hello --engine parallel --seed 1", "--seed '1' needs --engine seeded"},
    {"hello --strategy pos", "--strategy 'pos' needs --engine seeded:"},
    {"hello --record f", "--record 'f' needs --engine seeded or vtime"},
    {"hello --snapshot-at 1", "--snapshot-at '1' needs --engine seeded"},
    {"hello --runs 2", "--runs '2' needs --engine seeded"},
    {"hello --max-steps 9", "--max-steps '9' needs --engine seeded"},
    {"hello --hw random", "--hw 'random' needs --engine seeded or vtime"},
    {"hello --hw eager", "--engine parallel has only 'typical'"},
    {"hello --hw cruel", "--hw 'cruel'"},
    {"hello --hw-defer on", "--hw-defer 'on' needs --engine seeded or vtime"},
    {"hello --hw-evict off --engine parallel", "--hw-evict 'off' needs"},
    /* What it accepts of them. */
    {"hello --engine seeded --workers 1", "--workers '1' needs --engine par"},
    {"hello --engine vtime --workers 2", "vtime runs all vCPUs on one thread"},
    {"hello --engine seeded --seed -1", "'-1'"},
    {"hello --engine seeded --seed +1", "'+1'"},
    {"hello --engine seeded --seed 1x", "--seed is '1x': accepted is a number"},
    {"hello --engine seeded --seed 0x", "'0x'"},
    {"hello --engine seeded --seed 0x0x1", "'0x0x1'"},
    {"hello --engine seeded --seed 0x-1", "'0x-1'"},
    {"hello --engine seeded --seed=", "--seed is ''"},
    {"hello --engine seeded --seed 18446744073709551616", "0xffffffffffffffff"},
    {"hello --engine seeded --seed 0x10000000000000000", "0xffffffffffffffff"},
    {"hello --engine seeded --strategy luck", "--strategy is 'luck'"},
    {"hello --engine seeded --strategy luck", "list strategies"},
    {"hello --engine seeded --strategy pct:x", "--strategy is 'pct:x'"},
    {"hello --engine seeded --strategy=", "--strategy is ''"},
    {"hello --engine vtime --strategy pos", "the clocks choose the vCPU"},
    {"hello --engine vtime --strategy luck", "--strategy is 'luck'"},
    {"hello --engine seeded --hw cruel",
     "'cruel': accepted are eager, typical, random, adversarial"},
    {"hello --engine seeded --hw-defer maybe",
     "--hw-defer is 'maybe': accepted are off, random, on"},
    {"hello --engine seeded --hw-warp on", "shootdown run --help"},
    {"hello --engine seeded --snapshot-at begin", "--snapshot-at is 'begin'"},
    {"hello --engine seeded --runs 2", "--runs '2' needs --snapshot-at MARK"},
    {"hello --engine seeded --snapshot-at 1 --runs 0", "from 1 to 1000000000"},
    {"hello --engine seeded --snapshot-at 1 --runs 1000000001", "from 1 to"},
    {"hello --engine seeded --max-steps many", "--max-steps is 'many'"},
    {"hello --bug none", "no bug 'none': 'shootdown list bugs'"},
    {"hello --bug=", "--bug is ''"},
    {"hello --bug free-before-flush,", "no bug ''"},
    {"hello --bug free-before-flush,no", "no bug 'no'"},
    {"--kernel k --bug free-before-flush", "--append"},
    {"hello --ledger maybe", "--ledger is 'maybe'"},
    {"hello --ledger on --cpus 65", "--cpus is 65: --ledger on"},
    {"hello --engine seeded --ledger maybe", "--ledger is 'maybe'"},
    {"hello --engine seeded --ledger on --check bbm",
     "--check 'bbm' does not go with --ledger on"},
    {"hello --engine seeded --ledger on --cpus 65",
     "--cpus is 65: --ledger on"},
    {"hello --machine m", "--machine 'm' is not there yet"},
    {"hello --filter lazy", "'lazy': accepted are off, stale"},
    {"hello --filter stale", "--filter 'stale' needs --tlb ipi"},
    {"--kernel k --tlb ipi --filter off", "--append"},
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
    {"hello -- a\rb", "a blank or a quote"},
    {"hello --append a\nb", "--append is 'a\nb': a line break"},
    {"--kernel k\n", "--kernel is 'k\n': a line break"},
    {"hello --initrd a\rb", "--initrd is"},
    {"hello --symbols a\rb", "--symbols is"},
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
        "hello --tlb ipi", "hello --flush sync",  "hello --stats -",
        "--kernel k.elf",  "hello --trace t",     "hello --plugin count",
        "hello --bug x",   "hello --record f",    "hello --snapshot-at 1",
        "hello --runs 2",  "hello --max-steps 1",
    };
    GError *error = NULL;
    struct vm_config *c =
        parse_as(VM_COMMAND_COMPARE, "swap_bench -c 2 -- -t 1", &error);

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->cpus, 2);
    vm_config_free(c);
    c = parse_as(VM_COMMAND_COMPARE,
                 "swap_bench --engine vtime --seed 3 --hw-defer random",
                 &error);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(c->hw.mode[HW_defer], HW_RANDOM);
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
    struct vm_config *c =
        parse("hello --engine seeded --strategy dfs --record f --bug "
              "free-before-flush");
    struct vm_config *d = vm_config_copy(c);

    vm_config_free(c);
    ck_assert_str_eq(d->strategy, "dfs");
    ck_assert_str_eq(d->record_path, "f");
    ck_assert_str_eq(d->bug, "free-before-flush");
    vm_config_free(d);
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

int main(void)
{
    TCase *tc = tcase_create("config");

    tcase_add_checked_fixture(tc, config_setup, config_teardown);
    tcase_add_test(tc, workload_alone_has_the_documented_defaults);
    tcase_add_test(tc, deterministic_engines_have_defaults_of_their_own);
    tcase_add_test(tc, every_option_of_the_choices_reaches_its_field);
    tcase_add_loop_test(tc, every_liberty_has_a_switch, 0, HW_KNOBS);
    tcase_add_test(tc, every_strategy_of_the_list_is_accepted);
    tcase_add_test(tc, every_bug_of_the_list_is_accepted);
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
    return fixture_main("config", tc);
}
