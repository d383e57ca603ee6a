/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics: the JSON adds up, sites and operation windows count right. */
#include "obs_fixture.h"

#include <stdio.h>

#include "abi/annot.h"
#include "config.h"
#include "obs/events.h"
#include "obs/sites.h"
#include "obs/stats.h"
#include "obs/symbols.h"

#define FLUSH_PC UINT64_C(0xffff000000001000)
#define SWITCH_PC UINT64_C(0xffff000000002000)
#define GIC_PC UINT64_C(0xffff000000003000)
#define USER_PC UINT64_C(0x400000)

static const struct fixture_symbol kernel[] = {
    {"flush_tlb_page", FLUSH_PC, 0x100, STT_FUNC},
    {"cpu_switch_to", SWITCH_PC, 0x100, STT_FUNC},
    {"gic_send_sgi", GIC_PC, 0x100, STT_FUNC},
};

#define OP ANNOT_OP_MADVISE_PAGEOUT
#define VALE1IS (3u << 3 | 5u)
#define ISH 11u
#define ISHST 10u

static struct symbols *symbols;
static struct events *ev;
static struct vm_config config;
static char *no_words[] = {NULL};

static void setup(void)
{
    char *path = fixture_symbols_file(kernel, G_N_ELEMENTS(kernel));

    symbols = symbols_load(path, NULL);
    ck_assert_ptr_nonnull(symbols);
    fixture_unlink(path);
    ev = events_new(2);
    config = (struct vm_config){
        .workload = (char *)"swap_bench",
        .kernel = (char *)"kernel.img",
        .cmdline = (char *)"tlb=ipi",
        .args = no_words,
        .plugins = no_words,
        .cpus = 2,
        .mem = 1 << 30,
        .tlb = VM_TLB_IPI,
        .workers = 2,
    };
}

static void teardown(void)
{
    events_free(ev);
    symbols_free(symbols);
}

static void tlbi(unsigned vcpu, uint64_t pc)
{
    event_tlbi(ev, vcpu, pc, 3, 5, 0, 0, 0, 4096, 1);
}

static struct vm_totals totals_of(void)
{
    return (struct vm_totals){
        .config = &config,
        .events = ev,
        .outcome = "off",
        .has_exit_status = true,
        .exit_status = 0,
        .wall_ns = 2000000000,
        .guest_ns = 1900000000,
        .instructions = 50000000,
        .workers = 2,
    };
}

/* Parsed; the line must be one line. */
static yajl_val json_of(const struct vm_totals *totals)
{
    char *line = stats_json(totals, symbols);
    yajl_val tree;

    ck_assert_ptr_null(strchr(line, '\n'));
    tree = fixture_json(line);
    g_free(line);
    return tree;
}

START_TEST(totals_are_the_sums_of_the_vcpus)
{
    static const char *const names[] = {
        "instructions", "tlb_lookups", "fills", "ipis_sent", "irqs",
    };
    struct vm_totals totals = totals_of();
    yajl_val tree, per_vcpu;

    for (unsigned v = 0; v < 2; v++) {
        events_counters(ev, v)->instructions = 1000 + v;
        events_counters(ev, v)->tlb_lookups = 7 * (v + 1);
        for (unsigned i = 0; i < 5 + v; i++) {
            event_emit(ev, v, EVENT_fill, 0, 1);
            event_emit(ev, v, EVENT_irq_take, 0);
            tlbi(v, FLUSH_PC);
        }
        event_ipi_send(ev, v, GIC_PC, 0, 1, 3);
    }
    tree = json_of(&totals);
    per_vcpu = fixture_at(tree, "machine/per_vcpu");
    ck_assert_uint_eq(YAJL_GET_ARRAY(per_vcpu)->len, 2);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        char path[64];
        long long sum = 0;

        for (unsigned v = 0; v < 2; v++) {
            sum +=
                fixture_number(YAJL_GET_ARRAY(per_vcpu)->values[v], names[i]);
        }
        snprintf(path, sizeof(path), "machine/%s", names[i]);
        ck_assert_msg(fixture_number(tree, path) == sum, "%s", names[i]);
        ck_assert_int_gt(sum, 0);
    }
    ck_assert_int_eq(fixture_number(tree, "machine/tlbi/VALE1IS"), 11);
    ck_assert_int_eq(fixture_number(tree, "machine/ipis_sent"), 6);
    ck_assert_int_eq(fixture_number(tree, "machine/events/fill"), 11);
    yajl_tree_free(tree);
}
END_TEST

START_TEST(configuration_outcome_and_time_are_in_the_object)
{
    struct vm_totals totals = totals_of();
    yajl_val tree;

    totals.panic_code = UINT64_MAX;
    tree = json_of(&totals);
    ck_assert_str_eq(fixture_text(tree, "config/tlb"), "ipi");
    ck_assert_str_eq(fixture_text(tree, "config/flush"), "sync");
    ck_assert_int_eq(fixture_number(tree, "config/mem"), 1 << 30);
    ck_assert_str_eq(fixture_text(tree, "outcome"), "off");
    ck_assert_str_eq(fixture_text(tree, "panic_code"), "0xffffffffffffffff");
    ck_assert_int_eq(fixture_number(tree, "exit_status"), 0);
    ck_assert_int_eq(fixture_number(tree, "time/instructions_per_second"),
                     25000000);
    ck_assert(YAJL_IS_NULL(fixture_at(tree, "guest")));
    ck_assert(YAJL_IS_NULL(fixture_at(tree, "config/initrd")));
    /* No attribution was asked for. */
    ck_assert_ptr_null(fixture_at(tree, "machine/flush_sites"));
    yajl_tree_free(tree);
}
END_TEST

START_TEST(deterministic_runs_say_how_they_can_be_had_again)
{
    static const char *const only[] = {
        "seed", "strategy", "hw", "max_steps", "snapshot_at", "runs", "bug"};
    struct vm_totals totals = totals_of();
    yajl_val tree = json_of(&totals);
    g_autofree char *text = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(only); i++) {
        g_autofree char *path = g_strconcat("config/", only[i], NULL);

        ck_assert_msg(!fixture_at(tree, path), "%s in parallel", only[i]);
    }
    yajl_tree_free(tree);

    config.engine = VM_ENGINE_SEEDED;
    config.seed = UINT64_MAX;
    config.strategy = (char *)"pct:3";
    config.bug = (char *)"free-before-flush";
    hw_set_profile(&config.hw, HW_PROFILE_EAGER);
    config.hw.mode[HW_pte_delay] = HW_RANDOM;
    tree = json_of(&totals);
    ck_assert_str_eq(fixture_text(tree, "config/engine"), "seeded");
    ck_assert_str_eq(fixture_text(tree, "config/seed"), "18446744073709551615");
    ck_assert_str_eq(fixture_text(tree, "config/strategy"), "pct:3");
    ck_assert_str_eq(fixture_text(tree, "config/bug"), "free-before-flush");
    ck_assert_str_eq(fixture_text(tree, "config/hw/pte-delay"), "random");
    ck_assert_str_eq(fixture_text(tree, "config/hw/prefetch"), "off");
    ck_assert_uint_eq(YAJL_GET_OBJECT(fixture_at(tree, "config/hw"))->len,
                      HW_KNOBS);
    ck_assert_ptr_null(fixture_at(tree, "config/runs"));
    yajl_tree_free(tree);

    config.has_snapshot_at = true;
    config.snapshot_at = 0x10;
    config.runs = 3;
    config.max_steps = 1000000;
    tree = json_of(&totals);
    ck_assert_str_eq(fixture_text(tree, "config/snapshot_at"), "0x10");
    ck_assert_int_eq(fixture_number(tree, "config/runs"), 3);
    ck_assert_int_eq(fixture_number(tree, "config/max_steps"), 1000000);
    yajl_tree_free(tree);

    text = stats_summary(&totals);
    ck_assert_ptr_nonnull(strstr(text, "bug=free-before-flush\n"));
    ck_assert_ptr_nonnull(strstr(
        text, "engine=seeded seed=18446744073709551615 strategy=pct:3\n"));
}
END_TEST

START_TEST(guest_counters_are_copied_by_name_and_cpu)
{
    struct vm_totals totals = totals_of();
    struct annot_counters guest[2];
    uint8_t moved[sizeof(guest) + 1];
    yajl_val tree, per_cpu;

    memset(guest, 0, sizeof(guest));
    guest[0].dsb_ish = 9;
    guest[1].dsb_ish = 1;
    guest[1].tlbi_va = UINT64_C(1) << 40;
    /* Where a guest puts them need not be aligned. */
    memcpy(moved + 1, guest, sizeof(guest));
    vm_totals_set_guest(&totals, moved + 1, 2);
    tree = json_of(&totals);
    ck_assert_int_eq(fixture_number(tree, "guest/dsb_ish"), 10);
    ck_assert_int_eq(fixture_number(tree, "guest/tlbi_va"), 1LL << 40);
    per_cpu = fixture_at(tree, "guest/per_cpu");
    ck_assert_int_eq(
        fixture_number(YAJL_GET_ARRAY(per_cpu)->values[0], "dsb_ish"), 9);
    ck_assert_int_eq(guest_counter_index("no_such"), -1);
    ck_assert_uint_eq(guest_counter_stride(), sizeof(struct annot_counters));
    yajl_tree_free(tree);
    vm_totals_fini(&totals);
}
END_TEST

START_TEST(sites_add_up_to_the_machines_counters)
{
    struct vm_totals totals = totals_of();
    struct vcpu_counters sum;
    GArray *sites;
    uint64_t by_flush[FLUSH_KINDS] = {0};
    yajl_val tree, list;
    long long flush_ish = 0;

    events_attribute(ev, symbols);
    for (unsigned i = 0; i < 1000; i++) {
        tlbi(i % 2, FLUSH_PC + i % 16 * 4);
        event_dsb(ev, i % 2, FLUSH_PC + 0x40, ISH, 0, 0);
        event_dsb(ev, i % 2, SWITCH_PC, ISH, 0, 0);
        event_dsb(ev, i % 2, GIC_PC + 4, 15, 0, 0);
        event_ipi_send(ev, i % 2, GIC_PC, 0, 0, 3);
    }
    events_sum(ev, &sum);
    sites = events_flush_sites(ev);
    for (guint i = 0; i < sites->len; i++) {
        const struct flush_site *s =
            &g_array_index(sites, struct flush_site, i);

        by_flush[s->flush] += s->count;
    }
    g_array_unref(sites);
    ck_assert_mem_eq(by_flush, sum.flush, sizeof(by_flush));

    tree = json_of(&totals);
    list = fixture_at(tree, "machine/flush_sites");
    ck_assert_uint_eq(YAJL_GET_ARRAY(list)->len, 16 + 4);
    for (size_t i = 0; i < YAJL_GET_ARRAY(list)->len; i++) {
        yajl_val site = YAJL_GET_ARRAY(list)->values[i];

        if (strcmp(fixture_text(site, "symbol"), "flush_tlb_page") == 0 &&
            strcmp(fixture_text(site, "kind"), "DSB ISH") == 0) {
            ck_assert_str_eq(fixture_text(site, "class"), "flush");
            flush_ish += fixture_number(site, "count");
        }
    }
    ck_assert_int_eq(flush_ish, 1000);
    yajl_tree_free(tree);
}
END_TEST

START_TEST(guest_with_endless_barrier_addresses_is_bounded_and_adds_up)
{
    GArray *sites;
    uint64_t n = 0;

    events_attribute(ev, symbols);
    for (uint64_t i = 0; i < 100000; i++) {
        event_dsb(ev, 0, i * 4096, ISH, 0, 0);
    }
    sites = events_flush_sites(ev);
    ck_assert_uint_lt(sites->len, 10000);
    for (guint i = 0; i < sites->len; i++) {
        n += g_array_index(sites, struct flush_site, i).count;
    }
    ck_assert_uint_eq(n, 100000);
    g_array_unref(sites);
}
END_TEST

/* One call of the kind that real kernels make: n pages, waits flushes. */
static void operation(unsigned vcpu, unsigned pages, unsigned waits)
{
    event_op_begin(ev, vcpu, FLUSH_PC, (struct event_op){.kind = OP});
    for (unsigned i = 0; i < pages; i++) {
        event_dsb(ev, vcpu, FLUSH_PC, ISHST, 0, 0);
        tlbi(vcpu, FLUSH_PC + 4);
    }
    for (unsigned i = 0; i < waits; i++) {
        event_dsb(ev, vcpu, FLUSH_PC + 8, ISH, 1, 1);
    }
    event_op_end(ev, vcpu, FLUSH_PC, (struct event_op){.kind = OP});
}

START_TEST(windows_keep_first_last_and_range_of_calls)
{
    struct op_summary *s;

    events_attribute(ev, symbols);
    tlbi(0, FLUSH_PC); /* outside of any window */
    operation(0, 256, 256);
    operation(0, 256, 10);
    operation(1, 255, 10);
    operation(0, 256, 11);
    tlbi(0, FLUSH_PC);
    s = events_op_summary(ev, OP);
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(s->calls, 4);
    ck_assert_uint_eq(s->broken, 0);
    ck_assert_uint_eq(s->first.n[SITE_FLUSH][FLUSH_DSB(ISH)], 256);
    ck_assert_uint_eq(s->last.n[SITE_FLUSH][FLUSH_DSB(ISH)], 11);
    ck_assert_uint_eq(s->min.n[SITE_FLUSH][FLUSH_DSB(ISH)], 10);
    ck_assert_uint_eq(s->max.n[SITE_FLUSH][FLUSH_DSB(ISH)], 11);
    ck_assert_uint_eq(s->min.n[SITE_FLUSH][FLUSH_TLBI(VALE1IS)], 255);
    ck_assert_uint_eq(s->max.n[SITE_FLUSH][FLUSH_TLBI(VALE1IS)], 256);
    ck_assert_uint_eq(s->total.n[SITE_FLUSH][FLUSH_TLBI(VALE1IS)], 1023);
    ck_assert_ptr_null(events_op_summary(ev, ANNOT_OP_MUNMAP));
    g_free(s);
}
END_TEST

START_TEST(switch_and_interrupt_barriers_in_a_window_count_apart)
{
    struct vm_totals totals = totals_of();
    struct op_summary *s;
    yajl_val tree;

    events_attribute(ev, symbols);
    event_op_begin(ev, 0, FLUSH_PC, (struct event_op){.kind = OP});
    event_dsb(ev, 0, FLUSH_PC, ISH, 0, 0);
    event_dsb(ev, 0, SWITCH_PC, ISH, 0, 0);
    event_dsb(ev, 0, SWITCH_PC, ISH, 0, 0);
    event_dsb(ev, 0, GIC_PC, ISHST, 0, 0);
    event_dsb(ev, 0, USER_PC, 15, 0, 0);
    event_ipi_send(ev, 0, GIC_PC + 8, 0, 1, 3);
    event_dsb(ev, 1, FLUSH_PC, ISH, 0, 0); /* another vCPU's business */
    event_op_end(ev, 0, FLUSH_PC, (struct event_op){.kind = OP});
    s = events_op_summary(ev, OP);
    ck_assert_uint_eq(s->first.n[SITE_FLUSH][FLUSH_DSB(ISH)], 1);
    ck_assert_uint_eq(s->first.n[SITE_SWITCH][FLUSH_DSB(ISH)], 2);
    ck_assert_uint_eq(s->first.n[SITE_IRQ][FLUSH_DSB(ISHST)], 1);
    ck_assert_uint_eq(s->first.n[SITE_OTHER][FLUSH_DSB(15)], 1);
    ck_assert_uint_eq(s->first.n[SITE_FLUSH][FLUSH_IPI], 3);
    g_free(s);
    tree = json_of(&totals);
    ck_assert_int_eq(
        fixture_number(tree, "operations/madvise_pageout/first/flush/DSB ISH"),
        1);
    ck_assert_int_eq(
        fixture_number(tree, "operations/madvise_pageout/first/switch/DSB ISH"),
        2);
    yajl_tree_free(tree);
}
END_TEST

START_TEST(window_that_ends_on_another_vcpu_is_broken_not_counted)
{
    struct op_summary *s;

    events_attribute(ev, symbols);
    event_op_begin(ev, 0, FLUSH_PC, (struct event_op){.kind = OP});
    tlbi(0, FLUSH_PC);
    event_op_end(ev, 1, FLUSH_PC, (struct event_op){.kind = OP});
    operation(0, 2, 1);
    s = events_op_summary(ev, OP);
    ck_assert_uint_eq(s->calls, 1);
    ck_assert_uint_eq(s->broken, 1);
    ck_assert_uint_eq(s->first.n[SITE_FLUSH][FLUSH_TLBI(VALE1IS)], 2);
    g_free(s);
}
END_TEST

START_TEST(operation_kinds_out_of_range_are_survived)
{
    struct vm_totals totals = totals_of();
    static const uint64_t kinds[] = {0, 8, 63, 64, UINT64_MAX};
    yajl_val tree;

    events_attribute(ev, symbols);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const struct event_op op = {.kind = kinds[i]};

        event_op_end(ev, 0, 0, op);
        event_op_begin(ev, 0, 0, op);
        event_op_end(ev, 0, 0, op);
    }
    tree = json_of(&totals);
    ck_assert_ptr_nonnull(fixture_at(tree, "operations/unknown"));
    yajl_tree_free(tree);
}
END_TEST

static const struct {
    const char *function;
    enum site_class site_class;
} classes[] = {
    {"flush_tlb_range", SITE_FLUSH},
    {"__switch_to", SITE_SWITCH},
    {"switch_mm", SITE_SWITCH},
    {"gic_eoi", SITE_IRQ},
    {"irq_enter", SITE_IRQ},
    {"magic_gic_", SITE_FLUSH},
    {NULL, SITE_OTHER},
};

START_TEST(function_names_give_the_class)
{
    ck_assert_int_eq(site_class_of(classes[_i].function),
                     classes[_i].site_class);
}
END_TEST

START_TEST(statistics_go_to_a_file_as_one_line)
{
    struct vm_totals totals = totals_of();
    char *path = fixture_file("old text", 8);
    char *text = NULL;
    GError *error = NULL;
    yajl_val tree;

    ck_assert(stats_write(&totals, symbols, path, &error));
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    tree = fixture_json(text);
    yajl_tree_free(tree);
    g_free(text);
    fixture_unlink(path);

    ck_assert(!stats_write(&totals, symbols, "/nonexistent/s.json", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "/nonexistent/s.json"));
    g_clear_error(&error);
    ck_assert(!stats_write(&totals, symbols, "/dev/full", &error));
    g_clear_error(&error);
}
END_TEST

START_TEST(summary_fits_eighty_columns)
{
    struct vm_totals totals = totals_of();
    char *text;
    char **lines;

    for (unsigned crm = 0; crm < 16; crm++) {
        event_dsb(ev, 0, 0, crm, 0, 0);
    }
    events_counters(ev, 0)->instructions = UINT64_MAX / 4;
    config.engine = VM_ENGINE_SEEDED;
    config.seed = UINT64_MAX;
    config.strategy = (char *)"a-name-that-is-longer-than-every-strategy";
    config.bug = (char *)"a-name-that-is-longer-than-that-of-every-bug-so-far";
    text = stats_summary(&totals);
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        ck_assert_msg(strlen(*line) <= 80, "too long: %s", *line);
    }
    ck_assert_ptr_nonnull(strstr(text, "4,611,686,018,427,387,903"));
    g_strfreev(lines);
    g_free(text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("stats");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, totals_are_the_sums_of_the_vcpus);
    tcase_add_test(tc, configuration_outcome_and_time_are_in_the_object);
    tcase_add_test(tc, deterministic_runs_say_how_they_can_be_had_again);
    tcase_add_test(tc, guest_counters_are_copied_by_name_and_cpu);
    tcase_add_test(tc, sites_add_up_to_the_machines_counters);
    tcase_add_test(tc,
                   guest_with_endless_barrier_addresses_is_bounded_and_adds_up);
    tcase_add_test(tc, windows_keep_first_last_and_range_of_calls);
    tcase_add_test(tc, switch_and_interrupt_barriers_in_a_window_count_apart);
    tcase_add_test(tc, window_that_ends_on_another_vcpu_is_broken_not_counted);
    tcase_add_test(tc, operation_kinds_out_of_range_are_survived);
    tcase_add_loop_test(tc, function_names_give_the_class, 0,
                        G_N_ELEMENTS(classes));
    tcase_add_test(tc, statistics_go_to_a_file_as_one_line);
    tcase_add_test(tc, summary_fits_eighty_columns);
    return fixture_main("stats", tc);
}
