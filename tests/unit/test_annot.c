/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The annotation device and the shape of the counters. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "abi/board.h"
#include "dev/annot.h"

struct seen {
    unsigned calls, cpu, alternatives, answer;
    uint64_t value, addr, cpus, start, end, pages;
    unsigned promise, reg;
    const char *what;
};

static void saw(void *opaque, unsigned cpu, uint64_t value, const char *what)
{
    struct seen *seen = opaque;

    seen->calls++;
    seen->cpu = cpu;
    seen->value = value;
    seen->what = what;
}

static void saw_exit(void *opaque, unsigned cpu, uint64_t value)
{
    saw(opaque, cpu, value, "exit");
}

static void saw_panic(void *opaque, unsigned cpu, uint64_t value)
{
    saw(opaque, cpu, value, "panic");
}

static void saw_mark(void *opaque, unsigned cpu, uint64_t value)
{
    saw(opaque, cpu, value, "mark");
}

static void saw_begin(void *opaque, unsigned cpu, uint64_t value,
                      uint64_t start, uint64_t end, unsigned promise)
{
    struct seen *s = opaque;

    saw(opaque, cpu, value, "begin");
    s->start = start;
    s->end = end;
    s->promise = promise;
}

static void saw_frame(void *opaque, unsigned cpu, unsigned reg, uint64_t pa,
                      uint64_t pages)
{
    struct seen *s = opaque;

    saw(opaque, cpu, pa, "frame");
    s->reg = reg;
    s->pages = pages;
}

static void saw_end(void *opaque, unsigned cpu, uint64_t value)
{
    saw(opaque, cpu, value, "end");
}

static void saw_counters(void *opaque, unsigned cpu, uint64_t addr,
                         uint64_t cpus)
{
    struct seen *seen = opaque;

    saw(opaque, cpu, 0, "counters");
    seen->addr = addr;
    seen->cpus = cpus;
}

static void saw_finding(void *opaque, unsigned cpu, uint64_t value)
{
    saw(opaque, cpu, value, "finding");
}

static unsigned asked(void *opaque, unsigned cpu, unsigned n)
{
    struct seen *seen = opaque;

    saw(opaque, cpu, 0, "choose");
    seen->alternatives = n;
    return seen->answer;
}

static const struct annot_callbacks callbacks = {
    .exit_status = saw_exit,
    .panic = saw_panic,
    .mark = saw_mark,
    .op_begin = saw_begin,
    .op_end = saw_end,
    .counters = saw_counters,
    .finding = saw_finding,
    .choose = asked,
    .frame = saw_frame,
};

static struct seen seen;
static struct annot *annot;
static struct bus *bus;

static void setup(void)
{
    memset(&seen, 0, sizeof(seen));
    bus = bus_new();
    annot = annot_new(&callbacks, &seen);
    ck_assert(annot_attach(annot, bus, NULL));
}

static void teardown(void)
{
    annot_free(annot);
    bus_free(bus);
}

static uint64_t reg_read_by(unsigned cpu, uint64_t offset)
{
    uint64_t value = 0;

    ck_assert_int_eq(bus_read(bus, cpu, BOARD_ANNOT_BASE + offset, 8, &value),
                     BUS_OK);
    return value;
}

static uint64_t reg_read(uint64_t offset)
{
    return reg_read_by(0, offset);
}

static void reg_write(unsigned cpu, uint64_t offset, uint64_t value)
{
    ck_assert_int_eq(bus_write(bus, cpu, BOARD_ANNOT_BASE + offset, value, 8),
                     BUS_OK);
}

START_TEST(id_spells_shot_and_version_is_one)
{
    uint64_t id = reg_read(0x00);

    ck_assert_int_eq(memcmp(&id, "SHOT\0\0\0\0", 8), 0);
    ck_assert_uint_eq(reg_read(0x08), 1);
}
END_TEST

static const struct {
    uint64_t offset;
    const char *what;
} calls[] = {
    {0x20, "exit"},  {0x28, "panic"}, {0x30, "mark"},
    {0x38, "begin"}, {0x40, "end"},   {0x48, "finding"},
};

START_TEST(register_write_becomes_its_call)
{
    reg_write(9, calls[_i].offset, 0x8000000000000007ull);
    ck_assert_uint_eq(seen.calls, 1);
    ck_assert_str_eq(seen.what, calls[_i].what);
    ck_assert_uint_eq(seen.cpu, 9);
    ck_assert_uint_eq(seen.value, 0x8000000000000007ull);
}
END_TEST

START_TEST(an_operation_has_the_range_that_its_cpu_wrote)
{
    reg_write(2, 0x88, 0x5000 | 2);
    reg_write(2, 0x90, 0x9000);
    reg_write(1, 0x88, 0x1000);
    ck_assert_uint_eq(seen.calls, 0);
    reg_write(2, 0x38, 3);
    ck_assert_uint_eq(seen.start, 0x5000);
    ck_assert_uint_eq(seen.end, 0x9000);
    ck_assert_uint_eq(seen.promise, 2);
    reg_write(2, 0x38, 3); /* it was for one operation */
    ck_assert_uint_eq(seen.start, 0);
    ck_assert_uint_eq(seen.end, 0);
    ck_assert_uint_eq(seen.promise, 0);
    ck_assert_uint_eq(annot_unknown_accesses(annot), 0);
}
END_TEST

START_TEST(frames_are_told_with_their_size)
{
    static const unsigned regs[] = {0x60, 0x68, 0x70, 0x78, 0x80};

    for (unsigned i = 0; i < 5; i++) {
        reg_write(1, regs[i], 0x40200000 | i);
        ck_assert_uint_eq(seen.reg, regs[i]);
        ck_assert_uint_eq(seen.value, 0x40200000);
        ck_assert_uint_eq(seen.pages, 1u << i);
    }
    reg_write(1, 0x60, 0x40200000 | 19);
    ck_assert_uint_eq(seen.calls, 5);
    ck_assert_uint_eq(annot_unknown_accesses(annot), 1);
}
END_TEST

START_TEST(features_are_what_the_machine_says)
{
    ck_assert_uint_eq(reg_read(0x58), 0);
    annot_set_features(annot, 1);
    ck_assert_uint_eq(reg_read(0x58), 1);
    reg_write(0, 0x58, 0);
    ck_assert_uint_eq(reg_read(0x58), 1);
    ck_assert_uint_eq(annot_unknown_accesses(annot), 1);
}
END_TEST

START_TEST(counters_are_located_when_both_registers_are_written)
{
    uint64_t addr = 0, cpus = 0;

    ck_assert(!annot_counters_location(annot, &addr, &cpus));
    reg_write(0, 0x10, 0x40123000);
    ck_assert(!annot_counters_location(annot, &addr, &cpus));
    reg_write(0, 0x18, 64);
    ck_assert(annot_counters_location(annot, &addr, &cpus));
    ck_assert_uint_eq(addr, 0x40123000);
    ck_assert_uint_eq(cpus, 64);
    ck_assert_uint_eq(seen.calls, 2);
    ck_assert_uint_eq(seen.addr, 0x40123000);
    ck_assert_uint_eq(seen.cpus, 64);
    ck_assert_uint_eq(reg_read(0x10), 0x40123000);
}
END_TEST

START_TEST(exit_status_and_panic_code_are_kept)
{
    uint64_t value = 0;

    ck_assert(!annot_exit_status(annot, &value));
    ck_assert(!annot_panic_code(annot, &value));
    reg_write(0, 0x20, 0);
    ck_assert(annot_exit_status(annot, &value));
    ck_assert_uint_eq(value, 0);
    reg_write(0, 0x28, 3);
    ck_assert(annot_panic_code(annot, &value));
    ck_assert_uint_eq(value, 3);
}
END_TEST

START_TEST(only_whole_registers_can_be_accessed)
{
    uint64_t value;

    ck_assert_int_eq(bus_read(bus, 0, BOARD_ANNOT_BASE, 4, &value),
                     BUS_BAD_ACCESS);
    ck_assert_int_eq(bus_write(bus, 0, BOARD_ANNOT_BASE + 0x34, 0, 8),
                     BUS_BAD_ACCESS);
}
END_TEST

START_TEST(each_cpu_reads_the_answer_to_its_own_last_question)
{
    seen.answer = 4;
    reg_write(2, 0x50, 5);
    ck_assert_str_eq(seen.what, "choose");
    ck_assert_uint_eq(seen.cpu, 2);
    ck_assert_uint_eq(seen.alternatives, 5);
    seen.answer = 1023;
    reg_write(511, 0x50, 1024);
    ck_assert_uint_eq(reg_read_by(2, 0x50), 4);
    ck_assert_uint_eq(reg_read_by(2, 0x50), 4);
    ck_assert_uint_eq(reg_read_by(511, 0x50), 1023);
    ck_assert_uint_eq(reg_read_by(3, 0x50), 0);
    seen.answer = 0;
    reg_write(2, 0x50, 1);
    ck_assert_uint_eq(reg_read_by(2, 0x50), 0);
    ck_assert_uint_eq(reg_read_by(511, 0x50), 1023);
    ck_assert_uint_eq(annot_unknown_accesses(annot), 0);
}
END_TEST

START_TEST(an_impossible_question_is_not_asked_and_answered_with_0)
{
    static const uint64_t impossible[] = {0, 1025, UINT64_MAX,
                                          UINT64_C(0x100000002)};

    for (unsigned i = 0; i < 4; i++) {
        seen.answer = 1;
        reg_write(0, 0x50, 2);
        ck_assert_uint_eq(reg_read(0x50), 1);
        reg_write(0, 0x50, impossible[i]);
        ck_assert_uint_eq(reg_read(0x50), 0);
        ck_assert_uint_eq(seen.calls, i + 1);
        ck_assert_uint_eq(annot_unknown_accesses(annot), i + 1);
    }
}
END_TEST

START_TEST(a_restored_device_has_its_registers_and_answers_back)
{
    size_t size = annot_state_size(annot);
    uint8_t *saved = malloc(size), *again = malloc(size);
    uint64_t value = 0;

    seen.answer = 3;
    reg_write(1, 0x50, 9);
    reg_write(0, 0x10, 0x40123000);
    reg_write(0, 0x30, 17);
    annot_save(annot, saved);
    seen.answer = 6;
    reg_write(1, 0x50, 9);
    reg_write(0, 0x18, 4);
    reg_write(0, 0x30, 18);
    reg_write(0, 0x20, 77);
    seen.calls = 0;
    annot_restore(annot, saved);
    ck_assert_uint_eq(seen.calls, 0);
    ck_assert_uint_eq(reg_read_by(1, 0x50), 3);
    ck_assert_uint_eq(reg_read(0x30), 17);
    ck_assert(!annot_exit_status(annot, &value));
    ck_assert(!annot_counters_location(annot, &value, &value));
    annot_save(annot, again);
    ck_assert_int_eq(memcmp(saved, again, size), 0);
    free(saved);
    free(again);
}
END_TEST

START_TEST(unknown_and_read_only_registers_are_counted)
{
    ck_assert_uint_eq(reg_read(0x48), 0);
    reg_write(0, 0xff8, 1);
    reg_write(0, 0x00, 1);
    ck_assert_uint_eq(annot_unknown_accesses(annot), 3);
    ck_assert_uint_eq(seen.calls, 0);
}
END_TEST

START_TEST(missing_callbacks_are_not_called)
{
    static const struct annot_callbacks none;
    struct annot *quiet = annot_new(&none, NULL);
    struct bus *other = bus_new();
    uint64_t answer = 1;

    ck_assert(annot_attach(quiet, other, NULL));
    for (uint64_t offset = 0; offset <= 0x50; offset += 8) {
        ck_assert_int_eq(bus_write(other, 0, BOARD_ANNOT_BASE + offset, 1, 8),
                         BUS_OK);
    }
    ck_assert_int_eq(bus_read(other, 0, BOARD_ANNOT_BASE + 0x50, 8, &answer),
                     BUS_OK);
    ck_assert_uint_eq(answer, 0);
    ck_assert_uint_eq(annot_unknown_accesses(quiet), 2); /* ID and VERSION */
    annot_free(quiet);
    bus_free(other);
}
END_TEST

START_TEST(counters_have_unique_names_in_struct_order)
{
    ck_assert_uint_eq(sizeof(struct annot_counters) % ANNOT_COUNTERS_ALIGN, 0);
    ck_assert_uint_ge(sizeof(struct annot_counters),
                      ANNOT_COUNTERS * sizeof(uint64_t));
    ck_assert_str_eq(
        annot_counter_name(offsetof(struct annot_counters, dsb_ish) / 8),
        "dsb_ish");
    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        ck_assert_uint_gt(strlen(annot_counter_text(i)), 0);
        for (unsigned k = 0; k < i; k++) {
            ck_assert_str_ne(annot_counter_name(i), annot_counter_name(k));
        }
    }
    ck_assert_ptr_null(annot_counter_name(ANNOT_COUNTERS));
    ck_assert_ptr_null(annot_counter_text(ANNOT_COUNTERS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("annot");
    TCase *tc = tcase_create("annot");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, id_spells_shot_and_version_is_one);
    tcase_add_loop_test(tc, register_write_becomes_its_call, 0,
                        G_N_ELEMENTS(calls));
    tcase_add_test(tc, an_operation_has_the_range_that_its_cpu_wrote);
    tcase_add_test(tc, frames_are_told_with_their_size);
    tcase_add_test(tc, features_are_what_the_machine_says);
    tcase_add_test(tc, counters_are_located_when_both_registers_are_written);
    tcase_add_test(tc, exit_status_and_panic_code_are_kept);
    tcase_add_test(tc, only_whole_registers_can_be_accessed);
    tcase_add_test(tc, each_cpu_reads_the_answer_to_its_own_last_question);
    tcase_add_test(tc, an_impossible_question_is_not_asked_and_answered_with_0);
    tcase_add_test(tc, a_restored_device_has_its_registers_and_answers_back);
    tcase_add_test(tc, unknown_and_read_only_registers_are_counted);
    tcase_add_test(tc, missing_callbacks_are_not_called);
    tcase_add_test(tc, counters_have_unique_names_in_struct_order);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
