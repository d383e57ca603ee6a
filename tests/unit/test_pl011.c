/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PL011: characters both ways, FIFO depth, flags, interrupts. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "abi/board.h"
#include "dev/pl011.h"

#define DR 0x00
#define RSR 0x04
#define FR 0x18
#define IBRD 0x24
#define FBRD 0x28
#define LCR_H 0x2c
#define CR 0x30
#define IFLS 0x34
#define IMSC 0x38
#define RIS 0x3c
#define MIS 0x40
#define ICR 0x44

#define FR_RXFE 0x10
#define FR_RXFF 0x40
#define FR_TXFE 0x80
#define INT_RX 0x10
#define INT_TX 0x20
#define INT_RT 0x40
#define INT_OE 0x400

struct wires {
    char out[64];
    unsigned sent, changes, rooms;
    bool level;
};

static void wires_tx(void *opaque, uint8_t byte)
{
    struct wires *w = opaque;

    w->out[w->sent++ % sizeof(w->out)] = (char)byte;
}

static void wires_irq(void *opaque, bool level)
{
    struct wires *w = opaque;

    ck_assert(w->level != level);
    w->level = level;
    w->changes++;
}

static void wires_room(void *opaque)
{
    ((struct wires *)opaque)->rooms++;
}

static const struct pl011_callbacks callbacks = {
    .tx = wires_tx,
    .irq = wires_irq,
    .rx_room = wires_room,
};

static struct wires wires;
static struct pl011 *uart;
static struct bus *bus;

static void setup(void)
{
    memset(&wires, 0, sizeof(wires));
    bus = bus_new();
    uart = pl011_new(&callbacks, &wires);
    ck_assert(pl011_attach(uart, bus, NULL));
}

static void teardown(void)
{
    pl011_free(uart);
    bus_free(bus);
}

static uint32_t get(uint64_t offset)
{
    uint64_t value = 0;

    ck_assert_int_eq(bus_read(bus, 0, BOARD_UART_BASE + offset, 4, &value),
                     BUS_OK);
    return (uint32_t)value;
}

static void set(uint64_t offset, uint32_t value)
{
    ck_assert_int_eq(bus_write(bus, 0, BOARD_UART_BASE + offset, value, 4),
                     BUS_OK);
}

static size_t push(const char *text)
{
    return pl011_rx_push(uart, (const uint8_t *)text, strlen(text));
}

START_TEST(reset_values_are_those_of_the_manual)
{
    ck_assert_uint_eq(get(FR), FR_TXFE | FR_RXFE);
    ck_assert_uint_eq(get(CR), 0x300);
    ck_assert_uint_eq(get(IFLS), 0x12);
    ck_assert_uint_eq(get(IMSC), 0);
    ck_assert_uint_eq(get(RIS), 0);
    ck_assert_uint_eq(get(LCR_H), 0);
}
END_TEST

START_TEST(identification_says_pl011)
{
    uint32_t periph = 0, cell = 0;

    for (unsigned i = 0; i < 4; i++) {
        periph |= (get(0xfe0 + 4 * i) & 0xff) << (8 * i);
        cell |= (get(0xff0 + 4 * i) & 0xff) << (8 * i);
    }
    ck_assert_uint_eq(periph & 0x000fffff, 0x00041011);
    ck_assert_uint_eq(cell, 0xb105f00d);
}
END_TEST

START_TEST(characters_go_out_in_order_at_any_access_size)
{
    set(DR, 'a');
    ck_assert_int_eq(bus_write(bus, 0, BOARD_UART_BASE, 'b', 1), BUS_OK);
    ck_assert_int_eq(bus_write(bus, 0, BOARD_UART_BASE, 'c', 2), BUS_OK);
    ck_assert_uint_eq(wires.sent, 3);
    ck_assert_int_eq(memcmp(wires.out, "abc", 3), 0);
    ck_assert_uint_eq(get(FR) & FR_TXFE, FR_TXFE);
}
END_TEST

START_TEST(sending_raises_the_transmit_interrupt_until_cleared)
{
    set(IMSC, INT_TX);
    ck_assert(!wires.level);
    set(DR, 'x');
    ck_assert(wires.level);
    ck_assert_uint_eq(get(MIS), INT_TX);
    set(ICR, INT_TX);
    ck_assert(!wires.level);
    ck_assert_uint_eq(get(RIS), 0);
}
END_TEST

START_TEST(without_fifo_one_character_is_held)
{
    ck_assert_uint_eq(push("xy"), 1);
    ck_assert_uint_eq(get(FR) & (FR_RXFF | FR_RXFE), FR_RXFF);
    ck_assert_uint_eq(get(RIS), INT_RX);
    ck_assert_uint_eq(get(DR), 'x');
    ck_assert_uint_eq(get(RIS), 0);
    ck_assert_uint_eq(get(FR) & (FR_RXFF | FR_RXFE), FR_RXFE);
    ck_assert_uint_eq(wires.rooms, 1);
    ck_assert_uint_eq(push("y"), 1);
    ck_assert_uint_eq(get(DR), 'y');
    ck_assert_uint_eq(wires.rooms, 1);
}
END_TEST

START_TEST(fifo_holds_sixteen_and_keeps_order_around_its_end)
{
    set(LCR_H, 0x70);
    ck_assert_uint_eq(push("0123456789abcdefXYZ"), 16);
    ck_assert_uint_eq(get(FR) & FR_RXFF, FR_RXFF);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(get(DR), '0' + i);
    }
    ck_assert_uint_eq(wires.rooms, 1);
    ck_assert_uint_eq(push("XYZ"), 3);
    for (const char *p = "56789abcdefXYZ"; *p != '\0'; p++) {
        ck_assert_uint_eq(get(DR), (uint8_t)*p);
    }
    ck_assert_uint_eq(get(FR) & FR_RXFE, FR_RXFE);
    ck_assert_uint_eq(get(DR), 0);
}
END_TEST

static const struct {
    uint32_t ifls;
    unsigned trigger;
} triggers[] = {
    {0 << 3, 2}, {1 << 3, 4}, {2 << 3, 8}, {3 << 3, 12}, {4 << 3, 14}};

START_TEST(receive_interrupt_comes_at_the_trigger_level)
{
    set(LCR_H, 0x10);
    set(IFLS, triggers[_i].ifls);
    set(IMSC, INT_RX);
    for (unsigned i = 1; i < triggers[_i].trigger; i++) {
        ck_assert_uint_eq(push("c"), 1);
        ck_assert(!wires.level);
    }
    ck_assert_uint_eq(push("c"), 1);
    ck_assert(wires.level);
    (void)get(DR);
    ck_assert(!wires.level);
}
END_TEST

START_TEST(fewer_characters_than_the_trigger_time_out)
{
    set(LCR_H, 0x10);
    set(IMSC, INT_RX | INT_RT);
    ck_assert_uint_eq(push("ab"), 2);
    ck_assert_uint_eq(get(MIS), INT_RT);
    ck_assert(wires.level);
    (void)get(DR);
    ck_assert(wires.level);
    (void)get(DR);
    ck_assert(!wires.level);
    ck_assert_uint_eq(get(RIS), 0);
    ck_assert_uint_eq(wires.changes, 2);
}
END_TEST

START_TEST(masked_interrupt_shows_in_ris_only)
{
    ck_assert_uint_eq(push("a"), 1);
    ck_assert_uint_eq(get(RIS), INT_RX);
    ck_assert_uint_eq(get(MIS), 0);
    ck_assert(!wires.level);
    set(IMSC, INT_RX);
    ck_assert(wires.level);
    set(IMSC, 0);
    ck_assert(!wires.level);
}
END_TEST

START_TEST(loopback_sends_to_the_receiver_and_can_overrun)
{
    set(CR, 0x381);
    set(DR, 'l');
    ck_assert_uint_eq(wires.sent, 0);
    set(DR, 'm'); /* no FIFO: overrun */
    ck_assert_uint_eq(get(RSR), 8);
    ck_assert_uint_eq(get(RIS) & INT_OE, INT_OE);
    ck_assert_uint_eq(get(DR), 'l');
    set(DR, 'n');
    ck_assert_uint_eq(get(DR), 'n' | 0x800); /* the first after the overrun */
    ck_assert_uint_eq(get(RSR), 8);
    set(RSR, 0);
    ck_assert_uint_eq(get(RSR), 0);
    set(ICR, 0x7ff);
    ck_assert_uint_eq(get(RIS), 0);
}
END_TEST

START_TEST(changing_the_fifo_mode_empties_it)
{
    set(LCR_H, 0x10);
    set(IMSC, INT_RT);
    ck_assert_uint_eq(push("abc"), 3);
    ck_assert(wires.level);
    set(LCR_H, 0x00);
    ck_assert_uint_eq(get(FR) & FR_RXFE, FR_RXFE);
    ck_assert(!wires.level);
}
END_TEST

START_TEST(configuration_registers_keep_their_bits)
{
    set(IBRD, 0xfffff);
    set(FBRD, 0xff);
    set(CR, 0xffffffff);
    set(IMSC, 0xffffffff);
    ck_assert_uint_eq(get(IBRD), 0xffff);
    ck_assert_uint_eq(get(FBRD), 0x3f);
    ck_assert_uint_eq(get(CR), 0xff87);
    ck_assert_uint_eq(get(IMSC), 0x7ff);
    set(FR, 0xff);
    ck_assert_uint_eq(get(FR), FR_TXFE | FR_RXFE);
}
END_TEST

START_TEST(unknown_registers_read_as_zero_and_are_counted)
{
    ck_assert_uint_eq(get(0x100), 0);
    set(0x100, 1);
    ck_assert_uint_eq(pl011_unknown_accesses(uart), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pl011");
    TCase *tc = tcase_create("pl011");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, reset_values_are_those_of_the_manual);
    tcase_add_test(tc, identification_says_pl011);
    tcase_add_test(tc, characters_go_out_in_order_at_any_access_size);
    tcase_add_test(tc, sending_raises_the_transmit_interrupt_until_cleared);
    tcase_add_test(tc, without_fifo_one_character_is_held);
    tcase_add_test(tc, fifo_holds_sixteen_and_keeps_order_around_its_end);
    tcase_add_loop_test(tc, receive_interrupt_comes_at_the_trigger_level, 0,
                        G_N_ELEMENTS(triggers));
    tcase_add_test(tc, fewer_characters_than_the_trigger_time_out);
    tcase_add_test(tc, masked_interrupt_shows_in_ris_only);
    tcase_add_test(tc, loopback_sends_to_the_receiver_and_can_overrun);
    tcase_add_test(tc, changing_the_fifo_mode_empties_it);
    tcase_add_test(tc, configuration_registers_keep_their_bits);
    tcase_add_test(tc, unknown_registers_read_as_zero_and_are_counted);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
