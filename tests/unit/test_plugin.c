/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plugins as they are built and loaded: versions, options, callbacks, and the
 * shipped ones. TEST_PLUGIN_DIR and SHIPPED_PLUGIN_DIR come from meson.
 */
#include "obs_fixture.h"

#include <stdio.h>

#include "error.h"
#include "obs/events.h"
#include "obs/plugin.h"
#include "obs/symbols.h"
#include "shootdown/plugin.h"

#define FLUSH_PC UINT64_C(0xffff000000001000)

static const struct fixture_symbol kernel[] = {
    {"flush_tlb_page", FLUSH_PC, 0x100, STT_FUNC},
    {"cpu_idle", FLUSH_PC + 0x100, 0x100, STT_FUNC},
};

static struct events *ev;
static struct symbols *symbols;
static struct plugins *plugins;

/* Guest memory: every word is a NOP. */
static bool read_memory(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                        size_t len)
{
    (void)opaque;
    (void)vcpu;
    if (va < FLUSH_PC) {
        return false;
    }
    for (size_t i = 0; i + 4 <= len; i += 4) {
        const uint32_t nop = 0xd503201f;

        memcpy((char *)buf + i, &nop, sizeof(nop));
    }
    return true;
}

static bool disassemble(void *opaque, uint64_t pc, uint32_t word, char *buf,
                        size_t size)
{
    (void)opaque;
    (void)pc;
    g_strlcpy(buf, word == 0xd503201f ? "nop" : "?", size);
    return true;
}

static void setup(void)
{
    char *path = fixture_symbols_file(kernel, G_N_ELEMENTS(kernel));
    struct plugin_services services = {NULL, read_memory, disassemble};

    symbols = symbols_load(path, NULL);
    ck_assert_ptr_nonnull(symbols);
    fixture_unlink(path);
    ev = events_new(2);
    plugins = plugins_new(ev, symbols);
    plugins_set_services(plugins, &services);
}

static void teardown(void)
{
    plugins_free(plugins);
    events_free(ev);
    symbols_free(symbols);
}

static bool load(const char *spec, GError **error)
{
    return plugins_load(plugins, spec, g_getenv("TEST_PLUGIN_DIR"), error);
}

static bool load_shipped(const char *spec, GError **error)
{
    return plugins_load(plugins, spec, g_getenv("SHIPPED_PLUGIN_DIR"), error);
}

static const struct {
    const char *file;
    int built_for;
} versions[] = {
    {"older", SHOOTDOWN_PLUGIN_API_VERSION - 1},
    {"newer", SHOOTDOWN_PLUGIN_API_VERSION + 1},
};

START_TEST(plugin_of_another_version_is_refused_with_both_numbers)
{
    GError *error = NULL;
    char *numbers =
        g_strdup_printf("version %d, this shootdown has version %d",
                        versions[_i].built_for, SHOOTDOWN_PLUGIN_API_VERSION);

    ck_assert(!load(versions[_i].file, &error));
    ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_PLUGIN));
    ck_assert_ptr_nonnull(strstr(error->message, versions[_i].file));
    ck_assert_msg(strstr(error->message, numbers) != NULL, "%s",
                  error->message);
    g_free(numbers);
    g_clear_error(&error);
}
END_TEST

static const struct {
    const char *spec, *says;
} bad_specs[] = {
    {"unversioned", "shootdown_plugin_version"},
    {"", "names no file"},
    {",top=3", "names no file"},
    {"no_such_plugin", "'no_such_plugin'"},
    {"/dev/null", "/dev/null"},
    {"./", "'./'"},
    {"listener,refuse=the moon", "because of the moon"},
    {"listener", "gave no reason"},
};

START_TEST(plugin_that_cannot_run_is_a_sentence)
{
    GError *error = NULL;

    ck_assert(!load(bad_specs[_i].spec, &error));
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strstr(error->message, bad_specs[_i].says) != NULL, "%s",
                  error->message);
    ck_assert_uint_eq(ev->wanted, 0);
    g_clear_error(&error);
}
END_TEST

START_TEST(file_that_is_no_shared_object_is_a_sentence)
{
    char *path = fixture_file("\177ELF, or so it says", 19);
    GError *error = NULL;

    ck_assert(!load(path, &error));
    ck_assert_ptr_nonnull(strstr(error->message, path));
    g_clear_error(&error);
    fixture_unlink(path);
}
END_TEST

static void emit_one_of_each(void)
{
    event_emit(ev, 0, EVENT_vcpu_start, 0, 0x40080000);
    event_emit(ev, 1, EVENT_fill, 0x10, 0x1000, 5, 0x42000, 12, 0x0b, 3);
    event_emit(ev, 1, EVENT_hit, 0x10, 0x1000, 5, 0x42000, 12, 0x0b, 1);
    event_emit(ev, 1, EVENT_evict, 0x10, 0x1000, 5, 0x42000, 12);
    event_emit(ev, 1, EVENT_invalidate, 0x10, 0x1000, 5, 0x42000, 12, 0, 9);
    event_tlbi(ev, 0, FLUSH_PC + 8, 3, 5, 0, 0x1000, 5, 4096, 9);
    event_dsb(ev, 0, FLUSH_PC + 12, 11, 1, 9);
    event_dsb_done(ev, 0, FLUSH_PC + 12, 11, 250, 9);
    event_fault(ev, 0, 0x20, 0x92000007, 0x2000, 0);
    event_ipi_send(ev, 0, 0x30, 0, 2, 1);
    event_emit(ev, 1, EVENT_ipi_take, 0x34, 2);
    event_emit(ev, 1, EVENT_ipi_ack, 0x38, 2);
    event_emit(ev, 1, EVENT_block, FLUSH_PC, FLUSH_PC, 8, 2);
    event_emit(ev, 1, EVENT_vcpu_stop, 0, 1);
    event_emit(ev, 1, EVENT_walk, 0, 1); /* nobody can listen to this */
}

START_TEST(every_callback_gets_its_values)
{
    static const char expected[] =
        "0/0 start 40080000\n"
        "1/10 fill 1000 42000 5 12 11 1\n"
        "1/10 hit 1000 42000 5 12 11 1\n"
        "1/10 evict 1000 42000 5 12 0 1\n"
        "1/10 invalidate 1000 42000 5 12 0 0\n"
        "0/ffff000000001008 tlbi VALE1IS 1000 1000 5 in flush_tlb_page\n"
        "0/ffff00000000100c dsb ISH 250\n"
        "0/20 fault translation 2000 0\n"
        "0/30 ipi 0 2 1\n"
        "1/34 ipi 1 2 0\n"
        "1/38 ipi 2 2 0\n"
        "1/ffff000000001000 block ffff000000001000 8 2 nop\n"
        "1/0 stop\n"
        "exit\n";
    char *path = fixture_file("", 0);
    char *spec = g_strconcat("listener,out=", path, NULL);
    char *text = NULL;
    GError *error = NULL;

    ck_assert_msg(load(spec, &error), "%s", error ? error->message : "");
    emit_one_of_each();
    plugins_at_exit(plugins);
    plugins_at_exit(plugins); /* only once */
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_str_eq(text, expected);
    g_free(text);
    g_free(spec);
    fixture_unlink(path);
}
END_TEST

START_TEST(registration_outside_of_install_is_ignored)
{
    char *path = fixture_file("", 0);
    char *spec = g_strconcat("listener,late=1,out=", path, NULL);
    char *text = NULL;

    ck_assert(load(spec, NULL));
    event_emit(ev, 0, EVENT_fill, 0, 0x1000);
    event_emit(ev, 0, EVENT_fill, 0, 0x2000);
    plugins_at_exit(plugins);
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_str_eq(text, "0/0 fill 1000 0 0 0 0 0\n"
                           "0/0 fill 2000 0 0 0 0 0\n"
                           "exit\n");
    g_free(text);
    g_free(spec);
    fixture_unlink(path);
}
END_TEST

START_TEST(without_plugins_nothing_is_wanted)
{
    emit_one_of_each();
    plugins_at_exit(plugins);
    ck_assert_uint_eq(ev->wanted, 0);
}
END_TEST

/* Runs fn with standard error in a file and returns what it wrote. */
static char *stderr_of(void (*fn)(void))
{
    char *path = fixture_file("", 0);
    char *text = NULL;
    int saved = dup(STDERR_FILENO);

    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    fn();
    (void)fflush(stderr);
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    (void)close(saved);
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    fixture_unlink(path);
    return text;
}

static void count_run(void)
{
    for (unsigned i = 0; i < 5000; i++) {
        event_emit(ev, i % 2, EVENT_block, FLUSH_PC, FLUSH_PC + i % 8 * 4, 12,
                   3);
        event_tlbi(ev, i % 2, FLUSH_PC + i % 60 * 4, 3, 5, 0, 0, 0, 0, 0);
        event_dsb(ev, 0, FLUSH_PC + 0x104, 11, 0, 0);
        event_dsb_done(ev, 0, FLUSH_PC + 0x104, 11, 0, 0);
    }
    /* User code: many addresses, no symbol. */
    for (unsigned i = 0; i < 5000; i++) {
        event_emit(ev, 1, EVENT_block, i * 4, i * 4, 4, 1);
    }
    plugins_at_exit(plugins);
}

START_TEST(count_adds_up_by_symbol)
{
    static const char expected[] =
        "count: symbol                          instructions         TLBI"
        "          DSB\n"
        "flush_tlb_page                                15000         5000"
        "            0\n"
        "cpu_idle                                          0            0"
        "         5000\n"
        "(no symbol)                                    5000            0"
        "            0\n"
        "total                                         20000         5000"
        "         5000\n";
    GError *error = NULL;
    char *text;

    ck_assert_msg(load_shipped("count", &error), "%s",
                  error ? error->message : "");
    text = stderr_of(count_run);
    ck_assert_str_eq(text, expected);
    g_free(text);
}
END_TEST

static void tlbstat_run(void)
{
    for (unsigned i = 0; i < 3; i++) {
        event_emit(ev, 0, EVENT_fill, 0, 0x1000, 5, 0x42000, 12);
        event_emit(ev, 0, EVENT_hit, 0, 0x1000, 5, 0x42000, 12);
        if (i == 0) {
            event_emit(ev, 0, EVENT_evict, 0, 0x1000, 5, 0x42000, 12);
        } else {
            event_emit(ev, 0, EVENT_invalidate, 0, 0x1000, 5, 0x42000, 12);
        }
    }
    /* Another vCPU's first fill of the page is no refill. */
    event_emit(ev, 1, EVENT_fill, 0, 0x1000, 5, 0x42000, 12);
    for (uint64_t i = 0; i < 3000; i++) {
        event_emit(ev, 1, EVENT_fill, 0, i << 12, 6, 0x42000, 12);
    }
    plugins_at_exit(plugins);
}

START_TEST(tlbstat_tells_refills_after_eviction_and_flush_apart)
{
    char *text;

    ck_assert(load_shipped("tlbstat,top=1", NULL));
    text = stderr_of(tlbstat_run);
    ck_assert_msg(strstr(text,
                         "0x0000000000001000     5         4         3        1"
                         "        2       1       1\n") != NULL,
                  "%s", text);
    ck_assert_msg(strstr(text, "(3000 more; top=0 shows all)") != NULL, "%s",
                  text);
    ck_assert_msg(strstr(text, "total                         3004") != NULL,
                  "%s", text);
    g_free(text);
}
END_TEST

static void execlog_run(void)
{
    event_emit(ev, 0, EVENT_block, 0, FLUSH_PC + 0xf8, 16, 4);
    event_emit(ev, 1, EVENT_block, 0, 0x1000, 16, 4); /* cannot be read */
    event_emit(ev, 1, EVENT_block, 0, FLUSH_PC, UINT32_MAX, 4);
    plugins_at_exit(plugins);
}

START_TEST(execlog_shows_the_chosen_function_only)
{
    char *text;

    ck_assert(load_shipped("execlog,symbol=cpu_idle,limit=2", NULL));
    text = stderr_of(execlog_run);
    ck_assert_str_eq(text, "  0 ffff000000001100 cpu_idle+0x0: nop\n"
                           "  0 ffff000000001104 cpu_idle+0x4: nop\n"
                           "  1 ffff000000001100 cpu_idle+0x0: nop\n"
                           "  1 ffff000000001104 cpu_idle+0x4: nop\n");
    g_free(text);
}
END_TEST

static const struct {
    const char *spec, *says;
} bad_options[] = {
    {"count,top=many", "'top=many'"},
    {"count,bottom=3", "'bottom=3'"},
    {"count,top=-1", "'top=-1'"},
    {"count,top=99999999999999999999", "top=9"},
    {"tlbstat,top=", "'top='"},
    {"execlog,symbol=no_such", "'no_such'"},
    {"execlog,range=12", "range=12"},
    {"execlog,range=20-10", "range=20-10"},
    {"execlog,limit=x", "limit=x"},
    {"execlog,loud", "'loud'"},
};

START_TEST(shipped_plugins_name_an_option_that_is_wrong)
{
    GError *error = NULL;

    ck_assert(!load_shipped(bad_options[_i].spec, &error));
    ck_assert_msg(strstr(error->message, bad_options[_i].says) != NULL, "%s",
                  error->message);
    g_clear_error(&error);
}
END_TEST

START_TEST(list_describes_plugins_and_says_why_not)
{
    char *dir =
        g_build_filename(g_getenv("SHIPPED_PLUGIN_DIR"), "count.so", NULL);
    bool is_plugin = false;
    char *text = plugin_describe(dir, &is_plugin);

    ck_assert(is_plugin);
    ck_assert_ptr_nonnull(strstr(text, "by guest symbol"));
    g_free(text);
    g_free(dir);
    dir = g_build_filename(g_getenv("TEST_PLUGIN_DIR"), "newer.so", NULL);
    text = plugin_describe(dir, &is_plugin);
    ck_assert(!is_plugin);
    ck_assert_ptr_nonnull(strstr(text, "plugin API version"));
    g_free(text);
    g_free(dir);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("plugin");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc,
                        plugin_of_another_version_is_refused_with_both_numbers,
                        0, G_N_ELEMENTS(versions));
    tcase_add_loop_test(tc, plugin_that_cannot_run_is_a_sentence, 0,
                        G_N_ELEMENTS(bad_specs));
    tcase_add_test(tc, file_that_is_no_shared_object_is_a_sentence);
    tcase_add_test(tc, every_callback_gets_its_values);
    tcase_add_test(tc, registration_outside_of_install_is_ignored);
    tcase_add_test(tc, without_plugins_nothing_is_wanted);
    tcase_add_test(tc, count_adds_up_by_symbol);
    tcase_add_test(tc, tlbstat_tells_refills_after_eviction_and_flush_apart);
    tcase_add_test(tc, execlog_shows_the_chosen_function_only);
    tcase_add_loop_test(tc, shipped_plugins_name_an_option_that_is_wrong, 0,
                        G_N_ELEMENTS(bad_options));
    tcase_add_test(tc, list_describes_plugins_and_says_why_not);
    return fixture_main("plugin", tc);
}
