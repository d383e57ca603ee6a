/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The I/O bus: lookup, access checks, refusal of impossible devices. */
#include <check.h>
#include <stdlib.h>

#include "dev/bus.h"
#include "dev/dev_error.h"

/* Remembers the last access; reads give back ~offset. */
struct probe {
    unsigned cpu, size, reads, writes;
    uint64_t offset, value;
};

static uint64_t probe_read(void *opaque, unsigned cpu, uint64_t offset,
                           unsigned size)
{
    struct probe *probe = opaque;

    probe->cpu = cpu;
    probe->offset = offset;
    probe->size = size;
    probe->reads++;
    return ~offset;
}

static void probe_write(void *opaque, unsigned cpu, uint64_t offset,
                        uint64_t value, unsigned size)
{
    struct probe *probe = opaque;

    probe->cpu = cpu;
    probe->offset = offset;
    probe->value = value;
    probe->size = size;
    probe->writes++;
}

static const struct device_ops probe_ops = {probe_read, probe_write};

static struct device_desc desc_of(struct probe *probe, const char *name,
                                  uint64_t base, uint64_t size)
{
    return (struct device_desc){
        .name = name,
        .base = base,
        .size = size,
        .min_access = 2,
        .max_access = 4,
        .ops = &probe_ops,
        .opaque = probe,
    };
}

static struct bus *bus;
static struct probe probe_a, probe_b, probe_c;

static void setup(void)
{
    struct device_desc desc;

    probe_a = probe_b = probe_c = (struct probe){0};
    bus = bus_new();
    desc = desc_of(&probe_b, "b", 0x2000, 0x1000);
    ck_assert(bus_attach(bus, &desc, NULL));
    desc = desc_of(&probe_a, "a", 0x1000, 0x100);
    ck_assert(bus_attach(bus, &desc, NULL));
    desc = desc_of(&probe_c, "c", 0xfffffffffffff000ull, 0x1000);
    ck_assert(bus_attach(bus, &desc, NULL));
}

static void teardown(void)
{
    bus_free(bus);
}

START_TEST(access_reaches_the_device_with_offset_cpu_and_size)
{
    uint64_t value = 0;

    ck_assert_int_eq(bus_read(bus, 7, 0x2ffc, 4, &value), BUS_OK);
    ck_assert_uint_eq(probe_b.cpu, 7);
    ck_assert_uint_eq(probe_b.offset, 0xffc);
    ck_assert_uint_eq(probe_b.size, 4);
    ck_assert_uint_eq(value, 0xfffff003);
    ck_assert_int_eq(bus_write(bus, 3, 0x10fe, 0x12345, 2), BUS_OK);
    ck_assert_uint_eq(probe_a.value, 0x2345);
    ck_assert_uint_eq(probe_a.cpu, 3);
}
END_TEST

START_TEST(last_bytes_of_the_address_space_can_be_a_device)
{
    uint64_t value;

    ck_assert_int_eq(bus_read(bus, 0, 0xfffffffffffffffcull, 4, &value),
                     BUS_OK);
    ck_assert_uint_eq(probe_c.offset, 0xffc);
}
END_TEST

START_TEST(address_without_device_is_no_device)
{
    static const uint64_t addrs[] = {0,      0xffc,  0x1100,
                                     0x1ffc, 0x3000, 0xffffffffffffeffcull};
    uint64_t value = 42;

    for (unsigned i = 0; i < G_N_ELEMENTS(addrs); i++) {
        ck_assert_int_eq(bus_read(bus, 0, addrs[i], 4, &value), BUS_NO_DEVICE);
        ck_assert_int_eq(bus_write(bus, 0, addrs[i], 0, 4), BUS_NO_DEVICE);
    }
    ck_assert_uint_eq(value, 42);
    ck_assert_ptr_null(bus_device_name(bus, 0x3000));
    ck_assert_str_eq(bus_device_name(bus, 0x10ff), "a");
}
END_TEST

static const struct {
    const char *name;
    uint64_t addr;
    unsigned size;
} bad_accesses[] = {
    {"too small", 0x2000, 1},      {"too large", 0x2000, 8},
    {"misaligned", 0x2002, 4},     {"odd", 0x2001, 2},
    {"three bytes", 0x2000, 3},    {"zero bytes", 0x2000, 0},
    {"huge", 0x2000, 0x80000000u},
};

START_TEST(wrong_size_or_alignment_is_a_bad_access)
{
    uint64_t value;

    ck_assert_msg(bus_read(bus, 0, bad_accesses[_i].addr, bad_accesses[_i].size,
                           &value) == BUS_BAD_ACCESS,
                  "%s", bad_accesses[_i].name);
    ck_assert_msg(bus_write(bus, 0, bad_accesses[_i].addr, 0,
                            bad_accesses[_i].size) == BUS_BAD_ACCESS,
                  "%s", bad_accesses[_i].name);
    ck_assert_uint_eq(probe_b.reads + probe_b.writes, 0);
}
END_TEST

START_TEST(access_that_leaves_a_short_device_is_a_bad_access)
{
    struct probe probe = {0};
    struct device_desc desc = desc_of(&probe, "short", 0x4000, 6);
    uint64_t value;

    ck_assert(bus_attach(bus, &desc, NULL));
    ck_assert_int_eq(bus_read(bus, 0, 0x4004, 2, &value), BUS_OK);
    ck_assert_int_eq(bus_read(bus, 0, 0x4004, 4, &value), BUS_BAD_ACCESS);
}
END_TEST

START_TEST(overlapping_device_is_refused_and_named)
{
    static const struct {
        uint64_t base, size;
    } ranges[] = {
        {0x2000, 0x1000}, {0x1ffc, 8}, {0x2ffc, 4}, {0x0, 0x10000}, {0x2100, 4},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(ranges); i++) {
        struct device_desc desc =
            desc_of(&probe_a, "new", ranges[i].base, ranges[i].size);
        GError *error = NULL;

        ck_assert(!bus_attach(bus, &desc, &error));
        ck_assert(g_error_matches(error, DEV_ERROR, DEV_ERROR_OVERLAP));
        ck_assert_ptr_nonnull(strstr(error->message, "'new'"));
        g_error_free(error);
    }
}
END_TEST

START_TEST(impossible_device_is_refused)
{
    struct device_desc bad[6];

    for (unsigned i = 0; i < 6; i++) {
        bad[i] = desc_of(&probe_a, "x", 0x8000, 0x1000);
    }
    bad[0].size = 0;
    bad[1].base = 0xfffffffffffff000ull;
    bad[1].size = 0x1001;
    bad[2].min_access = 3;
    bad[3].min_access = 8; /* more than max */
    bad[4].ops = NULL;
    bad[5].base = 0x8002; /* not aligned to max_access */
    for (unsigned i = 0; i < 6; i++) {
        GError *error = NULL;

        ck_assert_msg(!bus_attach(bus, &bad[i], &error), "%u", i);
        ck_assert(g_error_matches(error, DEV_ERROR, DEV_ERROR_CONFIG));
        g_error_free(error);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bus");
    TCase *tc = tcase_create("bus");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, access_reaches_the_device_with_offset_cpu_and_size);
    tcase_add_test(tc, last_bytes_of_the_address_space_can_be_a_device);
    tcase_add_test(tc, address_without_device_is_no_device);
    tcase_add_loop_test(tc, wrong_size_or_alignment_is_a_bad_access, 0,
                        G_N_ELEMENTS(bad_accesses));
    tcase_add_test(tc, access_that_leaves_a_short_device_is_a_bad_access);
    tcase_add_test(tc, overlapping_device_is_refused_and_named);
    tcase_add_test(tc, impossible_device_is_refused);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
