/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SPIs: where they are routed, who takes them and who ends them; and what a
 * reset of a CPU leaves. The test's own thread.
 */
#include "gic_fixture.h"

START_TEST(spi_goes_where_it_is_routed)
{
    spi_enable(SPI_A, 0x80, 3);
    gic_set_spi(gic, SPI_A, true);
    for (unsigned i = 0; i < cpus; i++) {
        check_signal(i, i == 3);
    }
    ck_assert_uint_eq(ack(3), SPI_A);
    ck_assert_uint_eq(gicd_read(0x304), 1u << (SPI_A - 32));
    check_signal(3, false);
    gic_set_spi(gic, SPI_A, false);
    eoi(3, SPI_A);
    ck_assert_uint_eq(gicd_read(0x304), 0);
    check_signal(3, false);
}
END_TEST

START_TEST(pending_spi_follows_its_route)
{
    spi_enable(SPI_A, 0x80, 0);
    gic_set_spi(gic, SPI_A, true);
    check_signal(0, true);
    mmio_write(BOARD_GICD_BASE + 0x6000 + 8 * SPI_A, 1, 8);
    check_signal(0, false);
    check_signal(1, true);
    mmio_write(BOARD_GICD_BASE + 0x6000 + 8 * SPI_A, 0x900, 8); /* nobody */
    check_signal(1, false);
    ck_assert_uint_eq(ack(1), SPURIOUS);
}
END_TEST

START_TEST(spis_and_private_interrupts_compete_by_priority)
{
    spi_enable(SPI_A, 0x90, 0);
    spi_enable(SPI_B, 0x30, 0);
    set_priority(0, 1, 0x90);
    gic_set_spi(gic, SPI_A, true);
    sgi(0, 0, 1);
    gic_set_spi(gic, SPI_B, true);
    ck_assert_uint_eq(ack(0), SPI_B);
    gic_set_spi(gic, SPI_B, false);
    eoi(0, SPI_B);
    ck_assert_uint_eq(ack(0), 1); /* equal priority: the lower number */
    check_signal(0, false);
    eoi(0, 1);
    ck_assert_uint_eq(ack(0), SPI_A);
}
END_TEST

START_TEST(edge_spi_is_latched)
{
    spi_enable(SPI_A, 0x80, 1);
    gicd_write(0xc00 + SPI_A / 16 * 4, 2u << (2 * (SPI_A % 16)));
    gic_set_spi(gic, SPI_A, true);
    gic_set_spi(gic, SPI_A, false);
    check_signal(1, true);
    ck_assert_uint_eq(gicd_read(0x204), 1u << (SPI_A - 32));
    ck_assert_uint_eq(ack(1), SPI_A);
    eoi(1, SPI_A);
    check_signal(1, false);
}
END_TEST

START_TEST(one_of_n_spi_goes_to_one_cpu_that_takes_interrupts)
{
    icc_write(0, SYSREG_ICC_IGRPEN1_EL1, 0);
    icc_write(1, SYSREG_ICC_IGRPEN1_EL1, 0);
    spi_enable(SPI_A, 0x80, 1ull << 31);
    gic_set_spi(gic, SPI_A, true);
    for (unsigned i = 0; i < cpus; i++) {
        check_signal(i, i == 2);
    }
    icc_write(2, SYSREG_ICC_IGRPEN1_EL1, 0);
    check_signal(2, false);
    check_signal(3, true);
    icc_write(3, SYSREG_ICC_IGRPEN1_EL1, 0);
    check_signal(3, false);
    icc_write(1, SYSREG_ICC_IGRPEN1_EL1, 1);
    check_signal(1, true);
    ck_assert_uint_eq(ack(1), SPI_A);
}
END_TEST

START_TEST(spi_ended_by_another_cpu_is_deactivated)
{
    icc_write(0, SYSREG_ICC_CTLR_EL1, 2);
    icc_write(1, SYSREG_ICC_CTLR_EL1, 2);
    spi_enable(SPI_A, 0x80, 0);
    gic_set_spi(gic, SPI_A, true);
    ck_assert_uint_eq(ack(0), SPI_A);
    eoi(0, SPI_A);
    check_signal(0, false);
    icc_write(1, SYSREG_ICC_DIR_EL1, SPI_A);
    check_signal(0, true);
}
END_TEST

START_TEST(reset_of_a_cpu_closes_its_interface_and_keeps_what_is_pending)
{
    sgi(0, 1, 2);
    ck_assert_uint_eq(ack(1), 2);
    eoi(1, 2);
    sgi(0, 1, 3);
    check_signal(1, true);
    gic_reset_cpu(gic, 1);
    check_signal(1, false);
    ck_assert_uint_eq(icc_read(1, SYSREG_ICC_PMR_EL1), 0);
    icc_write(1, SYSREG_ICC_PMR_EL1, 0xf0);
    icc_write(1, SYSREG_ICC_IGRPEN1_EL1, 1);
    check_signal(1, true);
    ck_assert_uint_eq(ack(1), 3);
}
END_TEST

START_TEST(impossible_numbers_of_cpus_give_no_gic)
{
    ck_assert_ptr_null(gic_new(0, &callbacks, &signals));
    ck_assert_ptr_null(gic_new(513, &callbacks, &signals));
    gic_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gic_spi");
    TCase *raw = case_new(suite, "registers", setup_raw);
    TCase *on = case_new(suite, "interrupts", setup_enabled);

    tcase_add_test(raw, impossible_numbers_of_cpus_give_no_gic);
    tcase_add_test(on, spi_goes_where_it_is_routed);
    tcase_add_test(on, pending_spi_follows_its_route);
    tcase_add_test(on, spis_and_private_interrupts_compete_by_priority);
    tcase_add_test(on, edge_spi_is_latched);
    tcase_add_test(on, one_of_n_spi_goes_to_one_cpu_that_takes_interrupts);
    tcase_add_test(on, spi_ended_by_another_cpu_is_deactivated);
    tcase_add_test(
        on, reset_of_a_cpu_closes_its_interface_and_keeps_what_is_pending);
    return suite_run(suite);
}
