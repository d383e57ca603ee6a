/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device tree, read back with libfdt. */
#include <check.h>
#include <libfdt.h>
#include <stdlib.h>
#include <string.h>

#include "abi/annot.h"
#include "abi/board.h"
#include "dev/board_fdt.h"
#include "dev/dev_error.h"

static GBytes *tree;
static const void *fdt;

static void make(const struct board_fdt_config *config)
{
    GError *error = NULL;
    size_t size;

    tree = board_fdt_new(config, &error);
    ck_assert_msg(tree != NULL, "%s", error != NULL ? error->message : "");
    fdt = g_bytes_get_data(tree, &size);
    ck_assert_int_eq(fdt_check_full(fdt, size), 0);
    ck_assert_uint_eq(fdt_totalsize(fdt), size);
}

static int node(const char *path)
{
    int offset = fdt_path_offset(fdt, path);

    ck_assert_msg(offset >= 0, "no node %s", path);
    return offset;
}

static const void *prop(const char *path, const char *name, int *out_length)
{
    const void *value = fdt_getprop(fdt, node(path), name, out_length);

    ck_assert_msg(value != NULL, "no property %s in %s", name, path);
    return value;
}

static uint32_t cell(const char *path, const char *name, unsigned index)
{
    int length;
    const fdt32_t *cells = prop(path, name, &length);

    ck_assert_int_gt(length, (int)(index * 4));
    return fdt32_to_cpu(cells[index]);
}

static uint64_t cells2(const char *path, const char *name, unsigned index)
{
    return (uint64_t)cell(path, name, index) << 32 |
           cell(path, name, index + 1);
}

static int prop_length(const char *path, const char *name)
{
    int length;

    (void)prop(path, name, &length);
    return length;
}

static void compatible(const char *path, const char *what)
{
    ck_assert_msg(fdt_node_check_compatible(fdt, node(path), what) == 0,
                  "%s is not compatible with %s", path, what);
}

START_TEST(memory_and_chosen_say_what_was_asked_for)
{
    make(&(struct board_fdt_config){
        .cpus = 1,
        .mem_size = 5ull << 30,
        .cmdline = "tlb=ipi init=/bin/hello -- a b",
        .initrd_start = 0x148000000ull,
        .initrd_end = 0x148012345ull,
    });
    ck_assert_str_eq(prop("/memory@40000000", "device_type", NULL), "memory");
    ck_assert_uint_eq(cells2("/memory@40000000", "reg", 0), 0x40000000);
    ck_assert_uint_eq(cells2("/memory@40000000", "reg", 2), 5ull << 30);
    ck_assert_str_eq(prop("/chosen", "bootargs", NULL),
                     "tlb=ipi init=/bin/hello -- a b");
    ck_assert_str_eq(prop("/chosen", "stdout-path", NULL), "/pl011@9000000");
    ck_assert_uint_eq(cells2("/chosen", "linux,initrd-start", 0),
                      0x148000000ull);
    ck_assert_uint_eq(cells2("/chosen", "linux,initrd-end", 0), 0x148012345ull);
    ck_assert_uint_eq(cell("/", "#address-cells", 0), 2);
    ck_assert_uint_eq(cell("/", "#size-cells", 0), 2);
}
END_TEST

START_TEST(absent_things_leave_no_trace)
{
    make(&(struct board_fdt_config){.cpus = 1, .mem_size = 1 << 20});
    ck_assert_ptr_null(
        fdt_getprop(fdt, node("/chosen"), "linux,initrd-start", NULL));
    ck_assert_ptr_null(fdt_getprop(fdt, node("/chosen"), "bootargs", NULL));
    ck_assert_int_lt(fdt_path_offset(fdt, "/annot@b000000"), 0);
}
END_TEST

START_TEST(annotation_device_is_there_when_asked_for)
{
    make(&(struct board_fdt_config){
        .cpus = 1, .mem_size = 1 << 20, .annot = true});
    compatible("/annot@b000000", ANNOT_COMPATIBLE);
    ck_assert_uint_eq(cells2("/annot@b000000", "reg", 0), 0x0b000000);
    ck_assert_uint_eq(cells2("/annot@b000000", "reg", 2), 0x1000);
}
END_TEST

static const unsigned cpu_counts[] = {1, 2, 16, 17, 123, 124, 512};

START_TEST(every_cpu_has_a_node_with_its_affinity)
{
    unsigned count = 0;
    int child;

    make(&(struct board_fdt_config){.cpus = cpu_counts[_i],
                                    .mem_size = 1 << 30});
    fdt_for_each_subnode(child, fdt, node("/cpus"))
    {
        const fdt32_t *reg = fdt_getprop(fdt, child, "reg", NULL);
        uint32_t affinity = fdt32_to_cpu(*reg);
        g_autofree char *name = g_strdup_printf("cpu@%x", affinity);

        ck_assert_uint_eq(affinity, (count % 16) | (count / 16) << 8);
        ck_assert_str_eq(fdt_get_name(fdt, child, NULL), name);
        ck_assert_str_eq(fdt_getprop(fdt, child, "device_type", NULL), "cpu");
        ck_assert_str_eq(fdt_getprop(fdt, child, "enable-method", NULL),
                         "psci");
        count++;
    }
    ck_assert_uint_eq(count, cpu_counts[_i]);
    ck_assert_uint_eq(cell("/cpus", "#address-cells", 0), 1);
    ck_assert_uint_eq(cell("/cpus", "#size-cells", 0), 0);
}
END_TEST

START_TEST(gic_has_a_second_redistributor_region_past_123_cpus)
{
    const char *gic = "/intc@8000000";
    bool two = cpu_counts[_i] > 123;

    make(&(struct board_fdt_config){.cpus = cpu_counts[_i],
                                    .mem_size = 1 << 30});
    compatible(gic, "arm,gic-v3");
    ck_assert_int_eq(prop_length(gic, "interrupt-controller"), 0);
    ck_assert_uint_eq(cell(gic, "#interrupt-cells", 0), 3);
    ck_assert_uint_eq(cell(gic, "#redistributor-regions", 0), two ? 2 : 1);
    ck_assert_int_eq(prop_length(gic, "reg"), two ? 48 : 32);
    ck_assert_uint_eq(cells2(gic, "reg", 0), 0x08000000);
    ck_assert_uint_eq(cells2(gic, "reg", 2), 0x10000);
    ck_assert_uint_eq(cells2(gic, "reg", 4), 0x080a0000);
    ck_assert_uint_eq(cells2(gic, "reg", 6), 123 * 0x20000);
    if (two) {
        ck_assert_uint_eq(cells2(gic, "reg", 8), 0x4000000000ull);
        ck_assert_uint_ge(cells2(gic, "reg", 10),
                          (cpu_counts[_i] - 123) * 0x20000ull);
    }
    ck_assert_int_eq(
        fdt_node_offset_by_phandle(fdt, cell("/", "interrupt-parent", 0)),
        node(gic));
}
END_TEST

START_TEST(timer_uart_and_psci_are_described)
{
    static const uint32_t ppis[] = {13, 14, 11, 10};

    make(&(struct board_fdt_config){.cpus = 2, .mem_size = 1 << 30});
    compatible("/timer", "arm,armv8-timer");
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(cell("/timer", "interrupts", 3 * i), 1);
        ck_assert_uint_eq(cell("/timer", "interrupts", 3 * i + 1), ppis[i]);
        ck_assert_uint_eq(cell("/timer", "interrupts", 3 * i + 2) & 0xf, 4);
    }
    compatible("/pl011@9000000", "arm,pl011");
    compatible("/pl011@9000000", "arm,primecell");
    ck_assert_uint_eq(cells2("/pl011@9000000", "reg", 0), 0x09000000);
    ck_assert_uint_eq(cell("/pl011@9000000", "interrupts", 0), 0);
    ck_assert_uint_eq(cell("/pl011@9000000", "interrupts", 1), 1);
    ck_assert_int_eq(
        fdt_node_offset_by_phandle(fdt, cell("/pl011@9000000", "clocks", 1)),
        node("/apb-pclk"));
    ck_assert_int_eq(fdt_stringlist_search(fdt, node("/pl011@9000000"),
                                           "clock-names", "apb_pclk"),
                     1);
    compatible("/psci", "arm,psci-1.0");
    compatible("/psci", "arm,psci-0.2");
    ck_assert_str_eq(prop("/psci", "method", NULL), "hvc");
    ck_assert_uint_eq(cell("/psci", "cpu_on", 0), 0xc4000003);
}
END_TEST

START_TEST(impossible_boards_are_refused_with_the_value)
{
    g_autofree char *long_line = g_strnfill(BOARD_FDT_CMDLINE_MAX, 'x');
    const struct {
        struct board_fdt_config config;
        const char *says;
    } bad[] = {
        {{.cpus = 0, .mem_size = 1}, "0 CPUs"},
        {{.cpus = 513, .mem_size = 1}, "513 CPUs"},
        {{.cpus = 1}, "0 bytes of memory"},
        {{.cpus = 1, .mem_size = UINT64_MAX}, "18446744073709551615 bytes"},
        {{.cpus = 1, .mem_size = 1, .cmdline = long_line}, "2048 characters"},
        {{.cpus = 1, .mem_size = 1, .initrd_start = 8, .initrd_end = 8}, "0x8"},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *error = NULL;

        ck_assert_ptr_null(board_fdt_new(&bad[i].config, &error));
        ck_assert(g_error_matches(error, DEV_ERROR, DEV_ERROR_CONFIG));
        ck_assert_msg(strstr(error->message, bad[i].says) != NULL, "%s",
                      error->message);
        g_error_free(error);
    }
}
END_TEST

START_TEST(longest_command_line_fits_beside_512_cpus)
{
    g_autofree char *line = g_strnfill(BOARD_FDT_CMDLINE_MAX - 1, 'x');

    make(&(struct board_fdt_config){.cpus = 512,
                                    .mem_size = 1 << 30,
                                    .cmdline = line,
                                    .annot = true,
                                    .initrd_start = 1,
                                    .initrd_end = 2});
    ck_assert_str_eq(prop("/chosen", "bootargs", NULL), line);
}
END_TEST

static void teardown(void)
{
    if (tree != NULL) {
        g_bytes_unref(tree);
    }
}

int main(void)
{
    Suite *suite = suite_create("board_fdt");
    TCase *tc = tcase_create("board_fdt");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, memory_and_chosen_say_what_was_asked_for);
    tcase_add_test(tc, absent_things_leave_no_trace);
    tcase_add_test(tc, annotation_device_is_there_when_asked_for);
    tcase_add_loop_test(tc, every_cpu_has_a_node_with_its_affinity, 0,
                        G_N_ELEMENTS(cpu_counts));
    tcase_add_loop_test(tc, gic_has_a_second_redistributor_region_past_123_cpus,
                        0, G_N_ELEMENTS(cpu_counts));
    tcase_add_test(tc, timer_uart_and_psci_are_described);
    tcase_add_test(tc, impossible_boards_are_refused_with_the_value);
    tcase_add_test(tc, longest_command_line_fits_beside_512_cpus);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
